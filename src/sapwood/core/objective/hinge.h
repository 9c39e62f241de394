// Hinge loss of labels 0 and 1: max(0, 1 - t s) with t = 2 y - 1. The gradient is -t inside the
// margin (t s < 1). The hessian is 0, so 1 takes its place and a leaf counts its rows. The exact
// leaf value is a quantile of the rows' margin edges; predictions are classes.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Hinge : Loss {
  static constexpr const char *name = "hinge", *link = "step", *metric = "error",
                              *labels = "0 or 1", *leaf = "exact";
  static constexpr const char* doc =
      "margin loss of two classes, max(0, 1 - t s) with t = 2 y - 1; predicts classes";
  static constexpr bool constant_hessian = true, hessian_is_bound = true, knots = true;
  static constexpr int steps = 0;
  static double loss(double s, double y, const double*) {
    const double m = 1.0 - (2.0 * y - 1.0) * s;
    return m > 0.0 ? m : 0.0;
  }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    const double t = 2.0 * y - 1.0;
    g = t * s < 1.0 ? -t : 0.0;
    h = 1.0;
  }
  static Knot knot(double s, double y, const double*) { return {(2.0 * y - 1.0) - s, 1.0, y}; }
};
using objective_hinge = Hinge;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
