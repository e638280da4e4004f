// The path and cost of one more unit of flow.
//
// Problem.  Given an optimal flow with its prices, find the cheapest way through the residual network from
// one of several vertices, each entered at a cost of its own, to a target, past vertices that are closed.
// Prices alone bound that cost: they are exact only where the way is tight.
//
// Method.  Reduced costs of residual halves are not negative, so Dijkstra's search does it; from both
// ends, always at the end with less work so far. A way of reduced length d from s to t costs
// d + p(s) - p(t). Nothing of the network changes.
//
// Complexity.  O(arcs within the balls searched x log of the largest cost), never more than two searches
// of the whole network. Numbers: the network `fits`, or it would not have been solved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/network.hpp"
#include "flow/search.hpp"

namespace argosy::flow {

struct Way {
  bool is_found = false;
  Cost cost = 0;
  std::int64_t scans = 0;
  std::vector<Vertex> vertices;  // from its start to the target
};

class Ways {
 public:
  explicit Ways(const Network& network) : net_(network) {}

  Way find(const std::vector<Vertex>& starts, const std::vector<Cost>& entries,
           const std::vector<Vertex>& closed, Vertex target) {
    Way way;
    if (starts.empty()) return way;
    is_closed_.assign(net_.vertex_bound(), 0);
    for (const Vertex v : closed) is_closed_[v] = 1;
    Cost least = infinite;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      least = std::min(least, entries[i] + net_.price(starts[i]));
    }
    from_.begin();
    to_.begin();
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (!is_closed_[starts[i]]) from_.label(starts[i], entries[i] + net_.price(starts[i]) - least, none);
    }
    if (!is_closed_[target]) to_.label(target, 0, none);
    const auto [length, meeting] = meet();
    way.scans = from_.work() + to_.work();
    if (length == infinite) return way;
    way.is_found = true;
    way.cost = length + least - net_.price(target);
    // The forward search lists its vertices from the meeting point back to the start.
    way.vertices.push_back(meeting);
    from_.trace(meeting, [&](HalfId over) { way.vertices.push_back(net_.half(over ^ 1).other); });
    std::reverse(way.vertices.begin(), way.vertices.end());
    to_.trace(meeting, [&](HalfId over) { way.vertices.push_back(net_.half(over).other); });
    return way;
  }

 private:
  struct Meeting {
    Cost length;
    Vertex vertex;
  };

  Meeting meet() {
    Meeting best{infinite, none};
    const auto offer = [&](Vertex v) {
      if (!from_.has_seen(v) || !to_.has_seen(v)) return;
      const Cost length = from_.distance(v) + to_.distance(v);
      if (length < best.length) best = {length, v};
    };
    for (;;) {
      const Cost ahead = from_.radius(), behind = to_.radius();
      if (ahead == infinite || behind == infinite || ahead + behind >= best.length) return best;
      // A vertex that starts one search may be seen by the other before it is scanned.
      offer(from_.next());
      offer(to_.next());
      const bool is_ahead =
          from_.work() + from_.next_degree() < to_.work() + to_.next_degree();
      if (is_ahead) {
        from_.scan([&](Vertex w, Cost there, HalfId over) {
          if (is_closed_[w] || there >= best.length) return true;
          from_.label(w, there, over);
          offer(w);
          return true;
        });
      } else {
        to_.scan([&](Vertex w, Cost there, HalfId over) {
          if (is_closed_[w] || there >= best.length) return true;
          to_.label(w, there, over);
          offer(w);
          return true;
        });
      }
    }
  }

  const Network& net_;
  Search<true> from_{net_};
  Search<false> to_{net_};
  std::vector<std::uint8_t> is_closed_;
};

}  // namespace argosy::flow
