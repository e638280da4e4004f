#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "flow/admission.hpp"
#include "flow/extraction.hpp"
#include "flow/rooms.hpp"
#include "flow/roster.hpp"
#include "flow/roster_arrays.hpp"
#include "flow/solver.hpp"

namespace nb = nanobind;

namespace argosy::flow {
namespace {

using View = nb::ndarray<nb::numpy, const std::int64_t, nb::ndim<1>>;

// A column as it is; what has grown since is not seen.
template <typename Name>
View column(const Table<Name>& table, const std::vector<const char*>& names, const std::string& name) {
  for (std::size_t c = 0; c < names.size(); ++c) {
    if (name != names[c]) continue;
    auto* kept = new std::shared_ptr<Number[]>(table.share(c));
    nb::capsule owner(kept, [](void* p) noexcept {
      delete static_cast<std::shared_ptr<Number[]>*>(p);
    });
    const std::size_t size = static_cast<std::size_t>(table.used());
    return View(kept->get(), {size}, owner);
  }
  throw nb::key_error(name.c_str());
}

const std::vector<const char*> task_names{"number", "state", "machine", "task_class", "shape"};
const std::vector<const char*> class_names{"vertex",    "job",       "pool",       "owner", "pool_arc",
                                           "pool_cost", "wait_arc",  "wait_cost",  "preemption",
                                           "first",     "rows",      "pending",    "running", "parked"};
const std::vector<const char*> run_names{"arc",  "task_class", "machine", "count",
                                         "cost", "is_direct",  "onward",  "step"};

OutArray<std::int64_t> add_classes(Roster& self, const Numbers& jobs, const Numbers& pools,
                                   const Numbers& owners, const Numbers& shapes,
                                   const Numbers& waiting, const Numbers& sizes, const Flags& each,
                                   const Numbers& rows, const Numbers& pool_costs,
                                   std::int64_t preemption, std::int64_t now) {
  const std::size_t count = jobs.size();
  for (const std::size_t length :
       {pools.size(), owners.size(), shapes.size(), waiting.size(), sizes.size(), each.size()}) {
    require(length == count, "the arrays differ in length");
  }
  std::vector<NewGroup> groups;
  Row total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const NewGroup group{jobs.data()[i],   pools.data()[i],   owners.data()[i], shapes.data()[i],
                         waiting.data()[i], sizes.data()[i], each.data()[i]};
    require(self.knows_job(group.job), "no such job");
    require(self.has_pool(group.pool), "no such pool");
    require(group.owner >= 0 && static_cast<std::size_t>(group.owner) < self.owner_tasks().size(),
            "no such owner");
    require(group.tasks > 0, "a group without tasks");
    total += group.tasks;
    groups.push_back(group);
  }
  require(static_cast<std::size_t>(total) == rows.size() && rows.size() == pool_costs.size(),
          "the arrays differ in length");
  check_rows(self, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    require(self.tasks()[TaskColumn::state][rows.data()[i]] == gone, "a task that is there already");
    const Cost cost = pool_costs.data()[i];
    require(cost >= -cost_limit / 2 && cost <= cost_limit / 2, "a cost beyond 2^39");
  }
  return to_numpy(self.add_classes(groups, span_of(rows), span_of(pool_costs), preemption, now));
}

void add_job(Roster& self, std::int64_t number, std::int64_t tasks, std::int64_t head,
             std::int64_t precedence) {
  require(number >= 0 && number < (Number{1} << 31), "no job's number");
  require(!self.knows_job(number), "a job that is known");
  require(tasks > 0, "a job without tasks");
  require(self.network().has_vertex(head), "no such vertex");
  self.add_job(number, tasks, static_cast<Vertex>(head), precedence);
}

void grow_job(Roster& self, std::int64_t number, std::int64_t tasks) {
  require(self.knows_job(number), "a job that is not known");
  require(tasks > 0 && tasks <= (Number{1} << 32), "no number of tasks");
  self.grow_job(number, tasks);
}

using PlanColumns = std::tuple<OutArray<std::int64_t>, OutArray<std::int64_t>, OutArray<std::int64_t>,
                               OutArray<std::int64_t>, OutArray<std::int64_t>, bool>;

std::tuple<OutArray<std::int64_t>, OutArray<std::int64_t>, OutArray<std::int64_t>,
           OutArray<std::int64_t>>
extract(Roster& self) {
  Placements found = Extraction(self).run();
  return {to_numpy(std::move(found.rows)), to_numpy(std::move(found.machines)),
          to_numpy(std::move(found.costs)), to_numpy(std::move(found.leaving))};
}

PlanColumns admit(const Roster& self, Rooms& rooms, const Numbers& rows, const Numbers& machines,
                  const Numbers& costs, const Numbers& leaving, const Matrix& free,
                  const Flags& usable, std::int64_t moves) {
  require(machines.size() == rows.size() && costs.size() == rows.size(),
          "the arrays differ in length");
  require(&rooms.roster() == &self, "rooms of another roster");
  check_rows(self, rows);
  check_rows(self, leaving);
  check_machines(self, machines);
  require(free.shape(0) == self.machines() && usable.size() == self.machines() &&
              free.shape(1) == static_cast<std::size_t>(self.dimensions()),
          "not a row for each machine");
  for (const Row row : span_of(leaving)) {
    require(self.tasks()[TaskColumn::state][row] == running, "a task leaves that does not run");
  }
  for (const Row row : span_of(rows)) {
    require(self.tasks()[TaskColumn::state][row] != gone, "a task that is over");
  }
  const auto copy = [](const Numbers& array) {
    return std::vector<Number>(array.data(), array.data() + array.size());
  };
  Admission admission(self, {free.data(), free.size()}, usable.data(), moves);
  Plan plan = admission.run({copy(rows), copy(machines), copy(costs), copy(leaving)});
  for (const Refused& each : plan.refused) rooms.bar(each.pool, each.machine, each.precedence);
  Placements& made = plan.placements;
  return {to_numpy(std::move(made.rows)),  to_numpy(std::move(made.machines)),
          to_numpy(std::move(made.costs)), to_numpy(std::move(made.leaving)),
          to_numpy(std::move(plan.early)), plan.is_cut};
}

// Whether one of these machines has room for a task that waits, with so much free on each, or is not known yet.
bool has_room(const Roster& self, const Handles& machines, const Matrix& free, const Allowed& allowed) {
  const auto width = static_cast<std::size_t>(self.dimensions());
  require(free.shape(0) == machines.size() && free.shape(1) == width &&
              allowed.shape(1) == self.machines() && allowed.shape(0) >= self.pools(),
          "arrays of other sizes");
  for (std::size_t number = 0; number < self.pools(); ++number) {
    const PoolRow& pool = self.pool(static_cast<Number>(number));
    if (pool.waiting == 0) continue;
    const bool* is_allowed = allowed.data() + number * self.machines();
    for (std::size_t row = 0; row < machines.size(); ++row) {
      const auto machine = static_cast<std::size_t>(machines.data()[row]);
      if (machine >= self.machines()) return true;
      if (!is_allowed[machine]) continue;
      const std::int64_t* room = free.data() + row * width;
      if (std::equal(room, room + width, pool.request.begin(), std::greater_equal<>())) return true;
    }
  }
  return false;
}

OutArray<std::int64_t> running_of(const Roster& self, const Numbers& numbers) {
  std::vector<Number> values;
  values.reserve(numbers.size() * self.machines());
  for (const Number number : span_of(numbers)) {
    require(self.has_pool(number), "no such pool");
    const std::vector<Number>& row = self.pool(number).running;
    values.insert(values.end(), row.begin(), row.end());
  }
  return to_numpy(std::move(values), {numbers.size(), self.machines()});
}

// Numbers and shapes of tasks, as claims have them.
std::tuple<OutArray<std::int64_t>, OutArray<std::int32_t>> named(const Roster& self,
                                                                const Numbers& rows) {
  check_rows(self, rows);
  std::vector<Number> numbers;
  std::vector<std::int32_t> shapes;
  for (const Row row : span_of(rows)) {
    numbers.push_back(self.tasks()[TaskColumn::number][row]);
    shapes.push_back(static_cast<std::int32_t>(self.tasks()[TaskColumn::shape][row]));
  }
  return {to_numpy(std::move(numbers)), to_numpy(std::move(shapes))};
}

// The waiting tasks that are not among `placed`, by class and in order: classes, where each begins, and the rows.
auto waiting(Roster& self, const Numbers& placed) {
  check_rows(self, placed);
  std::vector<Row> gone_from(placed.data(), placed.data() + placed.size());
  std::sort(gone_from.begin(), gone_from.end());
  std::vector<Row> classes, rows;
  std::vector<std::int64_t> begins;
  for (const Row c : self.waiting_classes()) {
    const std::size_t begin = rows.size();
    self.each_task(c, [&](Row row) {
      if (self.tasks()[TaskColumn::state][row] != pending) return;
      if (!std::binary_search(gone_from.begin(), gone_from.end(), row)) rows.push_back(row);
    });
    if (rows.size() == begin) continue;
    classes.push_back(c);
    begins.push_back(static_cast<std::int64_t>(begin));
  }
  return std::make_tuple(std::move(classes), std::move(begins), to_numpy(std::move(rows)));
}

template <typename Get>
OutArray<std::int64_t> pool_column(const Roster& self, Get get) {
  std::vector<Number> values;
  for (std::size_t number = 0; number < self.pools(); ++number) {
    values.push_back(get(self.pool(static_cast<Number>(number))));
  }
  return to_numpy(std::move(values));
}

}  // namespace
}  // namespace argosy::flow

void bind_roster(nb::module_& module) {
  using namespace argosy;
  using namespace argosy::flow;
  nb::enum_<State>(module, "RosterState", nb::is_arithmetic())
      .value("GONE", gone)
      .value("PENDING", pending)
      .value("RUNNING", running);
  nb::class_<Roster> roster(module, "FlowRoster");
  roster
      .def(
          "__init__",
          [](Roster* self, Solver& solver, std::int32_t dimensions, bool reschedules,
             std::int64_t migration, bool drains) {
            require(dimensions > 0, "no dimensions");
            new (self) Roster(solver.network(), dimensions, reschedules, migration, drains);
          },
          nb::arg("solver"), nb::arg("dimensions"), nb::arg("reschedules"), nb::arg("migration"),
          nb::arg("drains"),
          nb::keep_alive<1, 2>())
      .def(
          "add_machines",
          [](Roster& self, const Handles& vertices) {
            for (const Vertex v : span_of(vertices)) {
              require(self.network().has_vertex(v), "no such vertex");
            }
            self.add_machines(span_of(vertices));
          },
          nb::arg("vertices"))
      .def(
          "open_pool",
          [](Roster& self, std::int64_t number, std::int64_t vertex, const Numbers& request,
             bool is_choosy, bool preempts) {
            require(number >= 0 && number < (1 << 24), "no pool's number");
            require(self.network().has_vertex(vertex), "no such vertex");
            require(request.size() == static_cast<std::size_t>(self.dimensions()),
                    "not an amount for each dimension");
            self.open_pool(number, static_cast<Vertex>(vertex), span_of(request), is_choosy, preempts);
          },
          nb::arg("number"), nb::arg("vertex"), nb::arg("request"), nb::arg("is_choosy"),
          nb::arg("preempts") = true)
      .def(
          "add_aggregators",
          [](Roster& self, std::int64_t number, const Handles& vertices, const Numbers& froms,
             const Numbers& tos, const Handles& arcs) {
            require(self.has_pool(number), "no such pool");
            require(froms.size() == arcs.size() && tos.size() == arcs.size(),
                    "the arrays differ in length");
            const auto bound = static_cast<std::int64_t>(self.pool(number).aggregators.size() +
                                                         vertices.size());
            std::vector<Link> links;
            for (std::size_t i = 0; i < arcs.size(); ++i) {
              const std::int64_t from = froms.data()[i], to = tos.data()[i];
              require(from >= -1 && from < to && to < bound, "an arc that leads to no higher number");
              require(self.network().has_arc(arcs.data()[i]), "no such arc");
              links.push_back({static_cast<std::int32_t>(from), static_cast<std::int32_t>(to),
                               arcs.data()[i]});
            }
            for (const Vertex v : span_of(vertices)) {
              require(self.network().has_vertex(v), "no such vertex");
            }
            self.add_aggregators(number, span_of(vertices), links);
          },
          nb::arg("number"), nb::arg("vertices"), nb::arg("froms"), nb::arg("tos"), nb::arg("arcs"))
      .def(
          "close_pool",
          [](Roster& self, std::int64_t number) {
            require(self.has_pool(number), "no such pool");
            require(self.pool(number).tasks == 0, "a pool that has tasks");
            self.close_pool(number);
          },
          nb::arg("number"))
      .def(
          "widen",
          [](Roster& self, const Matrix& requests, const Flags& are_choosy) {
            require(requests.shape(1) >= static_cast<std::size_t>(self.dimensions()),
                    "fewer dimensions than before");
            require(requests.shape(0) >= self.pools() && are_choosy.size() >= self.pools(),
                    "not a row for each pool");
            self.widen(static_cast<std::int32_t>(requests.shape(1)), {requests.data(), requests.size()},
                       {are_choosy.data(), are_choosy.size()});
          },
          nb::arg("requests"), nb::arg("are_choosy"))
      .def("add_owner", &Roster::add_owner)
      .def("add_job", &add_job, nb::arg("number"), nb::arg("tasks"), nb::arg("head"),
           nb::arg("precedence"))
      .def("grow_job", &grow_job, nb::arg("number"), nb::arg("tasks"))
      .def("add_classes", &add_classes, nb::arg("jobs"), nb::arg("pools"), nb::arg("owners"),
           nb::arg("shapes"), nb::arg("waiting"), nb::arg("sizes"), nb::arg("each"),
           nb::arg("rows"), nb::arg("pool_costs"), nb::arg("preemption"), nb::arg("now"))
      .def(
          "enter",
          [](Roster& self, const Numbers& tasks, std::int64_t now) {
            return to_numpy(self.enter(span_of(tasks), now));
          },
          nb::arg("tasks"), nb::arg("now"))
      .def(
          "start",
          [](Roster& self, const Numbers& rows, const Numbers& machines, const Numbers& costs,
             std::int64_t now) {
            require(machines.size() == rows.size() && costs.size() == rows.size(),
                    "the arrays differ in length");
            check_rows(self, rows);
            check_machines(self, machines);
            self.start(span_of(rows), span_of(machines), span_of(costs), now);
          },
          nb::arg("rows"), nb::arg("machines"), nb::arg("costs"), nb::arg("now"))
      .def(
          "stop",
          [](Roster& self, const Numbers& rows, std::int64_t now) {
            check_rows(self, rows);
            self.stop(span_of(rows), now);
          },
          nb::arg("rows"), nb::arg("now"))
      .def(
          "finish",
          [](Roster& self, const Numbers& tasks) { return self.finish(span_of(tasks)); },
          nb::arg("tasks"))
      .def(
          "drop", [](Roster& self, const Numbers& tasks) { return self.drop(span_of(tasks)); },
          nb::arg("tasks"))
      .def(
          "park",
          [](Roster& self, const Numbers& jobs, bool is_parked) {
            self.park(span_of(jobs), is_parked);
          },
          nb::arg("jobs"), nb::arg("is_parked"))
      .def("sync", &Roster::sync, nb::call_guard<nb::gil_scoped_release>())
      .def("age", &Roster::age, nb::arg("now"), nb::arg("price"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("extract", &extract)
      .def("admit", &admit, nb::arg("rooms"), nb::arg("rows"), nb::arg("machines"), nb::arg("costs"),
           nb::arg("leaving"), nb::arg("free"), nb::arg("usable"), nb::arg("moves"))
      .def(
          "job",
          [](const Roster& self, std::int64_t number) {
            require(self.knows_job(number), "no such job");
            const JobRow& job = self.job(number);
            return std::make_tuple(job.vertex, job.arc, job.cost, job.living, job.waiting);
          },
          nb::arg("number"))
      .def_prop_ro("waiting_jobs", &Roster::waiting_jobs)
      .def(
          "rows",
          [](const Roster& self, const Numbers& tasks) {
            std::vector<Row> rows;
            for (const Number task : span_of(tasks)) rows.push_back(self.row_of(task));
            return to_numpy(std::move(rows));
          },
          nb::arg("tasks"))
      .def("named", &named, nb::arg("rows"))
      .def("tasks", [](const Roster& self, const std::string& name) {
        return column(self.tasks(), task_names, name);
      }, nb::arg("name"))
      .def("classes", [](const Roster& self, const std::string& name) {
        return column(self.classes(), class_names, name);
      }, nb::arg("name"))
      .def("runs", [](const Roster& self, const std::string& name) {
        return column(self.runs().table(), run_names, name);
      }, nb::arg("name"))
      .def("run_of", [](const Roster& self, std::int64_t task_class, std::int64_t machine) {
        return self.runs().find(task_class, machine);
      }, nb::arg("task_class"), nb::arg("machine"))
      .def("own", [](const Roster& self) {
        return to_numpy(self.own(), {self.machines(), static_cast<std::size_t>(self.dimensions())});
      })
      .def("own_tasks", [](const Roster& self) { return to_numpy(self.own_tasks()); })
      .def("owner_tasks", [](const Roster& self) { return to_numpy(self.owner_tasks()); })
      .def("demands", [](const Roster& self) {
        return to_numpy(self.demands(),
                        {self.owner_tasks().size(), static_cast<std::size_t>(self.dimensions())});
      })
      .def("waiting", &waiting, nb::arg("placed"))
      .def("has_room", &has_room, nb::arg("machines"), nb::arg("free"), nb::arg("allowed"))
      .def("running", &running_of, nb::arg("pools"))
      .def("pool_tasks", [](const Roster& self) {
        return pool_column(self, [](const PoolRow& pool) { return pool.tasks; });
      });
  bind_pricing(roster);
  bind_rooms(module);
}
