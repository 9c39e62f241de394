// Log-cosh loss of r = s - y: log cosh r, about r^2 / 2 near 0 and |r| - log 2 for large |r|;
// gradient tanh r.
// The second derivative 1 - tanh^2 r vanishes for large |r|. The hessian is tanh(r) / r instead (1
// at r = 0), that of the parabola that touches the loss at r and lies above it elsewhere.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct LogCosh : Loss {
  static constexpr const char *name = "log_cosh", *link = "identity", *metric = "mae";
  static constexpr const char* doc =
      "log cosh(s - y): squared near 0, absolute far off, smooth between";
  static constexpr bool hessian_is_bound = true;
  static double loss(double s, double y, const double*) {
    const double a = s > y ? s - y : y - s;
    return a + (softplus(-2.0 * a) - LN2);
  }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    const double r = s - y;
    g = tanh(r);
    h = r == 0.0 ? 1.0 : g / r;
  }
};
using objective_log_cosh = LogCosh;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
