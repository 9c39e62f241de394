// Asking rows: the size of each row's gradients, and whether, and how often, it counts in a round.
#pragma once
#include "../math/fixed.h"
#include "kernels.h"
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
static void ask_of(const AskArgs& a) {
  for (int64_t i = 0; i < a.n; i++) {
    const Asked row{a.key,
                    a.tie_key,
                    (uint64_t)(a.unit == nullptr ? a.first + i : a.unit[i]),
                    a.size == nullptr ? 0 : a.size[i],
                    a.share == nullptr ? a.subsample : a.share[i]};
    a.factor[i] = Sampler::factor(row, a.bar, a.field);
  }
}

#define SAPWOOD_ENTRY(T) {sizes_of<T>, ask_of<T>},
static constexpr struct {
  void (*sizes)(const SizeArgs&);
  void (*ask)(const AskArgs&);
} SAMPLERS[] = {SAPWOOD_SAMPLERS(SAPWOOD_ENTRY)};
#undef SAPWOOD_ENTRY

static void sizes(const SizeArgs& a) { SAMPLERS[a.sampler].sizes(a); }
static void ask(const AskArgs& a) { SAMPLERS[a.sampler].ask(a); }

}  // namespace sapwood::inline SAPWOOD_ISA
