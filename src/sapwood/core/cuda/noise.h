// What the noise on splits is measured by: the sums of squared gradients and of hessians over all
// rows, exactly.
#pragma once
#include "cuda/gradient_pass.h"
#include "cuda/wide_sum.h"

namespace sapwood {

SAPWOOD_BOUNDED(256, 4) void sum_noise(SAPWOOD_JOB, int k, int) {
  const Job& j = job;
  const Pair* pairs = (j.search_pairs != nullptr ? j.search_pairs : j.leaf_pairs) + k * j.n;
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  WideSum g;
  WideSum h;
  for (int64_t row = first; row < j.n; row += step) {
    const int64_t w = j.repeated ? j.repeats[row] : j.repeats == nullptr || j.repeats[row] > 0;
    const Pair q = pairs[row];
    g.add((uint64_t)((int64_t)q.g * q.g), (uint64_t)w);
    h.add((uint64_t)q.h, (uint64_t)w);
  }
  g.add_to_parts(j.output[k].noise);
  h.add_to_parts(j.output[k].noise + 4);
}

}  // namespace sapwood
