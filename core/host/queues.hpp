// Tasks and probes on their way to machines, and those that wait there.
//
// A batch is tasks or probes that one scheduler sent together; it arrives item by item, in order of time, by
// one timer at a time. What waits at a machine is an entry of that machine's queue (machine_queue.hpp), which
// refers to the item by number. Places of batches and items are used again, the last given back first.
// Looking for one task is a scan of all items, for cancellations only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "host/machine_queue.hpp"

namespace argosy {

// One cache line each: a machine whose turn comes reads one at random.
struct alignas(64) Arrival {
  std::int64_t task;
  // Negative: its end is reported.
  std::int64_t duration;
  std::int64_t estimate;
  std::int64_t placed;
  // When it reaches the machine; in a batch never earlier than the one before.
  std::int64_t at;
  std::int32_t machine;
  std::int32_t shape;
  std::int32_t scheduler;
  // The number of what it requires of its machine (requirements.hpp); 0: nothing.
  std::int32_t requirement = 0;
};

struct Batch {
  std::vector<Arrival> items;
  std::size_t next = 0;
};

class Batches {
 public:
  std::int64_t add(std::vector<Arrival> items) {
    if (free_.empty()) {
      batches_.push_back({std::move(items), 0});
      return static_cast<std::int64_t>(batches_.size()) - 1;
    }
    const std::int64_t slot = free_.back();
    free_.pop_back();
    batches_[static_cast<std::size_t>(slot)] = {std::move(items), 0};
    return slot;
  }
  Batch& operator[](std::int64_t slot) { return batches_[static_cast<std::size_t>(slot)]; }
  void remove(std::int64_t slot) {
    (*this)[slot] = {};
    free_.push_back(slot);
  }

  // Removes a task that has not arrived; false if there is none. `gone` receives it.
  template <typename Gone>
  bool cancel(std::int64_t task, Gone gone) {
    for (Batch& batch : batches_) {
      for (std::size_t i = batch.next; i < batch.items.size(); ++i) {
        if (batch.items[i].task != task) continue;
        gone(batch.items[i]);
        batch.items.erase(batch.items.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    }
    return false;
  }

 private:
  std::vector<Batch> batches_;
  std::vector<std::int64_t> free_;
};

class Queues {
 public:
  explicit Queues(const QueueRules& rules) : rules_(rules) {}

  bool has(std::int32_t machine) const { return static_cast<std::size_t>(machine) < queues_.size(); }
  void grow(std::int32_t machines) { queues_.resize(static_cast<std::size_t>(machines)); }
  MachineQueue& operator[](std::int32_t machine) { return queues_[static_cast<std::size_t>(machine)]; }
  const MachineQueue& operator[](std::int32_t machine) const {
    return queues_[static_cast<std::size_t>(machine)];
  }
  const Arrival& item(std::int32_t machine, std::size_t at) const {
    return items_[static_cast<std::size_t>((*this)[machine][at].item)];
  }

  const Arrival& item(const QueueEntry& entry) const {
    return items_[static_cast<std::size_t>(entry.item)];
  }

  void add(const Arrival& item, std::int32_t job) {
    std::int32_t at;
    if (free_.empty()) {
      at = static_cast<std::int32_t>(items_.size());
      items_.push_back(item);
    } else {
      at = free_.back();
      free_.pop_back();
      items_[static_cast<std::size_t>(at)] = item;
    }
    (*this)[item.machine].add(rules_, {item.estimate, 0, job, at}, next_arrival_++);
  }

  // The position of the next entry; see MachineQueue.
  template <typename Unstarted>
  std::size_t next(std::int32_t machine, bool skips_useless, Unstarted unstarted) {
    return (*this)[machine].next(rules_, skips_useless, unstarted);
  }

  const Arrival& take(std::int32_t machine, std::size_t at) {
    return give_back((*this)[machine].take(rules_, at).item);
  }

  // The same, at no other entry's expense.
  const Arrival& remove(std::int32_t machine, std::size_t at) {
    return give_back((*this)[machine].remove(rules_, at).item);
  }

  template <typename IsUseless, typename Gone>
  void purge(std::int32_t machine, IsUseless is_useless, Gone gone) {
    (*this)[machine].purge(is_useless, [&](std::int32_t item) { gone(give_back(item)); });
  }

  // Removes a waiting task without affecting other entries; returns the machine, or -1. `gone` receives the
  // item.
  template <typename Gone>
  std::int32_t cancel(std::int64_t task, Gone gone) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].task != task) continue;
      // A free place keeps its last contents.
      const std::int32_t machine = items_[i].machine;
      const MachineQueue& queue = (*this)[machine];
      for (std::size_t at = 0; at < queue.size(); ++at) {
        if (queue[at].item != static_cast<std::int32_t>(i)) continue;
        gone(give_back((*this)[machine].remove(rules_, at).item));
        return machine;
      }
    }
    return -1;
  }

 private:
  const Arrival& give_back(std::int32_t item) {
    free_.push_back(item);
    return items_[static_cast<std::size_t>(item)];
  }

  const QueueRules rules_;
  std::vector<MachineQueue> queues_;
  std::vector<Arrival> items_;
  std::vector<std::int32_t> free_;
  std::int64_t next_arrival_ = 0;
};

}  // namespace argosy
