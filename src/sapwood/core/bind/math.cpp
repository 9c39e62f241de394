// Sums, draws and functions that are the same on every machine.
#include "bind/reduce.h"
#include "cpu/data/weights.h"
#include "cpu/rows/exact_sum.h"
#include "math/hash.h"
#include "records/message.h"

namespace sapwood {
namespace {

double py_exact_sum(Doubles values, std::optional<Doubles> weight, int n_threads,
                    nb::object reduce) {
  const int64_t n = (int64_t)values.shape(0);
  const double* w = weights_of(weight, n);
  for (int64_t i = 0; i < n; i++) {
    if (!(values.data()[i] - values.data()[i] == 0.0)) {
      refuse("only finite values can be summed");
    }
  }
  threads_of(n_threads);
  const std::shared_ptr<const Reduce> holders = reduce_of(reduce);
  return without_gil([&] {
    return exact_sum(values.data(), w, n, n_threads, holders.get());
  });
}

double py_weight_sum(Doubles weight, int n_threads, nb::object reduce) {
  const int64_t n = (int64_t)weight.shape(0);
  weights_of(weight, n);
  threads_of(n_threads);
  const std::shared_ptr<const Reduce> holders = reduce_of(reduce);
  return without_gil([&] {
    return weight_sum(weight.data(), n, n_threads, holders.get());
  });
}

nb::tuple py_integer_weights(Doubles weight, nb::object reduce) {
  const int64_t n = (int64_t)weight.shape(0);
  const double* given = weights_of(weight, n);
  const std::shared_ptr<const Reduce> holders = reduce_of(reduce);
  RowWeights w = without_gil([&] {
    return RowWeights(given, n, holders.get());
  });
  return nb::make_tuple(array(std::move(w.repeats)), w.integral, w.shift);
}

nb::ndarray<nb::numpy, uint64_t> py_draw(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b,
                                         int64_t n) {
  if (n < 0) {
    refuse("n must not be negative");
  }
  std::vector<uint64_t> out(n);
  const uint64_t k = key(seed, purpose, a, b);
  for (int64_t i = 0; i < n; i++) {
    out[i] = draw(k, i);
  }
  return array(std::move(out));
}

// The function is known to the compiler, which can put it into the loop.
template <double (*f)(double)>
void map(const double* x, std::vector<double>& out) {
  for (size_t i = 0; i < out.size(); i++) {
    const double y = f(x[i]);
    out[i] = y == y ? y : NAN_;  // compilers differ in the sign and the digits of a NaN
  }
}

nb::ndarray<nb::numpy, double> py_math(const std::string& name, Doubles x) {
  std::vector<double> out(x.shape(0));
  if (name == "exp") {
    map<sapwood::exp>(x.data(), out);
  } else if (name == "log") {
    map<sapwood::log>(x.data(), out);
  } else if (name == "log1p") {
    map<sapwood::log1p>(x.data(), out);
  } else if (name == "expm1") {
    map<sapwood::expm1>(x.data(), out);
  } else if (name == "sigmoid") {
    map<sapwood::sigmoid>(x.data(), out);
  } else if (name == "softplus") {
    map<sapwood::softplus>(x.data(), out);
  } else if (name == "tanh") {
    map<sapwood::tanh>(x.data(), out);
  } else {
    refuse("no function named " + name);
  }
  return array(std::move(out));
}

uint64_t py_checksum(nb::handle bytes) {
  Py_buffer view;
  if (PyObject_GetBuffer(bytes.ptr(), &view, PyBUF_SIMPLE) != 0) {
    throw nb::python_error();
  }
  const uint64_t found = checksum((const char*)view.buf, (size_t)view.len);
  PyBuffer_Release(&view);
  return found;
}

nb::object py_message_of(nb::bytes begin, uint32_t call, Longs values) {
  const size_t n = values.shape(0);
  const size_t n_begin = begin.size();
  const int width = bytes_of_each(values.data(), n);
  const size_t length = n * (size_t)width;
  const size_t n_head = n_begin + MESSAGE_HEAD;
  nb::object out = nb::steal(PyBytes_FromStringAndSize(nullptr, (Py_ssize_t)(n_head + length)));
  if (!out.is_valid()) {
    throw nb::python_error();
  }
  char* to = PyBytes_AsString(out.ptr());
  narrow(values.data(), n, width, to + n_head);
  memcpy(to, begin.c_str(), n_begin);
  write_head(width, call, length, checksum(to + n_head, length), to + n_begin);
  return out;
}

void py_add_narrow(nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> values,
                   nb::handle bytes, int width) {
  Py_buffer view;
  if (PyObject_GetBuffer(bytes.ptr(), &view, PyBUF_SIMPLE) != 0) {
    throw nb::python_error();
  }
  const size_t n = values.shape(0);
  const bool fits = (width == 1 || width == 2 || width == 4 || width == 8) &&
                    (size_t)view.len == n * (size_t)width;
  if (fits) {
    add_narrow((const char*)view.buf, width, n, values.data());
  }
  PyBuffer_Release(&view);
  if (!fits) {
    refuse("these bytes are not as many integers");
  }
}

}  // namespace

void bind_math(nb::module_& m) {
  m.def("exact_sum", py_exact_sum, "values"_a, "weight"_a.none(), "n_threads"_a = 1,
        "reduce"_a.none() = nb::none());
  m.def("weight_sum", py_weight_sum, "weight"_a, "n_threads"_a = 1, "reduce"_a.none() = nb::none());
  m.def("integer_weights", py_integer_weights, "weight"_a, "reduce"_a.none() = nb::none());
  for (auto [name, purpose] : {std::pair{"HOLDOUT", HOLDOUT},
                               {"FOLDS", FOLDS},
                               {"DROPS", DROPS},
                               {"TURN", TURN},
                               {"PERMUTE", PERMUTE},
                               {"SAGE", SAGE}}) {
    m.attr(name) = (uint64_t)purpose;
  }
  m.def("draw", py_draw, "seed"_a, "purpose"_a, "a"_a, "b"_a, "n"_a);
  m.def("math", py_math, "name"_a, "x"_a);
  m.def("checksum", py_checksum, "bytes"_a);
  m.def("message_of", py_message_of, "begin"_a, "call"_a, "values"_a);
  m.def("add_narrow", py_add_narrow, "values"_a.noconvert(), "bytes"_a, "width"_a);
}

}  // namespace sapwood
