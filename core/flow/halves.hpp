// The halves of all arcs, those of one vertex next to each other and sorted by what they can carry.
//
// A vertex's range has four groups: residual here only | both ways | on the mate only | neither. What can
// carry flow out is the first two, what can carry flow in is the second and third. A half changes its
// group by at most three swaps, each with the half at a border.
//
// Ranges live in one pool. A full range moves to a free place of the right size or to the end; when an
// eighth of the pool is unused, all ranges are rewritten. Amortised O(1) for an insertion.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "flow/large_array.hpp"

namespace argosy::flow {

using Vertex = std::int32_t;
using Arc = std::int32_t;
using HalfId = std::int32_t;
using Cost = std::int64_t;
using Amount = std::int64_t;
__extension__ typedef __int128 Wide;

inline constexpr std::int32_t none = -1;
inline constexpr Amount capacity_limit = std::numeric_limits<std::int32_t>::max();
inline constexpr Amount supply_limit = Amount{1} << 44;
inline constexpr Amount gross_limit = Amount{1} << 60;
inline constexpr std::int32_t handle_limit = 1 << 30;
inline constexpr Cost cost_limit = Cost{1} << 40;
inline constexpr Cost price_limit = Cost{1} << 60;
inline constexpr Cost infinite = std::numeric_limits<Cost>::max();

struct Half {
  Cost cost;
  Vertex other;
  HalfId id;
};

// A half where it belongs: its vertex and group.
struct Placed {
  Vertex vertex;
  int group;
  Half half;
};

// A list grows by a sixteenth more than it needs, instead of by half or to double its size.
template <typename List>
void grow(List& list, std::size_t size) {
  if (size > list.capacity()) list.reserve(size + size / 16);
}

class Halves {
 public:
  Vertex bound() const { return static_cast<Vertex>(ranges_.size()); }
  void add_vertex() { ranges_.push_back(Range{}); }
  // For a vertex without halves.
  void clear(Vertex v) {
    release(ranges_[v]);
    ranges_[v] = Range{};
  }

  // All at once, in order of their ids, for so many vertices that have none yet.
  void fill(std::size_t vertices, const std::vector<Placed>& all) {
    ranges_.assign(vertices, Range{});
    for (const Placed& one : all) ++ranges_[one.vertex].bounds[one.group];
    std::uint32_t begin = 0;
    for (Range& range : ranges_) {
      range.begin = begin;
      for (std::uint32_t& bound : range.bounds) begin += std::exchange(bound, begin);
      range.room = begin - range.begin;
    }
    // Each bound is where its group begins, until the group is full.
    pool_.resize(all.size());
    places_.resize(all.size());
    for (const Placed& one : all) put(ranges_[one.vertex].bounds[one.group]++, one.half);
  }

  void add_ids(std::size_t count) {
    grow(places_, places_.size() + count);
    places_.resize(places_.size() + count, gone);
  }
  bool has(HalfId id) const { return places_[id] != gone; }

  Half& operator[](HalfId id) { return pool_[places_[id]]; }
  const Half& operator[](HalfId id) const { return pool_[places_[id]]; }

  const Half* begin(Vertex v) const { return pool_.data() + ranges_[v].begin; }
  // The end of a group of v.
  const Half* end(Vertex v, int group) const { return pool_.data() + ranges_[v].bounds[group]; }
  std::int32_t degree(Vertex v) const { return static_cast<std::int32_t>(ranges_[v].used()); }

  // Inserts into the last group.
  void insert(Vertex v, const Half& half) {
    const std::uint32_t used = ranges_[v].used();
    if (used == ranges_[v].room) relocate(v, std::max(used + 4, used + used / 4));
    put(ranges_[v].bounds[3]++, half);
  }

  // Removes from the last group.
  void erase(Vertex v, HalfId id) {
    swap(places_[id], --ranges_[v].bounds[3]);
    places_[id] = gone;
  }

  void regroup(Vertex v, HalfId id, int to) {
    Range& range = ranges_[v];
    std::uint32_t place = places_[id];
    int from = place < range.bounds[1] ? (place < range.bounds[0] ? 0 : 1)
                                       : (place < range.bounds[2] ? 2 : 3);
    for (; from < to; ++from) {
      const std::uint32_t last = --range.bounds[from];
      swap(place, last);
      place = last;
    }
    for (; from > to; --from) {
      const std::uint32_t first = range.bounds[from - 1]++;
      swap(place, first);
      place = first;
    }
  }

  // Makes room for this many more halves at v, so that adding them one by one does not move the range.
  void reserve(Vertex v, std::uint32_t more) {
    const std::uint32_t used = ranges_[v].used();
    if (used + more <= ranges_[v].room) return;
    relocate(v, std::max(used + more + (used + more) / 16, used + used / 8));
  }
  void reserve_pool(std::size_t more) {
    grow(pool_, pool_.size() + more);
    grow(places_, places_.size() + more);
  }

  std::size_t bytes() const {
    std::size_t sum = pool_.capacity() * sizeof(Half) + ranges_.capacity() * sizeof(Range) +
                      places_.capacity() * sizeof(std::uint32_t);
    for (const auto& shelf : shelves_) sum += shelf.capacity() * sizeof(std::uint32_t);
    return sum;
  }

 private:
  static constexpr std::uint32_t gone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t shelved_rooms = 256;

  // The location of a vertex's halves; bounds[g] is the end of group g.
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t bounds[4] = {0, 0, 0, 0};
    std::uint32_t room = 0;

    std::uint32_t used() const { return bounds[3] - begin; }
    void move_to(std::uint32_t place) {
      for (std::uint32_t& bound : bounds) bound = bound - begin + place;
      begin = place;
    }
  };

  void put(std::uint32_t place, const Half& half) {
    pool_[place] = half;
    places_[half.id] = place;
  }
  void swap(std::uint32_t a, std::uint32_t b) {
    if (a == b) return;
    const Half half = pool_[a];
    put(a, pool_[b]);
    put(b, half);
  }

  void relocate(Vertex v, std::uint32_t room) {
    const Range old = ranges_[v];
    std::uint32_t to;
    if (room < shelved_rooms && !shelves_[room].empty()) {
      to = shelves_[room].back();
      shelves_[room].pop_back();
      idle_ -= room;
    } else {
      if (idle_ > pool_.size() / 8 && idle_ > 1024) return compact(v, room);
      to = static_cast<std::uint32_t>(pool_.size());
      grow(pool_, pool_.size() + room);
      pool_.resize(pool_.size() + room);
    }
    for (std::uint32_t i = 0; i < old.used(); ++i) put(to + i, Half{pool_[old.begin + i]});
    ranges_[v].move_to(to);
    ranges_[v].room = room;
    release(old);
  }

  void release(const Range& range) {
    if (range.room == 0) return;
    idle_ += range.room;
    if (range.room < shelved_rooms) shelves_[range.room].push_back(range.begin);
  }

  // Rewrites all ranges without holes, v with `room`; others keep their room.
  void compact(Vertex v, std::uint32_t room) {
    ranges_[v].room = std::max(room, ranges_[v].room);
    std::size_t total = 0;
    for (const Range& range : ranges_) total += range.room;
    LargeArray<Half> packed;
    grow(packed, total);
    packed.resize(total);
    std::uint32_t to = 0;
    for (Range& range : ranges_) {
      for (std::uint32_t i = 0; i < range.used(); ++i) {
        packed[to + i] = pool_[range.begin + i];
        places_[packed[to + i].id] = to + i;
      }
      range.move_to(to);
      to += range.room;
    }
    pool_.swap(packed);
    for (auto& shelf : shelves_) shelf.clear();
    idle_ = 0;
  }

  LargeArray<Half> pool_;
  LargeArray<std::uint32_t> places_;  // of each half in the pool; `gone` if the arc was removed
  LargeArray<Range> ranges_;
  std::vector<std::uint32_t> shelves_[shelved_rooms];  // free places by room
  std::size_t idle_ = 0;
};

}  // namespace argosy::flow
