// What queued tasks require of a machine: lists of attributes, all of which it must have, by number.
//
// Schedulers choose machines that have them; machines that steal must check. Number 0 requires nothing. Lists
// are never forgotten; there are as many as different ones were added. A check is O(attributes required x
// attributes of the machine).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cell/groups.hpp"

namespace argosy {

class Requirements {
 public:
  std::int32_t add(std::vector<std::int32_t> attributes) {
    lists_.push_back(std::move(attributes));
    return static_cast<std::int32_t>(lists_.size()) - 1;
  }
  bool knows(std::int32_t number) const {
    return number >= 0 && static_cast<std::size_t>(number) < lists_.size();
  }
  bool are_met(std::int32_t number, const Groups& groups, std::int32_t machine) const {
    const std::vector<std::int32_t>& list = lists_[static_cast<std::size_t>(number)];
    return std::all_of(list.begin(), list.end(),
                       [&](std::int32_t attribute) { return groups.has_attribute(machine, attribute); });
  }

 private:
  std::vector<std::vector<std::int32_t>> lists_ = {{}};
};

}  // namespace argosy
