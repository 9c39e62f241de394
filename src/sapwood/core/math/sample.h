// What a sampler states (NUMERICS 10). Samplers inherit from Sampler and state only what differs; f
// has the values of their fields. All functions are pure functions of one row; the caller does the
// counting.
#pragma once
#include "math/fixed.h"
#include "math/hash.h"

namespace sapwood::inline SAPWOOD_ISA {

struct SampleRow {            // what a sampler sees of a row
  uint64_t key, tie_key, at;  // the keys of this round's draws, and the row's coordinate
  uint32_t norm;              // of its gradients, in fixed point
  double subsample;           // the probability that it takes part
};

struct Sampler {
  static constexpr Threshold threshold = Threshold::none;
  static constexpr bool reweights = false;        // sample weights other than 0 and 1
  static constexpr bool takes_subsample = false;  // uses the parameter subsample
  static constexpr bool l1_norm = false;          // the norm is the sum of |gradient|
  static constexpr int n_fields = 0;
  static constexpr const char* const* fields = nullptr;
  // The norm of a row: `add` takes its gradients output by output, in units in which none exceeds
  // 1; `max_norm` bounds the norm.
  static double add(double sum, double) { return sum; }
  static double norm(double sum, const double*) { return sum; }
  static double max_norm(int, double, const double*) { return 1.0; }
  // Converts fields to those units; mean2: the sum over outputs of the squared mean |gradient|.
  static void prepare(double*, double, double) {}
  // The fraction of rows that the threshold aims at.
  static double target(const double*, double subsample) { return subsample; }
};

inline bool bernoulli(uint64_t draw, double p) {
  return p >= 1.0 || draw < (uint64_t)(p * 0x1p64);
}

}  // namespace sapwood::inline SAPWOOD_ISA
