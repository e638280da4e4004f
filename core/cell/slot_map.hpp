// From tasks to the slots of their claims.
//
// Tasks of a job have neighbouring numbers, and come and go together: the map is by groups of eight
// neighbours, so that one cache line serves several of them. O(1) expected an operation; 80 to 160 bytes a
// group, that is 10 to 20 a claim of a large job.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cell/flat_map.hpp"

namespace argosy {

class SlotMap {
 public:
  std::size_t size() const { return size_; }

  // -1 if the task has none.
  std::int32_t find(std::int64_t task) const {
    const Group* group = groups_.find(task >> bits);
    return group ? group->slots[index(task)] : -1;
  }

  // The task must have none.
  void insert(std::int64_t task, std::int32_t slot) {
    groups_.insert(task >> bits).slots[index(task)] = slot;
    ++size_;
  }

  // The task must have one.
  void erase(std::int64_t task) {
    Group& group = *groups_.find(task >> bits);
    group.slots[index(task)] = -1;
    --size_;
    const bool is_used =
        std::any_of(group.slots.begin(), group.slots.end(), [](auto slot) { return slot >= 0; });
    if (!is_used) groups_.erase(task >> bits);
  }

 private:
  static constexpr int bits = 3;

  struct Group {
    std::array<std::int32_t, 1 << bits> slots{-1, -1, -1, -1, -1, -1, -1, -1};
  };

  static std::size_t index(std::int64_t task) {
    return static_cast<std::size_t>(task) & ((1 << bits) - 1);
  }

  FlatMap<Group> groups_;
  std::size_t size_ = 0;
};

}  // namespace argosy
