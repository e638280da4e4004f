// One direction of a shortest-path search over residual arcs and reduced costs (Dijkstra).
//
// Forwards it computes distances from its start, backwards distances to it. Labels carry the number of the
// search, so that starting one costs nothing. Vertices far beyond the search's current distance are queued
// without a label: most of them are never reached.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/large_array.hpp"
#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

template <bool forward>
class Search {
 public:
  explicit Search(const Network& network) : net_(network) {}

  void begin() {
    labels_.resize(net_.vertex_bound());
    queue_.clear();
    scanned_.clear();
    work_ = 0;
    round_ += 2;
    if (round_ == 0) {
      for (Label& label : labels_) label.round = 0;
      round_ = 2;
    }
  }

  // Offers a path to v; `parent` is the half that the flow would take, `none` at a start.
  void offer(Vertex v, Cost distance, HalfId parent, Cost now) {
    if (distance - now < near) {
      Label& label = labels_[v];
      if (label.round >= round_ && label.distance <= distance) return;
      label = Label{distance, round_, parent};
    }
    queue_.push({distance, v, parent});
  }

  // The same with a label whatever the distance, so that all vertices offered are known.
  void label(Vertex v, Cost distance, HalfId parent) {
    Label& label = labels_[v];
    if (label.round >= round_ && label.distance <= distance) return;
    label = Label{distance, round_, parent};
    queue_.push({distance, v, parent});
  }

  // The distance of the next vertex to scan, `infinite` when there is none.
  Cost radius() {
    while (!queue_.empty()) {
      const Cost least = queue_.least();
      const auto& entry = queue_.top();
      const Label& label = labels_[entry.vertex];
      const bool is_stale =
          label.round > round_ || (label.round == round_ && label.distance < entry.distance);
      if (!is_stale) return least;
      queue_.pop();
    }
    return infinite;
  }
  // What `radius` referred to; must be called after it.
  Vertex next() const { return queue_.top().vertex; }
  std::int64_t next_degree() const {
    const Vertex v = next();
    return forward ? net_.out_end(v) - net_.begin(v) : net_.in_end(v) - net_.in_begin(v);
  }

  // Scans the next vertex: calls visit(half, neighbour, distance, over) for each arc, where `over` is the half
  // that flow would take.
  template <typename Visit>
  Vertex scan(Visit visit) {
    const auto entry = queue_.top();
    queue_.pop();
    const Vertex v = entry.vertex;
    labels_[v] = Label{entry.distance, round_ + 1, entry.parent};
    scanned_.push_back(v);
    const Half* const first = forward ? net_.begin(v) : net_.in_begin(v);
    const Half* const last = forward ? net_.out_end(v) : net_.in_end(v);
    work_ += last - first + 1;
    const Cost here = entry.distance + (forward ? -net_.price(v) : net_.price(v));
    const bool is_plain = forward || !net_.has_convex_arcs();
    for (const Half* h = first; h != last; ++h) {
      if (last - h > fetch_ahead) net_.prefetch_price(h[fetch_ahead].other);
      const Cost cost = forward ? h->cost : is_plain ? -h->cost : net_.half(h->id ^ 1).cost;
      const Vertex w = h->other;
      const Cost there = here + cost + (forward ? net_.price(w) : -net_.price(w));
      if (!visit(w, there, forward ? h->id : h->id ^ 1)) break;
    }
    return v;
  }

  bool has_seen(Vertex v) const { return labels_[v].round >= round_; }
  Cost distance(Vertex v) const { return labels_[v].distance; }
  HalfId parent(Vertex v) const { return labels_[v].parent; }
  void set_label(Vertex v, Cost distance, HalfId parent) {
    labels_[v] = Label{distance, round_, parent};
  }
  std::int64_t work() const { return work_; }
  const std::vector<Vertex>& scanned() const { return scanned_; }

  // Changes the prices of all vertices within the radius so that the paths found are tight. True if a price is
  // now so far out that prices must be reset before the next search.
  bool reprice(Network& net, Cost radius) const {
    if (radius == 0) return false;
    bool is_far = false;
    for (const Vertex v : scanned_) {
      const Cost change = radius - labels_[v].distance;
      if (change <= 0) continue;
      const Cost price = net.price(v) + (forward ? change : -change);
      net.set_price(v, price);
      is_far |= price > price_limit || price < -price_limit;
    }
    return is_far;
  }

  // Calls visit(half) for each half on the path between v and the start of the search.
  template <typename Visit>
  Vertex trace(Vertex v, Visit visit) const {
    for (HalfId over = parent(v); over != none; over = parent(v)) {
      v = net_.half(forward ? over ^ 1 : over).other;
      visit(over);
    }
    return v;
  }

 private:
  static constexpr Cost near = 64;
  static constexpr std::ptrdiff_t fetch_ahead = 12;

  // Seen in this search if `round` is its number, scanned if it is one more.
  struct Label {
    Cost distance = 0;
    std::uint32_t round = 0;
    HalfId parent = none;
  };

  const Network& net_;
  LargeArray<Label> labels_;
  std::vector<Vertex> scanned_;
  DistanceQueue queue_;
  std::uint32_t round_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace argosy::flow
