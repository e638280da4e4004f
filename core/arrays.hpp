// NumPy arrays in and out of the core, checked once at the boundary.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "numpy_arrays.hpp"

namespace argosy {

namespace nb = nanobind;

template <typename T>
using InArray = GivenArray<T, nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;
// A NumPy array of such elements.
template <typename T>
using OutArray = nb::object;

// Passes a vector to NumPy without copying it; Python owns it from then on.
template <typename T>
OutArray<T> to_numpy(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.begin(), owner));
}

// A new NumPy array with `value_at(i)` at each index i.
template <typename T, typename ValueAt>
OutArray<T> filled(std::size_t size, ValueAt value_at) {
  const Numpy& numpy = Numpy::get();
  if (!numpy.ok()) {
    std::vector<T> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = value_at(i);
    return to_numpy(std::move(values), {size});
  }
  nb::object array = nb::steal<nb::object>(numpy.empty(Numpy::dtype<T>(), static_cast<Py_ssize_t>(size)));
  T* const values = reinterpret_cast<T*>(reinterpret_cast<ArrayHead*>(array.ptr())->data);
  for (std::size_t i = 0; i < size; ++i) values[i] = value_at(i);
  return array;
}

template <typename T>
OutArray<T> to_numpy(std::vector<T> values) {
  // Handing over a vector costs more than copying a short one.
  const std::size_t size = values.size();
  if (size <= 1'024) return filled<T>(size, [&](std::size_t i) { return values[i]; });
  return to_numpy(std::move(values), {size});
}

}  // namespace argosy
