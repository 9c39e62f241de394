// Fair loss of r = s - y: c^2 (u - log(1 + u)) with u = |r| / c; gradient c r / (c + |r|).
// The second derivative c^2 / (c + |r|)^2 vanishes for large |r|. The hessian is c / (c + |r|)
// instead, that of the parabola that touches the loss at r and lies above it elsewhere.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Fair : Loss {
  static constexpr const char *name = "fair", *link = "identity", *metric = "mae";
  static constexpr const char* doc =
      "squared near 0, ever closer to fair_c times the absolute error far off";
  static constexpr Field field[] = {{"fair_c", "", 0.0, 1e300, true, 1.0}};
  static constexpr const Field* fields = field;
  static constexpr int n_fields = 1;
  static constexpr bool hessian_is_bound = true;
  static double loss(double s, double y, const double* f) {
    const double a = s > y ? s - y : y - s;
    const double u = a / f[0];
    // for small u, where u - log(1 + u) cancels
    const double series = (a * a) * (0.5 - u * (1.0 / 3.0 - u * (0.25 - u * 0.2)));
    return u < 1e-3 ? series : f[0] * (a - f[0] * log1p(u));
  }
  static void grad_hess(double s, double y, const double* f, double& g, double& h) {
    const double r = s - y;
    const double a = r < 0.0 ? -r : r;
    h = f[0] / (f[0] + a);
    g = h * r;
  }
};
using objective_fair = Fair;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
