// Squared error: loss (s - y)^2 / 2, gradient s - y, hessian 1; the mean minimises it.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct SquaredError : Loss {
  static constexpr const char *name = "squared_error", *link = "identity", *metric = "rmse";
  static constexpr const char* doc = "squared error, (s - y)^2 / 2";
  static constexpr bool constant_hessian = true, mean_start = true;
  static constexpr int steps = 1;
  static double loss(double s, double y, const double*) { return 0.5 * (s - y) * (s - y); }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    g = s - y;
    h = 1.0;
  }
};
using objective_squared_error = SquaredError;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
