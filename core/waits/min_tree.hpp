// The least of many keys, ties at random, as keys change one by one.
//
// An implicit 8-ary tournament over n keys: each inner vertex holds the least key below it and how many
// leaves have that key. `set` recomputes the path upwards and stops where a vertex stays as it was, so
// most changes end at the first level; `pick` walks down and draws once among all leaves that have the
// least key, each equally likely. Both O(8 log8 n) at most; `assign` O(n). Eight keys fill a cache line;
// 15,000 keys take 160 KB.
//
// The key `never` takes a leaf out: it is not counted, and a tree of nothing else has nothing to pick.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "random.hpp"

namespace argosy {

class MinTree {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  void assign(std::vector<std::int64_t> keys) {
    size_ = keys.size();
    eligible_ = static_cast<std::int64_t>(size_) - std::count(keys.begin(), keys.end(), never);
    levels_.clear();
    keys.resize(std::max<std::size_t>(8, (keys.size() + 7) / 8 * 8), never);
    levels_.push_back({std::move(keys), {}});
    while (levels_.back().least.size() > 1) {
      const std::size_t below = levels_.back().least.size();
      const std::size_t vertices = (below + 7) / 8;
      const std::size_t padded = vertices == 1 ? 1 : (vertices + 7) / 8 * 8;
      Level level;
      level.least.assign(padded, never);
      level.count.assign(padded, 0);
      levels_.push_back(std::move(level));
      for (std::size_t v = 0; v < vertices; ++v) recompute(levels_.size() - 1, v);
    }
  }

  std::size_t size() const { return size_; }
  // Leaves that may be picked.
  std::int64_t eligible() const { return eligible_; }
  std::int64_t key(std::size_t i) const { return levels_[0].least[i]; }
  std::int64_t least() const { return levels_.back().least[0]; }

  void prefetch(std::size_t i) const { __builtin_prefetch(&levels_[0].least[i / 8 * 8]); }

  void set(std::size_t i, std::int64_t key) {
    if (levels_[0].least[i] == key) return;
    eligible_ += (levels_[0].least[i] == never) - (key == never);
    levels_[0].least[i] = key;
    for (std::size_t level = 1; level < levels_.size(); ++level) {
      i /= 8;
      if (!recompute(level, i)) return;
    }
  }

  // A leaf with the smallest key; -1 if every key is `never`.
  std::int32_t pick(Random& random) const {
    const std::int32_t ties = levels_.back().count[0];
    return nth(ties > 1 ? random.below(static_cast<std::uint64_t>(ties)) : 0);
  }
  std::int32_t first() const { return nth(0); }

 private:
  struct Level {
    std::vector<std::int64_t> least;
    // Number of leaves below with the smallest key; leaves themselves have none.
    std::vector<std::int32_t> count;
  };

  std::int32_t nth(std::uint64_t nth) const {
    const std::int64_t key = least();
    if (key == never) return -1;
    std::size_t v = 0;
    for (std::size_t level = levels_.size() - 1; level > 0; --level) {
      const Level& below = levels_[level - 1];
      for (std::size_t child = 8 * v;; ++child) {
        if (below.least[child] != key) continue;
        const std::uint64_t here =
            level == 1 ? 1 : static_cast<std::uint64_t>(below.count[child]);
        if (nth < here) {
          v = child;
          break;
        }
        nth -= here;
      }
    }
    return static_cast<std::int32_t>(v);
  }

  // Whether the vertex changed. All levels except the last are padded to multiples of eight.
  bool recompute(std::size_t level, std::size_t v) {
    const Level& below = levels_[level - 1];
    const std::int64_t* const keys = below.least.data() + 8 * v;
    std::int64_t least = keys[0];
    for (int child = 1; child < 8; ++child) least = std::min(least, keys[child]);
    std::int32_t count = 0;
    if (level == 1) {
      for (int child = 0; child < 8; ++child) count += keys[child] == least;
    } else {
      const std::int32_t* const counts = below.count.data() + 8 * v;
      for (int child = 0; child < 8; ++child) count += keys[child] == least ? counts[child] : 0;
    }
    if (least == never) count = 0;
    Level& mine = levels_[level];
    if (mine.least[v] == least && mine.count[v] == count) return false;
    mine.least[v] = least;
    mine.count[v] = count;
    return true;
  }

  std::size_t size_ = 0;
  std::int64_t eligible_ = 0;
  std::vector<Level> levels_;
};

}  // namespace argosy
