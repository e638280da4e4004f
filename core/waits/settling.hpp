// How a wait view applies reports: in order of their due times, many at a time.
#pragma once

#include <algorithm>
#include <unordered_set>

#include "waits/wait_view.hpp"

namespace argosy {

inline void WaitView::settle(std::int64_t now) {
  if (log_ != nullptr) settle_log(now);
  for (;;) {
    const bool has_next = read_ < inbox_.size() && inbox_[read_].due <= now;
    const bool has_early = !early_.empty() && early_.top().report.due <= now;
    if (!has_next && !has_early) break;
    const bool is_early = has_early && (!has_next || early_.top().report.due < inbox_[read_].due);
    const WaitReport& next = is_early ? early_.top().report : inbox_[read_];
    if (cost_ > 0 && !read(next.due, next.begins, now)) break;
    if (is_early) {
      const WaitReport report = early_.top().report;
      early_.pop();
      apply(report);
    } else {
      if (read_ >= fetched_) prefetch();
      apply(inbox_[read_++]);
    }
  }
  if (read_ == inbox_.size() || read_ >= most_waiting) {
    inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(read_));
    read_ = fetched_ = 0;
  }
}

// Whether a message that came at `due` has been read by now.
inline bool WaitView::read(std::int64_t due, bool begins, std::int64_t now) {
  const std::int64_t ends = std::max(free_at_, due) + (begins ? cost_ : 0);
  if (ends > now) return false;
  free_at_ = ends;
  return true;
}

inline void WaitView::settle_log(std::int64_t now) {
  position_ = std::max(position_, log_->first());
  for (; position_ < log_->end(); ++position_) {
    const LoggedReport& row = (*log_)[position_];
    const std::int64_t due = row.due + lag_;
    if (due > now) break;
    if (row.sender == own_) continue;
    if (cost_ > 0 && !read(due, row.begins, now)) break;
    const bool is_end = row.sender < 0;
    const auto* request = is_end || shapes_.contains(row.shape) ? nullptr : log_->request(row.shape);
    if (request != nullptr) know_shape(row.shape, *request);
    apply({due, row.task, row.estimate, row.since, row.machine, row.shape,
           is_end ? Ledger::ended : std::uint8_t{2}, row.begins});
  }
}

inline std::vector<std::pair<std::int64_t, std::int64_t>> WaitView::times_to_come() const {
  auto times = times_;
  if (!records_times_) return times;
  if (log_ != nullptr) {
    for (std::uint64_t i = std::max(position_, log_->first()); i < log_->end(); ++i) {
      const LoggedReport& row = (*log_)[i];
      if (row.sender < 0 && row.machine < machines()) times.emplace_back(row.task, row.due - row.since);
    }
  }
  std::vector<WaitReport> reports(inbox_.begin() + static_cast<std::ptrdiff_t>(read_), inbox_.end());
  for (auto early = early_; !early.empty(); early.pop()) reports.push_back(early.top().report);
  std::stable_sort(reports.begin(), reports.end(),
                   [](const WaitReport& x, const WaitReport& y) { return x.due < y.due; });
  // In the clean reading, only a task's first end counts.
  std::unordered_set<std::int64_t> ended;
  for (const WaitReport& report : reports) {
    if (report.version != Ledger::ended || report.machine >= machines()) continue;
    if (!published_ && (ledger_.has_ended(report.task) || !ended.insert(report.task).second)) continue;
    times.emplace_back(report.task, report.due - lag_ - report.since);
  }
  return times;
}

// Reports refer to machines and tasks all over memory, and are applied many at a time. Data for the next
// reports is prefetched together, and the locations of their jobs' tasks one step earlier.
inline void WaitView::prefetch() {
  fetched_ = std::min(read_ + fetched_together, inbox_.size());
  for (std::size_t i = read_; i < fetched_; ++i) {
    const auto m = static_cast<std::size_t>(inbox_[i].machine);
    if (m < size()) __builtin_prefetch(rows_.data() + m * stride());
  }
  if (published_) return;
  const std::size_t ahead = std::min(fetched_ + fetched_together, inbox_.size());
  for (std::size_t i = read_; i < ahead; ++i) ledger_.prefetch_job(inbox_[i].task);
  for (std::size_t i = read_; i < fetched_; ++i) ledger_.prefetch(inbox_[i].task);
}

}  // namespace argosy
