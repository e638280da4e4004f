// The job board: where every task is, and when each job reached its milestones.
//
// Of a job that is done, 49 bytes are kept: its milestones, its owner and how many tasks it had. Any other job
// also has counts, and one byte of state per task. Counts per state are kept over all jobs as tasks move, so that
// "where is everything" is O(1), and `first_misplaced` finds a task that its scheduler may not place: this catches
// an engine that places a task twice. Job numbers are dense and grow by one.
//
// A task is open while it is pending, queued or running. A job is done when all its tasks have finished, and
// over when none of them is open. Jobs that share work may have workers beyond their own tasks; of those
// nothing is kept here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "host/open_rows.hpp"
#include "task_numbers.hpp"

namespace argosy {

enum class TaskState : std::uint8_t {
  pending = 0,    // to be placed by its scheduler
  queued = 1,     // on its way to a machine's queue, or in it
  running = 2,
  finished = 3,
  abandoned = 4,  // its scheduler gave up
  failed = 5,     // its last attempt failed
  cancelled = 6,
};
inline constexpr int task_states = 7;

class Board {
 public:
  Board() = default;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // Makes room for this many jobs in all, so that columns need not be moved as they grow. Memory that is
  // not used yet is not taken from the system.
  void expect(std::int64_t jobs) {
    const auto count = static_cast<std::size_t>(jobs);
    for (auto* column : {&submit_, &first_attempt_, &thought_, &all_placed_, &done_}) column->reserve(count);
    owner_.reserve(count);
    total_.reserve(count);
    shares_work_.reserve(count);
  }

  std::int64_t add(std::int64_t submit, std::int64_t tasks, std::int32_t owner) {
    open_.add(jobs(), std::make_unique<OpenJob>(static_cast<std::int32_t>(tasks)));
    submit_.push_back(submit);
    owner_.push_back(owner);
    total_.push_back(static_cast<std::int32_t>(tasks));
    shares_work_.push_back(0);
    first_attempt_.push_back(-1);
    thought_.push_back(0);
    all_placed_.push_back(-1);
    done_.push_back(-1);
    counts_[0] += tasks;
    return static_cast<std::int64_t>(submit_.size()) - 1;
  }

  // A job that is not done gets more tasks.
  void grow(std::int64_t job, std::int64_t tasks) {
    const std::int64_t more = tasks - total_[job];
    OpenJob& open = *open_.find(job);
    open.states.resize(static_cast<std::size_t>(tasks), TaskState::pending);
    total_[job] = static_cast<std::int32_t>(tasks);
    open.pending += static_cast<std::int32_t>(more);
    open.unstarted += static_cast<std::int32_t>(more);
    counts_[0] += more;
  }
  bool is_done(std::int64_t job) const { return done_[job] >= 0; }

  std::int64_t jobs() const { return static_cast<std::int64_t>(submit_.size()); }
  bool has_job(std::int64_t job) const { return job >= 0 && job < jobs(); }
  bool has_task(std::int64_t task) const {
    return task >= 0 && has_job(job_of(task)) &&
           index_of(task) < static_cast<std::uint32_t>(total_[job_of(task)]);
  }

  std::int64_t tasks(std::int64_t job) const { return total_[job]; }

  TaskState state(std::int64_t task) const {
    const OpenJob* open = open_.find(job_of(task));
    return open == nullptr ? TaskState::finished : open->states[index_of(task)];
  }
  std::int64_t count(TaskState state) const { return counts_[static_cast<int>(state)]; }

  // Tasks that are not over.
  std::int64_t open() const { return counts_[0] + counts_[1] + counts_[2]; }

  // A scheduler spends this long deciding on the job.
  void attempt(std::int64_t job, std::int64_t now, std::int64_t duration) {
    if (first_attempt_[job] < 0) first_attempt_[job] = now;
    thought_[job] += duration;
  }

  // Extra workers are not tracked here.
  void move(std::int64_t task, TaskState to, std::int64_t now) {
    const std::int64_t job = job_of(task);
    OpenJob* const open = open_.find(job);
    if (open == nullptr || index_of(task) >= open->states.size()) return;
    TaskState& state = open->states[index_of(task)];
    const TaskState from = state;
    --counts_[static_cast<int>(from)];
    ++counts_[static_cast<int>(to)];
    state = to;
    open->pending += (to == TaskState::pending) - (from == TaskState::pending);
    open->placed += has_machine(to) - has_machine(from);
    open->unstarted += is_unstarted(to) - is_unstarted(from);
    if (to == TaskState::finished) {
      ++open->finished;
    } else if (to >= TaskState::abandoned) [[unlikely]] {
      ++open->given_up(to);
    }
    if (from >= TaskState::abandoned) [[unlikely]] --open->given_up(from);
    if (all_placed_[job] < 0 && open->placed == total_[job]) all_placed_[job] = now;
    if (open->finished == total_[job]) {
      done_[job] = now;
      done_jobs_.push_back(job);
      open_.erase(job);
    }
  }

  // Whether none of the job's tasks is open.
  bool is_over(std::int64_t job) const {
    const OpenJob* open = open_.find(job);
    return open == nullptr ||
           open->finished + open->abandoned + open->failed + open->cancelled == total_[job];
  }

  // The job's workers share its work: there may be more of them than tasks.
  void share_work(std::int64_t job) { shares_work_[job] = 1; }
  bool shares_work(std::int64_t job) const { return shares_work_[job] != 0; }
  // A worker beyond the tasks its job was submitted with.
  bool is_extra(std::int64_t task) const {
    const std::int64_t job = job_of(task);
    return task >= 0 && has_job(job) && !has_task(task) && shares_work(job);
  }

  // The first row whose task `owner` (negative: anybody) may not place, or -1. A task may be placed when it is
  // pending; a running one may only be moved. `extras` allows workers beyond their job's tasks.
  std::int64_t first_misplaced(std::span<const std::int64_t> tasks, std::int32_t owner, bool may_run,
                               bool extras) const {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::int64_t task = tasks[i];
      const bool is_known = has_task(task);
      if (!is_known && !(extras && is_extra(task))) return static_cast<std::int64_t>(i);
      if (owner >= 0 && this->owner(job_of(task)) != owner) return static_cast<std::int64_t>(i);
      if (!is_known) continue;
      const TaskState at = state(task);
      if (at != TaskState::pending && !(may_run && at == TaskState::running)) {
        return static_cast<std::int64_t>(i);
      }
    }
    return -1;
  }

  // The first row whose task does not belong to `owner`, or -1. Workers beyond their job's tasks count as its
  // tasks.
  std::int64_t first_foreign(std::span<const std::int64_t> tasks, std::int32_t owner) const {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const bool is_known = has_task(tasks[i]) || is_extra(tasks[i]);
      if (!is_known || this->owner(job_of(tasks[i])) != owner) return static_cast<std::int64_t>(i);
    }
    return -1;
  }

  // The jobs done since the last call.
  std::vector<std::int64_t> take_done() { return std::exchange(done_jobs_, {}); }

  // Tasks that are pending or queued.
  std::int64_t unstarted(std::int64_t job) const {
    const OpenJob* open = open_.find(job);
    return open == nullptr ? 0 : open->unstarted;
  }

  std::int32_t owner(std::int64_t job) const { return owner_[job]; }
  void set_owner(std::int64_t job, std::int32_t owner) { owner_[job] = owner; }

  void tasks_in(std::int64_t job, TaskState state, std::vector<std::int64_t>& out) const {
    for (std::int64_t i = 0; i < total_[job]; ++i) {
      if (this->state(task_number(job, i)) == state) out.push_back(task_number(job, i));
    }
  }

  void jobs_with_pending(std::int32_t owner, std::vector<std::int64_t>& out) const {
    for (std::int64_t job = 0; job < jobs(); ++job) {
      if (owner_[job] != owner) continue;
      const OpenJob* open = open_.find(job);
      if (open != nullptr && open->pending > 0) out.push_back(job);
    }
  }

  const std::vector<std::int64_t>& submit() const { return submit_; }
  const std::vector<std::int64_t>& first_attempt() const { return first_attempt_; }
  const std::vector<std::int64_t>& thought() const { return thought_; }
  const std::vector<std::int64_t>& all_placed() const { return all_placed_; }
  const std::vector<std::int64_t>& done() const { return done_; }
  // Per job, the tasks that are over without having finished: none, if it is done.
  std::vector<std::int64_t> abandoned() const { return column(&OpenJob::abandoned); }
  std::vector<std::int64_t> cancelled() const { return column(&OpenJob::cancelled); }

 private:
  static int has_machine(TaskState state) {
    return state == TaskState::queued || state == TaskState::running || state == TaskState::finished;
  }
  static int is_unstarted(TaskState state) {
    return state == TaskState::pending || state == TaskState::queued;
  }

  // A job that is not done.
  struct OpenJob {
    explicit OpenJob(std::int32_t tasks)
        : states(static_cast<std::size_t>(tasks), TaskState::pending), pending(tasks), unstarted(tasks) {}

    std::int32_t& given_up(TaskState state) {
      if (state == TaskState::abandoned) return abandoned;
      return state == TaskState::failed ? failed : cancelled;
    }

    std::vector<TaskState> states;
    std::int32_t pending, unstarted, placed = 0;
    std::int32_t finished = 0, abandoned = 0, failed = 0, cancelled = 0;
  };

  std::vector<std::int64_t> column(std::int32_t OpenJob::*count) const {
    std::vector<std::int64_t> counts;
    counts.reserve(submit_.size());
    for (std::int64_t job = 0; job < jobs(); ++job) {
      const OpenJob* open = open_.find(job);
      counts.push_back(open == nullptr ? 0 : open->*count);
    }
    return counts;
  }

  OpenRows<OpenJob> open_;  // until all of a job's tasks have finished
  std::vector<std::int64_t> done_jobs_;
  std::vector<std::int64_t> submit_, first_attempt_, thought_, all_placed_, done_;
  std::vector<std::int32_t> owner_, total_;
  std::vector<std::uint8_t> shares_work_;
  std::int64_t counts_[task_states] = {};
};

}  // namespace argosy
