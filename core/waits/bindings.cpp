#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "waits/wait_view.hpp"

namespace nb = nanobind;

namespace {

using namespace argosy;

template <typename T>
std::span<const T> span_of(const InArray<T>& array) {
  return {array.data(), array.size()};
}

template <typename T>
std::span<const T> span_of(const std::optional<InArray<T>>& array) {
  return array ? span_of(*array) : std::span<const T>{};
}

// A report about a machine that the view has not learnt of is left out when it is due, unless the view has
// learnt of it by then. Only a view that keeps tasks can hear that one is nowhere (-1).
void check_machines(const WaitView& view, std::span<const std::int32_t> machines) {
  for (const std::int32_t machine : machines) {
    if (machine < (view.is_published() ? 0 : -1)) {
      throw nb::value_error("unknown machine number");
    }
  }
}

// In the order of WaitState's members.
using Columns =
    std::tuple<InArray<std::int32_t>, InArray<std::int64_t>, InArray<std::int64_t>,
               InArray<std::int64_t>, InArray<std::uint8_t>, InArray<std::int64_t>,
               InArray<std::uint32_t>, InArray<std::int64_t>, InArray<std::int32_t>,
               InArray<std::uint16_t>, InArray<std::uint8_t>, InArray<std::int64_t>>;

template <typename T>
std::vector<T> copy_of(const InArray<T>& array) {
  return {array.data(), array.data() + array.size()};
}

auto columns_of_times(const std::vector<std::pair<std::int64_t, std::int64_t>>& rows) {
  std::vector<std::int64_t> tasks, times;
  for (const auto& [task, time] : rows) {
    tasks.push_back(task);
    times.push_back(time);
  }
  return std::make_tuple(to_numpy(std::move(tasks)), to_numpy(std::move(times)));
}

void bind_state(nb::module_& module) {
  nb::class_<WaitState>(module, "WaitState")
      .def_prop_ro("jobs", [](const WaitState& self) { return self.jobs.size(); })
      .def("__eq__", [](const WaitState& self, const WaitState& other) { return self == other; },
           nb::arg("other"), nb::is_operator())
      .def("columns",
           [](const WaitState& self) {
             WaitState copy = self;
             return std::make_tuple(
                 to_numpy(std::move(copy.shapes)), to_numpy(std::move(copy.requests)),
                 to_numpy(std::move(copy.jobs)), to_numpy(std::move(copy.totals)),
                 to_numpy(std::move(copy.over)), to_numpy(std::move(copy.entries)),
                 to_numpy(std::move(copy.indices)), to_numpy(std::move(copy.work)),
                 to_numpy(std::move(copy.machines)), to_numpy(std::move(copy.task_shapes)),
                 to_numpy(std::move(copy.versions)), to_numpy(std::move(copy.busy)));
           })
      .def_static(
          "from_columns",
          [](const Columns& columns) {
            return std::apply(
                [](const auto&... column) {
                  WaitState state{copy_of(column)...};
                  if (!state.is_sound()) throw nb::value_error("these columns are no state");
                  return state;
                },
                columns);
          },
          nb::arg("columns"));
}

}  // namespace

void bind_waits(nb::module_& module) {
  bind_state(module);
  nb::class_<WaitView>(module, "WaitView")
      .def(nb::init<bool, std::int64_t, bool, std::int64_t>(), nb::arg("published") = false,
           nb::arg("lag") = 0, nb::arg("plain") = false, nb::arg("cost") = 0)
      .def_prop_ro("machines", &WaitView::machines)
      .def_prop_ro("waiting", &WaitView::waiting)
      .def_prop_ro("blocked", &WaitView::blocked)
      .def(
          "learn",
          [](WaitView& self, InArray<std::int64_t> capacity, InArray<std::uint8_t> open) {
            self.learn(span_of(capacity), span_of(open));
          },
          nb::arg("capacity"), nb::arg("open"))
      .def(
          "know_shape",
          [](WaitView& self, std::int32_t shape, InArray<std::int64_t> request) {
            self.know_shape(shape, span_of(request));
          },
          nb::arg("shape"), nb::arg("request"))
      .def(
          "choose",
          [](WaitView& self, InArray<std::int64_t> tasks, std::int64_t total, std::int32_t shape,
             std::int64_t estimate, std::int64_t now, Random& random, std::int64_t set,
             std::optional<InArray<std::uint8_t>> members,
             std::optional<InArray<std::uint8_t>> near, std::int64_t far) {
            auto chosen = self.choose(span_of(tasks), total, shape, estimate, now, random, set,
                                      span_of(members), span_of(near), far);
            return std::make_tuple(to_numpy(std::move(chosen.machines)),
                                   to_numpy(std::move(chosen.versions)), chosen.feasible,
                                   chosen.score, chosen.second, chosen.second_score);
          },
          nb::arg("tasks"), nb::arg("total"), nb::arg("shape"), nb::arg("estimate"),
          nb::arg("now"), nb::arg("random"), nb::arg("set") = 0,
          nb::arg("members") = nb::none(), nb::arg("near") = nb::none(), nb::arg("far") = 0)
      .def(
          "post_placed",
          [](WaitView& self, std::int64_t due, std::int64_t now, InArray<std::int64_t> tasks,
             InArray<std::uint8_t> versions, InArray<std::int32_t> machines, std::int64_t estimate,
             std::int32_t shape, std::int64_t since, bool is_per_task) {
            check_machines(self, span_of(machines));
            if (tasks.size() != versions.size() || tasks.size() != machines.size()) {
              throw nb::value_error("columns of different lengths");
            }
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              self.post({due, tasks.data()[i], estimate, since, machines.data()[i], shape,
                         versions.data()[i], i == 0 || is_per_task},
                        now);
            }
          },
          nb::arg("due"), nb::arg("now"), nb::arg("tasks"), nb::arg("versions"),
          nb::arg("machines"), nb::arg("estimate"), nb::arg("shape"), nb::arg("since"),
          nb::arg("is_per_task") = false)
      .def(
          "post_ended",
          [](WaitView& self, std::int64_t due, std::int64_t now, InArray<std::int64_t> tasks,
             InArray<std::int32_t> machines, InArray<std::int64_t> estimates,
             InArray<std::int32_t> shapes, InArray<std::int64_t> started) {
            check_machines(self, span_of(machines));
            for (const std::size_t size :
                 {machines.size(), estimates.size(), shapes.size(), started.size()}) {
              if (size != tasks.size()) throw nb::value_error("columns of different lengths");
            }
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              self.post({due, tasks.data()[i], estimates.data()[i], started.data()[i],
                         machines.data()[i], shapes.data()[i], Ledger::ended},
                        now);
            }
          },
          nb::arg("due"), nb::arg("now"), nb::arg("tasks"), nb::arg("machines"),
          nb::arg("estimates"), nb::arg("shapes"), nb::arg("started"))
      .def("expect", &WaitView::expect, nb::arg("job"), nb::arg("total"))
      .def("settle", &WaitView::settle, nb::arg("now"))
      .def("occupy", &WaitView::occupy, nb::arg("until"))
      .def("record_times", &WaitView::record_times)
      .def("take_times", [](WaitView& self) { return columns_of_times(self.take_times()); })
      .def("times_to_come", [](const WaitView& self) { return columns_of_times(self.times_to_come()); })
      .def(
          "undo",
          [](WaitView& self, InArray<std::int64_t> tasks) {
            std::vector<std::uint8_t> versions;
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              versions.push_back(self.undo(tasks.data()[i]));
            }
            return to_numpy(std::move(versions));
          },
          nb::arg("tasks"))
      .def("empty", &WaitView::empty, nb::arg("machine"))
      .def("block", &WaitView::block, nb::arg("machine"))
      .def("work",
           [](const WaitView& self) { return to_numpy(self.all_work()); })
      .def("held",
           [](const WaitView& self) {
             const auto count = static_cast<std::size_t>(self.machines());
             return to_numpy(self.all_held(),
                             {count, static_cast<std::size_t>(self.dimensions())});
           })
      .def_prop_ro("digest", [](const WaitView& self) { return self.ledger().digest(); })
      .def("digests",
           [](const WaitView& self) {
             std::vector<std::int64_t> jobs;
             std::vector<std::uint64_t> digests;
             self.digests(jobs, digests);
             return std::make_tuple(to_numpy(std::move(jobs)), to_numpy(std::move(digests)));
           })
      .def(
          "differing",
          [](const WaitView& self, InArray<std::int64_t> jobs, InArray<std::uint64_t> digests) {
            if (jobs.size() != digests.size()) throw nb::value_error("a digest for each job");
            return to_numpy(self.differing(span_of(jobs), span_of(digests)));
          },
          nb::arg("jobs"), nb::arg("digests"))
      .def(
          "state",
          [](const WaitView& self, std::optional<InArray<std::int64_t>> jobs) {
            return jobs ? self.state(span_of(*jobs)) : self.whole_state();
          },
          nb::arg("jobs") = nb::none())
      .def("join", &WaitView::join, nb::arg("state"));
}
