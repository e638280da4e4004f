// A snapshot of a cell: everything that can be read of it, including claims.
//
// Columns and tag counts are shared page by page and copied on write by the live cell; node sets,
// attributes and shapes only grow. The claims are copied, machine by machine and oldest first, because a
// decision in the background needs to know which task holds what: 16 bytes per claim, O(machines + claims).
#pragma once

#include <cstdint>
#include <vector>

#include "cell/cell.hpp"

namespace argosy {

class Snapshot : public CellView {
 public:
  explicit Snapshot(const Cell& cell) : CellView(cell) {
    const Claims& claims = cell.claims();
    rows_.reserve(claims.size());
    starts_.reserve(static_cast<std::size_t>(machines()) + 1);
    for (std::int32_t machine = 0; machine < machines(); ++machine) {
      starts_.push_back(rows_.size());
      for (std::int32_t slot = claims.first_on(machine); slot >= 0; slot = claims.at(slot).next) {
        const Claim& claim = claims.at(slot);
        rows_.push_back({claim.task, claim.shape, claim.scheduler});
      }
    }
    starts_.push_back(rows_.size());
    for (std::int32_t number = 0; cell.knows_scheduler(number); ++number) {
      const Scheduler& of = cell.scheduler(number);
      schedulers_.push_back({of.used, of.claims, of.jobs.size(), of.most_precedence});
    }
  }

  struct Usage {
    Amounts used;
    std::int64_t claims;
    std::size_t jobs;
    int most_precedence;
  };

  bool knows_scheduler(std::int64_t number) const {
    return number >= 0 && number < static_cast<std::int64_t>(schedulers_.size());
  }
  const Usage& usage(std::int64_t number) const { return schedulers_[static_cast<std::size_t>(number)]; }

  // As of the live cell.
  void tagged_claims_on(const std::int32_t* machines, std::size_t count, std::vector<std::int64_t>& tasks,
                        std::vector<std::int32_t>& where, std::vector<std::int32_t>& what,
                        std::vector<std::int32_t>& who) const {
    for (std::size_t at = 0; at < count; ++at) {
      if (!knows(machines[at])) continue;
      const auto machine = static_cast<std::size_t>(machines[at]);
      for (std::size_t row = starts_[machine]; row < starts_[machine + 1]; ++row) {
        const Row& claim = rows_[row];
        if (shapes().tags(claim.shape).empty()) continue;
        tasks.push_back(claim.task);
        where.push_back(machines[at]);
        what.push_back(claim.shape);
        who.push_back(claim.scheduler);
      }
    }
  }

  void evictable(int bound, std::vector<std::int64_t>& out) const {
    const auto width = static_cast<std::size_t>(dimensions());
    const auto count = static_cast<std::size_t>(machines());
    out.assign(count * width, 0);
    for (std::size_t machine = 0; machine < count; ++machine) {
      for (std::size_t row = starts_[machine]; row < starts_[machine + 1]; ++row) {
        const std::int32_t shape = rows_[row].shape;
        if (shapes().precedence(shape) >= bound) continue;
        for (std::size_t d = 0; d < width; ++d) out[machine * width + d] += shapes().request(shape)[d];
      }
      if (const int d = columns().device_dimension(); d >= 0) {
        out[machine * width + static_cast<std::size_t>(d)] = 0;
      }
    }
  }

  // As of the live cell.
  void victims_for(std::int32_t shape, int bound, std::vector<std::int64_t>& out) const {
    std::vector<std::int32_t> held;
    std::vector<std::uint8_t> is_taken;
    for (std::int32_t machine = 0; machine < machines(); ++machine) {
      held.clear();
      const auto at = static_cast<std::size_t>(machine);
      for (std::size_t row = starts_[at]; row < starts_[at + 1]; ++row) held.push_back(rows_[row].shape);
      out.push_back(victims_needed(*this, machine, shape, bound, held, is_taken));
    }
  }

 private:
  struct Row {
    std::int64_t task;
    std::int32_t shape;
    std::uint16_t scheduler;
  };

  std::vector<std::size_t> starts_;
  std::vector<Row> rows_;
  std::vector<Usage> schedulers_;
};

}  // namespace argosy
