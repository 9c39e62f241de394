// Absolute error |s - y|. The gradient is its sign; the hessian is 0, so 1 takes its place and a
// leaf counts its rows. The median minimises it.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct AbsoluteError : Loss {
  static constexpr const char *name = "absolute_error", *link = "identity", *metric = "mae",
                              *leaf = "exact";
  static constexpr const char* doc = "absolute error, |s - y|";
  static constexpr bool constant_hessian = true, hessian_is_bound = true, knots = true;
  static constexpr int steps = 0;
  static double loss(double s, double y, const double*) { return s > y ? s - y : y - s; }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    g = s > y ? 1.0 : -1.0;  // at s == y any slope in [-1, 1] is valid; scikit-learn takes -1
    h = 1.0;
  }
  static double default_min_samples_leaf(const double*) { return rows_for_quantile(0.5); }
  static Knot knot(double s, double y, const double*) { return knot_at_label(s, y, 1.0, 0.5); }
};
using objective_absolute_error = AbsoluteError;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
