// NumPy arrays in and out of the core, checked once at the boundary.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace argosy {

namespace nb = nanobind;

template <typename T>
using InArray = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutArray = nb::ndarray<nb::numpy, T>;

// Passes a vector to NumPy without copying it; Python owns it from then on.
template <typename T>
OutArray<T> to_numpy(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return OutArray<T>(kept->data(), shape.size(), shape.begin(), owner);
}

template <typename T>
OutArray<T> to_numpy(std::vector<T> values) {
  const std::size_t size = values.size();
  return to_numpy(std::move(values), {size});
}

}  // namespace argosy
