// Logistic loss of labels 0 and 1: log(1 + e^s) - y s, gradient p - y, hessian p (1 - p); the
// log-odds minimise it.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Logistic : Loss {
  static constexpr const char *name = "logistic", *link = "sigmoid", *metric = "logloss",
                              *labels = "0 or 1";
  static constexpr const char* doc = "log loss of two classes, log(1 + e^s) - y s";
  static constexpr double path_smooth = 40.0;  // measured: benchmarks/README.md
  static constexpr bool mean_start = true;
  static double loss(double s, double y, const double*) { return softplus(s) - y * s; }
  static void of_sigmoid(double p, double y, double& g, double& h) {
    const double v = p * (1.0 - p);
    g = p - y;
    h = v < 1e-16 ? 1e-16 : v;
  }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    of_sigmoid(sigmoid(s), y, g, h);
  }
  static double start(double mean, const double*) {
    const double p = mean < 1e-15 ? 1e-15 : mean > 1.0 - 1e-15 ? 1.0 - 1e-15 : mean;
    return log(p / (1.0 - p));
  }
};
using objective_logistic = Logistic;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
