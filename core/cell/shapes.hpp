// Shapes: what a task asks for, interned.
//
// A shape is a request vector, a set of container tags and a precedence. Tasks of one job are mostly
// alike, so a claim carries a 32-bit shape number instead. Numbers are given in the order of first
// use and never taken back; interning the same shape again is one string hash.
//
// Growth. A request may ask for resources that no machine has. Those are kept aside as (resource,
// amount), by numbers that the caller gives to names; when a resource becomes a dimension, the amounts
// move into the request: O(shapes), rare. Rows are as wide as a cell can become (64 bytes, a cache
// line), so nothing else moves. `reach` is how many dimensions a view must have for the shape to fit
// anywhere: one look instead of a search for what is missing. Views of different age share the table,
// and each reads no further than its own dimensions; what a view misses first is by resource number, so
// that its answer stays the same while the cell grows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cell/columns.hpp"

namespace argosy {

// An amount of a resource that is not a dimension.
struct Beyond {
  std::int32_t resource = -1;
  std::int64_t amount = 0;

  bool operator==(const Beyond&) const = default;
  bool operator<(const Beyond& other) const { return resource < other.resource; }
};

class Shapes {
 public:
  explicit Shapes(int dimensions) : dimensions_(static_cast<std::size_t>(dimensions)) {}

  std::int32_t size() const { return static_cast<std::int32_t>(parts_.size()); }
  bool knows(std::int64_t shape) const { return shape >= 0 && shape < size(); }

  // `most_dimensions` amounts; 0 for those that are not a dimension yet.
  const std::int64_t* request(std::int32_t shape) const {
    return requests_.data() + static_cast<std::size_t>(shape) * most_dimensions;
  }
  // Ascending and distinct.
  const std::vector<std::int32_t>& tags(std::int32_t shape) const { return parts(shape).tags; }
  std::int16_t precedence(std::int32_t shape) const { return parts(shape).precedence; }
  // The lowest of all; INT16_MAX if there is no shape.
  int lowest_precedence() const { return lowest_; }
  int reach(std::int32_t shape) const { return parts(shape).reach; }
  // The requested resource with the smallest number that is not among the first `dimensions`. There must be
  // one.
  Beyond beyond(std::int32_t shape, int dimensions) const {
    const auto& apart = parts(shape).beyond;
    Beyond first = apart.empty() ? Beyond{INT32_MAX, 0} : apart.front();
    for (auto d = static_cast<std::size_t>(dimensions); d < dimensions_; ++d) {
      const Beyond late{resources_[d], request(shape)[d]};
      if (late.amount > 0 && late < first) first = late;
    }
    return first;
  }

  std::int32_t intern(const std::vector<std::int64_t>& request, std::vector<Beyond> beyond,
                      std::vector<std::int32_t> tags, std::int64_t precedence) {
    if (request.size() != dimensions_) throw std::invalid_argument("a request needs every dimension");
    for (const std::int64_t amount : request) require_amount(amount, 0);
    for (const auto& [resource, amount] : beyond) {
      if (resource < 0) throw std::invalid_argument("resource numbers must not be negative");
      require_amount(amount, 1);
    }
    for (const std::int32_t tag : tags) {
      if (tag < 0) throw std::invalid_argument("tag numbers must not be negative");
    }
    if (precedence < INT16_MIN || precedence > INT16_MAX) {
      throw std::invalid_argument("precedence must be from -32768 to 32767");
    }
    std::sort(tags.begin(), tags.end());
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    std::sort(beyond.begin(), beyond.end());

    Parts parts{std::move(tags), std::move(beyond), static_cast<std::int16_t>(precedence), 0};
    std::array<std::int64_t, most_dimensions> row{};
    std::copy(request.begin(), request.end(), row.begin());
    const auto [at, is_new] = numbers_.try_emplace(key(row.data(), parts), size());
    if (is_new) {
      parts.reach = reach_of(row.data(), parts);
      lowest_ = std::min(lowest_, parts.precedence);
      requests_.insert(requests_.end(), row.begin(), row.end());
      parts_.push_back(std::move(parts));
    }
    return at->second;
  }

  // This resource becomes the next dimension.
  void grow(std::int32_t resource) {
    const std::size_t d = dimensions_++;
    resources_[d] = resource;
    for (std::size_t shape = 0; shape < parts_.size(); ++shape) {
      Parts& parts = parts_[shape];
      const auto named = std::find_if(parts.beyond.begin(), parts.beyond.end(),
                                      [&](const Beyond& of) { return of.resource == resource; });
      if (named == parts.beyond.end()) continue;
      std::int64_t* row = requests_.data() + shape * most_dimensions;
      numbers_.erase(key(row, parts));
      row[d] = named->amount;
      parts.beyond.erase(named);
      parts.reach = reach_of(row, parts);
      numbers_.emplace(key(row, parts), static_cast<std::int32_t>(shape));
    }
  }

 private:
  struct Parts {
    std::vector<std::int32_t> tags;
    std::vector<Beyond> beyond;
    std::int16_t precedence;
    std::uint8_t reach;
  };

  const Parts& parts(std::int32_t shape) const { return parts_[static_cast<std::size_t>(shape)]; }

  static void require_amount(std::int64_t amount, std::int64_t least) {
    if (amount < least || amount > largest_amount) {
      throw std::invalid_argument("a request's amounts must be from 0 to 2^53");
    }
  }

  static std::uint8_t reach_of(const std::int64_t* row, const Parts& parts) {
    if (!parts.beyond.empty()) return UINT8_MAX;
    int reach = most_dimensions;
    while (reach > 0 && row[reach - 1] == 0) --reach;
    return static_cast<std::uint8_t>(reach);
  }

  static std::string key(const std::int64_t* row, const Parts& parts) {
    std::string key;
    const auto append = [&key](const void* data, std::size_t bytes) {
      key.append(static_cast<const char*>(data), bytes);
    };
    append(&parts.precedence, sizeof parts.precedence);
    append(row, most_dimensions * sizeof *row);
    const auto apart = static_cast<std::uint32_t>(parts.beyond.size());
    append(&apart, sizeof apart);
    for (const auto& [resource, amount] : parts.beyond) {
      append(&resource, sizeof resource);
      append(&amount, sizeof amount);
    }
    if (!parts.tags.empty()) append(parts.tags.data(), parts.tags.size() * sizeof(std::int32_t));
    return key;
  }

  std::size_t dimensions_;
  // Of the dimensions added later.
  std::array<std::int32_t, most_dimensions> resources_{};
  std::vector<std::int64_t> requests_;
  std::vector<Parts> parts_;
  std::int16_t lowest_ = INT16_MAX;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

}  // namespace argosy
