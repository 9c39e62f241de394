// sum += table[index], row by row.
#pragma once
#include <stdint.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace sapwood::inline SAPWOOD_ISA {

// sum (n) += table[number]. Two loads for each store take half the time of a hardware gather, or of single numbers.
template <class Number>
static inline void lookup_add(double* sum, const Number* number, const double* table, int n) {
  int i = 0;
#if defined(__SSE2__)
  constexpr int EACH = 8 / sizeof(Number), BITS = 8 * sizeof(Number);  // numbers in a word; bits of a number
  for (; i + EACH <= n; i += EACH) {
    uint64_t word;
    __builtin_memcpy(&word, number + i, 8);
#pragma GCC unroll 4
    for (int j = 0; j < EACH; j += 2) {
      const Number first = (Number)(word >> j * BITS), second = (Number)(word >> (j + 1) * BITS);
      const __m128d x = _mm_loadh_pd(_mm_load_sd(table + first), table + second);
      _mm_storeu_pd(sum + i + j, _mm_add_pd(_mm_loadu_pd(sum + i + j), x));
    }
  }
#endif
  for (; i < n; i++) sum[i] = sum[i] + table[number[i]];
}

}  // namespace sapwood::inline SAPWOOD_ISA
