// Gamma loss of positive amounts with mean e^s: y e^-s + s. Gradient 1 - y e^-s, hessian y e^-s.
// The logarithm of the mean minimises it.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Gamma : Loss {
  static constexpr const char *name = "gamma", *link = "exp", *metric = "gamma",
                              *labels = "a number above 0";
  static constexpr const char* doc =
      "positive amounts, more spread where larger: gamma likelihood with mean e^s";
  static constexpr bool mean_start = true;
  // Otherwise a row far above its mean, whose hessian is large, could be alone in a leaf.
  static double default_min_samples_leaf(const double*) { return 10.0; }
  static double loss(double s, double y, const double*) { return y * exp(-s) + s; }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    const double m = y * exp(-s);
    g = 1.0 - m;
    h = m < 1e-16 ? 1e-16 : m;
  }
  static double start(double mean, const double*) { return log(mean); }
};
using objective_gamma = Gamma;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
