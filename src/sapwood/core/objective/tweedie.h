// Tweedie loss of amounts that may be 0, with mean e^s and variance ~ e^(p s), 1 < p < 2.
// With A = y e^((1-p) s) and B = e^((2-p) s) it is A / (p-1) + B / (2-p); gradient B - A, hessian
// (p-1) A + (2-p) B. The logarithm of the mean minimises it.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Tweedie : Loss {
  static constexpr const char *name = "tweedie", *link = "exp", *metric = "tweedie",
                              *labels = "a number of at least 0";
  static constexpr const char* doc =
      "amounts that are often 0: Tweedie likelihood with mean e^s, variance ~ mean^tweedie_power";
  static constexpr Field field[] = {
      {"tweedie_power", "tweedie_variance_power,variance_power", 1.0, 2.0, true, 1.5}};
  static constexpr const Field* fields = field;
  static constexpr int n_fields = 1;
  static constexpr bool mean_start = true;
  static double loss(double s, double y, const double* f) {
    const double a = f[0] - 1.0;
    const double b = 2.0 - f[0];
    return y * exp(-a * s) / a + exp(b * s) / b;
  }
  static void grad_hess(double s, double y, const double* f, double& g, double& h) {
    const double a = f[0] - 1.0;
    const double b = 2.0 - f[0];
    const double low = y * exp(-a * s);
    const double high = exp(b * s);
    const double v = a * low + b * high;
    g = high - low;
    h = v < 1e-16 ? 1e-16 : v;
  }
  static double start(double mean, const double*) { return log(mean > 0.0 ? mean : 1e-15); }
};
using objective_tweedie = Tweedie;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
