// The gain of a split (NUMERICS 5), in quantised units: float64 functions of exact integer sums,
// one fixed expression.
#pragma once
#include "math/fixed.h"

namespace sapwood::inline SAPWOOD_ISA {

inline double soft(double g, double alpha) {
  return g > alpha ? g - alpha : g < -alpha ? g + alpha : 0.0;
}

inline double clipped_score(double g, double h, const Penalty& p) {
  const double t = soft(g, p.alpha);
  const double b = h + p.lambda;
  double w = -t / b;
  w = w > p.step ? p.step : w < -p.step ? -p.step : w;
  return -(2.0 * (t * w) + b * (w * w));
}

inline bool is_plain(const Penalty& p) {
  return p.alpha == 0.0 && p.step == 0.0;
}

// The score of a node: what its best constant takes off the loss, twice.
inline double node_score(Sums s, const Penalty& p) {
  const double g = (double)s.g;
  const double h = (double)s.h;
  if (p.step > 0.0) {
    return clipped_score(g, h, p);
  }
  const double t = soft(g, p.alpha);
  return (t * t) / (h + p.lambda);
}

// The score of a split into `l` and `r`: one division serves both sides.
inline double split_score(Sums l, Sums r, const Penalty& p) {
  const double gl = (double)l.g;
  const double hl = (double)l.h;
  const double gr = (double)r.g;
  const double hr = (double)r.h;
  if (p.step > 0.0) {
    return clipped_score(gl, hl, p) + clipped_score(gr, hr, p);
  }
  const double tl = soft(gl, p.alpha);
  const double tr = soft(gr, p.alpha);
  const double bl = hl + p.lambda;
  const double br = hr + p.lambda;
  return ((tl * tl) * br + (tr * tr) * bl) / (bl * br);
}

// The cosine score of a step is dot / sqrt(norm2): its cosine with the negative gradients, up to
// their norm. The parts of both sides are added.
struct CosineParts {
  double dot = 0, norm2 = 0;
};
inline CosineParts operator+(CosineParts a, CosineParts b) {
  return {a.dot + b.dot, a.norm2 + b.norm2};
}
inline CosineParts operator*(double scale, CosineParts a) {
  return {scale * a.dot, scale * a.norm2};
}
inline CosineParts cosine_parts(double g, double h, const Penalty& p) {
  const double a = g / (h + p.lambda);
  return {a * g, (a * a) * h};
}
inline CosineParts cosine_parts(Sums s, const Penalty& p) {
  return s.h > 0 ? cosine_parts((double)s.g, (double)s.h, p) : CosineParts{};
}
inline double cosine_score(CosineParts a) {
  return a.norm2 > 0.0 ? a.dot / sqrt(a.norm2) : a.dot;
}

// Ordered boosting: how well a side's value, found from the gradients of its body, fits those of
// its tail.
inline CosineParts tail_fit(double body_g, double body_h, double tail_g, double tail_h,
                            const Penalty& p) {
  const double b = body_h + p.lambda;
  double a = b > 0.0 ? soft(body_g, p.alpha) / b : 0.0;
  if (p.step > 0.0) {
    a = a > p.step ? p.step : a < -p.step ? -p.step : a;
  }
  return {a * tail_g, (a * a) * tail_h};
}
inline CosineParts tail_fit(Sums body, Sums tail, const Penalty& p) {
  return tail_fit((double)body.g, (double)body.h, (double)tail.g, (double)tail.h, p);
}
// twice what the loss falls by
inline double loss_reduction(CosineParts a) {
  return 2.0 * a.dot - a.norm2;
}

// Whether a plain split score can reach `bar`, without its division.
inline bool may_beat(Sums l, Sums r, const Penalty& p, double bar) {
  const double gl = (double)l.g;
  const double hl = (double)l.h;
  const double gr = (double)r.g;
  const double hr = (double)r.h;
  const double bl = hl + p.lambda;
  const double br = hr + p.lambda;
  return (gl * gl) * br + (gr * gr) * bl >= (bl * br) * bar;
}

// Under bounds (NUMERICS, constraints): a side's best value within them, and the score of any
// value.
inline double bounded_weight(Sums s, const Penalty& p, double low, double high) {
  double w = -soft((double)s.g, p.alpha) / ((double)s.h + p.lambda);
  if (p.step > 0.0) {
    w = w > p.step ? p.step : w < -p.step ? -p.step : w;
  }
  return w < low ? low : w > high ? high : w;
}
inline double score_at(Sums s, const Penalty& p, double w) {
  const double size = w < 0.0 ? -w : w;
  return -(2.0 * ((double)s.g * w + p.alpha * size) + ((double)s.h + p.lambda) * (w * w));
}

// How the candidates of one column in one node are scored: plain data, the same for every device.
struct ScoreRule {
  Penalty penalty;
  bool cosine = false;   // the cosine score, else the reduction of the loss
  bool bounded = false;  // the values of both sides are clipped to low .. high
  double low = -INF, high = INF;
  // monotone constraint: 1 rising, -1 falling, 0 none; the cut that it does not bind
  int direction = 0, free_bin = 0;
};
inline double score_split(Sums l, Sums r, int bin, const ScoreRule& rule) {
  const Penalty& p = rule.penalty;
  if (rule.cosine) {
    return cosine_score(cosine_parts(l, p) + cosine_parts(r, p));
  }
  if (!rule.bounded) {
    return split_score(l, r, p);
  }
  const double wl = bounded_weight(l, p, rule.low, rule.high);
  const double wr = bounded_weight(r, p, rule.low, rule.high);
  const int d = bin == rule.free_bin ? 0 : rule.direction;
  if ((d > 0 && wl > wr) || (d < 0 && wl < wr)) {
    return -INF;
  }
  return score_at(l, p, wl) + score_at(r, p, wr);
}

// Whether both sides have rows, and enough hessian.
inline bool admits(Sums l, Sums r, const Penalty& p) {
  return l.h > 0 && r.h > 0 && (double)l.h >= p.min_h && (double)r.h >= p.min_h;
}

// What a split must exceed: its node's score by more than rounding errors. Under bounds a score can
// be negative.
inline double must_exceed(double score) {
  return score * (score < 0.0 ? 1.0 - 0x1p-40 : 1.0 + 0x1p-40);
}

// A leaf's value before shrinkage, from wide sums (NUMERICS 6).
inline double leaf_value(Sums s, const Scale& scale, double lambda, double alpha, double max_step) {
  const double gs = g_scale(scale);
  const double hs = h_scale(scale);
  const double t = soft((double)s.g, alpha * gs);
  const double b = (double)s.h + lambda * hs;
  if (b == 0.0) {
    return 0.0;
  }
  double v = -t / b * (hs / gs);
  if (max_step > 0.0) {
    v = v > max_step ? max_step : v < -max_step ? -max_step : v;
  }
  return v;
}

}  // namespace sapwood::inline SAPWOOD_ISA
