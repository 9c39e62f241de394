// Minimal variance sampling (Ibragimov and Gusev 2019): a row takes part with probability p =
// min(1, s / mu) and then counts 1 / p times. s = sqrt(sum of squared gradients over outputs +
// mvs_reg); mu is chosen so that the expected number of rows is subsample times all rows.
#pragma once
#include "math/sample.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Mvs : Sampler {
  static constexpr const char* name = "mvs";
  static constexpr const char* doc = "probability in proportion to the size of the gradient";
  static constexpr Threshold threshold = Threshold::expected_count;
  static constexpr bool reweights = true, takes_subsample = true;
  static constexpr const char* field[] = {"mvs_reg"};
  static constexpr const char* const* fields = field;
  static constexpr int n_fields = 1;
  static constexpr double MAX_REG = 0x1p60;  // above it all rows have the same norm
  static double add(double sum, double g) { return sum + g * g; }
  static double norm(double sum, const double* f) { return sqrt(sum + f[0]); }
  static double max_norm(int n_outputs, double times, const double* f) {
    return norm(n_outputs * (times * times), f);
  }
  static void prepare(double* f, double unit, double mean2) {
    const double reg = f[0] < 0.0 ? mean2 : f[0] * unit * unit;  // below 0 means mvs_reg="auto"
    f[0] = reg < MAX_REG ? reg : MAX_REG;
  }
  static double factor(const SampleRow& row, const SampleThreshold& threshold, const double*) {
    if ((int64_t)row.norm > threshold.norm) {
      return 1.0;
    }
    return bernoulli(draw(row.key, row.at), row.norm / threshold.mu) ? threshold.mu / row.norm
                                                                     : 0.0;
  }
};
using sampler_mvs = Mvs;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
