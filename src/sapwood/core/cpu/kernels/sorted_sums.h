// Sums by value of a node's rows, which are sorted by a column; laid out as a histogram, so that
// the same scans read them.
#pragma once
#include "cpu/kernels/kernels.h"
#include "math/gain.h"

namespace sapwood::inline SAPWOOD_ISA {

template <class At, class Put>
static int64_t sums_as(const SortedSumsArgs& a, At at, Put put) {
  int64_t k = -1;
  Sums sum;
  uint32_t before = ~0u;               // no code
  for (int64_t i = 0; i < a.n; i++) {  // no branch: a sum is stored until the next value begins
    const int64_t fresh = a.codes[i] != before;
    before = a.codes[i];
    k += fresh;
    sum = Sums{sum.g & (fresh - 1), sum.h & (fresh - 1)} + at(a.rows[i]);
    put(k, sum);
    a.values[k] = before;
  }
  return k + 1;
}

static int64_t sorted_sums(const SortedSumsArgs& a) {
  auto word = [&](int64_t k, Sums s) {
    a.sums[k] = pack(s);
  };
  auto pair = [&](int64_t k, Sums s) {
    a.sums[2 * k] = s.g;
    a.sums[2 * k + 1] = s.h;
  };
  auto narrow = [&](int32_t r) {
    return unpack(a.packed[r]);
  };
  auto plain = [&](int32_t r) {
    return Sums{a.pairs[r].g, a.pairs[r].h};
  };
  auto times = [&](int32_t r) {
    const int64_t m = a.repeats[r];
    return Sums{a.pairs[r].g * m, a.pairs[r].h * m};
  };
  if (a.packed != nullptr) {
    return a.words ? sums_as(a, narrow, word) : sums_as(a, narrow, pair);
  }
  return a.repeats == nullptr ? sums_as(a, plain, pair) : sums_as(a, times, pair);
}

}  // namespace sapwood::inline SAPWOOD_ISA
