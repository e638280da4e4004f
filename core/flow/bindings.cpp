#include "bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "flow/solver.hpp"

namespace nb = nanobind;

namespace argosy::flow {
namespace {

using Handles = InArray<std::int32_t>;
using Numbers = InArray<std::int64_t>;

constexpr std::int64_t alpha_limit = 1'024;

[[noreturn]] void refuse(const std::string& what, std::size_t row) {
  throw nb::value_error((what + " (row " + std::to_string(row) + ")").c_str());
}

void check_lengths(std::size_t expected, std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths) {
    if (length != expected) throw nb::value_error("the arrays differ in length");
  }
}

void check_vertices(const Network& net, const Handles& vertices) {
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (!net.has_vertex(vertices.data()[i])) refuse("no such vertex", i);
  }
}

void check_arcs(const Network& net, const Handles& arcs) {
  for (std::size_t i = 0; i < arcs.size(); ++i) {
    if (!net.has_arc(arcs.data()[i])) refuse("no such arc", i);
  }
}

void check_supplies(const Network& net, const Numbers& supplies) {
  Wide gross = net.gross_supply();
  for (std::size_t i = 0; i < supplies.size(); ++i) {
    const std::int64_t supply = supplies.data()[i];
    if (supply > supply_limit || supply < -supply_limit) refuse("a supply beyond 2^44", i);
    gross += std::abs(supply);
    if (gross > gross_limit) refuse("supplies beyond 2^60 in sum", i);
  }
}

void check_terms(const Numbers& capacities, const Numbers& costs, const Numbers& steps) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    const std::int64_t capacity = capacities.data()[i], cost = costs.data()[i];
    const std::int64_t step = steps.data()[i];
    if (capacity < 0) refuse("a capacity below 0", i);
    if (capacity > capacity_limit) refuse("a capacity beyond 2^31 - 1", i);
    if (step < 0) refuse("a cost that falls with the flow", i);
    const Wide last = static_cast<Wide>(cost) + static_cast<Wide>(step) * capacity;
    if (cost < -cost_limit || last > cost_limit) refuse("a cost beyond 2^40", i);
  }
}

std::vector<Segment> checked_segments(const Numbers& units, const Numbers& costs) {
  check_lengths(units.size(), {costs.size()});
  std::vector<Segment> segments;
  std::int64_t capacity = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::int64_t count = units.data()[i], cost = costs.data()[i];
    if (count < 1) refuse("a segment of no units", i);
    if (count > capacity_limit - capacity) refuse("a capacity beyond 2^31 - 1", i);
    if (cost > cost_limit || cost < -cost_limit) refuse("a cost beyond 2^40", i);
    if (i > 0 && cost < costs.data()[i - 1]) refuse("a cost that falls with the flow", i);
    capacity += count;
    segments.push_back(Segment{static_cast<std::int32_t>(count), cost});
  }
  return segments;
}

void check_distinct(const Handles& handles) {
  std::vector<std::int32_t> sorted(handles.data(), handles.data() + handles.size());
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw nb::value_error("a handle stands twice");
  }
}

// All of a network's handles where none are named.
template <typename Value, typename Has, typename Get>
OutArray<Value> column(std::int32_t bound, const std::optional<Handles>& handles, Has has, Get get) {
  std::vector<Value> values;
  if (handles) {
    values.reserve(handles->size());
    for (std::size_t i = 0; i < handles->size(); ++i) values.push_back(get(handles->data()[i]));
  } else {
    for (std::int32_t h = 0; h < bound; ++h) {
      if (has(h)) values.push_back(get(h));
    }
  }
  return to_numpy(std::move(values));
}

template <typename Value, typename Get>
OutArray<Value> arc_column(const Solver& self, const std::optional<Handles>& arcs, Get get) {
  const Network& net = self.network();
  if (arcs) check_arcs(net, *arcs);
  return column<Value>(net.arc_bound(), arcs, [&](Arc a) { return net.has_arc(a); }, get);
}

template <typename Value, typename Get>
OutArray<Value> vertex_column(const Solver& self, const std::optional<Handles>& vertices, Get get) {
  const Network& net = self.network();
  if (vertices) check_vertices(net, *vertices);
  return column<Value>(net.vertex_bound(), vertices, [&](Vertex v) { return net.has_vertex(v); },
                       get);
}

OutArray<std::int32_t> add_vertices(Solver& self, const Numbers& supplies) {
  Network& net = self.network();
  check_supplies(net, supplies);
  if (supplies.size() > static_cast<std::size_t>(handle_limit - net.vertex_bound())) {
    throw nb::value_error("more vertices than 2^30");
  }
  std::vector<Vertex> made;
  made.reserve(supplies.size());
  for (std::size_t i = 0; i < supplies.size(); ++i) made.push_back(net.add_vertex(supplies.data()[i]));
  return to_numpy(std::move(made));
}

OutArray<std::int32_t> add_arcs(Solver& self, const Handles& tails, const Handles& heads,
                                const Numbers& capacities, const Numbers& costs,
                                const Numbers& steps) {
  Network& net = self.network();
  const std::size_t count = tails.size();
  check_lengths(count, {heads.size(), capacities.size(), costs.size(), steps.size()});
  check_vertices(net, tails);
  check_vertices(net, heads);
  check_terms(capacities, costs, steps);
  if (count > static_cast<std::size_t>(handle_limit - net.arc_bound())) {
    throw nb::value_error("more arcs than 2^30");
  }
  net.reserve_for(tails.data(), heads.data(), count);
  std::vector<Arc> made;
  made.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(net.add_stepped_arc(tails.data()[i], heads.data()[i],
                                       static_cast<std::int32_t>(capacities.data()[i]),
                                       costs.data()[i], steps.data()[i]));
  }
  return to_numpy(std::move(made));
}

Arc add_segmented_arc(Solver& self, std::int64_t tail, std::int64_t head, const Numbers& units,
                      const Numbers& costs) {
  Network& net = self.network();
  if (!net.has_vertex(tail) || !net.has_vertex(head)) throw nb::value_error("no such vertex");
  if (net.arc_bound() >= handle_limit) throw nb::value_error("more arcs than 2^30");
  return net.add_segmented_arc(static_cast<Vertex>(tail), static_cast<Vertex>(head),
                               checked_segments(units, costs));
}

void set_arcs(Solver& self, const Handles& arcs, const Numbers& capacities, const Numbers& costs,
              const Numbers& steps) {
  Network& net = self.network();
  check_lengths(arcs.size(), {capacities.size(), costs.size(), steps.size()});
  check_arcs(net, arcs);
  check_terms(capacities, costs, steps);
  for (std::size_t i = 0; i < arcs.size(); ++i) {
    net.set_arc(arcs.data()[i], static_cast<std::int32_t>(capacities.data()[i]), costs.data()[i],
                steps.data()[i]);
  }
}

void set_supplies(Solver& self, const Handles& vertices, const Numbers& supplies) {
  Network& net = self.network();
  check_lengths(vertices.size(), {supplies.size()});
  check_vertices(net, vertices);
  check_supplies(net, supplies);
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    net.set_supply(vertices.data()[i], supplies.data()[i]);
  }
}

// The last is how many microseconds it took; negative unless the budget measures that.
std::tuple<Status, Algorithm, std::int64_t, std::int64_t> solve(
    Solver& self, Algorithm algorithm, bool warm, Budget* budget, const Stop* stop,
    bool arc_prioritisation, bool depth_first, bool price_refine, bool fresh_prices,
    bool short_searches, std::int64_t alpha) {
  if (alpha < 2 || alpha > alpha_limit) throw nb::value_error("an alpha beyond 2 to 1,024");
  nb::gil_scoped_release unlocked;
  const std::int64_t began = budget == nullptr ? -1 : budget->elapsed();
  const Outcome outcome = self.solve(algorithm, warm, budget, stop,
                                     Heuristics{arc_prioritisation, depth_first, price_refine,
                                                fresh_prices, short_searches, alpha});
  const std::int64_t took = began < 0 ? -1 : budget->elapsed() - began;
  return {outcome.status, outcome.algorithm, outcome.scans, took};
}

// The cheapest way to a target: whether there is one, its cost, the arcs looked at and its vertices.
auto cheapest_way(Solver& self, const Handles& starts, const Numbers& entries, const Handles& closed,
                  std::int64_t target) {
  const Network& net = self.network();
  check_lengths(starts.size(), {entries.size()});
  check_vertices(net, starts);
  check_vertices(net, closed);
  if (!net.has_vertex(target)) throw nb::value_error("no such vertex");
  if (!net.is_settled()) throw nb::value_error("the network has changed since it was solved");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (std::abs(entries.data()[i]) > price_limit) throw nb::value_error("an entry beyond 2^60");
  }
  const auto listed = [](const Handles& handles) {
    return std::vector<Vertex>(handles.data(), handles.data() + handles.size());
  };
  const std::vector<Cost> costs(entries.data(), entries.data() + entries.size());
  Way way = self.ways().find(listed(starts), costs, listed(closed), static_cast<Vertex>(target));
  return std::make_tuple(way.is_found, way.cost, way.scans, to_numpy(std::move(way.vertices)));
}

// The cost of the flow as text: it may be wider than 64 bits.
std::string cost_text(const Solver& self) {
  Wide cost = self.network().cost();
  const bool is_negative = cost < 0;
  std::string digits;
  do {
    const int digit = static_cast<int>(cost % 10);
    digits.insert(digits.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    cost /= 10;
  } while (cost != 0);
  return is_negative ? "-" + digits : digits;
}

}  // namespace
}  // namespace argosy::flow

void bind_flow(nb::module_& module) {
  using namespace argosy;
  using namespace argosy::flow;
  nb::enum_<Algorithm>(module, "FlowAlgorithm", nb::is_arithmetic())
      .value("AUTO", Algorithm::automatic)
      .value("LOCAL", Algorithm::local)
      .value("SHORTEST_PATHS", Algorithm::shortest_paths)
      .value("PRIMAL_DUAL", Algorithm::primal_dual)
      .value("RELAXATION", Algorithm::relaxation)
      .value("COST_SCALING", Algorithm::cost_scaling)
      .value("CYCLE_CANCELLING", Algorithm::cycle_cancelling)
      .value("RACE", Algorithm::race)
      .value("WARM_RACE", Algorithm::warm_race);
  nb::enum_<Status>(module, "FlowStatus", nb::is_arithmetic())
      .value("OPTIMAL", Status::optimal)
      .value("INFEASIBLE", Status::infeasible)
      .value("UNBALANCED", Status::unbalanced)
      .value("OVERFLOW", Status::overflow)
      .value("STOPPED", Status::stopped);
  nb::class_<Stop>(module, "FlowStop")
      .def(nb::init<>())
      .def("set", &Stop::set);
  nb::class_<Solver>(module, "FlowSolver")
      .def(nb::init<>())
      .def_prop_ro("vertices", [](const Solver& self) { return self.network().vertices(); })
      .def_prop_ro("arcs", [](const Solver& self) { return self.network().arcs(); })
      .def_prop_ro("bytes", [](const Solver& self) { return self.network().bytes(); })
      .def("cost", &cost_text)
      .def("add_vertices", &add_vertices, nb::arg("supplies"))
      .def("add_arcs", &add_arcs, nb::arg("tails"), nb::arg("heads"), nb::arg("capacities"),
           nb::arg("costs"), nb::arg("steps"))
      .def("add_segmented_arc", &add_segmented_arc, nb::arg("tail"), nb::arg("head"),
           nb::arg("units"), nb::arg("costs"))
      .def("set_arcs", &set_arcs, nb::arg("arcs"), nb::arg("capacities"), nb::arg("costs"),
           nb::arg("steps"))
      .def(
          "set_segments",
          [](Solver& self, std::int64_t arc, const Numbers& units, const Numbers& costs) {
            if (!self.network().has_arc(arc)) throw nb::value_error("no such arc");
            self.network().set_segments(static_cast<Arc>(arc), checked_segments(units, costs));
          },
          nb::arg("arc"), nb::arg("units"), nb::arg("costs"))
      .def(
          "balance",
          [](Solver& self, std::int64_t vertex) {
            Network& net = self.network();
            if (!net.has_vertex(vertex)) throw nb::value_error("no such vertex");
            const auto v = static_cast<Vertex>(vertex);
            const Amount supply = net.supply(v) - net.total_supply();
            if (supply > supply_limit || supply < -supply_limit) {
              throw nb::value_error("a supply beyond 2^44");
            }
            net.set_supply(v, supply);
          },
          nb::arg("vertex"))
      .def("set_supplies", &set_supplies, nb::arg("vertices"), nb::arg("supplies"))
      .def(
          "remove_vertices",
          [](Solver& self, const Handles& vertices, bool drain) {
            check_vertices(self.network(), vertices);
            check_distinct(vertices);
            for (std::size_t i = 0; i < vertices.size(); ++i) {
              if (drain) self.network().drain(vertices.data()[i]);
              self.network().remove_vertex(vertices.data()[i]);
            }
          },
          nb::arg("vertices"), nb::arg("drain"))
      .def(
          "remove_arcs",
          [](Solver& self, const Handles& arcs) {
            check_arcs(self.network(), arcs);
            check_distinct(arcs);
            for (std::size_t i = 0; i < arcs.size(); ++i) self.network().remove_arc(arcs.data()[i]);
          },
          nb::arg("arcs"))
      .def("solve", &solve, nb::arg("algorithm"), nb::arg("warm"),
           nb::arg("budget").none(), nb::arg("stop").none(), nb::arg("arc_prioritisation"), nb::arg("depth_first"),
           nb::arg("price_refine"), nb::arg("fresh_prices"), nb::arg("short_searches"), nb::arg("alpha"))
      .def("way", &cheapest_way, nb::arg("starts"), nb::arg("entries"), nb::arg("closed"),
           nb::arg("target"))
      .def("reset", [](Solver& self) { self.network().reset(); })
      .def("forget_prices", [](Solver& self) { self.network().forget_prices(); })
      .def("all_vertices",
           [](const Solver& self) {
             return vertex_column<std::int32_t>(self, std::nullopt, [](Vertex v) { return v; });
           })
      .def("all_arcs",
           [](const Solver& self) {
             return arc_column<std::int32_t>(self, std::nullopt, [](Arc a) { return a; });
           })
      .def("supplies",
           [](const Solver& self, const std::optional<Handles>& vertices) {
             return vertex_column<std::int64_t>(
                 self, vertices, [&](Vertex v) { return self.network().supply(v); });
           },
           nb::arg("vertices").none() = nb::none())
      .def("prices",
           [](const Solver& self, const std::optional<Handles>& vertices) {
             return vertex_column<std::int64_t>(
                 self, vertices, [&](Vertex v) { return self.network().price(v); });
           },
           nb::arg("vertices").none() = nb::none())
      .def("tails",
           [](const Solver& self, const std::optional<Handles>& arcs) {
             return arc_column<std::int32_t>(self, arcs,
                                             [&](Arc a) { return self.network().tail(a); });
           },
           nb::arg("arcs").none() = nb::none())
      .def("heads",
           [](const Solver& self, const std::optional<Handles>& arcs) {
             return arc_column<std::int32_t>(self, arcs,
                                             [&](Arc a) { return self.network().head(a); });
           },
           nb::arg("arcs").none() = nb::none())
      .def("flow",
           [](const Solver& self, std::int64_t arc) {
             if (!self.network().has_arc(arc)) throw nb::value_error("no such arc");
             return self.network().flow(static_cast<Arc>(arc));
           },
           nb::arg("arc"))
      .def("flows",
           [](const Solver& self, const std::optional<Handles>& arcs) {
             return arc_column<std::int64_t>(self, arcs,
                                             [&](Arc a) { return self.network().flow(a); });
           },
           nb::arg("arcs").none() = nb::none())
      .def("capacities",
           [](const Solver& self, const std::optional<Handles>& arcs) {
             return arc_column<std::int64_t>(self, arcs,
                                             [&](Arc a) { return self.network().capacity(a); });
           },
           nb::arg("arcs").none() = nb::none())
      .def("costs",
           [](const Solver& self, const std::optional<Handles>& arcs) {
             return arc_column<std::int64_t>(self, arcs,
                                             [&](Arc a) { return self.network().base_cost(a); });
           },
           nb::arg("arcs").none() = nb::none())
      .def("steps",
           [](const Solver& self, const std::optional<Handles>& arcs) {
             return arc_column<std::int64_t>(self, arcs,
                                             [&](Arc a) { return self.network().step(a); });
           },
           nb::arg("arcs").none() = nb::none())
      .def("segments",
           [](const Solver& self, const Handles& arcs) {
             // Flat: the row of each segment in `arcs`, its units and its cost.
             check_arcs(self.network(), arcs);
             std::vector<std::int32_t> rows;
             std::vector<std::int64_t> units, costs;
             for (std::size_t i = 0; i < arcs.size(); ++i) {
               for (const Segment& segment : self.network().segments(arcs.data()[i])) {
                 rows.push_back(static_cast<std::int32_t>(i));
                 units.push_back(segment.units);
                 costs.push_back(segment.cost);
               }
             }
             return std::make_tuple(to_numpy(std::move(rows)), to_numpy(std::move(units)),
                                    to_numpy(std::move(costs)));
           },
           nb::arg("arcs"));
}
