#include "cpu/data/weights.h"

#include <cmath>

#include "math/fixed.h"
#include "records/reduce.h"

namespace sapwood {

RowWeights::RowWeights(const double* w, int64_t n, const Reduce* reduce) {
  if (w == nullptr) return;
  given = true, whole = true;
  double top = 0.0, sum = 0.0;  // `sum` only decides whether integers are small enough; it is exact while it matters
  for (int64_t i = 0; i < n; i++) {
    whole = whole && w[i] == std::floor(w[i]);
    top = w[i] > top ? w[i] : top;
    sum += w[i];
  }
  whole = whole && top <= 0x1p20 && sum <= 0x1p31;
  if (reduce != nullptr) {  // what decides the fixed point is the same on all holders
    uint64_t most[2] = {!whole, bits_of(top)};
    int64_t total = whole ? (int64_t)sum : 0;
    reduce_max(reduce, most, 2), reduce_sum(reduce, &total, 1);
    whole = most[0] == 0 && total <= (int64_t)1 << 31, top = of_bits(most[1]);
  }
  unit = whole && top <= 1.0;
  repeats.resize(n);
  shift = whole ? 0 : 30 - exponent_of(top);
  const double scale = whole ? 1.0 : power_of_two(shift);
  for (int64_t i = 0; i < n; i++) {
    const int32_t m = (int32_t)rounded(w[i] * scale);
    repeats[i] = m == 0 && w[i] > 0.0 ? 1 : m;
  }
  if (!whole) real = w;
}

}  // namespace sapwood
