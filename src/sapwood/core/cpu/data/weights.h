// RowWeights: what rows count for, as integers.
#pragma once
#include <stdint.h>

#include <cmath>
#include <vector>

#include "math/fixed.h"
#include "records/reduce.h"

namespace sapwood {

struct WeightFacts {  // of all weights: what decides their fixed point
  bool whole = true;
  // `sum` only decides whether integers are small enough; it is exact while it matters
  double top = 0.0, sum = 0.0;
  void add(const double* w, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      whole = whole && w[i] == std::floor(w[i]);
      top = w[i] > top ? w[i] : top;
      sum += w[i];
    }
  }
  // the same on all holders; `top` is that of all of them then
  bool is_integral(const Reduce* reduce) {
    bool integral = whole && top <= 0x1p20 && sum <= 0x1p31;
    if (reduce != nullptr) {
      uint64_t most[2] = {!integral, bits_of(top)};
      int64_t total = integral ? (int64_t)sum : 0;
      reduce_max(reduce, most, 2);
      reduce_sum(reduce, &total, 1);
      integral = most[0] == 0 && total <= (int64_t)1 << 31;
      top = of_bits(most[1]);
    }
    return integral;
  }
  int shift(bool integral) const { return integral ? 0 : 30 - exponent_of(top); }
};

inline int32_t repeats_of(double w, bool integral, int shift) {
  const int32_t m = (int32_t)rounded(w * (integral ? 1.0 : power_of_two(shift)));
  return m == 0 && w > 0.0 ? 1 : m;
}

// What a row counts for (NUMERICS 2): nothing given, integer repeats, or real weights in fixed
// point.
struct RowWeights {
  bool given = false, integral = false, zero_one = false;  // zero_one: every weight is 0 or 1
  std::vector<int32_t> repeats;                            // integral: W; real: C
  int shift = 0;                                           // counts read repeats / 2^shift
  // (n) the weights themselves, where they are not integral
  const double* real = nullptr;
  // reduce: w are the rows of one holder
  RowWeights(const double* w, int64_t n, const Reduce* reduce) {
    if (w == nullptr) {
      return;
    }
    WeightFacts facts;
    facts.add(w, n);
    given = true;
    integral = facts.is_integral(reduce);
    zero_one = integral && facts.top <= 1.0;
    shift = facts.shift(integral);
    repeats.resize(n);
    for (int64_t i = 0; i < n; i++) {
      repeats[i] = repeats_of(w[i], integral, shift);
    }
    if (!integral) {
      real = w;
    }
  }
  int64_t of(int64_t row) const { return given ? repeats[row] : 1; }
};

}  // namespace sapwood
