// argosy._core: TaskRuntime, and what it is given in groups.
//
// The interpreter's lock is kept throughout: it is what guards the live cell. Everything that comes from
// Python is checked here; what is wrong becomes a ValueError and changes nothing.
#include "bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "cell/answers.hpp"
#include "host/checks.hpp"
#include "host/runtime.hpp"

namespace nb = nanobind;

namespace argosy {
namespace {

constexpr std::int64_t most_tasks = std::int64_t{1} << 32;
// The number, shape and estimate of a group's tasks.
using GroupTuple = std::tuple<std::int64_t, std::int32_t, std::int64_t>;

std::vector<GroupFacts> checked_groups(const TaskRuntime& runtime,
                                       const std::vector<GroupTuple>& groups) {
  std::vector<GroupFacts> facts;
  facts.reserve(groups.size());
  std::int64_t tasks = 0;
  for (const auto& [count, shape, estimate] : groups) {
    require(runtime.cell().shapes().knows(shape), "unknown shape number");
    require(count >= 1 && count <= most_tasks, "a group has 1 to 2^32 tasks");
    tasks += count;
    facts.push_back({count, shape, estimate});
  }
  require(tasks >= 1 && tasks <= most_tasks, "a job has 1 to 2^32 tasks");
  return facts;
}

nb::object event_of(bool is_any, const Due& due) {
  if (!is_any) return nb::none();
  return nb::make_tuple(due.kind, due.at, due.a, due.b);
}

using Notices = std::tuple<OutArray<std::int64_t>, OutArray<std::int32_t>, OutArray<std::int64_t>,
                           OutArray<std::int32_t>, OutArray<std::int64_t>>;

Notices notices(const std::vector<Notice>& rows) {
  std::vector<std::int64_t> tasks, estimates, started;
  std::vector<std::int32_t> machines, shapes;
  for (const Notice& row : rows) {
    started.push_back(row.started);
    tasks.push_back(row.task);
    machines.push_back(row.machine);
    estimates.push_back(row.estimate);
    shapes.push_back(row.shape);
  }
  return {to_numpy(std::move(tasks)), to_numpy(std::move(machines)),
          to_numpy(std::move(estimates)), to_numpy(std::move(shapes)), to_numpy(std::move(started))};
}

using TaskColumns = std::tuple<OutArray<std::int64_t>, OutArray<std::int32_t>,
                               OutArray<std::int64_t>, OutArray<std::int64_t>,
                               OutArray<std::int64_t>>;

TaskColumns task_columns(const std::vector<TaskRow>& rows) {
  std::vector<std::int64_t> tasks, placed, started, finished;
  std::vector<std::int32_t> machines;
  for (const TaskRow& row : rows) {
    tasks.push_back(row.task);
    machines.push_back(row.machine);
    placed.push_back(row.placed);
    started.push_back(row.started);
    finished.push_back(row.finished);
  }
  return {to_numpy(std::move(tasks)), to_numpy(std::move(machines)), to_numpy(std::move(placed)),
          to_numpy(std::move(started)), to_numpy(std::move(finished))};
}

// With the arrays that its spans look at.
struct HeldNews {
  InArray<std::int64_t> tasks;
  InArray<std::uint8_t> versions;
  InArray<std::int32_t> machines;
  PlacementNews news;
};

void bind_arguments(nb::module_& module) {
  nb::class_<QueueRules>(module, "QueueRules")
      .def(
          "__init__",
          [](QueueRules* self, QueueOrder order, std::int64_t slack, std::int64_t limit,
             std::int64_t start_delay, std::int64_t long_above, std::int64_t steal_attempts,
             std::int32_t steal_from, std::int64_t steal_limit, std::uint64_t steal_seed) {
            require(slack >= 0 && limit >= 0 && start_delay >= 0 && long_above >= 0 &&
                        steal_attempts >= 0 && steal_from >= 0 && steal_limit >= 0,
                    "no such rules of queues");
            new (self) QueueRules{order,          slack,      limit,       start_delay, long_above,
                                  steal_attempts, steal_from, steal_limit, steal_seed};
          },
          nb::kw_only(), nb::arg("order") = QueueOrder::fcfs, nb::arg("slack") = 0,
          nb::arg("limit") = 0, nb::arg("start_delay") = 0, nb::arg("long_above") = 0,
          nb::arg("steal_attempts") = 0, nb::arg("steal_from") = 0, nb::arg("steal_limit") = 0,
          nb::arg("steal_seed") = 0);
  nb::class_<ProbeTerms>(module, "ProbeTerms")
      .def(
          "__init__",
          [](ProbeTerms* self, std::int64_t job, std::int32_t owner, std::int32_t scheduler,
             std::int32_t shape, std::int64_t estimate, std::int32_t requirement) {
            new (self) ProbeTerms{job, owner, scheduler, shape, estimate, requirement};
          },
          nb::arg("job"), nb::arg("owner"), nb::arg("scheduler"), nb::arg("shape"),
          nb::arg("estimate"), nb::arg("requirement") = 0);
  nb::class_<HeldNews>(module, "PlacementNews")
      .def(
          "__init__",
          [](HeldNews* self, InArray<std::int64_t> tasks, InArray<std::uint8_t> versions,
             InArray<std::int32_t> machines, std::int64_t estimate, std::int32_t shape,
             std::int64_t total, std::int64_t since, bool is_per_task, bool begins) {
            check_lengths(tasks.size(), {versions.size(), machines.size()});
            new (self) HeldNews{tasks, versions, machines,
                                {span_of(tasks), span_of(versions), span_of(machines), estimate,
                                 shape, total, since, is_per_task, begins}};
          },
          nb::arg("tasks"), nb::arg("versions"), nb::arg("machines"), nb::arg("estimate"),
          nb::arg("shape"), nb::arg("total"), nb::arg("since"), nb::arg("is_per_task") = false,
          nb::arg("begins") = true);
}

using Type = nb::class_<TaskRuntime>;

void bind_time(Type& type) {
  type.def_prop_ro("now", &TaskRuntime::now)
      .def_prop_ro("next_at", &TaskRuntime::next_at)
      .def_prop_ro("has_events", &TaskRuntime::has_events)
      .def_prop_ro("open_tasks", [](const TaskRuntime& self) { return self.board().open(); })
      .def(
          "push",
          [](TaskRuntime& self, std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b,
             bool at_once) {
            require(kind >= first_python_kind && kind <= last_python_kind,
                    "the world's kinds are 16 to 255");
            self.push(at, kind, a, b, at_once);
          },
          nb::arg("at"), nb::arg("kind"), nb::arg("a"), nb::arg("b"), nb::arg("at_once") = true)
      .def("pass_turn", &TaskRuntime::pass_turn)
      .def(
          "next",
          [](TaskRuntime& self, std::int64_t limit) {
            Due due;
            const bool is_any = self.next(limit, due);
            return event_of(is_any, due);
          },
          nb::arg("limit"))
      .def(
          "due",
          [](TaskRuntime& self, std::uint32_t ticket, std::int64_t at) {
            require(self.is_replayed(), "only a replay says which timer is due");
            Due due;
            const bool is_any = self.due(ticket, at, due);
            return event_of(is_any, due);
          },
          nb::arg("ticket"), nb::arg("at"))
      .def("advance", &TaskRuntime::advance, nb::arg("at"))
      .def(
          "record_into",
          [](TaskRuntime& self, LineBuffer* buffer) { self.recorder().record_into(buffer); },
          nb::arg("buffer").none(), nb::keep_alive<1, 2>());
}

void bind_hearing(Type& type) {
  type.def(
          "hear_own",
          [](TaskRuntime& self, std::int32_t owner) {
            require(owner >= 0, "owners are numbered from 0");
            self.listeners().hear_own(owner);
          },
          nb::arg("owner"))
      .def("hear_all", [](TaskRuntime& self) { self.listeners().hear_all(); })
      .def(
          "listen",
          [](TaskRuntime& self, std::int32_t owner, WaitView* view) {
            require(owner >= 0, "owners are numbered from 0");
            self.listeners().listen(owner, view);
          },
          nb::arg("owner"), nb::arg("view").none())
      .def("set_hop", [](TaskRuntime& self, std::int64_t hop) { self.listeners().set_hop(hop); },
           nb::arg("hop"))
      .def(
          "gossip",
          [](TaskRuntime& self, const std::vector<std::int32_t>& owners, std::int64_t due,
             const HeldNews& held) {
            for (const std::int32_t machine : held.news.machines) {
              require(machine < 0 || self.cell().knows(machine), "unknown machine number");
            }
            self.listeners().gossip(self.cell(), owners, due, held.news, self.now());
          },
          nb::arg("owners"), nb::arg("due"), nb::arg("news"))
      .def_prop_ro("ends_told", [](TaskRuntime& self) { return self.listeners().ends_told(); })
      .def("tell_starts", &TaskRuntime::tell_starts, nb::arg("tells"))
      .def_prop_ro("has_starts", &TaskRuntime::has_starts)
      .def("take_starts",
           [](TaskRuntime& self) {
             std::vector<std::int64_t> tasks, incarnations, estimates;
             std::vector<std::int32_t> machines;
             for (const StartNotice& start : self.take_starts()) {
               tasks.push_back(start.task);
               machines.push_back(start.machine);
               incarnations.push_back(static_cast<std::int64_t>(start.incarnation));
               estimates.push_back(start.estimate);
             }
             return std::make_tuple(to_numpy(std::move(tasks)), to_numpy(std::move(machines)),
                                    to_numpy(std::move(incarnations)),
                                    to_numpy(std::move(estimates)));
           })
      .def("take_finished", [](TaskRuntime& self) { return notices(self.take_finished()); })
      .def("take_lost", [](TaskRuntime& self) { return notices(self.take_lost()); })
      .def("take_refused", [](TaskRuntime& self) { return notices(self.take_refused()); })
      .def("take_phases",
           [](TaskRuntime& self) {
             nb::list rows;
             for (const PhaseNotice& notice : self.take_phases()) {
               rows.append(nb::make_tuple(notice.job, notice.phase, notice.duration));
             }
             return rows;
           })
      .def("take_ready", [](TaskRuntime& self) {
        nb::list rows;
        for (const ProbeNotice& notice : self.take_ready()) {
          rows.append(nb::make_tuple(notice.probe, notice.job, notice.machine, notice.owner));
        }
        return rows;
      });
}

void bind_jobs(Type& type) {
  type.def(
          "add_plain_job",
          [](TaskRuntime& self, std::int64_t submit, std::int32_t owner, std::int64_t count,
             std::int32_t shape, std::int64_t estimate, std::int64_t time) {
            require(self.cell().shapes().knows(shape), "unknown shape number");
            require(count >= 1 && count <= most_tasks, "a group has 1 to 2^32 tasks");
            return self.add_plain_job(submit, owner, {count, shape, estimate}, time);
          },
          nb::arg("submit"), nb::arg("owner"), nb::arg("count"), nb::arg("shape"),
          nb::arg("estimate"), nb::arg("time") = -1)
      .def(
          "expect_jobs",
          [](TaskRuntime& self, std::int64_t jobs) {
            require(jobs >= 0 && jobs < (std::int64_t{1} << 31), "not a number of jobs");
            self.expect_jobs(jobs);
          },
          nb::arg("jobs"))
      .def(
          "add_job",
          [](TaskRuntime& self, std::int64_t submit, std::int32_t owner,
             const std::vector<GroupTuple>& groups) {
            return self.add_job(submit, owner, checked_groups(self, groups));
          },
          nb::arg("submit"), nb::arg("owner"), nb::arg("groups"))
      .def(
          "set_groups",
          [](TaskRuntime& self, std::int64_t job, const std::vector<GroupTuple>& groups) {
            self.facts().set_groups(known_job(self, job), checked_groups(self, groups));
          },
          nb::arg("job"), nb::arg("groups"))
      .def(
          "set_times",
          [](TaskRuntime& self, std::int64_t job, std::vector<std::int64_t> times) {
            self.facts().set_times(known_job(self, job), std::move(times));
          },
          nb::arg("job"), nb::arg("times"))
      .def(
          "forget_jobs",
          [](TaskRuntime& self, const std::vector<std::int64_t>& jobs) {
            for (const std::int64_t job : jobs) self.facts().forget(known_job(self, job));
          },
          nb::arg("jobs"))
      .def(
          "facts",
          [](TaskRuntime& self, std::int64_t task) {
            known_job(self, job_of(task));
            const TaskFact fact = self.facts().of(task);
            return std::tuple(fact.shape, fact.estimate, fact.time);
          },
          nb::arg("task"));
}

void bind_tasks(Type& type) {
  type.def(
          "attempt",
          [](TaskRuntime& self, std::int64_t job, std::int32_t owner, std::int64_t duration) {
            if (owner < 0) known_job(self, job);
            if (!self.board().has_job(job) || (owner >= 0 && self.board().owner(job) != owner)) return false;
            self.board().attempt(job, self.now(), duration);
            return true;
          },
          nb::arg("job"), nb::arg("owner"), nb::arg("duration"))
      .def(
          "set_pending",
          [](TaskRuntime& self, InArray<std::int64_t> tasks) {
            for (const std::int64_t task : span_of(tasks)) {
              require(self.board().has_task(task) || self.board().is_extra(task),
                      "unknown task number");
            }
            for (const std::int64_t task : span_of(tasks)) self.set_pending(task);
          },
          nb::arg("tasks"))
      .def(
          "set_over",
          [](TaskRuntime& self, InArray<std::int64_t> tasks, TaskState state) {
            require(state >= TaskState::finished, "a state in which a task is over");
            require(self.board().first_misplaced(span_of(tasks), -1, false, false) < 0,
                    "only pending tasks can be over without having run");
            for (const std::int64_t task : span_of(tasks)) {
              self.board().move(task, state, self.now());
            }
          },
          nb::arg("tasks"), nb::arg("state"))
      .def(
          "launch",
          [](TaskRuntime& self, InArray<std::int64_t> tasks) {
            require(self.board().first_misplaced(span_of(tasks), -1, true, true) < 0,
                    "only pending or running tasks can be launched");
            self.launch(span_of(tasks));
          },
          nb::arg("tasks"))
      .def(
          "commit",
          [](TaskRuntime& self, std::int32_t scheduler, std::int32_t owner, bool extras,
             const InArray<std::int64_t>& tasks, const InArray<std::int32_t>& machines,
             const InArray<std::int32_t>& shapes, const InArray<std::uint32_t>& versions, bool atomic,
             bool coarse, bool preempt, bool passes) -> nb::object {
            check_lengths(tasks.size(), {machines.size(), shapes.size(), versions.size()});
            if (self.board().first_misplaced(span_of(tasks), owner, false, extras) >= 0) {
              return nb::bool_(false);
            }
            const ClaimRows rows{tasks.size(), tasks.data(), machines.data(), shapes.data(), versions.data()};
            Judged judged = self.commit(rows, {scheduler, atomic, coarse, preempt});
            if (judged.is_whole && self.cell().evicted().empty()) {
              if (passes && self.pass_turn()) return nb::none();
              return nb::bool_(true);
            }
            return nb::cast(answer(self.cell(), std::move(judged), false));
          },
          nb::arg("scheduler"), nb::arg("owner"), nb::arg("extras"), nb::arg("tasks").noconvert(),
          nb::arg("machines").noconvert(), nb::arg("shapes").noconvert(),
          nb::arg("versions").noconvert(), nb::arg("atomic"), nb::arg("coarse"), nb::arg("preempt"),
          nb::arg("passes") = false)
      .def(
          "incarnation",
          [](const TaskRuntime& self, std::int64_t task) { return self.incarnation(task); },
          nb::arg("task"))
      .def("end_task", &TaskRuntime::end_task, nb::arg("task"), nb::arg("incarnation"))
      .def(
          "end_tasks",
          [](TaskRuntime& self, InArray<std::int64_t> tasks, std::int64_t at) {
            self.end_tasks(span_of(tasks), at);
          },
          nb::arg("tasks"), nb::arg("at"))
      .def(
          "stop_task",
          [](TaskRuntime& self, std::int64_t task, std::uint64_t incarnation, TaskState state) {
            require(state == TaskState::pending || state == TaskState::failed ||
                        state == TaskState::cancelled,
                    "a stopped task is pending, failed or cancelled");
            return self.stop_task(task, incarnation, state);
          },
          nb::arg("task"), nb::arg("incarnation"), nb::arg("state"))
      .def(
          "cancel_task",
          [](TaskRuntime& self, std::int64_t task) {
            require(self.board().has_task(task), "unknown task number");
            return self.cancel_task(task);
          },
          nb::arg("task"))
      .def("task_columns", [](const TaskRuntime& self) { return task_columns(self.rows()); })
      .def("running_columns", [](const TaskRuntime& self) { return task_columns(self.running()); });
}

void bind_shared_work(Type& type) {
  type.def(
          "add_pool",
          [](TaskRuntime& self, std::int64_t job, InArray<std::int64_t> activities,
             InArray<std::int64_t> durations) {
            known_job(self, job);
            check_lengths(activities.size(), {durations.size()});
            std::vector<Phase> phases;
            for (std::size_t i = 0; i < activities.size(); ++i) {
              const std::int64_t a = activities.data()[i], d = durations.data()[i];
              require(a >= 1 && d >= 0 && d <= (std::int64_t{1} << 62) / a,
                      "a phase has 1 activity or more, and at most 2^62 of work");
              phases.push_back({a, d});
            }
            require(!phases.empty(), "a pool has at least one phase");
            self.add_pool(job, std::move(phases));
          },
          nb::arg("job"), nb::arg("activities"), nb::arg("durations"))
      .def(
          "share_work",
          [](TaskRuntime& self, std::int64_t job) { self.share_work(known_job(self, job)); },
          nb::arg("job"))
      .def(
          "end_phase",
          [](TaskRuntime& self, std::int64_t job, std::int64_t phase, std::int64_t duration) {
            self.end_phase(known_job(self, job), phase, duration);
          },
          nb::arg("job"), nb::arg("phase"), nb::arg("duration"))
      .def("pool_columns", [](const TaskRuntime& self) {
        std::vector<std::int64_t> jobs, began, ended, asked;
        for (const Pool& pool : self.pools().all()) {
          jobs.push_back(pool.job());
          began.push_back(pool.began());
          ended.push_back(pool.ended());
          asked.push_back(pool.time_asked());
        }
        return std::make_tuple(to_numpy(std::move(jobs)), to_numpy(std::move(began)),
                               to_numpy(std::move(ended)), to_numpy(std::move(asked)));
      });
}

}  // namespace
}  // namespace argosy

void bind_runtime(nb::module_& module) {
  using namespace argosy;
  module.attr("NEVER") = TaskRuntime::never;
  bind_arguments(module);
  Type type(module, "TaskRuntime");
  type.def(
          "__init__",
          [](TaskRuntime* self, Cell& cell, const QueueRules& rules, bool record_tasks,
             bool replayed) { new (self) TaskRuntime(cell, rules, record_tasks, replayed); },
          nb::arg("cell"), nb::arg("rules"), nb::kw_only(), nb::arg("record_tasks") = false,
          nb::arg("replayed") = false, nb::keep_alive<1, 2>())
      .def_prop_ro("board", nb::overload_cast<>(&TaskRuntime::board),
                   nb::rv_policy::reference_internal)
      .def("integrals",
           [](const TaskRuntime& self) {
             return std::make_tuple(to_numpy(self.usage().used_integral()),
                                    to_numpy(self.usage().capacity_integral()));
           })
      .def("samples", [](const TaskRuntime& self) {
        const std::size_t width = self.usage().sample_width();
        return to_numpy(std::vector<std::int64_t>(self.usage().samples()),
                        {self.usage().samples().size() / width, width});
      });
  bind_time(type);
  bind_hearing(type);
  bind_jobs(type);
  bind_tasks(type);
  bind_shared_work(type);
  bind_queues(type);
  bind_probes(type);
}
