// Placements from the flow, in one pass from the machines back to the tasks.
//
// Most tasks stay where they run: the flow that leaves their classes otherwise is what waits, and nothing else is
// examined. If that does not hold for some class, the arcs of all runs are examined.
// For the rest, units of flow carry their machines through aggregators and pools back to classes. Which of a class's
// equal tasks gets which machine does not matter, except that tasks that must leave a machine come first,
// because preempting a task costs more than keeping one waiting.
//
// Complexity.  O(classes, or runs if a task leaves, + arcs of pools with new flow + rows of the classes that change).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/network.hpp"
#include "flow/roster.hpp"

namespace argosy::flow {

// The changes: tasks with a new machine and the cost of the first arc of their path, some of which run
// elsewhere; and tasks that lose their machine.
struct Placements {
  std::vector<Row> rows;
  std::vector<Number> machines, costs;
  std::vector<Row> leaving;

  void add(Row row, Number machine, Number cost) {
    rows.push_back(row);
    machines.push_back(machine);
    costs.push_back(cost);
  }
};

class Extraction {
 public:
  explicit Extraction(Roster& roster) : roster_(roster), net_(roster.network()) {}

  Placements run() {
    find_leaving();
    find_active();
    find_arrivals();
    std::stable_sort(arrivals_.begin(), arrivals_.end(), by_class);
    std::size_t begin = 0;
    std::vector<Part> rest;
    for (const Row c : active_) {
      Part part{c, begin, begin};
      while (part.end < arrivals_.size() && arrivals_[part.end].task_class == c) ++part.end;
      begin = part.end;
      const auto [first, last] = leaving_of(c);
      // A class with a single task that gets a machine needs nothing else.
      if (classes()[C::rows][c] == 1 && part.end - part.begin == 1 && first == last) {
        const Arrival& arrival = arrivals_[part.begin];
        placements_.add(classes()[C::first][c], arrival.machine, arrival.cost);
      } else {
        rest.push_back(part);
      }
    }
    for (const Part& part : rest) place(part);
    return std::move(placements_);
  }

 private:
  using T = TaskColumn;
  using C = ClassColumn;
  using R = RunColumn;

  struct Arrival {
    Row task_class;
    Number machine;
    Cost cost;
  };
  struct Leaving {
    Row task_class, row;
  };
  struct Part {
    Row task_class;
    std::size_t begin, end;
  };
  // Units through an aggregator or a pool.
  struct Bound {
    Number pool, aggregator;
    Row task_class;
    Amount units;
    Cost cost;
  };

  static bool by_class(const Arrival& a, const Arrival& b) { return a.task_class < b.task_class; }
  const Table<C>& classes() const { return roster_.classes(); }
  const Table<T>& tasks() const { return roster_.tasks(); }

  // Whether the flow keeps all running tasks of a class in place: then the rest of it is what waits.
  bool keeps_all(Row c) const {
    if (classes()[C::rows][c] == 1) {
      // A single task may go to a machine that it prefers.
      const Row run = roster_.runs().find(c, tasks()[T::machine][classes()[C::first][c]]);
      return run >= 0 && net_.flow(static_cast<Arc>(roster_.runs().table()[R::arc][run])) == 1;
    }
    const Number waits = classes()[C::parked][c] ? 0 : classes()[C::pending][c];
    return net_.flow(static_cast<Arc>(classes()[C::pool_arc][c])) +
               net_.flow(static_cast<Arc>(classes()[C::wait_arc][c])) ==
           waits;
  }

  // Running tasks that the flow does not keep in place; the last to start are the first to go.
  void find_leaving() {
    if (roster_.runs().table().used() == 0) return;
    bool keeps = true;
    for (Row c = 0; c < classes().used() && keeps; ++c) keeps = classes()[C::running][c] == 0 || keeps_all(c);
    if (keeps) return;
    const Table<R>& runs = roster_.runs().table();
    for (Row run = 0; run < runs.used(); ++run) {
      const auto arc = static_cast<Arc>(runs[R::arc][run]);
      if (arc == none) continue;
      const Amount lacking = runs[R::tasks][run] - net_.flow(arc);
      if (lacking <= 0) continue;
      const Row c = runs[R::task_class][run];
      std::vector<Row> there;
      roster_.each_task(c, [&](Row row) {
        if (tasks()[T::state][row] != running) return;
        if (tasks()[T::machine][row] == runs[R::machine][run]) there.push_back(row);
      });
      const std::size_t kept = there.size() - std::min<std::size_t>(there.size(), lacking);
      for (std::size_t i = kept; i < there.size(); ++i) leaving_.push_back({c, there[i]});
    }
    std::stable_sort(leaving_.begin(), leaving_.end(),
                     [](const Leaving& a, const Leaving& b) { return a.task_class < b.task_class; });
  }

  std::pair<std::size_t, std::size_t> leaving_of(Row c) const {
    const auto first = std::lower_bound(leaving_.begin(), leaving_.end(), c,
                                        [](const Leaving& a, Row b) { return a.task_class < b; });
    auto last = first;
    while (last != leaving_.end() && last->task_class == c) ++last;
    return {first - leaving_.begin(), last - leaving_.begin()};
  }

  // Classes with waiting tasks that get a machine, or running tasks that leave one.
  void find_active() {
    for (const Row c : roster_.waiting_classes()) {
      const Number waits = classes()[C::parked][c] ? 0 : classes()[C::pending][c];
      if (net_.flow(static_cast<Arc>(classes()[C::wait_arc][c])) < waits) active_.push_back(c);
    }
    for (const Leaving& each : leaving_) active_.push_back(each.task_class);
    std::sort(active_.begin(), active_.end());
    active_.erase(std::unique(active_.begin(), active_.end()), active_.end());
  }

  void find_arrivals() {
    std::vector<Bound> via_aggregators, via_pools;
    for (const Row c : active_) {
      const auto vertex = static_cast<Vertex>(classes()[C::vertex][c]);
      const auto pool_arc = static_cast<Arc>(classes()[C::pool_arc][c]);
      const Number pool = classes()[C::pool][c];
      // Arcs that leave the class with flow on them.
      for (const Half* h = net_.in_begin(vertex); h != net_.in_end(vertex); ++h) {
        if (h->id & 1) continue;
        const Arc arc = h->id / 2;
        const Amount units = net_.flow(arc);
        if (arc == pool_arc) {
          via_pools.push_back({pool, none, c, units, classes()[C::pool_cost][c]});
          continue;
        }
        const Place* place = roster_.place_of(h->other);
        if (place == nullptr) continue;
        if (place->aggregator != none) {
          via_aggregators.push_back({pool, place->aggregator, c, units, net_.base_cost(arc)});
        } else if (place->machine != none && !is_run(c, place->machine, arc)) {
          for (Amount k = 0; k < units; ++k) {
            arrivals_.push_back({c, place->machine, net_.base_cost(arc)});
          }
        }
      }
    }
    share_out(via_aggregators, via_pools);
  }

  bool is_run(Row c, Number machine, Arc arc) const {
    const Row run = roster_.runs().find(c, machine);
    return run >= 0 && roster_.runs().table()[R::arc][run] == arc;
  }

  // The machines that flow through a pool leads to (the paper's listing 1): each aggregator takes over as many
  // machines from those below as it sends units there, first for the classes that go to it themselves.
  void share_out(const std::vector<Bound>& via_aggregators, const std::vector<Bound>& via_pools) {
    std::vector<Number> pools;
    for (const auto* list : {&via_aggregators, &via_pools}) {
      for (const Bound& bound : *list) pools.push_back(bound.pool);
    }
    std::sort(pools.begin(), pools.end());
    pools.erase(std::unique(pools.begin(), pools.end()), pools.end());
    for (const Number pool : pools) {
      find_reached(pool);
      std::vector<Link> links = roster_.pool(pool).links;
      std::stable_sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.to > b.to; });
      auto link = links.begin();
      for (auto number = static_cast<std::int32_t>(reached_.size()) - 2; number >= 0; --number) {
        std::vector<Number>& here = reached_[number + 1];
        std::sort(here.begin(), here.end());
        std::size_t next = 0;
        for (const Bound& bound : via_aggregators) {
          if (bound.pool == pool && bound.aggregator == number) take(bound, here, next);
        }
        for (; link != links.end() && link->to == number; ++link) {
          std::vector<Number>& above = reached_[link->from + 1];
          for (Amount left = net_.flow(link->arc); left > 0 && next < here.size(); --left) {
            above.push_back(here[next++]);
          }
        }
      }
      std::sort(reached_[0].begin(), reached_[0].end());
      std::size_t next = 0;
      for (const Bound& bound : via_pools) {
        if (bound.pool == pool) take(bound, reached_[0], next);
      }
    }
  }

  // The machines to which the pool itself (first) and each of its aggregators sends units, once per unit.
  void find_reached(Number number) {
    const PoolRow& pool = roster_.pool(number);
    reached_.assign(pool.aggregators.size() + 1, {});
    find_sent(pool.vertex, reached_[0]);
    for (std::size_t i = 0; i < pool.aggregators.size(); ++i) find_sent(pool.aggregators[i], reached_[i + 1]);
  }

  void find_sent(Vertex from, std::vector<Number>& to) const {
    for (const Half* h = net_.in_begin(from); h != net_.in_end(from); ++h) {
      if (h->id & 1) continue;
      const Place* place = roster_.place_of(h->other);
      if (place == nullptr || place->machine == none) continue;
      to.insert(to.end(), net_.flow(h->id / 2), place->machine);
    }
  }

  void take(const Bound& bound, const std::vector<Number>& machines, std::size_t& next) {
    for (Amount left = bound.units; left > 0 && next < machines.size(); --left) {
      arrivals_.push_back({bound.task_class, machines[next++], bound.cost});
    }
  }

  void place(const Part& part) {
    const Row c = part.task_class;
    std::vector<Row> going;
    const auto [first, last] = leaving_of(c);
    for (std::size_t i = first; i < last; ++i) going.push_back(leaving_[i].row);
    std::vector<Arrival> here(arrivals_.begin() + static_cast<std::ptrdiff_t>(part.begin),
                              arrivals_.begin() + static_cast<std::ptrdiff_t>(part.end));
    // A unit that leaves a machine by one arc and returns by another stays.
    std::erase_if(here, [&](const Arrival& arrival) {
      const auto same = std::find_if(going.begin(), going.end(), [&](Row row) {
        return tasks()[T::machine][row] == arrival.machine;
      });
      if (same == going.end()) return false;
      going.erase(same);
      return true;
    });
    std::size_t next = 0;
    for (; next < std::min(going.size(), here.size()); ++next) {
      placements_.add(going[next], here[next].machine, here[next].cost);
    }
    for (std::size_t i = next; i < going.size(); ++i) placements_.leaving.push_back(going[i]);
    if (next == here.size()) return;
    roster_.each_task(c, [&](Row row) {
      if (next == here.size() || tasks()[T::state][row] != pending) return;
      placements_.add(row, here[next].machine, here[next].cost);
      ++next;
    });
  }

  Roster& roster_;
  const Network& net_;
  std::vector<Leaving> leaving_;
  std::vector<Row> active_;
  std::vector<Arrival> arrivals_;
  std::vector<std::vector<Number>> reached_;
  Placements placements_;
};

}  // namespace argosy::flow
