// The row pass on the device: pending leaf values into scores, scores into gradients, gradients
// into fixed point.
//
// The scales are those of the last round, which are nearly always right. The second pass starts at
// once; its blocks return where the maxima of the first confirm the scales, and repeat the
// quantisation where they do not.
#pragma once
#include "cuda/job.h"
#include "cuda/platform.h"
#include "math/fixed.h"

namespace sapwood {

constexpr int ROW_THREADS = 256;
constexpr uint64_t MAX_FINITE = 0x7feffffffffffffful;  // bits of the largest finite double

inline uint64_t abs_bits(double x) {
  return bits_of(x) & 0x7fffffffffffffffu;
}

struct PassScales {  // of one output in one pass
  double g, h, search_g, search_h, wide_search_h;
  PassScales(const Scale& narrow, const Scale& wide)
      : g(g_scale(wide)),
        h(h_scale(wide)),
        search_g(g_scale(narrow)),
        search_h(h_scale(narrow)),
        wide_search_h(h_scale({WIDE, narrow.g, narrow.h})) {}
};

inline Scale narrow_of(const Output& o) {
  return {NARROW, exponent_of(of_bits(o.max_g)), exponent_of(of_bits(o.max_search))};
}
inline Scale wide_of(const Output& o) {
  return {WIDE, exponent_of(of_bits(o.max_g)), exponent_of(of_bits(o.max_h))};
}
inline bool same(const Scale& a, const Scale& b) {
  return a.g == b.g && a.h == b.h;
}
inline bool scales_hold(const Output& o) {
  return same(o.narrow, narrow_of(o)) && same(o.wide, wide_of(o));
}
inline bool is_finite(const Output& o) {
  return o.max_g <= MAX_FINITE && o.max_h <= MAX_FINITE;
}

// Fixes the scales of an output after its passes, once; copies of a round share its gradients.
inline void fix_scales(const Job& j, Output& o) {
  if (o.n_passes > 0) {
    const int pass = scales_hold(o) ? 0 : 1;
    o.failed |= !is_finite(o);
    o.narrow = narrow_of(o);
    o.wide = wide_of(o);
    o.kept_max_search = o.max_search;
    o.total_g = o.sum_g[pass];
    const int64_t enough = 64 * j.total_repeats;
    o.is_narrow = j.precision == 1 ||
                  (j.precision == 0 && o.sum_g[pass] >= enough && o.sum_h[pass] >= enough);
  }
  o.n_passes = 0;
  o.max_g = o.max_h = o.max_search = 0;
  o.sum_g[0] = o.sum_g[1] = o.sum_h[0] = o.sum_h[1] = 0;
}

struct RowGradient {
  double g, h, search;  // search: the hessian of the split search
};

// The gradient of a row by the objective, or as given, times its weight.
template <class Objective>
inline RowGradient row_gradient(const Job& j, int64_t row, int k, double top, double total) {
  double g;
  double h;
  if (j.given_g != nullptr) {
    g = j.given_g[k * j.n + row];
    h = j.given_h[k * j.n + row];
  } else if constexpr (Objective::pointwise) {
    Objective::grad_hess(j.score[k * j.n + row], j.label[k * j.label_plane + row],
                         j.field + k * j.n_fields, g, h);
  } else {
    const double factor = j.n_outputs > 1 ? (double)j.n_outputs / (double)(j.n_outputs - 1) : 1.0;
    const double p = exp(j.score[k * j.n + row] - top) / total;
    Objective::of_probability(p, j.label[row] == (double)k, factor, g, h);
  }
  const double w = j.weight != nullptr ? j.weight[row] : 1.0;
  const bool own_search = j.unit_search != 0 && j.unit_leaf == 0;
  if (j.unit_leaf) {
    h = 1.0;
  }
  if (j.weight != nullptr) {
    g = g * w;
    h = h * w;
  }
  return {g, h, own_search ? w : h};
}

struct PassTotals {  // of one output, over the rows of a thread
  uint64_t max_g = 0, max_h = 0, max_search = 0;
  int64_t sum_g = 0, sum_h = 0;
  void raise(const RowGradient& r) {
    const uint64_t g = abs_bits(r.g);
    const uint64_t h = abs_bits(r.h);
    const uint64_t s = abs_bits(r.search);
    max_g = g > max_g ? g : max_g;
    max_h = h > max_h ? h : max_h;
    max_search = s > max_search ? s : max_search;
  }
};

// Fixed point of one row.
inline void quantise_row(const Job& j, int64_t row, int k, const RowGradient& r,
                         const PassScales& s, PassTotals& t) {
  const int64_t at = k * j.n + row;
  j.leaf_pairs[at] = {quantise_g(r.g, s.g), quantise_h(r.h, s.h)};
  if (j.search_pairs != nullptr) {
    j.search_pairs[at] = {quantise_g(r.g, s.g), quantise_h(r.search, s.wide_search_h)};
  }
  const int32_t g = quantise_g(r.g, s.search_g);
  const int32_t h = quantise_h(r.search, s.search_h);
  j.packed[at] = (int32_t)(((uint32_t)g << 16) + (uint32_t)h);
  const int64_t w = j.repeated ? j.repeats[row] : 1;
  t.sum_g += w * (g < 0 ? -(int64_t)g : g);
  t.sum_h += w * h;
}

// A block adds its totals at once: atomics on one address wait for each other.
inline void add_totals(const PassTotals& t, Output& o, int pass) {
  __shared__ int64_t sums[2];
  __shared__ uint64_t most[3];
  const bool first = threadIdx.x % LANES == 0;
  if (threadIdx.x < 2) {
    sums[threadIdx.x] = 0;
  }
  if (threadIdx.x < 3) {
    most[threadIdx.x] = 0;
  }
  __syncthreads();
  const int64_t sum_g = warp_sum(t.sum_g);
  const int64_t sum_h = warp_sum(t.sum_h);
  const uint64_t g = warp_max(t.max_g);
  const uint64_t h = warp_max(t.max_h);
  const uint64_t s = warp_max(t.max_search);
  if (first) {
    add_to(&sums[0], sum_g);
    add_to(&sums[1], sum_h);
  }
  if (first) {
    raise_to(&most[0], g);
    raise_to(&most[1], h);
    raise_to(&most[2], s);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    add_to(&o.sum_g[pass], sums[0]);
    add_to(&o.sum_h[pass], sums[1]);
    if (pass == 0) {
      raise_to(&o.max_g, most[0]);
      raise_to(&o.max_h, most[1]);
      raise_to(&o.max_search, most[2]);
    }
  }
  __syncthreads();
}

// The largest score of a row and the sum of exponentials, for coupled scores. The first output's
// pass finds them, and keeps them for the others.
template <class Objective>
inline void row_total(const Job& j, int64_t row, bool known, double& top, double& total) {
  top = 0.0;
  total = 0.0;
  if constexpr (!Objective::pointwise) {
    if (j.given_g != nullptr) {
      return;
    }
    if (known && j.row_totals != nullptr) {
      top = j.row_totals[row];
      total = j.row_totals[j.n + row];
      return;
    }
    top = j.score[row];
    for (int k = 1; k < j.n_outputs; k++) {
      top = j.score[k * j.n + row] > top ? j.score[k * j.n + row] : top;
    }
    for (int k = 0; k < j.n_outputs; k++) {
      total = total + exp(j.score[k * j.n + row] - top);
    }
    if (j.row_totals != nullptr) {
      j.row_totals[row] = top;
      j.row_totals[j.n + row] = total;
    }
  }
}

// Output after output, so that totals stay in registers; scores are added first where outputs are
// coupled.
template <class Objective>
inline void pass_rows(const Job& j, int pass, bool pending) {
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const bool adds = pass == 0 && pending;
  const bool at_once = adds && j.n_outputs == 1;
  if (adds && !at_once) {
    for (int k = 0; k < j.n_outputs; k++) {
      for (int64_t row = first; row < j.n; row += step) {
        const int64_t at = k * j.n + row;
        j.score[at] = j.score[at] + j.node_value[k * j.max_nodes + j.leaf[at]];
      }
    }
  }
  for (int k = 0; k < j.n_outputs; k++) {
    Output& o = j.output[k];
    if (pass == 1 && scales_hold(o)) {
      continue;
    }
    const PassScales scales =
        pass == 0 ? PassScales(o.narrow, o.wide) : PassScales(narrow_of(o), wide_of(o));
    PassTotals totals;
    // two rows at a time: their chains of steps overlap
    for (int64_t row = first; row < j.n; row += 2 * step) {
      const int64_t other = row + step < j.n ? row + step : row;
      if (at_once) {
        const double one = j.score[row] + j.node_value[j.leaf[row]];
        const double two = j.score[other] + j.node_value[j.leaf[other]];
        j.score[row] = one;
        if (other != row) {
          j.score[other] = two;
        }
      }
      double top[2];
      double total[2];
      const bool known = k > 0 || pass > 0;
      row_total<Objective>(j, row, known, top[0], total[0]),
          row_total<Objective>(j, other, known, top[1], total[1]);
      const RowGradient r = row_gradient<Objective>(j, row, k, top[0], total[0]);
      const RowGradient s = row_gradient<Objective>(j, other, k, top[1], total[1]);
      if (pass == 0) {
        totals.raise(r);
        totals.raise(s);
      }
      quantise_row(j, row, k, r, scales, totals);
      if (other != row) {
        quantise_row(j, other, k, s, scales, totals);
      }
    }
    add_totals(totals, o, pass);
    if (first != 0 || pass != 0) {
      continue;
    }
    o.constant_hessian = Objective::constant_hessian && j.given_g == nullptr;
    o.own_min_samples = Objective::default_min_samples_leaf(j.field + k * j.n_fields);
    o.n_passes++;
  }
}

}  // namespace sapwood
