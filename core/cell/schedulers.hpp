// Usage and limits of each scheduler.
//
// A scheduler is a small number. Number 0 is the operator, who has no limits. A job counts as admitted
// while at least one of its tasks holds a claim of that scheduler; per-job counts are kept in a hash map,
// so a claim costs one expected O(1) update.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "cell/columns.hpp"
#include "cell/flat_map.hpp"
#include "task_numbers.hpp"

namespace argosy {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

struct Scheduler {
  Scheduler() { limit.fill(unlimited); }

  std::array<std::int64_t, most_dimensions> used{};
  std::array<std::int64_t, most_dimensions> limit;
  std::int64_t most_jobs = unlimited;
  int most_precedence = std::numeric_limits<std::int16_t>::max();
  std::int64_t claims = 0;
  // Live claims of each admitted job.
  FlatMap<std::int32_t> jobs;

  bool may_admit(std::int64_t job) const {
    return most_jobs == unlimited || static_cast<std::int64_t>(jobs.size()) < most_jobs ||
           jobs.find(job) != nullptr;
  }
};

}  // namespace argosy
