// Poisson loss of counts with mean e^s: e^s - y s; gradient e^s - y, hessian e^s. It is least at
// the log of the mean.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Poisson : Loss {
  static constexpr const char *name = "poisson", *link = "exp", *metric = "poisson",
                              *labels = "a number of at least 0";
  static constexpr const char* doc = "counts and rates: Poisson likelihood with mean e^s";
  static constexpr bool mean_start = true;
  // For a row far above its mean m, Newton's step is y / m, but log(y / m) is enough: it must not
  // be alone in a leaf.
  static double default_min_samples_leaf(const double*) { return 20.0; }
  static double loss(double s, double y, const double*) { return exp(s) - y * s; }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    const double m = exp(s);
    g = m - y;
    h = m < 1e-16 ? 1e-16 : m;
  }
  static double start(double mean, const double*) { return log(mean > 0.0 ? mean : 1e-15); }
};
using objective_poisson = Poisson;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
