// Shapes: what a task asks for, interned.
//
// A shape is a request vector, a set of container tags and a precedence. Tasks of one job are mostly
// alike, so a claim carries a 32-bit shape number instead. Numbers are given in the order of first
// use and never taken back; interning the same shape again is one string hash.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "cell/columns.hpp"

namespace argosy {

class Shapes {
 public:
  explicit Shapes(int dimensions) : dimensions_(static_cast<std::size_t>(dimensions)) {}

  std::int32_t size() const { return static_cast<std::int32_t>(precedences_.size()); }
  bool knows(std::int64_t shape) const { return shape >= 0 && shape < size(); }

  const std::int64_t* request(std::int32_t shape) const {
    return requests_.data() + static_cast<std::size_t>(shape) * dimensions_;
  }
  // Ascending and distinct.
  const std::vector<std::int32_t>& tags(std::int32_t shape) const {
    return tags_[static_cast<std::size_t>(shape)];
  }
  std::int16_t precedence(std::int32_t shape) const {
    return precedences_[static_cast<std::size_t>(shape)];
  }

  std::int32_t intern(const std::vector<std::int64_t>& request, std::vector<std::int32_t> tags,
                      std::int64_t precedence) {
    if (request.size() != dimensions_) throw std::invalid_argument("a request needs every dimension");
    for (const std::int64_t amount : request) {
      if (amount < 0 || amount > largest_amount) {
        throw std::invalid_argument("a request's amounts must be from 0 to 2^53");
      }
    }
    for (const std::int32_t tag : tags) {
      if (tag < 0) throw std::invalid_argument("tag numbers must not be negative");
    }
    if (precedence < INT16_MIN || precedence > INT16_MAX) {
      throw std::invalid_argument("precedence must be from -32768 to 32767");
    }
    std::sort(tags.begin(), tags.end());
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());

    std::string key;
    const auto append = [&key](const void* data, std::size_t bytes) {
      key.append(static_cast<const char*>(data), bytes);
    };
    append(&precedence, sizeof precedence);
    append(request.data(), request.size() * sizeof(std::int64_t));
    if (!tags.empty()) append(tags.data(), tags.size() * sizeof(std::int32_t));
    const auto [at, is_new] = numbers_.try_emplace(key, size());
    if (is_new) {
      requests_.insert(requests_.end(), request.begin(), request.end());
      tags_.push_back(std::move(tags));
      precedences_.push_back(static_cast<std::int16_t>(precedence));
    }
    return at->second;
  }

 private:
  std::size_t dimensions_;
  std::vector<std::int64_t> requests_;
  std::vector<std::vector<std::int32_t>> tags_;
  std::vector<std::int16_t> precedences_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

}  // namespace argosy
