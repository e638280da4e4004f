// argosy._core: Board, LineBuffer, and the enumerations that Python shares with core/host.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "host/board.hpp"
#include "host/line_buffer.hpp"
#include "host/machine_queue.hpp"
#include "host/notices.hpp"
#include "task_numbers.hpp"

namespace nb = nanobind;

namespace {

using namespace argosy;

std::int64_t known(const Board& board, std::int64_t job) {
  if (!board.has_job(job)) throw nb::value_error("unknown job number");
  return job;
}

OutArray<std::int64_t> copy_of(const std::vector<std::int64_t>& column) {
  return to_numpy(std::vector<std::int64_t>(column));
}

using LentArray = nb::ndarray<nb::numpy, const std::int64_t, nb::ndim<1>>;

// Without a copy; the array keeps the board.
LentArray lent(const Board& board, const std::vector<std::int64_t>& column) {
  return LentArray(column.data(), {column.size()}, nb::find(board));
}

void bind_enums(nb::module_& module) {
  nb::enum_<TaskState>(module, "TaskState", nb::is_arithmetic())
      .value("PENDING", TaskState::pending)
      .value("QUEUED", TaskState::queued)
      .value("RUNNING", TaskState::running)
      .value("FINISHED", TaskState::finished)
      .value("ABANDONED", TaskState::abandoned)
      .value("FAILED", TaskState::failed)
      .value("CANCELLED", TaskState::cancelled);
  nb::enum_<RuntimeEvent>(module, "RuntimeEvent", nb::is_arithmetic())
      .value("FINISHED", RuntimeEvent::finished)
      .value("LOST", RuntimeEvent::lost)
      .value("PROBES", RuntimeEvent::probes)
      .value("PHASES", RuntimeEvent::phases)
      .value("ROOM", RuntimeEvent::room)
      .value("FULL", RuntimeEvent::full)
      .value("CALL", RuntimeEvent::call)
      .value("SUBMIT", RuntimeEvent::submit)
      .value("FAULT", RuntimeEvent::fault);
  nb::enum_<QueueOrder>(module, "QueueOrder", nb::is_arithmetic())
      .value("FCFS", QueueOrder::fcfs)
      .value("SHORTEST_FIRST", QueueOrder::shortest_first)
      .value("SHORTEST_REMAINING", QueueOrder::shortest_remaining);
}

void bind_lines(nb::module_& module) {
  nb::class_<LineBuffer>(module, "LineBuffer")
      .def(nb::init<>())
      .def("append",
           [](LineBuffer& self, const nb::bytes& line) {
             self.append(std::string_view(line.c_str(), line.size()));
             self.append("\n");
           },
           nb::arg("line"))
      .def("__len__", &LineBuffer::size)
      .def("take", [](LineBuffer& self) {
        nb::bytes text(self.text().data(), self.size());
        self.clear();
        return text;
      });
}

}  // namespace

// The tasks of a job with indices from 0.
OutArray<std::int64_t> first_tasks(std::int64_t job, std::int64_t count) {
  if (job < 0 || job >= (std::int64_t{1} << 31)) throw nb::value_error("job numbers are from 0 to 2^31 - 1");
  if (count < 0 || count > (std::int64_t{1} << index_bits)) throw nb::value_error("a job has up to 2^32 tasks");
  return filled<std::int64_t>(static_cast<std::size_t>(count), [job](std::size_t index) {
    return task_number(job, static_cast<std::int64_t>(index));
  });
}

void bind_board(nb::module_& module) {
  bind_enums(module);
  module.def("first_tasks", &first_tasks, nb::arg("job"), nb::arg("count"));
  bind_lines(module);
  nb::class_<Board>(module, "Board")
      .def_prop_ro("jobs", &Board::jobs)
      .def_prop_ro("open_tasks", &Board::open)
      .def(
          "grow_job",
          [](Board& self, std::int64_t job, std::int64_t tasks) {
            if (self.is_done(known(self, job))) throw nb::value_error("a job that is done cannot grow");
            if (tasks < self.tasks(job) || tasks > std::int64_t{1} << 32) {
              throw nb::value_error("a job grows to at most 2^32 tasks");
            }
            self.grow(job, tasks);
          },
          nb::arg("job"), nb::arg("tasks"))
      .def("owner", [](const Board& self, std::int64_t job) { return self.owner(known(self, job)); },
           nb::arg("job"))
      .def(
          "set_owner",
          [](Board& self, std::int64_t job, std::int32_t owner) {
            self.set_owner(known(self, job), owner);
          },
          nb::arg("job"), nb::arg("owner"))
      .def("is_over",
           [](const Board& self, std::int64_t job) { return self.is_over(known(self, job)); },
           nb::arg("job"))
      .def("tasks", [](const Board& self, std::int64_t job) { return self.tasks(known(self, job)); },
           nb::arg("job"))
      .def("shares_work",
           [](const Board& self, std::int64_t job) { return self.shares_work(known(self, job)); },
           nb::arg("job"))
      .def(
          "first_misplaced",
          [](const Board& self, InArray<std::int64_t> tasks, std::int32_t owner, bool may_run,
             bool extras) {
            return self.first_misplaced({tasks.data(), tasks.size()}, owner, may_run, extras);
          },
          nb::arg("tasks"), nb::arg("owner"), nb::arg("may_run"), nb::arg("extras") = false)
      .def(
          "first_foreign",
          [](const Board& self, InArray<std::int64_t> tasks, std::int32_t owner) {
            return self.first_foreign({tasks.data(), tasks.size()}, owner);
          },
          nb::arg("tasks"), nb::arg("owner"))
      .def(
          "state",
          [](const Board& self, std::int64_t task) {
            if (!self.has_task(task)) throw nb::value_error("unknown task number");
            return self.state(task);
          },
          nb::arg("task"))
      .def("counts",
           [](const Board& self) {
             std::vector<std::int64_t> counts;
             for (int s = 0; s < task_states; ++s) {
               counts.push_back(self.count(static_cast<TaskState>(s)));
             }
             return to_numpy(std::move(counts));
           })
      .def(
          "tasks_in",
          [](const Board& self, std::int64_t job, TaskState state) {
            std::vector<std::int64_t> tasks;
            self.tasks_in(known(self, job), state, tasks);
            return to_numpy(std::move(tasks));
          },
          nb::arg("job"), nb::arg("state"))
      .def(
          "jobs_with_pending",
          [](const Board& self, std::int32_t owner) {
            std::vector<std::int64_t> jobs;
            self.jobs_with_pending(owner, jobs);
            return to_numpy(std::move(jobs));
          },
          nb::arg("owner"))
      .def("take_done", [](Board& self) { return to_numpy(self.take_done()); })
      .def("job_columns",
           [](const Board& self) {
             return std::make_tuple(copy_of(self.submit()), copy_of(self.first_attempt()),
                                    copy_of(self.all_placed()), copy_of(self.done()));
           })
      // The same, but lent: to be read only until another job is added.
      .def("lend_job_columns",
           [](const Board& self) {
             return std::make_tuple(lent(self, self.submit()), lent(self, self.first_attempt()),
                                    lent(self, self.all_placed()), lent(self, self.done()));
           })
      .def("thought_by_job", [](const Board& self) { return copy_of(self.thought()); })
      .def("abandoned_by_job", [](const Board& self) { return to_numpy(self.abandoned()); })
      .def("cancelled_by_job", [](const Board& self) { return to_numpy(self.cancelled()); });
}
