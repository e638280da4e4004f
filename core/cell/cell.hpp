// The cell: holds the state of the cluster.
//
// Transactions. Every change to the cell is a transaction, started by `begin`: it increments the versions
// of the machines it changes, updates every count, and is recounted if the cell is `audited`. There are
// four entry points. `commit` checks the requests of schedulers and operators (machine changes before it
// belong to the same transaction). `start`, `finish` and `end` are fast paths for the runtime: a queued
// task starts, a task ends, tasks end; they check only whether that is possible. A start ignores its
// scheduler's limits and draining, because the task was admitted to the queue before; an end cannot be
// refused.
//
// Invariants, all of which `audit` (audit.hpp) recounts:
//   free = capacity - sum of the requests of the machine's claims, and free >= 0 in each dimension;
//   in a dimension of devices (devices.hpp), this holds for every device, and free is what is usable;
//   a machine that is gone holds no claims;
//   tag counts, scheduler usage, admitted jobs, assumed claims and totals equal recounts over the claims.
//
// Every change consists of five kinds of reversible steps: a claim added, a claim removed, a claim
// confirmed, a version incremented, an eviction noted. Where something may have to be undone (all-or-nothing
// transactions, gangs and moves: commit.hpp), each step is logged, and `undo` walks the log back to a mark,
// which restores the state exactly, down to list order and sequence numbers.
//
// Versions. A transaction increments a machine's version by one, however often it changes the machine.
// Beside it, a machine's sequence number counts the transactions that claimed something there: the ends of
// tasks do not raise it, and a claim that is rolled back leaves it raised.
// `version_before` is the version before the transaction; coarse conflict detection compares with it, so
// that a transaction's own claims do not conflict with each other. Versions wrap at 2^32.
//
// Assumed claims. If another system has the last word, a claim is made before that system has agreed. It
// takes room and counts like any other at once. It is then confirmed, which other schedulers cannot see and
// which changes no version, or forgotten, which is a release. Tasks that it preempted do not come back:
// they were told, and may run elsewhere by then.
//
// Growth. New dimensions and node sets come while the cell runs (columns.hpp, shapes.hpp, groups.hpp);
// numbers keep their meaning.
//
// Numbers. Requests and capacities are at most 2^53; the capacities of all machines together, gone or
// not, at most 2^62 in each dimension (refused beyond), so no sum here overflows.
//
// Bad input throws std::invalid_argument before anything has changed, except in `start` and `finish`, which
// return false, and `end`, which returns the tasks it did not find.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cell/claims.hpp"
#include "cell/preemption.hpp"
#include "cell/schedulers.hpp"
#include "cell/view.hpp"
#include "cell/why.hpp"

namespace argosy {

// Refusals because the cell has changed, as in argosy.model.explanations.CONFLICTS.
inline bool is_conflict(Why why) {
  return why == Why::no_room || why == Why::stale || why == Why::machine_gone ||
         why == Why::machine_draining;
}

// The cell differs from a recount: a bug in the cell itself.
struct Unsound : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Parallel arrays, one row per claim; `gangs` and `alternatives` may be null. The latter has `width` machines
// per row, to be tried in order after the first; negative ones are padding.
struct ClaimRows {
  std::size_t count = 0;
  const std::int64_t* tasks = nullptr;
  const std::int32_t* machines = nullptr;
  const std::int32_t* shapes = nullptr;
  const std::uint32_t* versions = nullptr;
  const std::int32_t* gangs = nullptr;
  const std::int32_t* alternatives = nullptr;
  std::size_t width = 0;
};

// Tasks whose claims are confirmed, forgotten and released, in this order, before claims are checked.
struct Settled {
  std::span<const std::int64_t> confirms;
  std::span<const std::int64_t> forgets;
  std::span<const std::int64_t> releases;
};

struct Terms {
  std::int32_t scheduler = 0;
  bool atomic = false;
  bool coarse = false;
  bool preempt = false;
  bool move = false;
  bool assume = false;
  // Coarse detection compares with the number of claims instead of changes.
  bool by_claims = false;
};

// Why a claim was refused: a dimension and an amount if the reason has them. Resources that are not a dimension
// are numbered after the largest possible dimension.
struct Refusal {
  Why why = Why::none;
  std::int32_t dimension = -1;
  std::int64_t amount = 0;
};

// A task whose claim was not confirmed, forgotten or released.
struct Unsettled {
  std::int64_t task;
  Why why;
};

// The result of a transaction.
struct Judged {
  bool is_whole = true;                // whether every row was accepted
  std::vector<Refusal> refusals;       // one per row; Why::none: accepted
  std::vector<std::int32_t> machines;  // where each row was checked; empty without alternatives
  std::vector<Unsettled> unconfirmed;
  std::vector<Unsettled> unforgotten;
  std::vector<Unsettled> unreleased;
};

class Cell : public CellView {
 public:
  static constexpr std::int32_t operator_number = 0;
  static constexpr std::size_t most_schedulers = 65'536;

  Cell(int dimensions, std::int32_t sets) : CellView(dimensions, sets), schedulers_(1) {}

  std::int32_t add_scheduler() {
    if (schedulers_.size() >= most_schedulers) throw std::invalid_argument("too many schedulers");
    schedulers_.emplace_back();
    return static_cast<std::int32_t>(schedulers_.size() - 1);
  }
  bool knows_scheduler(std::int64_t scheduler) const {
    return scheduler >= 0 && scheduler < static_cast<std::int64_t>(schedulers_.size());
  }
  const Scheduler& scheduler(std::int32_t number) const {
    return schedulers_[static_cast<std::size_t>(number)];
  }
  void set_limits(std::int32_t number, const Amounts& limit, std::int64_t most_jobs,
                  int most_precedence) {
    Scheduler& changed = schedulers_[static_cast<std::size_t>(number)];
    changed.limit = limit;
    changed.most_jobs = most_jobs;
    changed.most_precedence = most_precedence;
  }

  // Recount after each start, finish and end, and throw `Unsound` at the first discrepancy. After `commit` the
  // caller recounts, who may report more.
  void set_audited(bool audited) { audited_ = audited; }
  void require_sound() const;

  // This dimension consists of devices. Preemption makes no room in it: claims of lower precedence may hold
  // as much in total, but not on one device.
  void set_devices(int dimension) {
    if (dimension < 0 || dimension >= dimensions()) throw std::invalid_argument("unknown dimension");
    if (machines() > 0) throw std::invalid_argument("devices are set before the first machine");
    columns_.set_device_dimension(dimension);
  }
  std::uint16_t claim_devices(std::int64_t task) const {
    const Claim* claim = claims_.of(task);
    return claim ? claim->devices : std::uint16_t{0};
  }

  // Adds a dimension; `resource` is the number by which requests may have named it so far.
  void grow(std::int32_t resource) {
    if (resource < 0) throw std::invalid_argument("resource numbers must not be negative");
    if (dimensions() >= most_dimensions) throw std::invalid_argument("a cell has 1 to 8 dimensions");
    columns_.widen(dimensions() + 1);
    shapes_->grow(resource);
  }
  void add_sets(std::int32_t count) {
    if (count < 0 || count > most_sets - groups_->sets()) {
      throw std::invalid_argument("a cell has 0 to 2^24 node sets");
    }
    groups_->add_sets(count);
  }

  // Claims, as the simulated machines see them.

  std::uint64_t claim_sequence(std::int64_t task) const {
    const Claim* claim = claims_.of(task);
    return claim ? claim->sequence : 0;
  }
  std::int32_t claim_machine(std::int64_t task) const {
    const Claim* claim = claims_.of(task);
    return claim ? claim->machine : -1;
  }
  std::int32_t claim_shape(std::int64_t task) const {
    const Claim* claim = claims_.of(task);
    return claim ? claim->shape : -1;
  }
  std::int32_t claim_scheduler(std::int64_t task) const {
    const Claim* claim = claims_.of(task);
    return claim ? claim->scheduler : -1;
  }
  const Claims& claims() const { return claims_; }
  // Tasks whose claims are assumed, oldest claim first.
  std::vector<std::int64_t> assumed() const {
    std::vector<std::pair<std::uint64_t, std::int64_t>> found;
    assumed_.each([&](std::int64_t task, std::uint64_t sequence) { found.emplace_back(sequence, task); });
    std::sort(found.begin(), found.end());
    std::vector<std::int64_t> tasks;
    for (const auto& [sequence, task] : found) tasks.push_back(task);
    return tasks;
  }
  // Whether the claim with this number still exists: slots are reused, numbers never are.
  bool holds(std::int32_t slot, std::uint64_t sequence) const {
    return claims_.at(slot).sequence == sequence;
  }

  // Tasks on a machine, oldest claim first.
  void claims_on(std::int32_t machine, std::vector<std::int64_t>& out) const {
    out.clear();
    if (!knows(machine)) return;
    for (std::int32_t slot = claims_.first_on(machine); slot >= 0; slot = claims_.at(slot).next) {
      out.push_back(claims_.at(slot).task);
    }
  }

  // The task, machine, shape and scheduler of each claim on some machines, in their order; claims of shapes
  // without tags are left out. O(claims there).
  void tagged_claims_on(const std::int32_t* machines, std::size_t count, std::vector<std::int64_t>& tasks,
                        std::vector<std::int32_t>& where, std::vector<std::int32_t>& what,
                        std::vector<std::int32_t>& who) const {
    for (std::size_t at = 0; at < count; ++at) {
      if (!knows(machines[at])) continue;
      for (std::int32_t slot = claims_.first_on(machines[at]); slot >= 0; slot = claims_.at(slot).next) {
        const Claim& claim = claims_.at(slot);
        if (shapes().tags(claim.shape).empty()) continue;
        tasks.push_back(claim.task);
        where.push_back(claim.machine);
        what.push_back(claim.shape);
        who.push_back(claim.scheduler);
      }
    }
  }

  // Per machine and dimension, what claims with a precedence below `bound` hold. O(machines + claims).
  void evictable(int bound, std::vector<std::int64_t>& out) const {
    const auto width = static_cast<std::size_t>(dimensions());
    out.assign(static_cast<std::size_t>(machines()) * width, 0);
    for (std::int32_t machine = 0; machine < machines(); ++machine) {
      std::int64_t* row = out.data() + static_cast<std::size_t>(machine) * width;
      for (std::int32_t slot = claims_.first_on(machine); slot >= 0; slot = claims_.at(slot).next) {
        const std::int32_t shape = claims_.at(slot).shape;
        if (shapes_->precedence(shape) >= bound) continue;
        for (std::size_t d = 0; d < width; ++d) row[d] += shapes_->request(shape)[d];
      }
      if (columns_.device_dimension() >= 0) row[columns_.device_dimension()] = 0;
    }
  }

  // Per machine, how many claims below `bound` a task of the shape would preempt there; see `victims_needed`.
  void victims_for(std::int32_t shape, int bound, std::vector<std::int64_t>& out) const {
    std::vector<std::int32_t> held;
    std::vector<std::uint8_t> is_taken;
    for (std::int32_t machine = 0; machine < machines(); ++machine) {
      held.clear();
      for (std::int32_t slot = claims_.first_on(machine); slot >= 0; slot = claims_.at(slot).next) {
        held.push_back(claims_.at(slot).shape);
      }
      out.push_back(victims_needed(*this, machine, shape, bound, held, is_taken));
    }
  }

  // The number of the last transaction.
  std::uint64_t transaction() const { return transaction_; }
  // Whether a task of the shape fits on a machine that has changed since that transaction: free room, and
  // what claims with a precedence below `bound` hold. O(machines), with a small factor.
  bool fits_since(std::uint64_t transaction, std::int32_t shape, int bound,
                  std::span<const std::uint64_t> within) const {
    if (!is_within_reach(shape)) return false;
    const auto width = static_cast<std::size_t>(dimensions());
    const std::int64_t* request = shapes_->request(shape);
    const bool may_evict = shapes_->lowest_precedence() < bound;
    for (std::int32_t machine = 0; machine < machines(); ++machine) {
      if (last_in_[static_cast<std::size_t>(machine)].changed <= transaction) continue;
      if (columns_.flags(machine) != 0) continue;
      const auto word = static_cast<std::size_t>(machine) / 64;
      if (!within.empty() && (word >= within.size() || ((within[word] >> (machine & 63)) & 1) == 0)) {
        continue;
      }
      if (columns_.fits(machine, request)) return true;
      if (!may_evict) continue;
      Amounts room{};
      std::copy_n(columns_.free(machine), width, room.begin());
      for (std::int32_t slot = claims_.first_on(machine); slot >= 0; slot = claims_.at(slot).next) {
        const std::int32_t held = claims_.at(slot).shape;
        if (shapes_->precedence(held) >= bound) continue;
        for (std::size_t d = 0; d < width; ++d) {
          if (static_cast<int>(d) != columns_.device_dimension()) room[d] += shapes_->request(held)[d];
        }
      }
      if (std::equal(request, request + width, room.begin(), std::less_equal<>())) return true;
    }
    return false;
  }

  // Starts a queued task on its machine. False if it runs already, or if the machine has no room or is gone.
  bool start(std::int64_t task, std::int32_t machine, std::int32_t shape, std::int32_t scheduler) {
    if (task < 0 || !is_up(machine) || !knows_scheduler(scheduler) || !fits(machine, shape) ||
        claims_.slot(task) >= 0) {
      return false;
    }
    begin();
    is_logged_ = false;
    place(task, machine, shape, static_cast<std::uint16_t>(scheduler));
    close();
    return true;
  }

  // Ends a running task of any scheduler. False if it holds no claim.
  bool finish(std::int64_t task) {
    const std::int32_t slot = task < 0 ? -1 : claims_.slot(task);
    if (slot < 0) return false;
    finish_claim(slot);
    return true;
  }
  // The claim will end soon: first what it says of itself, then, some ends later, what its end changes.
  void prefetch_claim(std::int32_t slot) const { claims_.prefetch(slot); }
  void prefetch_end(std::int32_t slot) const {
    const std::int32_t machine = claims_.at(slot).machine;
    if (machine < 0) return;
    prefetch_change(machine);
    claims_.prefetch_neighbours(slot);
  }
  void prefetch_change(std::int32_t machine) const {
    columns_.prefetch(machine);
    __builtin_prefetch(&last_in_[static_cast<std::size_t>(machine)], 1);
  }
  void finish_claim(std::int32_t slot) {
    begin();
    is_logged_ = false;
    remove(slot);
    close();
  }
  // The same for many at once; returns those that hold no claim.
  std::vector<std::int64_t> end(std::span<const std::int64_t> tasks) {
    std::vector<std::int64_t> unknown;
    begin();
    is_logged_ = false;
    for (const std::int64_t task : tasks) {
      const std::int32_t slot = task < 0 ? -1 : claims_.slot(task);
      if (slot < 0) {
        unknown.push_back(task);
      } else {
        remove(slot);
      }
    }
    close();
    return unknown;
  }

  // A transaction is `begin`, machine changes, then one `commit` of releases and claims.
  void begin() {
    ++transaction_;
    is_logged_ = true;
    log_.clear();
    evicted_.clear();
    evicted_from_.clear();
    placed_.clear();
  }

  std::int32_t add_machine(const std::int64_t* capacity, std::span<const std::int32_t> sets,
                           std::span<const std::int32_t> attributes);
  void drain(std::int32_t machine, bool draining);
  void remove_machine(std::int32_t machine);
  void revive(std::int32_t machine);
  void resize(std::int32_t machine, const std::int64_t* capacity);
  // Whether anything changed.
  bool relabel(std::int32_t machine, std::span<const std::int32_t> sets,
               std::span<const std::int32_t> attributes);
  // The machines in `bitmap` get the mark or lose it (see groups.hpp). Not part of a transaction: it
  // changes no version, because no claim is judged by it.
  void mark(std::int32_t attribute, std::span<const std::uint64_t> bitmap, bool is_given);

  // Throws std::invalid_argument unless every row is valid; `commit` relies on it.
  void check(const ClaimRows& rows, const Settled& settled, const Terms& terms) const;
  Judged commit(const ClaimRows& rows, const Settled& settled, const Terms& terms);

  // Tasks evicted since `begin`, in order, and the machines they were on.
  const std::vector<std::int64_t>& evicted() const { return evicted_; }
  const std::vector<std::int32_t>& evicted_from() const { return evicted_from_; }
  // The slots of the claims made since `begin`, in order.
  const std::vector<std::int32_t>& placed() const { return placed_; }
  // Over all machines, gone or not: bounded by 2^62.
  const Amounts& capacity_ever() const { return capacity_ever_; }

  std::vector<std::string> audit() const;

 private:
  struct Step {
    enum Kind : std::uint8_t { placed, removed, confirmed, versioned } kind;
    std::int32_t at;  // slot, or machine
    Claim claim;      // of a removed claim
  };
  struct Mark {
    std::size_t steps;
    std::size_t evictions;
  };

  // The transaction that last changed a machine's version, and the one that last claimed something there.
  struct LastIn {
    std::uint64_t changed = 0;
    std::uint64_t claimed = 0;
  };

  Mark mark() const { return {log_.size(), evicted_.size()}; }

  void undo(Mark to) {
    while (log_.size() > to.steps) {
      const Step step = log_.back();
      log_.pop_back();
      switch (step.kind) {
        case Step::placed:
          account(claims_.at(step.at), -1);
          claims_.take_back(step.at);
          placed_.pop_back();
          break;
        case Step::removed:
          claims_.put_back(step.claim);
          account(step.claim, 1);
          break;
        case Step::confirmed:
          claims_.set_assumed(step.at, true);
          assumed_.insert(claims_.at(step.at).task) = claims_.at(step.at).sequence;
          break;
        case Step::versioned:
          --columns_.version_for_writing(step.at);
          // When it changed before is not known any more.
          last_in_[static_cast<std::size_t>(step.at)].changed = transaction_ - 1;
          break;
      }
    }
    evicted_.resize(to.evictions);
    evicted_from_.resize(to.evictions);
  }

  // Everything counted from claims, except the claims themselves.
  void account(const Claim& claim, std::int32_t sign) {
    const std::int64_t* amounts = shapes_->request(claim.shape);
    std::int64_t* free = columns_.free_for_writing(claim.machine);
    Scheduler& owner = schedulers_[claim.scheduler];
    for (int d = 0; d < dimensions(); ++d) {
      const auto at = static_cast<std::size_t>(d);
      const std::int64_t amount = sign * amounts[d];
      if (d != columns_.device_dimension()) free[d] -= amount;
      used_[at] += amount;
      owner.used[at] += amount;
    }
    if (const int d = columns_.device_dimension(); d >= 0) {
      columns_.hold_devices(claim.machine, claim.devices, amounts[d], sign);
    }
    owner.claims += sign;
    owner.jobs.count(job_of(claim.task), sign);
    if (claim.assumed) {
      if (sign > 0) {
        assumed_.insert(claim.task) = claim.sequence;
      } else {
        assumed_.erase(claim.task);
      }
    }
    for (const std::int32_t tag : shapes_->tags(claim.shape)) {
      machine_tags_.add(claim.machine, tag, sign);
      for (const std::int32_t set : groups_->sets_of(claim.machine)) set_tags_.add(set, tag, sign);
    }
  }

  void place(std::int64_t task, std::int32_t machine, std::int32_t shape, std::uint16_t scheduler,
             bool assumed = false) {
    touch(machine);
    count_claim(machine);
    const std::int32_t slot = claims_.add(task, machine, shape, scheduler, assumed);
    if (const int d = columns_.device_dimension(); d >= 0) {
      claims_.set_devices(slot, choose_devices(columns_.devices(machine), shapes_->request(shape)[d]));
    }
    account(claims_.at(slot), 1);
    placed_.push_back(slot);
    if (is_logged_) log_.push_back({Step::placed, slot, {}});
  }

  void confirm(std::int32_t slot) {
    claims_.set_assumed(slot, false);
    assumed_.erase(claims_.at(slot).task);
    if (is_logged_) log_.push_back({Step::confirmed, slot, {}});
  }

  void remove(std::int32_t slot) {
    touch(claims_.at(slot).machine);
    const Claim claim = claims_.remove(slot);
    account(claim, -1);
    if (is_logged_) log_.push_back({Step::removed, slot, claim});
  }

  void evict(std::int32_t slot) {
    evicted_.push_back(claims_.at(slot).task);
    evicted_from_.push_back(claims_.at(slot).machine);
    remove(slot);
  }

  // The end of a fast path.
  void close() {
    log_.clear();
    if (audited_) require_sound();
  }

  void touch(std::int32_t machine) {
    std::uint64_t& last = last_in_[static_cast<std::size_t>(machine)].changed;
    if (last == transaction_) return;
    last = transaction_;
    ++columns_.version_for_writing(machine);
    if (is_logged_) log_.push_back({Step::versioned, machine, {}});
  }

  // Never undone: a claim that is taken back has been seen.
  void count_claim(std::int32_t machine) {
    std::uint64_t& last = last_in_[static_cast<std::size_t>(machine)].claimed;
    if (last == transaction_) return;
    last = transaction_;
    ++columns_.sequence_for_writing(machine);
  }

  std::uint32_t sequence_before(std::int32_t machine) const {
    const bool is_claimed = last_in_[static_cast<std::size_t>(machine)].claimed == transaction_;
    return columns_.sequence(machine) - (is_claimed ? 1 : 0);
  }

  std::uint32_t version_before(std::int32_t machine) const {
    const bool is_touched = last_in_[static_cast<std::size_t>(machine)].changed == transaction_;
    return columns_.version(machine) - (is_touched ? 1 : 0);
  }

  void require_machine(std::int32_t machine) const {
    if (!knows(machine)) {
      throw std::invalid_argument("there is no machine " + std::to_string(machine));
    }
  }
  void require_capacity(const std::int64_t* capacity, const std::int64_t* instead_of) const;

  void require_labels(std::span<const std::int32_t> sets,
                      std::span<const std::int32_t> attributes) const;

  void settle(const Settled& settled, std::int32_t scheduler, Judged& judged);
  template <class Act>
  void settle_each(std::span<const std::int64_t> tasks, std::int32_t scheduler, bool only_assumed,
                   std::vector<Unsettled>& refused, Act act);
  Refusal claim(const ClaimRows& rows, std::size_t row, std::int32_t machine, const Terms& terms,
                bool coarse);
  Refusal claim_any(const ClaimRows& rows, std::size_t row, const Terms& terms, std::int32_t& machine);
  Refusal make_room(std::int32_t machine, std::int32_t shape, bool preempt, const ClaimRows& rows);
  bool is_claimed_by(const ClaimRows& rows, std::int64_t task);
  // Slots on `machine` with precedence below `bound`, in the order in which they are to go.
  void victims(std::int32_t machine, int bound, std::vector<std::int32_t>& out) const;

  Claims claims_;
  std::vector<Scheduler> schedulers_;
  std::uint64_t transaction_ = 0;
  // By machine.
  std::vector<LastIn> last_in_;
  std::vector<Step> log_;
  // Whether a step of this transaction may have to be undone.
  bool is_logged_ = true;
  std::vector<std::int64_t> evicted_;
  std::vector<std::int32_t> evicted_from_;
  std::vector<std::int32_t> placed_;
  // The tasks of the claims being judged, sorted; empty until it matters.
  std::vector<std::int64_t> claimed_;
  Amounts capacity_ever_{};
  // Tasks with assumed claims, and the claims' sequence numbers.
  FlatMap<std::uint64_t> assumed_;
  bool audited_ = false;
};

}  // namespace argosy

#include "cell/audit.hpp"
#include "cell/commit.hpp"
#include "cell/machines.hpp"
