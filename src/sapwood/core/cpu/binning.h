// Binning: the code of a value is the number of cuts below it; NaN has the code n_cuts + 1.
#pragma once
#include "kernels.h"
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace sapwood::inline SAPWOOD_ISA {

// A branchless binary search, 16 values in step so that their loads overlap. `cuts` is padded with +inf to a power of two.
template <class Real, class Code>
static void bin_of(const Real* x, int n, const Real* cuts, int n_cuts, Code* code) {
  int top = 1;
  while (top < n_cuts + 1) top *= 2;  // cuts[0 .. top-1] can be read
  for (int i = 0; i < n; i += 16) {
    const int m = n - i < 16 ? n - i : 16;
    int32_t at[16] = {};
    Real v[16];
    for (int j = 0; j < 16; j++) v[j] = j < m ? x[i + j] : (Real)0;
    for (int step = top / 2; step >= 1; step /= 2)
      for (int j = 0; j < 16; j++) at[j] += cuts[at[j] + step - 1] < v[j] ? step : 0;
    for (int j = 0; j < m; j++) code[i + j] = (Code)(v[j] != v[j] ? n_cuts + 1 : at[j]);
  }
}

constexpr int FEW_CUTS = 12;  // so many are counted one by one, which is plain vector code

template <class Real, class Code>
static void bin_few(const Real* x, int n, const Real* cuts, int n_cuts, Code* code) {
  int32_t count[BLOCK];
  for (int i = 0; i < n; i++) count[i] = x[i] != x[i] ? n_cuts + 1 : 0;  // no comparison with NaN adds to that
  for (int k = 0; k < n_cuts; k++)
    for (int i = 0; i < n; i++) count[i] += cuts[k] < x[i];
  for (int i = 0; i < n; i++) code[i] = (Code)count[i];
}

#if defined(__AVX512BW__)
// The same, whose counts stay in a register.
template <class Code>
static void bin_few(const float* x, int n, const float* cuts, int n_cuts, Code* code) {
  for (int i = 0; i < n; i += 16) {
    const __mmask16 here = (__mmask16)(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
    const __m512 v = _mm512_maskz_loadu_ps(here, x + i);
    __m512i count = _mm512_maskz_set1_epi32(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), n_cuts + 1);
    for (int k = 0; k < n_cuts; k++)
      count = _mm512_mask_add_epi32(count, _mm512_cmp_ps_mask(v, _mm512_set1_ps(cuts[k]), _CMP_GT_OQ), count,
                                    _mm512_set1_epi32(1));
    if constexpr (sizeof(Code) == 1) _mm512_mask_cvtepi32_storeu_epi8(code + i, here, count);
    else _mm512_mask_cvtepi32_storeu_epi16(code + i, here, count);
  }
}

// Two levels of 16-way search: compare with every 16th cut, count, then with the 16 cuts in between.
template <class Code>
static void bin_two_level(const float* x, int n, const float* cuts, int n_cuts, Code* code) {
  const __m512 pivots = _mm512_i32gather_ps(
      _mm512_set_epi32(255, 239, 223, 207, 191, 175, 159, 143, 127, 111, 95, 79, 63, 47, 31, 15), cuts, 4);
  for (int i = 0; i < n; i++) {
    const __m512 v = _mm512_set1_ps(x[i]);
    const int high = __builtin_popcount(_mm512_cmp_ps_mask(pivots, v, _CMP_LT_OQ));
    const int low = __builtin_popcount(_mm512_cmp_ps_mask(_mm512_loadu_ps(cuts + 16 * high), v, _CMP_LT_OQ));
    code[i] = (Code)(x[i] != x[i] ? n_cuts + 1 : 16 * high + low);
  }
}
#endif

template <class Code>
static void bin32(const float* x, int n, const float* cuts, int n_cuts, Code* code) {
  if (n_cuts <= FEW_CUTS) return bin_few(x, n, cuts, n_cuts, code);
#if defined(__AVX512BW__)
  if (n_cuts <= 255) return bin_two_level(x, n, cuts, n_cuts, code);  // cuts padded to 272
#endif
  bin_of(x, n, cuts, n_cuts, code);
}

template <class Code>
static void bin64(const double* x, int n, const double* cuts, int n_cuts, Code* code) {
  if (n_cuts <= FEW_CUTS) return bin_few(x, n, cuts, n_cuts, code);
  bin_of(x, n, cuts, n_cuts, code);
}

static void rank(const double* x, int n, const double* cuts, int n_cuts, uint32_t* code) {
  bin_of(x, n, cuts, n_cuts, code);
}

}  // namespace sapwood::inline SAPWOOD_ISA
