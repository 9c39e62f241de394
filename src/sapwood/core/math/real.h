// exp, log, log1p within 1 ulp of the exact value, expm1 and softplus within 2, sigmoid and tanh
// within 3.
// They use only + - * /, so every compiler gives the same bits. Enters: a float64. Leaves: a
// float64. tests/spec/reference/real.py repeats these operations in NumPy, in this order.
#pragma once
#include <stdint.h>

namespace sapwood::inline SAPWOOD_ISA {

inline uint64_t bits_of(double x) {
  return __builtin_bit_cast(uint64_t, x);
}
inline double of_bits(uint64_t u) {
  return __builtin_bit_cast(double, u);
}

inline double sqrt(double x) {  // rounded correctly by every compiler
#ifdef __CUDACC_RTC__
  return ::sqrt(x);
#else
  return __builtin_sqrt(x);
#endif
}

// Integers in the same order as the numbers; both zeros are equal. float32 needs half the digits.
inline uint64_t ordered(double x) {
  const uint64_t u = bits_of(x + 0.0);  // -0.0 is 0.0
  return u >> 63 ? ~u : u | 0x8000000000000000u;
}
inline double unordered(uint64_t u) {
  return of_bits(u >> 63 ? u & 0x7fffffffffffffffu : ~u);
}
inline uint32_t ordered(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x + 0.0f);
  return u >> 31 ? ~u : u | 0x80000000u;
}
inline double unordered(uint32_t u) {
  return __builtin_bit_cast(float, u >> 31 ? u & 0x7fffffffu : ~u);
}

// adding and subtracting it rounds |x| < 2^51 to an integer, half to even
constexpr double ROUND = 0x1.8p52;
// k * LN2_HI is exact for |k| < 2^20
constexpr double LN2_HI = 0x1.62e42feep-1, LN2_LO = 0x1.a39ef35793c76p-33;
constexpr double LN2 = 0x1.62e42fefa39efp-1;
constexpr double LOG2E = 0x1.71547652b82fep0;
constexpr double EXP_LOW = -746.0, EXP_HIGH = 710.0;  // e^x is 0 below, inf above

// r + r^2 P(r), the Taylor series of e^r - 1 up to r^13; |r| <= ln(2)/2 leaves an error of 2^-58.
inline double exp_tail(double r) {
  double p = 0x1.6124613a86d09p-33;  // 1/13!
  p = p * r + 0x1.1eed8eff8d898p-29;
  p = p * r + 0x1.ae64567f544e4p-26;
  p = p * r + 0x1.27e4fb7789f5cp-22;
  p = p * r + 0x1.71de3a556c734p-19;
  p = p * r + 0x1.a01a01a01a01ap-16;
  p = p * r + 0x1.a01a01a01a01ap-13;
  p = p * r + 0x1.6c16c16c16c17p-10;
  p = p * r + 0x1.1111111111111p-7;
  p = p * r + 0x1.5555555555555p-5;
  p = p * r + 0x1.5555555555555p-3;
  p = p * r + 0.5;
  return r + (r * r) * p;
}

// e^x = 2^k e^r; `shifted` is k + ROUND. The scaling is done in two halves, so that overflow and
// subnormal results are right. There are no branches, so that a loop over rows becomes vector code.
inline double exp_rest(double x, double& shifted) {  // r
  x = x < EXP_LOW ? EXP_LOW : x;
  x = x > EXP_HIGH ? EXP_HIGH : x;
  shifted = x * LOG2E + ROUND;
  const double k = shifted - ROUND;
  return (x - k * LN2_HI) - k * LN2_LO;
}
inline double exp_scaled(double tail, double shifted) {
  const uint64_t biased = bits_of(shifted) - bits_of(ROUND) + 2048;  // k + 2048 > 0
  const uint64_t half = biased >> 1;
  const double s1 = of_bits((half - 1) << 52);
  const double s2 = of_bits((biased - half - 1) << 52);  // 2^(half - 1024), 2^(rest - 1024)
  return ((1.0 + tail) * s1) * s2;
}
inline double exp(double x) {
  double shifted;
  const double r = exp_rest(x, shifted);
  return exp_scaled(exp_tail(r), shifted);
}

inline double expm1(double x) {
  if (x < -40.0) {
    return -1.0 + exp(x);
  }
  if (x > 37.0) {
    return exp(x) - 1.0;
  }
  const double k = (x * LOG2E + ROUND) - ROUND;
  const double r = (x - k * LN2_HI) - k * LN2_LO;
  if (k == 0.0) {
    return exp_tail(r);
  }
  const double s = of_bits((bits_of(k + ROUND) - bits_of(ROUND) + 1023) << 52);
  return s * exp_tail(r) + (s - 1.0);
}

// log(1 + f) + k ln2 + c, for sqrt(1/2) <= 1 + f < sqrt(2); c corrects for the rounding of 1 + f.
// The series in
// s = f / (2 + f) is that of fdlibm's log.
inline double log_tail(double f, double k, double c) {
  const double half = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double t1 =
      w * (0x1.999999997fa04p-2 + w * (0x1.c71c51d8e78afp-3 + w * 0x1.39a09d078c69fp-3));
  const double t2 =
      z * (0x1.5555555555593p-1 +
           w * (0x1.2492494229359p-2 + w * (0x1.7466496cb03dep-3 + w * 0x1.2f112df3e5244p-3)));
  return k * LN2_HI - ((half - (s * (half + (t1 + t2)) + (k * LN2_LO + c))) - f);
}

constexpr double NAN_ = __builtin_bit_cast(double, uint64_t(0x7ff8000000000000)),
                 INF = __builtin_bit_cast(double, uint64_t(0x7ff0000000000000));

// Splits x > 0 into 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
inline double log_split(double x, double& k) {
  uint64_t u = bits_of(x);
  u += 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu;
  k = (double)((int64_t)(u >> 52) - 1023);
  u = (u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu;
  return of_bits(u) - 1.0;
}

inline double log(double x) {
  if (!(x > 0.0)) {
    return x == 0.0 ? -INF : NAN_;
  }
  if (x == INF) {
    return x;
  }
  double shift = 0.0;
  double k;
  if (x < 0x1p-1022) {
    x = x * 0x1p54;
    shift = -54.0;
  }
  const double f = log_split(x, k);
  return log_tail(f, k + shift, 0.0);
}

inline double log1p(double x) {
  if (!(x > -1.0)) {
    return x == -1.0 ? -INF : NAN_;
  }
  if (x == INF) {
    return x;
  }
  if (x > -0.2928 && x < 0.4142) {
    if (x > -0x1p-54 && x < 0x1p-54) {
      return x;
    }
    return log_tail(x, 0.0, 0.0);
  }
  const double u = 1.0 + x;
  const double c = u < 2.0 ? x - (u - 1.0) : 1.0 - (u - x);  // what 1 + x lost to rounding
  double k;
  const double f = log_split(u, k);
  return log_tail(f, k, c / u);
}

inline double sigmoid_of(double s, double z) {  // z = e^-|s|
  const double r = 1.0 / (1.0 + z);
  return s >= 0.0 ? r : z * r;
}
inline double sigmoid(double s) {
  return sigmoid_of(s, exp(s < 0.0 ? s : -s));
}

// log(1 + e^s) = log1p(e^-|s|), plus s if s > 0. Here log1p is written without branches, for
// arguments from 0 to 1.
inline double softplus(double s) {
  const double z = exp(s < 0.0 ? s : -s);
  const double u = 1.0 + z;
  const bool high = u >= 0x1.6a09e667f3bcdp0;  // sqrt(2)
  const double f = (high ? 0.5 * u : u) - 1.0;
  return (s > 0.0 ? s : 0.0) + log_tail(f, high ? 1.0 : 0.0, (z - (u - 1.0)) / u);
}

// -m / (2 + m) with the sign of x, where m = e^(-2|x|) - 1 is computed as in expm1.
inline double tanh(double x) {
  const double a = x < 0.0 ? -x : x;
  const double z = a > 20.0 ? -40.0 : -2.0 * a;
  const double shifted = z * LOG2E + ROUND;
  const double k = shifted - ROUND;
  const double r = (z - k * LN2_HI) - k * LN2_LO;
  const double s = of_bits((bits_of(shifted) - bits_of(ROUND) + 1023) << 52);
  const double m = s * exp_tail(r) + (s - 1.0);
  const double t = -m / (2.0 + m);
  return x < 0.0 ? -t : t;
}

}  // namespace sapwood::inline SAPWOOD_ISA
