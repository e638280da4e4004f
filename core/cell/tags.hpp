// How many running containers carry a tag, per machine or per node set.
//
// Counts that are not zero live in hash maps, one per 256 owners (machines or sets), shared with
// snapshots and copied on write as the pages of `Columns` are. A count changes in O(1) expected.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cell/flat_map.hpp"

namespace argosy {

class TagCounts {
 public:
  std::int32_t get(std::int32_t owner, std::int32_t tag) const {
    const auto at = static_cast<std::size_t>(owner >> bits);
    if (at >= shards_.size() || !shards_[at]) return 0;
    const std::int32_t* count = shards_[at]->find(key(owner, tag));
    return count ? *count : 0;
  }

  void add(std::int32_t owner, std::int32_t tag, std::int32_t change) {
    const auto at = static_cast<std::size_t>(owner >> bits);
    if (at >= shards_.size()) shards_.resize(at + 1);
    auto& shard = shards_[at];
    if (!shard) {
      shard = std::make_shared<FlatMap<std::int32_t>>();
    } else if (shard.use_count() > 1) {
      shard = std::make_shared<FlatMap<std::int32_t>>(*shard);
    }
    shard->count(key(owner, tag), change);
  }

  // Calls visit(owner, tag, count) for every nonzero count, in no particular order.
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& shard : shards_) {
      if (!shard) continue;
      shard->each([&](std::int64_t at, std::int32_t count) {
        visit(static_cast<std::int32_t>(at >> 32), static_cast<std::int32_t>(at & 0x7FFFFFFF), count);
      });
    }
  }

 private:
  static constexpr int bits = 8;

  static std::int64_t key(std::int32_t owner, std::int32_t tag) {
    return (std::int64_t{owner} << 32) | tag;
  }

  std::vector<std::shared_ptr<FlatMap<std::int32_t>>> shards_;
};

}  // namespace argosy
