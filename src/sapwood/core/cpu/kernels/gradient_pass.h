// The row pass: pending leaf values into scores, scores into gradients, gradients into fixed point.
//
//   score --(+ value[leaf])--> score --objective--> g, h --(* weight)--> max |g|, max h --> packed, leaf_pairs
//
// A block of rows passes through all stages while it is in L1. Every stage is a plain loop that
// compilers vectorise.
#pragma once
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/lookup_add.h"
#include "math/fixed.h"
#include "math/link.h"
// made by CMake from objective/*.h: includes them, defines SAPWOOD_OBJECTIVES(X)
#include "shelf_objectives.inc"

namespace sapwood::inline SAPWOOD_ISA {

static void add_leaf_values(double* score, const LeafIds& leaf, int64_t first, const double* value,
                            int n) {
  if (leaf.wide) {
    lookup_add(score, (const uint16_t*)leaf.data + first, value, n);
  } else {
    lookup_add(score, (const uint8_t*)leaf.data + first, value, n);
  }
}

// e^x of a block, a loop for each step: a single loop over all steps keeps few vectors in flight
// (1.3 to 1.8 x slower). With AVX-512 a clamp is one instruction, and so is the scaling, which also
// rounds once.
static void exp_block(double* x, int n) {
  double k[BLOCK];
  int whole = 0;  // numbers in whole vectors
#if defined(__AVX512F__)
  for (; whole + 8 <= n; whole += 8) {
    const __m512d round = _mm512_set1_pd(ROUND);
    const __m512d above = _mm512_max_pd(_mm512_set1_pd(EXP_LOW), _mm512_loadu_pd(x + whole));
    const __m512d at = _mm512_min_pd(_mm512_set1_pd(EXP_HIGH), above);
    const __m512d power =
        _mm512_sub_pd(_mm512_add_pd(_mm512_mul_pd(at, _mm512_set1_pd(LOG2E)), round), round);
    const __m512d rest = _mm512_sub_pd(at, _mm512_mul_pd(power, _mm512_set1_pd(LN2_HI)));
    _mm512_storeu_pd(x + whole, _mm512_sub_pd(rest, _mm512_mul_pd(power, _mm512_set1_pd(LN2_LO))));
    _mm512_storeu_pd(k + whole, power);
  }
#endif
  for (int i = whole; i < n; i++) {
    x[i] = exp_rest(x[i], k[i]);
  }
  for (int i = 0; i < n; i++) {
    x[i] = exp_tail(x[i]);
  }
  for (int i = whole; i < n; i++) {
    x[i] = exp_scaled(x[i], k[i]);
  }
#if defined(__AVX512F__)
  for (int i = 0; i < whole; i += 8) {
    const __m512d e = _mm512_add_pd(_mm512_set1_pd(1.0), _mm512_loadu_pd(x + i));
    _mm512_storeu_pd(x + i, _mm512_scalef_pd(e, _mm512_loadu_pd(k + i)));
  }
#endif
}

static void exp_minus_abs(const double* s, int n, double* z) {
  for (int i = 0; i < n; i++) {
    z[i] = s[i] < 0.0 ? s[i] : -s[i];
  }
  exp_block(z, n);
}

static void sigmoid_block(const double* s, int n, double* p) {
  exp_minus_abs(s, n, p);
  for (int i = 0; i < n; i++) {
    p[i] = sigmoid_of(s[i], p[i]);
  }
}

template <class Objective>
static void grad_hess_block(const double* score, const double* label, const double* field, int n,
                            double* g, double* h) {
  if constexpr (requires(double x) { Objective::of_sigmoid(x, x, x, x); }) {
    exp_minus_abs(score, n, g);
    for (int i = 0; i < n; i++) {
      Objective::of_sigmoid(sigmoid_of(score[i], g[i]), label[i], g[i], h[i]);
    }
  } else {
    for (int i = 0; i < n; i++) {
      Objective::grad_hess(score[i], label[i], field, g[i], h[i]);
    }
  }
}

// e^(score - top) of an output's block.
static void softmax_output(const double* score, int n, const double* top, double* p) {
  for (int i = 0; i < n; i++) {
    p[i] = score[i] - top[i];
  }
  exp_block(p, n);
}

static void softmax_block(const double* score, int64_t plane, int n_outputs, int n, double* p,
                          double* top, double* total) {
  for (int i = 0; i < n; i++) {
    top[i] = score[i];
    total[i] = 0.0;
  }
  for (int k = 1; k < n_outputs; k++) {
    for (int i = 0; i < n; i++) {
      top[i] = score[k * plane + i] > top[i] ? score[k * plane + i] : top[i];
    }
  }
  for (int k = 0; k < n_outputs; k++) {
    double* z = p + k * BLOCK;
    softmax_output(score + k * plane, n, top, z);
    for (int i = 0; i < n; i++) {
      total[i] = total[i] + z[i];
    }
  }
  for (int k = 0; k < n_outputs; k++) {
    for (int i = 0; i < n; i++) {
      p[k * BLOCK + i] = p[k * BLOCK + i] / total[i];
    }
  }
}

// The probabilities of a block; in a second pass those of some outputs, where the sums of the first
// are kept.
static void probabilities(const GradientArgs& a, int64_t at, int n, double* p, double* top,
                          double* total) {
  const bool kept = a.softmax_top != nullptr;
  if (kept) {
    top = a.softmax_top + at;
    total = a.softmax_total + at;
  }
  if (a.again == nullptr || !kept) {
    return softmax_block(a.score + at, a.plane, a.n_outputs, n, p, top, total);
  }
  for (int k = 0; k < a.n_outputs; k++) {
    if (a.again[k] == 0) {
      continue;
    }
    double* z = p + k * BLOCK;
    softmax_output(a.score + k * a.plane + at, n, top, z);
    for (int i = 0; i < n; i++) {
      z[i] = z[i] / total[i];
    }
  }
}

template <class Objective>
static void derive(const GradientArgs& a, const double* label, const double* p, int k, int64_t at,
                   int n, double* g, double* h) {
  const double* score = a.score + k * a.plane + at;
  const double* field = a.field + k * a.n_fields;
  if constexpr (Objective::pointwise) {
    grad_hess_block<Objective>(score, label, field, n, g, h);
  } else {
    const double factor = a.n_outputs > 1 ? (double)a.n_outputs / (double)(a.n_outputs - 1) : 1.0;
    for (int i = 0; i < n; i++) {
      Objective::of_probability(p[k * BLOCK + i], label[i] == (double)k, factor, g[i], h[i]);
    }
  }
}

// The maximum of the bits of |x|, as integers: compilers do not vectorise a maximum of floats.
static uint64_t max_abs_bits(uint64_t top, const double* x, int n) {
  int64_t most = (int64_t)top;
  for (int i = 0; i < n; i++) {
    const int64_t b = (int64_t)(bits_of(x[i]) & 0x7fffffffffffffffu);
    most = b > most ? b : most;
  }
  return (uint64_t)most;
}

static void clear_rows(const uint8_t* keep, const int32_t* count, int n, double* x) {
  for (int i = 0; i < n && keep != nullptr; i++) {
    x[i] = keep[i] != 0 ? x[i] : 0.0;
  }
  for (int i = 0; i < n && count != nullptr; i++) {
    x[i] = count[i] > 0 ? x[i] : 0.0;
  }
}

static void to_fixed(const double* x, double scale, int64_t* q, int n) {
  for (int i = 0; i < n; i++) {
    q[i] = rounded62(x[i] * scale);
  }
}

static void quantise_pairs(const double* g, const double* h, int n, const Scale& scale, Pair* out) {
  const double gs = g_scale(scale);
  const double hs = h_scale(scale);
  for (int i = 0; i < n; i++) {
    out[i] = {quantise_g(g[i], gs), quantise_h(h[i], hs)};
  }
}

// Fixed point of one block. h: hessians of the leaf values, search: those of the split search;
// often the same array.
static void quantise_block(const QuantiseArgs& a, int k, int64_t at, int n, const double* g,
                           const double* h, const double* search) {
  a.max_g[k] = max_abs_bits(a.max_g[k], g, n);
  a.max_h[k] = max_abs_bits(a.max_h[k], h, n);
  a.max_search_h[k] = search == h ? a.max_h[k] : max_abs_bits(a.max_search_h[k], search, n);
  const int64_t row = k * a.plane + at;
  quantise_pairs(g, h, n, a.wide[k], a.leaf_pairs + row);
  if (a.search_pairs_wide != nullptr) {
    quantise_pairs(g, search, n, {WIDE, a.narrow[k].g, a.narrow[k].h}, a.search_pairs_wide + row);
  }
  if (a.packed == nullptr) {
    return;
  }
  const double ngs = g_scale(a.narrow[k]);
  const double nhs = h_scale(a.narrow[k]);
  int32_t* packed = a.packed + row;
  int64_t sum_g = 0;
  int64_t sum_h = 0;
  if (a.repeats == nullptr) {
    // A block's sums fit: 512 * 2^14. Unsigned, since the scales of the last pass may be too small
    // and overflow.
    uint32_t part_g = 0;
    uint32_t part_h = 0;
    for (int i = 0; i < n; i++) {
      const uint32_t qg = (uint32_t)quantise_g(g[i], ngs);
      const uint32_t qh = (uint32_t)quantise_h(search[i], nhs);
      packed[i] = (int32_t)((qg << 16) + qh);
      part_g += (int32_t)qg < 0 ? 0u - qg : qg;
      part_h += qh;
    }
    sum_g = part_g;
    sum_h = part_h;
  } else {
    Pair* pairs = a.search_pairs_narrow + row;
    for (int i = 0; i < n; i++) {
      const int32_t qg = quantise_g(g[i], ngs);
      const int32_t qh = quantise_h(search[i], nhs);
      pairs[i] = {qg, qh};
      const int64_t w = a.repeats[at + i];
      sum_g += w * (qg < 0 ? -(int64_t)qg : qg);
      sum_h += w * qh;
    }
  }
  a.sum_g[k] += sum_g;
  a.sum_h[k] += sum_h;
}

static void quantise(const QuantiseArgs& a, int64_t at, int n, const double* g, const double* h) {
  quantise_block(a, 0, at, n, g, h, h);
}

// Output by output: the order in which a row's numbers are added.
static void project(const ProjectArgs& a) {
  for (int i = 0; i <= a.n_sums; i++) {
    double* to = i < a.n_sums ? a.g + i * a.plane : a.h;
    for (int r = 0; r < a.n; r++) {
      to[r] = 0.0;
    }
  }
  for (int k = 0; k < a.n_outputs; k++) {
    const Pair* from = a.pairs[k] + a.at;
    for (int r = 0; r < a.n; r++) {
      a.h[r] = a.h[r] + (double)from[r].h * a.unit[k];
    }
    for (int i = 0; i < a.n_sums; i++) {
      double* to = a.g + i * a.plane;
      const double by = a.factor[i * a.n_outputs + k];
      for (int r = 0; r < a.n; r++) {
        to[r] = to[r] + (double)from[r].g * by;
      }
    }
  }
  for (int r = 0; r < a.n; r++) {
    a.h[r] = a.h[r] / a.n_outputs;
  }
}

template <class Objective>
static void gradients_of(const GradientArgs& a) {
  double* p = a.scratch;
  double* g = p + (int64_t)a.n_outputs * BLOCK;
  double* h = g + BLOCK;
  double* unit = h + BLOCK;
  for (int64_t at = 0; at < a.n; at += BLOCK) {
    const int n = (int)(a.n - at < BLOCK ? a.n - at : BLOCK);
    for (int k = 0; k < a.n_outputs; k++) {
      if (a.leaf_value[k] != nullptr) {
        add_leaf_values(a.score + k * a.plane + at, a.leaf[k], a.first + at, a.leaf_value[k], n);
      }
    }
    const double* label = a.label + at;
    double of_bytes[BLOCK];
    if (a.byte_label != nullptr) {
      for (int i = 0; i < n; i++) {
        of_bytes[i] = a.byte_label[at + i];
      }
      label = of_bytes;
    }
    if (!Objective::pointwise && a.given_g == nullptr) {
      probabilities(a, at, n, p, g, h);
    }
    for (int k = 0; k < a.n_outputs; k++) {
      if (a.again != nullptr && a.again[k] == 0) {
        continue;
      }
      if (a.given_g == nullptr) {
        derive<Objective>(a, label + k * a.label_plane, p, k, at, n, g, h);
      } else {
        for (int i = 0; i < n; i++) {
          g[i] = a.given_g[k * a.plane + at + i];
          h[i] = a.given_h[k * a.plane + at + i];
        }
      }
      const double* search = a.unit_hessian_search && !a.unit_hessian_leaf ? unit : h;
      if (search == unit) {
        for (int i = 0; i < n; i++) {
          unit[i] = a.weight != nullptr ? a.weight[at + i] : 1.0;
        }
      }
      if (a.unit_hessian_leaf) {
        for (int i = 0; i < n; i++) {
          h[i] = 1.0;
        }
      }
      if (a.weight != nullptr) {
        for (int i = 0; i < n; i++) {
          g[i] = g[i] * a.weight[at + i];
          h[i] = h[i] * a.weight[at + i];
        }
      }
      quantise_block(a, k, at, n, g, h, search);
    }
  }
}

template <class Objective>
static void evaluate_of(const double* field, const double* score, const double* label, int n,
                        LossGradHess out) {
  if (out.loss == nullptr) {
    return grad_hess_block<Objective>(score, label, field, n, out.g, out.h);
  }
  double* __restrict loss = out.loss;
  double* __restrict g = out.g;
  double* __restrict h = out.h;  // one loop, in which loss and gradient may share an exp
  for (int i = 0; i < n; i++) {
    Objective::grad_hess(score[i], label[i], field, g[i], h[i]);
    loss[i] = Objective::loss(score[i], label[i], field);
  }
}

template <class Objective>
static void knots_of(const double* field, const double* score, const double* label, int n,
                     double* at, double* mass, double* level) {
  for (int i = 0; i < n; i++) {
    const Knot k = Objective::knot(score[i], label[i], field);
    at[i] = k.at;
    mass[i] = k.mass;
    level[i] = k.level;
  }
}

#define SAPWOOD_ENTRY(T) {gradients_of<T>, evaluate_of<T>, knots_of<T>},
static constexpr struct {
  void (*gradients)(const GradientArgs&);
  void (*evaluate)(const double*, const double*, const double*, int, LossGradHess);
  void (*knots)(const double*, const double*, const double*, int, double*, double*, double*);
} OBJECTIVES[] = {SAPWOOD_OBJECTIVES(SAPWOOD_ENTRY)};
#undef SAPWOOD_ENTRY

static void gradients(const GradientArgs& a) {
  OBJECTIVES[a.objective].gradients(a);
}

static void evaluate(int objective, const double* field, const double* score, const double* label,
                     int n, LossGradHess out) {
  OBJECTIVES[objective].evaluate(field, score, label, n, out);
}

static void knots(int objective, const double* field, const double* score, const double* label,
                  int n, double* at, double* mass, double* level) {
  OBJECTIVES[objective].knots(field, score, label, n, at, mass, level);
}

static void margins(const double* score, int64_t plane, int n_outputs, int k, int n,
                    double* margin) {
  double top[BLOCK];
  double total[BLOCK];
  for (int at = 0; at < n; at += BLOCK) {  // row by row in the inner loops, for SIMD
    const int m = n - at < BLOCK ? n - at : BLOCK;
    for (int i = 0; i < m; i++) {
      top[i] = -INF;
      total[i] = 0.0;
    }
    for (int j = 0; j < n_outputs; j++) {
      const double* other = score + j * plane + at;
      for (int i = 0; i < m && j != k; i++) {
        top[i] = other[i] > top[i] ? other[i] : top[i];
      }
    }
    for (int j = 0; j < n_outputs; j++) {
      const double* other = score + j * plane + at;
      for (int i = 0; i < m && j != k; i++) {
        total[i] = total[i] + exp(other[i] - top[i]);
      }
    }
    for (int i = 0; i < m; i++) {
      margin[at + i] = (score[k * plane + at + i] - top[i]) - log(total[i]);
    }
  }
}

// raw scores (n, n_outputs) to predictions, by a link of math/types.h
static void apply_link(int kind, const double* raw, double* out, int64_t n, int n_outputs) {
  const int64_t all = n * n_outputs;
  auto blocks = [&](auto&& of) {
    double block[BLOCK];  // raw and out may be the same
    for (int64_t at = 0; at < all; at += BLOCK) {
      const int m = (int)(all - at < BLOCK ? all - at : BLOCK);
      for (int i = 0; i < m; i++) {
        block[i] = raw[at + i];
      }
      of(block, m, out + at);
    }
  };
  if ((Link)kind == Link::sigmoid) {
    return blocks(sigmoid_block);
  }
  if ((Link)kind == Link::exp) {
    return blocks([](double* x, int m, double* e) {
      exp_block(x, m);
      for (int i = 0; i < m; i++) {
        e[i] = x[i];
      }
    });
  }
  for (int64_t i = 0; i < n; i++) {
    link_row((Link)kind, raw + i * n_outputs, out + i * n_outputs, n_outputs);
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
