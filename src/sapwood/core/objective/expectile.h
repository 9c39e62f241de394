// Expectile loss (asymmetric squared error; Newey and Powell 1987): w (s - y)^2 / 2, with w = a if
// the score is below the label and 1 - a above it. Gradient w (s - y), hessian w.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Expectile : Loss {
  static constexpr const char *name = "expectile", *link = "identity", *metric = "expectile";
  static constexpr const char* doc =
      "asymmetric squared error: the prediction is the expectile_alpha expectile";
  static constexpr Field field[] = {{"expectile_alpha", "", 0.0, 1.0, true, 0.5}};
  static constexpr const Field* fields = field;
  static constexpr int n_fields = 1;
  static double weight(double s, double y, const double* f) { return y > s ? f[0] : 1.0 - f[0]; }
  static double loss(double s, double y, const double* f) {
    return 0.5 * weight(s, y, f) * (s - y) * (s - y);
  }
  static void grad_hess(double s, double y, const double* f, double& g, double& h) {
    h = weight(s, y, f);
    g = h * (s - y);
  }
};
using objective_expectile = Expectile;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
