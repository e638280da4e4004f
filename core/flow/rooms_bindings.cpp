#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "flow/pool_arcs.hpp"
#include "flow/rooms.hpp"
#include "flow/roster_arrays.hpp"

namespace nb = nanobind;

namespace argosy::flow {
namespace {

template <typename Value>
using Written = nb::ndarray<Value, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Written1 = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Terms of rows and columns: one number for all, or an array that is broadcast as NumPy does it.
class Terms {
 public:
  using Given = std::variant<std::int64_t, nb::ndarray<const std::int64_t, nb::device::cpu>>;

  Terms(const Given& given, std::size_t rows, std::size_t columns) {
    if (const auto* one = std::get_if<std::int64_t>(&given)) {
      one_ = *one;
      values_ = &one_;
      return;
    }
    const auto& array = std::get<1>(given);
    values_ = array.data();
    require(array.ndim() <= 2, "terms of more than two dimensions");
    if (array.ndim() >= 1) across_ = stride(array, array.ndim() - 1, columns);
    if (array.ndim() == 2) down_ = stride(array, 0, rows);
  }
  Terms(const Terms&) = delete;
  Terms& operator=(const Terms&) = delete;

  Number at(std::size_t row, std::size_t column) const {
    return values_[static_cast<std::int64_t>(row) * down_ + static_cast<std::int64_t>(column) * across_];
  }

 private:
  static std::int64_t stride(const nb::ndarray<const std::int64_t, nb::device::cpu>& array,
                             std::size_t axis, std::size_t count) {
    require(array.shape(axis) == count || array.shape(axis) == 1,
            "not a row for each pool and a column for each machine");
    return array.shape(axis) == 1 ? 0 : array.stride(axis);
  }

  const Number* values_;
  Number one_ = 0;
  std::int64_t down_ = 0, across_ = 0;
};

void check_terms(Number room, Cost cost, Cost step) {
  require(room >= 0 && room <= capacity_limit, "a capacity out of range");
  const Wide last = static_cast<Wide>(cost) + static_cast<Wide>(step) * room;
  require(step >= 0 && cost >= -cost_limit && last <= cost_limit, "a cost out of range");
}

Standing standing(const Roster& roster, const Matrix& free, const Flags& usable,
                  const Allowed& allowed) {
  require(free.shape(0) == roster.machines() && usable.size() == roster.machines() &&
              allowed.shape(1) == roster.machines() &&
              free.shape(1) == static_cast<std::size_t>(roster.dimensions()),
          "not a row for each machine");
  require(allowed.shape(0) >= roster.pools(), "not a row for each pool");
  return Standing{{free.data(), free.size()}, {usable.data(), usable.size()}, allowed.data(),
                  roster.machines()};
}

// Pools and machines to update, and the machines among them that are not what they were.
std::tuple<OutArray<std::int64_t>, OutArray<std::int64_t>, OutArray<std::int64_t>> look(
    Rooms& self, const Matrix& free, const Flags& usable, const Allowed& allowed) {
  self.look(standing(self.roster(), free, usable, allowed));
  return {to_numpy(self.pools()), to_numpy(self.machines()), to_numpy(self.changed())};
}

// An aggregator of every pool for each machine, or -1.
void check_above(const Roster& roster, const Numbers& above) {
  require(above.size() == roster.machines(), "not an aggregator for each machine");
  const auto [least, most] = std::minmax_element(above.data(), above.data() + above.size());
  if (above.size() == 0) return;
  require(*least >= -1, "no such aggregator");
  for (std::size_t number = 0; number < roster.pools(); ++number) {
    const auto bound = static_cast<std::int64_t>(roster.pool(static_cast<Number>(number)).aggregators.size());
    require(!roster.has_pool(static_cast<Number>(number)) || *most < bound, "no such aggregator");
  }
}

// Gives the arcs from pools to machines the room of the last look, or the `thinned` room of the same shape, and new
// costs to machines that are not what they were; arcs that lack are added. `arcs`, `rooms`, `costs` and `steps` are
// of all pools and machines, and follow.
void set_pool_arcs(Rooms& self, const Terms::Given& new_costs, const Terms::Given& new_steps,
                   const Numbers& above, const Written<std::int32_t>& arcs,
                   const Written<std::int64_t>& rooms, const Written<std::int64_t>& costs,
                   const Written<std::int64_t>& steps, const std::optional<Matrix>& thinned) {
  Roster& roster = self.roster();
  const std::size_t width = roster.machines();
  for (const std::size_t rows : {arcs.shape(0), rooms.shape(0), costs.shape(0), steps.shape(0)}) {
    require(rows >= roster.pools(), "not a row for each pool");
  }
  for (const std::size_t columns : {arcs.shape(1), rooms.shape(1), costs.shape(1), steps.shape(1)}) {
    require(columns == width, "not a column for each machine");
  }
  const std::vector<Number>&pools = self.pools(), &machines = self.machines(), &changed = self.changed();
  require(!thinned || (thinned->shape(0) == pools.size() && thinned->shape(1) == machines.size()),
          "not a row for each pool and a column for each machine");
  check_above(roster, above);
  const Terms base(new_costs, pools.size(), changed.size()), step(new_steps, pools.size(), changed.size());
  for (std::size_t i = 0; i < pools.size(); ++i) {
    require(roster.has_pool(pools[i]), "no such pool");
    const std::size_t first = static_cast<std::size_t>(pools[i]) * width;
    for (std::size_t k = 0; k < changed.size(); ++k) {
      costs.data()[first + changed[k]] = base.at(i, k);
      steps.data()[first + changed[k]] = step.at(i, k);
    }
  }
  const Number* counted = thinned ? thinned->data() : self.counted().data();
  PoolTable table{arcs.data(), rooms.data(), costs.data(), steps.data(), width};
  each_difference(pools, machines, changed, counted, table,
                  [&](std::size_t, std::size_t, std::size_t at, Number room) {
                    check_terms(room, table.costs[at], table.steps[at]);
                  });
  set_pool_rooms(roster, pools, machines, changed, span_of(above), counted, table);
}

// Gives the arcs from the machines of the last look to the sink the room that it found, and new costs. `arcs`, `rooms`,
// `costs` and `steps` are of all machines, and follow.
void set_sink_arcs(Rooms& self, const Terms::Given& new_costs, const Terms::Given& new_steps,
                   const Handles& arcs, const Written1& rooms, const Written1& costs,
                   const Written1& steps) {
  Network& net = self.roster().network();
  for (const std::size_t size : {arcs.size(), rooms.size(), costs.size(), steps.size()}) {
    require(size == self.roster().machines(), "not a number for each machine");
  }
  const std::vector<Number>& machines = self.machines();
  const Terms base(new_costs, 1, machines.size()), step(new_steps, 1, machines.size());
  // Tasks that ask for nothing fit without end; what the last of them would cost has to be a cost.
  const auto room_at = [&](std::size_t k) {
    return std::min(self.through()[k],
                    (cost_limit - base.at(0, k)) / std::max<Cost>(step.at(0, k), 1));
  };
  for (std::size_t k = 0; k < machines.size(); ++k) {
    check_terms(room_at(k), base.at(0, k), step.at(0, k));
    require(net.has_arc(arcs.data()[machines[k]]), "no such arc");
  }
  for (std::size_t k = 0; k < machines.size(); ++k) {
    const Number machine = machines[k];
    rooms.data()[machine] = room_at(k);
    costs.data()[machine] = base.at(0, k);
    steps.data()[machine] = step.at(0, k);
    net.set_arc(arcs.data()[machine], static_cast<std::int32_t>(rooms.data()[machine]),
                costs.data()[machine], steps.data()[machine]);
  }
}

}  // namespace
}  // namespace argosy::flow

void bind_rooms(nb::module_& module) {
  using namespace argosy;
  using namespace argosy::flow;
  nb::class_<Rooms>(module, "FlowRooms")
      .def(nb::init<Roster&, std::int64_t>(), nb::arg("roster"), nb::arg("slots"),
           nb::keep_alive<1, 2>())
      .def("unbar", &Rooms::unbar)
      .def("forget", &Rooms::forget)
      .def("look", &look, nb::arg("free"), nb::arg("usable"), nb::arg("allowed"))
      .def("counted",
           [](const Rooms& self) {
             return to_numpy(self.counted(), {self.pools().size(), self.machines().size()});
           })
      .def("set_pool_arcs", &set_pool_arcs, nb::arg("new_costs"), nb::arg("new_steps"),
           nb::arg("above"), nb::arg("arcs").noconvert(), nb::arg("rooms").noconvert(),
           nb::arg("costs").noconvert(), nb::arg("steps").noconvert(),
           nb::arg("thinned").none() = nb::none())
      .def("set_sink_arcs", &set_sink_arcs, nb::arg("new_costs"), nb::arg("new_steps"),
           nb::arg("arcs"), nb::arg("rooms").noconvert(), nb::arg("costs").noconvert(),
           nb::arg("steps").noconvert());
}
