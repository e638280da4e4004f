// Informed random sampling: draws machines of one cluster until enough of them have room.
//
// Given M members, a request r over D dimensions and a size k, machines are drawn without repetition, in
// rounds of k, until at least k of those drawn have room, all were drawn, or a limit is reached. A round
// is always finished, so up to 2k - 1 machines may be found. This is the second step of 2-Smart Sampling
// in the Vela paper (Algorithm 1) for its default plug-ins: strategy Random, filter and score
// ResourcesFit.
//
// Each draw is one step of a Fisher-Yates shuffle. The order that a draw leaves behind is the start of
// the next one: any permutation is as good, so nothing is reset, and a draw costs O(machines drawn),
// however large the cluster.
//
// Room is what is free less what is reserved there, at least 0. The score of a machine is
//
//     min(100, floor(sum over asked d of floor(100 * (free_d - r_d) / max(1, capacity_d)) / asked)).
//
// 100 * free < 2^60, so it is exact. A machine without room counts for the first dimension it lacks;
// one that is down or draining counts apart. Reservations are looked up by binary search.
//
// Determinism: the answer is a function of the view, the arguments, the stream and earlier draws.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cell/view.hpp"
#include "random.hpp"

namespace argosy {

struct DrawQuery {
  Amounts request{};
  std::int64_t size = 0;
  // 0: no limit.
  std::int64_t most = 0;
  std::int64_t rounds = 0;
  // Whether a find beyond `size` is dropped.
  bool is_cut = false;
  // What is reserved: machines in ascending order, with one row of amounts each.
  std::span<const std::int32_t> reserved;
  const std::int64_t* reserved_amounts = nullptr;
};

struct Drawn {
  std::vector<std::int32_t> machines;
  std::vector<std::uint32_t> versions;
  std::vector<std::int64_t> free;
  std::vector<std::int64_t> scores;
  std::int64_t drawn = 0;
  // By the first dimension lacking; the last element counts machines that take no claims.
  std::array<std::int64_t, most_dimensions + 1> ruled_out{};
};

class MachineDraw {
 public:
  // Every member is a machine of the views that are drawn from.
  explicit MachineDraw(std::vector<std::int32_t> members) : order_(std::move(members)) {
    for (const std::int32_t machine : order_) most_ = std::max(most_, machine);
  }

  std::size_t members() const { return order_.size(); }
  // The largest number of a member; -1 if there is none.
  std::int32_t most() const { return most_; }

  Drawn run(const CellView& view, const DrawQuery& query, Random& random) {
    Drawn found;
    const auto total = static_cast<std::int64_t>(order_.size());
    const std::int64_t end = query.most > 0 ? std::min(query.most, total) : total;
    std::int64_t round = 0;
    while (found.drawn < end && static_cast<std::int64_t>(found.machines.size()) < query.size) {
      const std::int64_t stop = std::min(end, found.drawn + query.size);
      const std::int64_t begin = found.drawn;
      // A large cell is in no cache: all machines of a round are fetched while its others are drawn.
      while (found.drawn < stop) view.columns().prefetch(next(found.drawn++, random));
      for (std::int64_t at = begin; at < stop; ++at) {
        look(view, query, order_[static_cast<std::size_t>(at)], found);
      }
      if (++round == query.rounds) break;
    }
    if (query.is_cut && static_cast<std::int64_t>(found.machines.size()) > query.size) {
      const auto size = static_cast<std::size_t>(query.size);
      found.machines.resize(size);
      found.versions.resize(size);
      found.scores.resize(size);
      found.free.resize(size * static_cast<std::size_t>(view.dimensions()));
    }
    return found;
  }

 private:
  std::int32_t next(std::int64_t at, Random& random) {
    const auto left = order_.size() - static_cast<std::size_t>(at);
    const auto from = static_cast<std::size_t>(at) + static_cast<std::size_t>(random.below(left));
    std::swap(order_[static_cast<std::size_t>(at)], order_[from]);
    return order_[static_cast<std::size_t>(at)];
  }

  static void look(const CellView& view, const DrawQuery& query, std::int32_t machine, Drawn& found) {
    const Columns& columns = view.columns();
    const int dimensions = view.dimensions();
    if (columns.flags(machine) != 0) {
      ++found.ruled_out[most_dimensions];
      return;
    }
    Amounts room{};
    std::copy_n(columns.free(machine), dimensions, room.begin());
    const auto at = std::lower_bound(query.reserved.begin(), query.reserved.end(), machine);
    if (at != query.reserved.end() && *at == machine) {
      const std::int64_t* amounts = query.reserved_amounts + (at - query.reserved.begin()) * dimensions;
      for (int d = 0; d < dimensions; ++d) {
        auto& amount = room[static_cast<std::size_t>(d)];
        amount = std::max<std::int64_t>(0, amount - amounts[d]);
      }
    }
    const std::int64_t* capacity = columns.capacity(machine);
    std::int64_t shares = 0;
    std::int64_t asked = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
      if (room[d] < query.request[d]) {
        ++found.ruled_out[d];
        return;
      }
      if (query.request[d] == 0) continue;
      shares += 100 * (room[d] - query.request[d]) / std::max<std::int64_t>(1, capacity[d]);
      ++asked;
    }
    found.machines.push_back(machine);
    found.versions.push_back(columns.version(machine));
    found.free.insert(found.free.end(), room.begin(), room.begin() + dimensions);
    found.scores.push_back(asked > 0 ? std::min<std::int64_t>(100, shares / asked) : 100);
  }

  std::vector<std::int32_t> order_;
  std::int32_t most_ = -1;
};

}  // namespace argosy
