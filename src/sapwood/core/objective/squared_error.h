// Squared error: loss (s - y)^2 / 2, gradient s - y, hessian 1; the mean minimises it.
#pragma once
#include "../math/real.h"

namespace sapwood::inline SAPWOOD_ISA {

struct SquaredError {
  static constexpr const char* name = "squared_error";
  static constexpr const char* doc = "squared error, (s - y)^2 / 2";
  static constexpr const char* link = "identity";
  static constexpr const char* metric = "rmse";
  static constexpr bool pointwise = true;     // one score a row
  static constexpr double path_smooth = 0.0;  // measured: every value above 0 made real regressions worse
  static constexpr bool constant_hessian = true;
  static void grad_hess(double s, double y, double& g, double& h) {
    g = s - y;
    h = 1.0;
  }
  static double start(double mean) { return mean; }
};
using objective_squared_error = SquaredError;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
