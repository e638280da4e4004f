// The n best of many machines.
//
// A shortlist keeps the n best of those offered, in a buffer of 2n that nth_element cuts back to n when
// it is full: O(1) amortised an offer, most of which one comparison turns away. n is as many as there
// are tasks to place (at least two, so that there is a second). That suffices although placing a task
// changes a machine's rank: while fewer than n tasks are placed, one of the kept machines is untouched
// and beats every machine left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "random.hpp"

namespace argosy {

// Smaller is better. Ties are effectively random; machines differ, so the order is total.
struct Candidate {
  std::int64_t rank;
  std::uint64_t tie;
  std::int32_t machine;

  bool operator<(const Candidate& other) const {
    if (rank != other.rank) return rank < other.rank;
    return tie != other.tie ? tie < other.tie : machine < other.machine;
  }
};

class Shortlist {
 public:
  Shortlist(std::size_t count, std::uint64_t nonce)
      : keep_(std::max<std::size_t>(count, 2)),
        buffer_(std::max<std::size_t>(2 * keep_, 64)),
        nonce_(nonce) {}

  bool is_empty() const { return kept_.empty(); }

  void offer(std::int32_t machine, std::int64_t rank) {
    if (rank > worst_.rank) return;
    const Candidate candidate{rank, scramble(nonce_ ^ static_cast<std::uint64_t>(machine)), machine};
    if (!(candidate < worst_)) return;
    kept_.push_back(candidate);
    if (kept_.size() < buffer_) return;
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(keep_) - 1;
    std::nth_element(kept_.begin(), last, kept_.end());
    worst_ = *last;
    kept_.resize(keep_);
  }

  // The second machine is -1 if there is only one.
  std::pair<Candidate, Candidate> best_two() const {
    Candidate first = kept_.front();
    Candidate second{std::numeric_limits<std::int64_t>::max(),
                     std::numeric_limits<std::uint64_t>::max(), -1};
    for (std::size_t i = 1; i < kept_.size(); ++i) {
      Candidate other = kept_[i];
      if (other < first) std::swap(other, first);
      if (second.machine < 0 || other < second) second = other;
    }
    return {first, second};
  }

  // Must be called after the last offer and before take_best and put_back.
  void make_heap() { std::make_heap(kept_.begin(), kept_.end(), is_worse); }

  Candidate take_best() {
    std::pop_heap(kept_.begin(), kept_.end(), is_worse);
    const Candidate best = kept_.back();
    kept_.pop_back();
    return best;
  }

  void put_back(const Candidate& candidate) {
    kept_.push_back(candidate);
    std::push_heap(kept_.begin(), kept_.end(), is_worse);
  }

 private:
  static bool is_worse(const Candidate& a, const Candidate& b) { return b < a; }

  std::size_t keep_;
  std::size_t buffer_;
  std::uint64_t nonce_;
  std::vector<Candidate> kept_;
  // The last one kept at the latest cut.
  Candidate worst_{std::numeric_limits<std::int64_t>::max(),
                   std::numeric_limits<std::uint64_t>::max(),
                   std::numeric_limits<std::int32_t>::max()};
};

}  // namespace argosy
