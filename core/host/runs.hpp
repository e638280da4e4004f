// Running tasks: what is known of each try of a task on a machine.
//
// A run is identified by the slot and the sequence number of its claim. A claim that was evicted or moved has
// another number, or none, so a run that is over can be recognised without any bookkeeping. Tasks that end
// together by one timer have adjacent places, in blocks whose size is a power of two, so that a timer touches
// contiguous memory.
//
// A place is freed by the timer that ends the runs of a block; by the pool that its worker leaves; or, for a
// run whose end is reported, by the report. If such a run lost its claim and no report follows, its place is
// freed when its claim's slot is reused, so there are never more of these than slots.
//
// A claim's slot leads directly to its run. 48 bytes per run, 4 per slot; every operation is O(1).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace argosy {

struct Run {
  std::uint64_t claim = 0;
  std::int64_t placed = 0;
  std::int64_t started = 0;
  std::int64_t estimate = 0;
  // From when the slot is taken until the start.
  std::int64_t delay = 0;
  std::int32_t slot = 0;
  // Only a reported end frees its place.
  bool is_told = false;

  std::int64_t took_slot() const { return started - delay; }
};

class Runs {
 public:
  const Run& operator[](std::int32_t at) const { return runs_[static_cast<std::size_t>(at)]; }

  std::int32_t take_places(std::int32_t count) {
    auto& free = free_[block_class(count)];
    if (free.empty()) {
      const auto first = static_cast<std::int32_t>(runs_.size());
      runs_.resize(runs_.size() + (std::size_t{1} << block_class(count)));
      return first;
    }
    const std::int32_t first = free.back();
    free.pop_back();
    return first;
  }
  void give_back(std::int32_t first, std::int32_t count) {
    free_[block_class(count)].push_back(first);
  }

  // A run of the claim in that slot will be written soon.
  void prefetch_slot(std::int32_t slot) const {
    if (static_cast<std::size_t>(slot) < by_slot_.size()) {
      __builtin_prefetch(&by_slot_[static_cast<std::size_t>(slot)], 1);
    }
  }

  void write(std::int32_t at, const Run& run) {
    const auto slot = static_cast<std::size_t>(run.slot);
    if (slot >= by_slot_.size()) by_slot_.resize(slot + 1, -1);
    if (has_told_) reclaim(run.slot);
    has_told_ = has_told_ || run.is_told;
    runs_[static_cast<std::size_t>(at)] = run;
    by_slot_[slot] = at;
  }

  // The run is over; its place is not freed yet.
  Run remove(std::int32_t at) { return std::exchange(runs_[static_cast<std::size_t>(at)], Run{}); }

  // The run of the claim with that slot and number, or -1.
  std::int32_t find(std::int32_t slot, std::uint64_t claim) const {
    if (static_cast<std::size_t>(slot) >= by_slot_.size()) return -1;
    const std::int32_t at = by_slot_[static_cast<std::size_t>(slot)];
    return at >= 0 && runs_[static_cast<std::size_t>(at)].claim == claim ? at : -1;
  }

 private:
  static std::size_t block_class(std::int32_t count) {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(count) - 1));
  }

  // Another claim has the slot: an earlier run there whose end was to be reported is over without a report.
  void reclaim(std::int32_t slot) {
    const std::int32_t at = by_slot_[static_cast<std::size_t>(slot)];
    if (at < 0) return;
    const Run& run = runs_[static_cast<std::size_t>(at)];
    if (!run.is_told || run.slot != slot) return;
    remove(at);
    give_back(at, 1);
  }

  std::vector<Run> runs_;
  // Blocks that are free, by the logarithm of their size.
  std::array<std::vector<std::int32_t>, 32> free_;
  // The last run of each claim slot; it may be over.
  std::vector<std::int32_t> by_slot_;
  bool has_told_ = false;
};

}  // namespace argosy
