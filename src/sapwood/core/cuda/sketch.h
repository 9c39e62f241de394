// A sketch of the gradients of all outputs (NUMERICS, sketched splits): a few random sums of them,
// in fixed point.
#pragma once
#include "cuda/gradient_pass.h"
#include "math/hash.h"

namespace sapwood {

// What the gradients of each output add to each sum; no maxima yet. One block.
SAPWOOD_KERNEL void begin_sketch(SAPWOOD_JOB, int, int) {
  const Job& j = job;
  const int n_sums = (int)j.n_sums;
  const int n_outputs = (int)j.n_outputs;
  for (int k = threadIdx.x; k < n_outputs; k += blockDim.x) {
    fix_scales(j, j.output[k]);
  }
  __threadfence_block();
  __syncthreads();
  const double share = 1.0 / sqrt((double)n_sums);
  const uint64_t tree = fold(j.turn->sketch_key, (uint64_t)j.turn->tree);
  for (int at = threadIdx.x; at < n_sums * n_outputs; at += blockDim.x) {
    const int i = at / n_outputs;
    const int k = at % n_outputs;
    const bool plus = draw(fold(tree, (uint64_t)i), (uint64_t)k) & 1;
    j.sketch_factor[at] = (plus ? share : -share) * power_of_two(j.output[k].wide.g - WIDE);
  }
  double own = 0.0;
  for (int k = 0; k < n_outputs; k++) {
    own = j.output[k].own_min_samples > own ? j.output[k].own_min_samples : own;
  }
  for (int i = threadIdx.x; i < n_sums; i += blockDim.x) {
    j.sketch_output[i] = Output{};
    j.sketch_output[i].own_min_samples = own;
    j.sketch_output[i].constant_hessian = j.output[0].constant_hessian;
  }
}

inline bool in_sketch(const Job& j, int64_t row, bool by_sample) {
  return (!by_sample || j.in_sample[row]) && (j.repeats == nullptr || j.repeats[row] > 0);
}

// Pass 0: the sums and their maxima; pass 1: their fixed point. by_sample: of rows that count more
// or less
SAPWOOD_BOUNDED(256, 4) void sketch_rows(SAPWOOD_JOB, int pass, int by_sample) {
  const Job& j = job;
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const int n_sums = (int)j.n_sums;
  const int n_outputs = (int)j.n_outputs;
  for (int64_t row = first; row < j.n && pass == 0; row += step) {
    double h = 0.0;
    for (int k = 0; k < n_outputs; k++) {
      h = h + (double)j.leaf_pairs[k * j.n + row].h * power_of_two(j.output[k].wide.h - WIDE);
    }
    j.sketch_real[n_sums * j.n + row] = h / n_outputs;
  }
  for (int i = 0; i < n_sums; i++) {
    Output& o = j.sketch_output[i];
    const PassScales scales(narrow_of(o), wide_of(o));
    PassTotals totals;
    int64_t count = 0;
    for (int64_t row = first; row < j.n; row += step) {
      double g = 0.0;
      for (int k = 0; k < n_outputs && pass == 0; k++) {
        g = g + (double)j.leaf_pairs[k * j.n + row].g * j.sketch_factor[i * n_outputs + k];
      }
      if (pass == 0) {
        j.sketch_real[i * j.n + row] = g;
      } else {
        g = j.sketch_real[i * j.n + row];
      }
      const double h = j.sketch_real[n_sums * j.n + row];
      const bool used = in_sketch(j, row, by_sample != 0);
      const RowGradient r{used ? g : 0.0, used ? h : 0.0, used ? h : 0.0};
      if (pass == 0) {
        totals.raise(r);
        continue;
      }
      const Pair low{quantise_g(r.g, scales.search_g), quantise_h(r.h, scales.search_h)};
      j.sketch_pairs[i * j.n + row] = {quantise_g(r.g, scales.g), quantise_h(r.h, scales.h)};
      j.sketch_packed[i * j.n + row] = (int32_t)(((uint32_t)low.g << 16) + (uint32_t)low.h);
      const int64_t times = !used ? 0 : j.repeated ? j.repeats[row] : 1;
      totals.sum_g += times * abs_gradient(low);
      totals.sum_h += times * low.h;
      count += times;
    }
    add_totals(totals, o, pass);
    count = warp_sum(count);
    if (threadIdx.x % LANES == 0 && count != 0) {
      add_to(&o.total_g, count);
    }
  }
}

// Fixes the scales and the precision of the sums. One block.
SAPWOOD_KERNEL void end_sketch(SAPWOOD_JOB, int, int) {
  const Job& j = job;
  for (int i = threadIdx.x; i < (int)j.n_sums; i += blockDim.x) {
    Output& o = j.sketch_output[i];
    const int64_t least = 64 * o.total_g;  // total_g: rows
    if (!is_finite(o)) {
      j.output[0].failed = 1;
    }
    o.narrow = narrow_of(o);
    o.wide = wide_of(o);
    o.kept_max_search = o.max_search;
    o.is_narrow =
        j.precision == 1 || (j.precision == 0 && o.sum_g[1] >= least && o.sum_h[1] >= least);
  }
}

}  // namespace sapwood
