// Columns of 64-bit numbers that grow together; freed rows are reused.
//
// Python reads columns without copying. When a column grows, it moves to new memory; an array read before
// keeps the old memory alive, so it may be out of date but never dangles.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace argosy::flow {

using Row = std::int64_t;
using Number = std::int64_t;

// `Name` is an enumeration of the columns, the last of which is `count`.
template <typename Name>
class Table {
 public:
  static constexpr std::size_t width = static_cast<std::size_t>(Name::count);
  using Defaults = std::array<Number, width>;

  explicit Table(const Defaults& defaults) : defaults_(defaults) {}

  Number* operator[](Name name) { return columns_[static_cast<std::size_t>(name)].get(); }
  const Number* operator[](Name name) const { return columns_[static_cast<std::size_t>(name)].get(); }
  std::shared_ptr<Number[]> share(std::size_t column) const { return columns_[column]; }
  // Rows ever used, including freed ones.
  Row used() const { return used_; }
  bool has(Row row) const { return row >= 0 && row < used_; }

  // The first of this many adjacent rows, with default values.
  Row take_together(Row count) {
    const Row first = used_;
    used_ += count;
    if (used_ > room_) grow(first);
    for (std::size_t c = 0; c < width; ++c) {
      std::fill(columns_[c].get() + first, columns_[c].get() + used_, defaults_[c]);
    }
    return first;
  }

  // The most recently freed rows, in the order in which they were freed, and then new ones.
  std::vector<Row> take(std::size_t count) {
    const std::size_t again = std::min(count, free_.size());
    std::vector<Row> rows(free_.end() - static_cast<std::ptrdiff_t>(again), free_.end());
    free_.resize(free_.size() - again);
    for (const Row row : rows) {
      for (std::size_t c = 0; c < width; ++c) columns_[c][row] = defaults_[c];
    }
    const Row first = take_together(static_cast<Row>(count - again));
    for (Row row = first; row < used_; ++row) rows.push_back(row);
    return rows;
  }
  void give(Row row) { free_.push_back(row); }

  // Moves the row's values to `to`; the row gets its defaults again.
  void move(Row from, Row to) {
    for (std::size_t c = 0; c < width; ++c) {
      columns_[c][to] = columns_[c][from];
      columns_[c][from] = defaults_[c];
    }
  }

  // Keeps the rows for which `is_kept`, compacted; calls moved(from, to). Only for tables that never `give`.
  template <typename IsKept, typename Moved>
  void pack(IsKept is_kept, Moved moved) {
    Row to = 0;
    for (Row row = 0; row < used_; ++row) {
      if (!is_kept(row)) continue;
      for (std::size_t c = 0; c < width; ++c) columns_[c][to] = columns_[c][row];
      moved(row, to++);
    }
    used_ = to;
  }

 private:
  void grow(Row filled) {
    room_ = std::max<Row>({used_, 2 * room_, 64});
    for (auto& column : columns_) {
      std::shared_ptr<Number[]> grown(new Number[static_cast<std::size_t>(room_)]);
      if (column) std::copy(column.get(), column.get() + filled, grown.get());
      column = std::move(grown);
    }
  }

  Defaults defaults_;
  std::array<std::shared_ptr<Number[]>, width> columns_;
  std::vector<Row> free_;
  Row used_ = 0, room_ = 0;
};

}  // namespace argosy::flow
