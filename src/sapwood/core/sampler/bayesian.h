// The Bayesian bootstrap (Rubin 1981) with CatBoost's temperature: every row counts (-log
// u)^bagging_temperature times.
#pragma once
#include "math/sample.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Bayesian : Sampler {
  static constexpr const char* name = "bayesian";
  static constexpr const char* doc = "all rows, with random weights";
  static constexpr bool reweights = true;
  static constexpr const char* field[] = {"bagging_temperature"};
  static constexpr const char* const* fields = field;
  static constexpr int n_fields = 1;
  static double factor(const SampleRow& row, const SampleThreshold&, const double* f) {
    const double u = ((double)(draw(row.key, row.at) >> 12) + 0.5) * 0x1p-52;  // neither 0 nor 1
    return exp(f[0] * log(-log(u)));
  }
};
using sampler_bayesian = Bayesian;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
