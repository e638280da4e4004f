// Kinds of events of the runtime, and the rows of its reports.
//
// Numbers below `first_python_kind` are the runtime's own. Reports are delivered at the end of the instant in
// which something happened, before the next event of the world.
#pragma once

#include <cstdint>

namespace argosy {

enum class RuntimeEvent : std::int32_t {
  // Tasks ended whose ends somebody wants to know about.
  finished = 2,
  // Tasks arrived at a machine that is gone, draining, too small for them, or whose queue is full.
  lost = 3,
  // Probes reached the head of their queues.
  probes = 4,
  // Phases of shared work ended.
  phases = 5,
  // Queues that somebody waits for have room.
  room = 8,
  // The buffer of the journal is full.
  full = 9,
  // What the host pushed.
  call = 16,
  // Pushed by a world for itself: jobs and faults of a scenario.
  submit = 32,
  fault = 33,
};

enum TimerKind : std::int32_t {
  finish_kind = 0,
  arrive_kind = 1,
  // A phase of a pool ends, unless its workers changed since.
  phase_kind = 6,
  // A machine asked in vain and has its slot back.
  release_kind = 7,
  first_python_kind = 16,
  // From here on, a world's own events: not inputs of the host but the source of its inputs. They are in no
  // journal.
  first_world_kind = 32,
  last_python_kind = 255,
};

// An event of a Python kind, or a report.
struct Due {
  std::int64_t at = 0;
  std::int64_t b = 0;
  std::int32_t kind = 0;
  std::int32_t a = 0;
};

struct TaskRow {
  std::int64_t task;
  std::int64_t placed;
  std::int64_t started;
  std::int64_t finished;
  std::int32_t machine;
};

struct Notice {
  std::int64_t task;
  std::int64_t estimate;
  // When it started, if it has ended.
  std::int64_t started;
  std::int32_t machine;
  std::int32_t shape;
};

// An attempt at a task starts on a machine.
struct StartNotice {
  std::int64_t task;
  std::int64_t estimate;
  std::uint64_t incarnation;
  std::int32_t machine;
};

struct ProbeNotice {
  std::int64_t probe;
  std::int64_t job;
  std::int32_t machine;
  std::int32_t owner;
};

struct PhaseNotice {
  std::int64_t job;
  std::int64_t phase;
  // Mean duration of one of its activities.
  std::int64_t duration;
};

}  // namespace argosy
