// Which claims of a machine preemption takes.
//
// The order of going is least precedence first, among equals the youngest. Claims are taken in that order
// until the request fits; then those that turn out not to be needed are given back, the most precious
// first. The result is minimal: no single victim could be spared. It is not the smallest possible set,
// which is a knapsack problem.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cell/shapes.hpp"
#include "cell/view.hpp"

namespace argosy {

// `going` has the shapes of the claims that may be taken, in the order of going; `is_taken` gets which are.
// `room` is what is free before, and after. Returns the first dimension that still lacks room, or
// `dimensions`; in the first case all claims are taken. No room is made in the dimension `devices`.
inline int take_victims(const Shapes& shapes, int dimensions, int devices, const std::int64_t* request,
                        std::span<const std::int32_t> going, Amounts& room,
                        std::vector<std::uint8_t>& is_taken) {
  const auto lacking = [&] {
    int d = 0;
    while (d < dimensions && room[static_cast<std::size_t>(d)] >= request[d]) ++d;
    return d;
  };
  const auto give = [&](std::int32_t shape, std::int64_t sign) {
    const std::int64_t* amounts = shapes.request(shape);
    for (int d = 0; d < dimensions; ++d) {
      if (d != devices) room[static_cast<std::size_t>(d)] += sign * amounts[d];
    }
  };
  is_taken.assign(going.size(), 0);
  std::size_t chosen = 0;
  for (; chosen < going.size() && lacking() < dimensions; ++chosen) {
    give(going[chosen], 1);
    is_taken[chosen] = 1;
  }
  if (const int d = lacking(); d < dimensions) return d;
  while (chosen-- > 0) {
    give(going[chosen], -1);
    if (lacking() == dimensions) {
      is_taken[chosen] = 0;
    } else {
      give(going[chosen], 1);
    }
  }
  return dimensions;
}

// How many claims with a precedence below `bound` a task of the shape would preempt on one machine; -1 if
// even all of them leave no room. `held` has the shapes of the machine's claims, oldest first.
inline std::int64_t victims_needed(const CellView& view, std::int32_t machine, std::int32_t shape, int bound,
                                   std::vector<std::int32_t>& held, std::vector<std::uint8_t>& is_taken) {
  if (view.columns().flags(machine) != 0 || !view.is_within_reach(shape)) return -1;
  if (view.fits(machine, shape)) return 0;
  const Shapes& shapes = view.shapes();
  std::erase_if(held, [&](std::int32_t each) { return shapes.precedence(each) >= bound; });
  std::reverse(held.begin(), held.end());
  std::stable_sort(held.begin(), held.end(), [&](std::int32_t a, std::int32_t b) {
    return shapes.precedence(a) < shapes.precedence(b);
  });
  Amounts room{};
  std::copy_n(view.columns().free(machine), view.dimensions(), room.begin());
  const int lacking =
      take_victims(shapes, view.dimensions(), view.columns().device_dimension(), view.request(shape), held,
                   room, is_taken);
  return lacking < view.dimensions() ? -1 : std::count(is_taken.begin(), is_taken.end(), 1);
}

}  // namespace argosy
