// What never changes about a machine: its attributes and the node sets it is in.
//
// Both are bitmaps over machines, one bit a machine in words of 64, so that a filter is an AND or an
// OR of a few hundred words. Rows are only ever added. A snapshot therefore shares this with the live
// cell and stays frozen by reading no further than its own machines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace argosy {

using Bitmap = std::vector<std::uint64_t>;

constexpr std::int32_t most_attributes = std::int32_t{1} << 24;
constexpr std::int32_t most_sets = std::int32_t{1} << 24;

inline std::size_t bitmap_words(std::int32_t machines) {
  return (static_cast<std::size_t>(machines) + 63) / 64;
}

inline void set_bit(Bitmap& bitmap, std::int32_t machine) {
  const std::size_t word = static_cast<std::size_t>(machine) / 64;
  if (bitmap.size() <= word) bitmap.resize(word + 1);
  bitmap[word] |= std::uint64_t{1} << (machine & 63);
}

// Clears what lies behind the last machine.
inline void trim(Bitmap& bitmap, std::int32_t machines) {
  bitmap.resize(bitmap_words(machines));
  if (machines % 64 != 0) bitmap.back() &= (std::uint64_t{1} << (machines % 64)) - 1;
}

class Groups {
 public:
  explicit Groups(std::int32_t sets) : members_(static_cast<std::size_t>(sets)) {}

  std::int32_t sets() const { return static_cast<std::int32_t>(members_.size()); }

  // The next machine is in `sets` (each 0 <= set < sets(), distinct) and has `attributes` (>= 0).
  void append(std::span<const std::int32_t> sets, std::span<const std::int32_t> attributes) {
    const auto machine = static_cast<std::int32_t>(starts_.size() - 1);
    for (const std::int32_t set : sets) set_bit(members_[static_cast<std::size_t>(set)], machine);
    for (const std::int32_t attribute : attributes) {
      const auto at = static_cast<std::size_t>(attribute);
      if (attributes_.size() <= at) attributes_.resize(at + 1);
      set_bit(attributes_[at], machine);
    }
    sets_.insert(sets_.end(), sets.begin(), sets.end());
    starts_.push_back(sets_.size());
  }

  std::span<const std::int32_t> sets_of(std::int32_t machine) const {
    const std::size_t from = starts_[static_cast<std::size_t>(machine)];
    return {sets_.data() + from, starts_[static_cast<std::size_t>(machine) + 1] - from};
  }

  const Bitmap& members(std::int32_t set) const { return members_[static_cast<std::size_t>(set)]; }

  // Leaves in `bitmap` those machines that have the attribute.
  void keep_attribute(std::int32_t attribute, Bitmap& bitmap) const {
    static const Bitmap nobody;
    const auto at = static_cast<std::size_t>(attribute);
    const Bitmap& having = at < attributes_.size() ? attributes_[at] : nobody;
    for (std::size_t word = 0; word < bitmap.size(); ++word) {
      bitmap[word] &= word < having.size() ? having[word] : 0;
    }
  }

 private:
  std::vector<Bitmap> attributes_;
  std::vector<Bitmap> members_;
  std::vector<std::size_t> starts_{0};
  std::vector<std::int32_t> sets_;
};

}  // namespace argosy
