// Timers, ordered by time, and a queue of events that are due at once.
//
// Timers are ordered by (at, order of pushing): time in whole microseconds, then the order in which they were
// pushed, so that ties never depend on the heap's shape. A 4-ary implicit heap of 32-byte entries: push
// O(log4 n), pop O(4 log4 n), two entries to a cache line. What would be the very next anyway goes into a
// queue instead, in O(1).
//
// Tickets. Everything pushed by the world, and every message on its way, has a ticket: 1, 2, 3, … in order of
// pushing. Ends of tasks and of phases have none, because a runtime to which these are reported has no timers
// for them, and must number all others in the same way. In a replay nothing is ordered by time: timers are kept
// in a table by ticket until the journal says that one was due.
//
// Kinds are below 256. At most 2^56 timers and 2^32 - 1 tickets a run; beyond, pushing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "cell/flat_map.hpp"

namespace argosy {

struct Timer {
  std::int64_t at = 0;
  // The number of the push, and in the lowest 8 bits the kind.
  std::uint64_t order = 0;
  std::int64_t b = 0;
  std::int32_t a = 0;
  // 0: none.
  std::uint32_t ticket = 0;

  std::int32_t kind() const { return static_cast<std::int32_t>(order & 0xFF); }
  bool before(const Timer& other) const {
    return at != other.at ? at < other.at : order < other.order;
  }
};

class TimerHeap {
 public:
  bool empty() const { return entries_.empty(); }
  const Timer& top() const { return entries_.front(); }

  void push(const Timer& timer) {
    std::size_t hole = entries_.size();
    entries_.push_back(timer);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!timer.before(entries_[parent])) break;
      entries_[hole] = entries_[parent];
      hole = parent;
    }
    entries_[hole] = timer;
  }

  Timer pop() {
    const Timer first = entries_.front();
    const Timer last = entries_.back();
    entries_.pop_back();
    const std::size_t n = entries_.size();
    if (n == 0) return first;
    std::size_t hole = 0;
    for (;;) {
      const std::size_t child = 4 * hole + 1;
      if (child >= n) break;
      std::size_t least = child;
      const std::size_t end = child + 4 < n ? child + 4 : n;
      for (std::size_t i = child + 1; i < end; ++i) {
        if (entries_[i].before(entries_[least])) least = i;
      }
      if (!entries_[least].before(last)) break;
      entries_[hole] = entries_[least];
      hole = least;
    }
    entries_[hole] = last;
    return first;
  }

 private:
  std::vector<Timer> entries_;
};

class Timers {
 public:
  explicit Timers(bool replayed) : replayed_(replayed) {}

  bool is_replayed() const { return replayed_; }
  bool empty() const { return heap_.empty() && !has_immediate() && table_.size() == 0; }
  // Whether a timer in the heap is due by `at`.
  bool is_due(std::int64_t at) const { return !heap_.empty() && heap_.top().at <= at; }
  const Timer& top() const { return heap_.top(); }
  bool has_none_timed() const { return heap_.empty(); }
  Timer pop() { return heap_.pop(); }

  // The end of a task or phase.
  void push_end(std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b) {
    heap_.push({at, order(kind), b, a, 0});
  }

  // Any other event.
  void push(std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b) {
    const Timer timer{at, order(kind), b, a, next_ticket()};
    if (replayed_) [[unlikely]] {
      table_.insert(timer.ticket) = timer;
    } else {
      heap_.push(timer);
    }
  }

  // The same, before everything in the heap.
  void push_immediate(std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b) {
    if (replayed_) {
      push(at, kind, a, b);
    } else {
      immediate_.push_back({at, order(kind), b, a, next_ticket()});
    }
  }
  // The ticket of an event that is due as soon as it is pushed.
  std::uint32_t pass() {
    ++next_order_;
    return next_ticket();
  }
  bool has_immediate() const { return taken_ < immediate_.size(); }
  Timer pop_immediate() {
    const Timer timer = immediate_[taken_++];
    if (taken_ == immediate_.size()) {
      immediate_.clear();
      taken_ = 0;
    }
    return timer;
  }

  // In a replay.
  Timer take(std::uint32_t ticket) {
    const Timer* found = table_.find(ticket);
    if (found == nullptr) throw std::invalid_argument("no timer has that ticket");
    const Timer timer = *found;
    table_.erase(ticket);
    return timer;
  }

 private:
  std::uint64_t order(std::int32_t kind) {
    return next_order_++ << 8 | static_cast<std::uint64_t>(kind);
  }
  std::uint32_t next_ticket() {
    if (last_ticket_ == std::numeric_limits<std::uint32_t>::max()) [[unlikely]] {
      throw std::length_error("more than 2^32 - 1 timers");
    }
    return ++last_ticket_;
  }

  bool replayed_;
  TimerHeap heap_;
  std::vector<Timer> immediate_;
  std::size_t taken_ = 0;
  FlatMap<Timer> table_;
  std::uint64_t next_order_ = 0;
  std::uint32_t last_ticket_ = 0;
};

}  // namespace argosy
