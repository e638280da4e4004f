// Relaxation: dual ascent over sets of vertices (Bertsekas and Tseng 1988), with arc prioritisation.
//
// Invariant.  No half with a residual has a negative reduced cost. From a vertex with excess a set S
// grows over tight halves (reduced cost zero). If the excess in S is more than all tight halves out of S
// can carry, these are filled and the prices in S rise until another half is tight: the dual cost rises
// by the difference. Otherwise S takes in another vertex, until one has a deficit, and the excess moves
// there along the tree.
//
// Arc prioritisation (Gog et al. 2016): a half that leads to a deficit is taken at once. As published, S grows
// breadth-first otherwise; depth-first is faster.
//
// Complexity.  Pseudo-polynomial, O(m^3 C U^2); fast where destinations are not contended for. An
// infeasible network lets prices rise for ever: past the range they could have, reachability decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/mending.hpp"
#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class Relaxation {
 public:
  Relaxation(Network& network, bool prioritise, bool depth_first)
      : net_(network), prioritise_(prioritise), depth_first_(depth_first) {}

  Status run(Control& control) {
    if (net_.total_supply() != 0) return Status::unbalanced;
    if (!net_.fits(8)) return Status::overflow;
    mend_touched(net_);
    marks_.assign(net_.vertex_bound(), 0);
    parents_.assign(net_.vertex_bound(), none);
    ceiling_ = highest_price() + (net_.vertices() + 1) * net_.largest_cost();
    net_.list_unsettled();
    std::vector<Vertex> sources;
    sources.swap(net_.unsettled());
    Status status = Status::optimal;
    // Vertices that get an excess in an ascent are appended while the list is traversed.
    for (std::size_t i = 0; i < sources.size() && status == Status::optimal; ++i) {
      while (net_.excess(sources[i]) > 0 && status == Status::optimal) {
        status = relax(sources[i], sources, control);
      }
    }
    net_.list_unsettled();
    return status;
  }

 private:
  struct Candidate {
    HalfId over;
    Vertex to;
  };

  Cost highest_price() const {
    Cost highest = 0;
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) highest = std::max(highest, net_.price(v));
    return highest;
  }

  bool is_inside(Vertex v) const { return marks_[v] == round_; }

  // Grows one set until the excess of `source` has moved or prices have risen.
  Status relax(Vertex source, std::vector<Vertex>& sources, Control& control) {
    ++round_;
    inside_.clear();
    candidates_.clear();
    first_ = 0;
    tight_ = 0;
    excess_ = 0;
    Vertex target = take_in(source, none);
    for (;;) {
      if (!control.spend(net_.degree(inside_.back()))) return Status::stopped;
      if (target != none) {
        augment(source, target);
        return Status::optimal;
      }
      if (excess_ > tight_) return ascend(sources);
      HalfId over = none;
      Vertex to = none;
      while (over == none) {
        const Candidate next = depth_first_ ? candidates_.back() : candidates_[first_];
        depth_first_ ? candidates_.pop_back() : static_cast<void>(++first_);
        if (is_inside(next.to)) continue;
        over = next.over;
        to = next.to;
      }
      if (net_.excess(to) < 0) {
        parents_[to] = over;
        target = to;
      } else {
        target = take_in(to, over);
      }
    }
  }

  // Adds a vertex to the set; returns a deficit that a tight half leads to, if prioritised and there is one.
  Vertex take_in(Vertex v, HalfId over) {
    for (const Half* h = net_.in_begin(v); h != net_.in_end(v); ++h) {
      if (!is_inside(h->other)) continue;
      const Half& mate = net_.half(h->id ^ 1);
      if (net_.reduced(h->other, mate) == 0) tight_ -= net_.residual(mate.id);
    }
    marks_[v] = round_;
    parents_[v] = over;
    inside_.push_back(v);
    excess_ += net_.excess(v);
    for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
      if (is_inside(h->other) || net_.reduced(v, *h) != 0) continue;
      if (prioritise_ && net_.excess(h->other) < 0) {
        parents_[h->other] = h->id;
        return h->other;
      }
      tight_ += net_.residual(h->id);
      candidates_.push_back({h->id, h->other});
    }
    return none;
  }

  void augment(Vertex source, Vertex target) {
    Amount amount = std::min(net_.excess(source), -net_.excess(target));
    for (Vertex v = target; v != source; v = net_.half(parents_[v] ^ 1).other) {
      amount = std::min<Amount>(amount, net_.residual(parents_[v]));
    }
    const auto moved = static_cast<std::int32_t>(amount);
    for (Vertex v = target; v != source;) {
      const HalfId over = parents_[v];
      v = net_.half(over ^ 1).other;
      net_.push(over, moved);
    }
    net_.move_excess(source, -moved);
    net_.move_excess(target, moved);
  }

  // Fills the tight halves out of the set and raises its prices to the next ones.
  Status ascend(std::vector<Vertex>& sources) {
    Cost least = infinite;
    for (const Vertex v : inside_) {
      // A push reorders: the half that is then at the same place is next.
      for (std::ptrdiff_t i = 0; net_.begin(v) + i < net_.out_end(v);) {
        const Half half = net_.begin(v)[i];
        const Cost reduced = net_.reduced(v, half);
        if (is_inside(half.other) || reduced > 0) {
          if (!is_inside(half.other)) least = std::min(least, reduced);
          ++i;
          continue;
        }
        const std::int32_t amount = net_.residual(half.id);
        net_.push(half.id, amount);
        net_.move_excess(v, -amount);
        const Amount before = net_.excess(half.other);
        net_.move_excess(half.other, amount);
        if (before <= 0 && before + amount > 0) sources.push_back(half.other);
      }
    }
    for (const Vertex v : inside_) {
      if (net_.excess(v) > 0) sources.push_back(v);
    }
    if (least == infinite) return Status::infeasible;
    Cost highest = 0;
    for (const Vertex v : inside_) {
      net_.set_price(v, net_.price(v) + least);
      highest = std::max(highest, net_.price(v));
    }
    if (highest > ceiling_) {
      if (is_cut_off()) return Status::infeasible;
      ceiling_ = 2 * highest;
      if (ceiling_ > price_limit) return Status::overflow;
    }
    return Status::optimal;
  }

  // Whether some excess cannot reach any deficit.
  bool is_cut_off() const {
    std::vector<std::uint8_t> reaches(net_.vertex_bound(), 0);
    std::vector<Vertex> stack;
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      if (net_.excess(v) < 0) {
        reaches[v] = 1;
        stack.push_back(v);
      }
    }
    while (!stack.empty()) {
      const Vertex v = stack.back();
      stack.pop_back();
      for (const Half* h = net_.in_begin(v); h != net_.in_end(v); ++h) {
        if (reaches[h->other]) continue;
        reaches[h->other] = 1;
        stack.push_back(h->other);
      }
    }
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      if (net_.excess(v) > 0 && !reaches[v]) return true;
    }
    return false;
  }

  Network& net_;
  bool prioritise_;
  bool depth_first_;
  std::vector<std::uint32_t> marks_;  // the round in which a vertex was in the set
  std::vector<HalfId> parents_;
  std::vector<Vertex> inside_;
  std::vector<Candidate> candidates_;
  std::size_t first_ = 0;
  std::uint32_t round_ = 0;
  Amount excess_ = 0;  // of the set
  Amount tight_ = 0;   // residual of tight halves that leave the set
  Cost ceiling_ = 0;
};

}  // namespace argosy::flow
