// Primal-dual paths: shortest paths for all excesses at once, and as much flow as fits along them.
//
// Invariant.  No half with a residual has a negative reduced cost. A phase searches backwards from all
// deficits until it has reached every excess, and raises prices (approach.hpp): now every excess has
// a path of tight halves to a deficit. A vertex also knows how many halves its path has, of the paths of
// its distance nearly the fewest; depth-first searches over tight halves that lead to fewer send what they
// can, each half looked at once. What is left over, because others filled its paths, is for the next phase.
//
// Short paths are what makes it fast: a search that takes any tight half finds paths of a hundred halves
// where ten suffice. As in Hopcroft and Karp's matching, few phases then settle nearly everything, unless
// destinations are so scarce that prices must rise in many small steps. That shows in what a phase moves,
// and the caller decides whether to go on (`left`, `moved`).
//
// Complexity.  O(m log C) a phase, at most as many phases as units. Ford and Fulkerson's method; see Ahuja,
// Magnanti, Orlin, chapter 9.8.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/approach.hpp"
#include "flow/large_array.hpp"
#include "flow/mending.hpp"
#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class PrimalDual {
 public:
  explicit PrimalDual(Network& network) : net_(network), approach_(network) {}

  Status run(Control& control) {
    Status status = begin();
    while (status == Status::optimal && left_ > 0) {
      status = phase(control);
      if (has_drifted_) begin();
    }
    finish();
    return status;
  }

  // Phase by phase: `begin`, then `phase` while there is something `left`, then `finish`. Other solvers that
  // keep the invariant may work in between `finish` and the next `begin`.
  Status begin() {
    if (net_.total_supply() != 0) return Status::unbalanced;
    if (!net_.fits(8)) return Status::overflow;
    list_sources();
    if (has_drifted_) net_.forget_prices();
    mend_touched(net_);
    list_sources();
    return Status::optimal;
  }
  Status phase(Control& control) {
    const Status status = approach_.run(control, 1, 0);
    if (status != Status::optimal) return status;
    const bool may_go_on = augment_all(control);
    const Amount before = left_;
    list_sources();
    moved_ = before - left_;
    return may_go_on ? Status::optimal : Status::stopped;
  }
  void finish() { net_.list_unsettled(); }

  // Units of excess that are left, and that the last phase moved to deficits.
  Amount left() const { return left_; }
  Amount moved() const { return moved_; }
  const std::vector<Vertex>& sources() const { return sources_; }

 private:
  static constexpr std::int32_t dead = Approach::dead;

  void list_sources() {
    sources_.clear();
    left_ = 0;
    has_drifted_ = false;
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      has_drifted_ |= net_.price(v) > price_limit;
      if (net_.excess(v) <= 0) continue;
      sources_.push_back(v);
      left_ += net_.excess(v);
    }
  }

  // False if the work must end.
  bool augment_all(Control& control) {
    cursors_.assign(net_.vertex_bound(), 0);
    for (const Vertex source : sources_) {
      while (net_.excess(source) > 0) {
        if (!find_path(source, control)) return false;
        if (path_.empty()) break;
        augment(source);
      }
    }
    return true;
  }

  // Leaves a path of tight halves to a deficit in `path_`, or nothing. False if the work must end.
  bool find_path(Vertex source, Control& control) {
    path_.clear();
    LargeArray<std::int32_t>& hops = approach_.hops();
    if (hops[source] == dead) return true;
    for (Vertex v = source; net_.excess(v) >= 0;) {
      const Half* const first = net_.begin(v);
      const std::ptrdiff_t size = net_.out_end(v) - first;
      const std::ptrdiff_t from = cursors_[v];
      // A push reorders: the half that is then at the cursor's place is next.
      std::ptrdiff_t i = from;
      while (i < size && !(hops[first[i].other] < hops[v] && net_.reduced(v, first[i]) == 0)) ++i;
      cursors_[v] = static_cast<std::uint32_t>(i);
      if (!control.spend(i - from)) return false;
      if (i < size) {
        path_.push_back(first[i].id);
        v = first[i].other;
        continue;
      }
      hops[v] = dead;
      if (path_.empty()) return true;
      v = net_.half(path_.back() ^ 1).other;
      path_.pop_back();
    }
    return true;
  }

  void augment(Vertex source) {
    const Vertex target = net_.half(path_.back()).other;
    Amount amount = std::min(net_.excess(source), -net_.excess(target));
    for (const HalfId over : path_) amount = std::min<Amount>(amount, net_.residual(over));
    const auto moved = static_cast<std::int32_t>(amount);
    for (const HalfId over : path_) net_.push(over, moved);
    net_.move_excess(source, -moved);
    net_.move_excess(target, moved);
  }

  Network& net_;
  Approach approach_;
  std::vector<Vertex> sources_;
  LargeArray<std::uint32_t> cursors_;
  std::vector<HalfId> path_;
  Amount left_ = 0, moved_ = 0;
  // Prices of vertices without a path to a deficit rise with every phase, forever.
  bool has_drifted_ = false;
};

}  // namespace argosy::flow
