// The arcs from pools to machines, directly or from one of the pool's aggregators, in bulk.
//
// An arc without capacity keeps its costs in the network, because no flow can use it. O(pools x machines given), but the network is only
// looked at where something differs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/roster.hpp"

namespace argosy::flow {

// For all pools and machines: the arcs, how many units each takes, and what they cost: unit number j costs
// costs + steps x j. Costs are those of the machine as it is, whether there is room or not.
struct PoolTable {
  Arc* arcs;
  Number* rooms;
  const Number* costs;
  const Number* steps;
  std::size_t machines;
};

// Running tasks: the order in which they came is the order in which their machine filled up, so each run costs what
// the next unit of its pool costs without it and those after it. Of equal tasks, the last to come is the first to
// move, and every further one gains less.
inline void set_run_terms(Roster& roster, std::span<const Number> pools,
                          std::span<const Number> machines, const PoolTable& table) {
  const Table<RunColumn>& runs = roster.runs().table();
  for (const Number machine : machines) {
    const std::vector<Row>& there = roster.runs().on(machine);
    Number later = 0;
    for (auto run = there.rbegin(); run != there.rend(); ++run) {
      const Number pool = roster.classes()[ClassColumn::pool][runs[RunColumn::task_class][*run]];
      if (!std::binary_search(pools.begin(), pools.end(), pool)) continue;
      const std::size_t at = static_cast<std::size_t>(pool) * table.machines + machine;
      const Number step = table.steps[at], own = step * runs[RunColumn::tasks][*run];
      const bool is_direct = runs[RunColumn::is_direct][*run] != 0;
      roster.set_onward(*run, is_direct ? 0 : table.costs[at] - later - own, is_direct ? 0 : step);
      later += own;
    }
  }
}

// Calls visit(i, k, at, room) for pool number i and machine number k of those given, which stand at `at` in the table,
// where the room is not what it was or the machine is among the `changed`. All are in order of their numbers.
template <typename Visit>
void each_difference(std::span<const Number> pools, std::span<const Number> machines,
                     std::span<const Number> changed, const Number* rooms, const PoolTable& table, Visit visit) {
  for (std::size_t i = 0; i < pools.size(); ++i) {
    auto next = changed.begin();
    for (std::size_t k = 0; k < machines.size(); ++k) {
      const std::size_t at = static_cast<std::size_t>(pools[i]) * table.machines + machines[k];
      const Number room = rooms[i * machines.size() + k];
      const bool has_changed = next != changed.end() && *next == machines[k];
      if (has_changed) ++next;
      if (has_changed || table.rooms[at] != room) visit(i, k, at, room);
    }
  }
}

// The pools and machines are in order of their numbers; `above` is the aggregator that leads to each machine, -1 if its
// pool does. `rooms` has a row for each of these pools and a column for each of these machines. Machines that are not
// among the `changed` have the tasks and costs that they had.
inline void set_pool_rooms(Roster& roster, std::span<const Number> pools,
                           std::span<const Number> machines, std::span<const Number> changed,
                           std::span<const Number> above, const Number* rooms, PoolTable& table) {
  struct New {
    Vertex tail, head;
    std::size_t at;
  };
  Network& net = roster.network();
  std::vector<New> added;
  each_difference(pools, machines, changed, rooms, table,
                  [&](std::size_t i, std::size_t k, std::size_t at, Number room) {
    const Arc arc = table.arcs[at];
    if (arc == none) {
      if (room == 0) return;
      const PoolRow& pool = roster.pool(pools[i]);
      const Number aggregator = above[machines[k]];
      const Vertex tail = aggregator == none ? pool.vertex : pool.aggregators[aggregator];
      table.rooms[at] = room;
      added.push_back({tail, roster.machine_vertex(machines[k]), at});
      return;
    }
    table.rooms[at] = room;
    if (room > 0) {
      net.set_arc(arc, static_cast<std::int32_t>(room), table.costs[at], table.steps[at]);
    } else if (net.capacity(arc) > 0) {
      net.set_arc(arc, 0, net.base_cost(arc), net.step(arc));
    }
  });
  std::vector<Vertex> tails, heads;
  for (const New& arc : added) {
    tails.push_back(arc.tail);
    heads.push_back(arc.head);
  }
  net.reserve_for(tails.data(), heads.data(), added.size());
  for (const New& arc : added) {
    table.arcs[arc.at] =
        net.add_stepped_arc(arc.tail, arc.head, static_cast<std::int32_t>(table.rooms[arc.at]),
                            table.costs[arc.at], table.steps[arc.at]);
  }
  set_run_terms(roster, pools, changed, table);
}

}  // namespace argosy::flow
