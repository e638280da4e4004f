// Successive shortest paths, from scratch or local: the solver of small changes.
//
// Invariant.  No half with a residual has a negative reduced cost. What an edit broke of it is mended by
// sending flow over such halves, which leaves excesses and deficits behind. Each of them is then moved
// along a shortest path, which keeps the invariant (Ahuja, Magnanti, Orlin, chapter 9.7).
//
// Locality.  A search from an excess stops at the first deficit, or at the anchor: one vertex of large
// degree (the sink of a scheduling network) that takes any excess for the time being. Deficits that
// remain are then served by searches backwards, again up to the anchor. So no search ever starts at the
// vertex from which everything is near, and prices change only within the ball that was searched. By
// balance the anchor is even when all others are.
//
// Complexity.  O(units moved x arcs in the ball x log); nothing is proportional to the network, unless
// everything was touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class ShortestPaths {
 public:
  explicit ShortestPaths(Network& network) : net_(network) {}

  Status run(Control& control) {
    if (net_.total_supply() != 0) return Status::unbalanced;
    if (!net_.fits(4)) return Status::overflow;
    labels_.resize(net_.vertex_bound());
    choose_anchor();
    if (anchor_ == none) return Status::optimal;
    if (net_.all_touched()) {
      mend_all();
      if (!approach_anchor(control)) return Status::stopped;
    } else {
      price_fresh();
      for (const Arc a : net_.touched()) {
        if (net_.has_arc(a)) mend(a);
      }
    }
    net_.settle_touched();
    return settle(control);
  }

 private:
  struct Label {
    Cost distance = 0;
    std::uint32_t round = 0;
    HalfId parent = none;
  };

  void choose_anchor() {
    if (anchor_ != none && net_.has_vertex(anchor_) && !net_.all_touched()) return;
    anchor_ = none;
    Amount best = -1;
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      if (!net_.has_vertex(v)) continue;
      const Amount weight = std::abs(net_.supply(v)) + net_.degree(v);
      if (weight > best) {
        best = weight;
        anchor_ = v;
      }
    }
  }

  // Sends flow over the halves of an arc as long as their reduced cost is negative.
  void mend(Arc a) {
    for (const HalfId id : {2 * a, 2 * a + 1}) {
      while (net_.residual(id) > 0) {
        const Vertex from = net_.half(id ^ 1).other, to = net_.half(id).other;
        if (net_.reduced(from, net_.half(id)) >= 0) break;
        const std::int32_t amount = net_.residual(id);
        net_.push(id, amount);
        net_.add_excess(from, -amount);
        net_.add_excess(to, amount);
      }
    }
  }
  void mend_all() {
    for (Arc a = 0; a < net_.arc_bound(); ++a) {
      if (net_.has_arc(a)) mend(a);
    }
  }

  // A new vertex begins at the least price of what it leads to, so that few of its arcs need mending.
  void price_fresh() {
    const std::vector<Vertex>& fresh = net_.fresh();
    for (int pass = 0; pass < 4; ++pass) {
      bool is_stable = true;
      for (std::size_t i = fresh.size(); i-- > 0;) {
        const Vertex v = fresh[i];
        if (!net_.has_vertex(v)) continue;
        Cost least = infinite;
        for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
          if (h->other != v) least = std::min(least, h->cost + net_.price(h->other));
        }
        if (least == infinite || least == net_.price(v)) continue;
        net_.set_price(v, least);
        is_stable = false;
      }
      if (is_stable) return;
    }
  }

  bool is_target(Vertex v, bool forward) const {
    return v == anchor_ || (forward ? net_.excess(v) < 0 : net_.excess(v) > 0);
  }

  template <bool forward>
  Cost step_cost(const Half& half) const {
    if (forward) return half.cost;
    return net_.is_convex(half.id / 2) ? net_.half(half.id ^ 1).cost : -half.cost;
  }

  void open(Vertex v, Cost distance, HalfId parent) {
    labels_[v] = Label{distance, round_, parent};
    queue_.push(distance, v);
  }

  void next_round() {
    queue_.clear();
    scanned_.clear();
    if (++round_ == 0) {
      for (Label& label : labels_) label.round = 0;
      round_ = 1;
    }
  }

  // The nearest target of v; `none` when there is none or the work was stopped.
  template <bool forward>
  Vertex search(Vertex start, Control& control, bool& is_stopped) {
    next_round();
    Cost bound = infinite;
    Vertex target = none;
    open(start, 0, none);
    while (!queue_.empty() && queue_.least() < bound) {
      const auto [distance, v] = queue_.pop();
      if (labels_[v].distance != distance) continue;  // a shorter way was found since
      scanned_.push_back(v);
      const Cost here = distance + (forward ? -net_.price(v) : net_.price(v));
      const Half* const first = forward ? net_.begin(v) : net_.in_begin(v);
      const Half* const last = forward ? net_.out_end(v) : net_.in_end(v);
      if (!control.spend(last - first)) {
        is_stopped = true;
        return none;
      }
      for (const Half* h = first; h != last; ++h) {
        const Vertex w = h->other;
        const Cost there =
            here + step_cost<forward>(*h) + (forward ? net_.price(w) : -net_.price(w));
        if (there >= bound) continue;
        Label& label = labels_[w];
        if (label.round == round_ && label.distance <= there) continue;
        const HalfId over = forward ? h->id : h->id ^ 1;
        if (is_target(w, forward)) {
          label = Label{there, round_, over};
          bound = there;
          target = w;
          if (there == distance) break;
        } else {
          open(w, there, over);
        }
      }
      if (bound == distance) break;
    }
    if (target != none) reprice<forward>(bound);
    return target;
  }

  template <bool forward>
  void reprice(Cost bound) {
    for (const Vertex v : scanned_) {
      const Cost change = bound - labels_[v].distance;
      net_.set_price(v, net_.price(v) + (forward ? change : -change));
    }
  }

  template <bool forward>
  void augment(Vertex start, Vertex target) {
    Amount amount = std::abs(net_.excess(start));
    if (target != anchor_) amount = std::min(amount, std::abs(net_.excess(target)));
    for (Vertex v = target; v != start;) {
      const HalfId over = labels_[v].parent;
      amount = std::min<Amount>(amount, net_.residual(over));
      v = net_.half(forward ? over ^ 1 : over).other;
    }
    const auto moved = static_cast<std::int32_t>(amount);
    for (Vertex v = target; v != start;) {
      const HalfId over = labels_[v].parent;
      v = net_.half(forward ? over ^ 1 : over).other;
      net_.push(over, moved);
    }
    net_.add_excess(start, forward ? -moved : moved);
    net_.add_excess(target, forward ? moved : -moved);
  }

  template <bool forward>
  Status settle_side(const std::vector<Vertex>& open, Control& control) {
    for (const Vertex v : open) {
      while (v != anchor_ && (forward ? net_.excess(v) > 0 : net_.excess(v) < 0)) {
        bool is_stopped = false;
        const Vertex target = search<forward>(v, control, is_stopped);
        if (is_stopped) return Status::stopped;
        if (target == none) return Status::infeasible;
        augment<forward>(v, target);
      }
    }
    return Status::optimal;
  }

  Status settle(Control& control) {
    std::vector<Vertex> open;
    open.swap(net_.unsettled());
    Status status = settle_side<true>(open, control);
    if (status == Status::optimal) status = settle_side<false>(open, control);
    net_.unsettled().clear();
    if (status != Status::optimal) {
      open.push_back(anchor_);
      for (const Vertex v : open) {
        if (net_.excess(v) != 0) net_.unsettled().push_back(v);
      }
    }
    return status;
  }

  // One search from the anchor backwards over everything makes a shortest path from each vertex tight.
  bool approach_anchor(Control& control) {
    next_round();
    open(anchor_, 0, none);
    Cost furthest = 0;
    while (!queue_.empty()) {
      const auto [distance, v] = queue_.pop();
      if (labels_[v].distance != distance) continue;
      furthest = distance;
      if (!control.spend(net_.degree(v))) return false;
      for (const Half* h = net_.in_begin(v); h != net_.in_end(v); ++h) {
        const Cost there = distance + step_cost<false>(*h) - net_.price(h->other) + net_.price(v);
        Label& label = labels_[h->other];
        if (label.round != round_ || label.distance > there) open(h->other, there, none);
      }
    }
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      const Cost distance = labels_[v].round == round_ ? labels_[v].distance : furthest;
      net_.set_price(v, net_.price(v) + distance);
    }
    return true;
  }

  Network& net_;
  std::vector<Label> labels_;
  std::vector<Vertex> scanned_;
  DistanceQueue queue_;
  std::uint32_t round_ = 0;
  Vertex anchor_ = none;
};

}  // namespace argosy::flow
