#include "cpu/data/weights.h"

#include <cmath>

#include "math/fixed.h"

namespace sapwood {

RowWeights::RowWeights(const double* w, int64_t n) {
  if (w == nullptr) return;
  given = true, whole = true;
  double top = 0.0, sum = 0.0;  // `sum` only decides whether integers are small enough; it is exact while it matters
  for (int64_t i = 0; i < n; i++) {
    whole = whole && w[i] == std::floor(w[i]);
    top = w[i] > top ? w[i] : top;
    sum += w[i];
  }
  whole = whole && top <= 0x1p20 && sum <= 0x1p31;
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
