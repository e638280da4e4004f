// One search backwards from all deficits, which raises prices until every excess has a path to a deficit.
//
// With a step e >= 0, no half with a residual may have a reduced cost below -e, before and after. Afterwards, every
// excess has a path of halves whose reduced cost is exactly -e (tight halves, if e = 0). Dijkstra's algorithm
// with lengths of reduced cost + e. Instead of distances it keeps levels, which are what prices will be: a half of
// cost c from i to j offers i the level of j + c + e.
//
// Passages.  A vertex without excess that only one half leads to (a task that is placed, entered backwards) is
// passed: its neighbour gets a label at once, and the vertex none. Its price only has to suit that half. Most
// vertices of a scheduling network are like that, so that few are queued at all, and most of the work is one
// comparison for each arc.
//
// Complexity.  O(m + p log C) for p vertices that are not passed. Numbers: costs are multiplied by `scale`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "flow/large_array.hpp"
#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class Approach {
 public:
  static constexpr std::int32_t dead = std::numeric_limits<std::int32_t>::max();

  explicit Approach(Network& network) : net_(network) {}

  Status run(Control& control, Cost scale, Cost step) {
    scale_ = scale;
    step_ = step;
    is_plain_ = !net_.has_convex_arcs();
    std::int64_t waiting = excesses_ = begin();
    skips_leaves_ = excesses_ > net_.vertices() / 8;
    std::size_t next = 0;
    while (waiting > 0) {
      while (next == front_.size() && !queue_.empty()) {
        advance();
        next = 0;
      }
      if (next == front_.size()) break;
      const Vertex v = front_[next++];
      if (net_.excess(v) > 0) --waiting;
      if (!control.spend(net_.in_end(v) - net_.in_begin(v))) return Status::stopped;
      look_back(v);
    }
    if (waiting > 0 && !has_reached_all()) return Status::infeasible;
    raise_prices();
    return Status::optimal;
  }

  // How many vertices had an excess.
  std::int64_t excesses() const { return excesses_; }

  // How many halves the path of each vertex has, of its shortest paths nearly the fewest; `dead` if it has none, and
  // for a vertex that was passed only if it could not be on a shortest path.
  LargeArray<std::int32_t>& hops() { return hops_; }

 private:
  static constexpr std::ptrdiff_t fetch_ahead = 12;

  // Who gets the label of a path that comes to a vertex, and at what further cost: the vertex itself, the tail of
  // the only half that leads to it, or nobody.
  struct Passage {
    Cost cost;
    Vertex to;
  };

  // Returns the number of excesses.
  std::int64_t begin() {
    const Vertex bound = net_.vertex_bound();
    // One more, which no label improves.
    levels_.assign(bound + 1, infinite);
    levels_[bound] = -infinite;
    hops_.assign(bound, dead);
    passages_.resize(bound);
    queue_.clear();
    front_.clear();
    reached_ = 0;
    std::int64_t excesses = 0;
    for (Vertex v = 0; v < bound; ++v) {
      const Amount excess = net_.excess(v);
      passages_[v] = excess != 0 ? Passage{0, v} : passage(v);
      excesses += excess > 0;
      if (excess >= 0) continue;
      levels_[v] = net_.price(v);
      hops_[v] = 0;
      front_.push_back(v);
    }
    return excesses;
  }

  Passage passage(Vertex v) const {
    const Half* const h = net_.in_begin(v);
    const std::ptrdiff_t ways = net_.in_end(v) - h;
    if (ways == 0) return Passage{0, net_.vertex_bound()};
    if (ways > 1 || is_passed(h->other)) return Passage{0, v};
    return Passage{cost_to(*h) * scale_ + step_, h->other};
  }
  // The cost of the half that is the mate of h.
  Cost cost_to(const Half& h) const { return is_plain_ ? -h.cost : net_.half(h.id ^ 1).cost; }
  bool is_passed(Vertex v) const {
    return net_.excess(v) == 0 && net_.in_end(v) - net_.in_begin(v) == 1;
  }

  // The vertices of the next distance become the front.
  void advance() {
    reached_ = queue_.least();
    front_.clear();
    for (; queue_.has_level(); queue_.pop()) {
      const Vertex v = queue_.top().vertex;
      if (levels_[v] - net_.price(v) == reached_) front_.push_back(v);
    }
  }

  void look_back(Vertex v) {
    const Cost here = levels_[v] + step_;
    const std::int32_t hops = hops_[v] + 1;
    const Half* const last = net_.in_end(v);
    for (const Half* h = net_.in_begin(v); h != last; ++h) {
      if (last - h > fetch_ahead) __builtin_prefetch(passages_.data() + h[fetch_ahead].other);
      const Passage passage = passages_[h->other];
      const Cost level = here + cost_to(*h) * scale_ + passage.cost;
      if (level <= levels_[passage.to]) label(h->other, passage.to, level, hops);
    }
  }

  // A path from w by way of its neighbour `via`, or from w itself: w gets a label if the path is better than others.
  void label(Vertex via, Vertex w, Cost level, std::int32_t hops) {
    const bool is_better = level < levels_[w];
    if (via != w) {
      if (is_better || hops < hops_[via]) hops_[via] = hops;
      ++hops;
    }
    if (!is_better) return;
    levels_[w] = level;
    hops_[w] = hops;
    if (skips_leaves_ && net_.in_begin(w) == net_.in_end(w)) return;
    const Cost distance = level - net_.price(w);
    if (distance == reached_) {
      front_.push_back(w);
    } else {
      queue_.push({distance, w, none});
    }
  }

  // Whether all excesses have a label, after a search to the end. The furthest determines how far prices rise.
  bool has_reached_all() {
    Cost furthest = 0;
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      if (net_.excess(v) <= 0) continue;
      if (levels_[v] == infinite) return false;
      furthest = std::max(furthest, levels_[v] - net_.price(v));
    }
    reached_ = furthest;
    return true;
  }

  // What was passed rises just enough for the half that leads to it.
  void raise_prices() {
    const Vertex bound = net_.vertex_bound();
    if (reached_ == 0) return;
    for (Vertex v = 0; v < bound; ++v) {
      if (passages_[v].to == v) net_.set_price(v, std::min(levels_[v], net_.price(v) + reached_));
    }
    for (Vertex v = 0; v < bound; ++v) {
      const Passage& passage = passages_[v];
      if (passage.to == v || passage.to == bound) continue;
      net_.set_price(v, std::max(net_.price(v), net_.price(passage.to) - passage.cost));
    }
  }

  Network& net_;
  Cost scale_ = 1, step_ = 0;
  bool is_plain_ = true;
  // Many excesses that nothing leads to are not worth the queue, if the search then goes on to the end.
  bool skips_leaves_ = false;
  std::int64_t excesses_ = 0;
  Cost reached_ = 0;  // the distance of the search so far
  LargeArray<Passage> passages_;
  LargeArray<Cost> levels_;
  LargeArray<std::int32_t> hops_;
  std::vector<Vertex> front_;
  DistanceQueue queue_;
};

}  // namespace argosy::flow
