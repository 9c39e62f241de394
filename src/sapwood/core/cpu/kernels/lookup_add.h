// sum += table[index], or times a number of each row.
#pragma once
#include <stdint.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace sapwood::inline SAPWOOD_ISA {

// sum (n) += table[number]. Two loads for each store take half the time of a hardware gather, or of
// single numbers.
template <class Number>
static inline void lookup_add(double* sum, const Number* number, const double* table, int n) {
  int i = 0;
#if defined(__SSE2__)
  constexpr int EACH = 8 / sizeof(Number);
  constexpr int BITS = 8 * sizeof(Number);  // numbers in a word; bits of a number
  for (; i + EACH <= n; i += EACH) {
    uint64_t word;
    __builtin_memcpy(&word, number + i, 8);
#pragma GCC unroll 4
    for (int j = 0; j < EACH; j += 2) {
      const Number first = (Number)(word >> j * BITS);
      const Number second = (Number)(word >> (j + 1) * BITS);
      const __m128d x = _mm_loadh_pd(_mm_load_sd(table + first), table + second);
      _mm_storeu_pd(sum + i + j, _mm_add_pd(_mm_loadu_pd(sum + i + j), x));
    }
  }
#endif
  for (; i < n; i++) {
    sum[i] = sum[i] + table[number[i]];
  }
}

// sum (n) += table[number] * z, row by row.
template <class Number>
static inline void lookup_multiply_add(double* sum, const Number* number, const double* table,
                                       const double* z, int n) {
  int i = 0;
#if defined(__SSE2__)
  for (; i + 2 <= n; i += 2) {
    const __m128d x = _mm_loadh_pd(_mm_load_sd(table + number[i]), table + number[i + 1]);
    _mm_storeu_pd(sum + i, _mm_add_pd(_mm_loadu_pd(sum + i), _mm_mul_pd(x, _mm_loadu_pd(z + i))));
  }
#endif
  for (; i < n; i++) {
    sum[i] = sum[i] + table[number[i]] * z[i];
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
