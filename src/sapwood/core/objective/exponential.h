// Exponential loss of labels 0 and 1 (AdaBoost; Friedman, Hastie and Tibshirani 2000): e^(-t s)
// with t = 2 y - 1. Gradient -t e^(-t s), hessian e^(-t s). Half the log-odds minimise it, so the
// probability is sigmoid(2 s).
#pragma once
#include "objective/logistic.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Exponential : Loss {
  static constexpr const char *name = "exponential", *link = "sigmoid2", *metric = "logloss",
                              *labels = "0 or 1";
  static constexpr const char* doc = "AdaBoost's loss of two classes, e^(-t s) with t = 2 y - 1";
  static constexpr bool mean_start = true;
  static double loss(double s, double y, const double*) { return exp((1.0 - 2.0 * y) * s); }
  static void grad_hess(double s, double y, const double*, double& g, double& h) {
    const double t = 2.0 * y - 1.0;
    h = exp(-t * s);
    g = -t * h;
  }
  static double start(double mean, const double* f) { return 0.5 * Logistic::start(mean, f); }
};
using objective_exponential = Exponential;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
