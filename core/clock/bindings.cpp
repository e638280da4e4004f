// argosy._core: budgets, of which those by the clock are for worlds.
#include "bindings.hpp"
#include "clock/clock_budget.hpp"

void bind_budgets(nanobind::module_& module) {
  namespace nb = nanobind;
  using namespace nb::literals;
  using argosy::Budget;
  nb::class_<Budget>(module, "Budget")
      .def("charge", &Budget::charge, "steps"_a)
      .def("is_over", &Budget::is_over)
      .def("seconds_until", &Budget::seconds_until, "share"_a)
      .def_prop_ro("steps", &Budget::steps)
      .def_prop_ro("spent", &Budget::spent)
      .def_prop_ro("limit", &Budget::limit)
      .def_prop_ro("elapsed", &Budget::elapsed)
      .def_prop_ro("share", &Budget::share);
  nb::class_<argosy::WorkBudget, Budget>(module, "WorkBudget")
      .def(nb::init<std::int64_t>(), "limit"_a = -1);
  nb::class_<argosy::ClockBudget, Budget>(module, "ClockBudget")
      .def(nb::init<std::int64_t>(), "limit"_a = -1);
}
