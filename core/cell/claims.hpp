// The table of claims: which task holds room on which machine.
//
// A claim lives in a slot; free slots form a stack. The claims of a machine are a doubly linked list
// through the slots, oldest first, and a hash map leads from a task to its slot: each operation is
// O(1). 40 bytes a slot and 10 to 160 of hash map make a million claims 50 to 200 MB, least where jobs are
// large.
//
// `sequence` numbers claims in the order they were made, from 1; a number is never used twice, so it
// tells a task's second run from its first.
//
// Undoing. `remove` leaves the removed record to its caller, and `put_back` of that record, called in
// the reverse order of all that happened since, restores slot, neighbours and number exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "cell/slot_map.hpp"

namespace argosy {

struct Claim {
  std::int64_t task = -1;
  std::uint64_t sequence = 0;
  std::int32_t machine = -1;
  std::int32_t shape = -1;
  std::int32_t previous = -1;
  std::int32_t next = -1;
  std::uint16_t scheduler = 0;
  // Made before the system with the last word has decided.
  bool assumed = false;
  // A bitmap of the machine's devices; see devices.hpp.
  std::uint16_t devices = 0;
};

class Claims {
 public:
  std::size_t size() const { return slot_of_.size(); }

  std::int32_t slot(std::int64_t task) const {
    return slot_of_.find(task);
  }
  const Claim& at(std::int32_t slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  const Claim* of(std::int64_t task) const {
    const std::int32_t found = slot(task);
    return found < 0 ? nullptr : &at(found);
  }
  std::int32_t first_on(std::int32_t machine) const {
    return ends_[static_cast<std::size_t>(machine)].first;
  }
  std::int32_t last_on(std::int32_t machine) const {
    return ends_[static_cast<std::size_t>(machine)].last;
  }

  // The claim will be removed soon; its neighbours too will be written to.
  void prefetch(std::int32_t slot) const { __builtin_prefetch(&at(slot), 1); }
  void prefetch_neighbours(std::int32_t slot) const {
    const Claim& claim = at(slot);
    if (claim.previous >= 0) prefetch(claim.previous);
    if (claim.next >= 0) prefetch(claim.next);
  }
  // A claim will be added to the machine soon.
  void prefetch_last_on(std::int32_t machine) const {
    if (last_on(machine) >= 0) prefetch(last_on(machine));
  }

  void append_machine() { ends_.emplace_back(); }

  // `task` must hold no claim.
  std::int32_t add(std::int64_t task, std::int32_t machine, std::int32_t shape,
                   std::uint16_t scheduler, bool assumed = false) {
    const std::int32_t slot = take_slot();
    Claim& claim = mutable_at(slot);
    claim = {task, ++last_sequence_, machine, shape, last_on(machine), -1, scheduler, assumed, 0};
    link(slot);
    slot_of_.insert(task, slot);
    return slot;
  }

  void set_assumed(std::int32_t slot, bool assumed) { mutable_at(slot).assumed = assumed; }
  void set_devices(std::int32_t slot, std::uint16_t devices) { mutable_at(slot).devices = devices; }

  // Undoes the latest `add`, including its slot and sequence number.
  void take_back(std::int32_t slot) {
    remove(slot);
    --last_sequence_;
  }

  Claim remove(std::int32_t slot) {
    Claim& claim = mutable_at(slot);
    const Claim removed = claim;
    Ends& ends = ends_[static_cast<std::size_t>(claim.machine)];
    (claim.previous < 0 ? ends.first : mutable_at(claim.previous).next) = claim.next;
    (claim.next < 0 ? ends.last : mutable_at(claim.next).previous) = claim.previous;
    slot_of_.erase(claim.task);
    claim = Claim{};
    claim.next = free_slot_;
    free_slot_ = slot;
    return removed;
  }

  void put_back(const Claim& removed) {
    const std::int32_t slot = take_slot();
    mutable_at(slot) = removed;
    link(slot);
    slot_of_.insert(removed.task, slot);
  }

  // Calls visit(slot, claim) for every claim, in the order of slots.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot].task >= 0) visit(static_cast<std::int32_t>(slot), slots_[slot]);
    }
  }

 private:
  struct Ends {
    std::int32_t first = -1;
    std::int32_t last = -1;
  };

  Claim& mutable_at(std::int32_t slot) { return slots_[static_cast<std::size_t>(slot)]; }

  std::int32_t take_slot() {
    if (free_slot_ < 0) {
      slots_.emplace_back();
      return static_cast<std::int32_t>(slots_.size() - 1);
    }
    const std::int32_t slot = free_slot_;
    free_slot_ = at(slot).next;
    if (free_slot_ >= 0) prefetch(free_slot_);
    return slot;
  }

  void link(std::int32_t slot) {
    const Claim& claim = at(slot);
    Ends& ends = ends_[static_cast<std::size_t>(claim.machine)];
    (claim.previous < 0 ? ends.first : mutable_at(claim.previous).next) = slot;
    (claim.next < 0 ? ends.last : mutable_at(claim.next).previous) = slot;
  }

  std::vector<Claim> slots_;
  std::vector<Ends> ends_;
  SlotMap slot_of_;
  std::int32_t free_slot_ = -1;
  std::uint64_t last_sequence_ = 0;
};

}  // namespace argosy
