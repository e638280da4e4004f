// Queues at machines: arrivals, waiting, probes, stealing and starts.
//
// Machine queues (machine_queue.hpp) are strict: the next entry starts when it fits, and no other starts
// before it. A full queue returns what arrives, and tells those who wait for it when it has room. Probes
// (probes.hpp) wait in the same queues. An idle machine may steal (QueueRules) what it could have been sent:
// tasks that fit, and whose requirements it meets.
//
// A draining machine runs the tasks in its queue. It takes nothing new: it steals nothing, and tasks that
// arrive, or would be bound to a probe there, go elsewhere or back. A probe without tasks in hand stays: its
// scheduler decides when it is asked.
//
// `pump` is called whenever room may have appeared on a machine, and starts what can start: O(1) where
// nothing waits.
#pragma once

#include "host/runtime.hpp"

namespace argosy {

inline void TaskRuntime::enqueue(std::vector<Arrival> batch) {
  for (const Arrival& item : batch) {
    if (board_.state(item.task) != TaskState::pending) {
      throw std::invalid_argument("a task is enqueued twice");
    }
    board_.move(item.task, TaskState::queued, item.placed);
    if (keeps_loads_) loads_.send(item.machine, item.estimate, now_);
  }
  push_batch(std::move(batch));
}

inline void TaskRuntime::push_batch(std::vector<Arrival> batch) {
  if (batch.empty()) return;
  const std::int64_t at = std::max(batch.front().at, now_);
  timers_.push(at, arrive_kind, 0, batches_.add(std::move(batch)));
}

inline void TaskRuntime::arrive(std::int64_t batch) {
  while (batches_[batch].next < batches_[batch].items.size()) {
    // A copy, because a start may push another batch.
    const Arrival item = batches_[batch].items[batches_[batch].next];
    if (item.at > now_) {
      timers_.push(item.at, arrive_kind, 0, batch);
      return;
    }
    ++batches_[batch].next;
    arrive_at_machine(item);
  }
  batches_.remove(batch);
}

inline void TaskRuntime::arrive_at_machine(const Arrival& item) {
  if (keeps_loads_ && !Probe::is_hold(item.task)) loads_.land(item.machine, item.estimate, now_);
  const bool is_late = is_draining(item.machine) && (!Probe::is_hold(item.task) || has_hand(item.task));
  if (!cell_.is_up(item.machine) || is_late || !could_ever_fit(item.machine, item.shape)) {
    hand_back(item, lost_);
    return;
  }
  if (!queues_.has(item.machine)) queues_.grow(cell_.machines());
  const MachineQueue& queue = queues_[item.machine];
  const bool has_room = has_room_now(item.machine, item.shape);
  const bool must_wait = !has_room || !queue.empty();
  if (must_wait && rules_.limit > 0 && static_cast<std::int64_t>(queue.size()) >= rules_.limit) {
    hand_back(item, refused_);
    return;
  }
  wait_at_machine(item);
  // The next entry did not fit; if the new one does not either, nothing starts.
  if (has_room) pump(item.machine);
}

inline void TaskRuntime::wait_at_machine(const Arrival& item) {
  const std::int64_t job = Probe::is_hold(item.task) ? probes_[index_of(item.task)].job
                                                     : job_of(item.task);
  queues_.add(item, static_cast<std::int32_t>(job));
  if (keeps_loads_) loads_.arrive(item.machine, item.estimate, now_);
}

inline void TaskRuntime::hand_back(const Arrival& item, std::vector<Notice>& out) {
  if (Probe::is_hold(item.task)) {
    lose_probe(index_of(item.task), out);
    return;
  }
  board_.move(item.task, TaskState::pending, now_);
  out.push_back({item.task, item.estimate, -1, item.machine, item.shape});
}

inline Arrival TaskRuntime::take(std::int32_t machine, std::size_t at) {
  const Arrival& item = queues_.take(machine, at);
  if (keeps_loads_) loads_.leave(machine, item.estimate, now_);
  note_room(machine);
  return item;
}

inline std::int64_t TaskRuntime::queue_room(std::int32_t machine) const {
  if (rules_.limit == 0) return never;
  const std::size_t taken = queues_.has(machine) ? queues_[machine].size() : 0;
  return std::max<std::int64_t>(0, rules_.limit - static_cast<std::int64_t>(taken));
}

inline void TaskRuntime::await_room(std::span<const std::int32_t> machines) {
  if (is_awaited_.size() < static_cast<std::size_t>(cell_.machines())) {
    is_awaited_.resize(static_cast<std::size_t>(cell_.machines()));
  }
  for (const std::int32_t machine : machines) is_awaited_[static_cast<std::size_t>(machine)] = 1;
}

// Something left the machine's queue.
inline void TaskRuntime::note_room(std::int32_t machine) {
  const auto at = static_cast<std::size_t>(machine);
  if (at >= is_awaited_.size() || is_awaited_[at] == 0 || queue_room(machine) == 0) return;
  is_awaited_[at] = 0;
  roomy_.push_back(machine);
}

// A queued task that holds its claim by now, and runs from `delay` on.
inline void TaskRuntime::start(const Arrival& item, std::int64_t delay) {
  recorder_.started(now_, item.task, item.machine, delay);
  const std::int32_t run = add_run(item.task, item.estimate, item.placed, delay, item.duration);
  run_for(item.duration, item.task, run, delay);
}

inline std::size_t TaskRuntime::next_of(std::int32_t machine) {
  return queues_.next(machine, probes_.has_sticky(),
                      [this](std::int32_t job) { return board_.unstarted(job); });
}

// Sticky probes of jobs with nothing left to start are known to be useless.
inline void TaskRuntime::purge(std::int32_t machine) {
  queues_.purge(
      machine, [this](std::int32_t job) { return board_.unstarted(job) == 0; },
      [this, machine](const Arrival& item) {
        probes_[index_of(item.task)].state = Probe::over;
        if (keeps_loads_) loads_.leave(machine, item.estimate, now_);
      });
  note_room(machine);
}

inline void TaskRuntime::pump(std::int32_t machine) {
  if (!queues_.has(machine)) return;
  for (;;) {
    if (queues_[machine].has_waste()) purge(machine);
    if (queues_[machine].empty()) break;
    const std::size_t at = next_of(machine);
    if (at == queues_[machine].size()) {
      purge(machine);
      break;
    }
    const Arrival item = queues_.item(machine, at);
    if (!Probe::is_hold(item.task)) {
      if (!cell_.start(item.task, machine, item.shape, item.scheduler)) return;
      take(machine, at);
      start(item, rules_.start_delay);
      continue;
    }
    const std::int64_t number = index_of(item.task);
    Probe& probe = probes_[number];
    if (probe.state != Probe::queued) {
      take(machine, at);
    } else if (probe.hand >= 0) {
      if (!ask_hand(machine, at, item)) return;
    } else {
      if (!cell_.start(item.task, machine, item.shape, item.scheduler)) return;
      take(machine, at);
      probe.state = Probe::held;
      ready_.push_back({number, probe.job, machine, probe.owner});
    }
  }
  if (rules_.steal_attempts > 0 && cell_.is_up(machine) && !is_draining(machine)) steal(machine);
}

inline void TaskRuntime::queued(std::vector<std::int64_t>& jobs, std::vector<std::int64_t>& tasks,
                                std::vector<std::int32_t>& machines) const {
  for (std::int32_t machine = 0; queues_.has(machine); ++machine) {
    if (queues_[machine].empty()) continue;
    MachineQueue queue = queues_[machine];
    while (!queue.empty()) {
      const std::size_t at = queue.next(rules_, probes_.has_sticky(),
                                        [this](std::int32_t job) { return board_.unstarted(job); });
      if (at == queue.size()) break;
      const QueueEntry entry = queue.take(rules_, at);
      const std::int64_t task = queues_.item(entry).task;
      jobs.push_back(entry.job);
      tasks.push_back(Probe::is_hold(task) ? -1 : task);
      machines.push_back(machine);
    }
  }
}

inline void TaskRuntime::lose_queue(std::int32_t machine, std::vector<std::int64_t>& out) {
  if (!queues_.has(machine)) return;
  while (!queues_[machine].empty()) {
    const std::size_t at = next_of(machine);
    if (at == queues_[machine].size()) {
      purge(machine);
      break;
    }
    const std::int64_t task = take(machine, at).task;
    if (Probe::is_hold(task)) {
      lose_probe(index_of(task), lost_);
    } else {
      out.push_back(task);
      board_.move(task, TaskState::pending, now_);
    }
  }
}

inline void TaskRuntime::lose_probes(std::int32_t machine) {
  if (!queues_.has(machine)) return;
  const std::size_t before = queues_[machine].size();
  for (std::size_t at = 0; at < queues_[machine].size();) {
    const std::int64_t task = queues_.item(machine, at).task;
    if (!Probe::is_hold(task) || !has_hand(task)) {
      ++at;
      continue;
    }
    const Arrival& item = queues_.remove(machine, at);
    if (keeps_loads_) loads_.leave(machine, item.estimate, now_);
    lose_probe(index_of(task), lost_);
    // What is left may stand in another order.
    at = 0;
  }
  if (queues_[machine].size() == before) return;
  note_room(machine);
  // What stood behind them may be next.
  pump(machine);
}

inline void TaskRuntime::recount(std::int32_t machine) {
  if (!keeps_loads_) return;
  loads_.forget_running(machine, now_);
  if (!cell_.knows(machine)) return;
  const Claims& claims = cell_.claims();
  for (std::int32_t slot = claims.first_on(machine); slot >= 0; slot = claims.at(slot).next) {
    const std::int32_t at = runs_.find(slot, claims.at(slot).sequence);
    if (at >= 0) loads_.add_running(machine, runs_[at].estimate, runs_[at].took_slot(), now_);
  }
}

inline void TaskRuntime::probe(std::int64_t at, const ProbeTerms& terms,
                               std::span<const std::int32_t> machines, std::int32_t hand) {
  std::vector<Arrival> batch;
  batch.reserve(machines.size());
  for (const std::int32_t machine : machines) {
    const std::int64_t number = probes_.add(terms, machine, hand);
    batch.push_back(
        {Probe::hold(number), -1, terms.estimate, now_, at, machine, terms.shape, terms.scheduler,
         terms.requirement});
  }
  push_batch(std::move(batch));
}

inline void TaskRuntime::deal(std::int64_t at, const ProbeTerms& terms,
                              std::span<const std::int32_t> machines, Hand hand) {
  hand.sent = now_;
  hand.probes = static_cast<std::int64_t>(machines.size());
  if (hand.is_cancelled) hand.cancelled_after = probes_.round_trip() / 2;
  for (const std::int64_t task : hand.tasks) board_.move(task, TaskState::queued, now_);
  probe(at, terms, machines, probes_.add_hand(std::move(hand)));
}

inline bool TaskRuntime::bind(std::int64_t probe, std::int64_t task) {
  Probe& held = probes_[probe];
  held.state = Probe::over;
  if (!cell_.finish(Probe::hold(probe))) return false;
  if (!cell_.start(task, held.machine, held.shape, held.scheduler)) return false;
  launch(task);
  return true;
}

inline void TaskRuntime::cancel(std::int64_t probe) {
  Probe& held = probes_[probe];
  held.state = Probe::over;
  if (cell_.finish(Probe::hold(probe))) pump(held.machine);
}

inline void TaskRuntime::cancel_all(std::int32_t owner) {
  // All are over before a queue continues; otherwise the next of them would be ready.
  std::vector<std::int64_t> held;
  for (std::int64_t number = 0; number < probes_.size(); ++number) {
    Probe& probe = probes_[number];
    if (probe.owner != owner) continue;
    if (probe.state == Probe::held) held.push_back(number);
    probe.state = Probe::over;
    if (probe.hand >= 0) {
      Hand& hand = probes_.hand(probe.hand);
      for (; hand.left() > 0; ++hand.next) {
        board_.move(hand.tasks[hand.next], TaskState::pending, now_);
      }
      hand = {};
    }
  }
  for (const std::int64_t number : held) {
    if (cell_.finish(Probe::hold(number))) pump(probes_[number].machine);
  }
}

// The probe at the head asks its hand; false if the machine has no room for what it would get.
inline bool TaskRuntime::ask_hand(std::int32_t machine, std::size_t at, const Arrival& item) {
  const std::int64_t number = index_of(item.task);
  Probe& probe = probes_[number];
  Hand& hand = probes_.hand(probe.hand);
  if (hand.left() == 0) {
    const bool is_known =
        hand.is_sticky || (hand.cancelled_after >= 0 && now_ >= hand.emptied + hand.cancelled_after);
    if (!is_known && !cell_.start(item.task, machine, item.shape, item.scheduler)) return false;
    take(machine, at);
    probe.state = Probe::over;
    if (!is_known) {
      timers_.push(now_ + probes_.trip_to(probe.owner, now_), release_kind, machine, number);
    }
    return true;
  }
  const std::int64_t task = hand.tasks[hand.next];
  if (!cell_.start(task, machine, item.shape, item.scheduler)) return false;
  const Arrival bound{task,    hand.durations[hand.next], item.estimate, hand.sent,
                      item.at, machine,                   item.shape,    item.scheduler,
                      item.requirement};
  const std::int64_t trip = probes_.trip_to(probe.owner, now_);
  if (++hand.next == hand.tasks.size()) hand.emptied = now_ + trip - probes_.round_trip();
  if (hand.is_sticky) {
    queues_[machine].charge(at, item.estimate);
  } else {
    take(machine, at);
    probe.state = Probe::over;
    --hand.probes;
  }
  start(bound, trip);
  return true;
}

inline void TaskRuntime::lose_probe(std::int64_t number, std::vector<Notice>& out) {
  Probe& probe = probes_[number];
  if (std::exchange(probe.state, Probe::over) != Probe::queued || probe.hand < 0) return;
  Hand& hand = probes_.hand(probe.hand);
  --hand.probes;
  while (hand.too_many() > 0) {
    board_.move(hand.tasks.back(), TaskState::pending, now_);
    out.push_back({hand.tasks.back(), 0, -1, probe.machine, probe.shape});
    hand.tasks.pop_back();
    hand.durations.pop_back();
  }
}

// An idle machine asks others, at random among those from `steal_from` on.
inline void TaskRuntime::steal(std::int32_t thief) {
  const std::int32_t machines = cell_.machines();
  if (rules_.steal_from >= machines || !is_idle(thief)) return;
  for (std::int64_t attempt = 0; attempt < rules_.steal_attempts; ++attempt) {
    const auto victim = static_cast<std::int32_t>(
        rules_.steal_from + static_cast<std::int64_t>(stealing_.below(
                                static_cast<std::uint64_t>(machines - rules_.steal_from))));
    if (victim == thief || !queues_.has(victim)) continue;
    std::size_t at = 0;
    const std::size_t count = loot(victim, at);
    std::vector<Arrival> taken;
    for (std::size_t i = 0; i < count; ++i) {
      if (rules_.limit > 0 && static_cast<std::int64_t>(taken.size()) >= rules_.limit) break;
      if (may_take(thief, queues_.item(victim, at))) {
        taken.push_back(take(victim, at));
      } else {
        ++at;
      }
    }
    if (taken.empty()) continue;
    stolen_ += static_cast<std::int64_t>(taken.size());
    for (Arrival& item : taken) {
      item.machine = thief;
      if (Probe::is_hold(item.task)) probes_[index_of(item.task)].machine = thief;
      wait_at_machine(item);
    }
    pump(thief);
    return;
  }
}

inline bool TaskRuntime::may_take(std::int32_t thief, const Arrival& item) const {
  return could_ever_fit(thief, item.shape) &&
         requirements_.are_met(item.requirement, cell_.groups(), thief);
}

// How many entries from `at` on may be stolen: where long tasks are, short entries that stand behind these;
// where none is long, those at the end.
inline std::size_t TaskRuntime::loot(std::int32_t victim, std::size_t& at) const {
  const MachineQueue& queue = queues_[victim];
  std::size_t count = 0;
  at = 0;
  if (rules_.long_above > 0) {
    const auto is_long = [&](std::size_t i) { return loads_.is_long(queue[i].estimate); };
    if (!loads_.is_running_long(victim)) {
      while (at < queue.size() && !is_long(at)) ++at;
    }
    while (at < queue.size() && is_long(at)) ++at;
    while (at + count < queue.size() && !is_long(at + count)) ++count;
  } else if (!queue.empty()) {
    count = (queue.size() + 1) / 2;
    at = queue.size() - count;
  }
  return std::min(count, static_cast<std::size_t>(rules_.steal_limit));
}

inline bool TaskRuntime::is_draining(std::int32_t machine) const {
  return (cell_.columns().flags(machine) & flag_draining) != 0;
}

inline bool TaskRuntime::has_hand(std::int64_t hold) const {
  return probes_[index_of(hold)].hand >= 0;
}

inline bool TaskRuntime::is_idle(std::int32_t machine) const {
  const std::int64_t* free = cell_.columns().free(machine);
  return std::equal(free, free + cell_.dimensions(), cell_.columns().capacity(machine));
}

inline bool TaskRuntime::has_room_now(std::int32_t machine, std::int32_t shape) const {
  const std::int64_t* request = cell_.request(shape);
  const std::int64_t* free = cell_.columns().free(machine);
  for (int d = 0; d < cell_.dimensions(); ++d) {
    if (request[d] > free[d]) return false;
  }
  return true;
}

inline bool TaskRuntime::could_ever_fit(std::int32_t machine, std::int32_t shape) const {
  if (!cell_.is_within_reach(shape)) return false;
  const std::int64_t* request = cell_.request(shape);
  const std::int64_t* capacity = cell_.columns().capacity(machine);
  for (int d = 0; d < cell_.dimensions(); ++d) {
    if (request[d] > capacity[d]) return false;
  }
  return true;
}

}  // namespace argosy
