// What a sampler states (NUMERICS 10). Those on the shelf inherit from Sampler and say only what differs; f holds the values of
// their own fields. Pure functions of one row: whoever calls them does the counting.
#pragma once
#include "math/fixed.h"
#include "math/hash.h"

namespace sapwood::inline SAPWOOD_ISA {

struct SampleRow {            // a row, before its answer
  uint64_t key, tie_key, at;  // draws of this round, and the row's coordinate in them
  uint32_t norm;              // of its gradients, in fixed point
  double subsample;           // probability with which it takes part
};

struct Sampler {
  static constexpr Threshold threshold = Threshold::none;
  static constexpr bool reweights = false;        // factors other than 0 and 1
  static constexpr bool takes_subsample = false;  // takes a share of the rows, subsample
  static constexpr bool l1_norm = false;          // sizes are sums of |gradient|
  static constexpr int n_fields = 0;
  static constexpr const char* const* fields = nullptr;
  // Sizes: gradients are added output by output, in units in which none exceeds 1; `max_norm` bounds the result.
  static double add(double sum, double) { return sum; }
  static double norm(double sum, const double*) { return sum; }
  static double max_norm(int, double, const double*) { return 1.0; }
  // Turns fields into those units; mean2: the sum over outputs of the squared mean |gradient|.
  static void prepare(double*, double, double) {}
  // What is counted: a share of the rows.
  static double target(const double*, double share) { return share; }
};

inline bool bernoulli(uint64_t draw, double p) { return p >= 1.0 || draw < (uint64_t)(p * 0x1p64); }

}  // namespace sapwood::inline SAPWOOD_ISA
