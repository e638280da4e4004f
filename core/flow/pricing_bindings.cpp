#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "flow/pricing.hpp"
#include "flow/roster_arrays.hpp"

namespace nb = nanobind;

namespace argosy::flow {
namespace {

void check_class(const Roster& roster, std::int64_t task_class) {
  require(roster.classes().has(task_class) &&
              roster.network().has_vertex(roster.classes()[ClassColumn::vertex][task_class]),
          "no such class");
}

void check_settled(const Roster& roster) {
  require(roster.network().is_settled(), "the network has changed since it was solved");
}

Pricing pricing(const Roster& roster, const Numbers& above, const ArcMatrix& arcs, const Matrix& rooms,
                const Matrix& costs, const Matrix& steps) {
  for (const std::size_t rows : {arcs.shape(0), rooms.shape(0), costs.shape(0), steps.shape(0)}) {
    require(rows >= roster.pools(), "not a row for each pool");
  }
  for (const std::size_t columns :
       {arcs.shape(1), rooms.shape(1), costs.shape(1), steps.shape(1), above.size()}) {
    require(columns == roster.machines(), "not a column for each machine");
  }
  return Pricing(roster, {arcs.data(), rooms.data(), costs.data(), steps.data(), roster.machines()},
                 span_of(above));
}

auto entries(const Roster& self, std::int64_t task_class, const Numbers& above, const ArcMatrix& arcs,
             const Matrix& rooms, const Matrix& costs, const Matrix& steps) {
  check_class(self, task_class);
  Entries found = pricing(self, above, arcs, rooms, costs, steps).entries(task_class);
  return std::make_tuple(to_numpy(std::move(found.machines)), to_numpy(std::move(found.costs)));
}

// How many machines the class has a path to; what the last unit from its pool to the machine costs; whether there is
// another way and what it costs, the machine that it enters, -1 if it waits, and the arcs scanned.
auto second_best(Roster& self, std::int64_t task_class, std::int64_t machine,
                 const Numbers& above, const ArcMatrix& arcs, const Matrix& rooms, const Matrix& costs,
                 const Matrix& steps) {
  check_class(self, task_class);
  check_settled(self);
  require(machine >= 0 && static_cast<std::size_t>(machine) < self.machines(), "no such machine");
  const Pricing prices = pricing(self, above, arcs, rooms, costs, steps);
  const Entries found = prices.entries(task_class);
  const Way way = prices.second(task_class, machine, found, self.ways());
  const Place* place = way.is_found ? self.place_of(way.vertices.front()) : nullptr;
  const Number second = place == nullptr ? none : place->machine;
  return std::make_tuple(found.machines.size(), prices.onward(task_class, machine), way.is_found, way.cost, second,
                         way.scans);
}

// What waiting costs a unit of the class; whether there is a way to a place and what it costs; the first machine on
// it, the first class and the last, -1 where there is none; whether a task waits at its end; and the arcs scanned.
auto price(Roster& self, std::int64_t task_class,
           const std::vector<std::pair<std::int64_t, std::int64_t>>& targets) {
  check_class(self, task_class);
  check_settled(self);
  std::vector<std::pair<Vertex, Cost>> ends;
  for (const auto& [vertex, beyond] : targets) {
    require(self.network().has_vertex(vertex), "no such vertex");
    ends.emplace_back(static_cast<Vertex>(vertex), beyond);
  }
  const PlaceWay way = way_to_place(self, self.ways(), task_class, ends);
  Number machine = none, first = none, last = none;
  bool has_job = false;
  for (std::size_t i = 1; i < way.vertices.size(); ++i) {
    const Place* place = self.place_of(way.vertices[i]);
    if (place == nullptr) continue;
    if (machine == none) machine = place->machine;
    if (first == none) first = place->task_class;
    if (place->task_class != none) last = place->task_class;
    has_job |= place->job != none;
  }
  return std::make_tuple(waiting_cost(self, task_class), way.is_found, way.cost, machine, first,
                         has_job ? last : none, way.scans);
}

}  // namespace
}  // namespace argosy::flow

void bind_pricing(nb::class_<argosy::flow::Roster>& roster) {
  using namespace argosy;
  using namespace argosy::flow;
  roster
      .def("entries", &entries, nb::arg("task_class"), nb::arg("above"), nb::arg("arcs"), nb::arg("rooms"),
           nb::arg("costs"), nb::arg("steps"))
      .def("second_best", &second_best, nb::arg("task_class"), nb::arg("machine"),
           nb::arg("above"), nb::arg("arcs"), nb::arg("rooms"), nb::arg("costs"), nb::arg("steps"))
      .def("price", &price, nb::arg("task_class"), nb::arg("targets"))
      .def(
          "last_task",
          [](const Roster& self, std::int64_t task_class, const Numbers& where, std::int64_t machine) {
            check_class(self, task_class);
            require(where.size() == static_cast<std::size_t>(self.tasks().used()), "not a machine for each row");
            return last_task(self, task_class, span_of(where), machine);
          },
          nb::arg("task_class"), nb::arg("where"), nb::arg("machine"));
}
