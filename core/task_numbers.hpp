// Task numbers: a job's number in the high bits, the index in the job in the low 32. Jobs below 2^31.
#pragma once

#include <cstdint>

namespace argosy {

inline constexpr int index_bits = 32;

inline std::int64_t task_number(std::int64_t job, std::int64_t index) { return job << index_bits | index; }
inline std::int64_t job_of(std::int64_t task) { return task >> index_bits; }
inline std::uint32_t index_of(std::int64_t task) { return static_cast<std::uint32_t>(task); }

}  // namespace argosy
