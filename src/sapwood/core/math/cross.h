// Crosses: a number that a model makes of two columns (NUMERICS, crosses).
#pragma once
#include <stdint.h>

namespace sapwood::inline SAPWOOD_ISA {

enum CrossKind : uint8_t { DIFFERENCE, PRODUCT, RATIO, CENTRED, N_CROSS_KINDS };

inline double mean_of(const double* mean, int64_t n_codes, double code) {
  if (code >= 0.0 && code < (double)n_codes) {
    return mean[(int64_t)code];
  }
  return mean[code != code || code == -1.0 ? n_codes : n_codes + 1];
}

// As float32, with one zero; what is not finite is missing. mean (n_codes + 2): of a centred cross
template <CrossKind KIND>
inline float cross_value(double a, double b, const double* mean, int64_t n_codes) {
  double x;
  if constexpr (KIND == DIFFERENCE) {
    x = a - b;
  } else if constexpr (KIND == PRODUCT) {
    x = a * b;
  } else if constexpr (KIND == RATIO) {
    x = a / b;
  } else {
    x = a - mean_of(mean, n_codes, b);
  }
  const float rounded = (float)x + 0.0f;
  return rounded - rounded == 0.0f ? rounded : __builtin_bit_cast(float, 0x7fc00000u);
}

// f(kind), where decltype(kind)::value is the kind.
template <CrossKind KIND>
struct CrossOf {
  static constexpr CrossKind value = KIND;
};
template <class F>
inline auto by_cross_kind(int kind, F&& f) {
  if (kind == DIFFERENCE) {
    return f(CrossOf<DIFFERENCE>());
  }
  if (kind == PRODUCT) {
    return f(CrossOf<PRODUCT>());
  }
  if (kind == RATIO) {
    return f(CrossOf<RATIO>());
  }
  return f(CrossOf<CENTRED>());
}

}  // namespace sapwood::inline SAPWOOD_ISA
