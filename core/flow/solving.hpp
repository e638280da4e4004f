// What all solvers share: how they end, how they are stopped, and the queue of their searches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

// Counts looked-at arcs against a budget, which unlike time is the same everywhere, and asks now and
// then whether somebody wants an end.
class Control {
 public:
  Control(std::int64_t budget, const Stop* stop, const Stop* other = nullptr)
      : budget_(budget), stop_(stop), other_(other) {}

  // False when the work has to end.
  bool spend(std::int64_t arcs) {
    scans_ += arcs + 1;
    if (scans_ < next_look_) return true;
    next_look_ = scans_ + look_every;
    if (budget_ >= 0) {
      if (scans_ > budget_) return false;
      next_look_ = std::min(next_look_, budget_ + 1);
    }
    return !(stop_ && stop_->is_set()) && !(other_ && other_->is_set());
  }
  std::int64_t scans() const { return scans_; }

 private:
  static constexpr std::int64_t look_every = 4096;
  std::int64_t budget_;
  const Stop* stop_;
  const Stop* other_;
  std::int64_t scans_ = 0;
  std::int64_t next_look_ = 0;
};

// Vertices by distance, for searches that never go back: a 4-ary heap, and a stack for all that is at
// the distance of the last one taken, which makes a search go depth-first along tight arcs.
class DistanceQueue {
 public:
  struct Entry {
    Cost distance;
    Vertex vertex;
  };

  void clear() {
    heap_.clear();
    level_.clear();
    at_ = 0;
  }
  void push(Cost distance, Vertex v) {
    if (distance <= at_) {
      level_.push_back(v);
      return;
    }
    std::size_t hole = heap_.size();
    heap_.push_back({});
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (heap_[parent].distance <= distance) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = {distance, v};
  }
  bool empty() const { return level_.empty() && heap_.empty(); }
  Cost least() const { return level_.empty() ? heap_.front().distance : at_; }
  Entry pop() {
    if (!level_.empty()) {
      const Vertex v = level_.back();
      level_.pop_back();
      return {at_, v};
    }
    const Entry first = heap_.front();
    const Entry last = heap_.back();
    heap_.pop_back();
    at_ = first.distance;
    const std::size_t n = heap_.size();
    if (n == 0) return first;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < n; child = 4 * hole + 1) {
      std::size_t least = child;
      const std::size_t end = std::min(child + 4, n);
      for (std::size_t i = child + 1; i < end; ++i) {
        if (heap_[i].distance < heap_[least].distance) least = i;
      }
      if (heap_[least].distance >= last.distance) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = last;
    return first;
  }

 private:
  std::vector<Entry> heap_;
  std::vector<Vertex> level_;
  Cost at_ = 0;
};

}  // namespace argosy::flow
