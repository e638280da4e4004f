// Which schedulers are told about tasks' ends, and the wait views that are updated without calling their
// engines.
//
// Wait views (waits/wait_view.hpp) receive every task's end, a hop later, and the placements of other
// schedulers. O(listeners) per end.
#pragma once

#include <cstddef>
#include <cstdint>
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
    if (static_cast<std::size_t>(owner) >= views_.size()) views_.resize(owner + 1, nullptr);
    views_[owner] = view;
  }
  void set_hop(std::int64_t hop) { hop_ = hop; }

  void tell_end(WaitReport report, std::int64_t now) {
    if (hop_ < 0) return;
    report.due = now + hop_;
    for (WaitView* view : views_) {
      if (view != nullptr) view->post(report, now);
    }
  }

  void gossip(const Cell& cell, std::int32_t owner, std::int64_t due, const PlacementNews& news,
              std::int64_t now) {
    WaitView* view = static_cast<std::size_t>(owner) < views_.size() ? views_[owner] : nullptr;
    // A scheduler that has not started receives nothing.
    if (view == nullptr || view->machines() == 0) return;
    const std::int64_t* request = cell.request(news.shape);
    view->know_shape(news.shape, {request, static_cast<std::size_t>(cell.dimensions())});
    if (!news.tasks.empty()) view->expect(job_of(news.tasks[0]), news.total);
    for (std::size_t i = 0; i < news.tasks.size(); ++i) {
      view->post({due, news.tasks[i], news.estimate, news.since, news.machines[i], news.shape,
                  news.versions[i]},
                 now);
    }
  }

 private:
  bool hears_all_ = false;
  std::vector<std::uint8_t> hears_own_;
  std::vector<WaitView*> views_;
  std::int64_t hop_ = -1;
};

}  // namespace argosy
