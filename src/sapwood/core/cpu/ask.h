// Asking rows: the size of each row's gradients, and whether, and how often, it counts in a round.
#pragma once
#include "../math/fixed.h"
#include "kernels.h"
#include "rows.h"
#include "shelf_samplers.inc"  // made by CMake from sampler/*.h: includes them, defines SAPWOOD_SAMPLERS(X)

namespace sapwood::inline SAPWOOD_ISA {

template <class Sampler>
static void sizes_of(const SizeArgs& a) {
  double sum[BLOCK];
  for (int64_t i = 0; i < a.n; i++) sum[i] = 0.0;
  for (int k = 0; k < a.n_outputs; k++) {
    const Pair* q = a.fine + k * a.plane;
    const double unit = a.unit[k];
    if (a.multiple == nullptr)
      for (int64_t i = 0; i < a.n; i++) sum[i] = Sampler::add(sum[i], (double)q[i].g * unit);
    else
      for (int64_t i = 0; i < a.n; i++) sum[i] = Sampler::add(sum[i], (double)q[i].g * (double)a.multiple[i] * unit);
  }
  for (int64_t i = 0; i < a.n; i++) a.size[i] = (uint32_t)rounded(Sampler::size(sum[i], a.field) * a.scale);
}

template <class Sampler>
static void ask_of(const AskArgs& args) {
  const AskArgs a = args;  // own copies: stores of factors cannot change them, so that what is constant leaves the loop
  double field[Sampler::n_fields + 1];
  for (int k = 0; k < Sampler::n_fields; k++) field[k] = a.field[k];
  for (int64_t i = 0; i < a.n; i++) {
    const Asked row{a.key, a.tie_key, (uint64_t)(a.unit == nullptr ? a.first + i : a.unit[i]),
                    a.size == nullptr ? 0 : a.size[i], a.share == nullptr ? a.subsample : a.share[i]};
    a.factor[i] = Sampler::factor(row, a.bar, field);
  }
}

#define SAPWOOD_ENTRY(T) {sizes_of<T>, ask_of<T>},
static constexpr struct {
  void (*sizes)(const SizeArgs&);
  void (*ask)(const AskArgs&);
} SAMPLERS[] = {SAPWOOD_SAMPLERS(SAPWOOD_ENTRY)};
#undef SAPWOOD_ENTRY

// Gathers a block of sampled rows, quantises it as the row pass does, and puts it back.
static void weigh(WeighArgs& a) {
  double g[BLOCK], h[BLOCK], unit[BLOCK];
  Pair fine[BLOCK], coarse[BLOCK], apart[BLOCK];
  int32_t packed[BLOCK], multiple[BLOCK];
  GradientArgs q{};
  q.narrow = a.narrow, q.wide = a.wide, q.fine = fine, q.packed = packed;
  q.multiple = a.multiple != nullptr ? multiple : nullptr, q.coarse = coarse;
  q.apart = a.apart != nullptr ? apart : nullptr;
  q.max_g = a.top, q.max_h = a.top + 1, q.max_search = a.top + 2, q.sum_g = &a.sum_g, q.sum_h = &a.sum_h;
  for (int64_t at = 0; at < a.n; at += BLOCK) {
    const int n = (int)(a.n - at < BLOCK ? a.n - at : BLOCK);
    const int32_t* rows = a.rows + at;
    const double* times = a.times + at;
    for (int i = 0; i < n; i++) g[i] = a.fine[rows[i]].g * times[i], h[i] = a.fine[rows[i]].h * times[i];
    if (a.apart != nullptr)
      for (int i = 0; i < n; i++) unit[i] = a.apart[rows[i]].h * times[i];
    if (a.multiple != nullptr)
      for (int i = 0; i < n; i++) multiple[i] = a.multiple[rows[i]], a.count += multiple[i];
    else a.count += n;
    quantise_block(q, 0, 0, n, g, h, a.apart != nullptr ? unit : h);
    for (int i = 0; i < n; i++) a.weighed_fine[rows[i]] = fine[i];
    for (int i = 0; a.apart != nullptr && i < n; i++) a.weighed_apart[rows[i]] = apart[i];
    if (a.multiple != nullptr)
      for (int i = 0; i < n; i++) a.coarse[rows[i]] = coarse[i];
    else
      for (int i = 0; i < n; i++) a.packed[rows[i]] = packed[i];
  }
}

static void sizes(const SizeArgs& a) { SAMPLERS[a.sampler].sizes(a); }
static void ask(const AskArgs& a) { SAMPLERS[a.sampler].ask(a); }

}  // namespace sapwood::inline SAPWOOD_ISA
