// Work that the tasks of a job share: activities, such as the maps and then the reduces of a MapReduce.
//
// The tasks of such a job are workers. They have no running time of their own: they work until no
// activity is left, and more or fewer of them may work than the job asked for. Its phases come one after
// the other; a phase has a activities that take one worker d microseconds each. With n workers its work
// left, a x d at first, falls at rate min(n, a): linear speed-up, until all activities run in parallel.
// Work is a fluid: the last round of activities is not rounded up to a whole one.
//
// When a worker leaves, its progress on the current activity is lost, (now - since) mod d where `since` is when
// it joined or the phase began, and that work is done again. If some workers are idle (n > a), the one that
// leaves counts as idle.
//
// Integers throughout: a x d is at most 2^62, and so is n x t for any time t in which work is left. Each change
// is O(1); the end of a phase is O(1), and of the last one O(n log n), because workers end in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace argosy {

struct Phase {
  std::int64_t activities;
  std::int64_t duration;
};

class Pool {
 public:
  //: Sums of times saturate here.
  static constexpr std::int64_t most_time = std::int64_t{1} << 62;

  // `asked` is the number of workers the job asked for.
  Pool(std::int64_t job, std::vector<Phase> phases, std::int64_t asked)
      : job_(job), phases_(std::move(phases)) {
    for (const Phase& phase : phases_) {
      const std::int64_t rate = std::min(asked, phase.activities);
      const std::int64_t takes = (phase.activities * phase.duration + rate - 1) / rate;
      time_asked_ = std::min(time_asked_, most_time - std::min(takes, most_time)) + takes;
    }
    begin_phase(0);
  }

  std::int64_t job() const { return job_; }
  bool is_over() const { return phase_ == phases_.size(); }
  std::size_t phase() const { return phase_; }
  const Phase& phase_at(std::size_t phase) const { return phases_[phase]; }
  //: When the first worker joined, and when the last activity ended; -1 before.
  std::int64_t began() const { return began_; }
  std::int64_t ended() const { return ended_; }

  //: How long the workers asked for need for all phases, from start to end.
  std::int64_t time_asked() const { return time_asked_; }

  void join(std::int64_t task, std::int32_t run, std::int64_t now) {
    settle(now);
    if (began_ < 0) began_ = now;
    workers_[task] = {run, now};
  }

  // The run of the worker that left; none if it is not a worker of this pool.
  std::optional<std::int32_t> leave(std::int64_t task, std::int64_t now) {
    const auto found = workers_.find(task);
    if (found == workers_.end()) return std::nullopt;
    settle(now);
    const Phase& phase = phases_[phase_];
    if (count() <= phase.activities && phase.duration > 0) {
      const std::int64_t busy = now - std::max(found->second.joined, phase_began_);
      left_ = std::min(left_ + busy % phase.duration, phase.activities * phase.duration);
    }
    const std::int32_t run = found->second.run;
    workers_.erase(found);
    return run;
  }

  // When the phase ends if nobody joins or leaves; none without workers.
  std::optional<std::int64_t> due() const {
    if (is_over() || workers_.empty()) return std::nullopt;
    return settled_ + (left_ + rate() - 1) / rate();
  }

  // Ends the phase. True if it was the last.
  bool end_phase(std::int64_t now) {
    begin_phase(phase_ + 1);
    settled_ = phase_began_ = now;
    if (is_over()) ended_ = now;
    return is_over();
  }

  // All workers' runs in order of their tasks; the pool has no workers afterwards.
  std::vector<std::int32_t> dismiss() {
    std::vector<std::pair<std::int64_t, std::int32_t>> sorted;
    for (const auto& [task, worker] : workers_) sorted.emplace_back(task, worker.run);
    std::sort(sorted.begin(), sorted.end());
    workers_.clear();
    std::vector<std::int32_t> runs;
    for (const auto& [task, run] : sorted) runs.push_back(run);
    return runs;
  }

  //: Increases with every change: a due time of an older version is invalid.
  std::int32_t version = 0;
  bool is_dirty = false;

 private:
  struct Worker {
    std::int32_t run;
    std::int64_t joined;
  };

  std::int64_t count() const { return static_cast<std::int64_t>(workers_.size()); }
  std::int64_t rate() const { return std::min(count(), phases_[phase_].activities); }

  void begin_phase(std::size_t phase) {
    phase_ = phase;
    left_ = is_over() ? 0 : phases_[phase].activities * phases_[phase].duration;
  }

  // Subtracts the work done since the last change.
  void settle(std::int64_t now) {
    const std::int64_t passed = std::exchange(settled_, now);
    if (is_over() || workers_.empty()) return;
    left_ = std::max<std::int64_t>(0, left_ - rate() * (now - passed));
  }

  std::int64_t job_;
  std::vector<Phase> phases_;
  std::size_t phase_ = 0;
  std::int64_t left_ = 0;
  std::int64_t settled_ = 0;
  std::int64_t phase_began_ = 0;
  std::int64_t began_ = -1;
  std::int64_t ended_ = -1;
  std::int64_t time_asked_ = 0;
  //: Exactly the tasks of the job that run now, by task.
  std::unordered_map<std::int64_t, Worker> workers_;
};

// All pools of a run, and which of them changed at this instant.
class Pools {
 public:
  void add(std::int64_t job, std::vector<Phase> phases, std::int64_t asked) {
    if (static_cast<std::size_t>(job) >= by_job_.size()) {
      by_job_.resize(static_cast<std::size_t>(job) + 1, -1);
    }
    by_job_[static_cast<std::size_t>(job)] = static_cast<std::int32_t>(pools_.size());
    pools_.emplace_back(job, std::move(phases), asked);
  }

  bool has(std::int64_t job) const {
    return static_cast<std::size_t>(job) < by_job_.size() && by_job_[static_cast<std::size_t>(job)] >= 0;
  }
  // None if the job's tasks have their own running times.
  Pool* of(std::int64_t job) {
    return has(job) ? &(*this)[by_job_[static_cast<std::size_t>(job)]] : nullptr;
  }
  Pool& operator[](std::int32_t number) { return pools_[static_cast<std::size_t>(number)]; }
  const std::vector<Pool>& all() const { return pools_; }

  // Its workers changed, so the end of its phase must be computed again.
  void touch(Pool& pool) {
    ++pool.version;
    if (!std::exchange(pool.is_dirty, true)) {
      dirty_.push_back(by_job_[static_cast<std::size_t>(pool.job())]);
    }
  }
  bool has_dirty() const { return !dirty_.empty(); }

  // Calls push(at, version, number) for each that changed; once per instant, however many workers joined.
  template <typename Push>
  void schedule(Push push) {
    for (const std::int32_t number : dirty_) {
      Pool& pool = (*this)[number];
      pool.is_dirty = false;
      if (const auto at = pool.due()) push(*at, pool.version, number);
    }
    dirty_.clear();
  }

 private:
  std::vector<Pool> pools_;
  //: The number of each job's pool, or -1; shorter if no later job has one.
  std::vector<std::int32_t> by_job_;
  std::vector<std::int32_t> dirty_;
};

}  // namespace argosy
