// PyReduce: a Reduce whose verbs are those of a Python object (sapwood.reduce.Reduce).
#pragma once
#include <memory>

#include "bind/arrays.h"
#include "records/reduce.h"

namespace sapwood {

// The caller has let the GIL go; each verb takes it for the call. An exception of Python ends the
// native call.
class PyReduce : public Reduce {
 public:
  explicit PyReduce(nb::object object) : object_(std::move(object)) {}
  ~PyReduce() override {
    const nb::gil_scoped_acquire acquire;
    object_.reset();
  }
  void sum(int64_t* x, size_t n) const override { in_place("sum", x, n); }
  void max(uint64_t* x, size_t n) const override { in_place("max", x, n); }
  std::pair<size_t, size_t> sum_blocks(int64_t* x,
                                       const std::vector<int64_t>& ends) const override {
    const nb::gil_scoped_acquire acquire;
    nb::list places;
    for (const int64_t end : ends) {
      places.append(end);
    }
    const nb::ndarray<nb::numpy, int64_t, nb::ndim<1>> view(
        x, {(size_t)(ends.empty() ? 0 : ends.back())}, nb::handle());
    const nb::object own =
        object_.attr("sum_blocks")(nb::cast(view, nb::rv_policy::reference), places);
    return {nb::cast<size_t>(own[0]), nb::cast<size_t>(own[1])};
  }
  std::vector<std::string> gather(const std::string& mine) const override {
    const nb::gil_scoped_acquire acquire;
    return strings(object_.attr("gather")(nb::bytes(mine.data(), mine.size())));
  }
  std::vector<std::string> exchange(const std::vector<std::string>& parts) const override {
    const nb::gil_scoped_acquire acquire;
    nb::list given;
    for (const std::string& part : parts) {
      given.append(nb::bytes(part.data(), part.size()));
    }
    return strings(object_.attr("exchange")(given));
  }
  size_t rank() const override { return number("rank"); }
  size_t size() const override { return number("size"); }

 private:
  static std::vector<std::string> strings(nb::object list) {
    std::vector<std::string> all;
    for (nb::handle part : list) {
      const nb::bytes bytes = nb::cast<nb::bytes>(part);
      all.emplace_back(bytes.c_str(), bytes.size());
    }
    return all;
  }
  size_t number(const char* name) const {
    const nb::gil_scoped_acquire acquire;
    return nb::cast<size_t>(object_.attr(name));
  }
  template <class T>
  void in_place(const char* verb, T* x, size_t n) const {
    const nb::gil_scoped_acquire acquire;
    const nb::ndarray<nb::numpy, T, nb::ndim<1>> view(x, {n}, nb::handle());
    // not a copy: the verb writes into it
    object_.attr(verb)(nb::cast(view, nb::rv_policy::reference));
  }
  nb::object object_;
};

inline std::shared_ptr<const Reduce> reduce_of(nb::object object) {
  if (object.is_none()) {
    return nullptr;
  }
  return std::make_shared<PyReduce>(std::move(object));
}

}  // namespace sapwood
