// A message from one wait view to another: entries of jobs, with the shapes they refer to.
//
// Flat columns of plain numbers, so that a state is the same after it has been sent. Each job has a row: its
// number, its total number of tasks (0: unknown), whether it is over, and its number of entries. The entries of
// all jobs follow one another, in the order of the jobs: the task's index, its work, machine, shape and version
// (ledger.hpp). An entry's shape is a row of `shapes`, which has the cell's number for each and its request in
// `requests`. A view that keeps busy-until times has one for each machine.
#pragma once

#include <cstdint>
#include <vector>

namespace argosy {

struct WaitState {
  std::vector<std::int32_t> shapes;
  std::vector<std::int64_t> requests;
  std::vector<std::int64_t> jobs;
  std::vector<std::int64_t> totals;
  std::vector<std::uint8_t> over;
  std::vector<std::int64_t> entries;
  std::vector<std::uint32_t> indices;
  std::vector<std::int64_t> work;
  std::vector<std::int32_t> machines;
  std::vector<std::uint16_t> task_shapes;
  std::vector<std::uint8_t> versions;
  std::vector<std::int64_t> busy;

  bool operator==(const WaitState&) const = default;

  // Whether the columns are consistent.
  bool is_sound() const {
    // Limit for one job: external data must not make a view reserve unlimited memory.
    static constexpr std::int64_t most_tasks = std::int64_t{1} << 24;
    const std::size_t count = indices.size();
    if (totals.size() != jobs.size() || over.size() != jobs.size() ||
        entries.size() != jobs.size() || work.size() != count || machines.size() != count ||
        task_shapes.size() != count || versions.size() != count) {
      return false;
    }
    if (shapes.empty() ? !requests.empty() : requests.size() % shapes.size() != 0) return false;
    std::size_t left = count;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const bool is_job = jobs[i] >= 0 && jobs[i] <= 0x7FFF'FFFF && totals[i] >= 0 &&
                          totals[i] <= most_tasks;
      if (!is_job || entries[i] < 0 || static_cast<std::size_t>(entries[i]) > left) return false;
      left -= static_cast<std::size_t>(entries[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (indices[i] >= most_tasks) return false;
      const bool is_placed = versions[i] != 0 && versions[i] % 2 == 0;
      if (is_placed && task_shapes[i] >= shapes.size()) return false;
    }
    return left == 0;
  }
};

}  // namespace argosy
