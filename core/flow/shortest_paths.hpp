// Successive shortest paths, from scratch or local: the solver of small changes.
//
// Invariant.  No half with a residual has a negative reduced cost. What an edit broke of it is mended by
// sending flow over such halves, which leaves excesses and deficits behind. Each of them is then moved
// along a shortest path, which keeps the invariant (Ahuja, Magnanti, Orlin, chapter 9.7).
//
// Locality.  Excesses go to the anchor, one vertex of large degree (the sink of a scheduling network)
// that takes any for the time being, or to a deficit that is found on the way; deficits that remain are
// then served by the anchor. Searches run from both ends, always at the end with less work so far: where
// the network is full, all is near to the anchor or all is near to the other end, and seldom both. Prices
// change only within the balls that were searched: by r - d around the start, by d - r around the end,
// with radii that add up to the distance. By balance the anchor is even when all others are.
//
// Complexity.  O(units moved x arcs in the balls x log of the largest cost); nothing is proportional to
// the network, unless everything was touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/mending.hpp"
#include "flow/network.hpp"
#include "flow/search.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class ShortestPaths {
 public:
  explicit ShortestPaths(Network& network) : net_(network) {}

  // From scratch, prices begin at the distances to the anchor, which suits what is not crowded; with
  // `keep_prices` they stay, and what they do not fit is mended.
  // Without `short_searches` it is the textbook's: prices begin at zero, and every search from an excess
  // goes everywhere.
  Status run(Control& control, bool keep_prices = false, bool short_searches = true) {
    short_searches_ = short_searches;
    if (net_.total_supply() != 0) return Status::unbalanced;
    if (!net_.fits(4)) return Status::overflow;
    choose_anchor();
    if (anchor_ == none) return Status::optimal;
    if (has_drifted_) forget_prices();
    const bool is_all = net_.all_touched();
    mend_touched(net_);
    if (is_all && !keep_prices && short_searches && !approach_anchor(control)) {
      net_.touch_all();
      return Status::stopped;
    }
    return settle(control);
  }

  // The share of excesses and deficits that the last run had handled when it ended.
  double progress() const { return progress_; }
  // The vertex that takes and gives for the time being; `none` before the first run.
  Vertex anchor() const { return anchor_; }

 private:
  enum class Found { path, nothing, stopped };

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

  // Prices of vertices not connected to the anchor may drift a little with each edit, forever.
  void forget_prices() {
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) net_.set_price(v, 0);
    net_.touch_all();
    has_drifted_ = false;
  }

  // Sends flow along a shortest path from start to end, one of which is the anchor, or to a deficit closer to
  // the start than what has been searched. Searches from both ends, at the one with less work so far.
  Found connect(Vertex start, Vertex end, Control& control) {
    from_.begin();
    to_.begin();
    from_.offer(start, 0, none, 0);
    const bool is_whole = !short_searches_ && start != anchor_;
    if (!is_whole) to_.offer(end, 0, none, 0);
    Cost bound = infinite, nearest = infinite;
    HalfId meeting = none;
    Vertex deficit = none;
    const auto meet = [&](Cost distance, HalfId over) {
      if (distance >= bound) return;
      bound = distance;
      meeting = over;
    };
    for (;;) {
      const Cost ahead = from_.radius(), behind = to_.radius();
      if ((nearest <= ahead && !is_whole) || ahead == infinite) break;
      const bool is_met = behind == infinite || ahead + behind >= bound;
      // A deficit nearer than the meeting is gone to: what is beyond it was not looked at.
      if (is_met && ((meeting != none && bound <= nearest) || start == anchor_)) break;
      const std::int64_t ahead_next = from_.next_degree();
      const std::int64_t behind_next = is_met ? 0 : to_.next_degree();
      const bool is_ahead = is_met || from_.work() + ahead_next < to_.work() + behind_next;
      if (!control.spend(is_ahead ? ahead_next : behind_next)) return Found::stopped;
      if (is_ahead) {
        from_.scan([&](Vertex w, Cost there, HalfId over) {
          if (there >= std::min(bound, nearest) && !is_whole) return true;
          if (to_.has_seen(w)) meet(there + to_.distance(w), over);
          const bool is_target = w == anchor_ ? is_whole : start != anchor_ && net_.excess(w) < 0;
          if (!is_target || there >= nearest) {
            from_.offer(w, there, over, ahead);
            return true;
          }
          from_.set_label(w, there, over);
          nearest = there;
          deficit = w;
          return there > ahead || is_whole;
        });
      } else {
        to_.scan([&](Vertex w, Cost there, HalfId over) {
          if (there >= bound) return true;
          if (from_.has_seen(w)) meet(there + from_.distance(w), over);
          if (there + ahead < bound) to_.offer(w, there, over, behind);
          return true;
        });
      }
    }
    if (nearest < bound && nearest <= from_.radius()) {
      has_drifted_ |= from_.reprice(net_, nearest);
      augment(start, deficit, deficit, none);
      return Found::path;
    }
    if (meeting == none) return Found::nothing;
    // Vertices that the backward search left out were at least this far: bound - ahead.
    const Cost ahead = std::min(from_.radius(), bound);
    has_drifted_ |= from_.reprice(net_, ahead);
    has_drifted_ |= to_.reprice(net_, bound - ahead);
    augment(start, end, net_.half(meeting ^ 1).other, meeting);
    return Found::path;
  }

  // Sends as much as possible from start to `middle` along the forward search, over the half `bridge`, and on
  // to the end along the backward search.
  void augment(Vertex start, Vertex end, Vertex middle, HalfId bridge) {
    Amount amount = std::numeric_limits<std::int32_t>::max();
    if (start != anchor_) amount = std::min(amount, net_.excess(start));
    if (end != anchor_) amount = std::min(amount, -net_.excess(end));
    path_.clear();
    const auto keep = [&](HalfId over) {
      path_.push_back(over);
      amount = std::min<Amount>(amount, net_.residual(over));
    };
    from_.trace(middle, keep);
    if (bridge != none) {
      keep(bridge);
      to_.trace(net_.half(bridge).other, keep);
    }
    const auto moved = static_cast<std::int32_t>(amount);
    for (const HalfId over : path_) net_.push(over, moved);
    net_.add_excess(start, -moved);
    net_.add_excess(end, moved);
  }

  Status settle_all(const std::vector<Vertex>& open, Control& control) {
    std::size_t begun = 0;
    for (const bool is_excess : {true, false}) {
      for (const Vertex v : open) {
        progress_ = static_cast<double>(begun++) / static_cast<double>(2 * open.size());
        while (v != anchor_ && (is_excess ? net_.excess(v) > 0 : net_.excess(v) < 0)) {
          const Found found = is_excess ? connect(v, anchor_, control) : connect(anchor_, v, control);
          if (found == Found::stopped) return Status::stopped;
          if (found == Found::nothing) return Status::infeasible;
        }
      }
    }
    return Status::optimal;
  }

  Status settle(Control& control) {
    std::vector<Vertex> open;
    open.swap(net_.unsettled());
    const Status status = settle_all(open, control);
    net_.unsettled().clear();
    if (status != Status::optimal) {
      open.push_back(anchor_);
      for (const Vertex v : open) {
        if (net_.excess(v) != 0) net_.unsettled().push_back(v);
      }
    }
    return status;
  }

  // One backward search from the anchor over everything makes a shortest path from each vertex tight.
  bool approach_anchor(Control& control) {
    to_.begin();
    to_.offer(anchor_, 0, none, 0);
    Cost furthest = 0;
    for (Cost radius; (radius = to_.radius()) < infinite;) {
      furthest = radius;
      if (!control.spend(to_.next_degree())) return false;
      to_.scan([&](Vertex w, Cost there, HalfId over) {
        to_.offer(w, there, over, radius);
        return true;
      });
    }
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      net_.set_price(v, net_.price(v) + (to_.has_seen(v) ? to_.distance(v) : furthest));
    }
    return true;
  }

  Network& net_;
  Search<true> from_{net_};
  Search<false> to_{net_};
  std::vector<HalfId> path_;
  Vertex anchor_ = none;
  bool has_drifted_ = false;
  double progress_ = 0;
  bool short_searches_ = true;
};

}  // namespace argosy::flow
