// NumPy arrays without a detour through Python: read where they lie, and made by NumPy's own C function.
//
// Every array that crosses the boundary would otherwise cost several calls of Python methods, about half a
// microsecond each way. What is used here is part of NumPy's ABI, which it compiles into every extension: the
// first fields of an array, and two entries of its table of functions. It is looked up and tried out once; where
// anything is not as expected (another ABI, another interpreter), `ok` is false and callers take the detour.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

namespace argosy {

namespace nb = nanobind;

// The first fields of every NumPy array.
struct ArrayHead {
  PyObject_HEAD
  char* data;
  int axes;
  Py_ssize_t* lengths;
  // In bytes.
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* dtype;
  int flags;
};

class Numpy {
 public:
  // Made at first use, guarded by the interpreter's lock and by nothing else, because importing lets go of it. Never
  // freed: the module may outlive the interpreter's objects.
  static const Numpy& get() {
    static const Numpy* numpy = nullptr;
    if (numpy == nullptr) [[unlikely]] numpy = new Numpy();
    return *numpy;
  }

  bool ok() const { return ok_; }
  bool is_array(PyObject* object) const { return Py_TYPE(object) == type_; }

  // A new array of one axis, with arbitrary values.
  PyObject* empty(PyObject* dtype, Py_ssize_t length) const {
    Py_INCREF(dtype);  // it is stolen
    PyObject* made = make_(type_, dtype, 1, &length, nullptr, nullptr, 0, nullptr);
    if (made == nullptr) throw nb::python_error();
    return made;
  }

  // NumPy's only object for the type of such elements in this machine's byte order.
  template <typename T>
  static PyObject* dtype() {
    static PyObject* found = nullptr;
    if (found == nullptr) [[unlikely]] {
      found = nb::module_::import_("numpy").attr("dtype")(name<T>()).release().ptr();
    }
    return found;
  }

 private:
  using Make = PyObject* (*)(PyTypeObject*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*, void*, int,
                             PyObject*);

  Numpy() {
    try {
      const nb::object made = nb::module_::import_("numpy").attr("empty")(3, nb::handle(dtype<std::int64_t>()));
      type_ = Py_TYPE(made.ptr());
      nb::object module;
      try {
        module = nb::module_::import_("numpy._core._multiarray_umath");
      } catch (nb::python_error&) {
        module = nb::module_::import_("numpy.core._multiarray_umath");
      }
      const nb::object capsule = module.attr("_ARRAY_API");
      auto* const table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
      if (table == nullptr) throw nb::python_error();
      const auto version = reinterpret_cast<unsigned int (*)()>(table[0])() >> 24;
      if ((version != 1 && version != 2) || table[2] != type_) return;
      make_ = reinterpret_cast<Make>(table[94]);
      ok_ = is_as_expected(made) &&
            is_as_expected(nb::steal<nb::object>(empty(dtype<std::int64_t>(), 3)));
    } catch (const std::exception&) {
      // A Python error, or a value that is not the number it should be: callers may not throw.
      ok_ = false;
    }
  }

  // Whether the fields of an array of three elements say what its attributes say.
  static bool is_as_expected(const nb::object& array) {
    const auto* head = reinterpret_cast<const ArrayHead*>(array.ptr());
    const auto data = nb::cast<std::uintptr_t>(array.attr("ctypes").attr("data"));
    return reinterpret_cast<std::uintptr_t>(head->data) == data && head->axes == 1 && head->lengths[0] == 3 &&
           head->strides[0] == 8 && head->dtype == array.attr("dtype").ptr() &&
           head->dtype == dtype<std::int64_t>();
  }

  template <typename T>
  static const char* name() {
    static_assert(std::is_arithmetic_v<T>);
    constexpr int power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    if constexpr (std::is_same_v<T, bool>) {
      return "bool";
    } else if constexpr (std::is_floating_point_v<T>) {
      static_assert(sizeof(T) == 4 || sizeof(T) == 8);
      return sizeof(T) == 4 ? "f4" : "f8";
    } else {
      constexpr const char* names[2][4] = {{"u1", "u2", "u4", "u8"}, {"i1", "i2", "i4", "i8"}};
      return names[std::is_signed_v<T>][power];
    }
  }

  PyTypeObject* type_ = nullptr;
  Make make_ = nullptr;
  bool ok_ = false;
};

// An array of one axis from Python, with its elements where they lie. `Slow` is how nanobind takes one, which is
// also asked whenever the array is not plainly what is wanted.
template <typename T, typename Slow>
class GivenArray {
 public:
  GivenArray() = default;
  explicit GivenArray(Slow slow)
      : slow_(std::move(slow)), data_(slow_.data()), size_(slow_.shape(0)), stride_(slow_.stride(0)) {}

  // The elements of the object, if it is plainly such an array.
  bool take(PyObject* object) {
    const Numpy& numpy = Numpy::get();
    if (!numpy.ok() || !numpy.is_array(object)) return false;
    const auto* head = reinterpret_cast<const ArrayHead*>(object);
    if (head->axes != 1 || head->dtype != Numpy::dtype<T>() || !(head->flags & aligned)) return false;
    const Py_ssize_t length = head->lengths[0], bytes = head->strides[0];
    if (length > 1 && bytes != static_cast<Py_ssize_t>(sizeof(T))) return false;
    owner_ = nb::borrow<nb::object>(object);
    data_ = reinterpret_cast<const T*>(head->data);
    size_ = static_cast<std::size_t>(length);
    return true;
  }

  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t shape(int) const { return size_; }
  // In elements.
  std::int64_t stride(int) const { return stride_; }

 private:
  static constexpr int aligned = 0x0100;

  nb::object owner_;
  Slow slow_;
  const T* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t stride_ = 1;
};

}  // namespace argosy

namespace nanobind::detail {

template <typename T, typename Slow>
struct type_caster<argosy::GivenArray<T, Slow>> {
  using Given = argosy::GivenArray<T, Slow>;
  NB_TYPE_CASTER(Given, make_caster<Slow>::Name)

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    if (value.take(source.ptr())) return true;
    make_caster<Slow> caster;
    if (!caster.from_python(source, flags, cleanup)) return false;
    value = Given(std::move(caster.value));
    return true;
  }
};

}  // namespace nanobind::detail
