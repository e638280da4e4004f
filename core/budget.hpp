// Budgets: limits on what a decision may cost, passed in by the caller.
//
// An algorithm reports its work (`charge`) and asks from time to time whether to stop (`is_over`). It need not
// know whether the budget counts work or uses a clock. Code below the engines reads no clock itself, so that the
// same inputs can give the same decisions. Engines see no more of a budget than these two; solvers that divide
// theirs also see what share of it is spent.
//
//   WorkBudget              counts steps, the same on every computer; without a limit it is never over
//   clock/clock_budget.hpp  real time, for worlds alone
//
// What a step is depends on the algorithm: an arc scanned, a machine scored. Counting is atomic: two
// algorithms that race may share a budget. At most 2^62 steps.
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
  // Steps after which it may be over; very many if it does not count steps.
  virtual std::int64_t steps_left() const { return std::numeric_limits<std::int64_t>::max(); }
  // The amount spent, and the limit, in the budget's own unit; a negative limit means none.
  virtual std::int64_t spent() const = 0;
  virtual std::int64_t limit() const = 0;
  // Microseconds since it began, for reports of its maker; negative if that is not measured.
  virtual std::int64_t elapsed() const { return -1; }

  // The share of the limit that has been spent: above 1 when it is over.
  double share() const {
    if (limit() < 0) return 0.0;
    return static_cast<double>(spent()) / static_cast<double>(std::max<std::int64_t>(1, limit()));
  }
  // Real time until the given share is spent, for solvers that only accept a time limit; infinite if time is
  // not measured.
  virtual double seconds_until(double) const { return std::numeric_limits<double>::infinity(); }

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
