// PyReduce: a Reduce whose verbs are those of a Python object (sapwood.reduce.Reduce).
#pragma once
#include <memory>

#include "bind/arrays.h"
#include "records/reduce.h"

namespace sapwood {

// The caller has let the GIL go; each verb takes it for the call. An exception of Python ends the native call.
class PyReduce : public Reduce {
 public:
  explicit PyReduce(nb::object object) : object_(std::move(object)) {}
  ~PyReduce() override {
    const nb::gil_scoped_acquire acquire;
    object_.reset();
  }
  void sum(int64_t* x, size_t n) const override { in_place("sum", x, n); }
  void max(uint64_t* x, size_t n) const override { in_place("max", x, n); }
  std::vector<std::string> gather(const std::string& mine) const override {
    const nb::gil_scoped_acquire acquire;
    std::vector<std::string> all;
    for (nb::handle part : object_.attr("gather")(nb::bytes(mine.data(), mine.size()))) {
      const nb::bytes bytes = nb::cast<nb::bytes>(part);
      all.emplace_back(bytes.c_str(), bytes.size());
    }
    return all;
  }

 private:
  template <class T>
  void in_place(const char* verb, T* x, size_t n) const {
    const nb::gil_scoped_acquire acquire;
    const nb::ndarray<nb::numpy, T, nb::ndim<1>> view(x, {n}, nb::handle());
    object_.attr(verb)(nb::cast(view, nb::rv_policy::reference));  // not a copy: the verb writes into it
  }
  nb::object object_;
};

inline std::shared_ptr<const Reduce> reduce_of(nb::object object) {
  if (object.is_none()) return nullptr;
  return std::make_shared<PyReduce>(std::move(object));
}

}  // namespace sapwood
