// Exact sums of floats over rows (NUMERICS 4): fixed point with 62 bits, summed as 128-bit integers.
#pragma once
#include <stdint.h>

namespace sapwood {

// The sums behind start scores and metrics (NUMERICS 4).
double exact_sum(const double* x, const double* weight, int64_t n, int n_threads);
double weight_sum(const double* weight, int64_t n, int n_threads);

}  // namespace sapwood
