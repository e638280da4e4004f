// A budget of real time. This folder is the only one of the core that reads a clock; worlds make such
// budgets and hand them in, and nothing under an engine includes this header.
//
// Time is that of a steady clock, from when the budget was made, in whole microseconds. Reading it costs
// some 20 ns, so algorithms ask every few thousand steps.
#pragma once

#include <chrono>
#include <cstdint>

#include "budget.hpp"

namespace argosy {

class ClockBudget final : public Budget {
 public:
  // Without a limit (below 0) it only measures.
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
