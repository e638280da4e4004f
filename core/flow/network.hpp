// A residual network that is edited in place, and keeps its flow and prices between edits.
//
// Problem.  Vertices i have a supply b(i) (negative: demand), arcs (i, j) a capacity u >= 0 and a cost
// c. Wanted is a flow 0 <= f <= u that leaves b(i) at every vertex and has the least sum of c f. An arc
// may be convex: its cost per unit rises with its flow, in segments, which stands for parallel arcs.
//
// Notation.  Each arc a has two halves: 2a leads from tail to head at cost c with residual u - f, 2a + 1
// from head to tail at cost -c with residual f. With prices p, the reduced cost of a half (i, j) is
// c - p(i) + p(j). A flow is optimal iff no half with a residual has a negative reduced cost.
// excess(i) = b(i) + inflow - outflow; a pseudo-flow respects capacities but not yet all excesses.
//
// Layout.  The halves of a vertex are neighbours, sorted by what they can carry (halves.hpp), so that no
// search looks at an arc it cannot use. 32 bytes for two halves, 8 for residuals, 8 for places: 48 bytes
// an arc, and some room to grow.
//
// Complexity.  Adding or removing an arc, a new cost or capacity, and a push are O(1) (amortised where
// a vertex outgrows its range); removing a vertex takes its degree; the cost of the flow is kept.
//
// Numbers.  Capacities and flows of one arc are below 2^31. Costs are below 2^40 in magnitude, and
// solvers refuse (`Status::overflow`) when largest cost x vertices would pass 2^60, which bounds all
// prices and distances. Supplies are below 2^44, and 2^60 in sum; excesses are 64 bits wide; the cost of
// the whole flow is kept in 128 bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "flow/convex.hpp"
#include "flow/halves.hpp"
#include "flow/large_array.hpp"

namespace argosy::flow {

class Network {
 public:
  // An arc as it is in a network that is made at once.
  struct Row {
    Vertex tail, head;
    std::int32_t capacity, flow;
    Cost cost;
  };

  Network() = default;
  // With a flow and prices under which no residual half has a negative reduced cost.
  Network(LargeArray<Amount> supplies, const std::vector<Row>& rows, LargeArray<Cost> prices)
      : alive_(supplies.size(), 1), supplies_(std::move(supplies)), prices_(std::move(prices)) {
    excesses_ = supplies_;
    alive_vertices_ = static_cast<std::int64_t>(supplies_.size());
    alive_arcs_ = static_cast<std::int64_t>(rows.size());
    for (const Amount supply : supplies_) {
      total_supply_ += supply;
      gross_supply_ += std::abs(supply);
    }
    residuals_.reserve(2 * rows.size());
    std::vector<Placed> placed;
    placed.reserve(2 * rows.size());
    for (const Row& row : rows) {
      const auto id = static_cast<HalfId>(residuals_.size());
      residuals_.push_back(row.capacity - row.flow);
      residuals_.push_back(row.flow);
      placed.push_back({row.tail, group_of(id), Half{row.cost, row.head, id}});
      placed.push_back({row.head, group_of(id + 1), Half{-row.cost, row.tail, id + 1}});
      excesses_[row.tail] -= row.flow;
      excesses_[row.head] += row.flow;
      cost_ += static_cast<Wide>(row.cost) * row.flow;
      note_cost(row.cost);
    }
    halves_.fill(supplies_.size(), placed);
    list_unsettled();
  }

  std::int64_t vertices() const { return alive_vertices_; }
  std::int64_t arcs() const { return alive_arcs_; }
  // One past the largest handle ever given out.
  Vertex vertex_bound() const { return halves_.bound(); }
  Arc arc_bound() const { return static_cast<Arc>(residuals_.size() / 2); }
  bool has_vertex(std::int64_t v) const { return v >= 0 && v < vertex_bound() && alive_[v]; }
  bool has_arc(std::int64_t a) const { return a >= 0 && a < arc_bound() && halves_.has(static_cast<HalfId>(2 * a)); }

  Vertex add_vertex(Amount supply) {
    Vertex v;
    if (!free_vertices_.empty()) {
      v = free_vertices_.back();
      free_vertices_.pop_back();
    } else {
      v = vertex_bound();
      halves_.add_vertex();
      alive_.push_back(0);
      supplies_.push_back(0);
      excesses_.push_back(0);
      prices_.push_back(0);
    }
    alive_[v] = 1;
    prices_[v] = 0;
    ++alive_vertices_;
    fresh_.push_back(v);
    set_supply(v, supply);
    return v;
  }

  void remove_vertex(Vertex v) {
    while (degree(v) > 0) remove_arc(end(v)[-1].id / 2);
    set_supply(v, 0);
    halves_.clear(v);
    alive_[v] = 0;
    --alive_vertices_;
    free_vertices_.push_back(v);
  }

  // Removes the flow that leaves v along its path to a demand, so that no deficit stays in between. Paths that
  // are long, or hard to find among many arcs, are left.
  void drain(Vertex v) {
    for (Amount left = supplies_[v]; left > 0;) {
      std::vector<Arc> way;
      Amount amount = left;
      Vertex at = v;
      for (Arc a; way.size() < longest_way && (at == v || supplies_[at] >= 0); at = head(a)) {
        a = arc_with_flow(at);
        if (a == none) break;
        amount = std::min(amount, flow(a));
        way.push_back(a);
      }
      if (way.empty() || supplies_[at] >= 0) return;
      for (const Arc a : way) {
        take_flow(a, amount);
        touch(a);
      }
      add_excess(v, amount);
      add_excess(at, -amount);
      left -= amount;
    }
  }

  void set_supply(Vertex v, Amount supply) {
    const Amount change = supply - supplies_[v];
    gross_supply_ += std::abs(supply) - std::abs(supplies_[v]);
    supplies_[v] = supply;
    total_supply_ += change;
    add_excess(v, change);
  }

  Arc add_arc(Vertex tail, Vertex head, std::int32_t capacity, Cost cost) {
    const Arc a = new_arc();
    residuals_[2 * a] = capacity;
    note_cost(cost);
    halves_.insert(tail, Half{cost, head, 2 * a});
    halves_.insert(head, Half{-cost, tail, 2 * a + 1});
    regroup(2 * a);
    touch(a);
    return a;
  }

  // An arc whose unit number k (from 0) costs base + step k.
  Arc add_stepped_arc(Vertex tail, Vertex head, std::int32_t capacity, Cost base, Cost step) {
    if (step == 0) return add_arc(tail, head, capacity, base);
    const Arc a = add_arc(tail, head, 0, base);
    make_convex(a, Convex{base, step, capacity, 0, {}});
    return a;
  }

  Arc add_segmented_arc(Vertex tail, Vertex head, std::vector<Segment> segments) {
    const Arc a = add_arc(tail, head, 0, segments.empty() ? 0 : segments.front().cost);
    make_convex(a, segmented(std::move(segments)));
    return a;
  }

  void remove_arc(Arc a) {
    const Vertex from = tail(a), to = head(a);
    clear_flow(a);
    if (is_convex(a)) drop_convex(a);
    // Without flow or residual, a half is in the last group, from which it can be removed.
    residuals_[2 * a] = residuals_[2 * a + 1] = 0;
    regroup(2 * a);
    halves_.erase(from, 2 * a);
    halves_.erase(to, 2 * a + 1);
    --alive_arcs_;
    free_arcs_.push_back(a);
  }

  // Gives an arc new terms and keeps as much of its flow as fits. Equal terms are not a change.
  void set_arc(Arc a, std::int32_t capacity, Cost base, Cost step) {
    if (has_terms(a, capacity, base, step)) return;
    const auto kept = static_cast<std::int32_t>(std::min<Amount>(flow(a), capacity));
    if (step == 0 && !is_convex(a)) {
      cut_flow(a, kept);
      set_linear(a, capacity, base);
      return;
    }
    clear_flow(a);
    if (is_convex(a)) drop_convex(a);
    if (step == 0) {
      set_linear(a, capacity, base);
    } else {
      make_convex(a, Convex{base, step, capacity, 0, {}});
    }
    force(a, kept);
  }

  void set_segments(Arc a, std::vector<Segment> segments) {
    Convex terms = segmented(std::move(segments));
    const auto kept = static_cast<std::int32_t>(std::min<Amount>(flow(a), terms.capacity));
    clear_flow(a);
    if (is_convex(a)) drop_convex(a);
    make_convex(a, std::move(terms));
    force(a, kept);
  }

  Vertex tail(Arc a) const { return half(2 * a + 1).other; }
  Vertex head(Arc a) const { return half(2 * a).other; }
  Amount flow(Arc a) const { return is_convex(a) ? convex(a).flow : residuals_[2 * a + 1]; }
  Amount capacity(Arc a) const {
    return is_convex(a) ? convex(a).capacity : Amount{residuals_[2 * a]} + residuals_[2 * a + 1];
  }
  Cost base_cost(Arc a) const { return is_convex(a) ? convex(a).cost_of(0) : half(2 * a).cost; }
  Cost step(Arc a) const { return is_convex(a) ? convex(a).step : 0; }
  // The segments of an arc in order; for a stepped arc, one per unit.
  std::vector<Segment> segments(Arc a) const {
    if (!is_convex(a)) return {Segment{static_cast<std::int32_t>(capacity(a)), base_cost(a)}};
    const Convex& terms = convex(a);
    if (!terms.segments.empty() || terms.capacity == 0) return terms.segments;
    std::vector<Segment> each;
    for (std::int32_t k = 0; k < terms.capacity; ++k) each.push_back(Segment{1, terms.cost_of(k)});
    return each;
  }
  bool is_convex(Arc a) const { return !convex_of_.empty() && convex_of_[a] != none; }
  bool has_convex_arcs() const { return convex_arcs_ > 0; }

  Amount supply(Vertex v) const { return supplies_[v]; }
  Amount excess(Vertex v) const { return excesses_[v]; }
  Amount total_supply() const { return total_supply_; }
  // The sum of all supplies and demands without signs: below 2^60, so that no sum of them overflows.
  Amount gross_supply() const { return gross_supply_; }
  Cost price(Vertex v) const { return prices_[v]; }
  void set_price(Vertex v, Cost price) { prices_[v] = price; }
  void prefetch_price(Vertex v) const { __builtin_prefetch(prices_.data() + v); }
  Wide cost() const { return cost_; }
  bool fits(Cost scale = 1) const {
    return static_cast<Wide>(largest_cost_) * (alive_vertices_ + 1) * scale <= price_limit;
  }
  Cost largest_cost() const { return largest_cost_; }

  const Half& half(HalfId id) const { return halves_[id]; }
  std::int32_t residual(HalfId id) const { return residuals_[id]; }
  Cost reduced(Vertex from, const Half& half) const {
    return half.cost - prices_[from] + prices_[half.other];
  }

  // Halves that can carry flow out of v; halves whose mates can carry flow into v; all of them.
  const Half* begin(Vertex v) const { return halves_.begin(v); }
  const Half* out_end(Vertex v) const { return halves_.end(v, 1); }
  const Half* in_begin(Vertex v) const { return halves_.end(v, 0); }
  const Half* in_end(Vertex v) const { return halves_.end(v, 2); }
  const Half* end(Vertex v) const { return halves_.end(v, 3); }
  std::int32_t degree(Vertex v) const { return halves_.degree(v); }

  // Sends `amount` <= residual(id) over a half. The caller updates excesses.
  void push(HalfId id, std::int32_t amount) {
    cost_ += static_cast<Wide>(half(id).cost) * amount;
    if (is_convex(id / 2)) {
      convex_[convex_of_[id / 2]].flow += id & 1 ? -amount : amount;
      refresh(id / 2);
      return;
    }
    residuals_[id] -= amount;
    residuals_[id ^ 1] += amount;
    if (residuals_[id] == 0 || residuals_[id ^ 1] == amount) regroup(id);
  }
  void add_excess(Vertex v, Amount change) {
    if (excesses_[v] == 0 && change != 0) unsettled_.push_back(v);
    excesses_[v] += change;
  }

  // For solvers that keep their own lists, and call `list_unsettled` at the end.
  void move_excess(Vertex v, Amount change) { excesses_[v] += change; }
  void list_unsettled() {
    unsettled_.clear();
    for (Vertex v = 0; v < vertex_bound(); ++v) {
      if (excesses_[v] != 0) unsettled_.push_back(v);
    }
  }

  // What changed since a solver last took these lists.
  std::vector<Vertex>& fresh() { return fresh_; }
  std::vector<Vertex>& unsettled() { return unsettled_; }
  std::vector<Arc>& touched() { return touched_; }
  // Nothing is known about reduced costs: every arc must be examined.
  bool all_touched() const { return all_touched_; }
  void touch_all() {
    all_touched_ = true;
    touched_ = {};
  }
  // Whether nothing was edited since a solver found the optimum.
  bool is_settled() const {
    return !all_touched_ && touched_.empty() && fresh_.empty() && unsettled_.empty();
  }
  void settle_touched() {
    all_touched_ = false;
    touched_.clear();
    fresh_ = {};
  }

  // Removes all flow and sets all prices to zero.
  void reset() {
    for (Arc a = 0; a < arc_bound(); ++a) {
      if (has_arc(a) && flow(a) != 0) take_flow(a, flow(a));
    }
    std::fill(prices_.begin(), prices_.end(), 0);
    unsettled_.clear();
    for (Vertex v = 0; v < vertex_bound(); ++v) {
      excesses_[v] = supplies_[v];
      if (excesses_[v] != 0) unsettled_.push_back(v);
    }
    touch_all();
  }

  // Keeps the flow, whose reduced costs become unknown.
  void forget_prices() {
    std::fill(prices_.begin(), prices_.end(), 0);
    touch_all();
  }

  // Sets the flow of an arc to `amount` <= capacity, and updates the excesses at its ends.
  void set_flow(Arc a, std::int32_t amount) {
    cut_flow(a, amount);
    force(a, amount);
  }

  std::size_t bytes() const {
    const auto of = [](const auto& list) { return list.capacity() * sizeof(list[0]); };
    std::size_t sum = halves_.bytes() + of(residuals_) + of(supplies_) + of(excesses_) +
                      of(prices_) + of(alive_) + of(fresh_) + of(unsettled_) + of(touched_) +
                      of(free_vertices_) + of(free_arcs_) + of(convex_of_) + of(convex_) +
                      of(free_convex_);
    for (const Convex& terms : convex_) sum += of(terms.segments);
    return sum;
  }

  // Makes room for many arcs, so that adding them one by one moves nothing.
  void reserve_for(const Vertex* tails, const Vertex* heads, std::size_t count) {
    std::vector<Vertex> ends(tails, tails + count);
    ends.insert(ends.end(), heads, heads + count);
    std::sort(ends.begin(), ends.end());
    halves_.reserve_pool(2 * count);
    grow(residuals_, residuals_.size() + 2 * count);
    for (std::size_t i = 0; i < ends.size();) {
      std::size_t next = i;
      while (next < ends.size() && ends[next] == ends[i]) ++next;
      halves_.reserve(ends[i], static_cast<std::uint32_t>(next - i));
      i = next;
    }
  }

 private:
  static constexpr std::size_t longest_way = 64;
  static constexpr std::ptrdiff_t longest_look = 1024;

  const Convex& convex(Arc a) const { return convex_[convex_of_[a]]; }

  bool has_terms(Arc a, std::int32_t width, Cost base, Cost rise) const {
    if (is_convex(a)) {
      const Convex& terms = convex(a);
      return rise != 0 && terms.segments.empty() && terms.capacity == width && terms.base == base &&
             terms.step == rise;
    }
    return rise == 0 && capacity(a) == width && half(2 * a).cost == base;
  }

  Arc new_arc() {
    ++alive_arcs_;
    if (!free_arcs_.empty()) {
      const Arc a = free_arcs_.back();
      free_arcs_.pop_back();
      return a;
    }
    const Arc a = arc_bound();
    grow(residuals_, residuals_.size() + 2);
    residuals_.resize(residuals_.size() + 2, 0);
    halves_.add_ids(2);
    if (!convex_of_.empty()) convex_of_.push_back(none);
    return a;
  }

  void note_cost(Cost cost) { largest_cost_ = std::max(largest_cost_, cost < 0 ? -cost : cost); }

  void touch(Arc a) {
    if (all_touched_) return;
    if (touched_.size() > 1024 + residuals_.size() / 16) return touch_all();
    touched_.push_back(a);
  }

  void set_linear(Arc a, std::int32_t capacity, Cost cost) {
    const std::int32_t kept = residuals_[2 * a + 1];
    cost_ += static_cast<Wide>(cost - half(2 * a).cost) * kept;
    note_cost(cost);
    halves_[2 * a].cost = cost;
    halves_[2 * a + 1].cost = -cost;
    residuals_[2 * a] = capacity - kept;
    regroup(2 * a);
    touch(a);
  }

  void make_convex(Arc a, Convex terms) {
    if (convex_of_.empty()) convex_of_.resize(residuals_.size() / 2, none);
    std::int32_t slot;
    if (!free_convex_.empty()) {
      slot = free_convex_.back();
      free_convex_.pop_back();
      convex_[slot] = std::move(terms);
    } else {
      slot = static_cast<std::int32_t>(convex_.size());
      convex_.push_back(std::move(terms));
    }
    convex_of_[a] = slot;
    ++convex_arcs_;
    const Convex& made = convex_[slot];
    if (made.capacity > 0) {
      note_cost(made.cost_of(0));
      note_cost(made.cost_of(made.capacity - 1));
    }
    refresh(a);
    touch(a);
  }

  void drop_convex(Arc a) {
    convex_[convex_of_[a]] = Convex{0, 0, 0, 0, {}};
    free_convex_.push_back(convex_of_[a]);
    convex_of_[a] = none;
    --convex_arcs_;
    residuals_[2 * a] = residuals_[2 * a + 1] = 0;
    regroup(2 * a);
  }

  // Costs and residuals of a convex arc's halves: of the next unit forwards, and of the last one backwards.
  void refresh(Arc a) {
    const Convex& terms = convex(a);
    const std::int32_t flow = terms.flow;
    std::int32_t ahead = 0, behind = 0;
    if (flow < terms.capacity) {
      const auto [i, before] = terms.at(flow);
      ahead = terms.segments.empty() ? 1 : before + terms.segments[i].units - flow;
      halves_[2 * a].cost = terms.cost_of(flow);
    }
    if (flow > 0) {
      behind = terms.segments.empty() ? 1 : flow - terms.at(flow - 1).second;
      halves_[2 * a + 1].cost = -terms.cost_of(flow - 1);
    }
    residuals_[2 * a] = ahead;
    residuals_[2 * a + 1] = behind;
    regroup(2 * a);
  }

  // An arc with flow that leaves v; `none` if a short search finds none.
  Arc arc_with_flow(Vertex v) const {
    const Half* const stop = in_begin(v) + std::min(in_end(v) - in_begin(v), longest_look);
    for (const Half* h = in_begin(v); h != stop; ++h) {
      if ((h->id & 1) == 0) return h->id / 2;
    }
    return none;
  }

  // Moves flow over the arc in pieces of equal cost.
  void take_flow(Arc a, Amount amount) {
    while (amount > 0) {
      const auto piece = static_cast<std::int32_t>(std::min<Amount>(amount, residuals_[2 * a + 1]));
      push(2 * a + 1, piece);
      amount -= piece;
    }
  }
  void force(Arc a, std::int32_t amount) {
    Amount missing = amount - flow(a);
    if (missing <= 0) return;
    add_excess(tail(a), -missing);
    add_excess(head(a), missing);
    while (missing > 0) {
      const auto piece = static_cast<std::int32_t>(std::min<Amount>(missing, residuals_[2 * a]));
      push(2 * a, piece);
      missing -= piece;
    }
  }
  void cut_flow(Arc a, Amount most) {
    const Amount over = flow(a) - most;
    if (over <= 0) return;
    take_flow(a, over);
    add_excess(tail(a), over);
    add_excess(head(a), -over);
  }
  void clear_flow(Arc a) { cut_flow(a, 0); }

  int group_of(HalfId id) const {
    const bool out = residuals_[id] > 0, in = residuals_[id ^ 1] > 0;
    return out ? (in ? 1 : 0) : (in ? 2 : 3);
  }

  // Moves both halves of an arc into the groups that their residuals require.
  void regroup(HalfId id) {
    halves_.regroup(half(id ^ 1).other, id, group_of(id));
    halves_.regroup(half(id).other, id ^ 1, group_of(id ^ 1));
  }

  Halves halves_;
  LargeArray<std::int32_t> residuals_;  // of each half
  std::vector<std::uint8_t> alive_;
  LargeArray<Amount> supplies_, excesses_;
  LargeArray<Cost> prices_;
  std::vector<Vertex> free_vertices_, fresh_, unsettled_;
  std::vector<Arc> free_arcs_, touched_;
  std::vector<std::int32_t> convex_of_, free_convex_;
  std::vector<Convex> convex_;
  std::int64_t alive_vertices_ = 0, alive_arcs_ = 0, convex_arcs_ = 0;
  Amount total_supply_ = 0, gross_supply_ = 0;
  Cost largest_cost_ = 0;
  Wide cost_ = 0;
  bool all_touched_ = false;
};

}  // namespace argosy::flow
