// Trainer: labels, scores and gradients of one training set, and the trees grown on them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cpu/data/binned.h"
#include "cpu/grow/root_histograms.h"
#include "cpu/leaf/leaf.h"
#include "cpu/leaf/linear.h"
#include "records/constraints.h"
#include "records/gradients.h"
#include "records/limits.h"
#include "records/preference.h"
#include "records/tree.h"
#include "registry.h"

namespace sapwood {

struct SortedColumns;  // the rows of a table in the order of each column
struct Workspace;      // buffers that outlive a tree
struct GrowInput;      // what one tree grows from

struct LeafRule {                                       // how leaf values are found once a tree stands
  bool exact = false, gradient = false, joint = false;  // else Newton steps; joint: of all outputs at once
  int iterations = 1;
  LeafPenalty penalty;
};

class Trainer {
 public:
  // label (n), or (n_outputs, n) where `label_planes`; field (n_outputs, n_fields): the objective's own parameters
  Trainer(const Binned& binned, const double* label, bool label_planes, const double* weight, int objective,
          std::vector<double> field, int n_outputs, int n_threads);
  ~Trainer();
  std::vector<double> start();
  void fill_scores(const double* start);
  void set_scores(const double* scores);
  const double* scores();  // (n_outputs, n)
  // Of the objective, or those given (n_outputs, n); unit_*: with hessians of 1 in the search, in the leaf values.
  std::vector<const char*> gradients(const std::string& precision, bool unit_search, bool unit_leaf,
                                     const double* given_g = nullptr, const double* given_h = nullptr);
  void set_constraints(SplitConstraints rules) { rules_ = std::move(rules); }
  void set_split_preference(SplitPreference taste) { preference_ = std::move(taste); }
  bool node_rules() const { return !rules_.forced.empty(); }  // of single nodes
  bool can_grow_multi_output(const Limits& limits) const;     // whether its trees can have vectors in their leaves
  bool can_grow_ordered() const;                              // whether its rows can be those of several models
  void copy_settings(const Trainer& other);                   // its rules, taste and sampler, but for what is by row
  // share (n): of rows like each, instead of subsample; unit (n): whole groups are in or out. Both may be null.
  void set_sampler(int sampler, std::vector<double> field, const double* share, const int32_t* unit);
  // The rows of this round, how many; none given: all. After gradients(), which some samplers look at.
  int64_t sample(uint64_t seed, uint64_t round, std::optional<double> subsample);
  // The trees of a round, one for each output: numbers tree, tree + 1, ...; luck: in units of the gradients' deviation;
  // together: all with the same splits, as one tree of number `tree`; ends: of models' bodies and tails, whose rows these are, for
  // trees without values; empty: the rows are of one
  std::vector<Tree> grow(int grower, Limits limits, uint64_t seed, uint64_t tree, double luck, bool together,
                         const std::vector<int64_t>& ends = {});
  // Of the tree last grown for an output, before its values are added; leaves are numbered in the order of nodes.
  size_t n_leaves(int output) const { return value_[output].size(); }
  std::vector<int32_t> leaf_ids(int output) const;  // of every row
  LeafSums leaf_loss_sums(int output, const double* step);
  std::vector<double> refit(int output, const LeafRule& rule);
  double line_search_step(int output, const std::vector<double>& value);
  void relabel_leaves(int output, const std::vector<int32_t>& number, std::vector<double> value);  // old number -> new
  // Terms for its leaves, from what the table holds.
  void set_table(RawTable table) { table_ = table; }
  const LinearPart& fit_linear(int output, const LinearRule& rule);
  void set_leaf_ids(int output, const int32_t* number, size_t n_leaves);  // (n) leaves of no tree of its own, values 0
  void add_scores(int output);
  int n_outputs() const { return n_outputs_; }
  int64_t n_rows() const { return n_; }
  bool pointwise() const { return info_.pointwise; }

 private:
  bool multiplied() const { return weights_.whole && !weights_.unit; }  // some row counts more than once
  void labels_as_bytes();
  bool pass(bool pending);
  void find_precision();  // of the sums that the row pass has left
  bool narrow_enough(int64_t sum_g, int64_t sum_h, int64_t rows) const;
  SampleThreshold find_threshold(const SamplerInfo& info, std::vector<double>& field, double subsample,
                                 uint64_t tie_key);
  void requantise(int output);
  void spread(int output);
  // The sizes that the sampler looks at are those of the wide numbers.
  bool by_gradient() const { return sampler_info(sampler_).l1_norm && n_outputs_ == 1 && !multiplied(); }
  bool listed() const { return reweighted_ && !ordered_; }  // exact trees look at single rows
  const uint8_t* used();
  const double* reweighted_factor();
  bool fine_listed(int output, const Limits& limits) const;
  Gradients quantised(int output, const Limits& limits) const;
  double deviation(int output) const;
  GrowInput input(int output, const Gradients& q, int grower, const Limits& limits, uint64_t seed, uint64_t tree,
                  int n_threads) const;
  LeafIds room(int output, size_t n_leaves);
  void find_leaf_ids(int output, const Tree& t, int n_threads);
  Tree grow_one(int output, int grower, Limits limits, uint64_t seed, uint64_t tree, Workspace& work, int n_threads);
  std::vector<Tree> grow_as_one(int grower, Limits limits, uint64_t seed, uint64_t tree, bool apart);
  std::vector<Tree> grow_models(int grower, Limits limits, uint64_t seed, uint64_t tree, bool together,
                                const std::vector<int64_t>& ends);
  void flush_scores(int output);
  const double* label(int output) const { return label_ + (label_planes_ ? output * n_ : 0); }
  const double* field(int output) const { return field_.data() + output * n_fields_; }
  LeafRows rows_of(int output, bool all, const double* score = nullptr);

  const Binned& binned_;
  const double* label_;
  bool label_planes_;
  std::vector<uint8_t> byte_label_;  // the same, where it can be
  RowWeights weights_;
  std::vector<double> factor_;  // 0 or 1 where whole weights hold zeros
  const double* factor_at_ = nullptr;
  bool zeros_ = false;
  const ObjectiveInfo& info_;
  int objective_, n_outputs_, n_threads_;
  int n_fields_;
  std::vector<double> field_;  // (n_outputs, n_fields)
  int64_t n_;
  Memory score_, packed_, fine_, coarse_, apart_;
  std::vector<Memory> leaf_;  // by output: of each row, in the tree last grown
  std::vector<LeafIds> numbers_;
  std::vector<Scale> narrow_, wide_;
  std::vector<uint64_t> max_g_, max_h_, max_search_;
  bool unit_search_ = false, unit_leaf_ = false, constant_ = false;
  const double *given_g_ = nullptr, *given_h_ = nullptr;
  std::vector<double> margin_,
      margin_label_;  // softmax along one score: margins and labels of the output last asked for
  int sampler_ = 0;
  std::vector<double> sampler_field_;
  const double* share_ = nullptr;
  const int32_t* unit_ = nullptr;
  int64_t n_live_ = 0, n_repeats_ = 0;  // rows of positive weight, once each and as often as they count
  struct Piece {  // consecutive rows of a shard; the sampled ones are listed from its first row's place on
    size_t shard;
    int64_t begin, end, first, count, to;  // first: global position of the shard; to: place among its sampled rows
  };
  void choose(const Piece& piece);  // puts its rows where those of its shard follow each other
  std::vector<Piece> pieces_;
  int64_t last_threshold_ = -1;  // of the round before, near which this round's will lie
  bool words_ = true;            // the row pass has left narrow words
  Memory size_, list_, times_;   // (n): of gradients; sampled rows, piece by piece; how often they count
  bool reweighted_ = false;      // the sample's rows count differently
  Memory reweighted_fine_,
      reweighted_apart_;  // as fine_ and apart_, of its rows; fine of a `listed` sample in its order
  Memory spread_fine_;    // the same by row, for growth that needs it so
  std::vector<Scale> reweighted_narrow_, reweighted_wide_;
  std::vector<double> reweighted_factor_;  // (n) real weights times how often a row counts
  std::string precision_;
  std::vector<uint8_t> used_;  // rows of this round's sample, once somebody wants to know
  std::vector<int64_t> sum_g_, sum_h_;
  std::vector<uint8_t> is_narrow_, pending_;
  std::vector<std::vector<double>> value_;
  std::vector<double> joint_;                 // (n_outputs, leaves) found at once, with the first output
  std::vector<std::vector<int32_t>> chosen_;  // by shard: row ids of this round
  bool all_rows_ = true;
  std::vector<std::vector<int32_t>> large_leaf_id_;  // by output: (n) node ids, for a tree with more than 65,536 leaves
  std::vector<std::vector<double>> large_leaf_value_;
  RawTable table_;
  std::vector<LinearPart> linear_;                    // by output: of the tree last grown, where its leaves have terms
  std::unique_ptr<Workspace[]> work_;                 // by worker,
  std::unique_ptr<Workspace[]> workspace_by_output_;  // or by output, where they grow as one
  RootHistograms roots_;
  SplitConstraints rules_;
  SplitPreference preference_;
  std::unique_ptr<SortedColumns> ordered_;  // of an exact Binned
};

}  // namespace sapwood
