// Sketch: random sums of the gradients of all outputs, so that the cost of a split search does not
// grow with the outputs (NUMERICS, Sketched splits). Enters: wide gradients of all outputs. Leaves:
// those of a few, as growth reads them.
#pragma once
#include "cpu/rows/quantise.h"

namespace sapwood {

class Sketch {
 public:
  // Hessians are those of the leaf values. After scatter where the sample is gathered. tree: the
  // number of the first output's tree.
  void project(const RowState& s, RowSample& sample, const Quantised& q, uint64_t seed,
               uint64_t tree, int n_sums);
  int size() const { return (int)sums_.size(); }
  Gradients gradients(int i);

 private:
  struct Sum {  // of one draw of signs
    Scale narrow, wide;
    bool is_narrow = true;
    double max_hessian_per_count = 0;  // in units of the narrow or the wide hessians
  };
  void quantise(const RowState& s, const uint8_t* in_sample, const Quantised& q, int i,
                const double* g, const double* h);

  int64_t n_ = 0;
  bool repeated_ = false, constant_hessian_ = false;
  std::vector<Sum> sums_;
  // (n_sums + 1, n) double: the sums of gradients, then the mean of hessians
  Memory real_;
  Memory packed_;         // (n_sums, n) int32, narrow words
  Memory narrow_, wide_;  // (n_sums, n) Pair; narrow ones where rows repeat
};

}  // namespace sapwood
