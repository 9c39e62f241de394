// Huber loss of r = s - y: r^2 / 2 up to delta, then delta (|r| - delta / 2). The gradient is r
// clipped to +-delta; the hessian is 1, an upper bound. The exact leaf value is Friedman's (1999,
// section 4.4): the median, then one gradient step from there.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Huber : Loss {
  static constexpr const char *name = "huber", *link = "identity", *metric = "huber",
                              *leaf = "friedman";
  static constexpr const char* doc = "squared up to huber_delta, absolute beyond";
  static constexpr Field field[] = {{"huber_delta", "delta", 0.0, 1e300, true, 1.0}};
  static constexpr const Field* fields = field;
  static constexpr int n_fields = 1;
  static constexpr bool constant_hessian = true, hessian_is_bound = true, knots = true;
  static constexpr int steps = 1;
  static double cut(double s, double y, double delta, double& g) {
    const double r = s - y;
    const double a = r < 0.0 ? -r : r;
    g = r > delta ? delta : r < -delta ? -delta : r;
    return a > delta ? delta * (a - 0.5 * delta) : 0.5 * r * r;
  }
  static double loss(double s, double y, const double* f) {
    double g;
    return cut(s, y, f[0], g);
  }
  static void grad_hess(double s, double y, const double* f, double& g, double& h) {
    cut(s, y, f[0], g);
    h = 1.0;
  }
  static Knot knot(double s, double y, const double*) { return knot_at_label(s, y, 1.0, 0.5); }
};
using objective_huber = Huber;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
