#include "cpu/trainer.h"

#include <string.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>

#include "cpu/grow/exact.h"
#include "cpu/grow/growth.h"
#include "cpu/rows/apply.h"
#include "cpu/rows/exact_sum.h"
#include "host/pool.h"
#include "math/gain.h"
#include "math/hash.h"

namespace sapwood {
namespace {
constexpr int64_t MAX_SERIAL_CODES =
    64 << 20;  // codes up to which one worker grows a tree alone: 0.1 s, so that Ctrl-C is heard
}  // namespace

// ------------------------------------------------------------------------------------------------ Trainer
Trainer::Trainer(const Binned& binned, const double* label, bool label_planes, const double* weight, int objective,
                 std::vector<double> field, int n_outputs, int n_threads)
    : binned_(binned),
      label_(label),
      label_planes_(label_planes),
      weights_(weight, binned.n_rows),
      info_(objective_info(objective)),
      objective_(objective),
      n_outputs_(n_outputs),
      n_threads_(n_threads),
      n_fields_(info_.n_fields + 1),  // the last is for what adapts
      field_((size_t)n_outputs * n_fields_),
      n_(binned.n_rows),
      work_(std::make_unique<Workspace[]>((size_t)std::max(1, n_threads))),
      ordered_(binned.exact ? std::make_unique<SortedColumns>(binned, n_threads) : nullptr) {
  n_live_ = n_repeats_ = n_;
  if (weights_.given) {
    n_live_ = n_repeats_ = 0;
    for (const int32_t m : weights_.repeats) n_live_ += m > 0, n_repeats_ += weights_.whole ? m : m > 0;
    zeros_ = n_live_ < n_;
    if (!weights_.whole) {
      factor_.assign(weight, weight + n_);
    } else if (zeros_) {
      factor_.resize(n_);
      for (int64_t i = 0; i < n_; i++) factor_[i] = weights_.repeats[i] > 0;
    }
    if (!factor_.empty()) factor_at_ = factor_.data();
    weights_.real = nullptr;
  }
  for (int k = 0; k < n_outputs_; k++)
    std::copy_n(field.begin() + k * info_.n_fields, info_.n_fields, field_.begin() + k * n_fields_);
  const size_t all = (size_t)n_ * n_outputs_;
  score_ = Memory(all * 8);
  packed_ = Memory(all * 4);
  fine_ = Memory(all * 8);
  leaf_.resize(n_outputs_);
  numbers_.assign(n_outputs_, {nullptr, false});
  if (multiplied()) coarse_ = Memory(all * 8);
  narrow_.assign(n_outputs_, Scale{NARROW, 0, 0});
  wide_.assign(n_outputs_, Scale{WIDE, 0, 0});
  reweighted_narrow_ = narrow_, reweighted_wide_ = wide_;
  is_narrow_.assign(n_outputs_, 1);
  pending_.assign(n_outputs_, 0);
  value_.resize(n_outputs_), large_leaf_id_.resize(n_outputs_), large_leaf_value_.resize(n_outputs_),
      linear_.resize(n_outputs_);
  chosen_.resize(binned.shards.size());
  if (!label_planes_) labels_as_bytes();
  while (std::string(sampler_info(sampler_).name) != "uniform") sampler_++;
  sample(0, 0, {});
}
Trainer::~Trainer() = default;

// Classes, and small counts: a pass over the rows is bound by memory, and a sixth of it is labels.
void Trainer::labels_as_bytes() {
  byte_label_.resize(n_);
  std::atomic<bool> fits = true;
  run(threads_for(n_, n_threads_), task_count(n_), [&](int64_t t, int) {
    if (!fits) return;
    int wrong = 0;
    for (int64_t i = t * TASK_ROWS; i < std::min(n_, (t + 1) * TASK_ROWS); i++) {
      const double x = label_[i];
      byte_label_[i] = (uint8_t)(x >= 0.0 && x <= 255.0 ? x : 0.0);
      wrong |= byte_label_[i] != x;
    }
    if (wrong != 0) fits = false;
  });
  if (!fits) byte_label_ = {};
}

std::vector<double> Trainer::start() {
  std::vector<double> w, x, out;
  if (weights_.whole) w.assign(weights_.repeats.begin(), weights_.repeats.end());
  const double* weight = weights_.whole ? w.data() : weights_.given ? factor_at_ : nullptr;
  const double total = weights_.given ? weight_sum(weight, n_, n_threads_) : (double)n_;
  for (int k = 0; k < n_outputs_; k++) {
    const double* y = label(k);
    if (!info_.pointwise) {
      x.resize(n_);
      for (int64_t i = 0; i < n_; i++) x[i] = label_[i] == (double)k;
      y = x.data();
    }
    const double mean = exact_sum(y, weight, n_, n_threads_) / total;
    if (info_.mean_start) {
      out.push_back(info_.start(mean, field(k)));
      continue;
    }
    const std::vector<double> zero(n_, 0.0);
    LeafRows rows = rows_of(k, true, zero.data());
    rows.leaf = {nullptr, false}, rows.n_leaves = 1;
    const bool identity = std::string(info_.link) == "identity";
    std::vector<double> at = info_.knots ? leaf_knots(rows) : std::vector<double>{identity ? mean : 0.0};
    if (info_.steps > 0 && !info_.adaptive) at = leaf_newton(rows, std::move(at), 100, {}, nullptr);
    out.push_back(at[0]);
  }
  return out;
}

void Trainer::fill_scores(const double* start) {
  std::fill(pending_.begin(), pending_.end(), 0);
  run(threads_for(n_, n_threads_), task_count(n_),
      [&](int64_t t, int) {  // whoever writes to a page first has to wait for it
        for (int k = 0; k < n_outputs_; k++)
          std::fill_n(score_.as<double>() + k * n_ + t * TASK_ROWS, std::min(TASK_ROWS, n_ - t * TASK_ROWS), start[k]);
      });
}

void Trainer::set_scores(const double* scores) {
  std::fill(pending_.begin(), pending_.end(), 0);
  memcpy(score_.as<double>(), scores, (size_t)n_ * n_outputs_ * 8);
}

void Trainer::flush_scores(int output) {
  if (!pending_[output]) return;
  run(threads_for(n_, n_threads_), task_count(n_), [&](int64_t t, int) {
    const int64_t at = t * TASK_ROWS;
    kernels().add_leaf_values(score_.as<double>() + output * n_ + at, numbers_[output], at, value_[output].data(),
                              (int)std::min(TASK_ROWS, n_ - at));
  });
  pending_[output] = 0;
}

const double* Trainer::scores() {
  for (int k = 0; k < n_outputs_; k++) flush_scores(k);
  return score_.as<double>();
}

// One pass over the rows with the scales of last time. True if they were the right ones; they nearly always are, being powers of two.
bool Trainer::pass(bool pending) {
  struct alignas(64) Local {
    std::vector<uint64_t> max_g, max_h, max_search;
    std::vector<int64_t> sum_g, sum_h;
    std::vector<double> scratch;
  };
  std::vector<Local> local(n_threads_);
  std::vector<const double*> value(n_outputs_, nullptr);
  for (int k = 0; k < n_outputs_; k++)
    if (pending && pending_[k]) value[k] = value_[k].data();
  run(threads_for(n_, n_threads_), task_count(n_), [&](int64_t t, int worker) {
    Local& mine = local[worker];
    if (mine.scratch.empty()) {
      mine.max_g.assign(n_outputs_, 0), mine.max_h.assign(n_outputs_, 0), mine.max_search.assign(n_outputs_, 0);
      mine.sum_g.assign(n_outputs_, 0), mine.sum_h.assign(n_outputs_, 0);
      mine.scratch.resize((size_t)(n_outputs_ + 3) * BLOCK);
    }
    const int64_t at = t * TASK_ROWS;
    GradientArgs a{};
    a.n = std::min(TASK_ROWS, n_ - at), a.plane = n_, a.n_outputs = n_outputs_, a.objective = objective_;
    a.score = score_.as<double>() + at, a.leaf = numbers_.data(), a.first = at, a.leaf_value = value.data(),
    a.label = label_ + at, a.label_plane = label_planes_ ? n_ : 0, a.field = field_.data(), a.n_fields = n_fields_;
    a.byte_label = byte_label_.empty() ? nullptr : byte_label_.data() + at;
    if (given_g_ != nullptr) a.given_g = given_g_ + at, a.given_h = given_h_ + at;
    a.unit_hessian_search = unit_search_, a.unit_hessian_leaf = unit_leaf_;
    a.weight = factor_at_ == nullptr ? nullptr : factor_at_ + at;
    a.repeats = multiplied() ? weights_.repeats.data() + at : nullptr;
    a.narrow = narrow_.data(), a.wide = wide_.data();
    a.packed = words_ ? packed_.as<int32_t>() + at : nullptr, a.leaf_pairs = fine_.as<Pair>() + at,
    a.search_pairs_narrow = multiplied() ? coarse_.as<Pair>() + at : nullptr;
    a.search_pairs_wide = unit_search_ && !unit_leaf_ ? apart_.as<Pair>() + at : nullptr;
    a.scratch = mine.scratch.data();
    a.max_g = mine.max_g.data(), a.max_h = mine.max_h.data(), a.max_search_h = mine.max_search.data();
    a.sum_g = mine.sum_g.data(), a.sum_h = mine.sum_h.data();
    kernels().gradients(a);
  });
  if (pending) std::fill(pending_.begin(), pending_.end(), 0);
  max_g_.assign(n_outputs_, 0), max_h_.assign(n_outputs_, 0), max_search_.assign(n_outputs_, 0);
  sum_g_.assign(n_outputs_, 0), sum_h_.assign(n_outputs_, 0);
  for (const Local& l : local)
    if (!l.scratch.empty())
      for (int k = 0; k < n_outputs_; k++) {
        max_g_[k] = std::max(max_g_[k], l.max_g[k]), max_h_[k] = std::max(max_h_[k], l.max_h[k]);
        max_search_[k] = std::max(max_search_[k], l.max_search[k]);
        sum_g_[k] += l.sum_g[k], sum_h_[k] += l.sum_h[k];
      }
  bool right = true;
  for (int k = 0; k < n_outputs_; k++) {
    const int g = exponent_of(of_bits(max_g_[k])), h = exponent_of(of_bits(max_h_[k])),
              search = exponent_of(of_bits(max_search_[k]));
    right = right && g == wide_[k].g && h == wide_[k].h && search == narrow_[k].h;
    narrow_[k] = {NARROW, g, search}, wide_[k] = {WIDE, g, h};
  }
  return right;
}

std::vector<const char*> Trainer::gradients(const std::string& precision, bool unit_search, bool unit_leaf,
                                            const double* given_g, const double* given_h) {
  given_g_ = given_g, given_h_ = given_h;
  constant_ = given_g == nullptr && info_.constant_hessian;
  unit_search_ = unit_search && !constant_, unit_leaf_ = unit_leaf && !constant_;
  if (unit_search_ && !unit_leaf_ && apart_.size() == 0) apart_ = Memory((size_t)n_ * n_outputs_ * sizeof(Pair));
  if (info_.adaptive) {
    scores();
    field_[info_.n_fields] = knot_spread(rows_of(0, true), field_[0]);
  }
  words_ =
      !(by_gradient() && reweighted_ && given_g == nullptr);  // a sample such as the last one's has words of its own
  if (!pass(true)) pass(false);
  given_g_ = given_h_ = nullptr;
  precision_ = precision;
  std::vector<const char*> chosen;
  for (int k = 0; k < n_outputs_; k++) {
    if (max_g_[k] > 0x7feffffffffffffful || max_h_[k] > 0x7feffffffffffffful)
      throw std::overflow_error("the gradients are no longer finite");
  }
  if (words_) find_precision();
  for (const uint8_t narrow : is_narrow_) chosen.push_back(narrow ? "narrow" : "wide");
  return chosen;
}

void Trainer::find_precision() {
  for (int k = 0; k < n_outputs_; k++) is_narrow_[k] = narrow_enough(sum_g_[k], sum_h_[k], n_repeats_);
}

bool Trainer::narrow_enough(int64_t sum_g, int64_t sum_h, int64_t rows) const {
  return precision_ == "narrow" || (precision_ == "auto" && sum_g >= 64 * rows && sum_h >= 64 * rows);
}

std::vector<Tree> Trainer::grow(int grower, Limits limits, uint64_t seed, uint64_t tree, double luck, bool together,
                                const std::vector<int64_t>& ends) {
  preference_.luck = luck;
  for (int k = 0; k < n_outputs_; k++) flush_scores(k);
  if (!ends.empty()) return grow_models(grower, limits, seed, tree, together, ends);
  const bool same =
      all_rows_ && !multiplied() && !binned_.layout.wide && limits.colsample_bytree >= 1.0;  // all of all rows
  roots_.build(binned_, packed_.as<int32_t>(), same ? is_narrow_ : std::vector<uint8_t>(n_outputs_, 0), n_threads_);
  for (int k = 0; k < n_outputs_; k++)
    if (listed() && !fine_listed(k, limits)) spread(k);
  std::vector<Tree> trees(n_outputs_);
  // As many trees for every worker; the rest, large ones, and exact ones, whose lists take room, are grown by all of them, one
  // after the other.
  const int apart = !ordered_ && n_ * binned_.n_columns <= MAX_SERIAL_CODES ? n_outputs_ / n_threads_ * n_threads_ : 0;
  if (together && n_outputs_ > 1) {
    trees = grow_as_one(grower, limits, seed, tree, apart > 0);
  } else {
    run(n_threads_, apart,
        [&](int64_t k, int worker) { trees[k] = grow_one((int)k, grower, limits, seed, tree + k, work_[worker], 1); });
    for (int k = apart; k < n_outputs_; k++)
      trees[k] = grow_one(k, grower, limits, seed, tree + k, work_[0], n_threads_);
  }
  for (const Tree& t : trees)
    for (size_t i = 0; i < t.left.size() && !preference_.used.empty(); i++)
      if (t.left[i] != 0) preference_.used[t.column[i]] = 1;
  return trees;
}

bool Trainer::fine_listed(int output, const Limits& limits) const {
  return listed() && (all_rows_ || (is_narrow_[output] && leaves_by_masks(binned_, weights_, limits)));
}

// sqrt(sum of g^2 / sum of h), in the wide numbers of all rows of positive weight: by how much scores differ by chance.
double Trainer::deviation(int output) const {
  const Pair* wide = (unit_search_ && !unit_leaf_ ? apart_ : fine_).as<Pair>() + output * n_;
  __int128 square = 0, bend = 0;
  for (int64_t i = 0; i < n_; i++) {
    const int64_t w = weights_.given ? (weights_.whole ? weights_.repeats[i] : weights_.repeats[i] > 0) : 1;
    square += (__int128)((int64_t)wide[i].g * wide[i].g) * w, bend += (__int128)wide[i].h * w;
  }
  return bend == 0 ? 0.0 : __builtin_sqrt((double)square / (double)bend);
}

Gradients Trainer::quantised(int output, const Limits& limits) const {
  Gradients q{};
  const int64_t at = output * n_;
  const bool narrow = is_narrow_[output];
  const Scale &low = reweighted_ ? reweighted_narrow_[output] : narrow_[output], search = {WIDE, low.g, low.h};
  q.scale = narrow ? low : search, q.fine_scale = reweighted_ ? reweighted_wide_[output] : wide_[output];
  q.listed = listed(), q.fine_listed = fine_listed(output, limits);
  q.fine = (q.listed && !q.fine_listed ? spread_fine_ : reweighted_ ? reweighted_fine_ : fine_).as<Pair>() + at;
  q.packed = narrow && !multiplied() ? packed_.as<int32_t>() + at : nullptr;
  const Pair* wide = unit_search_ && !unit_leaf_ ? (reweighted_ ? reweighted_apart_ : apart_).as<Pair>() + at : q.fine;
  q.search = narrow ? (multiplied() ? coarse_.as<Pair>() + at : nullptr) : wide;
  q.constant_hessian = (constant_ || unit_search_ || unit_leaf_) && (!weights_.given || weights_.whole) && !reweighted_;
  if (!reweighted_ && (!weights_.given || weights_.whole)) {
    q.max_hessian_per_count = (double)quantise_h(of_bits(max_search_[output]), h_scale(q.scale));
  } else if (limits.min_samples_leaf > 1.0) {
    double most = 0.0;
    const Pair* h = narrow && multiplied() ? coarse_.as<Pair>() + at : wide;
    auto look = [&](int64_t row, int64_t place) {  // place: in packed
      const int32_t m = weights_.given ? weights_.repeats[row] : 1;
      if (m == 0) return;
      const double each = q.packed != nullptr ? (double)(q.packed[place] & 0xffff) : (double)h[row].h;
      most = std::max(most, weights_.whole ? each : each / m);
    };
    if (reweighted_)
      for (const Piece& p : pieces_)
        for (int64_t i = 0; i < p.count; i++) {
          const int64_t row = p.first + list_.as<int32_t>()[p.first + p.begin + i];
          look(row, q.listed ? p.first + p.to + i : row);
        }
    else
      for (int64_t i = 0; i < n_; i++) look(i, i);
    q.max_hessian_per_count = most;
  }
  return q;
}

GrowInput Trainer::input(int output, const Gradients& q, int grower, const Limits& limits, uint64_t seed, uint64_t tree,
                         int n_threads) const {
  GrowInput in{binned_,        q,
               weights_,       all_rows_ ? nullptr : &chosen_,
               limits,         grower_info(grower),
               seed,           tree,
               n_threads,      roots_.of(output),
               ordered_.get(), rules_,
               preference_,    0.0};
  if (preference_.luck > 0.0) {  // of g^2 / h: from the units of all rows' wide numbers to those of the search
    const Scale &from = narrow_[output], &to = q.scale;
    const int shift = (to.bits - 2 * to.g + to.h) - (WIDE - 2 * from.g + from.h);
    in.noise_scale = preference_.luck * deviation(output) * __builtin_sqrt(power_of_two(shift));
  }
  return in;
}

LeafIds Trainer::room(int output, size_t n_leaves) {
  const size_t need = (size_t)n_ * (n_leaves > 256 ? 2 : 1);
  if (leaf_[output].size() < need) leaf_[output] = Memory(need);
  return numbers_[output] = {leaf_[output].as<void>(), n_leaves > 256};
}

// Rows outside the sample have a leaf too.
void Trainer::find_leaf_ids(int output, const Tree& t, int n_threads) {
  const size_t n_leaves = value_[output].size();
  const LeafIds out = n_leaves <= 65536 ? room(output, n_leaves) : LeafIds{};
  if (n_leaves <= 65536) apply(binned_, view(t), out, n_threads);
  else {
    large_leaf_id_[output].resize(n_), large_leaf_value_[output] = t.value;
    apply(binned_, view(t), large_leaf_id_[output].data(), n_threads);
  }
}

Tree Trainer::grow_one(int output, int grower, Limits limits, uint64_t seed, uint64_t tree, Workspace& work,
                       int n_threads) {
  if (limits.min_samples_leaf == 0.0) limits.min_samples_leaf = info_.default_min_samples_leaf(field(output));
  const Gradients q = quantised(output, limits);
  linear_[output] = {};
  bool numbered = false;
  auto numbers = [&](size_t n_leaves) {
    numbered = true;
    return room(output, n_leaves);
  };
  Tree t = grow_tree(input(output, q, grower, limits, seed, tree, n_threads), work, numbers, value_[output]);
  if (!numbered) find_leaf_ids(output, t, n_threads);
  return t;
}

bool Trainer::can_grow_multi_output(const Limits& limits) const {
  for (int c = 0; c < binned_.n_columns; c++)
    if (binned_.is_category[c] && binned_.n_bins[c] > limits.max_cat_to_onehot && !rules_.one_by_one(c)) return false;
  return !ordered_ && rules_.direction.empty() && rules_.forced.empty();
}

std::vector<Tree> Trainer::grow_as_one(int grower, Limits limits, uint64_t seed, uint64_t tree, bool apart) {
  for (int k = 0, own = limits.min_samples_leaf == 0.0; k < n_outputs_ && own; k++)  // what any output asks for
    limits.min_samples_leaf = std::max(limits.min_samples_leaf, info_.default_min_samples_leaf(field(k)));
  std::vector<Gradients> q;
  std::vector<GrowInput> in;
  std::vector<AllocateLeafIds> numbers;
  std::vector<uint8_t> numbered(n_outputs_, 0);
  for (int k = 0; k < n_outputs_; k++) q.push_back(quantised(k, limits)), linear_[k] = {};
  for (int k = 0; k < n_outputs_; k++) {
    in.push_back(input(k, q[k], grower, limits, seed, tree, apart ? 1 : n_threads_));
    numbers.push_back([this, k, &numbered](size_t n_leaves) {
      numbered[k] = 1;
      return room(k, n_leaves);
    });
  }
  if (workspace_by_output_ == nullptr)
    workspace_by_output_ = std::make_unique<Workspace[]>((size_t)std::max(1, n_outputs_));
  std::vector<Tree> trees = grow_multi_output(in, workspace_by_output_.get(), numbers, value_, n_threads_, apart);
  for (int k = 0; k < n_outputs_; k++)
    if (!numbered[k]) find_leaf_ids(k, trees[k], n_threads_);
  return trees;
}

bool Trainer::can_grow_ordered() const {
  return binned_.shards.size() == 1 && !ordered_ && !rules_.any() && preference_.penalty.empty();
}

void Trainer::copy_settings(const Trainer& other) {
  rules_ = other.rules_, preference_ = other.preference_;
  sampler_ = other.sampler_, sampler_field_ = other.sampler_field_;
}

std::vector<Tree> Trainer::grow_models(int grower, Limits limits, uint64_t seed, uint64_t tree, bool together,
                                       const std::vector<int64_t>& ends) {
  roots_.build(binned_, nullptr, std::vector<uint8_t>(n_outputs_, 0), n_threads_);  // none: there are many
  if (workspace_by_output_ == nullptr)
    workspace_by_output_ = std::make_unique<Workspace[]>((size_t)std::max(1, n_outputs_));
  std::vector<Tree> trees;
  const int step = together ? n_outputs_ : 1;
  for (int first = 0; first < n_outputs_; first += step) {
    Limits own = limits;
    for (int k = first; k < first + step && limits.min_samples_leaf == 0.0; k++)
      own.min_samples_leaf = std::max(own.min_samples_leaf, info_.default_min_samples_leaf(field(k)));
    std::vector<Gradients> q;
    std::vector<GrowInput> in;
    for (int k = first; k < first + step; k++) {
      if (listed() && !fine_listed(k, own)) spread(k);
      q.push_back(quantised(k, own));
    }
    for (int k = first; k < first + step; k++)
      in.push_back(input(k, q[k - first], grower, own, seed, tree + first, n_threads_));
    for (Tree& t : grow_ordered(in, workspace_by_output_.get(), ends, n_threads_)) trees.push_back(std::move(t));
  }
  return trees;
}

// ------------------------------------------------------------------------------------------- leaf values
// Softmax along one score is logistic loss of the margin to the other scores, all at the start of the round.
LeafRows Trainer::rows_of(int output, bool all, const double* score) {
  LeafRows r{objective_,
             field(output),
             score != nullptr ? score : score_.as<double>() + output * n_,
             label(output),
             weights_,
             all ? factor_at_ : reweighted_factor(),
             all ? nullptr : used(),
             numbers_[output],
             n_,
             (int)value_[output].size(),
             n_threads_};
  if (!info_.pointwise) {
    margin_.resize(n_), margin_label_.resize(n_);
    run(threads_for(n_, n_threads_), task_count(n_), [&](int64_t t, int) {
      const int64_t at = t * TASK_ROWS;
      const int n = (int)std::min(TASK_ROWS, n_ - at);
      kernels().margins(score_.as<double>() + at, n_, n_outputs_, output, n, margin_.data() + at);
      for (int i = 0; i < n; i++) margin_label_[at + i] = label_[at + i] == (double)output;
    });
    r.score = margin_.data(), r.label = margin_label_.data();
  }
  return r;
}

std::vector<int32_t> Trainer::leaf_ids(int output) const {
  std::vector<int32_t> out(n_);
  const LeafIds& l = numbers_[output];
  for (int64_t i = 0; i < n_; i++) out[i] = l.wide ? ((const uint16_t*)l.data)[i] : ((const uint8_t*)l.data)[i];
  return out;
}

LeafSums Trainer::leaf_loss_sums(int output, const double* step) {
  Memory space;
  return leaf_sums(rows_of(output, false), step, space);
}

std::vector<double> Trainer::refit(int output, const LeafRule& rule) {
  std::vector<double> value(value_[output].size(), 0.0);
  if (rule.joint) {
    if (output == 0)
      joint_ = leaf_joint(rows_of(0, false), score_.as<double>(), label_, n_outputs_, rule.penalty.lambda);
    std::copy_n(joint_.begin() + (int64_t)(output * value.size()), value.size(), value.begin());
  } else if (const LeafRows rows = rows_of(output, false); rule.exact && info_.knots) {
    value = leaf_knots(rows);
    if (info_.steps > 0) value = leaf_newton(rows, std::move(value), info_.steps, {}, nullptr);
  } else {
    const std::vector<double> weight = rule.gradient ? leaf_weights(rows) : std::vector<double>{};
    LeafPenalty penalty = rule.penalty;
    penalty.damps = !rule.exact && rule.iterations > 1;
    value = leaf_newton(rows, std::move(value), rule.exact ? info_.steps : rule.iterations, penalty,
                        rule.gradient ? &weight : nullptr);
  }
  const double m = rule.penalty.max_step;
  if (m > 0.0)
    for (double& v : value) v = std::min(std::max(v, -m), m);
  return value;
}

double Trainer::line_search_step(int output, const std::vector<double>& value) {
  return line_search(rows_of(output, false), value);
}

void Trainer::relabel_leaves(int output, const std::vector<int32_t>& number, std::vector<double> value) {
  const LeafIds& l = numbers_[output];
  run(threads_for(n_, n_threads_), number.empty() ? 0 : task_count(n_), [&](int64_t t, int) {
    for (int64_t i = t * TASK_ROWS; i < std::min(n_, (t + 1) * TASK_ROWS); i++)
      if (l.wide) ((uint16_t*)l.data)[i] = (uint16_t)number[((uint16_t*)l.data)[i]];
      else ((uint8_t*)l.data)[i] = (uint8_t)number[((uint8_t*)l.data)[i]];
  });
  value_[output] = std::move(value);
}

const LinearPart& Trainer::fit_linear(int output, const LinearRule& rule) {
  if (listed()) spread(output);
  const LinearRows rows{table_,
                        (listed()      ? spread_fine_
                         : reweighted_ ? reweighted_fine_
                                       : fine_)
                                .as<Pair>() +
                            output * n_,
                        reweighted_ ? reweighted_wide_[output] : wide_[output],
                        weights_,
                        used(),
                        numbers_[output],
                        n_,
                        (int)value_[output].size(),
                        n_threads_};
  return linear_[output] = sapwood::fit_linear(rows, rule);
}

void Trainer::set_leaf_ids(int output, const int32_t* number, size_t n_leaves) {
  flush_scores(output);
  const bool wide = n_leaves > 256;
  const size_t need = (size_t)n_ * (wide ? 2 : 1);
  if (leaf_[output].size() < need) leaf_[output] = Memory(need);
  numbers_[output] = {leaf_[output].as<void>(), wide};
  run(threads_for(n_, n_threads_), task_count(n_), [&](int64_t t, int) {
    for (int64_t i = t * TASK_ROWS; i < std::min(n_, (t + 1) * TASK_ROWS); i++)
      if (wide) leaf_[output].as<uint16_t>()[i] = (uint16_t)number[i];
      else leaf_[output].as<uint8_t>()[i] = (uint8_t)number[i];
  });
  value_[output].assign(n_leaves, 0.0);
}

void Trainer::add_scores(int output) {
  if (!linear_[output].coef.empty())
    return add_linear(table_, view(linear_[output]), value_[output].data(), numbers_[output], n_,
                      score_.as<double>() + output * n_, n_threads_);
  if (!large_leaf_id_[output].empty()) {  // more leaves than a 16-bit number can name: add at once
    double* s = score_.as<double>() + output * n_;
    for (int64_t i = 0; i < n_; i++) s[i] = s[i] + large_leaf_value_[output][large_leaf_id_[output][i]];
    large_leaf_id_[output].clear();
    return;
  }
  pending_[output] = 1;
}

}  // namespace sapwood
