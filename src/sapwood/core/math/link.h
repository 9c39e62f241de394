// Links: the function from the raw scores of a row to its predictions.
#pragma once
#include "math/real.h"
#include "math/types.h"

namespace sapwood::inline SAPWOOD_ISA {

// Links of one score.
inline double link_score(Link kind, double s) {
  switch (kind) {
    case Link::sigmoid:
      return sigmoid(s);
    case Link::sigmoid2:
      return sigmoid(2.0 * s);
    case Link::exp:
      return exp(s);
    case Link::expm1:
      return expm1(s);
    case Link::step:
      return s > 0.0 ? 1.0 : 0.0;
    default:
      return s;
  }
}

// s (n) IN, p (n) OUT: all scores of a row; they may be the same
inline void link_row(Link kind, const double* s, double* p, int n) {
  if (kind == Link::ascending) {  // sorted: quantiles that never cross
    for (int k = 0; k < n; k++) {
      const double x = s[k];
      int at = k;
      for (; at > 0 && p[at - 1] > x; at--) {
        p[at] = p[at - 1];
      }
      p[at] = x;
    }
  } else if (kind == Link::softmax || kind == Link::one_vs_all) {
    double top = s[0];
    double total = 0.0;
    for (int k = 1; k < n; k++) {
      top = s[k] > top ? s[k] : top;
    }
    for (int k = 0; k < n; k++) {
      p[k] = kind == Link::softmax ? exp(s[k] - top) : sigmoid(s[k]);
    }
    for (int k = 0; k < n; k++) {
      total = total + p[k];
    }
    for (int k = 0; k < n; k++) {
      p[k] = total > 0.0 ? p[k] / total : 1.0 / n;
    }
  } else {
    for (int k = 0; k < n; k++) {
      p[k] = link_score(kind, s[k]);
    }
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
