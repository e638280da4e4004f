// Usage of the cell: integrals over time, and samples for plots.
//
// The integral of an amount is the sum of amount x time between changes, in 128-bit integers: amounts and
// times are at most 2^62, so it is exact, and it does not matter into how many steps the clock cut the time.
// Samples are evenly spaced, at most 400 rows: when there are as many, every other one goes and the spacing
// doubles. O(dimensions) a step of the clock. A dimension that the cell gets later counts from then on; of
// earlier samples it has zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cell/cell.hpp"
#include "host/board.hpp"

namespace argosy {

class Usage {
 public:
  explicit Usage(const Cell& cell)
      : used_(static_cast<std::size_t>(cell.dimensions())), capacity_(used_.size()) {}

  // The cell and the board do not change from `from` to `to`.
  void pass(const Cell& cell, const Board& board, std::int64_t from, std::int64_t to) {
    if (static_cast<std::size_t>(cell.dimensions()) > used_.size()) [[unlikely]] {
      widen(static_cast<std::size_t>(cell.dimensions()));
    }
    while (to >= next_sample_) sample(cell, board);
    if (to <= from) return;
    for (std::size_t d = 0; d < used_.size(); ++d) {
      used_[d] += static_cast<Wide>(cell.used_total()[d]) * (to - from);
      capacity_[d] += static_cast<Wide>(cell.capacity_total()[d]) * (to - from);
    }
  }

  std::vector<double> used_integral() const { return {used_.begin(), used_.end()}; }
  std::vector<double> capacity_integral() const { return {capacity_.begin(), capacity_.end()}; }
  // Flat rows: at, used per dimension, capacity per dimension, pending, queued, running.
  const std::vector<std::int64_t>& samples() const { return samples_; }
  std::size_t sample_width() const { return 2 * used_.size() + 4; }

 private:
  __extension__ using Wide = __int128;
  static constexpr std::size_t most_samples = 400;

  void widen(std::size_t dimensions) {
    const std::size_t old = used_.size(), old_width = sample_width();
    used_.resize(dimensions);
    capacity_.resize(dimensions);
    std::vector<std::int64_t> wider;
    for (auto row = samples_.cbegin(); row != samples_.cend(); row += static_cast<std::ptrdiff_t>(old_width)) {
      const auto amounts = row + 1, limits = amounts + static_cast<std::ptrdiff_t>(old);
      const auto counts = limits + static_cast<std::ptrdiff_t>(old);
      wider.push_back(*row);
      wider.insert(wider.end(), amounts, limits);
      wider.insert(wider.end(), dimensions - old, 0);
      wider.insert(wider.end(), limits, counts);
      wider.insert(wider.end(), dimensions - old, 0);
      wider.insert(wider.end(), counts, counts + 3);
    }
    samples_ = std::move(wider);
  }

  void sample(const Cell& cell, const Board& board) {
    const std::size_t dimensions = used_.size(), width = sample_width();
    samples_.push_back(next_sample_);
    for (std::size_t d = 0; d < dimensions; ++d) samples_.push_back(cell.used_total()[d]);
    for (std::size_t d = 0; d < dimensions; ++d) samples_.push_back(cell.capacity_total()[d]);
    samples_.push_back(board.count(TaskState::pending));
    samples_.push_back(board.count(TaskState::queued));
    samples_.push_back(board.count(TaskState::running));
    if (samples_.size() / width < most_samples) {
      next_sample_ += every_;
      return;
    }
    const std::size_t kept = samples_.size() / width / 2;
    for (std::size_t i = 0; i < kept; ++i) {
      std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(2 * i * width), width,
                  samples_.begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    samples_.resize(kept * width);
    every_ *= 2;
    next_sample_ = samples_[(kept - 1) * width] + every_;
  }

  std::vector<Wide> used_, capacity_;
  std::vector<std::int64_t> samples_;
  std::int64_t next_sample_ = 0;
  std::int64_t every_ = 1'000'000;
};

}  // namespace argosy
