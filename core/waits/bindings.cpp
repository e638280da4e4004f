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

// What a view tells another as flat arrays, so that it can leave the process: `counts` tasks of each job
// follow one another in the last columns but one. Epochs are each view's own and stay behind.
auto columns_of(const WaitView::State& state) {
  std::vector<std::int64_t> jobs, totals, counts, work;
  std::vector<std::uint8_t> over, versions;
  std::vector<std::uint32_t> indices;
  std::vector<std::int32_t> machines, task_shapes;
  for (const WaitView::JobState& job : state.jobs) {
    jobs.push_back(job.job);
    totals.push_back(job.total);
    over.push_back(job.is_over ? 1 : 0);
    counts.push_back(static_cast<std::int64_t>(job.entries.size()));
    indices.insert(indices.end(), job.indices.begin(), job.indices.end());
    for (const Placing& entry : job.entries) {
      versions.push_back(entry.version);
      machines.push_back(entry.machine);
      task_shapes.push_back(entry.shape);
      work.push_back(entry.work);
    }
  }
  return std::make_tuple(
      to_numpy(std::vector(state.shapes)), to_numpy(std::vector(state.requests)),
      to_numpy(std::move(jobs)), to_numpy(std::move(totals)), to_numpy(std::move(over)),
      to_numpy(std::move(counts)), to_numpy(std::move(indices)), to_numpy(std::move(versions)),
      to_numpy(std::move(machines)), to_numpy(std::move(task_shapes)), to_numpy(std::move(work)),
      to_numpy(std::vector(state.busy)));
}

WaitView::State state_of(InArray<std::int32_t> shapes, InArray<std::int64_t> requests,
                         InArray<std::int64_t> jobs, InArray<std::int64_t> totals,
                         InArray<std::uint8_t> over, InArray<std::int64_t> counts,
                         InArray<std::uint32_t> indices, InArray<std::uint8_t> versions,
                         InArray<std::int32_t> machines, InArray<std::int32_t> task_shapes,
                         InArray<std::int64_t> work, InArray<std::int64_t> busy) {
  constexpr std::int64_t most_tasks = std::int64_t{1} << 24;
  const std::size_t rows = indices.size();
  if (totals.size() != jobs.size() || over.size() != jobs.size() || counts.size() != jobs.size() ||
      versions.size() != rows || machines.size() != rows || task_shapes.size() != rows ||
      work.size() != rows) {
    throw nb::value_error("columns of different lengths");
  }
  if (shapes.size() == 0 ? requests.size() != 0 : requests.size() % shapes.size() != 0) {
    throw nb::value_error("an amount for each dimension of each shape");
  }
  WaitView::State state;
  state.shapes.assign(shapes.data(), shapes.data() + shapes.size());
  state.requests.assign(requests.data(), requests.data() + requests.size());
  state.busy.assign(busy.data(), busy.data() + busy.size());
  std::size_t row = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::int64_t total = totals.data()[j], count = counts.data()[j];
    if (jobs.data()[j] < 0 || jobs.data()[j] >= std::int64_t{1} << 31 || total < 0 ||
        total > most_tasks || count < 0 || static_cast<std::size_t>(count) > rows - row) {
      throw nb::value_error("no such job, or not so many tasks");
    }
    WaitView::JobState job{jobs.data()[j], total, over.data()[j] != 0, {}, {}};
    for (const std::size_t end = row + static_cast<std::size_t>(count); row < end; ++row) {
      const std::int32_t shape = task_shapes.data()[row];
      if (indices.data()[row] >= most_tasks) throw nb::value_error("no such task");
      if (shape < 0 || (shape > 0 && static_cast<std::size_t>(shape) >= shapes.size())) {
        throw nb::value_error("a shape that is not in the list");
      }
      job.indices.push_back(indices.data()[row]);
      job.entries.push_back({work.data()[row], machines.data()[row],
                             static_cast<std::uint16_t>(shape), versions.data()[row], 0});
    }
    state.jobs.push_back(std::move(job));
  }
  if (row != rows) throw nb::value_error("more tasks than the jobs have");
  return state;
}

}  // namespace

void bind_waits(nb::module_& module) {
  nb::class_<WaitView::State>(module, "WaitState")
      .def_prop_ro("jobs", [](const WaitView::State& self) { return self.jobs.size(); })
      .def("columns", &columns_of)
      .def_static("from_columns", &state_of, nb::arg("shapes"), nb::arg("requests"),
                  nb::arg("jobs"), nb::arg("totals"), nb::arg("over"), nb::arg("counts"),
                  nb::arg("indices"), nb::arg("versions"), nb::arg("machines"),
                  nb::arg("task_shapes"), nb::arg("work"), nb::arg("busy"));
  nb::class_<WaitView>(module, "WaitView")
      .def(nb::init<bool, std::int64_t>(), nb::arg("published") = false, nb::arg("lag") = 0)
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
      .def("knows_shape", &WaitView::knows_shape, nb::arg("shape"))
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
             std::int32_t shape, std::int64_t since) {
            check_machines(self, span_of(machines));
            if (tasks.size() != versions.size() || tasks.size() != machines.size()) {
              throw nb::value_error("columns of different lengths");
            }
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              self.post({due, tasks.data()[i], estimate, since, machines.data()[i], shape,
                         versions.data()[i]},
                        now);
            }
          },
          nb::arg("due"), nb::arg("now"), nb::arg("tasks"), nb::arg("versions"),
          nb::arg("machines"), nb::arg("estimate"), nb::arg("shape"), nb::arg("since"))
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
      .def("record_times", &WaitView::record_times)
      .def("take_times",
           [](WaitView& self) {
             std::vector<std::int64_t> tasks, times;
             for (const auto& [task, time] : self.take_times()) {
               tasks.push_back(task);
               times.push_back(time);
             }
             return std::make_tuple(to_numpy(std::move(tasks)), to_numpy(std::move(times)));
           })
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
      .def(
          "join",
          [](WaitView& self, const WaitView::State& state) {
            if (state.requests.size() !=
                state.shapes.size() * static_cast<std::size_t>(self.dimensions())) {
              throw nb::value_error("an amount for each dimension of each shape");
            }
            for (const auto& job : state.jobs) {
              for (const Placing& entry : job.entries) {
                if (entry.is_placed() && entry.shape >= state.shapes.size()) {
                  throw nb::value_error("a shape that is not in the list");
                }
              }
            }
            self.join(state);
          },
          nb::arg("state"));
}
