#include "cpu/rows/quantise.h"

#include <algorithm>
#include <stdexcept>

#include "math/fixed.h"

namespace sapwood {
namespace {

// from here on some scale often changes, and a second pass should be short
constexpr int MANY_OUTPUTS = 8;
constexpr uint64_t MAX_FINITE = 0x7feffffffffffffful;  // bits of the largest finite double

void find_precision(const RowState& s, Quantised& q) {
  for (int k = 0; k < s.n_outputs; k++) {
    q.is_narrow[k] = narrow_enough(q.precision, q.sums[k], q.sums[s.n_outputs + k], s.n_repeats);
  }
}

// The arguments that all tasks of a row pass share.
GradientArgs pass_args(const RowState& s, const GradientRequest& r, const Quantised& q) {
  GradientArgs a{};
  a.plane = s.n;
  a.n_outputs = s.n_outputs;
  a.objective = s.objective;
  a.score = s.score.as<double>();
  a.label = s.label;
  a.label_plane = s.label_planes ? s.n : 0;
  a.byte_label = s.byte_label.empty() ? nullptr : s.byte_label.data();
  a.field = s.field.data();
  a.n_fields = s.n_fields;
  a.given_g = r.given_g;
  a.given_h = r.given_h;
  a.unit_hessian_search = q.unit_search;
  a.unit_hessian_leaf = q.unit_leaf;
  a.weight = s.weight_at();
  a.repeats = s.repeated() ? s.weights.repeats.data() : nullptr;
  a.narrow = q.all.narrow.data();
  a.wide = q.all.wide.data();
  a.leaf_pairs = q.all.leaf_pairs.as<Pair>();
  a.packed = q.has_words ? q.search_packed.as<int32_t>() : nullptr;
  a.search_pairs_narrow = s.repeated() ? q.search_pairs_narrow.as<Pair>() : nullptr;
  a.search_pairs_wide = q.own_search_hessians() ? q.all.search_pairs.as<Pair>() : nullptr;
  a.softmax_top = q.softmax.size() > 0 ? q.softmax.as<double>() : nullptr;
  a.softmax_total = q.softmax.size() > 0 ? q.softmax.as<double>() + s.n : nullptr;
  return a;
}

// Moves every array by row that is given to the row `at`.
void advance(GradientArgs& a, int64_t at) {
  auto move = [at](auto*& p) {
    p = p == nullptr ? nullptr : p + at;
  };
  move(a.score);
  move(a.label);
  move(a.byte_label);
  move(a.given_g);
  move(a.given_h);
  move(a.weight);
  move(a.repeats);
  move(a.leaf_pairs);
  move(a.packed);
  move(a.search_pairs_narrow);
  move(a.search_pairs_wide);
  move(a.softmax_top);
  move(a.softmax_total);
  a.first = at;
}

// One pass over the rows with the scales of the last pass. Returns 1 for each output whose scales
// were wrong: powers of two rarely change, but of many outputs some often do. again: the outputs of
// a second pass, or null for all.
std::vector<uint8_t> pass_once(RowState& s, std::vector<LeafState>& leaves,
                               const GradientRequest& request, bool add_pending,
                               const uint8_t* again, Quantised& q) {
  struct alignas(64) Local {
    std::vector<uint64_t> max_bits;
    std::vector<int64_t> sums;
    std::vector<double> scratch;
  };
  const int n_outputs = s.n_outputs;
  std::vector<Local> local(s.n_threads);
  std::vector<const double*> value(n_outputs, nullptr);
  std::vector<LeafIds> ids;
  for (const LeafState& l : leaves) {
    if (add_pending && l.pending) {
      value[ids.size()] = l.value.data();
    }
    ids.push_back(l.ids);
  }
  GradientArgs all = pass_args(s, request, q);
  all.again = again;
  s.each_task([&](int64_t at, int64_t n, int worker) {
    Local& mine = local[worker];
    if (mine.scratch.empty()) {
      mine.max_bits.assign(3 * n_outputs, 0);
      mine.sums.assign(2 * n_outputs, 0);
      mine.scratch.resize((size_t)(n_outputs + 3) * BLOCK);
    }
    GradientArgs a = all;
    advance(a, at);
    a.n = n;
    a.leaf = ids.data();
    a.leaf_value = value.data();
    a.scratch = mine.scratch.data();
    a.max_g = mine.max_bits.data();
    a.max_h = a.max_g + n_outputs;
    a.max_search_h = a.max_h + n_outputs;
    a.sum_g = mine.sums.data();
    a.sum_h = a.sum_g + n_outputs;
    kernels().gradients(a);
  });
  for (LeafState& l : leaves) {
    l.pending = l.pending && !add_pending;
  }
  std::vector<uint64_t> max_bits(3 * n_outputs, 0);
  std::vector<int64_t> sums(2 * n_outputs, 0);
  for (const Local& l : local) {
    for (size_t i = 0; i < l.max_bits.size(); i++) {
      max_bits[i] = std::max(max_bits[i], l.max_bits[i]);
    }
    for (size_t i = 0; i < l.sums.size(); i++) {
      sums[i] += l.sums[i];
    }
  }
  reduce_max_and_sum(s.reduce, max_bits.data(), max_bits.size(), sums.data(), sums.size());
  q.max_bits.resize(3 * n_outputs);
  q.sums.resize(2 * n_outputs);
  std::vector<uint8_t> wrong(n_outputs, 0);
  for (int k = 0; k < n_outputs; k++) {
    if (again != nullptr && again[k] == 0) {
      continue;
    }
    int e[3];
    for (int i = 0; i < 3; i++) {
      const int at = i * n_outputs + k;
      q.max_bits[at] = max_bits[at];
      e[i] = exponent_of(of_bits(max_bits[at]));
      if (i < 2) {
        q.sums[at] = sums[at];
      }
    }
    Scale& narrow = q.all.narrow[k];
    Scale& wide = q.all.wide[k];
    wrong[k] = e[0] != wide.g || e[1] != wide.h || e[2] != narrow.h;
    narrow = {NARROW, e[0], e[2]};
    wide = {WIDE, e[0], e[1]};
  }
  return wrong;
}

}  // namespace

Quantised::Quantised(const RowState& s) {
  const size_t size = (size_t)s.n * s.n_outputs;
  search_packed = Memory(size * sizeof(int32_t));
  all.leaf_pairs = Memory(size * sizeof(Pair));
  if (s.repeated()) {
    search_pairs_narrow = Memory(size * sizeof(Pair));
  }
  if (!s.info.pointwise && s.n_outputs >= MANY_OUTPUTS) {
    softmax = Memory((size_t)s.n * 2 * sizeof(double));
  }
  all.narrow.assign(s.n_outputs, Scale{NARROW, 0, 0});
  all.wide.assign(s.n_outputs, Scale{WIDE, 0, 0});
  reweighted.narrow = all.narrow;
  reweighted.wide = all.wide;
  is_narrow.assign(s.n_outputs, 1);
}

void row_pass(RowState& s, std::vector<LeafState>& leaves, const GradientRequest& request,
              bool needs_words, Quantised& q) {
  q.constant_hessian = request.given_g == nullptr && s.info.constant_hessian;
  q.unit_search = request.unit_search && !q.constant_hessian;
  q.unit_leaf = request.unit_leaf && !q.constant_hessian;
  if (q.own_search_hessians() && q.all.search_pairs.size() == 0) {
    q.all.search_pairs = Memory((size_t)s.n * s.n_outputs * sizeof(Pair));
  }
  q.has_words = needs_words;
  const std::vector<uint8_t> wrong = pass_once(s, leaves, request, true, nullptr, q);
  if (std::ranges::count(wrong, 1) > 0) {
    pass_once(s, leaves, request, false, wrong.data(), q);
  }
  q.precision = request.precision;
  for (int i = 0; i < 2 * s.n_outputs; i++) {
    if (q.max_bits[i] > MAX_FINITE) {
      throw std::overflow_error("the gradients are no longer finite");
    }
  }
  if (q.has_words) {
    find_precision(s, q);
  }
}

void add_words(RowState& s, std::vector<LeafState>& leaves, Quantised& q) {
  q.has_words = true;
  pass_once(s, leaves, {}, false, nullptr, q);
  find_precision(s, q);
}

void requantise(const RowState& s, RowSample& sample, int output, Quantised& q) {
  const bool own_search = q.own_search_hessians();
  const size_t n_bytes = (size_t)s.n * s.n_outputs * sizeof(Pair);
  if (q.reweighted.leaf_pairs.size() == 0) {
    q.reweighted.leaf_pairs = Memory(n_bytes);
  }
  if (own_search && q.reweighted.search_pairs.size() == 0) {
    q.reweighted.search_pairs = Memory(n_bytes);
  }
  auto all_tasks = [&](const Scale& narrow, const Scale& wide) {
    std::vector<RequantiseArgs> parts(sample.tasks.size());
    run(threads_for(s.n, s.n_threads), (int64_t)sample.tasks.size(), [&](int64_t task, int) {
      const SampleTask& t = sample.tasks[task];
      if (output == 0) {
        sample.append(t);
      }
      const int64_t first = output * s.n + t.first;
      const int64_t out = first + (sample.gathered ? t.to : 0);
      const int64_t at = t.first + t.begin;
      RequantiseArgs a{};
      a.gathered = sample.gathered;
      a.n = t.count;
      a.narrow = &narrow;
      a.wide = &wide;
      a.rows = sample.list.as<int32_t>() + at;
      a.sample_weight = sample.sample_weight.as<double>() + at;
      a.leaf_pairs = q.all.leaf_pairs.as<Pair>() + first;
      a.reweighted_leaf_pairs = q.reweighted.leaf_pairs.as<Pair>() + out;
      a.packed = q.search_packed.as<int32_t>() + out;
      if (own_search) {
        a.search_pairs_wide = q.all.search_pairs.as<Pair>() + first;
        a.reweighted_search_pairs = q.reweighted.search_pairs.as<Pair>() + first;
      }
      if (s.repeated()) {
        a.repeats = s.weights.repeats.data() + t.first;
        a.search_pairs_narrow = q.search_pairs_narrow.as<Pair>() + first;
      }
      kernels().requantise(a);
      parts[task] = a;
    });
    RequantiseArgs sum{};
    for (const RequantiseArgs& a : parts) {
      for (int i = 0; i < 3; i++) {
        sum.max_bits[i] = std::max(sum.max_bits[i], a.max_bits[i]);
      }
      sum.sum_g += a.sum_g;
      sum.sum_h += a.sum_h;
      sum.count += a.count;
    }
    int64_t sums[3] = {sum.sum_g, sum.sum_h, sum.count};
    reduce_max_and_sum(s.reduce, sum.max_bits, 3, sums, 3);
    sum.sum_g = sums[0];
    sum.sum_h = sums[1];
    sum.count = sums[2];
    return sum;
  };
  // One step of the wide numbers is 2^(e - WIDE): exponents of gradients are converted to exponents
  // of such steps.
  const Scale& from_wide = q.all.wide[output];
  const Scale& from_narrow = q.all.narrow[output];
  const int step[3] = {from_wide.g - WIDE, from_wide.h - WIDE, from_narrow.h - WIDE};
  auto relative = [&](int e, int i) {
    return std::clamp(e - step[i], -MAX_SCALE_GAP, MAX_SCALE_GAP);
  };
  Scale& narrow = q.reweighted.narrow[output];
  Scale& wide = q.reweighted.wide[output];
  // starts with the scales of the last round, which are nearly always right
  for (bool right = false; !right;) {
    const Scale low{NARROW, relative(wide.g, 0), relative(narrow.h, 2)};
    const Scale high{WIDE, relative(wide.g, 0), relative(wide.h, 1)};
    const RequantiseArgs sum = all_tasks(low, high);
    int e[3];
    for (int i = 0; i < 3; i++) {
      const double top = of_bits(sum.max_bits[i]);
      e[i] = top == 0.0 ? 0 : std::max(-960, exponent_of(top) + step[i]);
    }
    right = e[0] == wide.g && e[1] == wide.h && e[2] == narrow.h;
    narrow = {NARROW, e[0], e[2]};
    wide = {WIDE, e[0], e[1]};
    q.is_narrow[output] = narrow_enough(q.precision, sum.sum_g, sum.sum_h, sum.count);
  }
}

void scatter(const RowState& s, const RowSample& sample, int output, Quantised& q) {
  if (q.scattered.size() == 0) {
    q.scattered = Memory((size_t)s.n * s.n_outputs * sizeof(Pair));
  }
  run(threads_for(s.n, s.n_threads), (int64_t)sample.tasks.size(), [&](int64_t task, int) {
    const SampleTask& t = sample.tasks[task];
    const int64_t first = output * s.n + t.first;
    const int32_t* rows = sample.list.as<int32_t>() + t.first + t.begin;
    const Pair* from = q.reweighted.leaf_pairs.as<Pair>() + first + t.to;
    Pair* to = q.scattered.as<Pair>() + first;
    for (int64_t i = 0; i < t.count; i++) {
      to[rows[i]] = from[i];
    }
  });
}

const Pair* leaf_pairs_by_row(const RowState& s, const RowSample& sample, const Quantised& q,
                              int output) {
  return (sample.gathered ? q.scattered : q.of(sample).leaf_pairs).as<Pair>() + output * s.n;
}

namespace {

// The largest quantised hessian per unit of count, over the sampled rows of all holders. packed: as
// in Gradients.
double max_hessian_per_count(const RowState& s, const RowSample& sample, const int32_t* packed,
                             const Pair* pairs) {
  double most = 0.0;
  auto visit = [&](int64_t row, int64_t place) {  // place: in `packed`
    const int32_t m = s.weights.given ? s.weights.repeats[row] : 1;
    if (m == 0) {
      return;
    }
    const double h = packed != nullptr ? (double)(packed[place] & 0xffff) : (double)pairs[row].h;
    most = std::max(most, s.weights.integral ? h : h / m);
  };
  for (const SampleTask& t : sample.tasks) {
    for (int64_t i = 0; i < t.count && sample.reweighted; i++) {
      const int64_t row = t.first + sample.list.as<int32_t>()[t.first + t.begin + i];
      visit(row, sample.gathered ? t.first + t.to + i : row);
    }
  }
  for (int64_t i = 0; i < s.n && !sample.reweighted; i++) {
    visit(i, i);
  }
  uint64_t bits = bits_of(most);
  reduce_max(s.reduce, &bits, 1);
  return of_bits(bits);
}

}  // namespace

Gradients search_gradients(const RowState& s, const RowSample& sample, const Quantised& q,
                           int output, bool leaf_gathered, double min_samples_leaf) {
  Gradients g{};
  const int64_t at = output * s.n;
  const bool narrow = q.is_narrow[output];
  const bool integral = !s.weights.given || s.weights.integral;
  const WidePairs& from = q.of(sample);
  const Scale& low = from.narrow[output];
  g.scale = narrow ? low : Scale{WIDE, low.g, low.h};
  g.leaf_scale = from.wide[output];
  g.gathered = sample.gathered;
  g.leaf_gathered = leaf_gathered;
  g.leaf =
      leaf_gathered ? from.leaf_pairs.as<Pair>() + at : leaf_pairs_by_row(s, sample, q, output);
  g.packed = narrow && !s.repeated() ? q.search_packed.as<int32_t>() + at : nullptr;
  const Pair* wide = q.own_search_hessians() ? from.search_pairs.as<Pair>() + at : g.leaf;
  const Pair* coarse = narrow && s.repeated() ? q.search_pairs_narrow.as<Pair>() + at : nullptr;
  g.search = narrow ? coarse : wide;
  g.constant_hessian =
      (q.constant_hessian || q.unit_search || q.unit_leaf) && integral && !sample.reweighted;
  if (!sample.reweighted && integral) {
    g.max_hessian_per_count =
        (double)quantise_h(of_bits(q.max_bits[2 * s.n_outputs + output]), h_scale(g.scale));
  } else if (min_samples_leaf > 1.0) {
    g.max_hessian_per_count =
        max_hessian_per_count(s, sample, g.packed, coarse != nullptr ? coarse : wide);
  }
  return g;
}

double noise_scale(const RowState& s, const Quantised& q, int output) {
  const Pair* wide =
      (q.own_search_hessians() ? q.all.search_pairs : q.all.leaf_pairs).as<Pair>() + output * s.n;
  __int128 sums[2] = {0, 0};
  for (int64_t i = 0; i < s.n; i++) {
    const int64_t w = s.weights.given
                          ? (s.weights.integral ? s.weights.repeats[i] : s.weights.repeats[i] > 0)
                          : 1;
    sums[0] += (__int128)((int64_t)wide[i].g * wide[i].g) * w;
    sums[1] += (__int128)wide[i].h * w;
  }
  reduce_sum(s.reduce, sums, 2);
  return sums[1] == 0 ? 0.0 : __builtin_sqrt((double)sums[0] / (double)sums[1]);
}

}  // namespace sapwood
