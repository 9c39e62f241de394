// What the noise on splits is measured by: the sums of squared gradients and of hessians over all rows, exactly.
#pragma once
#include "cuda/gradient_pass.h"

namespace sapwood {

struct WideSum {  // of 128 bits
  uint64_t low = 0, high = 0;
  void add(uint64_t x, uint64_t times) {
    const uint64_t product = x * times, before = low;
    low += product;
    high += multiply_high(x, times) + (low < before);
  }
};

SAPWOOD_BOUNDED(256, 4) void sum_noise(SAPWOOD_JOB, int k, int) {
  const Job& j = job;
  const Pair* pairs = (j.search_pairs != nullptr ? j.search_pairs : j.leaf_pairs) + k * j.n;
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
  WideSum g, h;
  for (int64_t row = first; row < j.n; row += step) {
    const int64_t w = j.repeated ? j.repeats[row] : j.repeats == nullptr || j.repeats[row] > 0;
    const Pair q = pairs[row];
    g.add((uint64_t)((int64_t)q.g * q.g), (uint64_t)w), h.add((uint64_t)q.h, (uint64_t)w);
  }
  const uint64_t words[4] = {g.low, g.high, h.low, h.high};
  for (int i = 0; i < 8; i++) {
    const int64_t part = warp_sum((int64_t)(words[i / 2] >> 32 * (i % 2) & 0xffffffffu));
    if (threadIdx.x % LANES == 0 && part != 0) add_to(&j.output[k].noise[i], part);
  }
}

}  // namespace sapwood
