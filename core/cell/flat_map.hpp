// A hash map from non-negative 64-bit keys to small values.
//
// Open addressing with linear probing over a power of two of entries, at most half of them full; an
// erased entry is closed by shifting its successors back, so there are no tombstones and lookups stay
// O(1) expected however long the map lives. Keys are spread by a fixed bijection (`scramble`): the
// same operations give the same layout on every machine, and nothing ever depends on that layout
// except the order of `each`, which callers must not let show.
//
// Memory: 16 bytes an entry for 4-byte values, 32 to 64 a key. References are good until the next
// `insert` or `erase`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "random.hpp"

namespace argosy {

template <class Value>
class FlatMap {
 public:
  std::size_t size() const { return size_; }

  const Value* find(std::int64_t key) const {
    if (size_ == 0) return nullptr;
    for (std::size_t at = home(key);; at = (at + 1) & mask_) {
      if (entries_[at].key == key) return &entries_[at].value;
      if (entries_[at].key == empty) return nullptr;
    }
  }
  Value* find(std::int64_t key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

  // The value of `key`, default-constructed if it was missing.
  Value& insert(std::int64_t key) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    std::size_t at = home(key);
    while (entries_[at].key != empty) {
      if (entries_[at].key == key) return entries_[at].value;
      at = (at + 1) & mask_;
    }
    entries_[at] = {key, Value{}};
    ++size_;
    return entries_[at].value;
  }

  void erase(std::int64_t key) {
    if (size_ == 0) return;
    std::size_t hole = home(key);
    while (entries_[hole].key != key) {
      if (entries_[hole].key == empty) return;
      hole = (hole + 1) & mask_;
    }
    for (std::size_t at = (hole + 1) & mask_; entries_[at].key != empty; at = (at + 1) & mask_) {
      // An entry may move back into the hole unless its home is behind the hole.
      if (((at - home(entries_[at].key)) & mask_) >= ((at - hole) & mask_)) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].key = empty;
    --size_;
  }

  // Adds `change` to a counter; a counter at zero is not stored.
  void count(std::int64_t key, Value change) {
    Value& value = insert(key);
    value += change;
    if (value == 0) erase(key);
  }

  template <class Visit>
  void each(Visit visit) const {
    for (const Entry& entry : entries_) {
      if (entry.key != empty) visit(entry.key, entry.value);
    }
  }

 private:
  static constexpr std::int64_t empty = -1;

  struct Entry {
    std::int64_t key = empty;
    Value value{};
  };

  std::size_t home(std::int64_t key) const {
    return scramble(static_cast<std::uint64_t>(key)) & mask_;
  }

  void grow() {
    std::vector<Entry> old(entries_.empty() ? 8 : 2 * entries_.size());
    old.swap(entries_);
    mask_ = entries_.size() - 1;
    for (const Entry& entry : old) {
      if (entry.key == empty) continue;
      std::size_t at = home(entry.key);
      while (entries_[at].key != empty) at = (at + 1) & mask_;
      entries_[at] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace argosy
