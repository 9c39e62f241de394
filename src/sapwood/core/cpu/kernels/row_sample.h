// Row sampling: gradient norms, which rows a round takes with what weight, and the fixed point of
// reweighted rows.
#pragma once
#include "cpu/kernels/gradient_pass.h"
#include "cpu/kernels/kernels.h"
#include "math/fixed.h"
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif
// made by CMake from sampler/*.h: includes them, defines SAPWOOD_SAMPLERS(X)
#include "shelf_samplers.inc"

namespace sapwood::inline SAPWOOD_ISA {

template <class Sampler>
static void gradient_norms_of(const NormArgs& a) {
  double sum[BLOCK];
  for (int64_t i = 0; i < a.n; i++) {
    sum[i] = 0.0;
  }
  for (int k = 0; k < a.n_outputs; k++) {
    const Pair* q = a.leaf_pairs + k * a.plane;
    const double quantum = a.quantum[k];
    if (a.repeats == nullptr) {
      for (int64_t i = 0; i < a.n; i++) {
        sum[i] = Sampler::add(sum[i], (double)q[i].g * quantum);
      }
    } else {
      for (int64_t i = 0; i < a.n; i++) {
        sum[i] = Sampler::add(sum[i], (double)q[i].g * (double)a.repeats[i] * quantum);
      }
    }
  }
  for (int64_t i = 0; i < a.n; i++) {
    a.norm[i] = (uint32_t)rounded(Sampler::norm(sum[i], a.field) * a.scale);
  }
}

static void abs_gradients(const Pair* pairs, int64_t n, uint32_t* norm) {
  for (int64_t i = 0; i < n; i++) {
    norm[i] = abs_gradient(pairs[i]);
  }
}

// factor (n) OUT: the sampling weights of rows [at, at + n); 0: not in the sample
template <class Sampler>
static void sample_rows_of(const SampleArgs& args, int64_t at, int n, double* factor) {
  // copies, which stores to `factor` cannot change: constants are loaded once
  const SampleArgs a = args;
  double field[Sampler::n_fields + 1];
  for (int k = 0; k < Sampler::n_fields; k++) {
    field[k] = a.field[k];
  }
  uint32_t own[BLOCK];
  if (a.leaf_pairs != nullptr) {
    abs_gradients(a.leaf_pairs + at, n, own);
  }
  const uint32_t* norm = a.leaf_pairs != nullptr ? own : a.norm == nullptr ? nullptr : a.norm + at;
  const int64_t position = at - a.shard + a.position;
  auto each = [&](const SampleThreshold& threshold) {
    for (int i = 0; i < n; i++) {
      const int64_t row = at + i;
      const SampleRow sample_row{a.key, a.tie_key,
                                 (uint64_t)(a.group == nullptr ? position + i : a.group[row]),
                                 norm == nullptr ? 0 : norm[i],
                                 a.row_subsample == nullptr ? a.subsample : a.row_subsample[row]};
      factor[i] = Sampler::factor(sample_row, threshold, field);
    }
  };
  if (a.threshold.tie != 0) {
    each(a.threshold);
  } else {
    each({a.threshold.norm, 0, a.threshold.mu});  // a constant tie of 0 saves the second draw
  }
}

#define SAPWOOD_ENTRY(T) {gradient_norms_of<T>, sample_rows_of<T>},
static constexpr struct {
  void (*norms)(const NormArgs&);
  void (*sample)(const SampleArgs&, int64_t at, int n, double* factor);
} SAMPLERS[] = {SAPWOOD_SAMPLERS(SAPWOOD_ENTRY)};
#undef SAPWOOD_ENTRY

// Gathers blocks of sampled rows, multiplies them by their sampling weights, and quantises them as
// the row pass does.
static void requantise(RequantiseArgs& a) {
  double g[BLOCK];
  double h[BLOCK];
  double unit[BLOCK];
  Pair from[BLOCK];
  Pair leaf_pairs[BLOCK];
  Pair narrow_pairs[BLOCK];
  Pair wide_pairs[BLOCK];
  int32_t packed[BLOCK];
  int32_t repeats[BLOCK];
  QuantiseArgs q{};
  q.narrow = a.narrow;
  q.wide = a.wide;
  q.leaf_pairs = leaf_pairs;
  q.packed = packed;
  q.repeats = a.repeats != nullptr ? repeats : nullptr;
  q.search_pairs_narrow = narrow_pairs;
  q.search_pairs_wide = a.search_pairs_wide != nullptr ? wide_pairs : nullptr;
  q.max_g = a.max_bits;
  q.max_h = a.max_bits + 1;
  q.max_search_h = a.max_bits + 2;
  q.sum_g = &a.sum_g;
  q.sum_h = &a.sum_h;
  for (int64_t at = 0; at < a.n; at += BLOCK) {
    const int n = (int)(a.n - at < BLOCK ? a.n - at : BLOCK);
    const int32_t* rows = a.rows + at;
    const double* factor = a.sample_weight + at;
    for (int i = 0; i < n; i++) {
      from[i] = a.leaf_pairs[rows[i]];
    }
    for (int i = 0; i < n; i++) {
      g[i] = from[i].g * factor[i];
      h[i] = from[i].h * factor[i];
    }
    if (a.search_pairs_wide != nullptr) {
      for (int i = 0; i < n; i++) {
        unit[i] = a.search_pairs_wide[rows[i]].h * factor[i];
      }
    }
    if (a.repeats != nullptr) {
      for (int i = 0; i < n; i++) {
        repeats[i] = a.repeats[rows[i]];
        a.count += repeats[i];
      }
    } else {
      a.count += n;
    }
    if (a.gathered) {
      q.leaf_pairs = a.reweighted_leaf_pairs + at;
      q.packed = a.packed + at;
    }
    quantise_block(q, 0, 0, n, g, h, a.search_pairs_wide != nullptr ? unit : h);
    for (int i = 0; !a.gathered && i < n; i++) {
      a.reweighted_leaf_pairs[rows[i]] = leaf_pairs[i];
    }
    for (int i = 0; a.search_pairs_wide != nullptr && i < n; i++) {
      a.reweighted_search_pairs[rows[i]] = wide_pairs[i];
    }
    for (int i = 0; a.repeats != nullptr && i < n; i++) {
      a.search_pairs_narrow[rows[i]] = narrow_pairs[i];
    }
    for (int i = 0; !a.gathered && a.repeats == nullptr && i < n; i++) {
      a.packed[rows[i]] = packed[i];
    }
  }
}

static int64_t select_window(const uint32_t* x, int64_t n, uint32_t base, uint32_t last,
                             uint32_t* kept, int64_t& above, int64_t& below) {
  int64_t count = 0;
  int64_t i = 0;
#if defined(__AVX512BW__)
  const __m512i low = _mm512_set1_epi32((int)base);
  const __m512i high = _mm512_set1_epi32((int)last);
  __m512i sum = _mm512_setzero_si512();
  // few are inside; the next store overwrites what this one writes behind `count`
  for (; i + 16 <= n; i += 16) {
    const __m512i v = _mm512_loadu_si512(x + i);
    const __mmask16 larger = _mm512_cmpgt_epu32_mask(v, high);
    const __mmask16 smaller = _mm512_cmplt_epu32_mask(v, low);
    const __mmask16 inside = (__mmask16) ~(larger | smaller);
    const __m512i less = _mm512_maskz_mov_epi32(smaller, v);
    sum = _mm512_add_epi64(sum, _mm512_and_si512(less, _mm512_set1_epi64(0xffffffff)));
    sum = _mm512_add_epi64(sum, _mm512_srli_epi64(less, 32));
    above += __builtin_popcount(larger);
    if (inside == 0) {
      continue;
    }
    _mm512_storeu_si512(kept + count, _mm512_maskz_compress_epi32(inside, v));
    count += __builtin_popcount(inside);
  }
  below += _mm512_reduce_add_epi64(sum);
#endif
  for (; i < n; i++) {
    kept[count] = x[i];
    count += x[i] - base <= last - base;
    above += x[i] > last;
    below += x[i] < base ? x[i] : 0;
  }
  return count;
}

static void gradient_norms(const NormArgs& a) {
  SAMPLERS[a.sampler].norms(a);
}

static int64_t sample_rows(const SampleArgs& args) {
  const SampleArgs a = args;
  double factor[BLOCK];
  int64_t count = 0;
  for (int64_t at = 0; at < a.n; at += BLOCK) {
    const int n = (int)(a.n - at < BLOCK ? a.n - at : BLOCK);
    const int64_t row = a.first + at;
    if (!a.all_rows) {
      SAMPLERS[a.sampler].sample(a, row, n, factor);
    }
    for (int i = 0; a.all_rows && i < n; i++) {
      factor[i] = 1.0;
    }
    for (int i = 0; a.repeats != nullptr && i < n; i++) {
      factor[i] = a.repeats[row + i] > 0 ? factor[i] : 0.0;
    }
    const int32_t id = (int32_t)(row - a.shard);
    int i = 0;
#if defined(__AVX512BW__)
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    // whole vectors are stored: what lies behind `count` is overwritten later
    for (; i + 16 <= n; i += 16) {
      const __m512d low = _mm512_loadu_pd(factor + i);
      const __m512d high = _mm512_loadu_pd(factor + i + 8);
      const __m512d zero = _mm512_setzero_pd();
      const __mmask8 l = _mm512_cmp_pd_mask(low, zero, _CMP_GT_OQ);
      const __mmask8 h = _mm512_cmp_pd_mask(high, zero, _CMP_GT_OQ);
      const __mmask16 in = (__mmask16)(l | h << 8);
      const __m512i ids = _mm512_add_epi32(_mm512_set1_epi32(id + i), lanes);
      _mm512_storeu_si512(a.rows + count, _mm512_maskz_compress_epi32(in, ids));
      if (a.sample_weight != nullptr) {
        _mm512_storeu_pd(a.sample_weight + count, _mm512_maskz_compress_pd(l, low));
        _mm512_storeu_pd(a.sample_weight + count + __builtin_popcount(l),
                         _mm512_maskz_compress_pd(h, high));
      }
      count += __builtin_popcount(in);
    }
#endif
    for (; i < n; i++) {
      a.rows[count] = id + i;
      if (a.sample_weight != nullptr) {
        a.sample_weight[count] = factor[i];
      }
      count += factor[i] > 0.0;
    }
  }
  return count;
}

}  // namespace sapwood::inline SAPWOOD_ISA
