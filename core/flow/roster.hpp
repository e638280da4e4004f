// The roster: the tasks of a scheduler, and their vertices and arcs in its flow network.
//
// A task is a row. Tasks that are the same to the flow form a *class*: one vertex with their number as its
// supply, an arc to its pool, and one to its job, which stands for waiting. Tasks of a class that run on
// the same machine form a *run*: an arc from the class to the machine, with their number as its capacity. It
// costs what their path through the pool would cost if they had just been placed, less the cost of migration.
// Costs are inputs; there is no policy here.
//
// Events change rows and mark what they touched; `sync` updates the network in bulk. An event costs O(tasks
// it names), `sync` O(changes); no cost is proportional to the number of all tasks. Sums of requests are 64
// bits wide, as the cell's are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cell/flat_map.hpp"
#include "flow/network.hpp"
#include "flow/rows.hpp"
#include "flow/run_arcs.hpp"
#include "flow/table.hpp"
#include "flow/ways.hpp"
#include "task_numbers.hpp"

namespace argosy::flow {

// One group of a job's new tasks.
struct NewGroup {
  Number job, pool, owner, shape, waiting;
  Row tasks;
  bool is_each;  // whether each task is its own class
};

class Roster {
 public:
  using T = TaskColumn;
  using C = ClassColumn;

  // With `drains`, the flow of tasks that end is removed along its whole path (efficient task removal).
  Roster(Network& network, std::int32_t dimensions, bool reschedules, Number migration, bool drains)
      : net_(network),
        dimensions_(dimensions),
        reschedules_(reschedules),
        migration_(migration),
        drains_(drains),
        runs_(network) {}

  Network& network() { return net_; }
  const Network& network() const { return net_; }
  std::int32_t dimensions() const { return dimensions_; }
  bool reschedules() const { return reschedules_; }
  Ways& ways() { return ways_; }
  const Table<T>& tasks() const { return tasks_; }
  const Table<C>& classes() const { return classes_; }
  const RunArcs& runs() const { return runs_; }

  // Machines, pools and owners.

  void add_machines(std::span<const Vertex> vertices) {
    for (const Vertex v : vertices) {
      place(v).machine = static_cast<std::int32_t>(machine_vertices_.size());
      machine_vertices_.push_back(v);
    }
    own_.resize(machine_vertices_.size() * dimensions_, 0);
    own_tasks_.resize(machine_vertices_.size(), 0);
    runs_.add_machines(machine_vertices_.size());
    for (PoolRow& pool : pools_) pool.running.resize(machine_vertices_.size(), 0);
  }
  std::size_t machines() const { return machine_vertices_.size(); }
  Vertex machine_vertex(Number machine) const { return machine_vertices_[machine]; }
  const Place* place_of(Vertex v) const {
    return static_cast<std::size_t>(v) < places_.size() ? &places_[v] : nullptr;
  }
  // Resources held by own tasks, one row per machine.
  const std::vector<Number>& own() const { return own_; }
  const std::vector<Number>& own_tasks() const { return own_tasks_; }

  // Machines on which own tasks started or ended since the last call, in order.
  std::vector<Row> take_touched_machines() { return touched_machines_.take(); }

  void open_pool(Number number, Vertex vertex, std::span<const Number> request,
                 bool is_choosy, bool preempts) {
    if (static_cast<std::size_t>(number) >= pools_.size()) pools_.resize(number + 1);
    PoolRow& pool = pools_[number];
    pool = PoolRow{};
    pool.serial = ++serials_;
    pool.vertex = vertex;
    pool.is_choosy = is_choosy;
    pool.preempts = preempts;
    pool.request.assign(request.begin(), request.end());
    pool.running.assign(machines(), 0);
  }
  // Adds aggregators between a pool and its machines, and arcs between them.
  void add_aggregators(Number number, std::span<const Vertex> vertices, std::span<const Link> links) {
    PoolRow& pool = pools_[number];
    for (const Vertex v : vertices) {
      place(v).aggregator = static_cast<std::int32_t>(pool.aggregators.size());
      pool.aggregators.push_back(v);
    }
    pool.links.insert(pool.links.end(), links.begin(), links.end());
  }
  void close_pool(Number number) {
    for (const Vertex v : pools_[number].aggregators) places_[v] = Place{};
    pools_[number] = PoolRow{};
  }
  bool has_pool(Number number) const {
    return number >= 0 && static_cast<std::size_t>(number) < pools_.size() &&
           pools_[number].vertex != none;
  }
  const PoolRow& pool(Number number) const { return pools_[number]; }
  const PoolRow& pool_of(Row task) const {
    return pools_[classes_[C::pool][tasks_[T::task_class][task]]];
  }
  std::size_t pools() const { return pools_.size(); }

  // There are so many resources now; of each pool: its request, and whether it goes only to some machines.
  void widen(std::int32_t dimensions, std::span<const Number> requests, std::span<const bool> are_choosy) {
    dimensions_ = dimensions;
    own_.assign(machine_vertices_.size() * dimensions_, 0);
    for (std::size_t number = 0; number < pools_.size(); ++number) {
      PoolRow& pool = pools_[number];
      if (pool.vertex == none) continue;
      const auto row = requests.subspan(number * dimensions_, dimensions_);
      pool.request.assign(row.begin(), row.end());
      pool.is_choosy = are_choosy[number];
      for (std::size_t i = 0; i < own_.size(); ++i) own_[i] += pool.running[i / dimensions_] * row[i % dimensions_];
    }
    demands_.assign(owner_tasks_.size() * dimensions_, 0);
    for (Row c = 0; c < classes_.used(); ++c)
      if (const Number tasks = classes_[C::pending][c] + classes_[C::running][c]; tasks > 0)
        demand(classes_[C::owner][c], classes_[C::pool][c], tasks);
  }

  void add_owner() {
    owner_tasks_.push_back(0);
    demands_.resize(demands_.size() + dimensions_, 0);
  }
  const std::vector<Number>& owner_tasks() const { return owner_tasks_; }
  const std::vector<Number>& demands() const { return demands_; }

  // Tasks.

  bool knows_job(Number number) const { return jobs_.find(number) != nullptr; }
  const JobRow& job(Number number) const { return job_rows_[*jobs_.find(number)]; }
  const JobRow& job_at(Row task) const { return job(classes_[C::job][tasks_[T::task_class][task]]); }
  // Jobs with waiting tasks.
  Number waiting_jobs() const { return waiting_jobs_; }

  // The row of a task; -1 if its job is unknown or has no such task.
  Row row_of(Number task) const {
    const std::int32_t* slot = task < 0 ? nullptr : jobs_.find(job_of(task));
    if (slot == nullptr) return -1;
    const Row index = index_of(task);
    return index < job_rows_[*slot].tasks ? job_rows_[*slot].first + index : -1;
  }

  // Adds a vertex for a job, with an arc to where its owner's unscheduled tasks go.
  void add_job(Number number, Row tasks, Vertex head, Number precedence) {
    std::int32_t slot;
    if (free_jobs_.empty()) {
      slot = static_cast<std::int32_t>(job_rows_.size());
      job_rows_.emplace_back();
    } else {
      slot = free_jobs_.back();
      free_jobs_.pop_back();
    }
    JobRow& job = job_rows_[slot] = JobRow{};
    job.number = number;
    job.precedence = precedence;
    job.vertex = net_.add_vertex(0);
    job.arc = net_.add_arc(job.vertex, head, static_cast<std::int32_t>(capacity_limit), 0);
    job.tasks = tasks;
    job.first = tasks_.take_together(tasks);
    for (Row k = 0; k < tasks; ++k) tasks_[T::number][job.first + k] = task_number(number, k);
    place(job.vertex).job = static_cast<std::int32_t>(number);
    jobs_.insert(number) = slot;
    living_ += tasks;
  }

  // The job has more tasks than before: its rows move to where there is room for all, in the same order. Row
  // numbers are invalid after this, as after `finish`.
  void grow_job(Number number, Row tasks) {
    JobRow& job = job_rows_[*jobs_.find(number)];
    if (tasks <= job.tasks) return;
    const Row first = tasks_.take_together(tasks), by = first - job.first;
    std::vector<Row> classes;
    for (Row k = 0; k < tasks; ++k) {
      if (k < job.tasks) {
        tasks_.move(job.first + k, first + k);
        if (tasks_[T::state][first + k] != gone) classes.push_back(tasks_[T::task_class][first + k]);
      }
      tasks_[T::number][first + k] = task_number(number, k);
    }
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    for (const Row c : classes) classes_[C::first][c] += by;
    living_ += tasks - job.tasks;
    job.first = first;
    job.tasks = tasks;
  }

  // The rows of those of a job's tasks that are new here, in order. Running ones are stopped; waiting ones are
  // left alone.
  std::vector<Row> enter(std::span<const Number> tasks, Number now) {
    std::vector<Row> fresh, stopped;
    for (const Number task : tasks) {
      const Row row = row_of(task);
      if (row < 0) continue;
      if (tasks_[T::state][row] == gone) fresh.push_back(row);
      if (tasks_[T::state][row] == running) stopped.push_back(row);
    }
    std::sort(fresh.begin(), fresh.end());
    fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
    stop(stopped, now);
    return fresh;
  }

  // Makes classes of new tasks, group by group; `rows` and `pool_costs` cover all tasks of all groups, one
  // after another. Returns the class of each.
  std::vector<Row> add_classes(std::span<const NewGroup> groups, std::span<const Row> rows,
                               std::span<const Number> pool_costs, Number preemption, Number now) {
    struct Begin {
      std::size_t group, at;
    };
    std::vector<Begin> begins;
    std::size_t at = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (Row k = 0; k < (groups[g].is_each ? groups[g].tasks : 1); ++k) {
        begins.push_back({g, at + static_cast<std::size_t>(k)});
      }
      at += static_cast<std::size_t>(groups[g].tasks);
    }
    const std::vector<Row> made = classes_.take(begins.size());
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const auto [group, begin] = begins[i];
      open_class(made[i], groups[group], rows, begin, pool_costs, preemption);
    }
    for (const Row c : made) {
      const auto units = static_cast<std::int32_t>(classes_[C::pending][c]);
      classes_[C::pool_arc][c] = net_.add_arc(vertex_of(c), pools_[classes_[C::pool][c]].vertex,
                                              units, classes_[C::pool_cost][c]);
    }
    for (const Row c : made) {
      const auto units = static_cast<std::int32_t>(classes_[C::pending][c]);
      classes_[C::wait_arc][c] = net_.add_arc(vertex_of(c), job(classes_[C::job][c]).vertex, units,
                                              classes_[C::wait_cost][c]);
      waiting_classes_.add(c);
    }
    std::vector<Row> class_of;
    class_of.reserve(rows.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (next < begins.size() && begins[next].at == i) ++next;
      class_of.push_back(made[next - 1]);
      tasks_[T::task_class][rows[i]] = made[next - 1];
    }
    for (const NewGroup& group : groups) {
      JobRow& owner = job_rows_[*jobs_.find(group.job)];
      owner.living += group.tasks;
      count_waiting(owner, group.tasks, now);
      pools_[group.pool].top = std::max(pools_[group.pool].top, owner.precedence);
      pools_[group.pool].bottom = std::min(pools_[group.pool].bottom, owner.precedence);
      pools_[group.pool].tasks += group.tasks;
      pools_[group.pool].waiting += group.tasks;
      owner_tasks_[group.owner] += group.tasks;
      demand(group.owner, group.pool, group.tasks);
    }
    return class_of;
  }

  // Pending tasks run now; `costs` are those of the first arcs of their paths. Tasks that do not wait are left
  // alone.
  void start(std::span<const Row> rows, std::span<const Number> machines,
             std::span<const Number> costs, Number now) {
    struct Start {
      Row task_class;
      Number machine;
      Cost cost;
    };
    std::vector<Start> starts;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Row row = rows[i];
      if (tasks_[T::state][row] != pending) continue;
      const Row c = tasks_[T::task_class][row];
      tasks_[T::state][row] = running;
      tasks_[T::machine][row] = machines[i];
      hold(c, machines[i], 1);
      --classes_[C::pending][c];
      ++classes_[C::running][c];
      dirty_classes_.add(c);
      count_waiting(job_rows_[*jobs_.find(classes_[C::job][c])], -1, now);
      --pools_[classes_[C::pool][c]].waiting;
      if (reschedules_) starts.push_back({c, machines[i], costs[i]});
    }
    std::stable_sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
      return std::pair(a.task_class, a.machine) < std::pair(b.task_class, b.machine);
    });
    for (const auto& [c, machine, cost] : starts) {
      runs_.start(c, machine, cost - migration_, is_direct(c, machine));
    }
  }

  // Running tasks are pending again; others are left alone.
  void stop(std::span<const Row> rows, Number now) {
    for (const Row row : rows) {
      if (tasks_[T::state][row] != running) continue;
      const Row c = leave(row);
      tasks_[T::state][row] = pending;
      ++classes_[C::pending][c];
      waiting_classes_.add(c);
      count_waiting(job_rows_[*jobs_.find(classes_[C::job][c])], 1, now);
      ++pools_[classes_[C::pool][c]].waiting;
    }
  }

  // These ended, wherever they ran. Returns the jobs with no tasks left, which are forgotten.
  std::vector<Number> finish(std::span<const Number> tasks) { return end(tasks, running); }

  // These must no longer be placed, if they wait. Returns as `finish` does.
  std::vector<Number> drop(std::span<const Number> tasks) { return end(tasks, pending); }

  // Rounds.

  void sync() {
    sync_runs();
    sync_classes();
  }

  void set_onward(Row run, Cost onward, Cost step) { runs_.set_onward(run, onward, step); }

  // Leaves the waiting tasks of jobs out of the flow, or includes them again.
  void park(std::span<const Number> jobs, bool is_parked) {
    for (const Number number : jobs) {
      if (!knows_job(number)) continue;
      const JobRow& job = job_rows_[*jobs_.find(number)];
      for (Row row = job.first; row < job.first + job.tasks; ++row) {
        const Row c = tasks_[T::task_class][row];
        if (tasks_[T::state][row] == gone || (classes_[C::parked][c] != 0) == is_parked) continue;
        classes_[C::parked][c] = is_parked;
        dirty_classes_.add(c);
      }
    }
  }

  // Waiting costs `price` more for each second since it began.
  void age(Number now, Number price) {
    const auto set = [&](JobRow& job, Cost cost) {
      if (cost == job.cost || job.living == 0) return;
      job.cost = cost;
      net_.set_arc(job.arc, static_cast<std::int32_t>(capacity_limit), cost, 0);
    };
    for (const Number number : settled_) {
      const std::int32_t* slot = jobs_.find(number);
      if (slot != nullptr && job_rows_[*slot].waiting == 0) set(job_rows_[*slot], 0);
    }
    settled_.clear();
    std::erase_if(waiting_, [&](Number number) {
      const std::int32_t* slot = jobs_.find(number);
      return slot == nullptr || job_rows_[*slot].waiting == 0;
    });
    for (const Number number : waiting_) {
      JobRow& job = job_rows_[*jobs_.find(number)];
      set(job, std::min(cost_limit, price * ((now - job.since) / 1'000'000)));
    }
  }

  // Classes with waiting tasks, in order.
  std::vector<Row> waiting_classes() {
    std::vector<Row> rows = waiting_classes_.take();
    std::erase_if(rows, [&](Row c) { return classes_[C::pending][c] == 0; });
    for (const Row c : rows) waiting_classes_.add(c);
    return rows;
  }

  // Calls visit(row) for the tasks of a class, in order.
  template <typename Visit>
  void each_task(Row c, Visit visit) const {
    const Row first = classes_[C::first][c], last = first + classes_[C::rows][c];
    for (Row row = first; row < last; ++row) {
      if (tasks_[T::task_class][row] == c) visit(row);
    }
  }

 private:
  // Compaction is not worthwhile until this many rows beyond twice the live ones are in use.
  static constexpr Row slack = 65'536;

  Place& place(Vertex v) {
    if (static_cast<std::size_t>(v) >= places_.size()) places_.resize(v + v / 2 + 64);
    return places_[v];
  }
  Vertex vertex_of(Row c) const { return static_cast<Vertex>(classes_[C::vertex][c]); }

  void open_class(Row c, const NewGroup& group, std::span<const Row> rows, std::size_t at,
                  std::span<const Number> pool_costs, Number preemption) {
    const Row units = group.is_each ? 1 : group.tasks;
    classes_[C::vertex][c] = net_.add_vertex(units);
    place(vertex_of(c)).task_class = static_cast<std::int32_t>(c);
    classes_[C::job][c] = group.job;
    classes_[C::pool][c] = group.pool;
    classes_[C::owner][c] = group.owner;
    classes_[C::pool_cost][c] = pool_costs[at] + migration_;
    classes_[C::wait_cost][c] = group.waiting + migration_;
    classes_[C::preemption][c] = preemption;
    classes_[C::first][c] = rows[at];
    classes_[C::rows][c] = rows[at + static_cast<std::size_t>(units) - 1] + 1 - rows[at];
    classes_[C::pending][c] = units;
    for (std::size_t i = at; i < at + static_cast<std::size_t>(units); ++i) {
      tasks_[T::state][rows[i]] = pending;
      tasks_[T::shape][rows[i]] = group.shape;
    }
  }

  void demand(Number owner, Number pool, Number count) {
    for (std::int32_t d = 0; d < dimensions_; ++d) {
      demands_[owner * dimensions_ + d] += count * pools_[pool].request[d];
    }
  }

  void hold(Row c, Number machine, Number sign) {
    PoolRow& pool = pools_[classes_[C::pool][c]];
    pool.running[machine] += sign;
    for (std::int32_t d = 0; d < dimensions_; ++d) {
      own_[machine * dimensions_ + d] += sign * pool.request[d];
    }
    own_tasks_[machine] += sign;
    touched_machines_.add(machine);
  }

  void count_waiting(JobRow& job, Number change, Number now) {
    if (job.waiting == 0 && change != 0) {
      job.since = now;
      waiting_.push_back(job.number);
    }
    waiting_jobs_ += job.waiting == 0 && change != 0;
    job.waiting += change;
    if (job.waiting == 0 && change != 0) {
      settled_.push_back(job.number);
      --waiting_jobs_;
    }
  }

  // Removes a running task from its machine; returns its class.
  Row leave(Row row) {
    const Row c = tasks_[T::task_class][row];
    const Number machine = tasks_[T::machine][row];
    tasks_[T::machine][row] = none;
    hold(c, machine, -1);
    --classes_[C::running][c];
    dirty_classes_.add(c);
    if (reschedules_) runs_.leave(c, machine);
    return c;
  }

  // Removes a waiting task from its class, which is returned.
  Row withdraw(Row row) {
    const Row c = tasks_[T::task_class][row];
    --classes_[C::pending][c];
    dirty_classes_.add(c);
    count_waiting(job_rows_[*jobs_.find(classes_[C::job][c])], -1, 0);
    --pools_[classes_[C::pool][c]].waiting;
    return c;
  }

  // Those of `tasks` in this state are over, and with them classes and jobs without other tasks.
  std::vector<Number> end(std::span<const Number> tasks, State state) {
    std::vector<Row> touched;
    std::vector<Number> over;
    for (const Number task : tasks) {
      const Row row = row_of(task);
      if (row < 0 || tasks_[T::state][row] != state) continue;
      const Row c = state == running ? leave(row) : withdraw(row);
      tasks_[T::state][row] = gone;
      --owner_tasks_[classes_[C::owner][c]];
      demand(classes_[C::owner][c], classes_[C::pool][c], -1);
      --pools_[classes_[C::pool][c]].tasks;
      if (classes_[C::pending][c] + classes_[C::running][c] == 0) touched.push_back(c);
      if (--job_rows_[*jobs_.find(job_of(task))].living == 0) over.push_back(job_of(task));
    }
    std::sort(touched.begin(), touched.end());
    if (drains_) {
      for (const Row c : touched) net_.drain(vertex_of(c));
    }
    if (!touched.empty()) sync_runs();
    for (const Row c : touched) {
      places_[vertex_of(c)] = Place{};
      net_.remove_vertex(vertex_of(c));
      dirty_classes_.remove(c);
      classes_.give(c);
    }
    std::sort(over.begin(), over.end());
    for (const Number number : over) drop_job(number);
    if (tasks_.used() > 2 * living_ + slack) pack_tasks();
    return over;
  }

  void drop_job(Number number) {
    const std::int32_t slot = *jobs_.find(number);
    JobRow& job = job_rows_[slot];
    places_[job.vertex] = Place{};
    net_.remove_vertex(job.vertex);
    for (Row row = job.first; row < job.first + job.tasks; ++row) {
      tasks_[T::number][row] = -1;
      tasks_[T::state][row] = gone;
    }
    living_ -= job.tasks;
    jobs_.erase(number);
    free_jobs_.push_back(slot);
  }

  void pack_tasks() {
    std::vector<Row> moved(tasks_.used(), -1);
    tasks_.pack([&](Row row) { return tasks_[T::number][row] >= 0; },
                [&](Row from, Row to) { moved[from] = to; });
    for (JobRow& job : job_rows_) {
      if (jobs_.find(job.number) != nullptr && job.tasks > 0) job.first = moved[job.first];
    }
    for (Row c = 0; c < classes_.used(); ++c) {
      if (classes_[C::pending][c] + classes_[C::running][c] > 0) {
        classes_[C::first][c] = moved[classes_[C::first][c]];
      }
    }
  }

  void sync_runs() {
    runs_.sync([&](Row c) { return vertex_of(c); }, machine_vertices_);
  }

  // Whether a class goes to a machine without its pool: only single tasks have such arcs.
  bool is_direct(Row c, Number machine) const {
    if (classes_[C::rows][c] != 1) return false;
    const Vertex from = vertex_of(c), to = machine_vertices_[machine];
    return std::any_of(net_.begin(from), net_.end(from),
                       [&](const Half& half) { return half.other == to && (half.id & 1) == 0; });
  }

  void sync_classes() {
    const std::vector<Row> rows = dirty_classes_.take();
    for (const Row c : rows) net_.set_supply(vertex_of(c), units_of(c));
    for (const Row c : rows) {
      if (classes_[C::rows][c] == 1) continue;  // same capacity as before
      net_.set_arc(static_cast<Arc>(classes_[C::pool_arc][c]),
                   static_cast<std::int32_t>(units_of(c)), classes_[C::pool_cost][c], 0);
    }
    for (const Row c : rows) set_wait_arc(c);
  }

  Number units_of(Row c) const {
    const Number waits = classes_[C::parked][c] ? 0 : classes_[C::pending][c];
    return waits + (reschedules_ ? classes_[C::running][c] : 0);
  }

  // Waiting costs more for a task that would lose its machine.
  void set_wait_arc(Row c) {
    const auto arc = static_cast<Arc>(classes_[C::wait_arc][c]);
    const Cost cost = classes_[C::wait_cost][c], more = cost + classes_[C::preemption][c];
    if (classes_[C::rows][c] == 1) {
      net_.set_arc(arc, 1, classes_[C::running][c] > 0 ? more : cost, 0);
      return;
    }
    const auto waits = static_cast<std::int32_t>(classes_[C::pending][c]);
    const auto runs = static_cast<std::int32_t>(reschedules_ ? classes_[C::running][c] : 0);
    std::vector<Segment> segments;
    if (waits > 0) segments.push_back(Segment{waits, cost});
    if (runs > 0) segments.push_back(Segment{runs, more});
    if (segments.empty()) {
      net_.set_arc(arc, 0, cost, 0);
    } else {
      net_.set_segments(arc, std::move(segments));
    }
  }

  Network& net_;
  Ways ways_{net_};
  std::int32_t dimensions_;
  bool reschedules_;
  Number migration_;
  bool drains_;
  RunArcs runs_;
  Table<T> tasks_{{-1, gone, none, none, none}};
  Table<C> classes_{{-1, -1, -1, 0, -1, 0, -1, 0, 0, 0, 0, 0, 0, 0}};
  FlatMap<std::int32_t> jobs_;  // slot of a job
  std::vector<JobRow> job_rows_;
  std::vector<std::int32_t> free_jobs_;
  std::vector<Number> waiting_, settled_;  // jobs with waiting tasks; those that no longer wait
  std::vector<PoolRow> pools_;
  std::vector<Vertex> machine_vertices_;
  std::vector<Place> places_;  // by vertex
  std::vector<Number> own_, own_tasks_, owner_tasks_, demands_;
  Marks dirty_classes_, waiting_classes_, touched_machines_;
  Row living_ = 0;
  Number waiting_jobs_ = 0, serials_ = 0;
};

}  // namespace argosy::flow
