// Query and result of a fit search; search.hpp describes how it works.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cell/columns.hpp"

namespace argosy {

enum class Rule : int { first = 0, best = 1, worst = 2, smallest_key = 3, sample = 4 };

struct Query {
  Rule rule = Rule::first;
  std::int64_t count = 0;
  const std::int64_t* request = nullptr;  // D amounts
  std::int64_t beyond = 0;                // of a resource that is no dimension: no machine has it
  const std::uint64_t* within = nullptr;  // may be null: all machines
  std::size_t within_words = 0;           // machines beyond the bitmap are not in it
  const std::int64_t* keys = nullptr;     // one per machine; smallest_key only
  std::int64_t step = 0;
  const std::int64_t* steps = nullptr;    // instead of step: one per machine
  const std::int64_t* adjust = nullptr;   // M x D amounts to add to what is free
  bool needs_room = true;
  std::int32_t per_machine = 0;
};

struct Found {
  std::vector<std::int32_t> machines;
  std::vector<std::uint32_t> versions;
  // Machines examined, and those with room; a machine may count twice, unless first fit fell short.
  std::int64_t looked_at = 0;
  std::int64_t feasible = 0;
  // Machines without room by the first dimension lacking; then filtered; then down or draining; then, if there
  // is one, by the resource beyond.
  std::array<std::int64_t, most_dimensions + 3> ruled_out{};
  // Where fewer than `count` were placed: the machine with the smallest max over d of
  // lacking_d / request_d, and that d (D: the resource beyond). -1 if there is none.
  std::int32_t miss_machine = -1;
  int miss_dimension = -1;
  std::int64_t miss_lacking = 0;
  // If fewer were placed: whether some machine would be large enough if it were empty.
  bool could_fit = false;
  // The first placement's leftover or key, and its runner-up; ranked rules only.
  bool has_score = false;
  std::int64_t score = 0;
  std::int32_t second = -1;
  std::int64_t second_score = 0;
};

}  // namespace argosy
