// Where a scheduler believes every task to be, from its own placements and from reports.
//
// Each task has one entry: a version and, while it is placed, a machine and the work it adds there.
// Versions grow along a task's life: 0 unknown, 2k placed for the k-th time, 2k + 1 that placement undone,
// `ended` over. A report changes an entry only if its (version, machine) is the larger, in lexicographic
// order. That makes entries a join-semilattice: reports may come in any order and any number of times,
// and two schedulers that have heard the same reports hold the same entries. A report that was lost is
// repaired by joining the entries of anyone who has heard it. Beyond 126 placements of one task, later
// ones are no longer told apart.
//
// The digest of a job is the sum over its tasks of a hash of (task, version, machine), updated with each
// change, so that two schedulers can compare a job by one number. A job all of whose tasks have ended has no
// entries.
//
// 16 bytes a task, O(1) a report.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "random.hpp"
#include "task_numbers.hpp"

namespace argosy {

struct Placing {
  std::int64_t work = 0;
  std::int32_t machine = -1;
  // The view's own number for the task's shape.
  std::uint16_t shape = 0;
  std::uint8_t version = 0;
  // The machine's epoch when the work was added: a machine emptied since no longer holds it.
  std::uint8_t epoch = 0;

  bool is_placed() const { return version != 0 && version % 2 == 0; }
};

class Ledger {
 public:
  static constexpr std::uint8_t ended = 255;
  static constexpr std::uint8_t last_version = 252;

  struct JobEntries {
    std::vector<Placing> tasks;
    std::uint64_t digest = 0;
    // Number of tasks in the job, if known; number of ended entries.
    std::int64_t total = 0;
    std::int64_t over = 0;
    bool is_over = false;
  };

  void expect(std::int64_t job, std::int64_t total) {
    JobEntries& entries = at(job);
    if (entries.is_over || entries.total >= total) return;
    entries.total = total;
    entries.tasks.resize(static_cast<std::size_t>(total));
  }

  // The entry of a task, or null if its job is over.
  Placing* find(std::int64_t task) {
    JobEntries& entries = at(job_of(task));
    if (entries.is_over) return nullptr;
    const std::size_t index = index_of(task);
    if (index >= entries.tasks.size()) entries.tasks.resize(index + 1);
    return &entries.tasks[index];
  }

  bool has_ended(std::int64_t task) const {
    if (!knows(job_of(task))) return false;
    const JobEntries& entries = job(job_of(task));
    const std::size_t index = index_of(task);
    return entries.is_over || (index < entries.tasks.size() && entries.tasks[index].version == ended);
  }

  // For reports that will be looked up soon.
  void prefetch_job(std::int64_t task) const {
    const auto job = static_cast<std::size_t>(job_of(task));
    if (job < jobs_.size()) __builtin_prefetch(&jobs_[job]);
  }
  void prefetch(std::int64_t task) const {
    const auto job = static_cast<std::size_t>(job_of(task));
    if (job >= jobs_.size()) return;
    const auto& tasks = jobs_[job].tasks;
    if (index_of(task) < tasks.size()) __builtin_prefetch(&tasks[index_of(task)]);
  }

  static bool is_news(const Placing& entry, std::uint8_t version, std::int32_t machine) {
    if (version != entry.version) return version > entry.version;
    return version % 2 == 0 && machine > entry.machine;
  }

  // Replaces the entry by `now_at`, which must be newer.
  void change(std::int64_t task, Placing& entry, const Placing& now_at) {
    JobEntries& entries = jobs_[static_cast<std::size_t>(job_of(task))];
    const std::uint64_t difference = hash(task, now_at) - hash(task, entry);
    entries.digest += difference;
    digest_ += difference;
    entry = now_at;
    if (now_at.version != ended) return;
    entries.over += 1;
    if (entries.total > 0 && entries.over == entries.total) {
      entries.is_over = true;
      entries.tasks = {};
    }
  }

  std::int64_t jobs() const { return static_cast<std::int64_t>(jobs_.size()); }
  const JobEntries& job(std::int64_t job) const { return jobs_[static_cast<std::size_t>(job)]; }
  bool knows(std::int64_t job) const { return job >= 0 && job < jobs(); }

  // All of the job's tasks have ended, whatever was known about them.
  void end_job(std::int64_t job, std::int64_t total) {
    JobEntries& entries = at(job);
    if (entries.is_over) return;
    std::uint64_t digest = 0;
    Placing over;
    over.version = ended;
    for (std::int64_t i = 0; i < total; ++i) digest += hash(task_number(job, i), over);
    digest_ += digest - entries.digest;
    entries.digest = digest;
    entries.total = entries.over = total;
    entries.is_over = true;
    entries.tasks = {};
  }

  // Over all jobs: equal for ledgers with equal contents.
  std::uint64_t digest() const { return digest_; }

 private:
  JobEntries& at(std::int64_t job) {
    if (job < 0 || job > 0x7FFF'FFFF) throw std::invalid_argument("no such job number");
    if (static_cast<std::size_t>(job) >= jobs_.size()) jobs_.resize(static_cast<std::size_t>(job) + 1);
    return jobs_[static_cast<std::size_t>(job)];
  }

  static std::uint64_t hash(std::int64_t task, const Placing& entry) {
    if (entry.version == 0) return 0;
    const std::uint64_t where = entry.is_placed() ? static_cast<std::uint64_t>(entry.machine) + 1 : 0;
    return scramble(scramble(static_cast<std::uint64_t>(task)) ^ (where << 8 | entry.version));
  }

  std::vector<JobEntries> jobs_;
  std::uint64_t digest_ = 0;
};

}  // namespace argosy
