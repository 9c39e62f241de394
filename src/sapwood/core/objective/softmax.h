// Softmax cross-entropy of K classes: -log p_y. Gradient p_k - [y = k], hessian K/(K-1) p_k (1 -
// p_k) (Friedman 2001, eq. 30). The log priors minimise it. There is one score per class; as a
// function of one score it is a logistic loss, so `loss` and `grad_hess` are inherited.
#pragma once
#include "objective/logistic.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Softmax : Logistic {
  static constexpr const char *name = "softmax", *link = "softmax", *metric = "multi_logloss",
                              *labels = "a class index";
  static constexpr const char* doc =
      "cross-entropy of K classes, -log softmax(s)_y; K trees a round";
  static constexpr bool pointwise = false;
  static constexpr double path_smooth = 0.0;  // measured: rare classes would be smoothed away
  // factor = K / (K - 1)
  static void of_probability(double p, bool is_class, double factor, double& g, double& h) {
    const double v = factor * (p * (1.0 - p));
    g = is_class ? p - 1.0 : p;
    h = v < 1e-16 ? 1e-16 : v;
  }
  static double start(double prior, const double*) { return log(prior < 1e-15 ? 1e-15 : prior); }
};
using objective_softmax = Softmax;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
