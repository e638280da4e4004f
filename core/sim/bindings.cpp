#include "bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>

#include "arrays.hpp"
#include "sim/simulator.hpp"

namespace nb = nanobind;

namespace argosy {
namespace {

void check_lengths(std::size_t expected, std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths) {
    if (length != expected) throw nb::value_error("the arrays differ in length");
  }
}

std::int64_t known_job(const Board& board, std::int64_t job) {
  if (!board.has_job(job)) throw nb::value_error("unknown job number");
  return job;
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

// A task may be placed by its owner when it is pending; moving one that runs is for migrations. An
// owner below zero stands for anybody. `extras` lets workers beyond their job's tasks pass.
std::int64_t first_misplaced(const Simulator& sim, const InArray<std::int64_t>& tasks,
                             std::int32_t owner, bool may_run, bool extras) {
  const Board& board = sim.board();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::int64_t task = tasks.data()[i];
    const bool is_extra = extras && !board.has_task(task) && sim.is_extra(task);
    if (!is_extra && !board.has_task(task)) return static_cast<std::int64_t>(i);
    if (owner >= 0 && board.owner(Board::job_of(task)) != owner) {
      return static_cast<std::int64_t>(i);
    }
    if (is_extra) continue;
    const TaskState state = board.state(task);
    if (state != TaskState::pending && !(may_run && state == TaskState::running)) {
      return static_cast<std::int64_t>(i);
    }
  }
  return -1;
}

void require_launchable(const Simulator& sim, const InArray<std::int64_t>& tasks) {
  if (first_misplaced(sim, tasks, -1, true, true) >= 0) {
    throw nb::value_error("only pending or running tasks can be launched");
  }
}

}  // namespace
}  // namespace argosy

void bind_sim(nb::module_& module) {
  using namespace argosy;
  nb::class_<Simulator>(module, "Simulator")
      .def(
          "__init__",
          [](Simulator* self, Cell& cell, int order, std::int64_t slack, std::int64_t limit,
             std::int64_t start_delay, std::int64_t long_above, std::int64_t steal_attempts,
             std::int32_t steal_from, std::int64_t steal_limit, bool record_tasks) {
            if (order < 0 || order > 2 || slack < 0 || limit < 0 || start_delay < 0 ||
                long_above < 0 || steal_attempts < 0 || steal_from < 0 || steal_limit < 0) {
              throw nb::value_error("no such rules of queues");
            }
            const QueueRules rules{static_cast<QueueOrder>(order), slack, limit, start_delay,
                                   long_above, steal_attempts, steal_from, steal_limit};
            new (self) Simulator(cell, rules, record_tasks);
          },
          nb::arg("cell"), nb::arg("order"), nb::arg("slack"), nb::arg("limit"),
          nb::arg("start_delay"), nb::arg("long_above"), nb::arg("steal_attempts"),
          nb::arg("steal_from"), nb::arg("steal_limit"), nb::arg("record_tasks"),
          nb::keep_alive<1, 2>())
      .def_prop_ro("now", &Simulator::now)
      .def_prop_ro("has_events", &Simulator::has_events)
      .def_prop_ro("open_tasks", [](const Simulator& self) { return self.board().open(); })
      .def(
          "push",
          [](Simulator& self, std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b) {
            if (kind < first_python_kind) throw nb::value_error("that kind is the core's own");
            self.push(at, kind, a, b);
          },
          nb::arg("at"), nb::arg("kind"), nb::arg("a"), nb::arg("b"))
      .def(
          "next",
          [](Simulator& self, std::int64_t horizon) -> nb::object {
            // The interpreter's lock is kept: it is what guards the live cell.
            Event event;
            if (!self.next(horizon, event)) return nb::none();
            return nb::make_tuple(event.kind, event.at, event.a, event.b);
          },
          nb::arg("horizon"))
      .def("comes_next", &Simulator::comes_next, nb::arg("at"))
      .def("advance", &Simulator::advance, nb::arg("at"))
      .def(
          "hear_own",
          [](Simulator& self, std::int32_t owner) {
            if (owner < 0) throw nb::value_error("owners are numbered from 0");
            self.hear_own(owner);
          },
          nb::arg("owner"))
      .def("hear_all", &Simulator::hear_all)
      .def(
          "listen",
          [](Simulator& self, std::int32_t owner, WaitView* view) {
            if (owner < 0) throw nb::value_error("owners are numbered from 0");
            self.listen(owner, view);
          },
          nb::arg("owner"), nb::arg("view").none())
      .def("set_hop", &Simulator::set_hop, nb::arg("hop"))
      .def("set_round_trip", &Simulator::set_round_trip, nb::arg("round_trip"))
      .def("cut_off", &Simulator::cut_off, nb::arg("owner"), nb::arg("since"), nb::arg("until"))
      .def("keep_loads", &Simulator::keep_loads)
      .def_prop_ro("stolen", &Simulator::stolen)
      .def(
          "beat_every",
          [](Simulator& self, std::int64_t every, bool counts_sent) {
            self.loads().beat_every(every);
            if (counts_sent) self.loads().count_sent();
          },
          nb::arg("every"), nb::arg("counts_sent") = false)
      .def(
          "deal",
          [](Simulator& self, std::int64_t at, std::int64_t job, std::int32_t owner,
             std::int32_t scheduler, std::int32_t shape, std::int64_t estimate,
             InArray<std::int32_t> machines, InArray<std::int64_t> tasks,
             InArray<std::int64_t> durations, bool sticky, bool cancel) {
            known_job(self.board(), job);
            check_lengths(tasks.size(), {durations.size()});
            for (std::size_t i = 0; i < machines.size(); ++i) {
              if (!self.knows_machine(machines.data()[i])) {
                throw nb::value_error("unknown machine number");
              }
            }
            if (first_misplaced(self, tasks, owner, false, false) >= 0) {
              throw nb::value_error("only pending tasks can be dealt");
            }
            if (tasks.size() > machines.size() && !(sticky && machines.size() > 0)) {
              throw nb::value_error("fewer probes than tasks");
            }
            Simulator::Hand hand;
            hand.tasks.assign(tasks.data(), tasks.data() + tasks.size());
            hand.durations.assign(durations.data(), durations.data() + durations.size());
            hand.is_sticky = sticky;
            self.deal(at, job, owner, scheduler, shape, estimate,
                      {machines.data(), machines.size()}, std::move(hand), cancel);
          },
          nb::arg("at"), nb::arg("job"), nb::arg("owner"), nb::arg("scheduler"), nb::arg("shape"),
          nb::arg("estimate"), nb::arg("machines"), nb::arg("tasks"), nb::arg("durations"),
          nb::arg("sticky"), nb::arg("cancel"))
      .def(
          "gossip",
          [](Simulator& self, const std::vector<std::int32_t>& owners, std::int64_t due,
             InArray<std::int64_t> tasks, InArray<std::uint8_t> versions,
             InArray<std::int32_t> machines, std::int64_t estimate, std::int32_t shape,
             std::int64_t total, std::int64_t since, std::int64_t spacing) {
            const std::size_t n = tasks.size();
            check_lengths(n, {versions.size(), machines.size()});
            if (spacing < 0) throw nb::value_error("reports come one after the other");
            for (std::size_t i = 0; i < n; ++i) {
              if (machines.data()[i] >= 0 && !self.knows_machine(machines.data()[i])) {
                throw nb::value_error("unknown machine number");
              }
            }
            const Simulator::Gossip news{{tasks.data(), n}, {versions.data(), n},
                                         {machines.data(), n}, estimate, total, since, spacing,
                                         shape};
            for (const std::int32_t owner : owners) self.gossip(owner, due, news);
          },
          nb::arg("owners"), nb::arg("due"), nb::arg("tasks"), nb::arg("versions"),
          nb::arg("machines"), nb::arg("estimate"), nb::arg("shape"), nb::arg("total"),
          nb::arg("since"), nb::arg("spacing"))
      .def(
          "add_job",
          [](Simulator& self, std::int64_t submit, std::int64_t tasks, std::int32_t owner) {
            if (tasks < 1 || tasks > (std::int64_t{1} << 32)) {
              throw nb::value_error("a job has 1 to 2^32 tasks");
            }
            return self.board().add(submit, tasks, owner);
          },
          nb::arg("submit"), nb::arg("tasks"), nb::arg("owner"))
      .def(
          "add_pool",
          [](Simulator& self, std::int64_t job, InArray<std::int64_t> activities,
             InArray<std::int64_t> durations) {
            known_job(self.board(), job);
            check_lengths(activities.size(), {durations.size()});
            std::vector<Phase> phases;
            for (std::size_t i = 0; i < activities.size(); ++i) {
              const std::int64_t a = activities.data()[i], d = durations.data()[i];
              if (a < 1 || d < 0 || d > (std::int64_t{1} << 62) / a) {
                throw nb::value_error("a phase has 1 activity or more, and at most 2^62 of work");
              }
              phases.push_back({a, d});
            }
            if (phases.empty()) throw nb::value_error("a pool has at least one phase");
            self.add_pool(job, std::move(phases));
          },
          nb::arg("job"), nb::arg("activities"), nb::arg("durations"))
      .def("pool_columns",
           [](const Simulator& self) {
             std::vector<std::int64_t> jobs, began, ended, asked;
             for (const Pool& pool : self.pools()) {
               jobs.push_back(pool.job());
               began.push_back(pool.began());
               ended.push_back(pool.ended());
               asked.push_back(pool.time_asked());
             }
             return std::make_tuple(to_numpy(std::move(jobs)), to_numpy(std::move(began)),
                                    to_numpy(std::move(ended)), to_numpy(std::move(asked)));
           })
      .def("take_phases",
           [](Simulator& self) {
             nb::list notices;
             for (const PhaseNotice& notice : self.take_phases()) {
               notices.append(nb::make_tuple(notice.job, notice.phase));
             }
             return notices;
           })
      .def(
          "attempt",
          [](Simulator& self, std::int64_t job, std::int64_t duration) {
            self.board().attempt(known_job(self.board(), job), self.now(), duration);
          },
          nb::arg("job"), nb::arg("duration"))
      .def(
          "owner",
          [](const Simulator& self, std::int64_t job) {
            return self.board().owner(known_job(self.board(), job));
          },
          nb::arg("job"))
      .def(
          "set_owner",
          [](Simulator& self, std::int64_t job, std::int32_t owner) {
            self.board().set_owner(known_job(self.board(), job), owner);
          },
          nb::arg("job"), nb::arg("owner"))
      .def(
          "first_misplaced",
          [](const Simulator& self, InArray<std::int64_t> tasks, std::int32_t owner, bool may_run,
             bool extras) { return first_misplaced(self, tasks, owner, may_run, extras); },
          nb::arg("tasks"), nb::arg("owner"), nb::arg("may_run"), nb::arg("extras") = false)
      .def(
          "state",
          [](const Simulator& self, std::int64_t task) {
            if (!self.board().has_task(task)) throw nb::value_error("unknown task number");
            return static_cast<int>(self.board().state(task));
          },
          nb::arg("task"))
      .def("counts",
           [](const Simulator& self) {
             std::vector<std::int64_t> counts;
             for (int s = 0; s < task_states; ++s) {
               counts.push_back(self.board().count(static_cast<TaskState>(s)));
             }
             return to_numpy(std::move(counts));
           })
      .def(
          "tasks_in",
          [](const Simulator& self, std::int64_t job, int state) {
            if (state < 0 || state >= task_states) throw nb::value_error("unknown task state");
            std::vector<std::int64_t> tasks;
            self.board().tasks_in(known_job(self.board(), job), static_cast<TaskState>(state),
                                  tasks);
            return to_numpy(std::move(tasks));
          },
          nb::arg("job"), nb::arg("state"))
      .def(
          "jobs_with_pending",
          [](const Simulator& self, std::int32_t owner) {
            std::vector<std::int64_t> jobs;
            self.board().jobs_with_pending(owner, jobs);
            return to_numpy(std::move(jobs));
          },
          nb::arg("owner"))
      .def(
          "set_pending",
          [](Simulator& self, InArray<std::int64_t> tasks) {
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              if (!self.board().has_task(tasks.data()[i]) && !self.is_extra(tasks.data()[i])) {
                throw nb::value_error("unknown task number");
              }
            }
            for (std::size_t i = 0; i < tasks.size(); ++i) self.set_pending(tasks.data()[i]);
          },
          nb::arg("tasks"))
      .def(
          "set_abandoned",
          [](Simulator& self, InArray<std::int64_t> tasks) {
            if (first_misplaced(self, tasks, -1, false, false) >= 0) {
              throw nb::value_error("only pending tasks can be abandoned");
            }
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              self.board().move(tasks.data()[i], TaskState::abandoned, self.now());
            }
          },
          nb::arg("tasks"))
      .def(
          "launch",
          [](Simulator& self, InArray<std::int64_t> tasks, InArray<std::int64_t> durations,
             InArray<std::int64_t> estimates) {
            check_lengths(tasks.size(), {durations.size(), estimates.size()});
            require_launchable(self, tasks);
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              self.launch(tasks.data()[i], durations.data()[i], estimates.data()[i], self.now());
            }
          },
          nb::arg("tasks"), nb::arg("durations"), nb::arg("estimates"))
      .def(
          "launch_alike",
          [](Simulator& self, InArray<std::int64_t> tasks, std::int64_t duration,
             std::int64_t estimate) {
            for (std::size_t i = 1; i < tasks.size(); ++i) {
              if (Board::job_of(tasks.data()[i]) != Board::job_of(tasks.data()[0])) return false;
            }
            require_launchable(self, tasks);
            self.launch_alike({tasks.data(), tasks.size()}, duration, estimate);
            return true;
          },
          nb::arg("tasks"), nb::arg("duration"), nb::arg("estimate"))
      .def(
          "enqueue",
          [](Simulator& self, std::int64_t at, std::int32_t scheduler, InArray<std::int64_t> tasks,
             InArray<std::int32_t> machines, InArray<std::int32_t> shapes,
             InArray<std::int64_t> durations, InArray<std::int64_t> estimates, std::int64_t first,
             std::int64_t spacing) {
            const std::size_t n = tasks.size();
            check_lengths(n, {machines.size(), shapes.size(), durations.size(), estimates.size()});
            if (first < 0 || spacing < 0) throw nb::value_error("tasks leave one after the other");
            if (first_misplaced(self, tasks, -1, false, false) >= 0) {
              throw nb::value_error("only pending tasks can be enqueued");
            }
            std::vector<Simulator::Arrival> batch;
            batch.reserve(n);
            for (std::size_t i = 0; i < n; ++i) {
              if (!self.knows_machine(machines.data()[i])) {
                throw nb::value_error("unknown machine number");
              }
              const std::int64_t after = first + static_cast<std::int64_t>(i) * spacing;
              batch.push_back({tasks.data()[i], durations.data()[i], estimates.data()[i],
                               self.now() + after, at + after, machines.data()[i],
                               shapes.data()[i], scheduler});
            }
            self.enqueue(std::move(batch));
          },
          nb::arg("at"), nb::arg("scheduler"), nb::arg("tasks"), nb::arg("machines"),
          nb::arg("shapes"), nb::arg("durations"), nb::arg("estimates"), nb::arg("first") = 0,
          nb::arg("spacing") = 0)
      .def(
          "lose_queue",
          [](Simulator& self, std::int32_t machine) {
            if (machine < 0) throw nb::value_error("unknown machine number");
            std::vector<std::int64_t> tasks;
            self.lose_queue(machine, tasks);
            if (self.knows_machine(machine)) self.recount(machine);
            return to_numpy(std::move(tasks));
          },
          nb::arg("machine"))
      .def(
          "pump",
          [](Simulator& self, std::int32_t machine) {
            if (machine < 0) throw nb::value_error("unknown machine number");
            self.recount(machine);
            self.pump(machine);
          },
          nb::arg("machine"))
      .def(
          "probe",
          [](Simulator& self, std::int64_t at, std::int64_t job, std::int32_t owner,
             std::int32_t scheduler, std::int32_t shape, std::int64_t estimate,
             InArray<std::int32_t> machines) {
            known_job(self.board(), job);
            for (std::size_t i = 0; i < machines.size(); ++i) {
              if (!self.knows_machine(machines.data()[i])) {
                throw nb::value_error("unknown machine number");
              }
            }
            self.probe(at, job, owner, scheduler, shape, estimate,
                       {machines.data(), machines.size()});
          },
          nb::arg("at"), nb::arg("job"), nb::arg("owner"), nb::arg("scheduler"), nb::arg("shape"),
          nb::arg("estimate"), nb::arg("machines"))
      .def("is_held", &Simulator::is_held, nb::arg("probe"))
      .def(
          "bind",
          [](Simulator& self, std::int64_t probe, std::int64_t task, std::int64_t duration,
             std::int64_t estimate) {
            if (!self.is_held(probe)) throw nb::value_error("that probe holds no slot");
            if (!self.board().has_task(task) ||
                self.board().state(task) != TaskState::pending) {
              throw nb::value_error("only pending tasks can be bound");
            }
            return self.bind(probe, task, duration, estimate);
          },
          nb::arg("probe"), nb::arg("task"), nb::arg("duration"), nb::arg("estimate"))
      .def(
          "cancel",
          [](Simulator& self, std::int64_t probe) {
            if (!self.is_held(probe)) throw nb::value_error("that probe holds no slot");
            self.cancel(probe);
          },
          nb::arg("probe"))
      .def("cancel_all", &Simulator::cancel_all, nb::arg("owner"))
      .def("is_hold", [](const Simulator&, std::int64_t task) { return Simulator::is_hold(task); },
           nb::arg("task"))
      .def("take_ready",
           [](Simulator& self) {
             nb::list notices;
             for (const ProbeNotice& notice : self.take_ready()) {
               notices.append(
                   nb::make_tuple(notice.probe, notice.job, notice.machine, notice.owner));
             }
             return notices;
           })
      .def(
          "queue_state",
          [](Simulator& self, bool only_long, bool as_of_beat) {
            std::vector<std::int64_t> lengths, waits;
            self.queue_state(only_long, as_of_beat, lengths, waits);
            return std::make_tuple(to_numpy(std::move(lengths)), to_numpy(std::move(waits)));
          },
          nb::arg("only_long") = false, nb::arg("as_of_beat") = false)
      .def("take_done", [](Simulator& self) { return to_numpy(self.board().take_done()); })
      .def("take_finished", [](Simulator& self) { return notices(self.take_finished()); })
      .def("take_lost", [](Simulator& self) { return notices(self.take_lost()); })
      .def("take_refused", [](Simulator& self) { return notices(self.take_refused()); })
      .def("job_columns",
           [](const Simulator& self) {
             const Board& board = self.board();
             return std::make_tuple(
                 to_numpy(std::vector<std::int64_t>(board.submit())),
                 to_numpy(std::vector<std::int64_t>(board.first_attempt())),
                 to_numpy(std::vector<std::int64_t>(board.all_placed())),
                 to_numpy(std::vector<std::int64_t>(board.done())));
           })
      .def("thought_by_job",
           [](const Simulator& self) {
             return to_numpy(std::vector<std::int64_t>(self.board().thought()));
           })
      .def("abandoned_by_job",
           [](const Simulator& self) {
             return to_numpy(std::vector<std::int64_t>(self.board().abandoned()));
           })
      .def("task_columns", [](const Simulator& self) { return task_columns(self.rows()); })
      .def("running_columns", [](const Simulator& self) { return task_columns(self.running()); })
      .def("integrals",
           [](const Simulator& self) {
             return std::make_tuple(to_numpy(std::vector<double>(self.used_integral())),
                                    to_numpy(std::vector<double>(self.capacity_integral())));
           })
      .def("samples", [](const Simulator& self) {
        const std::size_t width = static_cast<std::size_t>(self.sample_width());
        return to_numpy(std::vector<std::int64_t>(self.samples()),
                        {self.samples().size() / width, width});
      });
}
