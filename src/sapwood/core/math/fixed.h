// Fixed point (NUMERICS 4): power-of-two scales from maxima over rows, rounding half to even.
#pragma once
#include "math/real.h"
#include "math/types.h"

namespace sapwood::inline SAPWOOD_ISA {

constexpr int NARROW = 14, WIDE = 30;  // bits: |q| <= 2^bits

// The smallest e with m <= 2^e, at least -960; 0 for m = 0. `m` is finite and not negative.
inline int exponent_of(double m) {
  if (m == 0.0) {
    return 0;
  }
  const uint64_t u = bits_of(m);
  const int e = (int)(u >> 52) - 1023 + ((u & 0x000fffffffffffffu) != 0);
  return e < -960 ? -960 : e;
}

// -1022 <= e <= 1023
inline double power_of_two(int e) {
  return of_bits((uint64_t)(e + 1023) << 52);
}

// rint(x) for |x| < 2^51, as an integer.
inline int64_t rounded(double x) {
  return (int64_t)(bits_of(x + ROUND) - bits_of(ROUND));
}

// The same for |x| <= 2^62: beyond 2^52 every double is an integer.
inline int64_t rounded62(double x) {
  const double a = x < 0.0 ? -x : x;
  const int64_t m = (int64_t)(a < 0x1p52 ? (a + 0x1p52) - 0x1p52 : a);
  return x < 0.0 ? -m : m;
}

inline double g_scale(const Scale& s) {
  return power_of_two(s.bits - s.g);
}
inline double h_scale(const Scale& s) {
  return power_of_two(s.bits - s.h);
}

// One row's gradient and hessian in fixed point; a positive hessian never becomes 0.
inline int32_t quantise_g(double g, double gs) {
  return (int32_t)rounded(g * gs);
}
inline int32_t quantise_h(double h, double hs) {
  const int32_t q = (int32_t)rounded(h * hs);
  return q == 0 && h > 0.0 ? 1 : q;
}

}  // namespace sapwood::inline SAPWOOD_ISA
