// What an objective states. Objectives inherit from Loss and state only what differs; f has the
// values of their fields.
#pragma once
#include "math/real.h"
#include "math/types.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Loss {
  // a row's loss is a sum over its scores; false: they are coupled (softmax)
  static constexpr bool pointwise = true;
  // what a label may be; objective/objective.py knows the phrases
  static constexpr const char* labels = "a number";
  // what leaf_estimation="auto" means: newton, exact, or friedman (exact if hessian="none", else
  // newton)
  static constexpr const char* leaf = "newton";
  static constexpr bool constant_hessian = false;
  // grad_hess gives an upper bound of the second derivative
  static constexpr bool hessian_is_bound = false;
  static constexpr bool convex = true;  // in the score
  static constexpr bool knots = false;  // knot() gives the kink of a row's loss
  // maximum Newton steps from the knots' quantile (or 0) to the exact leaf value
  static constexpr int steps = 100;
  // before each round, f[n_fields] = the f[0]-quantile of |knot|
  static constexpr bool adaptive = false;
  // start(mean label, f) minimises the loss; false: a search finds the start
  static constexpr bool mean_start = false;
  static constexpr double path_smooth = 0.0;  // what path_smooth="auto" means
  static constexpr int n_fields = 0;
  static constexpr const Field* fields = nullptr;
  // what min_samples_leaf="auto" means
  static double default_min_samples_leaf(const double*) { return 1.0; }
  static double start(double mean, const double*) { return mean; }
  static Knot knot(double, double, const double*) { return {0.0, 0.0, 0.0}; }
};

// Minimum rows of a leaf whose value is a quantile of them: four, on average, lie in the thinner
// tail.
inline double rows_for_quantile(double level) {
  return 4.0 / (level < 0.5 ? level : 1.0 - level);
}

// For losses like |s - y|: the loss falls until the score reaches the label, then rises.
inline Knot knot_at_label(double s, double y, double mass, double level) {
  return {y - s, mass, level};
}

}  // namespace sapwood::inline SAPWOOD_ISA
