// A budget of real time. Only this folder of the core reads a clock. Worlds create such budgets and pass them
// in; nothing below an engine includes this header.
//
// Time is that of a monotonic clock since the budget was created, in whole microseconds. Reading it costs about
// 20 ns, so algorithms check every few thousand steps.
#pragma once

#include <chrono>
#include <cstdint>

#include "budget.hpp"

namespace argosy {

class ClockBudget final : public Budget {
 public:
  // Without a limit (negative) it only measures.
  explicit ClockBudget(std::int64_t limit) : limit_(limit) {}

  bool is_over() const override { return limit_ >= 0 && elapsed() > limit_; }
  std::int64_t spent() const override { return elapsed(); }
  std::int64_t limit() const override { return limit_; }
  std::int64_t elapsed() const override {
    const auto since = std::chrono::steady_clock::now() - began_;
    return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  }

 private:
  std::int64_t limit_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace argosy
