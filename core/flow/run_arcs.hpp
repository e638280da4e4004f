// Runs: tasks of a class on the same machine, and their arc from the class to the machine.
//
// The arc has their number as its capacity. It costs what their path to the machine would cost if they had just
// been placed, without the links between aggregators, less the cost of migration, so that they stay unless another
// place is better by more than that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cell/flat_map.hpp"
#include "flow/network.hpp"
#include "flow/rows.hpp"
#include "flow/table.hpp"

namespace argosy::flow {

class RunArcs {
 public:
  using R = RunColumn;

  explicit RunArcs(Network& network) : net_(network) {}

  const Table<R>& table() const { return table_; }
  void add_machines(std::size_t machines) { on_.resize(machines); }

  // The run of a class on a machine, -1 if there is none.
  Row find(Row c, Number machine) const {
    const std::int32_t* run = run_of_.find(key(c, machine));
    return run == nullptr ? -1 : *run - 1;
  }
  // The runs on a machine, in the order in which they began.
  const std::vector<Row>& on(Number machine) const { return on_[machine]; }

  // A task has started. If it is the first of its run, `cost` is that of the first arc of its path less the cost of
  // migration, and `is_direct` tells whether that arc led to the machine itself.
  void start(Row c, Number machine, Cost cost, bool is_direct) {
    std::int32_t& run = run_of_.insert(key(c, machine));
    if (run == 0) {
      const Row made = table_.take(1).front();
      run = static_cast<std::int32_t>(made + 1);
      table_[R::task_class][made] = c;
      table_[R::machine][made] = machine;
      table_[R::cost][made] = cost;
      table_[R::is_direct][made] = is_direct;
      on_[machine].push_back(made);
    }
    ++table_[R::tasks][run - 1];
    dirty_.add(run - 1);
  }
  void leave(Row c, Number machine) {
    const Row run = find(c, machine);
    --table_[R::tasks][run];
    dirty_.add(run);
  }

  // What the path costs beyond its first arc: for the first task, and more for each further one.
  void set_onward(Row run, Cost onward, Cost step) {
    table_[R::onward][run] = onward;
    table_[R::step][run] = step;
    if (table_[R::arc][run] != none) set_arc(run);
  }

  // Updates the network; `vertex_of` gives the vertex of a class.
  template <typename VertexOf>
  void sync(VertexOf vertex_of, const std::vector<Vertex>& machine_vertices) {
    if (dirty_.empty()) return;
    const std::vector<Row> runs = dirty_.take();
    for (const Row run : runs) {
      if (table_[R::tasks][run] == 0 || table_[R::arc][run] != none) continue;
      table_[R::arc][run] = net_.add_stepped_arc(
          vertex_of(table_[R::task_class][run]), machine_vertices[table_[R::machine][run]],
          static_cast<std::int32_t>(table_[R::tasks][run]), cost_of(run), step_of(run));
    }
    for (const Row run : runs) {
      if (table_[R::tasks][run] > 0) set_arc(run);
    }
    for (const Row run : runs) {
      if (table_[R::tasks][run] > 0) continue;
      const auto arc = static_cast<Arc>(table_[R::arc][run]);
      if (arc != none) net_.remove_arc(arc);
      run_of_.erase(key(table_[R::task_class][run], table_[R::machine][run]));
      std::erase(on_[table_[R::machine][run]], run);
      table_[R::arc][run] = none;
      table_.give(run);
    }
  }

 private:
  static Number key(Row c, Number machine) { return (c << 32) + machine; }

  Cost cost_of(Row run) const { return table_[R::cost][run] + table_[R::onward][run]; }
  // A single task has no further one.
  Cost step_of(Row run) const { return table_[R::tasks][run] > 1 ? table_[R::step][run] : 0; }

  void set_arc(Row run) {
    net_.set_arc(static_cast<Arc>(table_[R::arc][run]),
                 static_cast<std::int32_t>(table_[R::tasks][run]), cost_of(run), step_of(run));
  }

  Network& net_;
  Table<R> table_{{none, -1, -1, 0, 0, 0, 0, 0}};
  FlatMap<std::int32_t> run_of_;      // run + 1 of class and machine
  std::vector<std::vector<Row>> on_;  // by machine
  Marks dirty_;
};

}  // namespace argosy::flow
