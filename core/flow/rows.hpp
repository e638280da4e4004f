// The rows of a roster: tasks, their classes and runs, jobs, pools and vertices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "flow/halves.hpp"
#include "flow/table.hpp"

namespace argosy::flow {

// State of a task: not this scheduler's or over; without a machine; on a machine.
enum State : Number { gone = 0, pending = 1, running = 2 };

enum class TaskColumn { number, state, machine, task_class, shape, count };
enum class ClassColumn {
  vertex,
  job,
  pool,
  owner,
  pool_arc,
  pool_cost,
  wait_arc,
  wait_cost,
  preemption,
  first,  // the row of its first task
  rows,   // rows from the first to the last of its tasks
  pending,
  running,
  parked,  // whether its waiting tasks are left out of the flow
  count
};
enum class RunColumn {
  arc,
  task_class,
  machine,
  tasks,
  cost,       // of the first arc of the path that led to the machine, less the cost of migration
  is_direct,  // whether that arc led to the machine itself
  onward,     // of the rest of the path, for the first task; each further one costs `step` more
  step,
  count
};

struct JobRow {
  Number number = -1;
  Vertex vertex = none;
  Arc arc = none;
  Cost cost = 0;  // of the arc
  Number precedence = 0;
  Row first = 0;
  Row tasks = 0;
  Number living = 0;
  Number waiting = 0;
  Number since = 0;  // when some of its tasks started to wait
};

// An arc between aggregators of a pool, by their numbers; -1 is the pool itself. It leads to a higher number.
struct Link {
  std::int32_t from, to;
  Arc arc;
};

struct PoolRow {
  static constexpr Number lowest = std::numeric_limits<Number>::min();
  static constexpr Number highest = std::numeric_limits<Number>::max();

  Vertex vertex = none;
  std::vector<Vertex> aggregators;
  std::vector<Link> links;
  std::vector<Number> request;
  std::vector<Number> running;  // by machine
  Number serial = 0;            // never used by another pool
  Number top = lowest;          // the highest precedence of any task it ever had
  Number bottom = highest;      // and the lowest
  bool is_choosy = false;       // whether its tasks go only to some machines
  bool preempts = true;         // whether its tasks may push off others
  Number tasks = 0;             // not over
  Number waiting = 0;
};

// What a vertex stands for: a machine, an aggregator of some pool, a class or a job; the others are `none`.
struct Place {
  std::int32_t machine = none;
  std::int32_t aggregator = none;
  std::int32_t task_class = none;
  std::int32_t job = none;
};

// Rows that changed since the list was last taken.
class Marks {
 public:
  void add(Row row) {
    if (static_cast<std::size_t>(row) >= is_marked_.size()) is_marked_.resize(row + row / 2 + 64, 0);
    if (is_marked_[row]) return;
    is_marked_[row] = 1;
    rows_.push_back(row);
  }
  void remove(Row row) {
    if (static_cast<std::size_t>(row) < is_marked_.size()) is_marked_[row] = 0;
  }
  bool empty() const { return rows_.empty(); }
  // In order of their numbers.
  std::vector<Row> take() {
    std::vector<Row> rows;
    rows.swap(rows_);
    std::erase_if(rows, [&](Row row) { return !is_marked_[row]; });
    for (const Row row : rows) is_marked_[row] = 0;
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }

 private:
  std::vector<Row> rows_;
  std::vector<std::uint8_t> is_marked_;
};

}  // namespace argosy::flow
