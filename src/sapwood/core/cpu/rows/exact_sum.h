// Exact sums of floats over rows (NUMERICS 4): fixed point with 62 bits, added as 128-bit integers.
#pragma once
#include <stdint.h>

namespace sapwood {

class Reduce;

// The sums behind start scores and metrics, over the rows of all holders; reduce is null where all rows are here.
double exact_sum(const double* x, const double* weight, int64_t n, int n_threads, const Reduce* reduce = nullptr);
double weight_sum(const double* weight, int64_t n, int n_threads, const Reduce* reduce = nullptr);

}  // namespace sapwood
