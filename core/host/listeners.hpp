// Which schedulers are told about tasks' ends, and the wait views that are updated without calling their
// engines.
//
// Wait views (waits/wait_view.hpp) receive every task's end, a hop later, and the placements of other
// schedulers: O(listeners) per report. Busy-until views follow one log instead (waits/report_log.hpp), as long as
// every report reaches all of them at the same time: O(1) per report.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cell/cell.hpp"
#include "host/board.hpp"
#include "waits/wait_view.hpp"

namespace argosy {

// Placements of tasks of one job.
struct PlacementNews {
  std::span<const std::int64_t> tasks;
  std::span<const std::uint8_t> versions;
  std::span<const std::int32_t> machines;
  std::int64_t estimate = 0;
  std::int32_t shape = 0;
  // Total number of tasks in the job.
  std::int64_t total = 0;
  // When the placement was decided.
  std::int64_t since = 0;
  // Whether each is a message of its own.
  bool is_per_task = false;
  // Whether a message begins with them.
  bool begins = true;

  bool begins_with(std::size_t row) const { return is_per_task || (row == 0 && begins); }
};

class Listeners {
 public:
  // Whether `owner` is told about its own tasks' ends; `hear_all` is for listeners to every task.
  void hear_own(std::int32_t owner) {
    if (static_cast<std::size_t>(owner) >= hears_own_.size()) hears_own_.resize(owner + 1, 0);
    hears_own_[owner] = 1;
  }
  void hear_all() { hears_all_ = true; }
  bool hears(std::int32_t owner) const {
    return hears_all_ || (static_cast<std::size_t>(owner) < hears_own_.size() && hears_own_[owner]);
  }

  // Sets the wait view that receives ends and placements; null removes it. With a negative hop, ends are
  // reported instead, for the host to pass on.
  void listen(std::int32_t owner, WaitView* view) {
    if (static_cast<std::size_t>(owner) >= views_.size()) {
      views_.resize(owner + 1, nullptr);
      kinds_.resize(owner + 1, Kind::none);
    }
    // The view that was there may be gone already.
    if (kinds_[owner] == Kind::ledger) --ledgers_;
    if (kinds_[owner] == Kind::busy_until) --followers_;
    views_[owner] = view;
    kinds_[owner] = view == nullptr ? Kind::none : view->is_published() ? Kind::busy_until : Kind::ledger;
    if (kinds_[owner] == Kind::ledger) ++ledgers_;
    if (kinds_[owner] == Kind::busy_until) ++followers_;
    if (view != nullptr && view->is_published() && hop_ >= 0) view->follow(log_, owner);
  }
  void set_hop(std::int64_t hop) {
    hop_ = hop;
    for (std::size_t owner = 0; owner < views_.size(); ++owner) {
      WaitView* view = views_[owner];
      if (view == nullptr || !view->is_published()) continue;
      view->follow(hop >= 0 ? log_ : nullptr, static_cast<std::int32_t>(owner));
    }
  }

  // Whether anybody may be told of ends: if not, `tell_end` need not be called.
  bool has_views() const { return hop_ >= 0 && !views_.empty(); }
  // There must be views.
  void tell_end(const WaitReport& ended, std::int64_t now) {
    WaitReport report = ended;
    report.due = now + hop_;
    ends_told_ += ledgers_ + followers_;
    if (ledgers_ > 0) {
      for (std::size_t owner = 0; owner < views_.size(); ++owner) {
        if (kinds_[owner] == Kind::ledger) views_[owner]->post(report, now);
      }
    }
    if (followers_ > 0) {
      log({report.due, report.task, report.estimate, report.since, report.machine, report.shape, -1, true},
          now);
    }
  }

  // How often a view was told of an end.
  std::int64_t ends_told() const { return ends_told_; }

  void gossip(const Cell& cell, std::span<const std::int32_t> owners, std::int64_t due,
              const PlacementNews& news, std::int64_t now) {
    const std::span<const std::int64_t> request{cell.request(news.shape),
                                                static_cast<std::size_t>(cell.dimensions())};
    const std::int32_t sender = only_one_not_in(owners);
    if (sender >= 0 && due == now + hop_ && due >= log_->last_due()) {
      log_->know_shape(news.shape, {request.begin(), request.end()});
      for (std::size_t i = 0; i < news.tasks.size(); ++i) {
        log({due, news.tasks[i], news.estimate, news.since, news.machines[i], news.shape, sender,
             news.begins_with(i)},
            now);
      }
      return;
    }
    for (const std::int32_t owner : owners) tell_placed(request, owner, due, news, now);
  }

 private:
  static constexpr std::size_t most_logged = std::size_t{1} << 20;

  enum class Kind : std::uint8_t { none, ledger, busy_until };

  // The owner whose placements all others hear about, if all have busy-until views; otherwise -1.
  std::int32_t only_one_not_in(std::span<const std::int32_t> owners) const {
    if (hop_ < 0 || owners.size() + 1 != views_.size() || ledgers_ > 0) return -1;
    const auto views = static_cast<std::int64_t>(views_.size());
    std::int64_t sum = views * (views - 1) / 2;
    for (const std::int32_t owner : owners) sum -= owner;
    return static_cast<std::int32_t>(sum);
  }

  void log(const LoggedReport& row, std::int64_t now) {
    if (log_->size() >= most_logged) {
      std::uint64_t read = log_->end();
      for (WaitView* view : views_) {
        if (view == nullptr || !view->is_published()) continue;
        view->settle(now);
        read = std::min(read, view->position());
      }
      log_->drop_before(read);
    }
    log_->push(row);
  }

  void tell_placed(std::span<const std::int64_t> request, std::int32_t owner, std::int64_t due,
                   const PlacementNews& news, std::int64_t now) {
    WaitView* view = static_cast<std::size_t>(owner) < views_.size() ? views_[owner] : nullptr;
    // A scheduler that has not started receives nothing.
    if (view == nullptr || view->machines() == 0) return;
    view->know_shape(news.shape, request);
    if (!news.tasks.empty()) view->expect(job_of(news.tasks[0]), news.total);
    for (std::size_t i = 0; i < news.tasks.size(); ++i) {
      view->post({due, news.tasks[i], news.estimate, news.since, news.machines[i], news.shape,
                  news.versions[i], news.begins_with(i)},
                 now);
    }
  }

  bool hears_all_ = false;
  std::vector<std::uint8_t> hears_own_;
  std::vector<WaitView*> views_;
  // The kind of each view, and how many keep a ledger and follow the log.
  std::vector<Kind> kinds_;
  std::int64_t ledgers_ = 0;
  std::int64_t followers_ = 0;
  std::shared_ptr<ReportLog> log_ = std::make_shared<ReportLog>();
  std::int64_t hop_ = -1;
  std::int64_t ends_told_ = 0;
};

}  // namespace argosy
