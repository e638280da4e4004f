// The native half of a world: the clock, the job board and the machines' side of tasks.
//
// What happens per task happens here: tasks run and end, releasing their claim; queued tasks arrive at
// machines, wait in the machine's queue and start as soon as they fit. What happens per job or per message is
// an event of a Python kind (>= first_python_kind): `next` runs native events until one of those is due and
// hands it out. This file has the clock and what begins; queueing.hpp has arrivals, queues and probes;
// ending.hpp has ends.
//
// Time. The clock is at the last event and never goes back. In a simulation it jumps from timer to timer. In a
// live world, `next` is called with the real time as its limit, `next_at` returns when the next event is due,
// and `advance` sets the time of external inputs; a late timer is carried out at the current time.
//
// Ends. A task started with a duration ends by a timer. One without (negative), and every task in a replay,
// ends when that is reported. A report names an attempt by its incarnation, the sequence number of its claim
// (runs.hpp); a report about another incarnation comes too late and changes nothing. Tasks that start together
// and run equally long end by one timer, in the order in which they started. Tasks of a job with a pool
// (sim/pools.hpp) are workers: they run until its work is done, and all end then. A job may also share work
// without a model of it: then its phases and its workers' ends are reported.
//
// Journal and replay (line_buffer.hpp). The only inputs of the runtime are which timers are due, which tasks
// and phases ended, and when reports were requested; everything else follows from the calls made to it. With a
// recorder, these inputs are written down. A replayed runtime keeps its timers in a table and carries out what
// the journal says (`due` for timers, `end_tasks`, `end_phase`); it reaches the same state, down to the order
// of every notice and the random stream of stealing.
//
// Every duration is in whole microseconds; at most 2^62 on the clock. Each operation is O(log timers) plus
// that of the queue it touches. Everything is deterministic: no clock, no hash order, no entropy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cell/cell.hpp"
#include "host/board.hpp"
#include "host/line_buffer.hpp"
#include "host/listeners.hpp"
#include "host/loads.hpp"
#include "host/notices.hpp"
#include "host/probes.hpp"
#include "host/queues.hpp"
#include "host/requirements.hpp"
#include "host/runs.hpp"
#include "host/task_facts.hpp"
#include "host/timers.hpp"
#include "random.hpp"
#include "sim/pools.hpp"
#include "sim/usage.hpp"

namespace argosy {

class TaskRuntime {
 public:
  //: The time of the next timer if there is none.
  static constexpr std::int64_t never = std::int64_t{1} << 62;

  TaskRuntime(Cell& cell, const QueueRules& rules, bool record_tasks, bool replayed)
      : cell_(cell),
        rules_(rules),
        record_tasks_(record_tasks),
        timers_(replayed),
        queues_(rules),
        stealing_(rules.steal_seed),
        usage_(cell) {
    loads_.cut_at(rules.long_above);
  }
  TaskRuntime(const TaskRuntime&) = delete;

  const Cell& cell() const { return cell_; }
  Board& board() { return board_; }
  const Board& board() const { return board_; }
  Listeners& listeners() { return listeners_; }
  Probes& probes() { return probes_; }
  Loads& loads() { return loads_; }
  Requirements& requirements() { return requirements_; }
  TaskFacts& facts() { return facts_; }
  const Pools& pools() const { return pools_; }
  const Usage& usage() const { return usage_; }
  InputRecorder& recorder() { return recorder_; }

  // The clock and future events.

  std::int64_t now() const { return now_; }
  bool is_replayed() const { return timers_.is_replayed(); }
  // Whether any event is left, at any time.
  bool has_events() const { return !timers_.empty(); }
  // When `next` has something to do.
  std::int64_t next_at() const {
    if (timers_.has_immediate() || has_report() || pools_.has_dirty()) return now_;
    return timers_.has_none_timed() ? never : timers_.top().at;
  }

  // Pushes an event of a Python kind. If it would be the very next one, it needs no timer, unless `at_once` is
  // off: then it comes after the reports of its instant.
  void push(std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b, bool at_once) {
    if (kind >= first_world_kind) {
      timers_.push_end(std::max(at, now_), kind, a, b);
    } else if (at_once && comes_next(at)) {
      timers_.push_immediate(now_, kind, a, b);
    } else {
      timers_.push(std::max(at, now_), kind, a, b);
    }
  }

  // An event pushed now, for now, would be the very next one, and its pusher carries it out at once instead: it
  // gets a ticket, and is recorded as due. False, and nothing has happened, if something else comes first, or if
  // the run may be over, because no task is open.
  bool pass_turn() {
    if (is_replayed() || timers_.has_immediate() || !comes_next(now_) || board_.open() == 0) return false;
    recorder_.due(now_, timers_.pass(), now_);
    return true;
  }

  // The next event of a Python kind, or a report, or that the journal's buffer should be written; false when
  // nothing is left up to `limit`.
  bool next(std::int64_t limit, Due& out) {
    if (timers_.has_immediate()) {
      carry_out(timers_.pop_immediate(), out);
      return true;
    }
    for (;;) {
      schedule_phases();
      const bool has_timer = timers_.is_due(limit);
      const bool instant_over = !has_timer || timers_.top().at > now_ ||
                                timers_.top().kind() >= first_python_kind;
      if (instant_over && has_report()) {
        out = report();
        return true;
      }
      if (!has_timer) return false;
      const Timer timer = timers_.pop();
      advance(timer.at);
      if (carry_out(timer, out)) return true;
      if (recorder_.is_full()) [[unlikely]] {
        out = {now_, 0, static_cast<std::int32_t>(RuntimeEvent::full), 0};
        return true;
      }
    }
  }

  // In a replay: the timer with this ticket came due. True if its event is of a Python kind.
  bool due(std::uint32_t ticket, std::int64_t at, Due& out) {
    const Timer timer = timers_.take(ticket);
    advance(at);
    return carry_out(timer, out);
  }

  // Moves the clock to `at`, whatever is due.
  void advance(std::int64_t at) {
    usage_.pass(cell_, board_, now_, at);
    now_ = std::max(now_, at);
  }

  // Jobs and starts.

  // Makes room for this many jobs in all; there may be fewer or more.
  void expect_jobs(std::int64_t jobs) {
    board_.expect(jobs);
    facts_.expect(jobs);
  }

  // Numbers a new job; its tasks are pending.
  std::int64_t add_job(std::int64_t submit, std::int32_t owner, std::vector<GroupFacts> groups) {
    std::int64_t tasks = 0;
    for (const GroupFacts& group : groups) tasks += group.count;
    const std::int64_t job = board_.add(submit, tasks, owner);
    facts_.set_groups(job, std::move(groups));
    return job;
  }

  // The same for a job of one group, whose tasks all run for `time`; negative: until that is told, or their end is.
  std::int64_t add_plain_job(std::int64_t submit, std::int32_t owner, const GroupFacts& group, std::int64_t time) {
    const std::int64_t job = board_.add(submit, group.count, owner);
    facts_.set_alike(job, {group.shape, group.estimate, time});
    return job;
  }

  // These tasks have just got their claims, and run from now on. Those that are alike end by one timer.
  void launch(std::span<const std::int64_t> tasks) {
    std::vector<std::int32_t> slots;
    slots.reserve(tasks.size());
    for (const std::int64_t task : tasks) slots.push_back(claimed_slot(task));
    launch(tasks, slots);
  }
  // The same, with the slots of the claims.
  void launch(std::span<const std::int64_t> tasks, std::span<const std::int32_t> slots) {
    if (tasks.empty()) return;
    const TaskFact fact = facts_.of(tasks.front());
    if (pools_.has(job_of(tasks.front())) || !has_timer(fact.time) || !facts_.are_alike(tasks)) {
      for (const std::int64_t task : tasks) launch(task);
      return;
    }
    const auto count = static_cast<std::int32_t>(tasks.size());
    const std::int32_t first = runs_.take_places(count);
    for (std::int32_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::size_t>(i);
      if (row + rows_ahead < slots.size()) runs_.prefetch_slot(slots[row + rows_ahead]);
      write_run(first + i, slots[row], tasks[row], fact.estimate, now_, 0, false);
    }
    timers_.push_end(now_ + fact.time, finish_kind, first, count);
  }

  // Commits claims, as `Cell::commit` does. If all are accepted and nobody had to leave, the tasks run.
  Judged commit(const ClaimRows& rows, const Terms& terms) {
    cell_.check(rows, {}, terms);
    cell_.begin();
    Judged judged = cell_.commit(rows, {}, terms);
    if (judged.is_whole && cell_.evicted().empty()) launch({rows.tasks, rows.count}, cell_.placed());
    return judged;
  }

  // The job's tasks share work from now on, as modelled by its phases, or as reported.
  void add_pool(std::int64_t job, std::vector<Phase> phases) {
    if (is_replayed()) throw std::invalid_argument("in a replay shared work is told");
    board_.share_work(job);
    pools_.add(job, std::move(phases), board_.tasks(job));
  }
  void share_work(std::int64_t job) { board_.share_work(job); }

  // The task lost its claim: it is pending again, unless it is an extra worker.
  void set_pending(std::int64_t task) {
    if (Pool* pool = pools_.of(job_of(task))) {
      if (const auto run = pool->leave(task, now_)) {
        drop(*run);
        pools_.touch(*pool);
      }
    }
    board_.move(task, TaskState::pending, now_);
  }

  // The current incarnation, or 0.
  std::uint64_t incarnation(std::int64_t task) const {
    return task < 0 || Probe::is_hold(task) ? 0 : cell_.claim_sequence(task);
  }

  // Keeps a notice of every task that starts to run.
  void tell_starts(bool tells) { tells_starts_ = tells; }

  // Tasks running now, in the order of their claims' slots; `finished` is -1.
  std::vector<TaskRow> running() const {
    std::vector<TaskRow> rows;
    cell_.claims().each([&](std::int32_t slot, const Claim& claim) {
      const std::int32_t at = runs_.find(slot, claim.sequence);
      if (at < 0 || !board_.has_task(claim.task)) return;
      rows.push_back({claim.task, runs_[at].placed, runs_[at].started, -1, claim.machine});
    });
    return rows;
  }

  // Queues and probes; see queueing.hpp.

  // Tasks on their way to machines' queues, in order of arrival.
  void enqueue(std::vector<Arrival> batch);
  // Puts a placeholder into each machine's queue, arriving at `at`.
  void probe(std::int64_t at, const ProbeTerms& terms, std::span<const std::int32_t> machines,
             std::int32_t hand = -1);
  // The same, with a hand of tasks.
  void deal(std::int64_t at, const ProbeTerms& terms, std::span<const std::int32_t> machines, Hand hand);
  // Gives the slot that a probe holds to a pending task; false if its machine is gone.
  bool bind(std::int64_t probe, std::int64_t task);
  // Gives the slot back.
  void cancel(std::int64_t probe);
  // The owner stopped: its probes will not be answered.
  void cancel_all(std::int32_t owner);
  // The machine is gone or smaller than before: the tasks in its queue are pending again, and returned in queue
  // order.
  void lose_queue(std::int32_t machine, std::vector<std::int64_t>& out);
  // The machine drains: tasks go to other probes of their hand, or back. Tasks that are queued stay.
  void lose_probes(std::int32_t machine);
  // Room may have appeared on the machine by another way than a task's end.
  void pump(std::int32_t machine);
  // Claims were removed other than by a task's end.
  void recount(std::int32_t machine);
  // Loads are tracked only if somebody may ask for them.
  void keep_loads() { keeps_loads_ = true; }
  // Per machine: entries in its queue, and how long it is expected to be busy; see loads.hpp.
  void queue_state(bool only_long, bool as_of_beat, std::vector<std::int64_t>& lengths,
                   std::vector<std::int64_t>& waits) {
    loads_.read(cell_.machines(), only_long, as_of_beat, rules_.start_delay, now_, lengths, waits);
  }
  // How many more entries the machine's queue takes; `never`, which is plenty, where there is no limit.
  std::int64_t queue_room(std::int32_t machine) const;
  // Reports when the queue of one of the machines, which have none, has room: once for each.
  void await_room(std::span<const std::int32_t> machines);
  std::int64_t stolen() const { return stolen_; }
  // What waits at each machine, in the order in which it would start if nothing else came: jobs, tasks and
  // machines. A probe has no task: -1. O(q) per machine, O(q^2) where queues have a slack.
  void queued(std::vector<std::int64_t>& jobs, std::vector<std::int64_t>& tasks,
              std::vector<std::int32_t>& machines) const;

  // Ends; see ending.hpp.

  // This attempt at the task has ended; false if it is not running.
  bool end_task(std::int64_t task, std::uint64_t incarnation);
  // The same for running tasks, in order.
  void end_tasks(std::span<const std::int64_t> tasks, std::int64_t at);
  // This attempt is over without having finished; the task is now in `state`. False if it is not running.
  bool stop_task(std::int64_t task, std::uint64_t incarnation, TaskState state);
  // A pending or queued task will not run; false if it is neither.
  bool cancel_task(std::int64_t task);
  // A phase of shared work without a model ended; its activities took `duration` on average.
  void end_phase(std::int64_t job, std::int64_t phase, std::int64_t duration);

  // Reports.

  std::vector<Notice> take_finished() { return std::exchange(finished_, {}); }
  std::vector<ProbeNotice> take_ready() { return std::exchange(ready_, {}); }
  std::vector<PhaseNotice> take_phases() { return std::exchange(phases_, {}); }
  std::vector<Notice> take_lost() { return std::exchange(lost_, {}); }
  // Tasks that arrived at a full queue.
  std::vector<Notice> take_refused() { return std::exchange(refused_, {}); }
  // Machines that were waited for.
  std::vector<std::int32_t> take_roomy() { return std::exchange(roomy_, {}); }
  bool has_starts() const { return !starts_.empty(); }
  std::vector<StartNotice> take_starts() { return std::exchange(starts_, {}); }
  const std::vector<TaskRow>& rows() const { return rows_; }

 private:
  // Whether an event for time `at`, pushed now, would be the very next one.
  bool comes_next(std::int64_t at) const {
    return at <= now_ && !timers_.is_due(now_) && finished_.empty() && lost_.empty() && ready_.empty();
  }

  bool has_report() const {
    return !(finished_.empty() && lost_.empty() && refused_.empty() && ready_.empty() &&
             phases_.empty() && roomy_.empty());
  }
  // There must be one.
  Due report() {
    const auto told = [this](RuntimeEvent event, const char* name) {
      recorder_.report(now_, name);
      return Due{now_, 0, static_cast<std::int32_t>(event), 0};
    };
    if (!finished_.empty()) return told(RuntimeEvent::finished, "finished");
    if (!(lost_.empty() && refused_.empty())) return told(RuntimeEvent::lost, "lost");
    if (!ready_.empty()) return told(RuntimeEvent::probes, "probes");
    if (!phases_.empty()) return told(RuntimeEvent::phases, "phases");
    return told(RuntimeEvent::room, "room");
  }

  // True if the event is not the runtime's own.
  bool carry_out(const Timer& timer, Due& out) {
    if (timer.kind() == finish_kind) {
      finish_all(timer.a, static_cast<std::int32_t>(timer.b));
      return false;
    }
    if (timer.kind() == phase_kind) {
      end_phase(pools_[static_cast<std::int32_t>(timer.b)], timer.a);
      return false;
    }
    if (timer.ticket != 0) recorder_.due(now_, timer.ticket, timer.at);
    if (timer.kind() == arrive_kind) {
      arrive(timer.b);
      return false;
    }
    if (timer.kind() == release_kind) {
      if (cell_.finish(Probe::hold(timer.b))) pump(timer.a);
      return false;
    }
    out = {now_, timer.b, timer.kind(), timer.a};
    return true;
  }

  void launch(std::int64_t task) {
    const TaskFact fact = facts_.of(task);
    run_for(fact.time, task, add_run(task, fact.estimate, now_, 0, fact.time), 0);
  }

  bool has_timer(std::int64_t duration) const { return duration >= 0 && !is_replayed(); }

  std::int32_t add_run(std::int64_t task, std::int64_t estimate, std::int64_t placed,
                       std::int64_t delay, std::int64_t duration) {
    const bool is_told = !has_timer(duration) && !pools_.has(job_of(task));
    const std::int32_t at = runs_.take_places(1);
    write_run(at, claimed_slot(task), task, estimate, placed, delay, is_told);
    return at;
  }

  std::int32_t claimed_slot(std::int64_t task) const {
    const std::int32_t slot = cell_.claims().slot(task);
    if (slot < 0) throw std::invalid_argument("a task cannot run without a claim");
    return slot;
  }

  // The task with its claim in that slot starts after `delay`.
  void write_run(std::int32_t at, std::int32_t slot, std::int64_t task, std::int64_t estimate,
                 std::int64_t placed, std::int64_t delay, bool is_told) {
    const Claim& claim = cell_.claims().at(slot);
    board_.move(task, TaskState::running, now_);
    runs_.write(at, {claim.sequence, placed, now_ + delay, estimate, delay, slot, is_told});
    if (keeps_loads_) loads_.start(claim.machine, estimate, now_);
    if (tells_starts_) starts_.push_back({task, estimate, claim.sequence, claim.machine});
  }

  void run_for(std::int64_t duration, std::int64_t task, std::int32_t run, std::int64_t delay) {
    if (Pool* pool = pools_.of(job_of(task))) {
      join(*pool, task, run);
    } else if (has_timer(duration)) {
      timers_.push_end(now_ + delay + duration, finish_kind, run, 1);
    }
  }

  // queueing.hpp
  void push_batch(std::vector<Arrival> batch);
  void arrive(std::int64_t batch);
  void arrive_at_machine(const Arrival& item);
  void wait_at_machine(const Arrival& item);
  void hand_back(const Arrival& item, std::vector<Notice>& out);
  Arrival take(std::int32_t machine, std::size_t at);
  void start(const Arrival& item, std::int64_t delay);
  std::size_t next_of(std::int32_t machine);
  void purge(std::int32_t machine);
  bool ask_hand(std::int32_t machine, std::size_t at, const Arrival& item);
  void lose_probe(std::int64_t number, std::vector<Notice>& out);
  void note_room(std::int32_t machine);
  bool may_take(std::int32_t thief, const Arrival& item) const;
  void steal(std::int32_t thief);
  std::size_t loot(std::int32_t victim, std::size_t& at) const;
  bool is_draining(std::int32_t machine) const;
  bool has_hand(std::int64_t hold) const;
  bool is_idle(std::int32_t machine) const;
  bool has_room_now(std::int32_t machine, std::int32_t shape) const;
  bool could_ever_fit(std::int32_t machine, std::int32_t shape) const;

  // ending.hpp
  std::int32_t run_of(std::int64_t task, std::uint64_t incarnation) const;
  void finish_all(std::int32_t first, std::int32_t count);
  void finish(std::int32_t at);
  void end_told(std::int32_t at);
  void tell_over(const Notice& notice, bool is_told);
  void join(Pool& pool, std::int64_t task, std::int32_t run);
  bool leave(std::int64_t task);
  void drop(std::int32_t run) {
    runs_.remove(run);
    runs_.give_back(run, 1);
  }
  void schedule_phases();
  void end_phase(Pool& pool, std::int32_t version);

  Cell& cell_;
  QueueRules rules_;
  bool record_tasks_;
  bool keeps_loads_ = false;
  bool tells_starts_ = false;
  std::int64_t now_ = 0;
  Timers timers_;
  Board board_;
  Runs runs_;
  Batches batches_;
  Queues queues_;
  Probes probes_;
  Loads loads_;
  Listeners listeners_;
  Pools pools_;
  Requirements requirements_;
  TaskFacts facts_;
  Random stealing_;
  std::int64_t stolen_ = 0;
  Usage usage_;
  InputRecorder recorder_;
  std::vector<Notice> finished_, lost_, refused_;
  // By machine, whether somebody waits for room in its queue; and those that have some by now.
  std::vector<std::uint8_t> is_awaited_;
  std::vector<std::int32_t> roomy_;
  std::vector<ProbeNotice> ready_;
  std::vector<PhaseNotice> phases_;
  std::vector<StartNotice> starts_;
  std::vector<TaskRow> rows_;
};

}  // namespace argosy

#include "host/ending.hpp"
#include "host/queueing.hpp"
