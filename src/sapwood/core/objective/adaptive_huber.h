// Huber loss whose delta follows the fit (Friedman 1999, section 4.4): before each round, delta is
// the huber_quantile of |y - s|.
#pragma once
#include "objective/huber.h"

namespace sapwood::inline SAPWOOD_ISA {

struct AdaptiveHuber : Huber {
  static constexpr const char *name = "adaptive_huber", *metric = "mae";
  static constexpr const char* doc =
      "Huber loss whose delta is, each round, the huber_quantile of the absolute errors";
  static constexpr Field field[] = {{"huber_quantile", "", 0.0, 1.0, true, 0.9}};
  static constexpr const Field* fields = field;
  static constexpr bool adaptive = true;
  static double loss(double s, double y, const double* f) { return Huber::loss(s, y, f + 1); }
  static void grad_hess(double s, double y, const double* f, double& g, double& h) {
    Huber::grad_hess(s, y, f + 1, g, h);
  }
};
using objective_adaptive_huber = AdaptiveHuber;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
