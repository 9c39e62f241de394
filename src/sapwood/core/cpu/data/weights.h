// RowWeights: what rows count for, as integers.
#pragma once
#include <stdint.h>

#include <vector>

namespace sapwood {

// What a row counts for (NUMERICS 2): nothing given, whole multiples, or real weights in fixed point.
struct RowWeights {
  bool given = false, whole = false, unit = false;  // unit: every weight is 0 or 1
  std::vector<int32_t> multiple;                    // whole: W; real: C
  int shift = 0;                                    // counts read multiple / 2^shift
  const double* real = nullptr;                     // (n) the weights themselves, where they are not whole
  RowWeights() = default;
  RowWeights(const double* w, int64_t n);
  int64_t of(int64_t row) const { return given ? multiple[row] : 1; }
};

}  // namespace sapwood
