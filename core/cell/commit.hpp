// Checks a transaction against the current cell: claims confirmed, forgotten and released, then claims
// made.
//
// A claim is refused for the first of these that holds: the machine is unknown, gone or draining; the task
// holds a claim already (and is not being moved by its own scheduler); the machine has changed since the
// decision (coarse); the claim exceeds the scheduler's limit of precedence, jobs or resources; the machine
// lacks room, even after every permitted preemption. O(1) expected a claim, plus its number of tags times
// sets; preemption sorts the machine's claims.
//
// Alternatives. A claim may name machines to try, in order, if the first choice is refused with a conflict;
// any other reason would be the same everywhere and ends the row. Each candidate is checked as if it were
// the only one, including preemption. The version applies to the first choice only: alternatives are
// checked by fit alone, even with coarse detection. If all conflict, the row reports the first choice's
// reason. O(candidates) a claim.
//
// Preemption takes tasks of strictly lower precedence, by the rule of preemption.hpp. A transaction never
// preempts a task that it claims itself, whether for the first time or to move it: so no task is both
// accepted and evicted. O(rows log rows) once, if anything is preempted.
//
// All or nothing: claims are made one by one until the first refusal; then everything since the group's
// beginning is undone (if atomic, the whole transaction with all that it confirmed, forgot and released;
// otherwise the gang), and the other rows say `together`. A row is refused only when its alternatives are
// exhausted; rows before it keep the machine they were given first, so a gang that would fit with another
// combination may be refused.
#pragma once

#include <unordered_set>

#include "cell/cell.hpp"
#include "cell/preemption.hpp"

namespace argosy {

// How far ahead memory is fetched: claims are scattered over machines.
inline constexpr std::size_t rows_ahead = 6;

inline void Cell::check(const ClaimRows& rows, const Settled& settled, const Terms& terms) const {
  if (!knows_scheduler(terms.scheduler)) throw std::invalid_argument("unknown scheduler number");
  const auto require_tasks = [](std::span<const std::int64_t> tasks) {
    for (const std::int64_t task : tasks) {
      if (task < 0) throw std::invalid_argument("task numbers must not be negative");
    }
  };
  require_tasks({rows.tasks, rows.count});
  require_tasks(settled.confirms);
  require_tasks(settled.forgets);
  require_tasks(settled.releases);
  for (std::size_t row = 0; row < rows.count; ++row) {
    if (!shapes_->knows(rows.shapes[row])) {
      throw std::invalid_argument("there is no shape " + std::to_string(rows.shapes[row]));
    }
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

inline bool Cell::is_claimed_by(const ClaimRows& rows, std::int64_t task) {
  if (claimed_.empty()) {
    claimed_.assign(rows.tasks, rows.tasks + rows.count);
    std::sort(claimed_.begin(), claimed_.end());
  }
  return std::binary_search(claimed_.begin(), claimed_.end(), task);
}

inline Refusal Cell::make_room(std::int32_t machine, std::int32_t shape, bool preempt,
                               const ClaimRows& rows) {
  if (fits(machine, shape)) return {};
  Amounts room{};
  std::copy_n(columns_.free(machine), dimensions(), room.begin());
  std::vector<std::int32_t> going;
  if (preempt) {
    victims(machine, shapes_->precedence(shape), going);
    std::erase_if(going, [&](std::int32_t slot) { return is_claimed_by(rows, claims_.at(slot).task); });
  }
  std::vector<std::int32_t> held;
  for (const std::int32_t slot : going) held.push_back(claims_.at(slot).shape);
  std::vector<std::uint8_t> is_taken;
  const std::int64_t* request = shapes_->request(shape);
  const int lacking = take_victims(*shapes_, dimensions(), columns_.device_dimension(), request, held, room,
                                   is_taken);
  if (lacking < dimensions()) {
    return {Why::no_room, lacking, request[lacking] - room[static_cast<std::size_t>(lacking)]};
  }
  if (!is_within_reach(shape)) {
    const auto [resource, amount] = beyond(shape);
    return {Why::no_room, most_dimensions + resource, amount};
  }
  for (std::size_t i = 0; i < going.size(); ++i) {
    if (is_taken[i]) evict(going[i]);
  }
  return {};
}

inline Refusal Cell::claim(const ClaimRows& rows, std::size_t row, std::int32_t machine,
                           const Terms& terms, bool coarse) {
  const std::int64_t task = rows.tasks[row];
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
  const std::uint32_t now = terms.by_claims ? sequence_before(machine) : version_before(machine);
  if (coarse && rows.versions[row] != now) return {Why::stale, -1, now - rows.versions[row]};

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
      // Used and requested are each far below 2^62, but a limit may have been lowered below what is used.
      const std::int64_t wanted = owner.used[at] + request[d];
      if (wanted > owner.limit[at]) {
        return refuse({Why::resource_limit, d, wanted - owner.limit[at]});
      }
    }
  }
  const Refusal refusal = make_room(machine, shape, terms.preempt, rows);
  if (refusal.why != Why::none) return refuse(refusal);
  place(task, machine, shape, static_cast<std::uint16_t>(terms.scheduler), terms.assume);
  return {};
}

// The first choice, then the alternatives in order, while the reason is a conflict.
inline Refusal Cell::claim_any(const ClaimRows& rows, std::size_t row, const Terms& terms,
                               std::int32_t& machine) {
  machine = rows.machines[row];
  const Refusal first = claim(rows, row, machine, terms, terms.coarse);
  if (rows.width == 0 || !is_conflict(first.why)) return first;
  const std::int32_t* others = rows.alternatives + row * rows.width;
  for (const std::int32_t other : std::span(others, rows.width)) {
    if (other < 0) continue;
    const Refusal refusal = claim(rows, row, other, terms, false);
    if (is_conflict(refusal.why)) continue;
    machine = other;
    return refusal;
  }
  return first;
}

// Calls act(slot) for those of the tasks whose claims the scheduler may change.
template <class Act>
void Cell::settle_each(std::span<const std::int64_t> tasks, std::int32_t scheduler, bool only_assumed,
                       std::vector<Unsettled>& refused, Act act) {
  for (const std::int64_t task : tasks) {
    const std::int32_t slot = claims_.slot(task);
    if (slot < 0) {
      refused.push_back({task, Why::not_claimed});
    } else if (scheduler != operator_number && claims_.at(slot).scheduler != scheduler) {
      refused.push_back({task, Why::not_yours});
    } else if (only_assumed && !claims_.at(slot).assumed) {
      refused.push_back({task, Why::not_assumed});
    } else {
      act(slot);
    }
  }
}

inline void Cell::settle(const Settled& settled, std::int32_t scheduler, Judged& judged) {
  const auto take = [this](std::int32_t slot) { remove(slot); };
  settle_each(settled.confirms, scheduler, true, judged.unconfirmed,
              [this](std::int32_t slot) { confirm(slot); });
  settle_each(settled.forgets, scheduler, true, judged.unforgotten, take);
  settle_each(settled.releases, scheduler, false, judged.unreleased, take);
}

inline Judged Cell::commit(const ClaimRows& rows, const Settled& settled, const Terms& terms) {
  // Alone, a claim that is refused has changed nothing, unless it is a move.
  is_logged_ = terms.atomic || terms.move || rows.gangs != nullptr;
  const Mark beginning = mark();
  Judged judged;
  judged.refusals.assign(rows.count, {});
  claimed_.clear();
  if (rows.width > 0) judged.machines.assign(rows.machines, rows.machines + rows.count);
  settle(settled, terms.scheduler, judged);

  for (std::size_t from = 0; from < rows.count;) {
    if (const std::size_t ahead = from + rows_ahead; ahead < rows.count && knows(rows.machines[ahead])) {
      prefetch_change(rows.machines[ahead]);
      claims_.prefetch_last_on(rows.machines[ahead]);
    }
    std::size_t to = from + 1;
    if (terms.atomic) {
      to = rows.count;
    } else if (rows.gangs != nullptr && rows.gangs[from] >= 0) {
      while (to < rows.count && rows.gangs[to] == rows.gangs[from]) ++to;
    }
    const Mark before = mark();
    for (std::size_t row = from; row < to; ++row) {
      std::int32_t machine = -1;
      const Refusal refusal = claim_any(rows, row, terms, machine);
      if (refusal.why == Why::none) {
        if (rows.width > 0) judged.machines[row] = machine;
        continue;
      }
      judged.is_whole = false;
      undo(terms.atomic ? beginning : before);
      const auto at = static_cast<std::ptrdiff_t>(from);
      std::fill(judged.refusals.begin() + at,
                judged.refusals.begin() + static_cast<std::ptrdiff_t>(to), Refusal{Why::together});
      judged.refusals[row] = refusal;
      if (rows.width > 0) {
        std::copy(rows.machines + from, rows.machines + to, judged.machines.begin() + at);
        judged.machines[row] = machine;
      }
      if (terms.atomic) {
        const auto fall = [](std::span<const std::int64_t> tasks, std::vector<Unsettled>& refused) {
          refused.clear();
          for (const std::int64_t task : tasks) refused.push_back({task, Why::together});
        };
        fall(settled.confirms, judged.unconfirmed);
        fall(settled.forgets, judged.unforgotten);
        fall(settled.releases, judged.unreleased);
      }
      break;
    }
    from = to;
  }
  log_.clear();
  return judged;
}

}  // namespace argosy
