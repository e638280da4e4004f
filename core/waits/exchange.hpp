// How wait views compare and merge their entries.
//
// Two views compare a job by its digest (ledger.hpp), and send each other the entries of jobs that differ.
// Joining takes over newer entries, so it does not matter how often or in which order states arrive; those on
// machines that the view has not learnt of stay different. Of two busy-until times, the later one is based on more
// reports. O(jobs) to compare, O(entries) to join.
#pragma once

#include "waits/wait_view.hpp"

namespace argosy {

inline void WaitView::digests(std::vector<std::int64_t>& jobs,
                              std::vector<std::uint64_t>& digests) const {
  for (std::int64_t job = 0; job < ledger_.jobs(); ++job) {
    const auto& entries = ledger_.job(job);
    if (entries.is_over || entries.digest == 0) continue;
    jobs.push_back(job);
    digests.push_back(entries.digest);
  }
}

inline std::vector<std::int64_t> WaitView::differing(std::span<const std::int64_t> jobs,
                                                     std::span<const std::uint64_t> digests) const {
  std::vector<std::int64_t> found;
  std::vector<std::uint8_t> is_told(static_cast<std::size_t>(ledger_.jobs()), 0);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!ledger_.knows(jobs[i])) {
      found.push_back(jobs[i]);
      continue;
    }
    is_told[static_cast<std::size_t>(jobs[i])] = 1;
    const auto& entries = ledger_.job(jobs[i]);
    if (entries.is_over || entries.digest != digests[i]) found.push_back(jobs[i]);
  }
  for (std::int64_t job = 0; job < ledger_.jobs(); ++job) {
    const auto& entries = ledger_.job(job);
    if (is_told[static_cast<std::size_t>(job)] || entries.is_over || entries.digest == 0) continue;
    found.push_back(job);
  }
  return found;
}

inline WaitState WaitView::state(std::span<const std::int64_t> jobs) const {
  WaitState state;
  state.requests = requests_;
  state.shapes.resize(shapes_.size());
  for (const auto& [shape, own] : shapes_) state.shapes[own] = shape;
  if (published_) state.busy = all_work();
  for (const std::int64_t job : jobs) {
    if (!ledger_.knows(job)) continue;
    const auto& entries = ledger_.job(job);
    const std::size_t before = state.indices.size();
    for (std::size_t i = 0; i < entries.tasks.size(); ++i) {
      const Placing& entry = entries.tasks[i];
      if (entry.version == 0) continue;
      state.indices.push_back(static_cast<std::uint32_t>(i));
      state.work.push_back(entry.work);
      state.machines.push_back(entry.machine);
      state.task_shapes.push_back(entry.shape);
      state.versions.push_back(entry.version);
    }
    state.jobs.push_back(job);
    state.totals.push_back(entries.total);
    state.over.push_back(entries.is_over);
    state.entries.push_back(static_cast<std::int64_t>(state.indices.size() - before));
  }
  return state;
}

inline WaitState WaitView::whole_state() const {
  std::vector<std::int64_t> jobs(static_cast<std::size_t>(ledger_.jobs()));
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i] = static_cast<std::int64_t>(i);
  return state(jobs);
}

inline void WaitView::join(const WaitState& state) {
  // Each shape has as many amounts as the sender knows dimensions.
  const std::size_t wide = state.requests.size() / std::max<std::size_t>(state.shapes.size(), 1);
  if (state.requests.size() != state.shapes.size() * wide) {
    throw std::invalid_argument("an amount for each dimension of each shape");
  }
  std::vector<std::uint16_t> renamed;
  for (std::size_t i = 0; i < state.shapes.size(); ++i) {
    know_shape(state.shapes[i], {state.requests.data() + i * wide, wide});
    renamed.push_back(shapes_.at(state.shapes[i]));
  }
  const std::size_t count = std::min(size(), state.busy.size());
  for (std::size_t m = 0; m < count; ++m) {
    if (state.busy[m] <= work(m)) continue;
    work(m) = state.busy[m];
    touch(static_cast<std::int32_t>(m));
  }
  std::size_t at = 0;
  for (std::size_t row = 0; row < state.jobs.size(); ++row) {
    const std::int64_t job = state.jobs[row];
    const std::size_t end = at + static_cast<std::size_t>(state.entries[row]);
    if (state.over[row]) {
      end_job(job, state.totals[row]);
      at = end;
      continue;
    }
    if (state.totals[row] > 0) ledger_.expect(job, state.totals[row]);
    for (; at < end; ++at) {
      const std::int64_t task = task_number(job, state.indices[at]);
      Placing* entry = ledger_.find(task);
      Placing told{state.work[at], state.machines[at], 0, state.versions[at], 0};
      if (entry == nullptr || !Ledger::is_news(*entry, told.version, told.machine)) continue;
      // As of a report: what is told again later counts once the machine is known.
      if (told.is_placed() && told.machine >= machines()) continue;
      take_off(*entry);
      if (told.is_placed()) told.shape = renamed[state.task_shapes[at]];
      put_on(told);
      ledger_.change(task, *entry, told);
    }
  }
}

inline void WaitView::end_job(std::int64_t job, std::int64_t total) {
  if (ledger_.knows(job)) {
    for (const Placing& entry : ledger_.job(job).tasks) take_off(entry);
  }
  ledger_.end_job(job, total);
}

}  // namespace argosy
