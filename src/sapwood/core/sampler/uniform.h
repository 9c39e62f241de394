// Uniform sampling: every row takes part with the same probability, or with that of its class, and
// counts once.
#pragma once
#include "math/sample.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Uniform : Sampler {
  static constexpr const char* name = "uniform";
  static constexpr const char* doc = "every row with the probability subsample";
  static constexpr bool takes_subsample = true;
  static double factor(const SampleRow& row, const SampleThreshold&, const double*) {
    return bernoulli(draw(row.key, row.at), row.subsample) ? 1.0 : 0.0;
  }
};
using sampler_uniform = Uniform;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
