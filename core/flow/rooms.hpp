// Room on machines: the capacities of the arcs into and out of machines.
//
// If all tasks ask for the same, a machine's room is a number of slots, and the flow is exact. If they
// differ, there are no slots. A machine with room for a waiting task then takes what fits into its free
// resources. A machine without room takes a task only in exchange for one that is at least as large, and
// only if that can help: if all tasks there are as large, if one has lower precedence, or if the task
// cannot go where that one would move to. Tasks of a pool that does not preempt take nothing but what is
// free. Each task alone is then sure to fit; tasks that do not fit
// together are resolved by admission (admission.hpp).
//
// If a task was still not admitted on a machine, its pool is not sent there again until something changes
// there, or `unbar` is called, unless the pool has a task of higher precedence.
//
// Only machines that changed are updated, unless the set of pools in use has changed: O(machines x
// dimensions) comparisons per round, and O(pools x dimensions) per machine that changed. If other pools wait
// than before, or a pool has other precedences, all machines are counted, O(machines x pools x dimensions),
// but only those are updated whose room is not what it was.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "flow/roster.hpp"

namespace argosy::flow {

// The current cluster: what is free by machine and dimension, which machines accept tasks, and, by pool and
// machine, whether a task may go there at all.
struct Standing {
  std::span<const Number> free;
  std::span<const bool> usable;
  const bool* allowed;
  std::size_t machines;

  bool is_open(Number pool, Number machine) const {
    return usable[machine] && allowed[static_cast<std::size_t>(pool) * machines + machine];
  }
};

class Rooms {
 public:
  // A machine takes at most `slots` tasks; 0: as many as its resources allow.
  Rooms(Roster& roster, Number slots) : roster_(roster), slots_(slots) {}

  Roster& roster() { return roster_; }

  // Tasks of a pool and precedence were not admitted on a machine.
  void bar(Number pool, Number machine, Number precedence) {
    bars_.resize(std::max(bars_.size(), roster_.machines()));
    for (Bar& bar : bars_[machine]) {
      if (bar.serial != roster_.pool(pool).serial) continue;
      bar.precedence = std::max(bar.precedence, precedence);
      return again_.add(machine);
    }
    bars_[machine].push_back({roster_.pool(pool).serial, precedence});
    again_.add(machine);
  }

  // All may try everywhere again.
  void unbar() {
    for (std::size_t m = 0; m < bars_.size(); ++m) {
      if (!bars_[m].empty()) again_.add(static_cast<Row>(m));
      bars_[m].clear();
    }
  }

  // The next `look` examines everything.
  void forget() {
    unbar();
    is_void_ = true;
  }

  // Examines the cluster: sets `pools` to those with tasks that are not over, `machines` to those to be updated,
  // and what is `counted` for them.
  void look(const Standing& now) {
    std::vector<Number> living, waiting, serials, precedences;
    for (std::size_t number = 0; number < roster_.pools(); ++number) {
      const PoolRow& pool = roster_.pool(static_cast<Number>(number));
      if (pool.tasks > 0) {
        living.push_back(static_cast<Number>(number));
        serials.push_back(pool.serial);
        precedences.insert(precedences.end(), {pool.top, pool.bottom});
      }
      if (pool.waiting > 0) waiting.push_back(static_cast<Number>(number));
    }
    are_equal_ = std::all_of(living.begin(), living.end(), [&](Number number) {
      return roster_.pool(number).request == roster_.pool(living.front()).request;
    });
    // Slots do not depend on which tasks wait.
    if (are_equal_) waiting.clear();
    const bool is_all = raise_plenty(living) || is_void_ || serials != serials_ ||
                        now.free.size() != free_.size() || living.empty();
    const bool is_shifted = waiting != waiting_ || precedences != precedences_;
    pools_ = std::move(living);
    serials_ = std::move(serials);
    precedences_ = std::move(precedences);
    waiting_ = std::move(waiting);
    bars_.resize(now.machines);
    find_changed(now);
    std::vector<Number> again = again_.take();
    if (is_all || is_shifted) {
      machines_.resize(now.machines);
      std::iota(machines_.begin(), machines_.end(), 0);
    } else {
      machines_ = again;
    }
    fit(now, is_all ? machines_ : again);
    count(now, counted_, passing_);
    if (is_shifted && !is_all) keep_changed(again, counted_, passing_);
    remember(now, counted_, passing_);
    stale_ = is_all ? machines_ : std::move(again);
    // Without pools nothing is set: everything must be examined when there are some.
    is_void_ = pools_.empty();
  }
  const std::vector<Number>& pools() const { return pools_; }
  const std::vector<Number>& machines() const { return machines_; }
  // The machines to be updated whose costs may differ, too.
  const std::vector<Number>& changed() const { return stale_; }
  // For each pool (row) and machine (column), how many tasks may go there; and how many through each machine in total.
  const std::vector<Number>& counted() const { return counted_; }
  const std::vector<Number>& through() const { return passing_; }

 private:
  // `plenty_` is room for any number of tasks, where they ask for nothing. It is no larger than needed: costs that
  // rise with every task are looked at task by task. Returns whether it has changed.
  bool raise_plenty(const std::vector<Number>& living) {
    Number tasks = 0;
    for (const Number number : living) tasks += roster_.pool(number).tasks;
    const Number before = plenty_;
    while (plenty_ < tasks) plenty_ *= 2;
    plenty_ = std::min<Number>(plenty_, capacity_limit);
    return plenty_ != before;
  }

  struct Bar {
    Number serial, precedence;
  };

  // Machines whose resources or tasks are not what they were: nothing is barred there any more.
  void find_changed(const Standing& now) {
    free_.resize(now.free.size(), -1);
    usable_.resize(now.machines, 0);
    for (const Row m : roster_.take_touched_machines()) changed_.add(m);
    const std::size_t width = roster_.dimensions();
    for (std::size_t m = 0; m < now.machines; ++m) {
      if (usable_[m] != now.usable[m] ||
          !std::equal(free_.begin() + m * width, free_.begin() + (m + 1) * width,
                      now.free.begin() + m * width)) {
        changed_.add(static_cast<Row>(m));
      }
    }
    for (const Row m : changed_.take()) {
      bars_[m].clear();
      again_.add(m);
    }
    free_.assign(now.free.begin(), now.free.end());
    usable_.assign(now.usable.begin(), now.usable.end());
  }

  // How many tasks of each pool fit into what is free on these machines, if tasks differ.
  void fit(const Standing& now, const std::vector<Number>& machines) {
    fits_.resize(pools_.size() * now.machines);
    if (are_equal_) return;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      const PoolRow& pool = roster_.pool(pools_[i]);
      for (const Number machine : machines) {
        const Number* free = now.free.data() + static_cast<std::size_t>(machine) * roster_.dimensions();
        fits_[i * now.machines + machine] = now.is_open(pools_[i], machine) ? fitting(pool, free, nullptr) : 0;
      }
    }
  }

  void count(const Standing& now, std::vector<Number>& rooms, std::vector<Number>& through) const {
    const std::size_t width = machines_.size();
    rooms.assign(pools_.size() * width, 0);
    through.assign(width, 0);
    if (pools_.empty()) return;
    std::vector<std::uint8_t> is_waiting(pools_.size());
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      is_waiting[i] = std::binary_search(waiting_.begin(), waiting_.end(), pools_[i]);
    }
    for (std::size_t k = 0; k < width; ++k) {
      const Number machine = machines_[k];
      const Number own = roster_.own_tasks()[machine];
      Number all = are_equal_ ? slots_at(now, machine) : exchanges_at(now, k, is_waiting, rooms);
      Number most = plenty_;
      if (slots_ > 0) most = std::max<Number>(0, slots_ - (roster_.reschedules() ? 0 : own));
      for (std::size_t i = 0; i < pools_.size(); ++i) {
        Number& room = rooms[i * width + k];
        const bool preempts = roster_.pool(pools_[i]).preempts;
        if (are_equal_) room = preempts ? all : free_slots_at(now, machine);
        if (!preempts && slots_ > 0) room = std::min(room, std::max<Number>(0, slots_ - own));
        room = now.is_open(pools_[i], machine) ? std::min(room, most) : 0;
      }
      all = std::min(all, most);
      through[k] = roster_.reschedules() ? std::max(all, own) : all;
    }
  }

  // All machines were counted: leaves those of `again`, and those with other numbers than the last time.
  void keep_changed(const std::vector<Number>& again, std::vector<Number>& rooms,
                    std::vector<Number>& through) {
    const std::size_t width = machines_.size();
    std::vector<std::size_t> kept;
    auto next = again.begin();
    for (std::size_t m = 0; m < width; ++m) {
      bool differs = through[m] != through_[m];
      if (next != again.end() && *next == static_cast<Number>(m)) {
        differs = true;
        ++next;
      }
      for (std::size_t i = 0; i < pools_.size() && !differs; ++i) {
        differs = rooms[i * width + m] != rooms_[i * width + m];
      }
      if (differs) kept.push_back(m);
    }
    machines_.assign(kept.begin(), kept.end());
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      for (std::size_t k = 0; k < kept.size(); ++k) rooms[i * kept.size() + k] = rooms[i * width + kept[k]];
    }
    for (std::size_t k = 0; k < kept.size(); ++k) through[k] = through[kept[k]];
    rooms.resize(pools_.size() * kept.size());
    through.resize(kept.size());
  }

  void remember(const Standing& now, const std::vector<Number>& rooms, const std::vector<Number>& through) {
    rooms_.resize(pools_.size() * now.machines);
    through_.resize(now.machines);
    const std::size_t width = machines_.size();
    for (std::size_t k = 0; k < width; ++k) {
      through_[machines_[k]] = through[k];
      for (std::size_t i = 0; i < pools_.size(); ++i) {
        rooms_[i * now.machines + machines_[k]] = rooms[i * width + k];
      }
    }
  }

  // How many tasks of a pool fit into what is free, and into what own tasks hold in addition.
  Number fitting(const PoolRow& pool, const Number* free, const Number* own) const {
    Number least = plenty_;
    for (std::int32_t d = 0; d < roster_.dimensions(); ++d) {
      if (pool.request[d] == 0) continue;
      const Number there = free[d] + (own == nullptr ? 0 : own[d]);
      least = there < pool.request[d] ? 0 : std::min(least, there / pool.request[d]);
    }
    return least;
  }

  Number slots_at(const Standing& now, Number machine) const {
    if (!now.usable[machine]) return 0;
    const std::size_t at = static_cast<std::size_t>(machine) * roster_.dimensions();
    const Number* own = roster_.reschedules() ? roster_.own().data() + at : nullptr;
    return fitting(roster_.pool(pools_.front()), now.free.data() + at, own);
  }

  // For tasks that push off nobody.
  Number free_slots_at(const Standing& now, Number machine) const {
    if (!now.usable[machine]) return 0;
    const std::size_t at = static_cast<std::size_t>(machine) * roster_.dimensions();
    return fitting(roster_.pool(pools_.front()), now.free.data() + at, nullptr);
  }

  Number exchanges_at(const Standing& now, std::size_t k, const std::vector<std::uint8_t>& is_waiting,
                      std::vector<Number>& rooms) const {
    const Number machine = machines_[k];
    const std::size_t width = machines_.size();
    Number spare = 0;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      const Number fits = fits_[i * now.machines + machine];
      rooms[i * width + k] = fits;
      if (waiting_.empty() || is_waiting[i]) spare = std::max(spare, fits);
    }
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      Number& room = rooms[i * width + k];
      if (spare == 0) room = is_waiting[i] && roster_.pool(pools_[i]).preempts ? swaps(pools_[i], machine) : 0;
      if (is_barred(pools_[i], machine)) room = 0;
    }
    const Number own = roster_.reschedules() ? roster_.own_tasks()[machine] : 0;
    return std::min(plenty_, spare + own);
  }

  bool is_barred(Number pool, Number machine) const {
    const PoolRow& row = roster_.pool(pool);
    return std::any_of(bars_[machine].begin(), bars_[machine].end(), [&](const Bar& bar) {
      return bar.serial == row.serial && bar.precedence >= row.top;
    });
  }

  // Tasks on a machine that are at least as large as those of a pool, if one of these may take the place.
  Number swaps(Number number, Number machine) const {
    const PoolRow& pool = roster_.pool(number);
    Number tasks = 0;
    bool may_help = pool.is_choosy, are_all_larger = true;
    for (const Number other : pools_) {
      const PoolRow& there = roster_.pool(other);
      if (there.running[machine] == 0) continue;
      if (std::equal(pool.request.begin(), pool.request.end(), there.request.begin(),
                     [](Number a, Number b) { return a <= b; })) {
        tasks += there.running[machine];
        may_help |= there.bottom < pool.top;
      } else {
        are_all_larger = false;
      }
    }
    return may_help || are_all_larger ? tasks : 0;
  }

  Number plenty_ = 64;
  Roster& roster_;
  Number slots_;
  bool is_void_ = true, are_equal_ = false;
  std::vector<Number> pools_, serials_, precedences_, waiting_, machines_, stale_;
  std::vector<Number> counted_, passing_;
  std::vector<Number> fits_;             // by pool in use and machine, if tasks differ
  std::vector<Number> rooms_, through_;  // of all machines, as last counted; rooms by pool in use
  std::vector<Number> free_;
  std::vector<std::uint8_t> usable_;
  std::vector<std::vector<Bar>> bars_;  // by machine
  Marks changed_, again_;               // machines
};

}  // namespace argosy::flow
