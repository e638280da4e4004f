// NumPy arrays in and out of the core, checked once at the boundary.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace argosy {

namespace nb = nanobind;

template <typename T>
using InArray = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
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

// A NumPy array of its own with a copy of the values.
template <typename T>
OutArray<T> copy_to_numpy(std::span<const T> values) {
  // Never freed: the module may outlive the interpreter's objects.
  static const nb::object& empty = *new nb::object(nb::module_::import_("numpy").attr("empty"));
  static const nb::object& dtype = *new nb::object(
      nb::cast(nb::ndarray<nb::numpy, T>(nullptr, {0}, nb::handle())).attr("dtype"));
  nb::object array = empty(values.size(), dtype);
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
  if (!values.empty()) std::memcpy(view.buf, values.data(), values.size_bytes());
  PyBuffer_Release(&view);
  return array;
}

template <typename T>
OutArray<T> to_numpy(std::vector<T> values) {
  // Handing over a vector costs more than copying a short one.
  const std::size_t size = values.size();
  if (size <= 1'024) return copy_to_numpy<T>(values);
  return to_numpy(std::move(values), {size});
}

}  // namespace argosy
