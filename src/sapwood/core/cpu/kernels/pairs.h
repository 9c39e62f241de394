// Ranked lists: places of scores, and pairs of one block of rows (equal scores and labels) with the
// blocks behind it.
//
// A pair adds count * weight * log(1 + e^(-sigma (s_high - s_low))) to the loss; high is the one
// with the larger gain. With e = e^(sigma (s - top)) the probability of a wrong order is e_low /
// (e_high + e_low): one division a pair.
#pragma once
#include "cpu/kernels/kernels.h"
#include "math/real.h"

namespace sapwood::inline SAPWOOD_ISA {

// Sums over a list are made in PAIR_LANES parts, whatever the instruction set.
typedef double Lanes __attribute__((vector_size(8 * PAIR_LANES)));
typedef int64_t LaneMask __attribute__((vector_size(8 * PAIR_LANES)));

typedef int64_t LooseMask __attribute__((vector_size(8 * PAIR_LANES), aligned(8), may_alias));
typedef double LooseLanes __attribute__((vector_size(8 * PAIR_LANES), aligned(8), may_alias));

// so many numbers from x on
static inline const LooseLanes& lanes_at(const double* x) {
  return *(const LooseLanes*)x;
}
static inline LooseLanes& lanes_at(double* x) {
  return *(LooseLanes*)x;
}

static inline double sum_of_lanes(const Lanes& x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

template <PairWeight kind, bool norm>
static void pairs_with(PairArgs& a) {
  const Lanes own_score = a.own_score - Lanes{};
  const Lanes own_gain = a.own_gain - Lanes{};
  const Lanes own_e = a.own_e - Lanes{};
  const LaneMask number = {0, 1, 2, 3, 4, 5, 6, 7};
  Lanes sum_g = {};
  Lanes sum_h = {};
  Lanes sum_size = {};
  for (int64_t at = 0; at < a.n; at += PAIR_LANES) {
    const Lanes gain = lanes_at(a.gain + at);
    const Lanes e = lanes_at(a.e + at);
    const Lanes diff = own_gain - gain;
    const Lanes both = own_e + e;
    Lanes w = diff;
    if constexpr (kind == PairWeight::discounts) {
      w = (diff * (a.own_discount - lanes_at(a.weight + at))) * a.factor;
    }
    if constexpr (kind == PairWeight::within) {
      w = (diff * a.own_discount) * a.factor;
    }
    if constexpr (kind == PairWeight::given) {
      const Lanes given = lanes_at(a.weight + at);
      w = (diff > 0.0 ? given : diff < 0.0 ? -given : Lanes{}) * a.factor;
    }
    Lanes inverse;
    if constexpr (norm) {
      const Lanes far = 0.01 + (own_score - lanes_at(a.score + at));
      const Lanes t = 1.0 / (both * far);
      inverse = t * far;
      w = w * (t * both);
    } else {
      inverse = 1.0 / both;
    }
    const Lanes p = (diff > 0.0 ? e : own_e) * inverse;
    Lanes push = (a.sigma * w) * p;
    // the lanes behind the last block
    if (a.n - at < PAIR_LANES) {
      push = number < a.n - at ? push : Lanes{};
    }
    const Lanes size = push < 0.0 ? -push : push;
    const Lanes bend = (a.sigma * size) * (1.0 - p);
    const Lanes count = lanes_at(a.count + at);
    lanes_at(a.g + at) = lanes_at(a.g + at) + a.own_count * push;
    lanes_at(a.h + at) = lanes_at(a.h + at) + a.own_count * bend;
    sum_g = sum_g + count * push;
    sum_h = sum_h + count * bend;
    sum_size = sum_size + count * size;
  }
  a.sum_g = sum_of_lanes(sum_g);
  a.sum_h = sum_of_lanes(sum_h);
  a.sum_size = sum_of_lanes(sum_size);
}

static void pairs(PairArgs& a) {
  switch (a.kind) {
    case PairWeight::discounts:
      return a.norm ? pairs_with<PairWeight::discounts, true>(a)
                    : pairs_with<PairWeight::discounts, false>(a);
    case PairWeight::within:
      return a.norm ? pairs_with<PairWeight::within, true>(a)
                    : pairs_with<PairWeight::within, false>(a);
    case PairWeight::given:
      return a.norm ? pairs_with<PairWeight::given, true>(a)
                    : pairs_with<PairWeight::given, false>(a);
  }
}

// place (n) OUT: how many scores are larger. n^2 / PAIR_LANES comparisons without a branch: for
// short lists.
static void places(const double* score, int64_t n, int64_t* place) {
  for (int64_t at = 0; at < n; at += PAIR_LANES) {
    const Lanes own = lanes_at(score + at);
    LaneMask larger = {};
    for (int64_t i = 0; i < n; i++) {
      larger = larger - (score[i] > own);
    }
    *(LooseMask*)(place + at) = larger;
  }
}

// e (n) OUT: e^max(sigma (score - top), lowest)
static void list_exp(const double* __restrict score, double top, double sigma, double lowest,
                     int64_t n, double* __restrict e) {
  for (int64_t i = 0; i < n; i++) {
    const double x = sigma * (score[i] - top);
    e[i] = exp(x < lowest ? lowest : x);
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
