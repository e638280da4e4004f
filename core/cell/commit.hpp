// Judging a transaction: releases, then claims, against the cell as it is.
//
// A claim is refused for the first of these that holds: the machine is unknown, gone or draining; the
// task holds a claim already (and is not being moved by its own scheduler); the machine moved on
// since the decision (coarse); the scheduler may not wield the precedence, has its jobs, or its
// resources; the machine lacks room, even after every permitted preemption. O(1) expected a claim, plus its number of tags times sets;
// preemption sorts the machine's claims.
//
// Preemption takes tasks of strictly lower precedence, least first, among equals the youngest, until
// the claim fits; it then gives back those that turn out not to be needed, the most precious first.
// The result is minimal: no single victim could be spared. It is not the smallest possible set, which
// is a knapsack problem.
//
// All or nothing: claims are made one by one until the first refusal; then everything since the
// group's beginning is undone (the whole transaction with its releases if atomic, else the gang), and
// the other rows say `together`.
#pragma once

#include <unordered_set>

#include "cell/cell.hpp"

namespace argosy {

inline void Cell::check(const ClaimRows& rows, std::span<const std::int64_t> releases,
                        const Terms& terms) const {
  if (!knows_scheduler(terms.scheduler)) throw std::invalid_argument("unknown scheduler number");
  for (std::size_t row = 0; row < rows.count; ++row) {
    if (rows.tasks[row] < 0) throw std::invalid_argument("task numbers must not be negative");
    if (!shapes_->knows(rows.shapes[row])) {
      throw std::invalid_argument("there is no shape " + std::to_string(rows.shapes[row]));
    }
  }
  for (const std::int64_t task : releases) {
    if (task < 0) throw std::invalid_argument("task numbers must not be negative");
  }
  if (rows.gangs == nullptr) return;
  std::unordered_set<std::int32_t> seen;
  for (std::size_t row = 0; row < rows.count; ++row) {
    const std::int32_t gang = rows.gangs[row];
    if (gang < 0 || (row > 0 && rows.gangs[row - 1] == gang)) continue;
    if (!seen.insert(gang).second) {
      throw std::invalid_argument("the rows of gang " + std::to_string(gang) + " are not neighbours");
    }
  }
}

inline void Cell::victims(std::int32_t machine, int bound, std::vector<std::int32_t>& out) const {
  out.clear();
  for (std::int32_t slot = claims_.first_on(machine); slot >= 0; slot = claims_.at(slot).next) {
    if (shapes_->precedence(claims_.at(slot).shape) < bound) out.push_back(slot);
  }
  std::sort(out.begin(), out.end(), [this](std::int32_t a, std::int32_t b) {
    const int first = shapes_->precedence(claims_.at(a).shape);
    const int second = shapes_->precedence(claims_.at(b).shape);
    return first != second ? first < second : claims_.at(a).sequence > claims_.at(b).sequence;
  });
}

inline Refusal Cell::make_room(std::int32_t machine, std::int32_t shape, bool preempt) {
  if (fits(machine, shape)) return {};
  const std::int64_t* request = shapes_->request(shape);
  Amounts room{};
  std::copy_n(columns_.free(machine), dimensions(), room.begin());
  const auto lacking = [&] {
    int d = 0;
    while (d < dimensions() && room[static_cast<std::size_t>(d)] >= request[d]) ++d;
    return d;
  };
  const auto give = [&](std::int32_t slot, std::int64_t sign) {
    const std::int64_t* amounts = shapes_->request(claims_.at(slot).shape);
    for (int d = 0; d < dimensions(); ++d) room[static_cast<std::size_t>(d)] += sign * amounts[d];
  };

  std::vector<std::int32_t> going;
  std::size_t chosen = 0;
  if (preempt && lacking() < dimensions()) {
    victims(machine, shapes_->precedence(shape), going);
    while (chosen < going.size() && lacking() < dimensions()) give(going[chosen++], 1);
  }
  if (const int d = lacking(); d < dimensions()) {
    return {Why::no_room, static_cast<std::int8_t>(d),
            request[d] - room[static_cast<std::size_t>(d)]};
  }
  going.resize(chosen);
  for (std::size_t i = chosen; i-- > 0;) {
    give(going[i], -1);
    if (lacking() < dimensions()) {
      give(going[i], 1);
    } else {
      going[i] = -1;
    }
  }
  for (const std::int32_t slot : going) {
    if (slot >= 0) evict(slot);
  }
  return {};
}

inline Refusal Cell::claim(const ClaimRows& rows, std::size_t row, const Terms& terms) {
  const std::int64_t task = rows.tasks[row];
  const std::int32_t machine = rows.machines[row];
  const std::int32_t shape = rows.shapes[row];
  if (!knows(machine)) return {Why::machine_unknown};
  const std::uint8_t flags = columns_.flags(machine);
  if (flags & flag_gone) return {Why::machine_gone};
  if (flags & flag_draining) return {Why::machine_draining};

  const std::int32_t held = claims_.slot(task);
  if (held >= 0) {
    if (!terms.move) return {Why::duplicate};
    if (claims_.at(held).scheduler != terms.scheduler) return {Why::not_yours};
  }
  if (terms.coarse && rows.versions[row] != version_before(machine)) {
    return {Why::stale, -1, version_before(machine) - rows.versions[row]};
  }

  const Mark before = mark();
  if (held >= 0) remove(held);
  const auto refuse = [&](Refusal refusal) {
    undo(before);
    return refusal;
  };
  if (terms.scheduler != operator_number) {
    const Scheduler& owner = scheduler(terms.scheduler);
    if (const int over = shapes_->precedence(shape) - owner.most_precedence; over > 0) {
      return refuse({Why::precedence_limit, -1, over});
    }
    if (!owner.may_admit(job_of(task))) return refuse({Why::job_limit});
    const std::int64_t* request = shapes_->request(shape);
    for (int d = 0; d < dimensions(); ++d) {
      const auto at = static_cast<std::size_t>(d);
      // Used and requested are each far below 2^62, but a limit may be lowered under what is used.
      const std::int64_t wanted = owner.used[at] + request[d];
      if (wanted > owner.limit[at]) {
        return refuse({Why::resource_limit, static_cast<std::int8_t>(d), wanted - owner.limit[at]});
      }
    }
  }
  if (const Refusal refusal = make_room(machine, shape, terms.preempt); refusal.why != Why::none) {
    return refuse(refusal);
  }
  place(task, machine, shape, static_cast<std::uint16_t>(terms.scheduler));
  return {};
}

inline void Cell::release(std::span<const std::int64_t> tasks, std::int32_t scheduler,
                          std::vector<Unreleased>& unreleased) {
  for (const std::int64_t task : tasks) {
    const std::int32_t slot = claims_.slot(task);
    if (slot < 0) {
      unreleased.push_back({task, Why::not_claimed});
    } else if (scheduler != operator_number && claims_.at(slot).scheduler != scheduler) {
      unreleased.push_back({task, Why::not_yours});
    } else {
      remove(slot);
    }
  }
}

inline void Cell::commit(const ClaimRows& rows, std::span<const std::int64_t> releases,
                         const Terms& terms, std::vector<Refusal>& refusals,
                         std::vector<Unreleased>& unreleased) {
  const Mark beginning = mark();
  refusals.assign(rows.count, {});
  unreleased.clear();
  release(releases, terms.scheduler, unreleased);

  for (std::size_t from = 0; from < rows.count;) {
    std::size_t to = from + 1;
    if (terms.atomic) {
      to = rows.count;
    } else if (rows.gangs != nullptr && rows.gangs[from] >= 0) {
      while (to < rows.count && rows.gangs[to] == rows.gangs[from]) ++to;
    }
    const Mark before = mark();
    for (std::size_t row = from; row < to; ++row) {
      const Refusal refusal = claim(rows, row, terms);
      if (refusal.why == Why::none) continue;
      undo(terms.atomic ? beginning : before);
      std::fill(refusals.begin() + static_cast<std::ptrdiff_t>(from),
                refusals.begin() + static_cast<std::ptrdiff_t>(to), Refusal{Why::together});
      refusals[row] = refusal;
      if (terms.atomic) {
        unreleased.clear();
        for (const std::int64_t task : releases) unreleased.push_back({task, Why::together});
      }
      break;
    }
    from = to;
  }
  log_.clear();
}

}  // namespace argosy
