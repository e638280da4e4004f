// Shared by the bindings of views and of the cell: arrays from Python, checked numbers, rows of amounts,
// and searches.
//
// Arrays are read where they lie; one with strides is copied, O(its length).
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "cell/cell.hpp"

namespace argosy {

namespace nb = nanobind;

template <class T>
using Array = GivenArray<T, nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>>;
using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A one-dimensional array as contiguous memory: itself, or a copy if it has strides.
template <class T>
class Contiguous {
 public:
  explicit Contiguous(const Array<T>& array) : data_(array.data()), size_(array.shape(0)) {
    if (size_ < 2 || array.stride(0) == 1) return;
    copy_.reserve(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      copy_.push_back(array.data()[static_cast<std::ptrdiff_t>(i) * array.stride(0)]);
    }
    data_ = copy_.data();
  }
  explicit Contiguous(const std::optional<Array<T>>& array)
      : Contiguous(array ? Contiguous(*array) : Contiguous()) {}
  Contiguous() = default;
  Contiguous(Contiguous&&) = default;
  Contiguous(const Contiguous&) = delete;
  Contiguous& operator=(const Contiguous&) = delete;

  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<const T> span() const { return {data_, size_}; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
  std::vector<T> copy_;
};

inline void require(bool holds, const char* otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

inline std::int32_t checked_machine(const CellView& view, std::int64_t machine) {
  if (!view.knows(machine)) {
    throw std::invalid_argument("there is no machine " + std::to_string(machine));
  }
  return static_cast<std::int32_t>(machine);
}

inline std::vector<std::int64_t> amounts_list(const CellView& view, const Amounts& amounts) {
  return {amounts.begin(), amounts.begin() + view.dimensions()};
}

void bind_find(nb::class_<Cell, CellView>& type);
void bind_view(nb::module_& module);

}  // namespace argosy
