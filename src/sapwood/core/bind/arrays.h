// NumPy arrays in, checked, and vectors out as arrays: used by every file of the binding.
#pragma once
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind/gil.h"
#include "host/memory.h"
#include "math/real.h"

namespace sapwood {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles2 = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Longs = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Longs2 = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

[[noreturn]] inline void refuse(const std::string& what) {
  throw nb::value_error(what.c_str());
}

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

// A Python sequence as a vector, or a vector of vectors. The vector types of nanobind do the same
// where nothing may be thrown, so a failed allocation there would end the process.
template <class T>
std::vector<T> list_of(const nb::sequence& given) {
  std::vector<T> out;
  out.reserve(nb::len(given));
  for (nb::handle one : given) {
    if constexpr (is_vector<T>) {
      out.push_back(list_of<typename T::value_type>(nb::cast<nb::sequence>(one)));
    } else {
      out.push_back(nb::cast<T>(one));
    }
  }
  return out;
}

template <class T>
nb::ndarray<nb::numpy, T> array(std::vector<T>&& values, std::vector<size_t> shape = {}) {
  auto* held = new std::vector<T>(std::move(values));
  if (shape.empty()) {
    shape = {held->size()};
  }
  nb::capsule owner(held, [](void* p) noexcept {
    delete static_cast<std::vector<T>*>(p);
  });
  return nb::ndarray<nb::numpy, T>(held->data(), shape.size(), shape.data(), owner);
}

// The same for large arrays of short lives, whose memory is to go back to the system at once.
template <class T>
nb::ndarray<nb::numpy, T> array_of(std::unique_ptr<Memory> values,
                                   const std::vector<size_t>& shape) {
  T* data = values->as<T>();
  nb::capsule owner(values.release(), [](void* p) noexcept {
    delete static_cast<Memory*>(p);
  });
  return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner);
}

inline int threads_of(int n) {
  if (n < 1 || n > 1024) {
    refuse("n_threads must be 1..1024");
  }
  return n;
}

inline const double* weights_of(const std::optional<Doubles>& w, int64_t n) {
  if (!w) {
    return nullptr;
  }
  if ((int64_t)w->shape(0) != n) {
    refuse("there must be one weight a row");
  }
  for (int64_t i = 0; i < n; i++) {
    if (!(w->data()[i] >= 0.0 && w->data()[i] < INF)) {
      refuse("weights must be finite and not negative");
    }
  }
  // an array of no rows may have no address, and null means: no weights
  static constexpr double EMPTY = 0.0;
  return n == 0 ? &EMPTY : w->data();
}

}  // namespace sapwood
