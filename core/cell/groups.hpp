// The labels of machines: attributes, and the node sets each machine is in.
//
// Both are bitmaps over machines, one bit a machine in words of 64, so that a filter is an AND or an
// OR of a few hundred words; and both are lists per machine, O(its labels) to read. Machines and sets
// are added in place: a snapshot shares this with the live cell and stays frozen by reading no further
// than its own machines and sets. A machine is relabelled in a copy of the whole while a snapshot shares
// it: O(machines / 64 x labels), which labels change seldom enough for.
//
// A mark is an attribute that is in no machine's list: it is given to and taken from many machines at
// once, O(machines / 64), and stays when a machine is relabelled. An attribute is never both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace argosy {

using Bitmap = std::vector<std::uint64_t>;

constexpr std::int32_t most_attributes = std::int32_t{1} << 24;
constexpr std::int32_t most_sets = std::int32_t{1} << 24;

inline std::size_t bitmap_words(std::int32_t machines) {
  return (static_cast<std::size_t>(machines) + 63) / 64;
}

inline void set_bit(Bitmap& bitmap, std::int32_t machine) {
  const std::size_t word = static_cast<std::size_t>(machine) / 64;
  if (bitmap.size() <= word) bitmap.resize(word + 1);
  bitmap[word] |= std::uint64_t{1} << (machine & 63);
}

inline bool has_bit(const Bitmap& bitmap, std::int32_t machine) {
  const std::size_t word = static_cast<std::size_t>(machine) / 64;
  return word < bitmap.size() && (bitmap[word] >> (machine & 63) & 1) != 0;
}

// Clears the bits behind the last machine.
inline void trim(Bitmap& bitmap, std::int32_t machines) {
  bitmap.resize(bitmap_words(machines));
  if (machines % 64 != 0) bitmap.back() &= (std::uint64_t{1} << (machines % 64)) - 1;
}

inline void clear_bit(Bitmap& bitmap, std::int32_t machine) {
  bitmap[static_cast<std::size_t>(machine) / 64] &= ~(std::uint64_t{1} << (machine & 63));
}

// A short list of numbers per machine, in one array. A list that grows moves to the end; when most of the array
// is unused, it is compacted.
class Lists {
 public:
  std::span<const std::int32_t> of(std::int32_t machine) const {
    const Place& place = places_[static_cast<std::size_t>(machine)];
    return {numbers_.data() + place.from, place.count};
  }
  std::int32_t size() const { return static_cast<std::int32_t>(places_.size()); }

  void append(std::span<const std::int32_t> list) {
    places_.push_back({numbers_.size(), list.size()});
    numbers_.insert(numbers_.end(), list.begin(), list.end());
    used_ += list.size();
  }

  void replace(std::int32_t machine, std::span<const std::int32_t> list) {
    Place& place = places_[static_cast<std::size_t>(machine)];
    used_ += list.size() - place.count;
    if (list.size() > place.count) {
      place.from = numbers_.size();
      numbers_.resize(numbers_.size() + list.size());
    }
    place.count = list.size();
    std::copy(list.begin(), list.end(), numbers_.begin() + static_cast<std::ptrdiff_t>(place.from));
    if (numbers_.size() > 2 * used_ + 1'024) pack();
  }

 private:
  struct Place {
    std::size_t from;
    std::size_t count;
  };

  void pack() {
    std::vector<std::int32_t> packed;
    packed.reserve(used_);
    for (Place& place : places_) {
      const auto from = numbers_.begin() + static_cast<std::ptrdiff_t>(place.from);
      place.from = packed.size();
      packed.insert(packed.end(), from, from + static_cast<std::ptrdiff_t>(place.count));
    }
    numbers_ = std::move(packed);
  }

  std::vector<Place> places_;
  std::vector<std::int32_t> numbers_;
  std::size_t used_ = 0;
};

class Groups {
 public:
  explicit Groups(std::int32_t sets) : members_(static_cast<std::size_t>(sets)) {}

  std::int32_t sets() const { return static_cast<std::int32_t>(members_.size()); }
  void add_sets(std::int32_t count) { members_.resize(members_.size() + static_cast<std::size_t>(count)); }

  // The next machine is in `sets` (each 0 <= set < sets(), distinct) and has `attributes` (>= 0).
  void append(std::span<const std::int32_t> sets, std::span<const std::int32_t> attributes) {
    note(sets_of_.size(), sets, attributes);
    sets_of_.append(sets);
    attributes_of_.append(attributes);
  }

  // Whether the machine has exactly these labels, in any order.
  bool has(std::int32_t machine, std::span<const std::int32_t> sets,
           std::span<const std::int32_t> attributes) const {
    const auto same = [](std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
      return std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
    };
    return same(sets_of(machine), sets) && same(attributes_of_.of(machine), attributes);
  }

  // Must be called on a copy that no snapshot shares.
  void relabel(std::int32_t machine, std::span<const std::int32_t> sets,
               std::span<const std::int32_t> attributes) {
    for (const std::int32_t set : sets_of(machine)) {
      clear_bit(members_[static_cast<std::size_t>(set)], machine);
    }
    for (const std::int32_t attribute : attributes_of_.of(machine)) {
      clear_bit(attributes_[static_cast<std::size_t>(attribute)], machine);
    }
    note(machine, sets, attributes);
    sets_of_.replace(machine, sets);
    attributes_of_.replace(machine, attributes);
  }

  std::span<const std::int32_t> sets_of(std::int32_t machine) const { return sets_of_.of(machine); }

  // The machines in `bitmap` get the mark or lose it. Must be called on a copy that no snapshot shares.
  void mark(std::int32_t attribute, std::span<const std::uint64_t> bitmap, bool is_given) {
    const auto at = static_cast<std::size_t>(attribute);
    if (attributes_.size() <= at) attributes_.resize(at + 1);
    Bitmap& having = attributes_[at];
    if (having.size() < bitmap.size()) having.resize(bitmap.size());
    for (std::size_t word = 0; word < bitmap.size(); ++word) {
      having[word] = is_given ? having[word] | bitmap[word] : having[word] & ~bitmap[word];
    }
  }

  bool has_attribute(std::int32_t machine, std::int32_t attribute) const {
    const auto at = static_cast<std::size_t>(attribute);
    return at < attributes_.size() && has_bit(attributes_[at], machine);
  }

  const Bitmap& members(std::int32_t set) const { return members_[static_cast<std::size_t>(set)]; }

  // Keeps in `bitmap` only machines that have the attribute.
  void keep_attribute(std::int32_t attribute, Bitmap& bitmap) const {
    static const Bitmap nobody;
    const auto at = static_cast<std::size_t>(attribute);
    const Bitmap& having = at < attributes_.size() ? attributes_[at] : nobody;
    for (std::size_t word = 0; word < bitmap.size(); ++word) {
      bitmap[word] &= word < having.size() ? having[word] : 0;
    }
  }

 private:
  void note(std::int32_t machine, std::span<const std::int32_t> sets,
            std::span<const std::int32_t> attributes) {
    for (const std::int32_t set : sets) set_bit(members_[static_cast<std::size_t>(set)], machine);
    for (const std::int32_t attribute : attributes) {
      const auto at = static_cast<std::size_t>(attribute);
      if (attributes_.size() <= at) attributes_.resize(at + 1);
      set_bit(attributes_[at], machine);
    }
  }

  std::vector<Bitmap> attributes_;
  std::vector<Bitmap> members_;
  Lists sets_of_;
  Lists attributes_of_;
};

}  // namespace argosy
