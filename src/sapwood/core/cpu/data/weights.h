// RowWeights: what rows count for, as integers.
#pragma once
#include <stdint.h>

#include <vector>

namespace sapwood {

class Reduce;

// What a row counts for (NUMERICS 2): nothing given, integer repeats, or real weights in fixed point.
struct RowWeights {
  bool given = false, whole = false, unit = false;  // unit: every weight is 0 or 1
  std::vector<int32_t> repeats;                     // whole: W; real: C
  int shift = 0;                                    // counts read repeats / 2^shift
  const double* real = nullptr;                     // (n) the weights themselves, where they are not whole
  RowWeights() = default;
  RowWeights(const double* w, int64_t n, const Reduce* reduce = nullptr);  // reduce: w are the rows of one holder
  int64_t of(int64_t row) const { return given ? repeats[row] : 1; }
};

}  // namespace sapwood
