// Queues at machines: the order in which waiting entries start.
//
//   fcfs                in order of arrival
//   shortest_first      the least estimate, then arrival
//   shortest_remaining  the least remaining work of its job, that is, the number of its tasks that have not
//                       started times the estimate, as it is when a slot is free; then arrival
//
// With a slack of k > 0, the last two may overtake an entry by estimates of k times its own in all, and by
// no more: the entry chosen is the best among those whose estimate is below what is left of the slack of
// every entry that came before them. So an entry of estimate e waits, in estimates, for what was ahead of
// it when it came and less than k e besides: starvation is bounded whatever arrives. (Proof: only entries
// that came later overtake; each that does has an estimate below the slack left, which it uses up.)
//
// With a cut-off, entries with an estimate above it are long. A long entry at the head is next, whatever
// waits behind it, has no slack to be overtaken by, and uses up none of those it overtakes: long tasks stand
// apart from the short ones' order, whose bound then holds among the short. This is how Eagle's machines queue.
//
// Entries of jobs that have nothing to start any more may stand in a queue (sticky probes); where that is
// said they are passed over, and swept out when as many have been passed over as the queue is long.
//
// fcfs takes O(1), shortest_first without slack O(log q), the others one pass over the q entries, 24 bytes
// each and next to one another. With slack the pass ends where no estimate in the queue is below what is left
// of it, so that a long queue whose first entries have been overtaken enough costs what stands before these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace argosy {

enum class QueueOrder { fcfs, shortest_first, shortest_remaining };

struct QueueRules {
  QueueOrder order = QueueOrder::fcfs;
  // Times its own estimate; 0: no bound.
  std::int64_t slack = 0;
  // Entries in a queue at most; 0: no bound.
  std::int64_t limit = 0;
  // From when a slot is free until the queued task runs in it.
  std::int64_t start_delay = 0;
  // Estimates above this are long; 0: none is.
  std::int64_t long_above = 0;
  // An idle machine asks this many others for work, those from number `steal_from` on, and takes at most
  // `steal_limit` entries; 0: it does not.
  std::int64_t steal_attempts = 0;
  std::int32_t steal_from = 0;
  std::int64_t steal_limit = 0;
  // Of the stream that draws whom to ask: the run's own.
  std::uint64_t steal_seed = 0;
};

// What a queue knows of an entry; `item` is for its owner.
struct QueueEntry {
  std::int64_t estimate;
  // What is left of the slack, or the number of the arrival, where a heap needs one.
  std::int64_t rank;
  std::int32_t job;
  std::int32_t item;
};

class MachineQueue {
 public:
  std::size_t size() const { return entries_.size() - head_; }
  bool empty() const { return size() == 0; }
  const QueueEntry& operator[](std::size_t at) const { return entries_[head_ + at]; }

  void add(const QueueRules& rules, const QueueEntry& entry, std::int64_t arrival) {
    entries_.push_back(entry);
    smallest_ = std::min(smallest_, entry.estimate);
    if (is_heap(rules)) {
      entries_.back().rank = arrival;
      std::push_heap(entries_.begin(), entries_.end(), later);
    } else {
      entries_.back().rank = largest / std::max<std::int64_t>(1, rules.slack) > entry.estimate
                                 ? rules.slack * entry.estimate
                                 : largest;
    }
  }

  // Where the entry stands that is next; `unstarted` gives a job's tasks that have not started. With
  // `skips_useless`, entries of jobs that have none are not there: if no other is, the answer is `size()`.
  template <typename Unstarted>
  std::size_t next(const QueueRules& rules, bool skips_useless, Unstarted unstarted) {
    if (rules.order == QueueOrder::fcfs || is_heap(rules)) return 0;
    std::size_t best = size(), at = head_, useless = 0;
    std::int64_t least = largest, slack = largest - 1;
    // Eagle's machines let an estimate use up the slack, the others leave some.
    const bool has_long = rules.long_above > 0;
    for (bool is_first = true; at < entries_.size() && smallest_ < slack + has_long; ++at) {
      const QueueEntry& entry = entries_[at];
      const std::int64_t left = rules.order == QueueOrder::shortest_first ? 1 : unstarted(entry.job);
      if (skips_useless && left == 0) {
        ++useless;
        continue;
      }
      const bool stands_apart = is_long(rules, entry);
      if (is_first && stands_apart) {
        best = at - head_;
        break;
      }
      is_first = false;
      const std::int64_t measure = entry.estimate * left;
      if (measure < least && entry.estimate < slack + has_long) {
        least = measure;
        best = at - head_;
        if (stands_apart) break;
      }
      if (rules.slack > 0 && !stands_apart) slack = std::min(slack, entry.rank);
    }
    passed_over_ += useless;
    return best;
  }

  // Whether it is time to sweep.
  bool has_waste() const { return passed_over_ > 0 && passed_over_ >= size(); }

  // The entry's turn has come: those it overtakes have that much less slack.
  QueueEntry take(const QueueRules& rules, std::size_t at) {
    const QueueEntry& entry = entries_[head_ + at];
    if (!is_heap(rules) && !is_long(rules, entry)) charge(at, entry.estimate);
    return remove(rules, at);
  }

  // Takes the entry out, at nobody's expense.
  QueueEntry remove(const QueueRules& rules, std::size_t at) {
    const QueueEntry entry = entries_[head_ + at];
    if (is_heap(rules)) {
      if (at == 0) {
        std::pop_heap(entries_.begin(), entries_.end(), later);
        entries_.pop_back();
      } else {
        // Only thieves and cancellations take others than the first.
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
        std::make_heap(entries_.begin(), entries_.end(), later);
      }
      return entry;
    }
    const auto head = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
    const auto here = head + static_cast<std::ptrdiff_t>(at);
    if (2 * at < size()) {
      std::move_backward(head, here, here + 1);
      ++head_;
      if (head_ >= 64 && 2 * head_ >= entries_.size()) compact();
    } else {
      entries_.erase(here);
    }
    return entry;
  }

  // Takes out entries of jobs that have nothing to start any more, and gives each to `gone`.
  template <typename IsUseless, typename Gone>
  void purge(IsUseless is_useless, Gone gone) {
    std::size_t kept = head_;
    while (kept < entries_.size() && !is_useless(entries_[kept].job)) ++kept;
    for (std::size_t at = kept; at < entries_.size(); ++at) {
      if (is_useless(entries_[at].job)) {
        gone(entries_[at].item);
      } else {
        entries_[kept++] = entries_[at];
      }
    }
    entries_.resize(kept);
    passed_over_ = 0;
    find_smallest();
  }

  // An entry overtakes those before it without leaving.
  void charge(std::size_t at, std::int64_t estimate) {
    for (std::size_t before = head_; before < head_ + at; ++before) {
      entries_[before].rank -= std::min(entries_[before].rank, estimate);
    }
  }

 private:
  static constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

  static bool is_heap(const QueueRules& rules) {
    return rules.order == QueueOrder::shortest_first && rules.slack == 0;
  }
  static bool is_long(const QueueRules& rules, const QueueEntry& entry) {
    return rules.long_above > 0 && entry.estimate > rules.long_above;
  }
  static bool later(const QueueEntry& x, const QueueEntry& y) {
    return x.estimate != y.estimate ? x.estimate > y.estimate : x.rank > y.rank;
  }

  void compact() {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
    find_smallest();
  }

  void find_smallest() {
    smallest_ = largest;
    for (std::size_t at = head_; at < entries_.size(); ++at) {
      smallest_ = std::min(smallest_, entries_[at].estimate);
    }
  }

  std::vector<QueueEntry> entries_;
  // Entries before this have been taken.
  std::size_t head_ = 0;
  // No entry has a smaller estimate.
  std::int64_t smallest_ = largest;
  // Useless entries that `next` came across since the last purge.
  std::size_t passed_over_ = 0;
};

}  // namespace argosy
