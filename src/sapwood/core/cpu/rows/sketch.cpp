#include "cpu/rows/sketch.h"

#include <algorithm>
#include <stdexcept>

#include "math/fixed.h"
#include "math/hash.h"

namespace sapwood {
namespace {

constexpr uint64_t MAX_FINITE = 0x7feffffffffffffful;  // bits of the largest finite double

double unit(int exponent) { return power_of_two(exponent - WIDE); }  // what a step of wide numbers is worth

}  // namespace

void Sketch::project(const RowState& s, RowSample& sample, const Quantised& q, uint64_t seed, uint64_t tree,
                     int n_sums) {
  const int64_t n = n_ = s.n;
  const int n_outputs = s.n_outputs;
  const size_t size = (size_t)n * n_sums;
  if (wide_.size() < size * sizeof(Pair)) {
    real_ = Memory((size + n) * 8), wide_ = Memory(size * sizeof(Pair)), packed_ = Memory(size * sizeof(int32_t));
    if (s.repeated()) narrow_ = Memory(size * sizeof(Pair));
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
    for (int k = 0; k < n_outputs; k++)
      factor.push_back((draw(signs, (uint64_t)k) & 1 ? share : -share) * unit(from.wide[k].g));
  }
  std::vector<const Pair*> pairs;
  for (int k = 0; k < n_outputs; k++) pairs.push_back(leaf_pairs_by_row(s, sample, q, k));
  double *g = real_.as<double>(), *h = g + size;
  s.each_task([&](int64_t at, int64_t m, int) {
    std::fill_n(h + at, m, 0.0);
    for (int i = 0; i < n_sums; i++) std::fill_n(g + i * n + at, m, 0.0);
    for (int k = 0; k < n_outputs; k++) {
      const Pair* from_k = pairs[k] + at;
      const double h_unit = unit(from.wide[k].h);
      for (int64_t r = 0; r < m; r++) h[at + r] = h[at + r] + (double)from_k[r].h * h_unit;
      for (int i = 0; i < n_sums; i++) {
        double* to = g + i * n + at;
        const double by = factor[i * n_outputs + k];
        for (int64_t r = 0; r < m; r++) to[r] = to[r] + (double)from_k[r].g * by;
      }
    }
    for (int64_t r = at; r < at + m; r++) h[r] = h[r] / n_outputs;
  });
  const uint8_t* in_sample = sample.reweighted ? sample.in_sample(s) : nullptr;
  for (int i = 0; i < n_sums; i++) quantise(s, in_sample, q, i, g + i * n, h);
}

// Finds the scales of a sum from the rows in use, and writes these rows in fixed point; the others are 0.
void Sketch::quantise(const RowState& s, const uint8_t* in_sample, const Quantised& q, int i, const double* g,
                      const double* h) {
  auto in_use = [&](int64_t r) { return (in_sample == nullptr || in_sample[r]) && s.weights.of(r) > 0; };
  const int n_threads = threads_for(s.n * s.n_outputs, s.n_threads);
  struct alignas(64) Local {
    uint64_t max_bits[3] = {0, 0, 0};  // |g|, h, h by count
    int64_t sums[3] = {0, 0, 0};       // repeats of |narrow g|, of narrow h, of rows
  };
  std::vector<Local> local(std::max(1, n_threads));
  s.each_task([&](int64_t at, int64_t m, int worker) {
    double most[3] = {0.0, 0.0, 0.0};
    for (int64_t r = at; r < at + m; r++) {
      if (!in_use(r)) continue;
      const double size = g[r] < 0.0 ? -g[r] : g[r];
      most[0] = size <= most[0] ? most[0] : size, most[1] = std::max(most[1], h[r]);
      most[2] = std::max(most[2], s.weights.given && !s.weights.integral ? h[r] / s.weights.repeats[r] : h[r]);
    }
    for (int k = 0; k < 3; k++) local[worker].max_bits[k] = std::max(local[worker].max_bits[k], bits_of(most[k]));
  });
  Local all;
  for (const Local& l : local)
    for (int k = 0; k < 3; k++) all.max_bits[k] = std::max(all.max_bits[k], l.max_bits[k]);
  reduce_max(s.reduce, all.max_bits, 3);
  if (all.max_bits[0] > MAX_FINITE || all.max_bits[1] > MAX_FINITE)
    throw std::overflow_error("the gradients are no longer finite");
  const int eg = exponent_of(of_bits(all.max_bits[0])), eh = exponent_of(of_bits(all.max_bits[1]));
  Sum& sum = sums_[i];
  sum.narrow = {NARROW, eg, eh}, sum.wide = {WIDE, eg, eh};
  const double low_g = g_scale(sum.narrow), low_h = h_scale(sum.narrow), gs = g_scale(sum.wide), hs = h_scale(sum.wide);
  int32_t* packed = packed_.as<int32_t>() + i * n_;
  Pair *narrow = repeated_ ? narrow_.as<Pair>() + i * n_ : nullptr, *wide = wide_.as<Pair>() + i * n_;
  s.each_task([&](int64_t at, int64_t m, int worker) {
    int64_t* sums = local[worker].sums;
    for (int64_t r = at; r < at + m; r++) {
      const bool used = in_use(r);
      const Pair low{used ? quantise_g(g[r], low_g) : 0, used ? quantise_h(h[r], low_h) : 0};
      wide[r] = {used ? quantise_g(g[r], gs) : 0, used ? quantise_h(h[r], hs) : 0};
      packed[r] = (int32_t)((uint32_t)low.g << 16) | low.h;
      if (repeated_) narrow[r] = low;
      const int64_t times = !used ? 0 : s.weights.integral ? s.weights.of(r) : 1;
      sums[0] += times * abs_gradient(low), sums[1] += times * low.h, sums[2] += times;
    }
  });
  for (const Local& l : local)
    for (int k = 0; k < 3; k++) all.sums[k] += l.sums[k];
  reduce_sum(s.reduce, all.sums, 3);
  sum.is_narrow = narrow_enough(q.precision, all.sums[0], all.sums[1], all.sums[2]);
  const double most = of_bits(all.max_bits[2]), scale = sum.is_narrow ? low_h : hs;
  // A quantised hessian is at most half a step above the real one, or 1.
  sum.max_hessian_per_count = constant_hessian_ ? (double)quantise_h(most, scale) : most * scale + 1.0;
}

Gradients Sketch::gradients(int i) {
  const Sum& sum = sums_[i];
  Gradients g{};
  g.scale = sum.is_narrow ? sum.narrow : sum.wide, g.leaf_scale = sum.wide;
  g.leaf = wide_.as<Pair>() + i * n_;
  g.packed = sum.is_narrow && !repeated_ ? packed_.as<int32_t>() + i * n_ : nullptr;
  g.search = !sum.is_narrow ? g.leaf : repeated_ ? narrow_.as<Pair>() + i * n_ : nullptr;
  g.constant_hessian = constant_hessian_, g.max_hessian_per_count = sum.max_hessian_per_count;
  return g;
}

}  // namespace sapwood
