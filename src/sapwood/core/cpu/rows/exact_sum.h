// Exact sums of floats over rows (NUMERICS 4): fixed point with 62 bits, added as 128-bit integers.
#pragma once
#include <algorithm>
#include <vector>

#include "cpu/data/weights.h"
#include "cpu/kernels/kernels.h"
#include "host/pool.h"

namespace sapwood {

// The sums behind start scores and metrics, over the rows of all holders; reduce is null where all
// rows are here.
inline double exact_sum(const double* x, const double* weight, int64_t n, int n_threads,
                        const Reduce* reduce) {
  const RowWeights w(weight, n, reduce);
  auto each_block = [&](int64_t task, const auto& f) {  // f(values, number of values, first row)
    double v[BLOCK];
    for (int64_t at = task * TASK_ROWS; at < std::min(n, (task + 1) * TASK_ROWS); at += BLOCK) {
      const int m = (int)std::min<int64_t>(BLOCK, n - at);
      for (int i = 0; i < m; i++) {
        v[i] = w.real != nullptr ? x[at + i] * w.real[at + i] : x[at + i];
      }
      for (int i = 0; w.given && i < m; i++) {
        v[i] = w.repeats[at + i] == 0 ? 0.0 : v[i];
      }
      f(v, m, at);
    }
  };
  std::vector<uint64_t> tops(task_count(n), 0);
  run(threads_for(n, n_threads), task_count(n), [&](int64_t t, int) {
    each_block(t, [&](const double* v, int m, int64_t) {
      tops[t] = kernels().max_abs_bits(tops[t], v, m);
    });
  });
  uint64_t top = tops.empty() ? 0 : *std::max_element(tops.begin(), tops.end());
  reduce_max(reduce, &top, 1);
  const double scale = power_of_two(62 - exponent_of(of_bits(top)));
  std::vector<__int128> parts(task_count(n), 0);
  run(threads_for(n, n_threads), task_count(n), [&](int64_t t, int) {
    __int128 sum = 0;
    each_block(t, [&](const double* v, int m, int64_t at) {
      int64_t q[BLOCK];
      kernels().to_fixed(v, scale, q, m);
      for (int i = 0; i < m; i++) {
        sum += w.integral ? (__int128)q[i] * w.repeats[at + i] : (__int128)q[i];
      }
    });
    parts[t] = sum;
  });
  __int128 sum = 0;
  for (const __int128 p : parts) {
    sum += p;
  }
  reduce_sum(reduce, &sum, 1);
  return (double)sum / scale;
}

inline double weight_sum(const double* weight, int64_t n, int n_threads, const Reduce* reduce) {
  const RowWeights w(weight, n, reduce);
  if (!w.integral) {
    return exact_sum(weight, nullptr, n, n_threads, reduce);
  }
  int64_t sum = 0;
  for (const int32_t m : w.repeats) {
    sum += m;
  }
  reduce_sum(reduce, &sum, 1);
  return (double)sum;
}

}  // namespace sapwood
