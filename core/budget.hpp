// What a decision may cost, handed in by whoever wants it.
//
// An algorithm says how much it has done (`charge`) and asks every so many steps whether to stop
// (`is_over`). It never learns what is behind the answer: work that is counted, or a clock. Code under
// engines reads no clock itself, so that the same inputs give the same decisions wherever that matters.
//
//   WorkBudget              counts steps, the same on every computer; without a limit it is never over
//   clock/clock_budget.hpp  real time, for worlds alone
//
// A step is what the algorithm at hand counts: an arc that was looked at, a machine that was scored.
// Counting is atomic: two algorithms that race may share a budget. At most 2^62 steps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace argosy {

class Budget {
 public:
  virtual ~Budget() = default;

  void charge(std::int64_t steps) { steps_.fetch_add(steps, std::memory_order_relaxed); }
  std::int64_t steps() const { return steps_.load(std::memory_order_relaxed); }

  virtual bool is_over() const = 0;
  // Steps after which it may be over; a long time if it is not steps that count.
  virtual std::int64_t steps_left() const { return std::numeric_limits<std::int64_t>::max(); }
  // What has been spent in the budget's own unit, and how much of it there is; below 0 means no limit.
  virtual std::int64_t spent() const = 0;
  virtual std::int64_t limit() const = 0;
  // Microseconds since it began, for reports; below 0 where nobody measures time.
  virtual std::int64_t elapsed() const { return -1; }

  // The part of the limit that has been spent: above 1 when it is over.
  double share() const {
    if (limit() < 0) return 0.0;
    return static_cast<double>(spent()) / static_cast<double>(std::max<std::int64_t>(1, limit()));
  }
  // Real time until the given share is spent, for solvers that can only be told a time; infinite where
  // nobody measures it.
  double seconds_until(double part) const {
    if (elapsed() < 0 || limit() < 0) return std::numeric_limits<double>::infinity();
    return std::max(0.0, part * static_cast<double>(limit()) - static_cast<double>(elapsed())) / 1e6;
  }

 private:
  std::atomic<std::int64_t> steps_{0};
};

class WorkBudget final : public Budget {
 public:
  explicit WorkBudget(std::int64_t limit) : limit_(limit) {}

  bool is_over() const override { return limit_ >= 0 && steps() > limit_; }
  std::int64_t steps_left() const override {
    return limit_ < 0 ? Budget::steps_left() : std::max<std::int64_t>(0, limit_ - steps()) + 1;
  }
  std::int64_t spent() const override { return steps(); }
  std::int64_t limit() const override { return limit_; }

 private:
  std::int64_t limit_;
};

}  // namespace argosy
