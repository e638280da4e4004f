// The arcs from pools to machines, directly or from one of the pool's aggregators, in bulk.
//
// An arc without capacity keeps its other terms, because no flow can use it. O(pools x machines given).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/roster.hpp"

namespace argosy::flow {

// A matrix whose rows or columns may all be equal.
struct Strided {
  const Number* data;
  std::int64_t row, column;

  Number operator()(std::size_t i, std::size_t k) const {
    return data[static_cast<std::int64_t>(i) * row + static_cast<std::int64_t>(k) * column];
  }
};

// For some pools (rows) and machines (columns): unit number j costs costs + steps x j.
struct PoolTerms {
  Strided rooms, costs, steps;
};

// For all pools and machines: the arcs, and their terms as last set.
struct PoolTable {
  Arc* arcs;
  Number* rooms;
  Number* costs;
  Number* steps;
  std::size_t machines;
};

// Running tasks: the order in which they came is the order in which their machine filled up, so each run costs what
// the next unit of its pool costs without it and those after it. Of equal tasks, the last to come is the first to
// move, and every further one gains less.
inline void set_run_terms(Roster& roster, std::span<const Number> pools,
                          std::span<const Number> machines, const PoolTerms& terms) {
  const Table<RunColumn>& runs = roster.runs().table();
  for (std::size_t k = 0; k < machines.size(); ++k) {
    const std::vector<Row>& there = roster.runs().on(machines[k]);
    Number later = 0;
    for (auto run = there.rbegin(); run != there.rend(); ++run) {
      const Number pool = roster.classes()[ClassColumn::pool][runs[RunColumn::task_class][*run]];
      const auto at = std::lower_bound(pools.begin(), pools.end(), pool);
      if (at == pools.end() || *at != pool) continue;
      const auto i = static_cast<std::size_t>(at - pools.begin());
      const Number step = terms.steps(i, k), own = step * runs[RunColumn::tasks][*run];
      const bool is_direct = runs[RunColumn::is_direct][*run] != 0;
      roster.set_onward(*run, is_direct ? 0 : terms.costs(i, k) - later - own, is_direct ? 0 : step);
      later += own;
    }
  }
}

// The pools are in order of their numbers; `above` is the aggregator that leads to each machine, -1 if its pool does.
inline void set_pool_terms(Roster& roster, std::span<const Number> pools,
                           std::span<const Number> machines, std::span<const Number> above,
                           const PoolTerms& terms, PoolTable& table) {
  struct New {
    Vertex tail, head;
    std::size_t i, k, at;
  };
  Network& net = roster.network();
  std::vector<New> added;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const PoolRow& pool = roster.pool(pools[i]);
    for (std::size_t k = 0; k < machines.size(); ++k) {
      const std::size_t at = static_cast<std::size_t>(pools[i]) * table.machines + machines[k];
      const Number room = terms.rooms(i, k);
      const Arc arc = table.arcs[at];
      if (arc == none) {
        if (room == 0) continue;
        const Number aggregator = above[machines[k]];
        const Vertex tail = aggregator == none ? pool.vertex : pool.aggregators[aggregator];
        added.push_back({tail, roster.machine_vertex(machines[k]), i, k, at});
        continue;
      }
      table.rooms[at] = room;
      if (room > 0) {
        table.costs[at] = terms.costs(i, k);
        table.steps[at] = terms.steps(i, k);
      }
      net.set_arc(arc, static_cast<std::int32_t>(room), table.costs[at], table.steps[at]);
    }
  }
  std::vector<Vertex> tails, heads;
  for (const New& arc : added) {
    tails.push_back(arc.tail);
    heads.push_back(arc.head);
  }
  net.reserve_for(tails.data(), heads.data(), added.size());
  for (const New& arc : added) {
    table.rooms[arc.at] = terms.rooms(arc.i, arc.k);
    table.costs[arc.at] = terms.costs(arc.i, arc.k);
    table.steps[arc.at] = terms.steps(arc.i, arc.k);
    table.arcs[arc.at] =
        net.add_stepped_arc(arc.tail, arc.head, static_cast<std::int32_t>(table.rooms[arc.at]),
                            table.costs[arc.at], table.steps[arc.at]);
  }
  set_run_terms(roster, pools, machines, terms);
}

}  // namespace argosy::flow
