// A budget of real time. Only this folder of the core reads a clock. Worlds create such budgets and pass them
// in; nothing below an engine includes this header.
//
// Time is that of a monotonic clock since the budget was created, in whole microseconds. Reading it costs about
// 20 ns, so algorithms check every few thousand steps.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "budget.hpp"

namespace argosy {

class ClockBudget final : public Budget {
 public:
  // Without a limit (negative) it only measures. With `measures` off, it tells nobody the time: engines get such
  // budgets, so that no decision depends on how long it took, unless the budget was over.
  ClockBudget(std::int64_t limit, bool measures) : limit_(limit), measures_(measures) {}

  bool is_over() const override { return limit_ >= 0 && time() > limit_; }
  std::int64_t spent() const override { return time(); }
  std::int64_t limit() const override { return limit_; }
  std::int64_t elapsed() const override { return measures_ ? time() : -1; }
  double seconds_until(double part) const override {
    if (limit_ < 0) return Budget::seconds_until(part);
    return std::max(0.0, part * static_cast<double>(limit_) - static_cast<double>(time())) / 1e6;
  }

 private:
  std::int64_t time() const {
    const auto since = std::chrono::steady_clock::now() - began_;
    return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  }

  std::int64_t limit_;
  bool measures_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace argosy
