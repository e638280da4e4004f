// Machine changes: added, drained, removed, revived, resized, relabelled, marked.
//
// Claims go in the order least precedence first, among equals the youngest first. A change without effect
// (draining a draining machine, removing one that is gone) does not change the version. Removing a machine
// ends its draining. Relabelling evicts no task, whatever the tasks there required when they were placed;
// their tags are counted in the machine's new sets from then on, O(claims x tags x sets).
#pragma once

#include "cell/cell.hpp"

namespace argosy {

inline void Cell::require_capacity(const std::int64_t* capacity,
                                   const std::int64_t* instead_of) const {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  for (int d = 0; d < dimensions(); ++d) {
    if (capacity[d] < 0 || capacity[d] > largest_amount) {
      throw std::invalid_argument("a machine's capacity must be from 0 to 2^53");
    }
    if (d == columns_.device_dimension() &&
        (capacity[d] % device_size != 0 || capacity[d] > most_devices * device_size)) {
      throw std::invalid_argument("a machine has 0 to 16 whole devices");
    }
    const std::int64_t others =
        capacity_ever_[static_cast<std::size_t>(d)] - (instead_of ? instead_of[d] : 0);
    if (others > most - capacity[d]) {
      throw std::invalid_argument("the machines' capacities add up to more than 2^62");
    }
  }
}

inline void Cell::require_labels(std::span<const std::int32_t> sets,
                                 std::span<const std::int32_t> attributes) const {
  const auto repeats = [](std::span<const std::int32_t> list, std::size_t i) {
    const auto here = list.begin() + static_cast<std::ptrdiff_t>(i);
    return std::find(list.begin(), here, list[i]) != here;
  };
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i] < 0 || sets[i] >= groups_->sets()) throw std::invalid_argument("unknown node set");
    if (repeats(sets, i)) throw std::invalid_argument("a machine joins a node set once");
  }
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    if (attributes[i] < 0 || attributes[i] >= most_attributes) {
      throw std::invalid_argument("attribute numbers must be from 0 to 2^24");
    }
    if (repeats(attributes, i)) throw std::invalid_argument("a machine has an attribute once");
  }
}

inline std::int32_t Cell::add_machine(const std::int64_t* capacity,
                                      std::span<const std::int32_t> sets,
                                      std::span<const std::int32_t> attributes) {
  if (machines() >= most_machines) throw std::invalid_argument("too many machines");
  require_capacity(capacity, nullptr);
  require_labels(sets, attributes);
  groups_->append(sets, attributes);
  const std::int32_t machine = columns_.append(capacity);
  claims_.append_machine();
  last_in_.emplace_back();
  for (int d = 0; d < dimensions(); ++d) {
    capacity_[static_cast<std::size_t>(d)] += capacity[d];
    capacity_ever_[static_cast<std::size_t>(d)] += capacity[d];
  }
  touch(machine);
  return machine;
}

inline void Cell::drain(std::int32_t machine, bool draining) {
  require_machine(machine);
  const std::uint8_t flags = columns_.flags(machine);
  const std::uint8_t wanted = draining ? flag_draining : 0;
  if (flags == flag_gone || flags == wanted) return;
  columns_.set_flags(machine, wanted);
  touch(machine);
}

inline void Cell::remove_machine(std::int32_t machine) {
  require_machine(machine);
  if (columns_.flags(machine) == flag_gone) return;
  std::vector<std::int32_t> going;
  victims(machine, INT16_MAX + 1, going);
  for (const std::int32_t slot : going) evict(slot);
  for (int d = 0; d < dimensions(); ++d) {
    capacity_[static_cast<std::size_t>(d)] -= columns_.capacity(machine)[d];
  }
  columns_.set_flags(machine, flag_gone);
  touch(machine);
}

inline void Cell::revive(std::int32_t machine) {
  require_machine(machine);
  if (columns_.flags(machine) != flag_gone) return;
  for (int d = 0; d < dimensions(); ++d) {
    capacity_[static_cast<std::size_t>(d)] += columns_.capacity(machine)[d];
  }
  columns_.set_flags(machine, 0);
  touch(machine);
}

inline void Cell::resize(std::int32_t machine, const std::int64_t* capacity) {
  require_machine(machine);
  const std::int64_t* old = columns_.capacity(machine);
  require_capacity(capacity, old);
  if (std::equal(old, old + dimensions(), capacity)) return;

  const int devices = columns_.device_dimension();
  if (devices >= 0 && capacity[devices] < old[devices]) {
    const std::uint32_t kept = (1u << (capacity[devices] / device_size)) - 1;
    std::vector<std::int32_t> held;
    victims(machine, INT16_MAX + 1, held);
    for (const std::int32_t slot : held) {
      if ((claims_.at(slot).devices & ~kept) != 0) evict(slot);
    }
    // Evicting may have copied the page.
    old = columns_.capacity(machine);
  }
  Amounts room{};
  for (int d = 0; d < dimensions(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t change = capacity[d] - old[d];
    room[at] = d == devices ? 0 : columns_.free(machine)[d] + change;
    capacity_ever_[at] += change;
    if (is_up(machine)) capacity_[at] += change;
  }
  const auto is_over = [&] {
    return std::any_of(room.begin(), room.begin() + dimensions(), [](auto left) { return left < 0; });
  };
  std::vector<std::int32_t> going;
  if (is_over()) victims(machine, INT16_MAX + 1, going);
  for (std::size_t next = 0; is_over(); ++next) {
    const std::int64_t* amounts = shapes_->request(claims_.at(going[next]).shape);
    for (int d = 0; d < dimensions(); ++d) room[static_cast<std::size_t>(d)] += amounts[d];
    evict(going[next]);
  }
  columns_.resize(machine, capacity);
  touch(machine);
}

inline bool Cell::relabel(std::int32_t machine, std::span<const std::int32_t> sets,
                          std::span<const std::int32_t> attributes) {
  require_machine(machine);
  require_labels(sets, attributes);
  if (groups_->has(machine, sets, attributes)) return false;
  if (groups_.use_count() > 1) groups_ = std::make_shared<Groups>(*groups_);
  const auto count = [&](std::int32_t sign) {
    for (std::int32_t slot = claims_.first_on(machine); slot >= 0; slot = claims_.at(slot).next) {
      for (const std::int32_t tag : shapes_->tags(claims_.at(slot).shape)) {
        for (const std::int32_t set : groups_->sets_of(machine)) set_tags_.add(set, tag, sign);
      }
    }
  };
  count(-1);
  groups_->relabel(machine, sets, attributes);
  count(1);
  touch(machine);
  return true;
}

inline void Cell::mark(std::int32_t attribute, std::span<const std::uint64_t> bitmap, bool is_given) {
  if (attribute < 0 || attribute >= most_attributes) {
    throw std::invalid_argument("attribute numbers must be from 0 to 2^24");
  }
  if (bitmap.size() > bitmap_words(machines())) throw std::invalid_argument("a mark beyond the last machine");
  if (groups_.use_count() > 1) groups_ = std::make_shared<Groups>(*groups_);
  groups_->mark(attribute, bitmap, is_given);
}

}  // namespace argosy
