// Pairs of a ranked list: one block of rows (equal scores and labels) against the blocks behind it.
//
// A pair adds count * weight * log(1 + e^(-sigma (s_high - s_low))) to the loss; high is the one with the larger gain.
// With e = e^(sigma (s - top)) the probability of a wrong order is e_low / (e_high + e_low): one division a pair.
#pragma once
#include "cpu/kernels/kernels.h"

namespace sapwood::inline SAPWOOD_ISA {

constexpr int PAIR_LANES = 8;  // sums over a list are made in so many parts, whatever the instruction set

static double sum_of_lanes(const double* x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

// += sums of count * x over the lanes
static void add_lanes(const double* __restrict count, const double* __restrict x, int n, double* __restrict lanes) {
  int at = 0;
  for (; at + PAIR_LANES <= n; at += PAIR_LANES)
    for (int lane = 0; lane < PAIR_LANES; lane++) lanes[lane] = lanes[lane] + count[at + lane] * x[at + lane];
  for (int lane = 0; at + lane < n; lane++) lanes[lane] = lanes[lane] + count[at + lane] * x[at + lane];
}

template <PairWeight kind, bool norm>
static void pairs_with(PairArgs& a) {
  double sum_g[PAIR_LANES] = {}, sum_h[PAIR_LANES] = {}, sum_size[PAIR_LANES] = {};
  double push[BLOCK], size[BLOCK], bend[BLOCK];
  const double own_score = a.own_score, own_gain = a.own_gain, own_e = a.own_e, own_discount = a.own_discount;
  const double sigma = a.sigma, factor = a.factor, own_count = a.own_count;
  for (int64_t from = 0; from < a.n; from += BLOCK) {
    const int n = (int)(a.n - from < BLOCK ? a.n - from : BLOCK);
    const double* __restrict score = a.score + from, * __restrict gain = a.gain + from, * __restrict e = a.e + from;
    const double* __restrict count = a.count + from, * __restrict weight = a.weight + from;
    double* __restrict g = a.g + from, * __restrict h = a.h + from;
    for (int b = 0; b < n; b++) {
      const double diff = own_gain - gain[b], both = own_e + e[b];
      double w = diff;
      if constexpr (kind == PairWeight::discounts) w = (diff * (own_discount - weight[b])) * factor;
      if constexpr (kind == PairWeight::within) w = (diff * own_discount) * factor;
      if constexpr (kind == PairWeight::given) w = (diff > 0.0 ? weight[b] : diff < 0.0 ? -weight[b] : 0.0) * factor;
      double inverse;
      if constexpr (norm) {
        const double far = 0.01 + (own_score - score[b]), t = 1.0 / (both * far);
        inverse = t * far, w = w * (t * both);
      } else {
        inverse = 1.0 / both;
      }
      const double p = (diff > 0.0 ? e[b] : own_e) * inverse, lambda = (sigma * w) * p;
      push[b] = lambda, size[b] = lambda < 0.0 ? -lambda : lambda, bend[b] = (sigma * size[b]) * (1.0 - p);
    }
    for (int b = 0; b < n; b++) g[b] = g[b] + own_count * push[b];
    for (int b = 0; b < n; b++) h[b] = h[b] + own_count * bend[b];
    add_lanes(count, push, n, sum_g), add_lanes(count, bend, n, sum_h), add_lanes(count, size, n, sum_size);
  }
  a.sum_g = sum_of_lanes(sum_g), a.sum_h = sum_of_lanes(sum_h), a.sum_size = sum_of_lanes(sum_size);
}

static void pairs(PairArgs& a) {
  switch (a.kind) {
    case PairWeight::discounts:
      return a.norm ? pairs_with<PairWeight::discounts, true>(a) : pairs_with<PairWeight::discounts, false>(a);
    case PairWeight::within:
      return a.norm ? pairs_with<PairWeight::within, true>(a) : pairs_with<PairWeight::within, false>(a);
    case PairWeight::given:
      return a.norm ? pairs_with<PairWeight::given, true>(a) : pairs_with<PairWeight::given, false>(a);
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
