// What is known of the tasks of every job: the shape and estimate of each, which its job says, and how long it
// will run, where a world knows that in advance.
//
// Most jobs have one group of tasks that all run equally long: then one row says it all, and the job's tasks are
// `alike`. Other jobs have a row per group, and a time per task. Tasks beyond the last one known, which are extra
// workers or were added by a user, are like the last one. Of a job that is forgotten, because it is done, nothing
// is known: a late worker has nothing left to do, and its time is 0, unless its end is reported.
//
// 1 byte a job, and while it is not forgotten 40 more, 24 a group and 8 a task where tasks differ. O(1) a look-up,
// O(groups) where tasks differ.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "host/open_rows.hpp"
#include "task_numbers.hpp"

namespace argosy {

// Tasks of one job that are identical to everyone but the world.
struct GroupFacts {
  std::int64_t count = 0;
  std::int32_t shape = 0;
  std::int64_t estimate = 0;
};

struct TaskFact {
  std::int32_t shape = 0;
  std::int64_t estimate = 0;
  // Negative: until its end is reported.
  std::int64_t time = 0;
};

class TaskFacts {
 public:
  // Makes room for this many jobs in all.
  void expect(std::int64_t jobs) {
    has_timers_.reserve(static_cast<std::size_t>(jobs));
  }

  // Replaces what the job said before; times stay.
  void set_groups(std::int64_t job, std::vector<GroupFacts> groups) {
    JobFacts& facts = of_job(job);
    facts.first = {groups.front().shape, groups.front().estimate, facts.first.time};
    if (groups.size() > 1) {
      varied(facts).groups = std::move(groups);
    } else if (facts.varied != nullptr) {
      facts.varied->groups.clear();
    }
  }

  // A new job, all of whose tasks are alike.
  void set_alike(std::int64_t job, const TaskFact& fact) { of_job(job).first = fact; }

  // None: until reported; one for all tasks, or one for each.
  void set_times(std::int64_t job, std::vector<std::int64_t> times) {
    JobFacts& facts = of_job(job);
    facts.first.time = times.empty() ? -1 : times.front();
    if (times.size() > 1) {
      varied(facts).times = std::move(times);
    } else if (facts.varied != nullptr) {
      facts.varied->times.clear();
    }
  }

  void forget(std::int64_t job) {
    const JobFacts& facts = of_job(job);
    has_timers_[static_cast<std::size_t>(job)] = facts.first.time >= 0;
    jobs_.erase(job);
  }

  // Whether the tasks have one job, in which all are alike.
  bool are_alike(std::span<const std::int64_t> tasks) const {
    const std::int64_t job = job_of(tasks.front());
    for (const std::int64_t task : tasks) {
      if (job_of(task) != job) return false;
    }
    const JobFacts* facts = jobs_.find(job);
    const Varied* differ = facts == nullptr ? nullptr : facts->varied.get();
    return differ == nullptr || (differ->groups.empty() && differ->times.empty());
  }

  // The job must be known.
  TaskFact of(std::int64_t task) const {
    const std::int64_t job = job_of(task);
    const JobFacts* facts = jobs_.find(job);
    if (facts == nullptr) return forgotten(job);
    TaskFact found = facts->first;
    if (facts->varied == nullptr) return found;
    const auto& [groups, times] = *facts->varied;
    const auto index = static_cast<std::size_t>(index_of(task));
    if (!groups.empty()) {
      auto left = static_cast<std::int64_t>(index);
      auto at = groups.begin();
      while (at + 1 != groups.end() && left >= at->count) left -= (at++)->count;
      found.shape = at->shape;
      found.estimate = at->estimate;
    }
    if (!times.empty()) found.time = index < times.size() ? times[index] : times.back();
    return found;
  }

 private:
  struct Varied {
    // Empty unless there are several.
    std::vector<GroupFacts> groups;
    std::vector<std::int64_t> times;
  };
  struct JobFacts {
    // Of all tasks, as far as `varied` does not say otherwise.
    TaskFact first{0, 0, -1};
    std::unique_ptr<Varied> varied;
  };

  JobFacts& of_job(std::int64_t job) {
    const auto at = static_cast<std::size_t>(job);
    if (at >= has_timers_.size()) has_timers_.resize(at + 1, 0);
    if (JobFacts* facts = jobs_.find(job); facts != nullptr) return *facts;
    return jobs_.add(job, std::make_unique<JobFacts>(JobFacts{forgotten(job), nullptr}));
  }
  TaskFact forgotten(std::int64_t job) const {
    return {0, 0, has_timers_[static_cast<std::size_t>(job)] ? 0 : -1};
  }

  static Varied& varied(JobFacts& facts) {
    if (facts.varied == nullptr) facts.varied = std::make_unique<Varied>();
    return *facts.varied;
  }

  OpenRows<JobFacts> jobs_;               // none: forgotten, or not known yet
  std::vector<std::uint8_t> has_timers_;  // whether the ends of a forgotten job were known in advance
};

}  // namespace argosy
