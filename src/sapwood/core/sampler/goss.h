// Gradient-based one-side sampling (Ke et al. 2017, algorithm 2): all of the top_rate rows with the
// largest sum of
// |gradient| over outputs, and other_rate drawn from the rest, which count (1 - top_rate) / other_rate times.
// LightGBM ranks by |gradient * hessian| instead, which puts rows that are confidently wrong last.
#pragma once
#include "math/sample.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Goss : Sampler {
  static constexpr const char* name = "goss";
  static constexpr const char* doc =
      "all rows with large gradients, some of the others, which count more";
  static constexpr Threshold threshold = Threshold::top_k;
  static constexpr bool reweights = true, l1_norm = true;
  static constexpr const char* field[] = {"top_rate", "other_rate"};
  static constexpr const char* const* fields = field;
  static constexpr int n_fields = 2;
  static double add(double sum, double g) { return sum + (g < 0.0 ? -g : g); }
  static double max_norm(int n_outputs, double times, const double*) { return n_outputs * times; }
  static double target(const double* f, double) { return f[0]; }
  static double factor(const SampleRow& row, const SampleThreshold& threshold, const double* f) {
    const bool tied = threshold.tie == 0 || draw(row.tie_key, row.at) >> 32 >= threshold.tie;
    const bool top = (int64_t)row.norm + tied > threshold.norm;
    const double rest =
        bernoulli(draw(row.key, row.at), f[1] / (1.0 - f[0])) ? (1.0 - f[0]) / f[1] : 0.0;
    return top ? 1.0 : rest;
  }
};
using sampler_goss = Goss;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
