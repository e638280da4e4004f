// argosy._core: budgets, of which those by the clock are for worlds.
//
// Engines hold budgets, so how much of one is spent is not among its methods: `spent_share` and `seconds_until`
// are for solvers.
#include "bindings.hpp"
#include "clock/clock_budget.hpp"

void bind_budgets(nanobind::module_& module) {
  namespace nb = nanobind;
  using namespace nb::literals;
  using argosy::Budget;
  nb::class_<Budget>(module, "Budget")
      .def("charge", &Budget::charge, "steps"_a)
      .def("is_over", &Budget::is_over)
      .def_prop_ro("steps", &Budget::steps);
  nb::class_<argosy::WorkBudget, Budget>(module, "WorkBudget")
      .def(nb::init<std::int64_t>(), "limit"_a = -1)
      .def_prop_ro("limit", &argosy::WorkBudget::limit);
  nb::class_<argosy::ClockBudget, Budget>(module, "ClockBudget")
      .def(nb::init<std::int64_t, bool>(), "limit"_a = -1, nb::kw_only(), "measures"_a = true);
  module.def("spent_share", &Budget::share, "budget"_a);
  module.def("seconds_until", &Budget::seconds_until, "budget"_a, "share"_a);
}
