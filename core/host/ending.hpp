// How tasks stop running: by their timer, with their pool's last phase, by a report, or because they are
// cancelled.
//
// An end releases the claim, updates the board, notifies listeners and lets the machine's queue continue. A
// failed or cancelled attempt does the same, except that listeners are not told that the task finished.
// O(1) per end, plus what the queue starts; cancelling a waiting task scans all that wait.
#pragma once

#include "host/runtime.hpp"

namespace argosy {

inline std::int32_t TaskRuntime::run_of(std::int64_t task, std::uint64_t incarnation) const {
  const std::int32_t slot = task < 0 ? -1 : cell_.claims().slot(task);
  if (slot < 0 || cell_.claims().at(slot).sequence != incarnation) return -1;
  return runs_.find(slot, incarnation);
}

inline void TaskRuntime::finish_all(std::int32_t first, std::int32_t count) {
  // The claims of a job are scattered over the machines: memory is fetched ahead, in two steps.
  constexpr std::int32_t step = 6;
  const auto is_running = [&](std::int32_t i) { return i < count && runs_[first + i].claim != 0; };
  for (std::int32_t i = 0; i < std::min(count, 2 * step); ++i) {
    if (is_running(i)) cell_.prefetch_claim(runs_[first + i].slot);
  }
  for (std::int32_t i = 0; i < count; ++i) {
    if (is_running(i + 2 * step)) cell_.prefetch_claim(runs_[first + i + 2 * step].slot);
    if (is_running(i + step)) cell_.prefetch_end(runs_[first + i + step].slot);
    finish(first + i);
  }
  recorder_.close_ended();
  runs_.give_back(first, count);
}

inline void TaskRuntime::finish(std::int32_t at) {
  const Run run = runs_.remove(at);
  if (run.claim == 0 || !cell_.holds(run.slot, run.claim)) return;
  const Claim claim = cell_.claims().at(run.slot);
  recorder_.ended(now_, claim.task);
  cell_.finish_claim(run.slot);
  if (keeps_loads_) loads_.end(claim.machine, run.estimate, run.took_slot(), now_);
  board_.move(claim.task, TaskState::finished, now_);
  if (record_tasks_ && board_.has_task(claim.task)) {
    rows_.push_back({claim.task, run.placed, run.started, now_, claim.machine});
  }
  if (listeners_.has_views()) {
    listeners_.tell_end({0, claim.task, run.estimate, run.took_slot(), claim.machine, claim.shape,
                         Ledger::ended},
                        now_);
  }
  if (listeners_.hears(board_.owner(job_of(claim.task)))) {
    finished_.push_back(
        {claim.task, run.estimate, run.took_slot(), claim.machine, claim.shape});
  }
  pump(claim.machine);
}

// If a timer would have ended the run, that timer frees its place.
inline void TaskRuntime::end_told(std::int32_t at) {
  const std::int64_t task = cell_.claims().at(runs_[at].slot).task;
  const bool is_ours = runs_[at].is_told || leave(task);
  finish(at);
  if (is_ours) runs_.give_back(at, 1);
}

inline bool TaskRuntime::end_task(std::int64_t task, std::uint64_t incarnation) {
  const std::int32_t at = run_of(task, incarnation);
  if (at < 0) return false;
  end_told(at);
  recorder_.close_ended();
  return true;
}

inline void TaskRuntime::end_tasks(std::span<const std::int64_t> tasks, std::int64_t at) {
  advance(at);
  bool do_all_run = true;
  for (const std::int64_t task : tasks) {
    const std::int32_t run = run_of(task, incarnation(task));
    do_all_run = do_all_run && run >= 0;
    if (run >= 0) end_told(run);
  }
  recorder_.close_ended();
  if (!do_all_run) throw std::invalid_argument("a task that does not run has ended");
}

inline bool TaskRuntime::stop_task(std::int64_t task, std::uint64_t incarnation, TaskState state) {
  const std::int32_t at = run_of(task, incarnation);
  if (at < 0) return false;
  const Run run = runs_[at];
  const Claim claim = cell_.claims().at(run.slot);
  const std::int32_t machine = claim.machine;
  const bool is_ours = run.is_told || leave(task);
  runs_.remove(at);
  if (is_ours) runs_.give_back(at, 1);
  cell_.finish_claim(run.slot);
  if (keeps_loads_) loads_.end(machine, run.estimate, run.took_slot(), now_);
  board_.move(task, state, now_);
  if (state != TaskState::pending) {
    tell_over({task, run.estimate, run.took_slot(), machine, claim.shape}, state == TaskState::cancelled);
  }
  pump(machine);
  return true;
}

// A task is over without having finished. Wait views are told as for every end; its scheduler learns of a
// failure by other means.
inline void TaskRuntime::tell_over(const Notice& notice, bool is_told) {
  if (listeners_.has_views()) {
    listeners_.tell_end({0, notice.task, notice.estimate, notice.started, notice.machine, notice.shape,
                         Ledger::ended},
                        now_);
  }
  if (is_told && listeners_.hears(board_.owner(job_of(notice.task)))) {
    finished_.push_back(notice);
  }
}

inline bool TaskRuntime::cancel_task(std::int64_t task) {
  const TaskState state = board_.state(task);
  if (state == TaskState::pending) {
    board_.move(task, TaskState::cancelled, now_);
    return true;
  }
  if (state != TaskState::queued) return false;
  board_.move(task, TaskState::cancelled, now_);
  const auto tell = [this](const Arrival& item) {
    tell_over({item.task, item.estimate, now_, item.machine, item.shape}, true);
  };
  const std::int32_t machine = queues_.cancel(task, [&](const Arrival& item) {
    if (keeps_loads_) loads_.leave(item.machine, item.estimate, now_);
    tell(item);
  });
  if (machine >= 0) {
    note_room(machine);
    pump(machine);
    return true;
  }
  if (probes_.cancel(task, now_)) return true;
  return batches_.cancel(task, [&](const Arrival& item) {
    if (keeps_loads_) loads_.land(item.machine, item.estimate, now_);
    tell(item);
  });
}

inline void TaskRuntime::join(Pool& pool, std::int64_t task, std::int32_t run) {
  if (const auto before = pool.leave(task, now_)) {
    drop(*before);
    pools_.touch(pool);
  }
  if (pool.is_over()) {
    timers_.push_end(now_, finish_kind, run, 1);
  } else {
    pool.join(task, run, now_);
    pools_.touch(pool);
  }
}

// Removes the worker from its pool, if it is in one; its run stays.
inline bool TaskRuntime::leave(std::int64_t task) {
  Pool* pool = pools_.of(job_of(task));
  if (pool == nullptr || !pool->leave(task, now_)) return false;
  pools_.touch(*pool);
  return true;
}

inline void TaskRuntime::schedule_phases() {
  pools_.schedule([this](std::int64_t at, std::int32_t version, std::int32_t number) {
    timers_.push_end(at, phase_kind, version, number);
  });
}

inline void TaskRuntime::end_phase(Pool& pool, std::int32_t version) {
  if (version != pool.version) return;
  const auto phase = static_cast<std::int64_t>(pool.phase());
  const std::int64_t duration = pool.phase_at(pool.phase()).duration;
  phases_.push_back({pool.job(), phase, duration});
  recorder_.phase_ended(now_, pool.job(), phase, duration);
  if (!pool.end_phase(now_)) {
    pools_.touch(pool);
    return;
  }
  const std::vector<std::int32_t> workers = pool.dismiss();
  for (const std::int32_t run : workers) {
    finish(run);
    runs_.give_back(run, 1);
  }
  recorder_.close_ended();
}

inline void TaskRuntime::end_phase(std::int64_t job, std::int64_t phase, std::int64_t duration) {
  if (!board_.shares_work(job) || pools_.has(job)) {
    throw std::invalid_argument("the phases of that job are not told");
  }
  phases_.push_back({job, phase, duration});
  recorder_.phase_ended(now_, job, phase, duration);
}

}  // namespace argosy
