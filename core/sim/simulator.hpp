// The native half of the simulated world: the clock, the job board and the machines.
//
// What happens per task happens here: tasks run for their duration and end, releasing their claim;
// queued tasks arrive at machines, wait in the machine's queue and start as soon as they fit. What
// happens per job or per message is an event of a Python kind (>= first_python_kind): `next` runs
// native events until one of those is due and hands it out.
//
// Machine queues (machine_queue.hpp) are strict: the entry that is next starts when it fits, and no other
// does before. A full queue hands what arrives back. Draining machines still run what is queued.
//
// Schedulers that keep a wait view (waits/wait_view.hpp) are told there of every task's end, a hop later,
// and of each other's placements, without being woken.
//
// A probe is a queue entry without a task. At the head, and with room, it leaves the queue and holds its
// room by a claim of a task number that no job has, until it is answered with a task or with none. What a
// scheduler has probed goes with it when it stops. Probes that came with a hand of tasks are answered from
// it without anybody's being asked: the machine that asks first gets the first task, a round trip later. A
// sticky probe stays in its place and asks again; others are over once asked. When probes are lost and fewer
// are left than tasks in the hand, the tasks that are too many go back.
//
// A machine that runs dry may steal (QueueRules).
//
// A running task is remembered by the slot and sequence number of its claim. A claim that was evicted or
// moved has another number, or none, when its finish event comes up, and the event is dropped. Tasks that
// start together and run equally long end by one event, in the order in which they started.
//
// Tasks of a job with a pool (sim/pools.hpp) are workers: they run until its work is done, all ending
// then. Such a job may have workers beyond its own tasks. The board does not know these, so nobody waits
// for them, and they have no row; their claims and ends are like all others.
//
// Every duration is in whole microseconds; at most 2^62 on the clock. Utilisation is the integral of
// used amounts over time, in double, for reports only. Everything is deterministic: no clock, no hash
// order, no entropy.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cell/cell.hpp"
#include "sim/board.hpp"
#include "sim/heap.hpp"
#include "sim/loads.hpp"
#include "sim/machine_queue.hpp"
#include "sim/pools.hpp"
#include "waits/wait_view.hpp"

namespace argosy {

enum EventKind : std::int32_t {
  finish_kind = 0,
  arrive_kind = 1,
  //: Handed out when tasks ended whose end somebody wants to hear of.
  finished_report = 2,
  //: Handed out when tasks arrived at a machine that is gone, or too small for them.
  lost_report = 3,
  //: Handed out when probes came to the head of their queues.
  probe_report = 4,
  //: Handed out when phases of pools ended.
  phase_report = 5,
  //: A phase of a pool ends, unless its workers changed since.
  phase_kind = 6,
  //: A machine asked in vain, and has its slot back.
  release_kind = 7,
  first_python_kind = 16,
};

struct TaskRow {
  std::int64_t task;
  std::int64_t placed;
  std::int64_t started;
  std::int64_t finished;
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
};

struct Notice {
  std::int64_t task;
  std::int64_t estimate;
  // When it had begun, if it has ended.
  std::int64_t started;
  std::int32_t machine;
  std::int32_t shape;
};

class Simulator {
 public:
  Simulator(Cell& cell, const QueueRules& rules, bool record_tasks)
      : cell_(cell),
        rules_(rules),
        record_tasks_(record_tasks),
        used_integral_(static_cast<std::size_t>(cell.dimensions()), 0.0),
        capacity_integral_(static_cast<std::size_t>(cell.dimensions()), 0.0) {
    loads_.cut_at(rules.long_above);
    // Integrals and samples are as wide as the cell is now.
    cell.keep_dimensions();
  }

  std::int64_t now() const { return now_; }
  // Whether anything is still to come, at whatever time.
  bool has_events() const { return !heap_.empty(); }
  bool knows_machine(std::int32_t machine) const { return cell_.knows(machine); }
  Board& board() { return board_; }
  const Board& board() const { return board_; }

  void push(std::int64_t at, std::int32_t kind, std::int32_t a, std::int64_t b) {
    heap_.push(std::max(at, now_), kind, a, b);
  }

  // Whether an event for time `at`, were it pushed now, would be the very next.
  bool comes_next(std::int64_t at) const {
    return at <= now_ && (heap_.empty() || heap_.top().at > now_) && finished_.empty() &&
           lost_.empty() && ready_.empty();
  }

  // Whether owner `owner` hears of its own tasks' ends; `hear_all` is for listeners to every task.
  void hear_own(std::int32_t owner) {
    if (static_cast<std::size_t>(owner) >= hears_own_.size()) hears_own_.resize(owner + 1, 0);
    hears_own_[owner] = 1;
  }
  void hear_all() { hears_all_ = true; }

  // A wait view that is told of ends and placements; none: no longer. With a hop below zero, ends are
  // reported instead, for somebody else to pass on.
  void listen(std::int32_t owner, WaitView* view) {
    if (static_cast<std::size_t>(owner) >= listeners_.size()) listeners_.resize(owner + 1, nullptr);
    listeners_[owner] = view;
  }
  void set_hop(std::int64_t hop) { hop_ = hop; }
  // How long it takes to ask a scheduler and be answered.
  void set_round_trip(std::int64_t round_trip) { round_trip_ = round_trip; }
  // The scheduler can be asked and answers only outside of [from, until); cuts come in order of `from`.
  void cut_off(std::int32_t owner, std::int64_t from, std::int64_t until) {
    cuts_.push_back({owner, from, until});
  }

  // Reports of placements reach a listener's view from `due` on, one every `spacing`.
  struct Gossip {
    std::span<const std::int64_t> tasks;
    std::span<const std::uint8_t> versions;
    std::span<const std::int32_t> machines;
    std::int64_t estimate;
    std::int64_t total;
    std::int64_t since;
    std::int64_t spacing;
    std::int32_t shape;
  };
  void gossip(std::int32_t owner, std::int64_t due, const Gossip& news) {
    WaitView* view =
        static_cast<std::size_t>(owner) < listeners_.size() ? listeners_[owner] : nullptr;
    // A scheduler that has not begun yet hears nothing.
    if (view == nullptr || view->machines() == 0) return;
    const std::int64_t* request = cell_.request(news.shape);
    view->know_shape(news.shape, {request, static_cast<std::size_t>(cell_.dimensions())});
    if (!news.tasks.empty()) view->expect(Board::job_of(news.tasks[0]), news.total);
    for (std::size_t i = 0; i < news.tasks.size(); ++i) {
      view->post({due + static_cast<std::int64_t>(i) * news.spacing, news.tasks[i], news.estimate,
                  news.since, news.machines[i], news.shape, news.versions[i]},
                 now_);
    }
  }

  // The task holds a claim since now and runs for `duration` (negative: until stopped).
  void launch(std::int64_t task, std::int64_t duration, std::int64_t estimate, std::int64_t placed) {
    const std::int32_t run = add_run(task, estimate, placed);
    if (Pool* pool = pool_of(Board::job_of(task))) {
      join(*pool, task, run);
    } else if (duration >= 0) {
      heap_.push(now_ + duration, finish_kind, run, 1);
    }
  }

  // The same for tasks of one job that were all placed now and run equally long.
  void launch_alike(std::span<const std::int64_t> tasks, std::int64_t duration,
                    std::int64_t estimate) {
    if (Pool* pool = tasks.empty() ? nullptr : pool_of(Board::job_of(tasks.front()))) {
      for (const std::int64_t task : tasks) join(*pool, task, add_run(task, estimate, now_));
      return;
    }
    if (tasks.empty()) return;
    const auto count = static_cast<std::int32_t>(tasks.size());
    const std::int32_t first = take_runs(count);
    for (std::int32_t i = 0; i < count; ++i) write_run(first + i, tasks[i], estimate, now_);
    if (duration >= 0) heap_.push(now_ + duration, finish_kind, first, count);
  }

  // The job's tasks share work from now on.
  void add_pool(std::int64_t job, std::vector<Phase> phases) {
    if (static_cast<std::size_t>(job) >= pool_by_job_.size()) pool_by_job_.resize(job + 1, -1);
    pool_by_job_[job] = static_cast<std::int32_t>(pools_.size());
    pools_.emplace_back(job, std::move(phases), board_.tasks(job));
  }
  const std::vector<Pool>& pools() const { return pools_; }

  // A worker beyond the tasks its job was submitted with.
  bool is_extra(std::int64_t task) const {
    const std::int64_t job = Board::job_of(task);
    return task >= 0 && board_.has_job(job) && !board_.has_task(task) && has_pool(job);
  }

  // The task lost its claim: it is pending again, unless it is a worker beyond its job's tasks.
  void set_pending(std::int64_t task) {
    if (Pool* pool = pool_of(Board::job_of(task))) leave(*pool, task);
    board_.move(task, TaskState::pending, now_);
  }

  // Of tasks that run now, in the order of their slots; `finished` is -1.
  std::vector<TaskRow> running() const {
    std::vector<TaskRow> rows;
    for (const Run& run : runs_) {
      const Claim& claim = cell_.claims().at(run.slot);
      if (is_running(run) && board_.has_task(claim.task)) {
        rows.push_back({claim.task, run.placed, run.started, -1, claim.machine});
      }
    }
    return rows;
  }

  struct Arrival {
    std::int64_t task;
    std::int64_t duration;
    std::int64_t estimate;
    std::int64_t placed;
    // When it reaches the machine; in a batch never earlier than the one before.
    std::int64_t at;
    std::int32_t machine;
    std::int32_t shape;
    std::int32_t scheduler;
  };

  // Tasks on their way to machines' queues, in order of arrival.
  void enqueue(std::vector<Arrival> batch) {
    for (const Arrival& item : batch) {
      if (board_.state(item.task) != TaskState::pending) {
        throw std::invalid_argument("a task is enqueued twice");
      }
      board_.move(item.task, TaskState::queued, item.placed);
      if (keeps_loads_) loads_.send(item.machine, item.estimate, now_);
    }
    push_batch(std::move(batch));
  }

  // The task number by which a probe holds its room: of a job number that is never given out.
  static std::int64_t hold(std::int64_t probe) { return Board::task(0x7FFF'FFFF, probe); }
  static bool is_hold(std::int64_t task) { return Board::job_of(task) == 0x7FFF'FFFF; }

  // A place-holder in each machine's queue from `at` on; `scheduler` is the cell's number for `owner`.
  void probe(std::int64_t at, std::int64_t job, std::int32_t owner, std::int32_t scheduler,
             std::int32_t shape, std::int64_t estimate, std::span<const std::int32_t> machines) {
    std::vector<Arrival> batch;
    for (const std::int32_t machine : machines) {
      const auto number = static_cast<std::int64_t>(probes_.size());
      probes_.push_back({job, machine, shape, scheduler, owner, -1, Probe::queued});
      batch.push_back({hold(number), -1, estimate, now_, at, machine, shape, scheduler});
    }
    push_batch(std::move(batch));
  }

  // Tasks that go to whichever of their probes comes up first.
  struct Hand {
    std::vector<std::int64_t> tasks;
    std::vector<std::int64_t> durations;
    std::int64_t sent = 0;
    std::size_t next = 0;
    // Probes that are queued or on their way.
    std::int64_t probes = 0;
    // From when on nobody asks in vain any more; never, if negative.
    std::int64_t cancelled_after = -1;
    std::int64_t emptied = -1;
    bool is_sticky = false;

    std::int64_t left() const { return static_cast<std::int64_t>(tasks.size() - next); }
  };

  // The same, with the tasks in hand. `cancel` says that probes are taken back when none is left.
  void deal(std::int64_t at, std::int64_t job, std::int32_t owner, std::int32_t scheduler,
            std::int32_t shape, std::int64_t estimate, std::span<const std::int32_t> machines,
            Hand hand, bool cancel) {
    const auto number = static_cast<std::int32_t>(hands_.size());
    hand.sent = now_;
    has_sticky_ = has_sticky_ || hand.is_sticky;
    hand.probes = static_cast<std::int64_t>(machines.size());
    if (cancel) hand.cancelled_after = round_trip_ / 2;
    for (const std::int64_t task : hand.tasks) board_.move(task, TaskState::queued, now_);
    hands_.push_back(std::move(hand));
    const std::size_t first = probes_.size();
    probe(at, job, owner, scheduler, shape, estimate, machines);
    for (std::size_t i = first; i < probes_.size(); ++i) probes_[i].hand = number;
  }

  bool is_held(std::int64_t probe) const {
    return probe >= 0 && probe < static_cast<std::int64_t>(probes_.size()) &&
           probes_[static_cast<std::size_t>(probe)].state == Probe::held;
  }

  // Gives the slot that a probe holds to a pending task; false if its machine is gone.
  bool bind(std::int64_t probe, std::int64_t task, std::int64_t duration, std::int64_t estimate) {
    Probe& held = probes_[static_cast<std::size_t>(probe)];
    held.state = Probe::over;
    if (!cell_.finish(hold(probe))) return false;
    if (!cell_.start(task, held.machine, held.shape, held.scheduler)) return false;
    launch(task, duration, estimate, now_);
    return true;
  }

  void cancel(std::int64_t probe) {
    Probe& held = probes_[static_cast<std::size_t>(probe)];
    held.state = Probe::over;
    if (cell_.finish(hold(probe))) pump(held.machine);
  }

  // The owner stopped: nobody will answer its probes.
  void cancel_all(std::int32_t owner) {
    // All are over before a queue goes on, or the next of them would come up.
    std::vector<std::size_t> held;
    for (std::size_t probe = 0; probe < probes_.size(); ++probe) {
      if (probes_[probe].owner != owner) continue;
      if (probes_[probe].state == Probe::held) held.push_back(probe);
      probes_[probe].state = Probe::over;
      if (probes_[probe].hand >= 0) {
        Hand& hand = hands_[probes_[probe].hand];
        for (; hand.left() > 0; ++hand.next) {
          board_.move(hand.tasks[hand.next], TaskState::pending, now_);
        }
        hand = {};
      }
    }
    for (const std::size_t probe : held) {
      if (cell_.finish(hold(static_cast<std::int64_t>(probe)))) pump(probes_[probe].machine);
    }
  }

  // Per machine: entries in its queue, and for how long it is expected to be busy; see loads.hpp.
  void queue_state(bool only_long, bool as_of_beat, std::vector<std::int64_t>& lengths,
                   std::vector<std::int64_t>& waits) {
    loads_.read(cell_.machines(), only_long, as_of_beat, rules_.start_delay, now_, lengths, waits);
  }
  Loads& loads() { return loads_; }

  // Machines say how busy they are only where somebody may ask.
  void keep_loads() { keeps_loads_ = true; }

  // Claims have gone another way than by a task's end.
  void recount(std::int32_t machine) {
    if (!keeps_loads_) return;
    loads_.forget_running(machine, now_);
    for (const Run& run : runs_) {
      if (!is_running(run) || cell_.claims().at(run.slot).machine != machine) continue;
      loads_.add_running(machine, run.estimate, run.started - run.delay, now_);
    }
  }

  // The machine is gone or smaller than it was: the tasks in its queue are handed back in queue order, pending again.
  void lose_queue(std::int32_t machine, std::vector<std::int64_t>& out) {
    if (static_cast<std::size_t>(machine) >= queues_.size()) return;
    MachineQueue& queue = queues_[machine];
    while (!queue.empty()) {
      const std::size_t at = next_of(queue);
      if (at == queue.size()) {
        purge(machine);
        break;
      }
      const std::int64_t task = take(machine, at).task;
      if (is_hold(task)) {
        lose_probe(Board::index_of(task));
      } else {
        out.push_back(task);
        board_.move(task, TaskState::pending, now_);
      }
    }
  }

  // Room may have appeared on the machine by another way than a task's end.
  void pump(std::int32_t machine) {
    if (static_cast<std::size_t>(machine) >= queues_.size()) return;
    for (;;) {
      if (queues_[machine].has_waste()) purge(machine);
      if (queues_[machine].empty()) break;
      const std::size_t at = next_of(queues_[machine]);
      if (at == queues_[machine].size()) {
        purge(machine);
        break;
      }
      const Arrival item = items_[queues_[machine][at].item];
      if (!is_hold(item.task)) {
        if (!cell_.start(item.task, machine, item.shape, item.scheduler)) return;
        take(machine, at);
        start(item, rules_.start_delay);
        continue;
      }
      const std::int64_t number = Board::index_of(item.task);
      Probe& probe = probes_[number];
      if (probe.state != Probe::queued) {
        take(machine, at);
      } else if (probe.hand >= 0) {
        if (!ask_hand(machine, at, item)) return;
      } else {
        if (!cell_.start(item.task, machine, item.shape, item.scheduler)) return;
        take(machine, at);
        probe.state = Probe::held;
        ready_.push_back({number, probe.job, machine, probe.owner});
      }
    }
    if (rules_.steal_attempts > 0 && cell_.is_up(machine)) steal(machine);
  }

  // The next event of a Python kind, or a report; false when nothing is left up to `horizon`.
  bool next(std::int64_t horizon, Event& out) {
    for (;;) {
      schedule_phases();
      const bool has_event = !heap_.empty() && heap_.top().at <= horizon;
      const bool instant_over =
          !has_event || heap_.top().at > now_ || heap_.top().kind >= first_python_kind;
      if (instant_over && !finished_.empty()) {
        out = Event{now_, 0, finished_report, 0, 0};
        return true;
      }
      if (instant_over && !(lost_.empty() && refused_.empty())) {
        out = Event{now_, 0, lost_report, 0, 0};
        return true;
      }
      if (instant_over && !ready_.empty()) {
        out = Event{now_, 0, probe_report, 0, 0};
        return true;
      }
      if (instant_over && !phases_.empty()) {
        out = Event{now_, 0, phase_report, 0, 0};
        return true;
      }
      if (!has_event) return false;
      const Event event = heap_.pop();
      advance(event.at);
      if (event.kind == finish_kind) {
        finish_all(event.a, static_cast<std::int32_t>(event.b));
      } else if (event.kind == arrive_kind) {
        arrive(event.b);
      } else if (event.kind == release_kind) {
        if (cell_.finish(hold(event.b))) pump(event.a);
      } else if (event.kind == phase_kind) {
        end_phase(pools_[static_cast<std::size_t>(event.b)], event.a);
      } else {
        out = event;
        return true;
      }
    }
  }

  // Moves the clock without an event: to the horizon, when a run ends.
  void advance(std::int64_t at) {
    while (at >= next_sample_) sample();
    if (at <= now_) return;
    const double span = static_cast<double>(at - now_);
    for (int d = 0; d < cell_.dimensions(); ++d) {
      used_integral_[d] += static_cast<double>(cell_.used_total()[d]) * span;
      capacity_integral_[d] += static_cast<double>(cell_.capacity_total()[d]) * span;
    }
    now_ = at;
  }

  std::vector<Notice> take_finished() { return std::exchange(finished_, {}); }
  std::vector<ProbeNotice> take_ready() { return std::exchange(ready_, {}); }
  std::vector<PhaseNotice> take_phases() { return std::exchange(phases_, {}); }
  std::vector<Notice> take_lost() { return std::exchange(lost_, {}); }
  // What came to a full queue.
  std::vector<Notice> take_refused() { return std::exchange(refused_, {}); }

  std::int64_t stolen() const { return stolen_; }

  const std::vector<TaskRow>& rows() const { return rows_; }
  const std::vector<double>& used_integral() const { return used_integral_; }
  const std::vector<double>& capacity_integral() const { return capacity_integral_; }
  // Flat rows: at, used per dimension, capacity per dimension, pending, queued, running.
  const std::vector<std::int64_t>& samples() const { return samples_; }
  int sample_width() const { return 2 * cell_.dimensions() + 4; }

 private:
  // A running task, which is known by its claim.
  struct Run {
    std::uint64_t claim = 0;
    std::int64_t placed = 0;
    std::int64_t started = 0;
    std::int64_t estimate = 0;
    // From the slot's being taken to the start.
    std::int64_t delay = 0;
    std::int32_t slot = 0;
  };

  struct Cut {
    std::int32_t owner;
    std::int64_t from, until;
  };

  struct Probe {
    enum State : std::uint8_t { queued, held, over };
    std::int64_t job;
    std::int32_t machine;
    std::int32_t shape;
    std::int32_t scheduler;
    std::int32_t owner;
    // The hand that answers, or -1 for the scheduler.
    std::int32_t hand;
    State state;
  };

  bool has_pool(std::int64_t job) const {
    return static_cast<std::size_t>(job) < pool_by_job_.size() && pool_by_job_[job] >= 0;
  }
  Pool* pool_of(std::int64_t job) { return has_pool(job) ? &pools_[pool_by_job_[job]] : nullptr; }

  void join(Pool& pool, std::int64_t task, std::int32_t slot) {
    leave(pool, task);
    if (pool.is_over()) {
      heap_.push(now_, finish_kind, slot, 1);
    } else {
      pool.join(task, slot, now_);
      touch(pool);
    }
  }

  void leave(Pool& pool, std::int64_t task) {
    if (const auto slot = pool.leave(task, now_)) {
      runs_[*slot] = Run{};
      give_back_runs(*slot, 1);
      touch(pool);
    }
  }

  void touch(Pool& pool) {
    ++pool.version;
    if (!std::exchange(pool.is_dirty, true)) dirty_.push_back(pool_by_job_[pool.job()]);
  }

  // When the phases of pools that changed are due now; once an instant, however many workers joined.
  void schedule_phases() {
    for (const std::int32_t number : dirty_) {
      Pool& pool = pools_[number];
      pool.is_dirty = false;
      if (const auto at = pool.due()) heap_.push(*at, phase_kind, pool.version, number);
    }
    dirty_.clear();
  }

  void end_phase(Pool& pool, std::int32_t version) {
    if (version != pool.version) return;
    phases_.push_back({pool.job(), static_cast<std::int64_t>(pool.phase())});
    if (pool.end_phase(now_)) {
      for (const std::int32_t slot : pool.dismiss()) finish_all(slot, 1);
    } else {
      touch(pool);
    }
  }

  // Sticky probes of jobs without tasks to start are known to be of no use.
  void purge(std::int32_t machine) {
    queues_[machine].purge(
        [this](std::int32_t job) { return board_.unstarted(job) == 0; },
        [this, machine](std::int32_t item) {
          probes_[Board::index_of(items_[item].task)].state = Probe::over;
          if (keeps_loads_) loads_.leave(machine, items_[item].estimate, now_);
          free_items_.push_back(item);
        });
  }

  // How long it takes now: a question, and its answer half a round trip later, each wait for the end of a
  // cut that they meet.
  std::int64_t trip_to(std::int32_t owner) const {
    std::int64_t answered = now_;
    for (const std::int64_t leg : {round_trip_ / 2, round_trip_ - round_trip_ / 2}) {
      for (const Cut& cut : cuts_) {
        if (cut.owner == owner && cut.from <= answered && answered < cut.until) answered = cut.until;
      }
      answered += leg;
    }
    return answered - now_;
  }

  // The probe at the head asks its hand; false if the machine has no room for what it would get.
  bool ask_hand(std::int32_t machine, std::size_t at, const Arrival& item) {
    const std::int64_t number = Board::index_of(item.task);
    Probe& probe = probes_[number];
    Hand& hand = hands_[probe.hand];
    if (hand.left() == 0) {
      const bool is_known =
          hand.is_sticky || (hand.cancelled_after >= 0 && now_ >= hand.emptied + hand.cancelled_after);
      if (!is_known && !cell_.start(item.task, machine, item.shape, item.scheduler)) return false;
      take(machine, at);
      probe.state = Probe::over;
      if (!is_known) heap_.push(now_ + trip_to(probe.owner), release_kind, machine, number);
      return true;
    }
    const std::int64_t task = hand.tasks[hand.next];
    if (!cell_.start(task, machine, item.shape, item.scheduler)) return false;
    const Arrival bound{task,    hand.durations[hand.next], item.estimate, hand.sent,
                        item.at, machine,                   item.shape,    item.scheduler};
    const std::int64_t trip = trip_to(probe.owner);
    if (++hand.next == hand.tasks.size()) hand.emptied = now_ + trip - round_trip_;
    if (hand.is_sticky) {
      queues_[machine].charge(at, item.estimate);
    } else {
      take(machine, at);
      probe.state = Probe::over;
      --hand.probes;
    }
    start(bound, trip);
    return true;
  }

  void lose_probe(std::int64_t number) {
    Probe& probe = probes_[number];
    if (std::exchange(probe.state, Probe::over) != Probe::queued || probe.hand < 0) return;
    Hand& hand = hands_[probe.hand];
    --hand.probes;
    while (hand.left() > (hand.is_sticky && hand.probes > 0 ? hand.left() : hand.probes)) {
      board_.move(hand.tasks.back(), TaskState::pending, now_);
      lost_.push_back({hand.tasks.back(), 0, -1, probe.machine, probe.shape});
      hand.tasks.pop_back();
      hand.durations.pop_back();
    }
  }

  bool is_idle(std::int32_t machine) const {
    const std::int64_t* free = cell_.columns().free(machine);
    return std::equal(free, free + cell_.dimensions(), cell_.columns().capacity(machine));
  }

  // A machine without anything to do asks others, at random among those from `steal_from` on. From one with
  // long tasks it takes short entries that stand behind these; where none is long, it takes from the end.
  void steal(std::int32_t thief) {
    const std::int32_t machines = cell_.machines();
    if (rules_.steal_from >= machines || !is_idle(thief)) return;
    for (std::int64_t attempt = 0; attempt < rules_.steal_attempts; ++attempt) {
      const auto victim = static_cast<std::int32_t>(
          rules_.steal_from + static_cast<std::int64_t>(stealing_.below(
                                  static_cast<std::uint64_t>(machines - rules_.steal_from))));
      if (victim == thief || static_cast<std::size_t>(victim) >= queues_.size()) continue;
      const MachineQueue& queue = queues_[victim];
      std::size_t at = 0, count = 0;
      if (rules_.long_above > 0) {
        const auto is_long = [&](std::size_t i) { return loads_.is_long(queue[i].estimate); };
        if (!loads_.is_running_long(victim)) {
          while (at < queue.size() && !is_long(at)) ++at;
        }
        while (at < queue.size() && is_long(at)) ++at;
        while (at + count < queue.size() && !is_long(at + count)) ++count;
      } else if (!queue.empty()) {
        count = (queue.size() + 1) / 2;
        at = queue.size() - count;
      }
      count = std::min<std::size_t>(count, static_cast<std::size_t>(rules_.steal_limit));
      std::vector<Arrival> taken;
      for (std::size_t i = 0; i < count; ++i) {
        const Arrival& item = items_[queues_[victim][at].item];
        if (!could_ever_fit(thief, item.shape)) break;
        taken.push_back(take(victim, at));
      }
      if (taken.empty()) continue;
      stolen_ += static_cast<std::int64_t>(taken.size());
      for (Arrival& item : taken) {
        item.machine = thief;
        if (is_hold(item.task)) probes_[Board::index_of(item.task)].machine = thief;
        wait_at_machine(item);
      }
      pump(thief);
      return;
    }
  }

  void push_batch(std::vector<Arrival> batch) {
    if (batch.empty()) return;
    const std::int64_t at = batch.front().at;
    std::int64_t slot;
    if (free_batches_.empty()) {
      slot = static_cast<std::int64_t>(batches_.size());
      batches_.push_back({std::move(batch), 0});
    } else {
      slot = free_batches_.back();
      free_batches_.pop_back();
      batches_[slot] = {std::move(batch), 0};
    }
    heap_.push(std::max(at, now_), arrive_kind, 0, slot);
  }

  std::size_t next_of(MachineQueue& queue) {
    return queue.next(rules_, has_sticky_,
                      [this](std::int32_t job) { return board_.unstarted(job); });
  }

  Arrival take(std::int32_t machine, std::size_t at) {
    const std::int32_t item = queues_[machine].take(rules_, at).item;
    free_items_.push_back(item);
    if (keeps_loads_) loads_.leave(machine, items_[item].estimate, now_);
    return items_[item];
  }

  // A queued task that holds its claim by now, and runs from `delay` on.
  void start(const Arrival& item, std::int64_t delay) {
    const std::int32_t run = add_run(item.task, item.estimate, item.placed);
    runs_[run].started += delay;
    runs_[run].delay = delay;
    if (Pool* pool = pool_of(Board::job_of(item.task))) {
      join(*pool, item.task, run);
    } else if (item.duration >= 0) {
      heap_.push(now_ + delay + item.duration, finish_kind, run, 1);
    }
  }

  // Neighbouring places for runs that end together, in blocks of a power of two: what one event touches
  // lies side by side.
  std::int32_t take_runs(std::int32_t count) {
    auto& free = free_runs_[block_class(count)];
    if (free.empty()) {
      const auto first = static_cast<std::int32_t>(runs_.size());
      runs_.resize(runs_.size() + (std::size_t{1} << block_class(count)));
      return first;
    }
    const std::int32_t first = free.back();
    free.pop_back();
    return first;
  }
  void give_back_runs(std::int32_t first, std::int32_t count) {
    free_runs_[block_class(count)].push_back(first);
  }
  static std::size_t block_class(std::int32_t count) {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(count) - 1));
  }

  std::int32_t add_run(std::int64_t task, std::int64_t estimate, std::int64_t placed) {
    const std::int32_t at = take_runs(1);
    write_run(at, task, estimate, placed);
    return at;
  }

  void write_run(std::int32_t at, std::int64_t task, std::int64_t estimate, std::int64_t placed) {
    const std::int32_t slot = cell_.claims().slot(task);
    if (slot < 0) throw std::invalid_argument("a task cannot run without a claim");
    board_.move(task, TaskState::running, now_);
    runs_[at] = {cell_.claims().at(slot).sequence, placed, now_, estimate, 0, slot};
    if (keeps_loads_) loads_.start(cell_.claims().at(slot).machine, estimate, now_);
  }

  bool is_running(const Run& run) const {
    return run.claim != 0 && cell_.holds(run.slot, run.claim);
  }

  void finish_all(std::int32_t first, std::int32_t count) {
    for (std::int32_t i = 0; i < count; ++i) finish(first + i);
    give_back_runs(first, count);
  }

  void finish(std::int32_t at) {
    const Run run = std::exchange(runs_[at], Run{});
    if (!is_running(run)) return;
    const Claim claim = cell_.claims().at(run.slot);
    cell_.finish_claim(run.slot);
    if (keeps_loads_) loads_.end(claim.machine, run.estimate, run.started - run.delay, now_);
    board_.move(claim.task, TaskState::finished, now_);
    if (record_tasks_ && board_.has_task(claim.task)) {
      rows_.push_back({claim.task, run.placed, run.started, now_, claim.machine});
    }
    const std::int32_t owner = board_.owner(Board::job_of(claim.task));
    const bool owner_hears =
        static_cast<std::size_t>(owner) < hears_own_.size() && hears_own_[owner] != 0;
    if (hop_ >= 0) {
      for (WaitView* view : listeners_) {
        if (view == nullptr) continue;
        view->post({now_ + hop_, claim.task, run.estimate, run.started - run.delay,
                    claim.machine, claim.shape, Ledger::ended},
                   now_);
      }
    }
    if (hears_all_ || owner_hears) {
      finished_.push_back({claim.task, run.estimate, run.started - run.delay,
                           claim.machine, claim.shape});
    }
    pump(claim.machine);
  }

  void arrive(std::int64_t slot) {
    while (batches_[slot].next < batches_[slot].items.size()) {
      // A copy: what starts may push another batch.
      const Arrival item = batches_[slot].items[batches_[slot].next];
      if (item.at > now_) {
        heap_.push(item.at, arrive_kind, 0, slot);
        return;
      }
      ++batches_[slot].next;
      arrive_at_machine(item);
    }
    batches_[slot] = {};
    free_batches_.push_back(slot);
  }

  void arrive_at_machine(const Arrival& item) {
    if (keeps_loads_ && !is_hold(item.task)) loads_.land(item.machine, item.estimate, now_);
    if (!cell_.is_up(item.machine) || !could_ever_fit(item.machine, item.shape)) {
      hand_back(item, lost_);
      return;
    }
    if (static_cast<std::size_t>(item.machine) >= queues_.size()) {
      queues_.resize(static_cast<std::size_t>(cell_.machines()));
    }
    MachineQueue& queue = queues_[item.machine];
    const bool has_room = has_room_now(item.machine, item.shape);
    const bool must_wait = !has_room || !queue.empty();
    if (must_wait && rules_.limit > 0 && static_cast<std::int64_t>(queue.size()) >= rules_.limit) {
      hand_back(item, refused_);
      return;
    }
    wait_at_machine(item);
    // Whoever was next did not fit; if the newcomer does not either, nobody starts.
    if (has_room) pump(item.machine);
  }

  void wait_at_machine(const Arrival& item) {
    std::int32_t at;
    if (free_items_.empty()) {
      at = static_cast<std::int32_t>(items_.size());
      items_.push_back(item);
    } else {
      at = free_items_.back();
      free_items_.pop_back();
      items_[at] = item;
    }
    const auto job = static_cast<std::int32_t>(
        is_hold(item.task) ? probes_[Board::index_of(item.task)].job : Board::job_of(item.task));
    queues_[item.machine].add(rules_, {item.estimate, 0, job, at}, next_arrival_++);
    if (keeps_loads_) loads_.arrive(item.machine, item.estimate, now_);
  }

  void hand_back(const Arrival& item, std::vector<Notice>& out) {
    if (is_hold(item.task)) {
      lose_probe(Board::index_of(item.task));
      return;
    }
    board_.move(item.task, TaskState::pending, now_);
    out.push_back({item.task, item.estimate, -1, item.machine, item.shape});
  }

  bool has_room_now(std::int32_t machine, std::int32_t shape) const {
    const std::int64_t* request = cell_.request(shape);
    const std::int64_t* free = cell_.columns().free(machine);
    for (int d = 0; d < cell_.dimensions(); ++d) {
      if (request[d] > free[d]) return false;
    }
    return true;
  }

  bool could_ever_fit(std::int32_t machine, std::int32_t shape) const {
    if (!cell_.is_within_reach(shape)) return false;
    const std::int64_t* request = cell_.request(shape);
    const std::int64_t* capacity = cell_.columns().capacity(machine);
    for (int d = 0; d < cell_.dimensions(); ++d) {
      if (request[d] > capacity[d]) return false;
    }
    return true;
  }

  // Keeps at most `most_samples` evenly spaced rows: when full, every other one goes.
  void sample() {
    static constexpr std::size_t most_samples = 400;
    samples_.push_back(next_sample_);
    for (int d = 0; d < cell_.dimensions(); ++d) samples_.push_back(cell_.used_total()[d]);
    for (int d = 0; d < cell_.dimensions(); ++d) samples_.push_back(cell_.capacity_total()[d]);
    samples_.push_back(board_.count(TaskState::pending));
    samples_.push_back(board_.count(TaskState::queued));
    samples_.push_back(board_.count(TaskState::running));
    const std::size_t width = static_cast<std::size_t>(sample_width());
    if (samples_.size() / width >= most_samples) {
      const std::size_t kept = samples_.size() / width / 2;
      for (std::size_t i = 0; i < kept; ++i) {
        std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(2 * i * width), width,
                    samples_.begin() + static_cast<std::ptrdiff_t>(i * width));
      }
      samples_.resize(kept * width);
      sample_every_ *= 2;
      next_sample_ = samples_[(kept - 1) * width] + sample_every_;
    } else {
      next_sample_ += sample_every_;
    }
  }

  Cell& cell_;
  QueueRules rules_;
  bool record_tasks_;
  bool hears_all_ = false;
  std::vector<std::uint8_t> hears_own_;
  EventHeap heap_;
  Board board_;
  std::int64_t now_ = 0;
  std::vector<Run> runs_;
  // Blocks that are free, by the logarithm of their size.
  std::array<std::vector<std::int32_t>, 32> free_runs_;
  struct Batch {
    std::vector<Arrival> items;
    std::size_t next = 0;
  };
  std::vector<Batch> batches_;
  std::vector<std::int64_t> free_batches_;
  std::vector<MachineQueue> queues_;
  std::vector<Arrival> items_;
  std::vector<std::int32_t> free_items_;
  std::int64_t next_arrival_ = 0;
  std::vector<WaitView*> listeners_;
  std::int64_t hop_ = -1;
  std::int64_t round_trip_ = 0;
  std::vector<Cut> cuts_;
  bool keeps_loads_ = false;
  Loads loads_;
  std::vector<Hand> hands_;
  bool has_sticky_ = false;
  Random stealing_{0x57EA1};
  std::int64_t stolen_ = 0;
  std::vector<Notice> finished_, lost_, refused_;
  std::vector<Probe> probes_;
  std::vector<ProbeNotice> ready_;
  std::vector<Pool> pools_;
  //: The number of each job's pool, or -1; short where no later job has one.
  std::vector<std::int32_t> pool_by_job_;
  std::vector<std::int32_t> dirty_;
  std::vector<PhaseNotice> phases_;
  std::vector<TaskRow> rows_;
  std::vector<double> used_integral_, capacity_integral_;
  std::vector<std::int64_t> samples_;
  std::int64_t next_sample_ = 0;
  std::int64_t sample_every_ = 1'000'000;
};

}  // namespace argosy
