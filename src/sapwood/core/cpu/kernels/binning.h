// Binning: the code of a value is the number of cuts below it; NaN has the code n_cuts + 1.
// transpose16 turns rows into columns before it, interleave turns columns into rows after it.
#pragma once
#include "cpu/kernels/kernels.h"
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace sapwood::inline SAPWOOD_ISA {

static void transpose16(const char* const* rows, int n, float* x, size_t plane) {
  int i = 0;
#if defined(__AVX512BW__)
  for (; i + 16 <= n; i += 16) {
    __m512 a[16];
    __m512 b[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) {
      a[r] = _mm512_loadu_ps(rows[i + r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < 16; r += 2) {
      b[r] = _mm512_unpacklo_ps(a[r], a[r + 1]);
      b[r + 1] = _mm512_unpackhi_ps(a[r], a[r + 1]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4)  // blocks of four columns and four rows
#pragma GCC unroll 2
      for (int k = 0; k < 2; k++) {
        const __m512d low = _mm512_castps_pd(b[r + k]);
        const __m512d high = _mm512_castps_pd(b[r + k + 2]);
        a[r + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
        a[r + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
      }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      const __m512 low = _mm512_shuffle_f32x4(a[k], a[k + 4], 0x88);
      const __m512 high = _mm512_shuffle_f32x4(a[k], a[k + 4], 0xdd);
      const __m512 more_low = _mm512_shuffle_f32x4(a[k + 8], a[k + 12], 0x88);
      const __m512 more_high = _mm512_shuffle_f32x4(a[k + 8], a[k + 12], 0xdd);
      float* to = x + k * plane + i;
      _mm512_storeu_ps(to, _mm512_shuffle_f32x4(low, more_low, 0x88));
      _mm512_storeu_ps(to + 4 * plane, _mm512_shuffle_f32x4(high, more_high, 0x88));
      _mm512_storeu_ps(to + 8 * plane, _mm512_shuffle_f32x4(low, more_low, 0xdd));
      _mm512_storeu_ps(to + 12 * plane, _mm512_shuffle_f32x4(high, more_high, 0xdd));
    }
  }
#endif
  for (; i < n; i++) {
    for (int c = 0; c < RUN; c++) {
      __builtin_memcpy(x + c * plane + i, rows[i] + 4 * c, 4);
    }
  }
}

// WIDTH columns at a time: one store a row instead of WIDTH.
template <class Word, int WIDTH = sizeof(Word)>
static void interleave_words(const uint8_t* const* columns, int n, uint8_t* rows, size_t stride) {
  Word word[BLOCK];
  for (int i = 0; i < n; i++) {
    word[i] = columns[0][i];
  }
  for (int c = 1; c < WIDTH; c++) {
    const uint8_t* code = columns[c];
    for (int i = 0; i < n; i++) {
      word[i] = (Word)(word[i] | (Word)code[i] << (8 * c));
    }
  }
  for (int i = 0; i < n; i++) {
    __builtin_memcpy(rows + i * stride, word + i, WIDTH);
  }
}

static void interleave(const uint8_t* const* columns, int width, int n, uint8_t* rows,
                       size_t stride) {
  int c = 0;
  for (; c + 8 <= width; c += 8) {
    interleave_words<uint64_t>(columns + c, n, rows + c, stride);
  }
  for (; c + 4 <= width; c += 4) {
    interleave_words<uint32_t>(columns + c, n, rows + c, stride);
  }
  for (; c < width; c++) {
    interleave_words<uint8_t>(columns + c, n, rows + c, stride);
  }
}

// Branchless binary search, 16 values in step so that their loads overlap. `cuts` is padded with
// +inf to a power of two.
template <class Real, class Code>
static void bin_of(const Real* x, int n, const Real* cuts, int n_cuts, Code* code) {
  int top = 1;
  while (top < n_cuts + 1) {
    top *= 2;  // cuts[0 .. top-1] can be read
  }
  for (int i = 0; i < n; i += 16) {
    const int m = n - i < 16 ? n - i : 16;
    int32_t at[16] = {};
    Real v[16];
    for (int j = 0; j < 16; j++) {
      v[j] = j < m ? x[i + j] : (Real)0;
    }
    for (int step = top / 2; step >= 1; step /= 2) {
      for (int j = 0; j < 16; j++) {
        at[j] += cuts[at[j] + step - 1] < v[j] ? step : 0;
      }
    }
    for (int j = 0; j < m; j++) {
      code[i + j] = (Code)(v[j] != v[j] ? n_cuts + 1 : at[j]);
    }
  }
}

constexpr int FEW_CUTS = 12;  // up to so many cuts are compared one by one, in plain vector code

template <class Real, class Code>
static void bin_few(const Real* x, int n, const Real* cuts, int n_cuts, Code* code) {
  int32_t count[BLOCK];
  // comparisons with NaN add nothing
  for (int i = 0; i < n; i++) {
    count[i] = x[i] != x[i] ? n_cuts + 1 : 0;
  }
  for (int k = 0; k < n_cuts; k++) {
    for (int i = 0; i < n; i++) {
      count[i] += cuts[k] < x[i];
    }
  }
  for (int i = 0; i < n; i++) {
    code[i] = (Code)count[i];
  }
}

#if defined(__AVX512BW__)
// The same with counts in a register.
template <class Code>
static void bin_few(const float* x, int n, const float* cuts, int n_cuts, Code* code) {
  for (int i = 0; i < n; i += 16) {
    const __mmask16 here = (__mmask16)(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
    const __m512 v = _mm512_maskz_loadu_ps(here, x + i);
    __m512i count = _mm512_maskz_set1_epi32(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), n_cuts + 1);
    for (int k = 0; k < n_cuts; k++) {
      count =
          _mm512_mask_add_epi32(count, _mm512_cmp_ps_mask(v, _mm512_set1_ps(cuts[k]), _CMP_GT_OQ),
                                count, _mm512_set1_epi32(1));
    }
    if constexpr (sizeof(Code) == 1) {
      _mm512_mask_cvtepi32_storeu_epi8(code + i, here, count);
    } else {
      _mm512_mask_cvtepi32_storeu_epi16(code + i, here, count);
    }
  }
}

// Two levels of 16-way search: compare with every 16th cut, count, then with the 16 cuts in
// between.
template <class Code>
static void bin_two_level(const float* __restrict x, int n, const float* __restrict cuts,
                          int n_cuts, Code* __restrict code) {
  const __m512 pivots = _mm512_i32gather_ps(
      _mm512_set_epi32(255, 239, 223, 207, 191, 175, 159, 143, 127, 111, 95, 79, 63, 47, 31, 15),
      cuts, 4);
  auto below = [](__m512 all, __m512 v) {
    return (uint32_t)__builtin_popcount(_cvtmask16_u32(_mm512_cmp_ps_mask(all, v, _CMP_LT_OQ)));
  };
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) {
    const __m512 v = _mm512_set1_ps(x[i]);
    const uint32_t high = 16 * below(pivots, v);
    code[i] = (Code)(high + below(_mm512_loadu_ps(cuts + high), v));
  }
  for (int i = 0; i < n; i++) {
    code[i] = x[i] != x[i] ? (Code)(n_cuts + 1) : code[i];
  }
}
#endif

template <class Code>
static void bin32(const float* x, int n, const float* cuts, int n_cuts, Code* code) {
  if (n_cuts <= FEW_CUTS) {
    return bin_few(x, n, cuts, n_cuts, code);
  }
#if defined(__AVX512BW__)
  if (n_cuts <= 255) {
    return bin_two_level(x, n, cuts, n_cuts, code);  // cuts padded to 272
  }
#endif
  bin_of(x, n, cuts, n_cuts, code);
}

template <class Code>
static void bin64(const double* x, int n, const double* cuts, int n_cuts, Code* code) {
  if (n_cuts <= FEW_CUTS) {
    return bin_few(x, n, cuts, n_cuts, code);
  }
  bin_of(x, n, cuts, n_cuts, code);
}

static void rank(const double* x, int n, const double* cuts, int n_cuts, uint32_t* code) {
  bin_of(x, n, cuts, n_cuts, code);
}

}  // namespace sapwood::inline SAPWOOD_ISA
