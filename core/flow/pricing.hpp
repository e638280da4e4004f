// Prices of places: what a place costs a waiting task, and what the second-best place would have cost a placed one.
//
// Both are cheapest ways through the residual network (ways.hpp), which include what other tasks would have to do. A
// class enters a machine directly, if it prefers it, or through its pool or one of the pool's aggregators at the cost
// of the cheapest path there.
//
// Complexity.  O(machines + links of the pool) and a search. Costs of paths fit, because those of arcs do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "flow/network.hpp"
#include "flow/roster.hpp"
#include "flow/ways.hpp"

namespace argosy::flow {

// An arc that a class has for itself, other than those of its runs. The place is a machine, or -1 - aggregator.
struct Preference {
  Arc arc;
  Number place;
  Cost cost;
};

inline std::vector<Preference> preferences_of(const Roster& roster, Row task_class) {
  std::vector<Preference> found;
  const Network& net = roster.network();
  const auto vertex = static_cast<Vertex>(roster.classes()[ClassColumn::vertex][task_class]);
  for (const Half* h = net.begin(vertex); h != net.end(vertex); ++h) {
    if (h->id & 1) continue;
    const Place* place = roster.place_of(h->other);
    if (place == nullptr || (place->machine == none && place->aggregator == none)) continue;
    const Arc arc = h->id / 2;
    const Row run = place->machine == none ? -1 : roster.runs().find(task_class, place->machine);
    if (run >= 0 && roster.runs().table()[RunColumn::arc][run] == arc) continue;
    found.push_back({arc, place->machine == none ? -1 - place->aggregator : place->machine, net.base_cost(arc)});
  }
  return found;
}

// The machines that a class has a path to, ascending, and the cost of the cheapest to each.
struct Entries {
  std::vector<Number> machines;
  std::vector<Cost> costs;
};

// For all pools and machines: the arcs, how many units each takes, and what they cost: unit number j costs
// costs + steps x j.
struct PoolCosts {
  const Arc* arcs;
  const Number *rooms, *costs, *steps;
  std::size_t machines;
};

class Pricing {
 public:
  using C = ClassColumn;

  // `above` is the aggregator that leads to each machine, -1 if its pool does.
  Pricing(const Roster& roster, const PoolCosts& table, std::span<const Number> above)
      : roster_(roster), net_(roster.network()), table_(table), above_(above) {}

  Entries entries(Row task_class) const {
    const Number number = roster_.classes()[C::pool][task_class];
    const Cost own = roster_.classes()[C::pool_cost][task_class];
    const std::vector<Preference> wanted = preferences_of(roster_, task_class);
    std::vector<Cost> last(table_.machines, far);
    for (std::size_t machine = 0; machine < table_.machines; ++machine) {
      const std::size_t at = index(number, machine);
      if (table_.arcs[at] == none || table_.rooms[at] <= 0) continue;
      const Amount flow = net_.flow(table_.arcs[at]);
      if (flow < table_.rooms[at]) last[machine] = table_.costs[at] + table_.steps[at] * flow;
    }
    std::vector<Cost> costs(table_.machines, far);
    reach(number, none, own, last, costs);
    for (const Preference& each : wanted) {
      if (each.place >= 0) {
        costs[each.place] = std::min(costs[each.place], each.cost);
      } else {
        reach(number, -1 - each.place, each.cost, last, costs);
      }
    }
    Entries found;
    for (std::size_t machine = 0; machine < costs.size(); ++machine) {
      if (costs[machine] >= far) continue;
      found.machines.push_back(static_cast<Number>(machine));
      found.costs.push_back(costs[machine]);
    }
    return found;
  }

  // The cost of the last unit from the class's pool to the machine; 0 if it went there directly.
  Cost onward(Row task_class, Number machine) const {
    for (const Preference& each : preferences_of(roster_, task_class)) {
      if (each.place == machine && net_.flow(each.arc) > 0) return 0;
    }
    const std::size_t at = index(roster_.classes()[C::pool][task_class], static_cast<std::size_t>(machine));
    const Amount flow = table_.arcs[at] == none ? 0 : net_.flow(table_.arcs[at]);
    return table_.costs[at] + table_.steps[at] * std::max<Amount>(0, flow - 1);
  }

  // The cheapest way of a unit of the class that does not enter at `machine`, to the room that the unit has there. It
  // may start with waiting.
  Way second(Row task_class, Number machine, const Entries& entries, Ways& ways) const {
    std::vector<Vertex> starts;
    std::vector<Cost> costs;
    for (std::size_t i = 0; i < entries.machines.size(); ++i) {
      if (entries.machines[i] == machine) continue;
      starts.push_back(roster_.machine_vertex(entries.machines[i]));
      costs.push_back(entries.costs[i]);
    }
    starts.push_back(roster_.job(roster_.classes()[C::job][task_class]).vertex);
    costs.push_back(roster_.classes()[C::wait_cost][task_class]);
    const auto own = static_cast<Vertex>(roster_.classes()[C::vertex][task_class]);
    return ways.find(starts, costs, {own}, roster_.machine_vertex(machine));
  }

 private:
  static constexpr Cost far = Cost{1} << 50;

  std::size_t index(Number pool, std::size_t machine) const {
    return static_cast<std::size_t>(pool) * table_.machines + machine;
  }

  // Lowers `costs` to what it costs to reach each machine by way of an aggregator of the pool, or the pool itself
  // (`none`), which is reached at `begin`; `last` is the cost of the last arc to each machine.
  void reach(Number number, Number aggregator, Cost begin, const std::vector<Cost>& last,
             std::vector<Cost>& costs) const {
    const PoolRow& pool = roster_.pool(number);
    std::vector<Cost> at(pool.aggregators.size() + 1, far);
    at[static_cast<std::size_t>(aggregator + 1)] = 0;
    std::vector<Link> links = pool.links;
    std::stable_sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.from < b.from; });
    for (const Link& link : links) {
      at[link.to + 1] = std::min(at[link.to + 1], at[link.from + 1] + net_.base_cost(link.arc));
    }
    for (std::size_t machine = 0; machine < costs.size(); ++machine) {
      const Cost there = at[static_cast<std::size_t>(above_[machine] + 1)] + last[machine];
      if (there < far) costs[machine] = std::min(costs[machine], there + begin);
    }
  }

  const Roster& roster_;
  const Network& net_;
  PoolCosts table_;
  std::span<const Number> above_;
};

// The cheapest way of one more unit of the class to one of the targets, each with a cost beyond it, that avoids the
// vertex where its own job waits.
struct PlaceWay {
  bool is_found = false;
  Cost cost = 0;
  std::int64_t scans = 0;
  std::vector<Vertex> vertices;
};

inline PlaceWay way_to_place(const Roster& roster, Ways& ways, Row task_class,
                             std::span<const std::pair<Vertex, Cost>> targets) {
  PlaceWay best;
  const auto vertex = static_cast<Vertex>(roster.classes()[ClassColumn::vertex][task_class]);
  const Vertex waiting = roster.job(roster.classes()[ClassColumn::job][task_class]).vertex;
  for (const auto& [target, beyond] : targets) {
    Way way = ways.find({vertex}, {0}, {waiting}, target);
    best.scans += way.scans;
    if (!way.is_found || (best.is_found && way.cost + beyond >= best.cost)) continue;
    best.is_found = true;
    best.cost = way.cost + beyond;
    best.vertices = std::move(way.vertices);
  }
  return best;
}

// What a unit of the class that has no machine costs; more if the flow preempts running tasks of this class, which
// would get their machines back first.
inline Cost waiting_cost(const Roster& roster, Row task_class) {
  using C = ClassColumn;
  const Table<C>& classes = roster.classes();
  Cost cost = classes[C::wait_cost][task_class] + roster.job(classes[C::job][task_class]).cost;
  const auto arc = static_cast<Arc>(classes[C::wait_arc][task_class]);
  if (roster.network().flow(arc) > classes[C::pending][task_class]) cost += classes[C::preemption][task_class];
  return cost;
}

// The row of the class's last task on a machine, or on any machine if there is none; -1 if none has a machine. `where`
// is the machine of every task, by row.
inline Row last_task(const Roster& roster, Row task_class, std::span<const Number> where, Number machine) {
  Row any = -1, there = -1;
  roster.each_task(task_class, [&](Row row) {
    if (where[row] < 0) return;
    any = row;
    if (where[row] == machine) there = row;
  });
  return there >= 0 ? there : any;
}

}  // namespace argosy::flow
