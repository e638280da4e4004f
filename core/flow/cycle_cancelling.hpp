// Cycle cancelling (Klein 1967): a feasible flow first, then less cost around negative cycles.
//
// The flow is made feasible by shortest augmenting paths in arcs (Edmonds and Karp). Negative cycles are
// found in the graph of parents of a label-correcting search from everywhere (Bellman and Ford, Moore);
// all that are there are cancelled, and the search begins again. When it ends without one, its distances
// are prices. It starts from any flow that is there.
//
// Complexity.  O(n m^2 C U): for small networks, and as the plainest of the solvers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class CycleCancelling {
 public:
  explicit CycleCancelling(Network& network) : net_(network) {}

  Status run(Control& control) {
    if (net_.total_supply() != 0) return Status::unbalanced;
    if (!net_.fits(4)) return Status::overflow;
    Status status = make_feasible(control);
    if (status == Status::optimal) status = cancel_all(control);
    net_.list_unsettled();
    net_.settle_touched();
    if (status != Status::optimal) net_.touch_all();
    return status;
  }

 private:
  Status make_feasible(Control& control) {
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      while (net_.has_vertex(v) && net_.excess(v) > 0) {
        const Status status = move_excess(v, control);
        if (status != Status::optimal) return status;
      }
    }
    return Status::optimal;
  }

  // Breadth-first to the next deficit.
  Status move_excess(Vertex source, Control& control) {
    parents_.assign(net_.vertex_bound(), none);
    std::vector<std::uint8_t> is_seen(net_.vertex_bound(), 0);
    std::vector<Vertex> queue{source};
    is_seen[source] = 1;
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const Vertex v = queue[head];
      if (net_.excess(v) < 0) {
        augment(source, v);
        return Status::optimal;
      }
      if (!control.spend(net_.degree(v))) return Status::stopped;
      for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
        if (is_seen[h->other]) continue;
        is_seen[h->other] = 1;
        parents_[h->other] = h->id;
        queue.push_back(h->other);
      }
    }
    return Status::infeasible;
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

  Status cancel_all(Control& control) {
    for (;;) {
      cancel_loops();
      switch (search(control)) {
        case Found::stopped:
          return Status::stopped;
        case Found::nothing:
          for (Vertex v = 0; v < net_.vertex_bound(); ++v) net_.set_price(v, -distances_[v]);
          return Status::optimal;
        case Found::cycles:
          break;
      }
    }
  }

  void cancel_loops() {
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      for (std::ptrdiff_t i = 0; net_.begin(v) + i < net_.out_end(v);) {
        const Half half = net_.begin(v)[i];
        if (half.other == v && half.cost < 0) {
          net_.push(half.id, net_.residual(half.id));
        } else {
          ++i;
        }
      }
    }
  }

  enum class Found { nothing, cycles, stopped };

  // Corrects labels until they are right, or until the parents form a cycle, which is negative.
  Found search(Control& control) {
    const Vertex bound = net_.vertex_bound();
    distances_.assign(bound, 0);
    parents_.assign(bound, none);
    std::vector<std::uint8_t> is_queued(bound, 1);
    std::vector<Vertex> queue, next;
    for (Vertex v = 0; v < bound; ++v) {
      if (net_.has_vertex(v)) queue.push_back(v);
    }
    while (!queue.empty()) {
      next.clear();
      for (const Vertex v : queue) {
        is_queued[v] = 0;
        if (!control.spend(net_.degree(v))) return Found::stopped;
        for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
          const Cost there = distances_[v] + h->cost;
          if (there >= distances_[h->other] || h->other == v) continue;
          distances_[h->other] = there;
          parents_[h->other] = h->id;
          if (!is_queued[h->other]) {
            is_queued[h->other] = 1;
            next.push_back(h->other);
          }
        }
      }
      if (cancel_cycles()) return Found::cycles;
      queue.swap(next);
    }
    return Found::nothing;
  }

  // Walks the parents of every vertex once; cancels each cycle found.
  bool cancel_cycles() {
    std::vector<Vertex> walks(net_.vertex_bound(), none);
    bool is_any = false;
    for (Vertex start = 0; start < net_.vertex_bound(); ++start) {
      Vertex v = start;
      while (walks[v] == none && parents_[v] != none) {
        walks[v] = start;
        v = net_.half(parents_[v] ^ 1).other;
      }
      if (walks[v] == start && parents_[v] != none) is_any |= cancel(v);
    }
    return is_any;
  }

  bool cancel(Vertex start) {
    Amount amount = capacity_limit;
    Cost cost = 0;
    Vertex v = start;
    do {
      amount = std::min<Amount>(amount, net_.residual(parents_[v]));
      cost += net_.half(parents_[v]).cost;
      v = net_.half(parents_[v] ^ 1).other;
    } while (v != start);
    if (amount == 0 || cost >= 0) return false;
    do {
      const HalfId over = parents_[v];
      v = net_.half(over ^ 1).other;
      net_.push(over, static_cast<std::int32_t>(amount));
    } while (v != start);
    return true;
  }

  Network& net_;
  std::vector<HalfId> parents_;
  std::vector<Cost> distances_;
};

}  // namespace argosy::flow
