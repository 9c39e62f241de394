// Absolute percentage error |s - y| / max(1, |y|): an absolute error whose rows have the weight m =
// 1 / max(1, |y|). The gradient is +-m. The hessian is 0, so 1 takes its place and a leaf counts
// its rows, whatever the unit of y.
// The median under these weights minimises it.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Mape : Loss {
  static constexpr const char *name = "mape", *link = "identity", *metric = "mape", *leaf = "exact";
  static constexpr const char* doc = "absolute error relative to the label, |s - y| / max(1, |y|)";
  static constexpr bool constant_hessian = true, hessian_is_bound = true, knots = true;
  static constexpr int steps = 0;
  static double mass(double y) {
    const double a = y < 0.0 ? -y : y;
    return 1.0 / (a < 1.0 ? 1.0 : a);
  }
  static double loss(double s, double y, const double*) {
    return mass(y) * (s > y ? s - y : y - s);
  }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    const double m = mass(y);
    g = s > y ? m : -m;  // at s == y as in absolute_error
    h = 1.0;
  }
  // Rows with small labels have the most weight, so few of a leaf's rows decide its value.
  static double default_min_samples_leaf(const double*) { return 20.0; }
  static Knot knot(double s, double y, const double*) { return knot_at_label(s, y, mass(y), 0.5); }
};
using objective_mape = Mape;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
