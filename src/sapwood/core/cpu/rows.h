// The row pass: pending leaf values into scores, scores into gradients, gradients into fixed point.
//
//   score --(+ value[leaf])--> score --objective--> g, h --(* weight)--> max |g|, max h --> packed, fine
//
// Blocks of rows pass through every stage while they are in L1; every stage is a plain loop that compilers turn into vectors.
#pragma once
#include "../math/fixed.h"
#include "kernels.h"
#include "shelf_objectives.inc"  // made by CMake from objective/*.h: includes them, defines SAPWOOD_OBJECTIVES(X)

namespace sapwood::inline SAPWOOD_ISA {

static void add_leaves(double* score, const LeafNumbers& leaf, int64_t first, const double* value, int64_t n) {
  const uint8_t* narrow = (const uint8_t*)leaf.data + first;
  const uint16_t* wide = (const uint16_t*)leaf.data + first;
  if (leaf.wide)
    for (int64_t i = 0; i < n; i++) score[i] = score[i] + value[wide[i]];
  else
    for (int64_t i = 0; i < n; i++) score[i] = score[i] + value[narrow[i]];
}

static void softmax_block(const double* score, int64_t plane, int n_outputs, int n, double* p, double* top,
                          double* total) {
  for (int i = 0; i < n; i++) top[i] = score[i], total[i] = 0.0;
  for (int k = 1; k < n_outputs; k++)
    for (int i = 0; i < n; i++) top[i] = score[k * plane + i] > top[i] ? score[k * plane + i] : top[i];
  for (int k = 0; k < n_outputs; k++)
    for (int i = 0; i < n; i++) {
      const double z = exp(score[k * plane + i] - top[i]);
      p[k * BLOCK + i] = z;
      total[i] = total[i] + z;
    }
  for (int k = 0; k < n_outputs; k++)
    for (int i = 0; i < n; i++) p[k * BLOCK + i] = p[k * BLOCK + i] / total[i];
}

template <class Objective>
static void derive(const double* score, const double* p, const double* label, int k, int n_outputs, int n, double* g,
                   double* h) {
  if constexpr (Objective::pointwise) {
    for (int i = 0; i < n; i++) Objective::grad_hess(score[i], label[i], g[i], h[i]);
  } else {
    const double factor = n_outputs > 1 ? (double)n_outputs / (double)(n_outputs - 1) : 1.0;
    for (int i = 0; i < n; i++) Objective::grad_hess(p[k * BLOCK + i], label[i] == (double)k, factor, g[i], h[i]);
  }
}

// Fixed point of one block; the maxima are those of integer bits, since a float maximum would not become vector code.
static void quantise_block(const GradientArgs& a, int k, int64_t at, int n, const double* g, const double* h) {
  uint64_t top_g = a.max_g[k], top_h = a.max_h[k];
  for (int i = 0; i < n; i++) {
    const uint64_t bg = bits_of(g[i]) & 0x7fffffffffffffffu, bh = bits_of(h[i]) & 0x7fffffffffffffffu;
    top_g = (int64_t)bg > (int64_t)top_g ? bg : top_g;
    top_h = (int64_t)bh > (int64_t)top_h ? bh : top_h;
  }
  a.max_g[k] = top_g, a.max_h[k] = top_h;
  const double gs = g_scale(a.wide[k]), hs = h_scale(a.wide[k]);
  Pair* fine = a.fine + k * a.plane + at;
  for (int i = 0; i < n; i++) fine[i] = {quantise_g(g[i], gs), quantise_h(h[i], hs)};
  const double ngs = g_scale(a.narrow[k]), nhs = h_scale(a.narrow[k]);
  int32_t* packed = a.packed + k * a.plane + at;
  int64_t sum_g = 0, sum_h = 0;
  if (a.multiple == nullptr) {
    uint32_t part_g = 0,
             part_h = 0;  // a block's sums fit: 512 * 2^14; unsigned, since scales of last time may be too large
    for (int i = 0; i < n; i++) {
      const uint32_t qg = (uint32_t)quantise_g(g[i], ngs), qh = (uint32_t)quantise_h(h[i], nhs);
      packed[i] = (int32_t)((qg << 16) + qh);
      part_g += (int32_t)qg < 0 ? 0u - qg : qg;
      part_h += qh;
    }
    sum_g = part_g, sum_h = part_h;
  } else {
    Pair* coarse = a.coarse + k * a.plane + at;
    for (int i = 0; i < n; i++) {
      const int32_t qg = quantise_g(g[i], ngs), qh = quantise_h(h[i], nhs);
      coarse[i] = {qg, qh};
      const int64_t w = a.multiple[at + i];
      sum_g += w * (qg < 0 ? -(int64_t)qg : qg);
      sum_h += w * qh;
    }
  }
  a.sum_g[k] += sum_g;
  a.sum_h[k] += sum_h;
}

template <class Objective>
static void gradients_of(const GradientArgs& a) {
  double* p = a.scratch;
  double *g = p + (int64_t)a.n_outputs * BLOCK, *h = g + BLOCK;
  for (int64_t at = 0; at < a.n; at += BLOCK) {
    const int n = (int)(a.n - at < BLOCK ? a.n - at : BLOCK);
    for (int k = 0; k < a.n_outputs; k++)
      if (a.value[k] != nullptr) add_leaves(a.score + k * a.plane + at, a.leaf[k], a.first + at, a.value[k], n);
    if (!Objective::pointwise) softmax_block(a.score + at, a.plane, a.n_outputs, n, p, g, h);
    for (int k = 0; k < a.n_outputs; k++) {
      derive<Objective>(a.score + k * a.plane + at, p, a.label + at, k, a.n_outputs, n, g, h);
      if (a.factor != nullptr)
        for (int i = 0; i < n; i++) g[i] = g[i] * a.factor[at + i], h[i] = h[i] * a.factor[at + i];
      quantise_block(a, k, at, n, g, h);
    }
  }
}

static void gradients(const GradientArgs& a) {
  using Pass = void (*)(const GradientArgs&);
#define SAPWOOD_PASS(type) gradients_of<type>,
  static constexpr Pass passes[] = {SAPWOOD_OBJECTIVES(SAPWOOD_PASS)};
#undef SAPWOOD_PASS
  passes[a.objective](a);
}

// raw scores (n, n_outputs) to predictions: kind 0 identity, 1 sigmoid, 2 softmax.
static void link(int kind, const double* raw, double* out, int64_t n, int n_outputs) {
  if (kind == 2) {
    for (int64_t i = 0; i < n; i++) {
      const double* s = raw + i * n_outputs;
      double* p = out + i * n_outputs;
      double top = s[0], total = 0.0;
      for (int k = 1; k < n_outputs; k++) top = s[k] > top ? s[k] : top;
      for (int k = 0; k < n_outputs; k++) p[k] = exp(s[k] - top);
      for (int k = 0; k < n_outputs; k++) total = total + p[k];
      for (int k = 0; k < n_outputs; k++) p[k] = p[k] / total;
    }
    return;
  }
  for (int64_t i = 0; i < n * n_outputs; i++) out[i] = kind == 1 ? sigmoid(raw[i]) : raw[i];
}

}  // namespace sapwood::inline SAPWOOD_ISA
