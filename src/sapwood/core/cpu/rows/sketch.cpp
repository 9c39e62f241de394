#include "cpu/rows/sketch.h"

#include <algorithm>
#include <stdexcept>

#include "math/fixed.h"
#include "math/hash.h"

namespace sapwood {
namespace {

constexpr uint64_t MAX_FINITE = 0x7feffffffffffffful;  // bits of the largest finite double

// what a step of wide numbers is worth
double unit(int exponent) {
  return power_of_two(exponent - WIDE);
}

}  // namespace

void Sketch::project(const RowState& s, RowSample& sample, const Quantised& q, uint64_t seed,
                     uint64_t tree, int n_sums) {
  const int64_t n = n_ = s.n;
  const int n_outputs = s.n_outputs;
  const size_t size = (size_t)n * n_sums;
  if (wide_.size() < size * sizeof(Pair)) {
    real_ = Memory((size + n) * 8);
    wide_ = Memory(size * sizeof(Pair));
    packed_ = Memory(size * sizeof(int32_t));
    if (s.repeated()) {
      narrow_ = Memory(size * sizeof(Pair));
    }
  }
  repeated_ = s.repeated();
  const bool integral = !s.weights.given || s.weights.integral;
  constant_hessian_ = (q.constant_hessian || q.unit_leaf) && integral && !sample.reweighted;
  sums_.resize(n_sums);
  const WidePairs& from = q.of(sample);
  std::vector<double> factor;  // (n_sums, n_outputs)
  const double share = 1.0 / __builtin_sqrt((double)n_sums);
  for (int i = 0; i < n_sums; i++) {
    const uint64_t signs = key(seed, SKETCH, tree, (uint64_t)i);
    for (int k = 0; k < n_outputs; k++) {
      factor.push_back((draw(signs, (uint64_t)k) & 1 ? share : -share) * unit(from.wide[k].g));
    }
  }
  std::vector<const Pair*> pairs;
  for (int k = 0; k < n_outputs; k++) {
    pairs.push_back(leaf_pairs_by_row(s, sample, q, k));
  }
  std::vector<double> h_unit;
  for (int k = 0; k < n_outputs; k++) {
    h_unit.push_back(unit(from.wide[k].h));
  }
  double* g = real_.as<double>();
  double* h = g + size;
  const uint8_t* in_sample = sample.reweighted ? sample.in_sample(s) : nullptr;
  const bool all = in_sample == nullptr && !s.weights.given;
  s.each_task([&](int64_t first, int64_t n_rows, int) {
    for (int64_t at = first; at < first + n_rows; at += BLOCK) {
      const int m = (int)std::min<int64_t>(BLOCK, first + n_rows - at);
      kernels().project({pairs.data(), at, m, n_outputs, n_sums, factor.data(), h_unit.data(), n,
                         g + at, h + at});
      for (int64_t r = at; r < at + m && !all; r++) {
        if ((in_sample == nullptr || in_sample[r]) && s.weights.of(r) > 0) {
          continue;
        }
        h[r] = 0.0;
        for (int i = 0; i < n_sums; i++) {
          g[i * n + r] = 0.0;
        }
      }
    }
  });
  for (int i = 0; i < n_sums; i++) {
    quantise(s, in_sample, q, i, g + i * n, h);
  }
}

// Finds the scales of a sum, and writes the rows in fixed point; those not in use are 0.
void Sketch::quantise(const RowState& s, const uint8_t* in_sample, const Quantised& q, int i,
                      const double* g, const double* h) {
  const int n_threads = threads_for(s.n * s.n_outputs, s.n_threads);
  struct alignas(64) Local {
    uint64_t max_bits[4] = {0, 0, 0, 0};  // |g|, h, h by count; of the last, scratch
    int64_t sums[3] = {0, 0, 0};          // repeats of |narrow g|, of narrow h, of rows
  };
  std::vector<Local> local(std::max(1, n_threads));
  const bool real = s.weights.given && !s.weights.integral;
  s.each_task([&](int64_t at, int64_t m, int worker) {
    uint64_t* most = local[worker].max_bits;
    most[0] = kernels().max_abs_bits(most[0], g + at, (int)m);
    most[1] = kernels().max_abs_bits(most[1], h + at, (int)m);
    if (!real) {
      most[2] = most[1];
    }
    for (int64_t r = at; r < at + m && real; r++) {
      if (h[r] > 0.0) {
        most[2] = std::max(most[2], bits_of(h[r] / s.weights.repeats[r]));
      }
    }
  });
  Local all;
  for (const Local& l : local) {
    for (int k = 0; k < 3; k++) {
      all.max_bits[k] = std::max(all.max_bits[k], l.max_bits[k]);
    }
  }
  reduce_max(s.reduce, all.max_bits, 3);
  if (all.max_bits[0] > MAX_FINITE || all.max_bits[1] > MAX_FINITE) {
    throw std::overflow_error("the gradients are no longer finite");
  }
  const int eg = exponent_of(of_bits(all.max_bits[0]));
  const int eh = exponent_of(of_bits(all.max_bits[1]));
  Sum& sum = sums_[i];
  sum.narrow = {NARROW, eg, eh};
  sum.wide = {WIDE, eg, eh};
  const double low_h = h_scale(sum.narrow);
  const double hs = h_scale(sum.wide);
  int32_t* packed = packed_.as<int32_t>() + i * n_;
  Pair* narrow = repeated_ ? narrow_.as<Pair>() + i * n_ : nullptr;
  Pair* wide = wide_.as<Pair>() + i * n_;
  const int32_t* repeats = repeated_ ? s.weights.repeats.data() : nullptr;
  s.each_task([&](int64_t first, int64_t n_rows, int worker) {
    Local& own = local[worker];
    uint64_t* top = own.max_bits;
    for (int64_t at = first; at < first + n_rows; at += BLOCK) {
      const int m = (int)std::min<int64_t>(BLOCK, first + n_rows - at);
      QuantiseArgs a{0,       repeats, &sum.narrow, &sum.wide, packed,   wide,        narrow,
                     nullptr, top,     top + 1,     top + 3,   own.sums, own.sums + 1};
      kernels().quantise(a, at, m, g + at, h + at);
      for (int64_t r = at; r < at + m; r++) {
        const bool used = in_sample == nullptr || in_sample[r];
        const int64_t weight = s.weights.of(r);
        own.sums[2] += !used || weight == 0 ? 0 : s.weights.integral ? weight : 1;
      }
    }
  });
  for (const Local& l : local) {
    for (int k = 0; k < 3; k++) {
      all.sums[k] += l.sums[k];
    }
  }
  reduce_sum(s.reduce, all.sums, 3);
  sum.is_narrow = narrow_enough(q.precision, all.sums[0], all.sums[1], all.sums[2]);
  const double most = of_bits(all.max_bits[2]);
  const double scale = sum.is_narrow ? low_h : hs;
  // A quantised hessian is at most half a step above the real one, or 1.
  sum.max_hessian_per_count =
      constant_hessian_ ? (double)quantise_h(most, scale) : most * scale + 1.0;
}

Gradients Sketch::gradients(int i) {
  const Sum& sum = sums_[i];
  Gradients g{};
  g.scale = sum.is_narrow ? sum.narrow : sum.wide;
  g.leaf_scale = sum.wide;
  g.leaf = wide_.as<Pair>() + i * n_;
  g.packed = sum.is_narrow && !repeated_ ? packed_.as<int32_t>() + i * n_ : nullptr;
  g.search = !sum.is_narrow ? g.leaf : repeated_ ? narrow_.as<Pair>() + i * n_ : nullptr;
  g.constant_hessian = constant_hessian_;
  g.max_hessian_per_count = sum.max_hessian_per_count;
  return g;
}

}  // namespace sapwood
