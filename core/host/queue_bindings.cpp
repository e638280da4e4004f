// argosy._core: the queues of a TaskRuntime's machines, and probes in them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "host/checks.hpp"

namespace argosy {

void bind_queues(nb::class_<TaskRuntime>& type) {
  type.def(
          "enqueue",
          [](TaskRuntime& self, std::int64_t at, std::int32_t scheduler, InArray<std::int64_t> tasks,
             InArray<std::int32_t> machines, std::optional<std::int64_t> estimate,
             const std::vector<std::int32_t>& requirements, std::int64_t first, std::int64_t spacing) {
            check_lengths(tasks.size(), {machines.size()});
            if (!requirements.empty()) check_lengths(tasks.size(), {requirements.size()});
            require(first >= 0 && spacing >= 0, "tasks leave one after the other");
            require(self.board().first_misplaced(span_of(tasks), -1, false, false) < 0,
                    "only pending tasks can be enqueued");
            require_machines(self, span_of(machines));
            for (const std::int32_t requirement : requirements) {
              require(self.requirements().knows(requirement), "unknown requirement");
            }
            std::vector<Arrival> batch;
            batch.reserve(tasks.size());
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              const std::int64_t after = first + static_cast<std::int64_t>(i) * spacing;
              const TaskFact fact = self.facts().of(tasks.data()[i]);
              batch.push_back({tasks.data()[i], fact.time, estimate.value_or(fact.estimate),
                               self.now() + after, at + after, machines.data()[i], fact.shape,
                               scheduler, requirements.empty() ? 0 : requirements[i]});
            }
            self.enqueue(std::move(batch));
          },
          nb::arg("at"), nb::arg("scheduler"), nb::arg("tasks"), nb::arg("machines"),
          nb::arg("estimate").none() = nb::none(),
          nb::arg("requirements") = std::vector<std::int32_t>{}, nb::arg("first") = 0,
          nb::arg("spacing") = 0)
      .def(
          "lose_queue",
          [](TaskRuntime& self, std::int32_t machine) {
            require(machine >= 0, "unknown machine number");
            std::vector<std::int64_t> tasks;
            self.lose_queue(machine, tasks);
            if (self.cell().knows(machine)) self.recount(machine);
            return to_numpy(std::move(tasks));
          },
          nb::arg("machine"))
      .def(
          "lose_probes",
          [](TaskRuntime& self, std::int32_t machine) {
            require(machine >= 0, "unknown machine number");
            self.lose_probes(machine);
          },
          nb::arg("machine"))
      .def(
          "pump",
          [](TaskRuntime& self, std::int32_t machine) {
            require(machine >= 0, "unknown machine number");
            self.recount(machine);
            self.pump(machine);
          },
          nb::arg("machine"))
      .def("keep_loads", &TaskRuntime::keep_loads)
      .def(
          "beat_every",
          [](TaskRuntime& self, std::int64_t every, bool counts_sent) {
            self.loads().beat_every(every);
            if (counts_sent) self.loads().count_sent();
          },
          nb::arg("every"), nb::arg("counts_sent") = false)
      .def(
          "queue_state",
          [](TaskRuntime& self, bool only_long, bool as_of_beat) {
            std::vector<std::int64_t> lengths, waits;
            self.queue_state(only_long, as_of_beat, lengths, waits);
            return std::make_tuple(to_numpy(std::move(lengths)), to_numpy(std::move(waits)));
          },
          nb::arg("only_long") = false, nb::arg("as_of_beat") = false)
      .def(
          "add_requirement",
          [](TaskRuntime& self, std::vector<std::int32_t> attributes) {
            return self.requirements().add(std::move(attributes));
          },
          nb::arg("attributes"))
      .def("queue_room",
           [](const TaskRuntime& self) {
             std::vector<std::int64_t> room(static_cast<std::size_t>(self.cell().machines()));
             for (std::size_t i = 0; i < room.size(); ++i) {
               room[i] = self.queue_room(static_cast<std::int32_t>(i));
             }
             return to_numpy(std::move(room));
           })
      .def(
          "await_room",
          [](TaskRuntime& self, InArray<std::int32_t> machines) {
            require_machines(self, span_of(machines));
            self.await_room(span_of(machines));
          },
          nb::arg("machines"))
      .def("queued",
           [](const TaskRuntime& self) {
             std::vector<std::int64_t> jobs, tasks;
             std::vector<std::int32_t> machines;
             self.queued(jobs, tasks, machines);
             return std::make_tuple(to_numpy(std::move(jobs)), to_numpy(std::move(tasks)),
                                    to_numpy(std::move(machines)));
           })
      .def("take_roomy", [](TaskRuntime& self) { return to_numpy(self.take_roomy()); })
      .def_prop_ro("stolen", &TaskRuntime::stolen);
}

void bind_probes(nb::class_<TaskRuntime>& type) {
  type.def("set_round_trip",
           [](TaskRuntime& self, std::int64_t trip) { self.probes().set_round_trip(trip); },
           nb::arg("round_trip"))
      .def(
          "cut_off",
          [](TaskRuntime& self, std::int32_t owner, std::int64_t since, std::int64_t until) {
            self.probes().cut_off(owner, since, until);
          },
          nb::arg("owner"), nb::arg("since"), nb::arg("until"))
      .def(
          "probe",
          [](TaskRuntime& self, std::int64_t at, const ProbeTerms& terms,
             InArray<std::int32_t> machines) {
            known_job(self, terms.job);
            require(self.requirements().knows(terms.requirement), "unknown requirement");
            require_machines(self, span_of(machines));
            self.probe(at, terms, span_of(machines));
          },
          nb::arg("at"), nb::arg("terms"), nb::arg("machines"))
      .def(
          "deal",
          [](TaskRuntime& self, std::int64_t at, const ProbeTerms& terms,
             InArray<std::int32_t> machines, InArray<std::int64_t> tasks, bool sticky, bool cancel) {
            known_job(self, terms.job);
            require(self.requirements().knows(terms.requirement), "unknown requirement");
            require_machines(self, span_of(machines));
            require(self.board().first_misplaced(span_of(tasks), terms.owner, false, false) < 0,
                    "only pending tasks can be dealt");
            require(tasks.size() <= machines.size() || (sticky && machines.size() > 0),
                    "fewer probes than tasks");
            Hand hand;
            hand.tasks.assign(tasks.data(), tasks.data() + tasks.size());
            hand.durations.reserve(tasks.size());
            for (const std::int64_t task : hand.tasks) {
              hand.durations.push_back(self.facts().of(task).time);
            }
            hand.is_sticky = sticky;
            hand.is_cancelled = cancel;
            self.deal(at, terms, span_of(machines), std::move(hand));
          },
          nb::arg("at"), nb::arg("terms"), nb::arg("machines"), nb::arg("tasks"),
          nb::arg("sticky") = false, nb::arg("cancel") = false)
      .def("is_held",
           [](TaskRuntime& self, std::int64_t probe) { return self.probes().is_held(probe); },
           nb::arg("probe"))
      // Of a probe that holds a slot.
      .def("probe_owner",
           [](TaskRuntime& self, std::int64_t probe) {
             require(self.probes().is_held(probe), "that probe holds no slot");
             return self.probes()[probe].owner;
           },
           nb::arg("probe"))
      .def(
          "bind",
          [](TaskRuntime& self, std::int64_t probe, std::int64_t task) {
            require(self.probes().is_held(probe), "that probe holds no slot");
            require(self.board().has_task(task) && self.board().state(task) == TaskState::pending,
                    "only pending tasks can be bound");
            return self.bind(probe, task);
          },
          nb::arg("probe"), nb::arg("task"))
      .def(
          "cancel",
          [](TaskRuntime& self, std::int64_t probe) {
            require(self.probes().is_held(probe), "that probe holds no slot");
            self.cancel(probe);
          },
          nb::arg("probe"))
      .def("cancel_all", &TaskRuntime::cancel_all, nb::arg("owner"))
      .def("is_hold", [](const TaskRuntime&, std::int64_t task) { return Probe::is_hold(task); },
           nb::arg("task"));
}

}  // namespace argosy
