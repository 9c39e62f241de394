// Focal loss of labels 0 and 1 (Lin et al. 2017): a q^c L, with p the probability of the true
// class, q = 1 - p,
// L = -log p, c = focal_gamma, and a = focal_alpha for label 1, 1 - focal_alpha for label 0.
// In z = t s, t = 2 y - 1: dp = p q, dL = -q, so
//   gradient -t a q^c (c p L + q),   second derivative a q^c p (c^2 p L + q (1 + 2 c - c L)).
// The second derivative is negative for rows that are badly wrong (large L). The hessian leaves out
// the negative term -c L, so it is positive and an upper bound. With c = 0 it is exact, and the
// loss is a times the logistic loss.
#pragma once
#include "math/loss.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Focal : Loss {
  static constexpr const char *name = "focal", *link = "sigmoid", *metric = "logloss",
                              *labels = "0 or 1";
  static constexpr const char* doc =
      "log loss of two classes in which easy rows count little (focal_gamma)";
  static constexpr Field field[] = {{"focal_gamma", "", 0.0, 100.0, false, 2.0},
                                    {"focal_alpha", "", 0.0, 1.0, true, 0.25}};
  static constexpr const Field* fields = field;
  static constexpr int n_fields = 2;
  static constexpr bool convex = false, hessian_is_bound = true;
  static double loss(double s, double y, const double* f) {
    const double z = (2.0 * y - 1.0) * s;
    const double a = y > 0.5 ? f[1] : 1.0 - f[1];
    return a * exp(-f[0] * softplus(z)) * softplus(-z);  // q^c = e^(c log q), log q = -softplus(z)
  }
  static void grad_hess(double s, double y, const double* f, double& g, double& h) {
    const double t = 2.0 * y - 1.0;
    const double z = t * s;
    const double a = y > 0.5 ? f[1] : 1.0 - f[1];
    const double c = f[0];
    const double p = sigmoid(z);
    const double q = sigmoid(-z);
    const double l = softplus(-z);
    const double w = a * exp(-c * softplus(z));
    const double v = w * p * (c * c * p * l + q * (1.0 + 2.0 * c));
    g = -t * w * (c * p * l + q);
    h = v < 1e-16 ? 1e-16 : v;
  }
};
using objective_focal = Focal;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
