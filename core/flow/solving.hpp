// Shared by all solvers: results, stopping, and the queue of their searches.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "budget.hpp"
#include "flow/network.hpp"

namespace argosy::flow {

// optimal: the flow is feasible and of least cost, the prices prove it.
// infeasible: the supplies cannot all reach demands.  unbalanced: they do not even add up to zero.
// overflow: prices or costs could leave their range.  stopped: told to, or out of budget.
enum class Status : std::int32_t { optimal, infeasible, unbalanced, overflow, stopped };

class Stop {
 public:
  void set() { flag_.store(true, std::memory_order_relaxed); }
  bool is_set() const { return flag_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> flag_{false};
};

// Counts scanned arcs, charges them to a budget if there is one, and checks now and then whether to stop.
class Control {
 public:
  Control(Budget* budget, const Stop* stop, const Stop* other = nullptr)
      : budget_(budget), stop_(stop), other_(other) {}

  // False if the work must end.
  bool spend(std::int64_t arcs) {
    scans_ += arcs + 1;
    if (scans_ < next_look_) return true;
    if (patience_ >= 0 && scans_ > patience_) return false;
    next_look_ = scans_ + look_every;
    if (patience_ >= 0) next_look_ = std::min(next_look_, patience_ + 1);
    if (budget_) {
      settle();
      if (budget_->is_over()) return false;
      next_look_ = std::min(next_look_, scans_ + std::min(look_every, budget_->steps_left()));
    }
    return !(stop_ && stop_->is_set()) && !(other_ && other_->is_set());
  }
  std::int64_t scans() const { return scans_; }
  // A control for a part of the work, which ends after `patience` arcs. It counts separately until this one
  // takes over its work.
  Control part(std::int64_t patience) {
    settle();
    Control part(budget_, stop_, other_);
    part.patience_ = patience;
    if (patience_ >= 0) {
      part.patience_ = std::min(patience, std::max<std::int64_t>(0, patience_ - scans_));
    }
    return part;
  }
  // False if the work must end.
  bool take_over(const Control& part) {
    charged_ += part.charged_;
    return spend(part.scans_);
  }
  // Charges what the budget has not been charged yet.
  void settle() {
    if (budget_) budget_->charge(scans_ - charged_);
    charged_ = scans_;
  }

 private:
  static constexpr std::int64_t look_every = 4096;
  Budget* budget_;
  std::int64_t patience_ = -1;
  std::int64_t charged_ = 0;
  const Stop* stop_;
  const Stop* other_;
  std::int64_t scans_ = 0;
  std::int64_t next_look_ = 0;
};

// Vertices by distance, for searches whose distances never fall: a radix heap (Ahuja, Mehlhorn, Orlin,
// Tarjan 1990). An entry lies in the bucket of the highest bit in which its distance differs from the
// last one taken, so that what is far is appended and mostly never looked at again, and what is at the
// very distance of the search is a stack, which makes it go depth-first along tight arcs.
class DistanceQueue {
 public:
  struct Entry {
    Cost distance;
    Vertex vertex;
    HalfId parent;
  };

  void clear() {
    for (; filled_ != 0; filled_ &= filled_ - 1) buckets_[std::countr_zero(filled_)].clear();
    last_ = 0;
  }
  bool empty() const { return filled_ == 0; }
  // The distance must be at least that of the last `least`.
  void push(const Entry& entry) {
    const int bucket = std::bit_width(static_cast<std::uint64_t>(entry.distance ^ last_));
    buckets_[bucket].push_back(entry);
    filled_ |= std::uint64_t{1} << bucket;
  }
  Cost least() {
    if (filled_ & 1) return last_;
    const int bucket = std::countr_zero(filled_);
    std::vector<Entry>& entries = buckets_[bucket];
    last_ = infinite;
    for (const Entry& entry : entries) last_ = std::min(last_, entry.distance);
    for (const Entry& entry : entries) push(entry);
    entries.clear();
    filled_ &= ~(std::uint64_t{1} << bucket);
    return last_;
  }
  // Whether an entry at the distance of the last `least` is left.
  bool has_level() const { return (filled_ & 1) != 0; }
  // Must be called after `least`.
  const Entry& top() const { return buckets_[0].back(); }
  void pop() {
    buckets_[0].pop_back();
    if (buckets_[0].empty()) filled_ &= ~std::uint64_t{1};
  }

 private:
  std::vector<Entry> buckets_[64];
  std::uint64_t filled_ = 0;
  Cost last_ = 0;
};

}  // namespace argosy::flow
