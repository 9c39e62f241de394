// Squared error of logarithms: (s - log(1 + y))^2 / 2 for labels of at least 0; gradient s - log(1
// + y), hessian 1.
// The score is the logarithm of 1 + prediction; the mean of log(1 + y) minimises the loss.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct SquaredLog : Loss {
  static constexpr const char *name = "squared_log", *link = "expm1", *metric = "rmsle",
                              *labels = "a number of at least 0";
  static constexpr const char* doc = "squared error of log(1 + y) and log(1 + prediction)";
  static constexpr bool constant_hessian = true;
  static constexpr int steps = 1;
  static double loss(double s, double y, const double*) {
    const double r = s - log1p(y);
    return 0.5 * r * r;
  }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    g = s - log1p(y);
    h = 1.0;
  }
};
using objective_squared_log = SquaredLog;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
