// The terms of a convex arc: a cost per unit that rises with the flow, by steps or in segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "flow/halves.hpp"

namespace argosy::flow {

// A piece of a convex arc: `units` at `cost` each. The pieces' costs rise.
struct Segment {
  std::int32_t units;
  Cost cost;
};

struct Convex {
  Cost base;
  Cost step;
  std::int32_t capacity;
  std::int32_t flow;
  std::vector<Segment> segments;

  Cost cost_of(std::int32_t unit) const {
    if (segments.empty()) return base + step * unit;
    return segments[at(unit).first].cost;
  }
  // The segment of a unit, and the units before that segment.
  std::pair<std::size_t, std::int32_t> at(std::int32_t unit) const {
    std::size_t i = 0;
    std::int32_t before = 0;
    while (i + 1 < segments.size() && unit >= before + segments[i].units) {
      before += segments[i++].units;
    }
    return {i, before};
  }
};

inline Convex segmented(std::vector<Segment> segments) {
  Convex terms{segments.empty() ? 0 : segments.front().cost, 0, 0, 0, {}};
  for (const Segment& segment : segments) {
    terms.capacity += segment.units;
    // Neighbouring segments with equal cost are merged: solvers rely on rising costs.
    if (!terms.segments.empty() && terms.segments.back().cost == segment.cost) {
      terms.segments.back().units += segment.units;
    } else {
      terms.segments.push_back(segment);
    }
  }
  return terms;
}

}  // namespace argosy::flow
