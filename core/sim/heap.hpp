// The event heap of the simulated world.
//
// Events are ordered by (at, sequence): virtual time in whole microseconds, then the order in which
// they were pushed, so that ties never depend on the heap's shape. A 4-ary implicit heap of 32-byte
// entries: push O(log4 n), pop O(4 log4 n), two entries to a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace argosy {

struct Event {
  std::int64_t at;
  std::uint64_t sequence;
  std::int32_t kind;
  std::int32_t a;
  std::int64_t b;

  bool before(const Event& other) const {
    return at != other.at ? at < other.at : sequence < other.sequence;
  }
};

class EventHeap {
 public:
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  const Event& top() const { return entries_.front(); }

  void push(std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b) {
    Event event{at, next_sequence_++, kind, a, b};
    std::size_t hole = entries_.size();
    entries_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!event.before(entries_[parent])) break;
      entries_[hole] = entries_[parent];
      hole = parent;
    }
    entries_[hole] = event;
  }

  Event pop() {
    const Event first = entries_.front();
    const Event last = entries_.back();
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
  std::vector<Event> entries_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace argosy
