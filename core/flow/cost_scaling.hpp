// Cost scaling by push and relabel (Goldberg and Tarjan 1990; Goldberg 1997).
//
// A flow is e-optimal if no half with a residual has a reduced cost below -e. Costs are multiplied by
// s = vertices + 1, so that a 1-optimal flow is optimal. Each phase divides e by a constant: it sends
// flow over every half of negative reduced cost, and then moves the excesses this made, over halves of
// negative reduced cost, raising the price of a vertex that has none (by at least e) until all is even.
//
// Heuristics.  Look-ahead: a vertex that could not pass an excess on is raised before it is given one. Price
// update: now and then, one search backwards from all deficits raises every price by as much as it can be raised,
// which also shows who cannot reach a deficit at all (infeasible). Price
// refine: before a phase, prices alone are tried. Incremental start: with kept flow and prices, new
// vertices are given prices that fit, and the last phase alone is tried first. Only if that takes too much
// work does e begin at a unit of cost. With new vertices at price zero (to compare), e begins at the worst
// reduced cost of a changed arc, as published.
//
// Exact prices at the end: s-fold prices are rounded down after a shift to a remainder that no vertex
// has, of which s > vertices leaves at least one. That keeps all reduced costs of residual halves >= 0.
//
// Complexity.  O(n^2 m log(n C)) in the worst case. Numbers: largest cost x n x s must pass `fits`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/approach.hpp"
#include "flow/large_array.hpp"
#include "flow/mending.hpp"
#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class CostScaling {
 public:
  // Each phase divides e by `alpha`, at least 2.
  CostScaling(Network& network, bool tries_prices, bool fits_fresh, Cost alpha)
      : net_(network), tries_prices_(tries_prices), fits_fresh_(fits_fresh), alpha_(alpha) {}

  Status run(Control& control) { return scale_down(control, net_.vertices() + 1); }

  // The same, but only down to a sixteenth of a unit of cost: a feasible flow and integer prices that leave
  // little to repair, without large factors. Where the flow is optimal but for its excesses, a small e is best: the
  // first is a small part of `spread`, the usual reduced cost of halves out of excesses. It grows while it turns
  // out to be too small, because what is e-optimal is so for any larger e.
  Status approximate(Control& control, Cost spread) {
    if (net_.total_supply() != 0) return Status::unbalanced;
    is_approximate_ = true;
    scale_ = approximate_scale;
    if (!net_.fits(16 * scale_)) return Status::overflow;
    begin();
    const Status status = scale_up_and_down(control, spread);
    finish(status);
    return status;
  }

 private:
  Status scale_down(Control& control, Cost scale) {
    if (net_.total_supply() != 0) return Status::unbalanced;
    scale_ = scale;
    if (!net_.fits(16 * scale_)) return Status::overflow;
    const bool is_small_change = fits_fresh_ && !net_.all_touched();
    begin();
    Status status = Status::optimal;
    if (has_excess() || (epsilon_ > 0 && !find_prices(control))) {
      if (is_small_change) status = mend(control);
      if (!is_small_change || is_too_much_) status = scale_through(control);
    }
    finish(status);
    return status;
  }

  static constexpr std::ptrdiff_t fetch_ahead = 12;
  // Arcs scanned, in multiples of the number of arcs, after which a small change is treated as a large one.
  static constexpr std::int64_t patience = 16;
  static constexpr std::int64_t most_passes = 32;
  static constexpr Cost approximate_scale = 16;
  // What part of the usual reduced cost is tried first.
  static constexpr Cost first_part = 64;
  // So many excesses are left to the next phase: pushes move the last units of a phase to and fro for as long as they
  // took for all others.
  static constexpr std::size_t few = 8;

  // Prices for a flow that may already be optimal but has lost its own.
  bool find_prices(Control& control) {
    if (!tries_prices_) return false;
    const Cost worst = epsilon_;
    epsilon_ = 1;
    if (price_refine(control, most_passes)) return true;
    epsilon_ = worst;
    return false;
  }

  Status scale_through(Control& control) {
    Status status = Status::optimal;
    do {
      epsilon_ = std::max<Cost>(1, epsilon_ / alpha_);
      if (!tries_prices_ || !price_refine(control)) status = refine(control);
    } while (status == Status::optimal && epsilon_ > 1);
    return status;
  }

  Status scale_up_and_down(Control& control, Cost spread) {
    epsilon_ = std::max<Cost>(1, scale_ * spread / first_part);
    grows_ = true;
    Status status = refine(control, -epsilon_);
    grows_ = false;
    while (status == Status::optimal && epsilon_ > 1) {
      epsilon_ = std::max<Cost>(1, epsilon_ / alpha_);
      fit_prices(control);
      status = refine(control, -epsilon_);
    }
    return status;
  }

  // One pass over all prices, after which few halves have a reduced cost below -e: each moves as little as the
  // halves at its vertex require. Where they contradict each other, those that lead to the vertex prevail.
  void fit_prices(Control& control) {
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      Cost least = -infinite, most = infinite;
      for (const Half* h = net_.in_begin(v); h != net_.in_end(v); ++h) {
        if (h->other != v) least = std::max(least, net_.price(h->other) - cost_to(*h) * scale_ - epsilon_);
      }
      for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
        if (h->other != v) most = std::min(most, net_.price(h->other) + h->cost * scale_ + epsilon_);
      }
      net_.set_price(v, std::max(least, std::min(most, net_.price(v))));
      control.spend(net_.degree(v));
    }
  }
  Cost cost_to(const Half& h) const { return net_.has_convex_arcs() ? net_.half(h.id ^ 1).cost : -h.cost; }

  // The last phase alone. Sending flow over arcs that an edit made negative leaves a flow that is optimal
  // except for its excesses, however negative the arcs were: few excesses need no coarser phase first.
  Status mend(Control& control) {
    const std::int64_t most = 4096 + patience * (net_.arcs() + net_.vertices());
    Control trial = control.part(most);
    epsilon_ = 1;
    const Status status = refine(trial);
    const bool may_go_on = control.take_over(trial);
    is_too_much_ = status == Status::stopped && may_go_on && trial.scans() > most;
    epsilon_ = alpha_ * scale_;
    return status;
  }

  // Scales the prices and determines how far the flow is from optimal.
  void begin() {
    const Vertex bound = net_.vertex_bound();
    if (fits_fresh_ && !net_.all_touched()) price_fresh(net_);
    bool is_small = true;
    for (Vertex v = 0; v < bound; ++v) is_small &= std::abs(net_.price(v)) <= price_limit / (4 * scale_);
    for (Vertex v = 0; v < bound; ++v) net_.set_price(v, is_small ? net_.price(v) * scale_ : 0);
    cursors_.assign(bound, 0);
    is_queued_.assign(bound, 0);
    queue_.clear();
    Cost worst = 0;
    bool is_even = true;
    for (Vertex v = 0; v < bound; ++v) {
      is_even &= net_.excess(v) == 0;
      for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
        worst = std::max(worst, -reduced(v, *h));
      }
    }
    // An excess has to travel: with prices that do not match, as far as the prices of new vertices differ.
    if (!is_even && net_.all_touched()) {
      worst = std::max(worst, scale_ * net_.largest_cost());
    }
    if (!is_even && !fits_fresh_) {
      for (const Arc a : net_.touched()) {
        if (!net_.has_arc(a)) continue;
        worst = std::max(worst, std::abs(reduced(net_.tail(a), net_.half(2 * a))));
      }
    }
    epsilon_ = worst;
  }

  Cost reduced(Vertex v, const Half& half) const {
    return half.cost * scale_ - net_.price(v) + net_.price(half.other);
  }

  bool has_excess() const {
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      if (net_.excess(v) != 0) return true;
    }
    return false;
  }

  void activate(Vertex v) {
    if (is_queued_[v]) return;
    is_queued_[v] = 1;
    queue_.push_back(v);
  }

  void send(Vertex v, Vertex w, HalfId over, std::int32_t amount) {
    net_.push(over, amount);
    net_.move_excess(v, -amount);
    net_.move_excess(w, amount);
  }

  // Sends flow over all halves with a reduced cost below `least`, which is at least -e, and moves the excesses.
  Status refine(Control& control, Cost least = 0) {
    const Vertex bound = net_.vertex_bound();
    queue_.clear();
    head_ = 0;
    is_queued_.assign(bound, 0);
    for (Vertex v = 0; v < bound; ++v) {
      // A push reorders: the half that is then at the same place is next.
      for (std::ptrdiff_t i = 0; net_.begin(v) + i < net_.out_end(v);) {
        const Half half = net_.begin(v)[i];
        if (reduced(v, half) >= least) {
          ++i;
        } else {
          send(v, half.other, half.id, net_.residual(half.id));
        }
      }
    }
    for (Vertex v = 0; v < bound; ++v) {
      if (net_.has_vertex(v) && net_.excess(v) > 0) activate(v);
    }
    if (queue_.empty()) return Status::optimal;
    const Status reached = update_prices(control);
    if (reached != Status::optimal) return reached;
    std::int64_t work = 0;
    while (head_ < queue_.size()) {
      if (head_ > 1'000'000 && head_ > queue_.size() / 2) {
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
        head_ = 0;
      }
      const Vertex v = queue_[head_++];
      is_queued_[v] = 0;
      const std::int64_t scans = discharge(v);
      if (scans < 0) return Status::infeasible;
      work += scans + 4;
      if (!control.spend(scans)) return Status::stopped;
      if (work > pause() && head_ < queue_.size()) {
        work = 0;
        if (is_approximate_ && queue_.size() - head_ <= few) return Status::optimal;
        const std::int64_t before = approach_.excesses();
        const Status status = update_prices(control);
        if (status != Status::optimal) return status;
        const bool is_slow = 10 * approach_.excesses() > 9 * before;
        if (grows_ && is_slow && epsilon_ < scale_ * net_.largest_cost()) epsilon_ *= 2;
      }
    }
    return Status::optimal;
  }

  // Work after which prices are updated.
  std::int64_t pause() const { return (is_approximate_ ? 2 : 1) * (net_.arcs() + 2 * net_.vertices()); }

  // Sends the excess of v away; returns the number of halves scanned, or -1 if there is no way out. Where an
  // excess is cut off from all deficits, v and its neighbours could raise each other for ever: it ends at the
  // next update of prices, which shows that.
  std::int64_t discharge(Vertex v) {
    std::int64_t scans = 0;
    while (net_.excess(v) > 0) {
      if (scans > pause()) {
        activate(v);
        return scans;
      }
      Cost least = infinite;
      std::int64_t size = net_.out_end(v) - net_.begin(v);
      std::int64_t i = cursors_[v] < size ? cursors_[v] : 0;
      // After a full circle without an admissible half, the price must change.
      for (std::int64_t seen = 0; seen < size;) {
        if (i >= size) i = 0;
        const Half& half = net_.begin(v)[i];
        ++scans;
        const Vertex w = half.other;
        const Cost there = half.cost * scale_ + net_.price(w);
        if (there >= net_.price(v) || w == v) {
          if (w != v) least = std::min(least, there);
          ++i;
          ++seen;
          continue;
        }
        const HalfId id = half.id;
        if (net_.excess(w) >= 0 && !can_pass_on(w, scans)) continue;
        const Amount excess = net_.excess(v);
        const auto amount = static_cast<std::int32_t>(std::min<Amount>(excess, net_.residual(id)));
        send(v, w, id, amount);
        if (net_.excess(w) > 0) activate(w);
        if (amount == excess) {
          cursors_[v] = static_cast<std::uint32_t>(i);
          return scans;
        }
        // The group shrank or its order changed: restart the circle from here.
        size = net_.out_end(v) - net_.begin(v);
        seen = 0;
        least = infinite;
      }
      if (least == infinite) return -1;
      net_.set_price(v, least + epsilon_);
    }
    return scans;
  }

  // Whether w has an admissible half; if not, its price rises until it has, before it is given more.
  bool can_pass_on(Vertex w, std::int64_t& scans) {
    const std::int64_t size = net_.out_end(w) - net_.begin(w);
    std::int64_t i = cursors_[w] < size ? cursors_[w] : 0;
    Cost least = infinite;
    for (std::int64_t seen = 0; seen < size; ++seen, ++i) {
      if (i >= size) i = 0;
      const Half& half = net_.begin(w)[i];
      ++scans;
      if (half.other == w) continue;
      const Cost there = half.cost * scale_ + net_.price(half.other);
      if (there < net_.price(w)) {
        cursors_[w] = static_cast<std::uint32_t>(i);
        return true;
      }
      least = std::min(least, there);
    }
    if (least == infinite) return true;
    net_.set_price(w, least + epsilon_);
    return false;
  }

  Status update_prices(Control& control) {
    return is_approximate_ ? approach_.run(control, scale_, epsilon_) : raise_prices(control);
  }

  // Raises each price by e x (distance to a deficit), where a half (i, j) is floor(reduced / e) + 1 long.
  Status raise_prices(Control& control) {
    const Vertex bound = net_.vertex_bound();
    distances_.assign(bound, infinite);
    ways_.clear();
    std::int64_t waiting = 0;
    for (Vertex v = 0; v < bound; ++v) {
      if (net_.excess(v) > 0) ++waiting;
      if (net_.excess(v) < 0) {
        distances_[v] = 0;
        ways_.push({0, v, none});
      }
    }
    Cost reached = 0;
    while (waiting > 0 && !ways_.empty()) {
      reached = ways_.least();
      const Vertex v = ways_.top().vertex;
      ways_.pop();
      if (distances_[v] != reached) continue;
      if (net_.excess(v) > 0) --waiting;
      if (!control.spend(net_.in_end(v) - net_.in_begin(v))) return Status::stopped;
      look_back(v, reached);
    }
    if (waiting > 0) return Status::infeasible;
    for (Vertex v = 0; v < bound; ++v) {
      net_.set_price(v, net_.price(v) + epsilon_ * std::min(distances_[v], reached));
    }
    return Status::optimal;
  }

  void look_back(Vertex v, Cost reached) {
    const Half* const last = net_.in_end(v);
    for (const Half* h = net_.in_begin(v); h != last; ++h) {
      if (last - h > fetch_ahead) {
        __builtin_prefetch(distances_.data() + h[fetch_ahead].other);
        net_.prefetch_price(h[fetch_ahead].other);
      }
      const Vertex w = h->other;
      if (distances_[w] <= reached) continue;
      const Cost reduced = cost_to(*h) * scale_ - net_.price(w) + net_.price(v);
      const Cost distance = reached + (reduced < 0 ? 0 : reduced / epsilon_ + 1);
      if (distance >= distances_[w]) continue;
      distances_[w] = distance;
      ways_.push({distance, w, none});
    }
  }

  // Looks for prices that make the current flow e-optimal; gives up after some work, or if there are excesses,
  // which prices cannot repair.
  bool price_refine(Control& control, std::int64_t passes = 4) {
    if (has_excess()) return false;
    const Vertex bound = net_.vertex_bound();
    std::vector<Cost> before(bound);
    for (Vertex v = 0; v < bound; ++v) before[v] = net_.price(v);
    queue_.clear();
    head_ = 0;
    is_queued_.assign(bound, 0);
    for (Vertex v = 0; v < bound; ++v) {
      if (net_.has_vertex(v)) activate(v);
    }
    std::int64_t work = passes * (net_.arcs() + net_.vertices());
    while (head_ < queue_.size() && work > 0) {
      const Vertex v = queue_[head_++];
      is_queued_[v] = 0;
      // The highest price that all outgoing halves allow.
      Cost most = net_.price(v);
      for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
        if (h->other != v) most = std::min(most, h->cost * scale_ + net_.price(h->other) + epsilon_);
      }
      work -= net_.degree(v) + 1;
      if (!control.spend(net_.degree(v))) break;
      if (most == net_.price(v)) continue;
      net_.set_price(v, most);
      for (const Half* h = net_.in_begin(v); h != net_.in_end(v); ++h) activate(h->other);
    }
    if (head_ >= queue_.size() && !has_bad_loop()) return true;
    for (Vertex v = 0; v < bound; ++v) net_.set_price(v, before[v]);
    return false;
  }

  bool has_bad_loop() const {
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
        if (h->other == v && h->cost < 0) return true;
      }
    }
    return false;
  }

  void finish(Status status) {
    const bool is_exact = status == Status::optimal && scale_ > net_.vertices();
    round_prices(is_exact ? unused_remainder() : 0);
    net_.list_unsettled();
    net_.settle_touched();
    if (!is_exact) net_.touch_all();
  }

  Cost remainder(Cost price) const { return ((price % scale_) + scale_) % scale_; }

  Cost unused_remainder() const {
    std::vector<std::uint8_t> is_taken(scale_, 0);
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      if (net_.has_vertex(v)) is_taken[remainder(net_.price(v))] = 1;
    }
    Cost shift = 0;
    while (is_taken[shift]) ++shift;
    return shift;
  }

  void round_prices(Cost shift) {
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      const Cost price = net_.price(v) - shift;
      net_.set_price(v, (price - remainder(price)) / scale_);
    }
  }

  Network& net_;
  bool tries_prices_;
  bool fits_fresh_;
  Cost alpha_;
  bool is_too_much_ = false;
  Cost scale_ = 1;
  Cost epsilon_ = 0;
  bool is_approximate_ = false;
  bool grows_ = false;
  LargeArray<std::uint32_t> cursors_;
  std::vector<std::uint8_t> is_queued_;
  std::vector<Vertex> queue_;
  std::size_t head_ = 0;
  LargeArray<Cost> distances_;
  DistanceQueue ways_;
  Approach approach_{net_};
};

}  // namespace argosy::flow
