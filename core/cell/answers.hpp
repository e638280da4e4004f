// The answer to a transaction, as Python gets it: most have nothing to say but that all is accepted, so each part
// is there only where it says something.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "cell/cell.hpp"

namespace argosy {

// Accepted, whys, details and amounts by row, and the resources that details beyond the dimensions are
// about, in their order; or nothing where every row was accepted.
using Verdicts = std::tuple<nb::ndarray<nb::numpy, bool>, OutArray<std::uint8_t>,
                            OutArray<std::int8_t>, OutArray<std::int64_t>, std::vector<std::int32_t>>;
using Evictions = std::tuple<OutArray<std::int64_t>, OutArray<std::int32_t>>;
using Refused = std::vector<std::tuple<std::int64_t, int>>;
// The machines are there only where alternatives were given; the last are those that were not confirmed,
// not forgotten and not released, where there are such.
using OutcomeTuple =
    std::tuple<std::optional<Verdicts>, std::optional<Evictions>,
               std::optional<OutArray<std::int32_t>>, std::optional<std::tuple<Refused, Refused, Refused>>>;

inline Verdicts verdicts(const std::vector<Refusal>& refusals, int dimensions) {
  const std::size_t count = refusals.size();
  auto* accepted = new bool[count];
  nb::capsule owner(accepted, [](void* p) noexcept { delete[] static_cast<bool*>(p); });
  std::vector<std::uint8_t> whys(count);
  std::vector<std::int8_t> details(count);
  std::vector<std::int64_t> amounts(count);
  std::vector<std::int32_t> beyond;
  // A detail has eight bits: of more than a hundred unknown resources in one transaction, the last stands
  // for the rest.
  const auto name = [&](std::int32_t resource) {
    if (resource < most_dimensions) return resource;
    resource -= most_dimensions;
    auto at = std::find(beyond.begin(), beyond.end(), resource);
    if (at == beyond.end() && beyond.size() < 100) at = beyond.insert(at, resource);
    const auto last = static_cast<std::ptrdiff_t>(beyond.size()) - 1;
    return dimensions + static_cast<std::int32_t>(std::min(at - beyond.begin(), last));
  };
  for (std::size_t row = 0; row < count; ++row) {
    accepted[row] = refusals[row].why == Why::none;
    whys[row] = static_cast<std::uint8_t>(refusals[row].why);
    details[row] = static_cast<std::int8_t>(name(refusals[row].dimension));
    amounts[row] = refusals[row].amount;
  }
  return {nb::ndarray<nb::numpy, bool>(accepted, {count}, owner), to_numpy(std::move(whys)),
          to_numpy(std::move(details)), to_numpy(std::move(amounts)), std::move(beyond)};
}

inline Refused refused(const std::vector<Unsettled>& tasks) {
  Refused out;
  for (const auto& [task, why] : tasks) out.emplace_back(task, static_cast<int>(why));
  return out;
}

inline OutcomeTuple answer(const Cell& cell, Judged judged, bool has_alternatives) {
  OutcomeTuple outcome;
  auto& [rows, evictions, machines, unsettled] = outcome;
  if (!judged.is_whole) rows = verdicts(judged.refusals, cell.dimensions());
  if (!cell.evicted().empty()) {
    evictions = {to_numpy(std::vector<std::int64_t>(cell.evicted())),
                 to_numpy(std::vector<std::int32_t>(cell.evicted_from()))};
  }
  if (has_alternatives) machines = to_numpy(std::move(judged.machines));
  if (!judged.unconfirmed.empty() || !judged.unforgotten.empty() || !judged.unreleased.empty()) {
    unsettled = {refused(judged.unconfirmed), refused(judged.unforgotten),
                 refused(judged.unreleased)};
  }
  return outcome;
}

}  // namespace argosy
