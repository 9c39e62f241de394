// Job: all that the kernels of one training read and write, as one record, which every kernel takes
// by value: its fields are constants then. device/cuda/job.py reads the fields from this file: one
// field a line, the type, the name, then a comment.
#pragma once
#include "cuda/platform.h"
#include "math/types.h"

namespace sapwood {

struct Node {              // of the tree that grows
  int64_t g, h;            // sums of the search
  int64_t left_g, left_h;  // of its best split, what goes left
  double score, gain;
  double rank;              // of its best split among those of the tree; 0: none is worth it
  double low, high;         // monotone bounds of its value
  uint64_t groups;          // interaction groups that hold its whole path
  int32_t column, bin;      // of its best split; column < 0: none
  int32_t missing_left;     // 1: missing values go left
  int32_t left;             // first child once it is split; 0: a leaf
  int32_t begin, end;       // its rows in the row list
  int32_t buffer;           // which row list; -1: all rows in order, -2: the sample
  int32_t depth, slot;      // slot: its place among the histograms
  int32_t place;            // where its best column's codes are
  int32_t step;             // of growth, in which it is split; 0: none
  int32_t parent, packed;   // packed: the sums in its slot are words, g << 32 | h
  int32_t forced, padding;  // place of the split that it must have; -1: none
};

struct ForcedSplit {  // left, right: places of the forced splits below it, or -1
  int32_t column, bin, left, right;
};

struct TreeNode {  // of a finished tree
  double value, gain, cover, count;
  int32_t column, bin, left, missing_left;
};

struct Found {  // the best candidate of a tile of columns
  double score;
  int64_t g, h;
  uint64_t order;  // column, then 2 * bin + (missing right)
  int32_t place, seen_missing;
};

struct Listed {  // a row in a row list, with its narrow word
  uint32_t row;
  int32_t word;
};

struct Turn {  // what changes from round to round
  double learning_rate;
  uint64_t sample_key[32], tie_key[32];  // of each copy of the round that grows side by side
  // of the draws of columns, key(seed, purpose, ., .): for a tree, a level, a node
  uint64_t column_keys[3];
  uint64_t cut_key;        // the same of random cuts
  uint64_t sketch_key;     // the same of the signs of a sketch
  uint64_t noise_key;      // the same of the noise on a column's best split
  double random_strength;  // of that noise
  int64_t tree;
};

struct Output {  // of one score: fixed point, and the search of this round
  // bits of the largest |g|, hessian, search hessian of this pass
  uint64_t max_g, max_h, max_search;
  // sums of repeats * narrow |g| and h, of the first and second pass
  int64_t sum_g[2], sum_h[2];
  uint64_t kept_max_search;  // max_search of the last pass
  Scale narrow, wide;        // of the split search, of the leaf values
  // sum_g of the last round; of reweighted rows what they count for
  int64_t total_g;
  double quantum;                      // of gradients, in units in which no output's exceeds 1
  double own_min_samples;              // what min_samples_leaf="auto" means
  int32_t is_narrow, failed;           // precision of the search; 1: gradients are not finite
  int32_t constant_hessian, n_passes;  // 1: every row has the same hessian
  // sums of squared gradients, of hessians, each in four parts of 32 bits
  int64_t noise[8];
};

struct Sampling {              // of a round: a sampler whose draws depend on gradients
  double field[2], scale, mu;  // fields of the sampler, and its threshold, see SampleThreshold
  int64_t norm, target, need;  // need: of the rows that tie with `norm`, how many take part
  uint64_t tie;
  int64_t at, above, here, below;  // what is selected so far, see cpu/rows/select.h
  // seeks: the threshold is not found yet; direct: the norm is |gradient|
  int32_t seeks, direct;
};

struct CodeStep {       // of a category column: one more code goes left
  int16_t code, start;  // start: the first step of its end of the order
  int16_t candidate;    // 1: the codes up to here are a set that may be chosen
  int16_t missing;      // 1: missing values are among them
};

struct Growth {  // the tree that grows: what holds for all of its steps
  Penalty penalty;
  Scale scale;  // of the search
  // what a unit of scores is worth; minimum count of a side, in fixed point
  double unit, min_count;
  double level_score;  // symmetric: the score of the level's nodes together
  double min_samples;  // min_samples_leaf, where it is 'auto' the objective's own
  double noise_scale;  // of the noise on a column's best split
  // of outputs that are split together: the unit as a part of the largest
  double share;
  // fast: words are added as they are; parts of a number that are added apart
  int32_t fast, n_parts;
  // counts_rows: besides hessians; n_rows: of the sample of this copy
  int32_t counts_rows, n_rows;
  // trees so far; parts of what a row counts for, 0 where that does not matter
  int32_t n_finished, count_parts;
};

struct LevelSplit {  // symmetric: the split of all nodes of a level
  int32_t worth, place, column, bin, missing_left, padding;
};

struct Level {  // the tree after a step of growth
  int32_t n_nodes, n_leaves;
  int32_t n_batch, first_child;  // nodes that are split in the step; the first child of the first
  int32_t first_slot, n_slots;   // histogram of the first one's smaller child; histograms in use
  // more: the children are searched; n_rows: of the batch, with the cost of its nodes
  int32_t more, n_rows;
};

struct BatchItem {  // a node that is split
  // at: its first row among those of the batch, and what the nodes before it cost besides
  int32_t node, at;
};

struct BuildItem {  // a node whose histogram is built
  // its first row among those of all items, as in BatchItem; its first row in its row list
  int32_t at, begin;
  int32_t buffer, slot;
  int32_t packed, n_rows;
};

struct Job {
  int64_t n;                  // rows
  const uint8_t* codes;       // (n_tiles, n, 32) byte codes
  const uint8_t* planes;      // (n_places, n) the same, column by column
  const int32_t* n_bins;      // (n_places) bins of values
  const int32_t* column_of;   // (n_places) the column of a place; -1: none
  const uint64_t* groups_of;  // (n_places) interaction groups of a column; null: no constraints
  const int8_t* direction;    // (n_places) monotone constraints; null: none
  const uint8_t* category;    // (n_places) kinds of columns of categories; null: there are none
  int64_t histogram_size;     // sums of a histogram
  int64_t n_tiles;            // tiles of 32 narrow columns
  int64_t n_columns;          // columns of the table
  // best candidates that are kept: of a node one a column; symmetric: of a level one a block
  int64_t n_found;
  int64_t min_rows;     // rows of a block, where there are few
  int64_t node_cost;    // what a node costs a block besides its rows, in rows
  int64_t n_recorders;  // blocks of find_leaves that record the last splits, and have no rows
  // of the sums of leaves in shared memory; 0: they are added in global memory
  int64_t leaf_copies;
  const double* label;        // (n), or (n_outputs, n)
  int64_t label_plane;        // 0, or n
  const double* weight;       // (n) real weights, or 0 and 1; null: all are 1
  const int32_t* repeats;     // (n) integer weights; null: none are given
  int64_t repeated;           // 1: a row counts `repeats` times in sums
  int64_t weight_shift;       // counts read count / 2^shift
  const double* field;        // (n_outputs, n_fields) parameters of the objective
  int64_t n_fields;           // by output
  int64_t n_outputs;          // scores of a row
  const double* given_g;      // (n_outputs, n) gradients of a custom objective; null: none
  const double* given_h;      // (n_outputs, n)
  int64_t unit_search;        // 1: hessians of 1 in the split search
  int64_t unit_leaf;          // 1: hessians of 1 in the leaf values
  int64_t counts_by_hessian;  // 1: where hessians are constant they count rows
  int64_t precision;          // 0: auto, 1: narrow, 2: wide
  int64_t total_repeats;      // sum of repeats, or rows of positive weight
  int64_t max_repeats;        // the largest
  double* score;              // (n_outputs, n)
  // (2, n) the largest score of each row, the sum of exponentials; null: one output
  double* row_totals;
  Output* output;    // (n_outputs)
  int32_t* packed;   // (n_outputs, n) narrow words
  Pair* leaf_pairs;  // (n_outputs, n) wide pairs of the leaf values
  // (n_outputs, n) wide pairs of the search, where it has its own; null: leaf_pairs
  Pair* search_pairs;
  // of a round, whose trees grow side by side, each copy with a sample of its own
  int64_t n_copies;
  int64_t own_gradients;        // 1: each of them has gradients of its own, too
  uint16_t* leaf;               // (n_copies, n_outputs, n) node that each row is in
  double* node_value;           // (n_copies, n_outputs, max_nodes) values by node
  uint8_t* in_sample;           // (n_copies, n) 1: the row is in the sample; null: all rows are
  int64_t all_rows;             // 1: no row is left out of trees
  int64_t draws;                // 1: the sampler draws, 0: it takes all rows of positive weight
  uint32_t* sample;             // (n_copies, n) rows of the sample, where it is not all rows
  double subsample;             // probability of a row
  const double* row_subsample;  // (n) instead of it, or null
  const double* sampler_field;  // fields of the sampler
  int64_t n_live;               // rows of positive weight
  Sampling* sampling;           // (n_copies) of samplers that depend on gradients
  uint32_t* norms;              // (n) of gradients
  int64_t* digits;              // (n_copies, 2048, 2) rows and their sum by a digit of their norms
  double* factor;               // (n_copies, n) what a row of the sample counts for
  // (n_copies, n_outputs) of the sample, where rows count more or less
  Output* reweighted;
  int32_t* reweighted_packed;  // (n_copies, n_outputs, n) the same as `packed`
  Pair* reweighted_leaf;       // (n_copies, n_outputs, n)
  Pair* reweighted_search;     // (n_copies, n_outputs, n)
  const int32_t* row_group;    // (n) number of the group that is drawn as one, or null
  int64_t max_nodes;           // of a tree
  int64_t max_depth;           // 0: none
  int64_t max_leaves;          // 0: none
  int64_t leafwise;            // 1: the node that gains most is split next
  int64_t symmetric;           // 1: one split for all nodes of a level
  // outputs that are split together, each with nodes and histograms of its own; 1: none
  int64_t n_joint;
  int64_t one_tree;           // 1: the trees of all outputs have the same splits
  int64_t sketched;           // 1: these were found from sums over the outputs
  int64_t extra_trees;        // 1: one random cut of every column
  double min_child_weight;    // limits, as in records/limits.h
  double min_samples_leaf;    //
  double reg_lambda;          //
  double reg_alpha;           //
  double min_split_gain;      //
  double max_delta_step;      //
  double path_smooth;         //
  int64_t max_cat_threshold;  //
  double cat_smooth;          //
  double cat_l2;              //
  double min_data_per_group;  //
  // 1: what the rows of nodes count for is needed, for estimates of categories
  int64_t counts_nodes;
  double colsample_bytree;       //
  double colsample_bylevel;      //
  double colsample_bynode;       //
  int64_t cosine;                // 1: the cosine score, else the reduction of the loss
  int64_t noisy;                 // 1: there is noise on a column's best split
  const double* feature_weight;  // (n_columns) null: none are given
  // (n_columns) penalties of a column's first use; null: none are given
  const double* first_use;
  // (2, n_tiles) a bit a column: trees before this round use it; with those of this round
  uint32_t* used;
  uint32_t* path;             // (max_nodes, n_tiles) the same with those of the node's path
  const ForcedSplit* forced;  // the first one is that of the root; null: none are given
  const Output* all_output;   // (n_outputs) of all rows
  Growth* growth;             // (n_joint) the tree that grows
  Node* nodes;                // (n_joint, max_nodes)
  Level* levels;              // (steps + 1) the tree after each step
  BatchItem* batch;           // (max_batch + 1) nodes that are split now
  // (n_joint, n_items) nodes whose histograms are built now, where they are many
  BuildItem* items;
  int64_t n_items;   // max_batch + 1
  int32_t* n_left;   // (2 * max_batch) rows gone left
  int32_t* n_right;  // (2 * max_batch) rows gone right
  Listed* lists;     // (2, n) row lists
  Sums* histograms;  // (n_joint, n_slots, histogram_size)
  int64_t n_slots;   // histograms of an output
  int64_t* counts;   // (n_slots, histogram_size) rows by bin; null: not counted
  Found* found;      // (2 * max_batch, n_found) what each block of the search found
  // (2 * max_batch, n_tiles) a bit a column: columns that a node may use; null: all
  uint32_t* allowed;
  // (nodes of a level, n_places, 2, 256) symmetric: scores of candidates: missing right, left
  double* level_scores;
  int64_t* root_missing;  // (n_places) symmetric: the root's sum of hessians of missing values
  int32_t* root_range;    // (n_places, 2) symmetric: the root's first and last bin that hold rows
  int64_t* root_below;    // (n_places, 256) symmetric: the root's sum of hessians up to each bin
  double* level_norms;    // the same: squared norms of steps, of cosine scores
  double* joint_norms;    // (n_places, 2, 256) as joint_scores
  // (n_places, 2, 256) joint symmetric: the same added over nodes and outputs
  double* joint_scores;
  // (nodes of a level, n_places, 2, 256, 2) weights of both sides, means over outputs
  double* side_weights;
  LevelSplit* level_split;  // joint symmetric: that of the level searched last
  CodeStep* steps;          // (n_places, 256) symmetric: the steps of columns of categories
  int32_t* n_steps;         // (n_places, 2) symmetric: their number, and that of the sizes of sets
  uint64_t* sets;           // (max_nodes, 4) of splits by categories: a bit a code that goes right
  uint64_t* tree_sets;      // (n_store, max_nodes, 4) the same of finished trees
  // (max_nodes, 16) wide sums of g, h and counts; where outputs have one tree, for each of them
  int64_t* leaf_sums;
  uint32_t* arrived;       // (2 * max_batch) columns of a node that are searched
  TreeNode* trees;         // (n_store, max_nodes) finished trees
  int32_t* tree_sizes;     // (n_store) nodes of each
  int64_t n_sums;          // of a sketch
  double* sketch_factor;   // (n_sums, n_outputs) what the gradients of an output add to a sum
  double* sketch_real;     // (n_sums + 1, n) the sums, and the mean of the hessians
  Output* sketch_output;   // (n_sums)
  int32_t* sketch_packed;  // (n_sums, n) narrow words
  Pair* sketch_pairs;      // (n_sums, n) wide pairs
  Turn* turn;              // this round
  // bytes from what one of the trees that grow side by side has of its own to that of the next
  int64_t tree_stride;
  int64_t n_store;  // trees that can wait for the host
};

struct WalkNode {  // of a model; 8 bytes
  // a row goes right where its code is in low .. low + length - 1; by a set: the place of its first
  // word in `sets`, low half and high half
  uint16_t low, length;
  // of the used columns, BY_SET added; left child within the tree, or the leaf itself
  uint16_t column, left;
};
constexpr uint32_t BY_SET = 0x8000;

struct WalkTree {
  int32_t first_node, depth;
  int32_t output, index;  // index: in the order of the model
};

struct WalkLines {
  // (nodes, 2) the terms of each leaf: first and number; null: no leaf has any
  const int64_t* at;
  const int32_t* column;  // of each term; the first of a leaf is its constant
  const double* coef;     //
  const double* bounds;   // (columns, 3) as in math/linear.h; null: raw units
};

struct WalkCrosses {
  const int64_t* own;  // (crosses, 5) kind, left and right column; place and number of its means
  const double* mean;  //
};

struct PredictJob {  // the arguments of predictions
  int64_t n_rows;
  const char* table;      // values, float32 or float64
  int64_t row_stride;     // in bytes
  int64_t column_stride;  //
  int64_t is_double;
  int64_t n_used;         // columns that some split tests
  const int32_t* used;    // (n_used)
  const int32_t* cut_at;  // (n_used + 1) the first cut of each
  const double* cuts;     // the thresholds of each, rising
  const WalkNode* nodes;  // of all trees, those of an output after those of the one before
  const double* values;   // of the same nodes
  const WalkTree* trees;  // (n_trees + 1)
  int64_t n_chunks;
  const int32_t* chunk_at;  // (n_chunks + 1) the first tree of each chunk
  int64_t n_outputs;
  double* score;      // (n_rows, n_outputs) IN OUT
  int64_t n_columns;  // of the table; crosses follow
  uint32_t* codes;    // (n_used, n_rows) where they do not fit in shared memory; else null
  // (n_used) of columns of categories: above all codes of their sets; others: -1
  const int32_t* code_limit;
  const uint32_t* sets;  // a bit a code: 1: it goes right
  WalkLines lines;       // of linear leaves
  WalkCrosses crosses;   // columns behind those of the table
  int64_t link;          // of `apply_link`
};

struct ExplainFactor {  // as Factor of cpu/predict/shap_paths.h
  double weight_fraction;
  uint32_t mask, want;
  int32_t slot;
};

struct ExplainLeaf {
  double value;
  int32_t factor, n_factors;  // the range of its factors
};

struct ExplainGroup {  // of leaves
  // where its table begins, (patterns, slots); -1: every row has an entry of its own
  int64_t entry;
  int32_t bit, n_bits;     // of its pattern
  int32_t leaf, n_leaves;  // the ranges of its leaves and slots
  int32_t slot, n_slots;   //
};

struct ExplainJob {              // the arguments of Shapley values
  PredictJob walk;               // the rows; `score` is not used
  int64_t n_columns;             // that splits test: those of the sums
  const int32_t* tree_output;    // (n_trees)
  const int32_t* group_at;       // (n_trees + 1) the first group of each tree
  const ExplainGroup* groups;    //
  const int32_t* literal_at;     // (bits + 1) the first literal of each bit
  const WalkNode* literals;      // conditions; `left` is 1 where the path goes left
  const int32_t* slot_column;    // of the slots of all groups
  const ExplainLeaf* leaves;     //
  const ExplainFactor* factors;  //
  const double* points;          // quadrature with 1, 2, .. points
  const double* point_weights;   //
  double* entries;               // the tables of all groups OUT
  // (n_columns, n_rows) where they do not fit in shared memory; else null
  double* sums;
  double* out;  // (n_rows, n_outputs, n_columns) IN OUT
};

struct MetricResult {
  uint64_t range, top;  // bits of the largest error, and of the largest that a row adds
  // the sum of the low halves of what rows add in fixed point, and of the high halves
  int64_t low, high;
  int64_t bad;  // of the first metric: something is not finite
};

struct MetricJob {  // the arguments of evaluations
  int64_t n_rows;
  int64_t n_outputs;
  int64_t plane;             // rows of `score`
  double* score;             // (n_outputs, plane) IN OUT
  const int32_t* rows;       // (n_rows) those that are evaluated; null: the first ones
  const double* label;       // (n_rows)
  const int32_t* repeats;    // (n_rows) what rows count for; null: 1
  const double* real;        // (n_rows) weights that are not whole; null: none
  int64_t link;              //
  int64_t not_negative;      // a prediction below 0 is an error
  double* prediction;        // (n_rows, n_outputs)
  double* added;             // (n_rows) what rows add to a metric
  const int32_t* kinds;      // (metrics) RowMetric, or OF_RANKS
  const double* parameters;  // (metrics)
  MetricResult* results;     // (metrics) OUT
  const double* ranked;      // (n_rows) predictions in rising order
  const int64_t* ones;       // (n_rows) the weight of the rows of class 1 up to each of them
  const int64_t* zeros;      // the same of class 0
  const uint8_t* planes;     // (columns, n_rows) codes
  // of a tree over codes; `low` of a split by a set: its number; left: 0 in leaves
  const WalkNode* nodes;
  const double* values;  // of the same nodes
  const uint64_t* sets;  // (sets, 4) a bit a code: 1: it goes right
};

struct LineTable {       // the values behind the bins
  const char* data;      // (n, n_columns) float32 or float64, row by row
  int64_t is_double;     //
  int64_t n_columns;     //
  const double* bounds;  // (n_columns, 3) of standard units, as in math/linear.h; null: raw units
  const double* unit;    // (n_columns) of them; 0: the column has no coefficients
};

struct LineLeaves {          // those of a tree, and the sums over their rows
  int64_t n_leaves;          //
  const int32_t* column_at;  // (n_leaves + 1) the first column of each
  // those of its branch IN OUT: then those with more than one value, first
  int32_t* column;
  const int64_t* sum_at;    // (n_leaves + 1) its first sum
  const int64_t* space_at;  // (n_leaves) its first number of `space`
  const double* value;      // (n_leaves) shrunk
  int32_t* n_kept;          // (n_leaves) columns with more than one value
  int32_t* row_at;          // (n_leaves + 1) its first row
  int32_t* cursor;          // (n_leaves) rows so far
  uint32_t* rows;           // (n) leaf by leaf; 2^31 is added to those that are not complete
  // (columns, 2) the lowest and the highest value, as numbers that sort like them
  uint64_t* range;
  FixedColumn* fixed;  // (columns)
  LineSums* totals;    // (n_leaves)
  int64_t* sums;       // (sums, 4) in parts of 32 bits
  double* space;       //
};

struct LineTerms {       // of the leaves of an output's tree
  int32_t* at;           // (n_leaves) the first of each
  int32_t* n;            // (n_leaves) how many; 0: the leaf has its value only
  int32_t* column;       // the first of a leaf is its constant
  double* coef;          //
  const double* value;   // (n_leaves)
  const double* bounds;  // as in LineTable
};

struct LineJob {             // the arguments of linear leaves
  int64_t n;                 // rows
  const uint16_t* leaf;      // (n) node of each
  const int32_t* number;     // (nodes) number of each leaf
  const uint8_t* in_sample;  // (n) null: all rows are
  const int32_t* repeats;    // (n) as in Job
  int64_t repeated;          //
  int64_t weight_shift;      //
  const Pair* pairs;         // (n) wide pairs of the output
  const Output* output;      //
  double rate;               // as in math/linear.h
  double reg_lambda;         //
  double linear_lambda;      //
  double linear_smooth;      //
  LineTable table;           //
  LineLeaves of;             //
  LineTerms terms;           //
  double* score;             // (n) IN OUT
};

struct BinJob {  // the arguments of binning
  int64_t n_rows;
  const char* table;      // values, float32 or float64
  int64_t row_stride;     // in bytes
  int64_t column_stride;  //
  int64_t is_double;
  const int32_t* cut_at;  // (n_columns + 1) the first cut of each column
  const double* cuts;     // rising
  uint8_t* planes;        // (n_columns, n_rows) OUT: codes; those of missing values are the last
};

// kinds of columns of categories: any set of codes, one against the rest
constexpr int PARTITION = 1, ONE_HOT = 2;

// Compiled for one growth policy, the kernels have none of the others' code: 0 depthwise, 1
// symmetric, 2 leafwise.
#ifdef SAPWOOD_POLICY
inline bool is_symmetric(const Job&) {
  return SAPWOOD_POLICY == 1;
}
inline bool is_leafwise(const Job&) {
  return SAPWOOD_POLICY == 2;
}
inline bool has_columns(const Job& j) {
  return SAPWOOD_COLUMNS && j.allowed != nullptr;
}
inline bool is_joint(const Job&) {
  return SAPWOOD_JOINT;
}
// compiled for more than the loss: cosine scores, weights, penalties, noise
constexpr bool MAY_RANK = SAPWOOD_RANKED;
constexpr bool MAY_HAVE_CATEGORIES = SAPWOOD_CATEGORIES,
               MAY_BE_NARROW = SAPWOOD_NARROW;    // narrow: a tile of 16 columns
constexpr bool MAY_BE_BESIDE = SAPWOOD_BESIDE;    // compiled for trees side by side
constexpr bool MAY_HAVE_COPIES = SAPWOOD_COPIES;  // ... of several copies of a round
#else
inline bool is_symmetric(const Job& j) {
  return j.symmetric != 0;
}
inline bool is_leafwise(const Job& j) {
  return j.leafwise != 0;
}
inline bool has_columns(const Job& j) {
  return j.allowed != nullptr;
}
inline bool is_joint(const Job& j) {
  return j.n_joint > 1;
}
constexpr bool MAY_RANK = true;
constexpr bool MAY_HAVE_CATEGORIES = true, MAY_BE_NARROW = true, MAY_BE_BESIDE = true,
               MAY_HAVE_COPIES = true;
#endif
inline bool is_cosine(const Job& j) {
  return MAY_RANK && j.cosine != 0;
}
inline bool is_ranked(const Job& j) {
  return MAY_RANK && (j.noisy || j.feature_weight != nullptr || j.first_use != nullptr);
}
inline bool has_categories(const Job& j) {
  return MAY_HAVE_CATEGORIES && j.category != nullptr;
}

// The tree of this block among those that grow side by side, and what it has of its own.
inline int place_of_tree() {
  return MAY_BE_BESIDE ? (int)blockIdx.z : 0;
}
inline int n_beside() {
  return MAY_BE_BESIDE ? (int)gridDim.z : 1;
}
template <class T>
SAPWOOD_INLINE T* of_tree(const Job& j, T* first) {
  return MAY_BE_BESIDE ? (T*)((char*)first + place_of_tree() * j.tree_stride) : first;
}
inline Growth& growth_of(const Job& j) {
  return j.growth[place_of_tree()];
}

// The trees of a copy of a round follow those of the one before. k: the tree. Its copy, its output,
// and the place of its
// gradients: copies share them, unless rows count more or less in each.
inline int copy_of(const Job& j, int k) {
  return MAY_HAVE_COPIES ? k / (int)j.n_outputs : 0;
}
inline int output_of(const Job& j, int k) {
  return MAY_HAVE_COPIES ? k % (int)j.n_outputs : k;
}
inline int gradients_of(const Job& j, int k) {
  return j.own_gradients ? k : output_of(j, k);
}

// What an output that is split together with others has of its own; one that is not has all.
inline Node* nodes_of(const Job& j, int k) {
  return is_joint(j) ? j.nodes + k * j.max_nodes : of_tree(j, j.nodes);
}
inline Growth& growth_of(const Job& j, int k) {
  return is_joint(j) ? j.growth[k] : growth_of(j);
}
inline Sums* histograms_of(const Job& j, int k) {
  return is_joint(j) ? j.histograms + k * j.n_slots * j.histogram_size : of_tree(j, j.histograms);
}
inline int n_joint(const Job& j) {
  return is_joint(j) ? (int)j.n_joint : 1;
}

}  // namespace sapwood
