// Restores the invariant of solvers that keep all reduced costs of residual halves at zero or more.
//
// An edit can break it only at new or changed arcs, which the network lists. Sending flow over negative halves
// repairs them, at the cost of excesses; a good initial price for a new vertex leaves few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "flow/network.hpp"

namespace argosy::flow {

// Sends flow over the halves of an arc while their reduced cost is negative.
inline void mend(Network& net, Arc a) {
  for (const HalfId id : {2 * a, 2 * a + 1}) {
    while (net.residual(id) > 0) {
      const Vertex from = net.half(id ^ 1).other, to = net.half(id).other;
      if (net.reduced(from, net.half(id)) >= 0) break;
      const std::int32_t amount = net.residual(id);
      net.push(id, amount);
      net.add_excess(from, -amount);
      net.add_excess(to, amount);
    }
  }
}

// A new vertex starts at the highest price that keeps the reduced costs of its outgoing halves at zero or more.
inline void price_fresh(Network& net) {
  const std::vector<Vertex>& fresh = net.fresh();
  for (int pass = 0; pass < 4; ++pass) {
    bool is_stable = true;
    for (std::size_t i = fresh.size(); i-- > 0;) {
      const Vertex v = fresh[i];
      if (!net.has_vertex(v)) continue;
      Cost least = infinite;
      for (const Half* h = net.begin(v); h != net.out_end(v); ++h) {
        if (h->other != v) least = std::min(least, h->cost + net.price(h->other));
      }
      if (least == infinite || least == net.price(v)) continue;
      net.set_price(v, least);
      is_stable = false;
    }
    if (is_stable) return;
  }
}

// Repairs what the network lists as touched, or everything.
inline void mend_touched(Network& net) {
  if (net.all_touched()) {
    // Vertex by vertex, in the order of memory. A push reorders: the half that is then at the same place is next.
    for (Vertex v = 0; v < net.vertex_bound(); ++v) {
      for (std::ptrdiff_t i = 0; net.begin(v) + i < net.out_end(v);) {
        const Half& half = net.begin(v)[i];
        if (net.reduced(v, half) >= 0) {
          ++i;
        } else {
          mend(net, half.id / 2);
        }
      }
    }
  } else {
    price_fresh(net);
    for (const Arc a : net.touched()) {
      if (net.has_arc(a)) mend(net, a);
    }
  }
  net.settle_touched();
}

}  // namespace argosy::flow
