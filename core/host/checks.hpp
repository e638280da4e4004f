// Shared by the bindings of the runtime: arrays from Python, and checks of what comes from there.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "arrays.hpp"
#include "cell/reading.hpp"
#include "host/runtime.hpp"

namespace argosy {

namespace nb = nanobind;

inline void check_lengths(std::size_t expected, std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths) {
    if (length != expected) throw std::invalid_argument("the arrays differ in length");
  }
}

template <typename T>
std::span<const T> span_of(const InArray<T>& array) {
  return {array.data(), array.size()};
}

inline std::int64_t known_job(const TaskRuntime& runtime, std::int64_t job) {
  require(runtime.board().has_job(job), "unknown job number");
  return job;
}

inline void require_machines(const TaskRuntime& runtime, std::span<const std::int32_t> machines) {
  for (const std::int32_t machine : machines) {
    require(runtime.cell().knows(machine), "unknown machine number");
  }
}

void bind_queues(nb::class_<TaskRuntime>& type);
void bind_probes(nb::class_<TaskRuntime>& type);

}  // namespace argosy
