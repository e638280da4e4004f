// Reports that every busy-until view receives, kept once.
//
// With S schedulers, each report would otherwise be stored S times until its receivers next decide: with as many
// schedulers as machines, that is most of the memory of a run. All receive the same rows at the same time, except
// that nobody is told of its own placements, so a view keeps only its position in the log. Rows are in order of due
// times. Rows that all views have read are dropped.
//
// O(1) a report, whatever the number of views; O(rows) for a view to catch up, in the order in which they stand in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace argosy {

struct LoggedReport {
  std::int64_t due;
  std::int64_t task;
  std::int64_t estimate;
  // When the placement was decided, or the ended task had started.
  std::int64_t since;
  std::int32_t machine;
  std::int32_t shape;
  // Who placed the task; -1: it has ended.
  std::int32_t sender;
  // Whether it begins a message.
  bool begins;
};

class ReportLog {
 public:
  std::uint64_t first() const { return first_; }
  std::uint64_t end() const { return first_ + rows_.size(); }
  std::size_t size() const { return rows_.size(); }
  std::int64_t last_due() const { return last_due_; }
  const LoggedReport& operator[](std::uint64_t position) const {
    return rows_[static_cast<std::size_t>(position - first_)];
  }

  // Rows must come in order of due times.
  void push(const LoggedReport& row) {
    rows_.push_back(row);
    last_due_ = row.due;
  }

  void know_shape(std::int32_t shape, std::vector<std::int64_t> request) {
    requests_.insert_or_assign(shape, std::move(request));
  }
  const std::vector<std::int64_t>* request(std::int32_t shape) const {
    const auto found = requests_.find(shape);
    return found == requests_.end() ? nullptr : &found->second;
  }

  void drop_before(std::uint64_t position) {
    rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(position - first_));
    first_ = position;
  }

 private:
  std::vector<LoggedReport> rows_;
  std::uint64_t first_ = 0;
  std::int64_t last_due_ = 0;
  std::unordered_map<std::int32_t, std::vector<std::int64_t>> requests_;
};

}  // namespace argosy
