// Trainer: the rows of one training set and the trees grown on them. It owns the state of rows/,
// calls grow/ and leaf/.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/grow/root_histograms.h"
#include "cpu/leaf/leaf.h"
#include "cpu/leaf/linear.h"
#include "cpu/leaf/replay.h"
#include "cpu/rows/quantise.h"
#include "cpu/rows/sketch.h"
#include "records/constraints.h"
#include "records/limits.h"
#include "records/preference.h"
#include "records/tree.h"

namespace sapwood {

struct SortedColumns;
struct Workspace;
struct GrowInput;

struct GrowSettings {  // what the user wants of splits, beyond the limits
  SplitConstraints constraints;
  SplitPreference preference;
};

struct GrowRequest {  // the trees of one round
  int grower;
  Limits limits;
  uint64_t seed, tree;     // tree: number of the first output's tree; the others follow
  double random_strength;  // in units of the gradients' noise scale
  bool multi_output;       // all outputs have the same splits, as one tree with vector leaves
  // ... found from so many random sums of their gradients; 0: from those of every output
  int sketch;
  // Ordered boosting: where each body and each tail ends in the rows; the trees then have splits
  // but no leaf values. Empty otherwise.
  std::vector<int64_t> prefix_ends;
};

class Trainer {
 public:
  // label (n), or (n_outputs, n) where `label_planes`; field (n_outputs, n_fields): the objective's
  // own parameters
  Trainer(const Binned& binned, const double* label, bool label_planes, const double* weight,
          int objective, const std::vector<double>& field, int n_outputs, int n_threads);
  ~Trainer();
  int n_outputs() const { return rows_.n_outputs; }
  int64_t n_rows() const { return rows_.n; }             // of this process
  int64_t n_rows_of_all() const { return rows_.n_all; }  // of all holders
  bool pointwise() const { return rows_.info.pointwise; }

  std::vector<double> start();  // (n_outputs) the constant scores that minimise the loss
  void fill_scores(const double* start);
  void set_scores(const double* scores);
  const double* scores();  // (n_outputs, n)
  // the precision of each output
  std::vector<const char*> gradients(const GradientRequest& request);
  // (n_outputs, n_fields + 1) the last one adapts
  std::vector<double> fields() const { return rows_.field; }
  void set_sampler(int sampler, std::vector<double> field, const double* subsample_by_row,
                   const int32_t* group);
  // Samples the rows of a round after gradients(); nothing given: all rows. Returns the number of
  // rows of this process.
  int64_t sample(uint64_t seed, uint64_t round, std::optional<double> subsample);

  GrowSettings& settings() { return settings_; }
  bool can_grow_multi_output(const Limits& limits) const;
  bool can_grow_ordered() const;
  void copy_settings(const Trainer& other);  // and the sampler, except what it has by row
  std::vector<Tree> grow(const GrowRequest& request);

  // The tree last grown for an output, before its values are added. Leaf ids count the leaves in
  // the order of nodes.
  size_t n_leaves(int output) const { return leaves_[output].value.size(); }
  std::vector<int32_t> leaf_ids(int output) const { return leaves_[output].list_ids(rows_.n); }
  // (n) leaves of a tree grown elsewhere, values 0
  void set_leaf_ids(int output, const int32_t* id, size_t n_leaves);
  // The same, found here: the tree splits the codes of another table of these rows.
  void assign_rows(int output, const Binned& table, const TreeView& tree);
  void relabel_leaves(int output, const std::vector<int32_t>& new_id, std::vector<double> value);
  // The values that growth would give the leaves of a tree at the present gradients of all rows; it
  // is then the tree of the outputs [first, end), as if it had just grown.
  std::vector<ReplayedTree> replay(int first, int end, const TreeView& tree, const Limits& limits);
  // A tree that has grown on these rows before is the output's tree again; value (n_nodes): those
  // of its leaves.
  void restore(int output, const TreeView& tree, const double* value);
  LeafLossSums leaf_loss_sums(int output, const double* step);
  std::vector<double> refit(int output, const LeafRule& rule);
  double line_search(int output, const std::vector<double>& value);
  const RawTable& table() const { return table_; }
  // the values behind the bins, which linear leaves need
  void set_table(RawTable table) { table_ = table; }
  // Of the outputs [first, end), which have the same leaves where they are several.
  std::vector<LinearPart> fit_linear(int first, int end, const LinearRule& rule);
  // Standard units for linear leaves; bounds (n_columns, 3): those of a model to continue, or null.
  // Returns the bounds.
  const std::vector<double>& standardise(const double* bounds);
  // (n_columns) the units that `standardise` has found; 0: the column has no coefficients
  std::vector<double> units() const {
    return units_ == nullptr ? std::vector<double>{} : units_->unit;
  }
  // terms that another trainer has found
  void set_linear(int output, LinearPart part, std::vector<double> bounds);
  void add_scores(int output);

 private:
  void flush(int output);  // adds what waits to be added to the scores
  void flush_linear();
  double start_score(int output, const double* weight, double total);
  LeafRows leaf_rows(int output, bool all_rows, const double* score = nullptr);
  bool leaf_gathered(int output, const Limits& limits) const;
  void scatter_gathered(int output, const Limits& limits);
  void build_roots(const GrowRequest& r, bool sketched);
  Limits own_limits(Limits limits, int first, int end) const;
  GrowInput input(int output, const Gradients& g, const Limits& limits, const GrowRequest& r,
                  uint64_t tree, int n_threads) const;
  std::vector<ReplayedTree> values_of(int first, int end, bool all_rows, const TreeView& tree,
                                      const Limits& limits);
  Tree grow_one(int output, const GrowRequest& r, Workspace& work, int n_threads);
  std::vector<Tree> grow_single_output(const GrowRequest& r, int n_apart);
  std::vector<Tree> grow_vector_leaves(const GrowRequest& r, bool worker_per_output);
  std::vector<Tree> grow_sketched(const GrowRequest& r, bool worker_per_output);
  std::vector<Tree> grow_prefixes(const GrowRequest& r);
  Workspace* work_by_output();
  // columns that the model has used
  void mark_used(const int32_t* left, const int32_t* column, size_t n_nodes);

  const Binned& binned_;
  RowState rows_;
  std::vector<LeafState> leaves_;  // by output
  Quantised gradients_;
  Sketch sketch_;
  RowSampler sampler_;
  RowSample sample_;
  GrowSettings settings_;
  RawTable table_;
  std::unique_ptr<LinearUnits> units_;  // null: raw units
  std::vector<double> bounds_;          // (n_columns, 3) of the table, empty in raw units
  Memory linear_space_, linear_sums_;
  // (n) softmax along one score, of the last output used
  std::vector<double> margin_, margin_label_;
  Memory leaf_space_;  // of `refit`, from call to call
  // (n_outputs, n_leaves) values found with the first output
  std::vector<double> joint_;
  std::unique_ptr<Workspace[]> work_;  // by worker
  // where the trees of all outputs grow in lockstep
  std::unique_ptr<Workspace[]> workspace_by_output_;
  RootHistograms roots_;
  std::unique_ptr<SortedColumns> sorted_;  // only of an exact Binned
};

}  // namespace sapwood
