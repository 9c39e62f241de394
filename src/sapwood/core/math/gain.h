// The gain of a split (NUMERICS 5), in quantised units: float64 functions of exact integer sums, one fixed expression.
#pragma once
#include "math/fixed.h"

namespace sapwood::inline SAPWOOD_ISA {

inline Sums operator+(Sums a, Sums b) { return {a.g + b.g, a.h + b.h}; }
inline Sums operator-(Sums a, Sums b) { return {a.g - b.g, a.h - b.h}; }

inline double soft(double g, double alpha) { return g > alpha ? g - alpha : g < -alpha ? g + alpha : 0.0; }

inline double clipped_score(double g, double h, const Penalty& p) {
  const double t = soft(g, p.alpha), b = h + p.lambda;
  double w = -t / b;
  w = w > p.step ? p.step : w < -p.step ? -p.step : w;
  return -(2.0 * (t * w) + b * (w * w));
}

inline bool is_plain(const Penalty& p) { return p.alpha == 0.0 && p.step == 0.0; }

// The score of a node: what its best constant takes off the loss, twice.
inline double node_score(Sums s, const Penalty& p) {
  const double g = (double)s.g, h = (double)s.h;
  if (p.step > 0.0) return clipped_score(g, h, p);
  const double t = soft(g, p.alpha);
  return (t * t) / (h + p.lambda);
}

// The score of a split into `l` and `r`: one division serves both sides.
inline double split_score(Sums l, Sums r, const Penalty& p) {
  const double gl = (double)l.g, hl = (double)l.h, gr = (double)r.g, hr = (double)r.h;
  if (p.step > 0.0) return clipped_score(gl, hl, p) + clipped_score(gr, hr, p);
  const double tl = soft(gl, p.alpha), tr = soft(gr, p.alpha), bl = hl + p.lambda, br = hr + p.lambda;
  return ((tl * tl) * br + (tr * tr) * bl) / (bl * br);
}

// The cosine between a step and the negative gradients is N / sqrt(D), up to their own length: a side's parts of N and D.
struct CosineParts {
  double along = 0, square = 0;
};
inline CosineParts cosine_parts(double g, double h, const Penalty& p) {
  const double a = g / (h + p.lambda);
  return {a * g, (a * a) * h};
}
inline CosineParts operator+(CosineParts a, CosineParts b) { return {a.along + b.along, a.square + b.square}; }
inline double length(CosineParts a) { return a.square > 0.0 ? a.along / sqrt(a.square) : a.along; }

// Of a side's value, found from its body, on the gradients of its tail. Twice what the loss falls by there is 2N - D.
inline CosineParts tail_fit(double body_g, double body_h, double tail_g, double tail_h, const Penalty& p) {
  const double b = body_h + p.lambda;
  double a = b > 0.0 ? soft(body_g, p.alpha) / b : 0.0;
  if (p.step > 0.0) a = a > p.step ? p.step : a < -p.step ? -p.step : a;
  return {a * tail_g, (a * a) * tail_h};
}
inline double fall(CosineParts a) { return 2.0 * a.along - a.square; }

// Whether a plain split score can reach `bar`, without its division.
inline bool may_beat(Sums l, Sums r, const Penalty& p, double bar) {
  const double gl = (double)l.g, hl = (double)l.h, gr = (double)r.g, hr = (double)r.h, bl = hl + p.lambda,
               br = hr + p.lambda;
  return (gl * gl) * br + (gr * gr) * bl >= (bl * br) * bar;
}

// Under bounds (NUMERICS, rules): a side's best value within them, and the score of any value.
inline double bounded_weight(Sums s, const Penalty& p, double low, double high) {
  double w = -soft((double)s.g, p.alpha) / ((double)s.h + p.lambda);
  if (p.step > 0.0) w = w > p.step ? p.step : w < -p.step ? -p.step : w;
  return w < low ? low : w > high ? high : w;
}
inline double score_at(Sums s, const Penalty& p, double w) {
  const double size = w < 0.0 ? -w : w;
  return -(2.0 * ((double)s.g * w + p.alpha * size) + ((double)s.h + p.lambda) * (w * w));
}

// A split must beat its node by more than rounding can feign; under bounds a score can be negative.
inline double worth(double score) { return score * (score < 0.0 ? 1.0 - 0x1p-40 : 1.0 + 0x1p-40); }

// A leaf's value before shrinkage, from wide sums (NUMERICS 6).
inline double leaf_value(Sums s, const Scale& scale, double lambda, double alpha, double max_step) {
  const double gs = g_scale(scale), hs = h_scale(scale);
  const double t = soft((double)s.g, alpha * gs), b = (double)s.h + lambda * hs;
  if (b == 0.0) return 0.0;
  double v = -t / b * (hs / gs);
  if (max_step > 0.0) v = v > max_step ? max_step : v < -max_step ? -max_step : v;
  return v;
}

}  // namespace sapwood::inline SAPWOOD_ISA
