// Samples of rows on the device: norms of gradients, the exact threshold of samplers that need one
// (digit by digit, as cpu/rows/select.h finds it), the rows that are drawn, and the fixed point of
// rows that count more or less.
#pragma once
#include "cuda/gradient_pass.h"
#include "math/sample.h"

namespace sapwood {

constexpr int DIGIT_BITS = 11, N_DIGITS = 1 << DIGIT_BITS, MAX_SCALE_GAP = 900;
constexpr int DIGIT_SHIFTS[3] = {21, 10, 0};                        // of 32-bit numbers
constexpr int DIGIT_RANGE[3] = {N_DIGITS, N_DIGITS, N_DIGITS / 2};  // the last one has ten bits

inline int own_copy() {
  return blockIdx.z;
}  // of the round, whose sample a block draws

// The units of norms, and how many rows the threshold aims at, of all copies. One thread.
template <class Sampler>
inline void begin_sample(const Job& j) {
  Sampling& s = *j.sampling;
  for (int k = 0; k < j.n_outputs; k++) {
    fix_scales(j, j.output[k]);
  }
  int top = j.output[0].wide.g;
  for (int k = 0; k < j.n_outputs; k++) {
    top = j.output[k].wide.g > top ? j.output[k].wide.g : top;
  }
  double mean2 = 0.0;
  for (int k = 0; k < j.n_outputs; k++) {
    Output& o = j.output[k];
    const int gap = o.wide.g - top;
    const int e = gap > -MAX_SCALE_GAP ? gap : -MAX_SCALE_GAP;
    o.quantum = power_of_two(e - WIDE);
    const double mean = (double)o.total_g / (double)j.total_repeats * power_of_two(e - NARROW);
    mean2 = mean2 + mean * mean;
  }
  for (int i = 0; i < Sampler::n_fields; i++) {
    s.field[i] = j.sampler_field[i];
  }
  Sampler::prepare(s.field, power_of_two(-top > -1000 ? -top : -1000), mean2);
  s.scale = power_of_two(
      WIDE - exponent_of(Sampler::max_norm((int)j.n_outputs, (double)j.max_repeats, s.field)));
  s.target = (int64_t)(Sampler::target(s.field, j.subsample) * (double)j.n_live + 0.5);
  s.direct = Sampler::l1_norm && j.n_outputs == 1 && !j.repeated;
  s.norm = -1;
  s.tie = 0;
  s.mu = 1.0;
  s.at = s.above = s.here = s.below = s.need = 0;
  const bool top_k = Sampler::threshold == Threshold::top_k;
  s.seeks = top_k ? s.target >= 1
                  : Sampler::threshold == Threshold::expected_count && s.target < j.n_live;
  if (top_k && s.target < 1) {
    s.norm = 0x7fffffffffffffff;
  }
  for (int copy = 1; copy < j.n_copies; copy++) {
    j.sampling[copy] = s;
  }
}

// The norm of a row's gradients in fixed point.
template <class Sampler>
inline uint32_t row_norm(const Job& j, const Sampling& s, int64_t row) {
  if (s.direct) {
    return abs_gradient(j.leaf_pairs[row]);
  }
  double sum = 0.0;
  for (int k = 0; k < j.n_outputs; k++) {
    const double g = (double)j.leaf_pairs[k * j.n + row].g;
    sum = Sampler::add(sum, j.repeated ? g * (double)j.repeats[row] * j.output[k].quantum
                                       : g * j.output[k].quantum);
  }
  return (uint32_t)rounded(Sampler::norm(sum, s.field) * s.scale);
}

// Counts rows by one digit of their norms, or of the draws of those that tie; a block has its
// counts in shared memory.
template <class Sampler>
inline void count_digits(const Job& j, int digit, bool ties) {
  __shared__ uint32_t rows[N_DIGITS];
  __shared__ int64_t sums[N_DIGITS];
  const Sampling& s = j.sampling[own_copy()];
  if (!s.seeks) {
    return;
  }
  for (int d = threadIdx.x; d < N_DIGITS; d += blockDim.x) {
    rows[d] = 0;
    sums[d] = 0;
  }
  __syncthreads();
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t row = first; row < j.n; row += step) {
    uint32_t x = digit == 0 && !ties ? row_norm<Sampler>(j, s, row) : j.norms[row];
    if (digit == 0 && !ties && own_copy() == 0) {
      j.norms[row] = x;  // those of all copies
    }
    if (j.repeats != nullptr && j.repeats[row] == 0) {
      continue;
    }
    if (ties && (int64_t)x != s.norm) {
      continue;
    }
    if (ties) {
      x = (uint32_t)(draw(j.turn->tie_key[own_copy()], (uint64_t)row) >> 32);
    }
    const int64_t d = ((int64_t)x - s.at) >> DIGIT_SHIFTS[digit];
    if (d < 0 || d >= DIGIT_RANGE[digit]) {
      continue;
    }
    atomicAdd(&rows[d], 1u);
    add_to(&sums[d], x);
  }
  __syncthreads();
  int64_t* digits = j.digits + 2 * N_DIGITS * own_copy();
  for (int d = threadIdx.x; d < N_DIGITS; d += blockDim.x) {
    if (rows[d] != 0) {
      add_to(digits + 2 * d, rows[d]);
      add_to(digits + 2 * d + 1, sums[d]);
    }
  }
}

// Whether enough rows reach a number: `reach` do, the others add up to `below`.
template <class Sampler>
inline bool enough(const Sampling& s, bool ties, int64_t m, int64_t reach, int64_t below) {
  if (ties) {
    return reach >= s.need;
  }
  if (Sampler::threshold == Threshold::top_k) {
    return reach >= s.target;
  }
  const int64_t expected = s.target > 1 ? s.target : 1;
  return reach * m + below > expected * m;
}

// The digit of the largest number that enough rows reach. One thread, whose block has the counts in
// shared memory.
template <class Sampler>
inline void choose_digit(const Job& j, int digit, bool ties) {
  __shared__ int64_t counts[2 * N_DIGITS];
  Sampling& s = j.sampling[own_copy()];
  if (!s.seeks) {
    return;
  }
  int64_t* digits = j.digits + 2 * N_DIGITS * own_copy();
  for (int i = threadIdx.x; i < 2 * N_DIGITS; i += blockDim.x) {
    counts[i] = digits[i];
    digits[i] = 0;
  }
  __syncthreads();
  if (threadIdx.x != 0) {
    return;
  }
  int64_t reach = s.above;
  int64_t below = s.below;
  for (int d = 0; d < N_DIGITS; d++) {
    below += counts[2 * d + 1];
  }
  for (int64_t d = N_DIGITS; d-- > 0;) {
    const int64_t m = s.at + (d << DIGIT_SHIFTS[digit]);
    const int64_t rows = counts[2 * d];
    reach += rows;
    below -= counts[2 * d + 1];
    if (d > 0 && !enough<Sampler>(s, ties, m, reach, below)) {
      continue;
    }
    s.at = m;
    s.above = reach - rows;
    s.here = rows;
    s.below = below;
    break;
  }
  if (digit < 2) {
    return;
  }
  if (ties) {
    s.tie = (uint64_t)s.at;
    s.seeks = 0;
    return;
  }
  s.norm = s.at;
  if (Sampler::threshold == Threshold::top_k) {
    // rows of equal norm are told apart by draws
    s.need = s.target - s.above;
    s.seeks = s.need < s.here;
  } else {
    const int64_t expected = s.target > 1 ? s.target : 1;
    const int64_t rest = expected - s.above;
    const int64_t all = s.below + s.at * s.here;
    if (all > 0 && rest > 0) {
      s.mu = (double)all / (double)rest;
    }
    s.seeks = 0;
  }
  s.at = s.above = s.here = s.below = 0;
}

// The rows of this round: those that the sampler draws, among those of positive weight.
template <class Sampler>
inline void sample_rows(const Job& j) {
  __shared__ int n_here;
  __shared__ int place;
  const int copy = own_copy();
  const int64_t own = copy * j.n;
  const uint64_t sample_key = j.turn->sample_key[copy];
  const uint64_t tie_key = j.turn->tie_key[copy];
  const bool by_norm = j.draws && Sampler::threshold != Threshold::none;
  SampleThreshold threshold;
  if (by_norm) {
    threshold = {j.sampling[copy].norm, j.sampling[copy].tie, j.sampling[copy].mu};
  }
  for (int64_t first = (int64_t)blockIdx.x * blockDim.x; first < j.n;
       first += (int64_t)gridDim.x * blockDim.x) {
    const int64_t row = first + threadIdx.x;
    bool in = row < j.n && (j.repeats == nullptr || j.repeats[row] > 0);
    if (in && j.draws) {
      const double p = j.row_subsample != nullptr ? j.row_subsample[row] : j.subsample;
      const uint64_t at = j.row_group != nullptr ? (uint64_t)j.row_group[row] : (uint64_t)row;
      const uint32_t norm = by_norm ? row_norm<Sampler>(j, j.sampling[copy], row) : 0;
      const double* field = Sampler::n_fields > 0 ? j.sampling[copy].field : nullptr;
      const double factor = Sampler::factor({sample_key, tie_key, at, norm, p}, threshold, field);
      in = factor > 0.0;
      if (Sampler::reweights) {
        j.factor[own + row] = factor;
      }
    }
    if (threadIdx.x == 0) {
      n_here = 0;
    }
    __syncthreads();
    const int mine = in ? atomicAdd(&n_here, 1) : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      place = atomicAdd(&j.growth[copy].n_rows, n_here);
    }
    __syncthreads();
    if (row < j.n) {
      j.in_sample[own + row] = in;
    }
    if (in) {
      j.sample[own + place + mine] = (uint32_t)row;
    }
    __syncthreads();
  }
}

inline RowGradient reweighted_gradient(const Job& j, int64_t row, int k, double w) {
  const Pair from = j.leaf_pairs[k * j.n + row];
  const double h = from.h * w;
  return {from.g * w, h, j.search_pairs != nullptr ? j.search_pairs[k * j.n + row].h * w : h};
}

// scales of an output's reweighted rows, in steps of its wide numbers; and in the units of
// gradients
struct Reweighted {
  Scale narrow, wide, own_narrow, own_wide;
  Reweighted(const Output& from, const Output& o) {
    const int step[3] = {from.wide.g - WIDE, from.wide.h - WIDE, from.narrow.h - WIDE};
    const uint64_t most[3] = {o.max_g, o.max_h, o.max_search};
    int e[3];
    int relative[3];
    for (int i = 0; i < 3; i++) {
      const int own = most[i] == 0 ? 0 : exponent_of(of_bits(most[i])) + step[i];
      e[i] = most[i] == 0 ? 0 : own > -960 ? own : -960;
      const int x = e[i] - step[i];
      relative[i] = x < -MAX_SCALE_GAP ? -MAX_SCALE_GAP : x > MAX_SCALE_GAP ? MAX_SCALE_GAP : x;
    }
    narrow = {NARROW, relative[0], relative[2]};
    wide = {WIDE, relative[0], relative[1]};
    own_narrow = {NARROW, e[0], e[2]};
    own_wide = {WIDE, e[0], e[1]};
  }
};

// Pass 0: the maxima of the sampled rows; pass 1: their fixed point. `to`: the job of growth on
// these rows
inline void reweigh_rows(const Job& j, int pass) {
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const int64_t copy = own_copy();
  const int64_t planes = copy * j.n_outputs * j.n;
  const uint8_t* in_sample = j.in_sample + copy * j.n;
  const double* factor = j.factor + copy * j.n;
  Job to = j;
  to.leaf_pairs = j.reweighted_leaf + planes;
  to.packed = j.reweighted_packed + planes;
  to.search_pairs = j.search_pairs != nullptr ? j.reweighted_search + planes : nullptr;
  for (int k = 0; k < j.n_outputs; k++) {
    Output& o = j.reweighted[copy * j.n_outputs + k];
    const Reweighted scales(j.output[k], o);
    const PassScales s(scales.narrow, scales.wide);
    PassTotals totals;
    int64_t count = 0;
    for (int64_t row = first; row < j.n; row += step) {
      if (!in_sample[row]) {
        continue;
      }
      const RowGradient r = reweighted_gradient(j, row, k, factor[row]);
      if (pass == 0) {
        totals.raise(r);
        count += j.repeated ? j.repeats[row] : 1;
      } else {
        quantise_row(to, row, k, r, s, totals);
      }
    }
    add_totals(totals, o, pass);
    count = warp_sum(count);
    if (threadIdx.x % LANES == 0 && count != 0) {
      add_to(&o.total_g, count);
    }
  }
}

// Begins and ends the passes. One thread.
inline void clear_reweighted(const Job& j) {
  for (int k = 0; k < j.n_copies * j.n_outputs; k++) {
    Output& o = j.reweighted[k];
    o = Output{};
    o.own_min_samples = j.output[k % j.n_outputs].own_min_samples;
  }
}
inline void end_reweighted(const Job& j) {
  for (int k = 0; k < j.n_copies * j.n_outputs; k++) {
    Output& o = j.reweighted[k];
    const Reweighted scales(j.output[k % j.n_outputs], o);
    o.narrow = scales.own_narrow;
    o.wide = scales.own_wide;
    const int64_t least = 64 * o.total_g;  // total_g: what the rows count for
    o.is_narrow =
        j.precision == 1 || (j.precision == 0 && o.sum_g[1] >= least && o.sum_h[1] >= least);
    o.n_passes = 0;
    o.max_g = o.max_h = o.max_search = 0;
    o.sum_g[0] = o.sum_g[1] = o.sum_h[0] = o.sum_h[1] = 0;
  }
}

}  // namespace sapwood
