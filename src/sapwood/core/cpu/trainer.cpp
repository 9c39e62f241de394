#include "cpu/trainer.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "cpu/grow/exact.h"
#include "cpu/grow/growth.h"
#include "cpu/rows/exact_sum.h"
#include "math/fixed.h"

namespace sapwood {
namespace {
// largest table on which one worker grows a tree: 0.1 s, for Ctrl-C
constexpr int64_t MAX_SERIAL_CODES = 64 << 20;
}  // namespace

Trainer::Trainer(const Binned& binned, const double* label, bool label_planes, const double* weight,
                 int objective, const std::vector<double>& field, int n_outputs, int n_threads)
    : binned_(binned),
      rows_(binned, label, label_planes, weight, objective, field, n_outputs, n_threads),
      leaves_(n_outputs),
      gradients_(rows_),
      work_(std::make_unique<Workspace[]>((size_t)std::max(1, n_threads))),
      sorted_(binned.exact ? std::make_unique<SortedColumns>(binned, n_threads) : nullptr) {
  sample(0, 0, {});
}
Trainer::~Trainer() = default;

// -------------------------------------------------------------------------------------------------
// scores
std::vector<double> Trainer::start() {
  const RowWeights& w = rows_.weights;
  std::vector<double> repeats;
  std::vector<double> out;
  if (w.integral) {
    repeats.assign(w.repeats.begin(), w.repeats.end());
  }
  const double* weight = w.integral ? repeats.data() : w.given ? rows_.weight_at() : nullptr;
  const double total =
      w.given ? weight_sum(weight, rows_.n, rows_.n_threads, rows_.reduce) : (double)rows_.n_all;
  for (int k = 0; k < rows_.n_outputs; k++) {
    out.push_back(start_score(k, weight, total));
  }
  return out;
}

double Trainer::start_score(int output, const double* weight, double total) {
  const ObjectiveInfo& info = rows_.info;
  const double* y = rows_.label_of(output);
  std::vector<double> is_class;
  if (!info.pointwise) {
    is_class.resize(rows_.n);
    for (int64_t i = 0; i < rows_.n; i++) {
      is_class[i] = rows_.label[i] == (double)output;
    }
    y = is_class.data();
  }
  const double mean = exact_sum(y, weight, rows_.n, rows_.n_threads, rows_.reduce) / total;
  if (info.mean_start) {
    return info.start(mean, rows_.field_of(output));
  }
  const std::vector<double> zero(rows_.n, 0.0);
  LeafRows rows = leaf_rows(output, true, zero.data());
  rows.leaf = {nullptr, false};
  rows.n_leaves = 1;
  const bool identity = std::string(info.link) == "identity";
  std::vector<double> at =
      info.knots ? leaf_knots(rows) : std::vector<double>{identity ? mean : 0.0};
  if (info.steps > 0 && !info.adaptive) {
    at = leaf_newton(rows, std::move(at), 100, {}, nullptr);
  }
  return at[0];
}

void Trainer::fill_scores(const double* start) {
  for (LeafState& l : leaves_) {
    l.pending = l.linear_pending = false;
  }
  rows_.fill_scores(start);
}

void Trainer::set_scores(const double* scores) {
  for (LeafState& l : leaves_) {
    l.pending = l.linear_pending = false;
  }
  rows_.set_scores(scores);
}

const double* Trainer::scores() {
  flush_linear();
  for (int k = 0; k < rows_.n_outputs; k++) {
    rows_.flush(k, leaves_[k]);
  }
  return rows_.score.as<double>();
}

// ------------------------------------------------------------------------------------ gradients
// and sample
std::vector<const char*> Trainer::gradients(const GradientRequest& request) {
  flush_linear();
  if (rows_.info.adaptive) {
    scores();
    rows_.field[rows_.info.n_fields] = knot_quantile(leaf_rows(0, true), rows_.field[0]);
  }
  // A sample like the last one will have words of its own; sample() adds those of all rows where
  // that was wrong.
  const bool own_words =
      sampler_.norm_is_abs_gradient(rows_) && sample_.reweighted && request.given_g == nullptr;
  row_pass(rows_, leaves_, request, !own_words, gradients_);
  std::vector<const char*> precision;
  for (const uint8_t narrow : gradients_.is_narrow) {
    precision.push_back(narrow ? "narrow" : "wide");
  }
  return precision;
}

void Trainer::set_sampler(int sampler, std::vector<double> field, const double* subsample_by_row,
                          const int32_t* group) {
  sampler_.sampler = sampler;
  sampler_.field = std::move(field);
  sampler_.subsample_by_row = subsample_by_row;
  sampler_.group = group;
}

int64_t Trainer::sample(uint64_t seed, uint64_t round, std::optional<double> subsample) {
  const bool takes_all = sampler_.takes_all(subsample);
  sample_.all_rows = takes_all && !rows_.has_zeros();
  sample_.reweighted = !takes_all && sampler_.info().reweights;
  sample_.gathered = sample_.reweighted && !binned_.exact;
  if (!gradients_.has_words && !(sample_.reweighted && sampler_.norm_is_abs_gradient(rows_))) {
    add_words(rows_, leaves_, gradients_);
  }
  if (sample_.all_rows) {
    return rows_.n;
  }
  const int64_t n = sampler_.draw(rows_, gradients_, seed, round, subsample, sample_);
  for (int k = 0; k < rows_.n_outputs && sample_.reweighted; k++) {
    requantise(rows_, sample_, k, gradients_);
  }
  return n;
}

// -------------------------------------------------------------------------------------------------
// growth
bool Trainer::can_grow_multi_output(const Limits& limits) const {
  const SplitConstraints& c = settings_.constraints;
  for (int j = 0; j < binned_.n_columns; j++) {
    if (binned_.is_category[j] && binned_.n_bins[j] > limits.max_cat_to_onehot && !c.is_onehot(j)) {
      return false;
    }
  }
  return !binned_.exact && c.monotone.empty() && c.forced.empty();
}

bool Trainer::can_grow_ordered() const {
  return binned_.shards.size() == 1 && !binned_.exact && !settings_.constraints.any() &&
         settings_.preference.penalty.empty() && rows_.reduce == nullptr;
}

void Trainer::copy_settings(const Trainer& other) {
  settings_ = other.settings_;
  sampler_.sampler = other.sampler_.sampler;
  sampler_.field = other.sampler_.field;
}

std::vector<Tree> Trainer::grow(const GrowRequest& r) {
  settings_.preference.random_strength = r.random_strength;
  scores();
  // As many trees for every worker as there are rounds of workers. The rest, large trees, and exact
  // ones, whose lists take memory, are grown by all workers, one tree after the other; so are those
  // of several holders of rows.
  const bool alone =
      !binned_.exact && rows_.n * binned_.n_columns <= MAX_SERIAL_CODES && rows_.reduce == nullptr;
  const int n_apart = alone ? rows_.n_outputs / rows_.n_threads * rows_.n_threads : 0;
  const bool vector_leaves = r.multi_output && rows_.n_outputs > 1;
  const bool sketched = vector_leaves && r.sketch > 0 && r.sketch < rows_.n_outputs;
  build_roots(r, sketched);
  std::vector<Tree> trees = !r.prefix_ends.empty() ? grow_prefixes(r)
                            : sketched             ? grow_sketched(r, n_apart > 0)
                            : vector_leaves        ? grow_vector_leaves(r, n_apart > 0)
                                                   : grow_single_output(r, n_apart);
  for (const Tree& t : trees) {
    mark_used(t.left.data(), t.column.data(), t.left.size());
  }
  return trees;
}

void Trainer::mark_used(const int32_t* left, const int32_t* column, size_t n_nodes) {
  std::vector<uint8_t>& used = settings_.preference.used;
  for (size_t i = 0; i < n_nodes && !used.empty(); i++) {
    if (left[i] != 0) {
      used[column[i]] = 1;
    }
  }
}

// The root histograms of all outputs in one pass, where all trees start from all rows and all
// columns.
void Trainer::build_roots(const GrowRequest& r, bool sketched) {
  const bool same = !sketched && sample_.all_rows && !rows_.repeated() && !binned_.layout.wide &&
                    r.limits.colsample_bytree >= 1.0 && r.prefix_ends.empty() &&
                    rows_.reduce == nullptr;
  const std::vector<uint8_t> none(rows_.n_outputs, 0);
  roots_.build(binned_, gradients_.search_packed.as<int32_t>(), same ? gradients_.is_narrow : none,
               rows_.n_threads);
}

// Whether growth reads an output's leaf pairs in the order of the sample.
bool Trainer::leaf_gathered(int output, const Limits& limits) const {
  const bool by_masks =
      gradients_.is_narrow[output] && leaves_by_masks(binned_, rows_.weights, limits);
  return sample_.gathered && (sample_.all_rows || by_masks);
}

void Trainer::scatter_gathered(int output, const Limits& limits) {
  if (sample_.gathered && !leaf_gathered(output, limits)) {
    scatter(rows_, sample_, output, gradients_);
  }
}

// min_samples_leaf = 0 stands for the largest default of the outputs [first, end).
Limits Trainer::own_limits(Limits limits, int first, int end) const {
  const bool automatic = limits.min_samples_leaf == 0.0;
  for (int k = first; k < end && automatic; k++) {
    limits.min_samples_leaf =
        std::max(limits.min_samples_leaf, rows_.info.default_min_samples_leaf(rows_.field_of(k)));
  }
  return limits;
}

GrowInput Trainer::input(int output, const Gradients& g, const Limits& limits, const GrowRequest& r,
                         uint64_t tree, int n_threads) const {
  const auto* rows = sample_.all_rows ? nullptr : &sample_.rows;
  const auto& [constraints, preference] = settings_;
  GrowInput in{binned_,       g,
               rows_.weights, rows,
               limits,        grower_info(r.grower),
               r.seed,        tree,
               n_threads,     roots_.of(output),
               sorted_.get(), constraints,
               preference,    0.0};
  // g^2 / h, from the units of all rows' wide numbers to those of the search
  if (preference.random_strength > 0.0) {
    const Scale& from = gradients_.all.narrow[output];
    const Scale& to = g.scale;
    const int shift = (to.bits - 2 * to.g + to.h) - (WIDE - 2 * from.g + from.h);
    in.noise_scale = preference.random_strength * noise_scale(rows_, gradients_, output) *
                     __builtin_sqrt(power_of_two(shift));
  }
  return in;
}

std::vector<Tree> Trainer::grow_single_output(const GrowRequest& r, int n_apart) {
  std::vector<Tree> trees(rows_.n_outputs);
  for (int k = 0; k < rows_.n_outputs; k++) {
    scatter_gathered(k, r.limits);
  }
  run(rows_.n_threads, n_apart, [&](int64_t k, int worker) {
    trees[k] = grow_one((int)k, r, work_[worker], 1);
  });
  for (int k = n_apart; k < rows_.n_outputs; k++) {
    trees[k] = grow_one(k, r, work_[0], rows_.n_threads);
  }
  return trees;
}

Tree Trainer::grow_one(int output, const GrowRequest& r, Workspace& work, int n_threads) {
  const Limits limits = own_limits(r.limits, output, output + 1);
  const Gradients g = search_gradients(rows_, sample_, gradients_, output,
                                       leaf_gathered(output, limits), limits.min_samples_leaf);
  LeafState& leaves = leaves_[output];
  leaves.linear = {};
  bool has_ids = false;
  auto allocate = [&](size_t n_leaves) {
    has_ids = true;
    return leaves.buffer(rows_.n, n_leaves);
  };
  Tree t = grow_tree(input(output, g, limits, r, r.tree + output, n_threads), work, allocate,
                     leaves.value);
  if (!has_ids) {
    leaves.find_ids(binned_, t, n_threads);
  }
  return t;
}

Workspace* Trainer::work_by_output() {
  if (workspace_by_output_ == nullptr) {
    workspace_by_output_ = std::make_unique<Workspace[]>((size_t)std::max(1, rows_.n_outputs));
  }
  return workspace_by_output_.get();
}

std::vector<Tree> Trainer::grow_vector_leaves(const GrowRequest& r, bool worker_per_output) {
  const int n_outputs = rows_.n_outputs;
  const Limits limits = own_limits(r.limits, 0, n_outputs);
  std::vector<Gradients> g;
  std::vector<GrowInput> in;
  std::vector<AllocateLeafIds> allocate;
  std::vector<uint8_t> has_ids(n_outputs, 0);
  std::vector<std::vector<double>> value(n_outputs);
  for (int k = 0; k < n_outputs; k++) {
    scatter_gathered(k, limits);
    g.push_back(search_gradients(rows_, sample_, gradients_, k, leaf_gathered(k, limits),
                                 limits.min_samples_leaf));
    leaves_[k].linear = {};
  }
  for (int k = 0; k < n_outputs; k++) {
    in.push_back(input(k, g[k], limits, r, r.tree, worker_per_output ? 1 : rows_.n_threads));
    allocate.push_back([this, k, &has_ids](size_t n_leaves) {
      has_ids[k] = 1;
      return leaves_[k].buffer(rows_.n, n_leaves);
    });
  }
  std::vector<Tree> trees =
      grow_multi_output(in, work_by_output(), allocate, value, rows_.n_threads, worker_per_output);
  for (int k = 0; k < n_outputs; k++) {
    leaves_[k].value = std::move(value[k]);
    if (!has_ids[k]) {
      leaves_[k].find_ids(binned_, trees[k], rows_.n_threads);
    }
  }
  return trees;
}

// The tree of a sketch; every output then gets its own values, gains and covers from exact sums.
std::vector<Tree> Trainer::grow_sketched(const GrowRequest& r, bool worker_per_output) {
  const int n_outputs = rows_.n_outputs;
  const Limits limits = own_limits(r.limits, 0, n_outputs);
  for (int k = 0; k < n_outputs && sample_.gathered; k++) {
    scatter(rows_, sample_, k, gradients_);
  }
  sketch_.project(rows_, sample_, gradients_, r.seed, r.tree, r.sketch);
  worker_per_output = worker_per_output && r.sketch >= rows_.n_threads;
  std::vector<Gradients> g;
  std::vector<GrowInput> in;
  std::vector<AllocateLeafIds> allocate;
  std::vector<uint8_t> has_ids(r.sketch, 0);
  std::vector<std::vector<double>> value(r.sketch);
  for (int i = 0; i < r.sketch; i++) {
    g.push_back(sketch_.gradients(i));
  }
  for (int i = 0; i < r.sketch; i++) {
    in.push_back(input(i, g[i], limits, r, r.tree, worker_per_output ? 1 : rows_.n_threads));
    allocate.push_back([this, i, &has_ids](size_t n_leaves) {
      has_ids[i] = 1;
      return leaves_[i].buffer(rows_.n, n_leaves);
    });
  }
  Tree tree = r.sketch == 1 ? grow_tree(in[0], work_[0], allocate[0], value[0])
                            : grow_multi_output(in, work_by_output(), allocate, value,
                                                rows_.n_threads, worker_per_output)[0];
  if (value[0].size() > MAX_LEAF_IDS) {
    throw std::invalid_argument(
        "trees of a sketch can have 65,536 leaves at most; lower max_depth or max_leaves.");
  }
  if (!has_ids[0]) {
    leaves_[0].value = value[0];
    leaves_[0].find_ids(binned_, tree, rows_.n_threads);
  }
  for (int k = 1; k < n_outputs; k++) {
    leaves_[k].copy_ids(leaves_[0], rows_.n, value[0].size());
  }
  std::vector<Tree> trees(n_outputs, tree);
  const std::vector<ReplayedTree> found = values_of(0, n_outputs, false, view(tree), limits);
  for (int k = 0; k < n_outputs; k++) {
    Tree& t = trees[k];
    t.cover = found[k].cover;
    t.count = found[k].count;
    t.gain = found[k].gain;
    for (size_t i = 0; i < t.left.size(); i++) {
      t.value[i] = t.left[i] == 0 ? found[k].value[i] : 0.0;
    }
  }
  return trees;
}

std::vector<Tree> Trainer::grow_prefixes(const GrowRequest& r) {
  std::vector<Tree> trees;
  const int step = r.multi_output ? rows_.n_outputs : 1;
  for (int first = 0; first < rows_.n_outputs; first += step) {
    const Limits limits = own_limits(r.limits, first, first + step);
    std::vector<Gradients> g;
    std::vector<GrowInput> in;
    for (int k = first; k < first + step; k++) {
      scatter_gathered(k, limits);
      g.push_back(search_gradients(rows_, sample_, gradients_, k, leaf_gathered(k, limits),
                                   limits.min_samples_leaf));
    }
    for (int k = first; k < first + step; k++) {
      in.push_back(input(k, g[k - first], limits, r, r.tree + first, rows_.n_threads));
    }
    for (Tree& t : grow_ordered(in, work_by_output(), r.prefix_ends, rows_.n_threads)) {
      trees.push_back(std::move(t));
    }
  }
  return trees;
}

// ------------------------------------------------------------------------------------------- leaf
// values
// Softmax along one score is the logistic loss of the margin to the other scores, all at the start
// of the round.
LeafRows Trainer::leaf_rows(int output, bool all_rows, const double* score) {
  const double* weight = all_rows ? rows_.weight_at() : sample_.weight(rows_);
  const uint8_t* in_sample = all_rows ? nullptr : sample_.in_sample(rows_);
  if (score == nullptr) {
    score = rows_.score_of(output);
  }
  LeafRows r{rows_.objective, rows_.field_of(output),
             score,           rows_.label_of(output),
             rows_.weights,   weight,
             in_sample,       leaves_[output].ids,
             rows_.n,         (int)n_leaves(output),
             rows_.n_threads, rows_.reduce};
  if (rows_.info.pointwise) {
    return r;
  }
  margin_.resize(rows_.n);
  margin_label_.resize(rows_.n);
  rows_.each_task([&](int64_t at, int64_t n, int) {
    kernels().margins(rows_.score_of(0) + at, rows_.n, rows_.n_outputs, output, (int)n,
                      margin_.data() + at);
    for (int64_t i = at; i < at + n; i++) {
      margin_label_[i] = rows_.label[i] == (double)output;
    }
  });
  r.score = margin_.data();
  r.label = margin_label_.data();
  return r;
}

// Values of the leaves that rows have; all_rows: whether or not they are in the sample.
std::vector<ReplayedTree> Trainer::values_of(int first, int end, bool all_rows,
                                             const TreeView& tree, const Limits& limits) {
  ReplayRows rows{binned_,
                  {},
                  {},
                  rows_.weights,
                  all_rows ? nullptr : sample_.in_sample(rows_),
                  leaves_[first].ids,
                  rows_.n_threads};
  for (int k = first; k < end; k++) {
    rows.gradients.push_back(all_rows ? gradients_.all.leaf_pairs.as<Pair>() + (int64_t)k * rows_.n
                                      : leaf_pairs_by_row(rows_, sample_, gradients_, k));
    rows.scale.push_back((all_rows ? gradients_.all : gradients_.of(sample_)).wide[k]);
  }
  std::vector<ReplayedTree> found = sapwood::replay(rows, tree, limits, settings_.constraints);
  for (int k = first; k < end; k++) {
    LeafState& l = leaves_[k];
    l.value.clear();
    l.linear = {};
    for (int u = 0; u < tree.n_nodes; u++) {
      if (tree.left[u] == 0) {
        l.value.push_back(found[k - first].value[u]);
      }
    }
  }
  return found;
}

std::vector<ReplayedTree> Trainer::replay(int first, int end, const TreeView& tree,
                                          const Limits& limits) {
  const size_t n_leaves = (size_t)tree.n_leaves();
  for (int k = first; k < end; k++) {
    flush(k);
  }
  apply(binned_, tree, leaves_[first].buffer(rows_.n, n_leaves), rows_.n_threads);
  for (int k = first + 1; k < end; k++) {
    leaves_[k].copy_ids(leaves_[first], rows_.n, n_leaves);
  }
  return values_of(first, end, true, tree, limits);
}

void Trainer::restore(int output, const TreeView& tree, const double* value) {
  LeafState& l = leaves_[output];
  flush(output);
  l.value.clear();
  l.linear = {};
  for (int u = 0; u < tree.n_nodes; u++) {
    if (tree.left[u] == 0) {
      l.value.push_back(value[u]);
    }
  }
  if (l.value.size() <= MAX_LEAF_IDS) {
    apply(binned_, tree, l.buffer(rows_.n, l.value.size()), rows_.n_threads);
  } else {
    l.large_id.resize(rows_.n);
    l.large_value.assign(value, value + tree.n_nodes);
    apply(binned_, tree, l.large_id.data(), rows_.n_threads);
  }
  mark_used(tree.left, tree.column, tree.n_nodes);
}

LeafLossSums Trainer::leaf_loss_sums(int output, const double* step) {
  Memory space;
  return sapwood::leaf_loss_sums(leaf_rows(output, false), step, space);
}

std::vector<double> Trainer::refit(int output, const LeafRule& rule) {
  std::vector<double> value(n_leaves(output));
  if (rule.joint) {
    if (output == 0) {
      joint_ = leaf_joint(leaf_rows(0, false), rows_.score_of(0), rows_.label, rows_.n_outputs,
                          rule.penalty.lambda);
    }
    std::copy_n(joint_.begin() + (int64_t)(output * value.size()), value.size(), value.begin());
  } else {
    LeafRows r = leaf_rows(output, false);
    r.space = &leaf_space_;
    value = refit_leaves(r, rule);
  }
  const double m = rule.penalty.max_step;
  for (double& v : value) {
    v = m > 0.0 ? std::min(std::max(v, -m), m) : v;
  }
  return value;
}

double Trainer::line_search(int output, const std::vector<double>& value) {
  return sapwood::line_search(leaf_rows(output, false), value);
}

void Trainer::set_leaf_ids(int output, const int32_t* id, size_t n_leaves) {
  flush(output);
  leaves_[output].set_ids(id, rows_.n, n_leaves, rows_.n_threads);
}

void Trainer::assign_rows(int output, const Binned& table, const TreeView& tree) {
  LeafState& l = leaves_[output];
  flush(output);
  l.value.assign((size_t)tree.n_leaves(), 0.0);
  l.linear = {};
  apply(table, tree, l.buffer(rows_.n, l.value.size()), rows_.n_threads);
}

void Trainer::relabel_leaves(int output, const std::vector<int32_t>& new_id,
                             std::vector<double> value) {
  leaves_[output].relabel(new_id, std::move(value), rows_.n, rows_.n_threads);
}

std::vector<LinearPart> Trainer::fit_linear(int first, int end, const LinearRule& rule) {
  LinearRows rows{table_,
                  units_.get(),
                  {},
                  {},
                  rows_.weights,
                  sample_.in_sample(rows_),
                  leaves_[first].ids,
                  rows_.n,
                  (int)n_leaves(first),
                  rows_.n_threads,
                  rows_.reduce,
                  &linear_space_,
                  &linear_sums_};
  for (int k = first; k < end; k++) {
    if (sample_.gathered) {
      scatter(rows_, sample_, k, gradients_);
    }
    rows.leaf_pairs.push_back(leaf_pairs_by_row(rows_, sample_, gradients_, k));
    rows.scale.push_back(gradients_.of(sample_).wide[k]);
  }
  std::vector<LinearPart> parts = sapwood::fit_linear(rows, rule);
  for (int k = first; k < end; k++) {
    leaves_[k].linear = parts[k - first];
    leaves_[k].leaves_of = first;
  }
  return parts;
}

const std::vector<double>& Trainer::standardise(const double* bounds) {
  units_ = std::make_unique<LinearUnits>(table_, binned_, rows_.weights, bounds, rows_.n_threads);
  return bounds_ = units_->bounds;
}

void Trainer::set_linear(int output, LinearPart part, std::vector<double> bounds) {
  flush_linear();  // under the bounds so far
  leaves_[output].linear = std::move(part);
  leaves_[output].leaves_of = -1;
  bounds_ = std::move(bounds);
}

void Trainer::add_scores(int output) {
  LeafState& l = leaves_[output];
  double* score = rows_.score_of(output);
  l.linear_pending = !l.linear.coef.empty();
  if (l.linear_pending) {
    return;
  }
  l.pending = l.large_id.empty();
  for (size_t i = 0; i < l.large_id.size(); i++) {
    score[i] = score[i] + l.large_value[l.large_id[i]];
  }
  l.large_id.clear();
}

void Trainer::flush(int output) {
  flush_linear();
  rows_.flush(output, leaves_[output]);
}

void Trainer::flush_linear() {
  const double* bounds = bounds_.empty() ? nullptr : bounds_.data();
  for (int first = 0, end; first < rows_.n_outputs; first = end) {
    const LeafState& l = leaves_[first];
    for (end = first + 1; l.linear_pending && end < rows_.n_outputs && leaves_[end].linear_pending;
         end++) {
      if (l.leaves_of < 0 || leaves_[end].leaves_of != l.leaves_of) {
        break;
      }
    }
    if (!l.linear_pending) {
      continue;
    }
    double* score = rows_.score_of(first);
    std::vector<LinearView> parts;
    std::vector<const double*> values;
    for (int k = first; k < end; k++) {
      parts.push_back(view(leaves_[k].linear, bounds));
      values.push_back(leaves_[k].value.data());
      leaves_[k].linear_pending = false;
    }
    if (bounds != nullptr && end - first > 1) {
      add_linear(table_, parts, values, (int)l.value.size(), l.ids, rows_.n, score,
                 rows_.n_threads);
    } else {
      for (int k = first; k < end; k++) {
        add_linear(table_, parts[k - first], leaves_[k].value, leaves_[k].ids, rows_.n,
                   rows_.score_of(k), rows_.n_threads);
      }
    }
  }
}

}  // namespace sapwood
