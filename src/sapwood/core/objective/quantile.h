// Quantile (pinball) loss: a (y - s) if the score is below the label, (1 - a) (s - y) above it. The
// hessian is 0, so 1 takes its place and a leaf counts its rows.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Quantile : Loss {
  static constexpr const char *name = "quantile", *link = "identity", *metric = "pinball",
                              *leaf = "exact";
  static constexpr const char* doc = "pinball loss: the prediction is the quantile_alpha quantile";
  static constexpr Field field[] = {{"quantile_alpha", "", 0.0, 1.0, true, 0.5}};
  static constexpr const Field* fields = field;
  static constexpr int n_fields = 1;
  static constexpr bool constant_hessian = true, hessian_is_bound = true, knots = true;
  static constexpr int steps = 0;
  static double loss(double s, double y, const double* f) {
    return y > s ? f[0] * (y - s) : (1.0 - f[0]) * (s - y);
  }
  static void grad_hess(double s, double y, const double* f, double& g, double& h) {
    g = y >= s ? -f[0] : 1.0 - f[0];
    h = 1.0;
  }
  static double default_min_samples_leaf(const double* f) { return rows_for_quantile(f[0]); }
  static Knot knot(double s, double y, const double* f) { return knot_at_label(s, y, 1.0, f[0]); }
};
using objective_quantile = Quantile;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
