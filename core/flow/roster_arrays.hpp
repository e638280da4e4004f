// What the bindings of the roster and of its rooms share: arrays of NumPy, and checks of what is in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arrays.hpp"
#include "flow/roster.hpp"

namespace argosy::flow {

using Handles = InArray<std::int32_t>;
using Numbers = InArray<std::int64_t>;
using Matrix = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ArcMatrix = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Allowed = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename Value>
std::span<const Value> span_of(const InArray<Value>& array) {
  return {array.data(), array.size()};
}

inline void require(bool holds, const char* what) {
  if (!holds) throw nb::value_error(what);
}

inline void check_rows(const Roster& roster, const Numbers& rows) {
  for (const Row row : span_of(rows)) require(roster.tasks().has(row), "no such row");
}

inline void check_machines(const Roster& roster, const Numbers& machines) {
  for (const Number machine : span_of(machines)) {
    require(machine >= 0 && static_cast<std::size_t>(machine) < roster.machines(), "no such machine");
  }
}

}  // namespace argosy::flow

void bind_pricing(nanobind::class_<argosy::flow::Roster>& roster);
void bind_rooms(nanobind::module_& module);
