// Evaluation rows on the device: a new tree into their scores, and metrics that are means over
// rows. Their sums are exact (cpu/rows/exact_sum.h): fixed point with 62 bits, added as two
// integers.
#pragma once
#include "cuda/gradient_pass.h"
#include "cuda/predict.h"
#include "math/metric.h"

namespace sapwood {

// A tree over codes is walked by every row, and its value is added.
SAPWOOD_KERNEL void add_tree(SAPWOOD_ARGUMENTS(MetricJob), int output, int) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= job.n_rows) {
    return;
  }
  int at = 0;
  for (int left = job.nodes[0].left; left != 0; left = job.nodes[at].left) {
    const WalkNode n = job.nodes[at];
    const uint32_t code = job.planes[(int64_t)(n.column & ~BY_SET) * job.n_rows + row];
    const bool right = n.column & BY_SET
                           ? job.sets[4 * (int64_t)n.low + code / 64] >> (code % 64) & 1
                           : code - (uint32_t)n.low < (uint32_t)n.length;
    at = left + right;
  }
  double& score = job.score[output * job.plane + row];
  score = score + job.values[at];
}

SAPWOOD_KERNEL void predict_rows_there(SAPWOOD_ARGUMENTS(MetricJob), int, int) {
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const int n = (int)job.n_outputs;
  for (int64_t i = first; i < job.n_rows; i += step) {
    const int64_t row = job.rows == nullptr ? i : job.rows[i];
    double* p = job.prediction + i * n;
    for (int k = 0; k < n; k++) {
      p[k] = job.score[k * job.plane + row];
    }
    link_row((Link)job.link, p, p, n);
    for (int k = 0; k < n; k++) {
      if (abs_bits(p[k]) > MAX_FINITE || (job.not_negative && p[k] < 0.0)) {
        job.results->bad = 1;
      }
    }
  }
}

constexpr int OF_RANKS = -1;

// Pairs of rows of class 1 and of class 0 that are in order, twice: those of the rows of one
// prediction, at the last of them.
inline double ordered_pairs(const MetricJob& j, int64_t i) {
  const double p = j.ranked[i];
  if (i + 1 < j.n_rows && j.ranked[i + 1] == p) {
    return 0.0;
  }
  int64_t first = 0;  // of this prediction
  for (int64_t size = i; size > 0;) {
    const int64_t half = size / 2;
    if (j.ranked[first + half] < p) {
      first += half + 1;
      size -= half + 1;
    } else {
      size = half;
    }
  }
  const int64_t before = first > 0 ? j.zeros[first - 1] : 0;
  const int64_t ones = j.ones[i] - (first > 0 ? j.ones[first - 1] : 0);
  return (double)ones * (double)(2 * before + (j.zeros[i] - before));
}

// The unit of scaled errors: a power of two near the largest.
inline double unit_of(uint64_t range) {
  return range == 0 ? 0.5 : of_bits(range & 0x7ff0000000000000u);
}

// Metric m. Pass 0: the largest error; 1: what rows add, and the largest of that; 2: its sum.
SAPWOOD_KERNEL void measure_rows(SAPWOOD_ARGUMENTS(MetricJob), int m, int pass) {
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  MetricResult& result = job.results[m];
  const RowMetric kind = (RowMetric)job.kinds[m];
  const bool by_rank = job.kinds[m] == OF_RANKS;
  const double a = kind == RowMetric::scaled ? unit_of(result.range) : job.parameters[m];
  const double scale =
      power_of_two(62 - exponent_of(of_bits(result.top > MAX_FINITE ? 0 : result.top)));
  uint64_t most = 0;
  int64_t low = 0;
  int64_t high = 0;
  for (int64_t i = first; i < job.n_rows; i += step) {
    const int64_t times = job.repeats == nullptr ? 1 : job.repeats[i];
    if (pass == 2) {
      const int64_t q = rounded62(job.added[i] * scale);
      const int64_t w = job.real == nullptr && !by_rank ? times : 1;
      low += w * (int64_t)(q & 0xffffffff);
      high += w * (q >> 32);
      continue;
    }
    const double* p = job.prediction + i * job.n_outputs;
    double x = by_rank     ? ordered_pairs(job, i)
               : pass == 0 ? p[0] - job.label[i]
                           : row_metric(kind, job.label[i], p, (int)job.n_outputs, a);
    if (pass == 1) {
      if (job.real != nullptr && !by_rank) {
        x = x * job.real[i];
      }
      job.added[i] = x = times == 0 && !by_rank ? 0.0 : x;
    }
    most = abs_bits(x) > most ? abs_bits(x) : most;
  }
  __syncwarp(ALL_LANES);
  most = warp_max(most);
  low = warp_sum(low);
  high = warp_sum(high);
  if (threadIdx.x % LANES != 0) {
    return;
  }
  if (pass == 2) {
    add_to(&result.low, low);
    add_to(&result.high, high);
  } else {
    raise_to(pass == 0 ? &result.range : &result.top, most);
  }
  if (pass == 1 && most > MAX_FINITE) {
    job.results->bad = 1;
  }
}

}  // namespace sapwood
