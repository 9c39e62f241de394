// A trainer and all that it only points to.
#pragma once
#include "bind/arrays.h"
#include "cpu/trainer.h"

namespace sapwood {

struct PyTrainer {
  nb::object binned;
  Doubles2 label;
  std::unique_ptr<Trainer> trainer;
  std::optional<Doubles> subsample_by_row = {};
  std::optional<Ints> group = {};
  nb::object table = {};
};

inline int output_of(PyTrainer& self, int output) {
  if (output < 0 || output >= self.trainer->n_outputs()) {
    refuse("no such output");
  }
  return output;
}

Limits limits_of(nb::dict d);
void bind_leaves(nb::class_<PyTrainer>& trainer);

}  // namespace sapwood
