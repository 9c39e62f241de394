// Metrics that are means over rows: what one row adds (src/sapwood/metric/functions.py has the same
// formulas over arrays).
#pragma once
#include "math/real.h"

namespace sapwood::inline SAPWOOD_ISA {

enum class RowMetric : int {
  absolute,      // |p - y|
  squared,       // (p - y)^2
  scaled,        // ((p - y) / a)^2
  cost_of_two,   // minus the log of the probability of the label, 0 or 1
  cost_of_many,  // the same, of a class index
  cost_between,  // of a label from 0 to 1
  miss,          // 1 where the predicted class is not the label; of two classes: p > a
  hit,           // 1 where it is
  pinball,       // of the a-quantile
  poisson,       // half of the deviance
  gamma,         // the same
};

inline double probability_cost(double p) {
  return -log(p > 1e-15 ? p : 1e-15);
}

// p (n): the predictions of a row; a: a parameter
inline double row_metric(RowMetric kind, double y, const double* p, int n, double a) {
  const double error = p[0] - y;
  const double rate = p[0] > 1e-100 ? p[0] : 1e-100;  // e^score underflows to 0 for low scores
  switch (kind) {
    case RowMetric::absolute:
      return error < 0.0 ? -error : error;
    case RowMetric::squared:
      return error * error;
    case RowMetric::scaled:
      return (error / a) * (error / a);
    case RowMetric::cost_of_two:
      return probability_cost(y > 0.0 ? p[0] : 1.0 - p[0]);
    case RowMetric::cost_of_many:
      return probability_cost(p[(int)y]);
    case RowMetric::cost_between:
      return y * probability_cost(p[0]) + (1.0 - y) * probability_cost(1.0 - p[0]);
    case RowMetric::miss:
    case RowMetric::hit: {
      int best = n == 1 && p[0] > a;
      for (int k = 1; k < n; k++) {
        best = p[k] > p[best] ? k : best;
      }
      return ((double)best == y) == (kind == RowMetric::hit) ? 1.0 : 0.0;
    }
    case RowMetric::pinball: {
      const double above = a * (y - p[0]);
      const double below = (a - 1.0) * (y - p[0]);
      return above > below ? above : below;
    }
    case RowMetric::poisson:
      return y * log((y > 0.0 ? y : rate) / rate) - y + rate;
    case RowMetric::gamma:
      return y / rate - log(y / rate) - 1.0;
  }
  return 0.0;
}

}  // namespace sapwood::inline SAPWOOD_ISA
