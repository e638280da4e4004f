#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "random.hpp"

namespace nb = nanobind;

void bind_random(nb::module_& module) {
  using argosy::Random;
  nb::class_<Random>(module, "Random")
      .def(nb::init<std::uint64_t>(), nb::arg("seed"))
      .def("child", [](const Random& self, const std::string& name) { return self.child(name); },
           nb::arg("name"))
      .def("bits", &Random::bits)
      .def("below",
           [](Random& self, std::int64_t n) {
             if (n < 1) throw nb::value_error("below() needs a bound of at least 1");
             return self.below(static_cast<std::uint64_t>(n));
           },
           nb::arg("n"))
      .def("integers",
           [](Random& self, std::int64_t count, std::int64_t n) {
             if (count < 0 || n < 1) throw nb::value_error("integers() needs a bound of at least 1");
             std::vector<std::int64_t> drawn(static_cast<std::size_t>(count));
             for (auto& value : drawn) {
               value = static_cast<std::int64_t>(self.below(static_cast<std::uint64_t>(n)));
             }
             return argosy::to_numpy(std::move(drawn));
           },
           nb::arg("count"), nb::arg("n"))
      .def("uniform", &Random::uniform)
      .def("exponential", &Random::exponential)
      .def("exponentials",
           [](Random& self, std::int64_t count) {
             if (count < 0) throw nb::value_error("exponentials() needs a count of at least 0");
             nb::list drawn;
             for (std::int64_t i = 0; i < count; ++i) drawn.append(self.exponential());
             return drawn;
           },
           nb::arg("count"))
      .def("normal", &Random::normal)
      .def("bounded_pareto",
           [](Random& self, double low, double high, double alpha) {
             if (!(low > 0 && low < high && alpha > 0)) {
               throw nb::value_error("bounded_pareto() needs 0 < low < high and alpha > 0");
             }
             return self.bounded_pareto(low, high, alpha);
           },
           nb::arg("low"), nb::arg("high"), nb::arg("alpha"));
  module.def(
      "philox_block",
      [](std::uint64_t counter, std::uint64_t key) {
        const auto block = argosy::philox_block(counter, key);
        return std::make_tuple(block[0], block[1], block[2], block[3]);
      },
      nb::arg("counter"), nb::arg("key"));
  module.def("exact_exp", &argosy::exact_exp, nb::arg("x"));
  module.def("exact_log", [](double x) {
    if (!(x > 0)) throw nb::value_error("exact_log() needs a positive number");
    return argosy::exact_log(x);
  }, nb::arg("x"));
}
