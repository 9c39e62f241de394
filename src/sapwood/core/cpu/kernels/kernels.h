// The kernels: loops over rows, bins and nodes, compiled once per instruction set; one table of
// functions for each. Every buffer says its shape, type and direction. Kernels neither allocate nor
// throw.
#pragma once
#include <stddef.h>

#include "math/split.h"
#include "math/types.h"
#include "records/sizes.h"

namespace sapwood {

constexpr int OUTPUTS = 8;           // outputs whose root histograms are counted together
constexpr int PACKED_ROWS = 131071;  // rows whose narrow sums fit a packed word: 2^14 * rows < 2^31
constexpr int BLOCK = 512;           // rows handled together in row passes and in prediction
constexpr int RUN = 16;              // adjacent float32 columns that fill one cache line

struct LeafIds {  // the leaf id of each row: bytes for up to 256 leaves, else 16 bits
  void* data;
  bool wide;
};

struct QuantiseArgs {          // gradients of a block -> fixed point
  int64_t plane;               // distance between outputs in every array by row
  const int32_t* repeats;      // (n) IN, integer weights, or null
  const Scale *narrow, *wide;  // (n_outputs) IN
  int32_t* packed;             // (n_outputs, n) OUT, narrow, g << 16 | h
  Pair* leaf_pairs;            // (n_outputs, n) OUT, wide, for the leaf values
  // (n_outputs, n) OUT, or null; wide: the search has its own hessians
  Pair *search_pairs_narrow, *search_pairs_wide;
  // (n_outputs) IN OUT, bits of the largest |g| and of both hessians
  uint64_t *max_g, *max_h, *max_search_h;
  // (n_outputs) IN OUT, sums of repeats * |narrow g| and of repeats * h
  int64_t *sum_g, *sum_h;
};

// rows [0, n): add pending leaf values to scores, derive gradients, quantise
struct GradientArgs : QuantiseArgs {
  int64_t n, first;  // first: position of the first row
  int n_outputs, objective, n_fields;
  // (n_outputs, n_fields) IN, the objective's parameters
  const double* field;
  double* score;  // (n_outputs, n) IN OUT
  // (n_outputs) IN, leaf id of each row in the last tree
  const LeafIds* leaf;
  // (n_outputs) IN, leaf values still to be added; null: already added
  const double* const* leaf_value;
  const double* label;  // (n) or (n_outputs, n) IN
  // distance between outputs; 0: all outputs share one label
  int64_t label_plane;
  // (n) IN, the same labels as bytes (faster to read), or null
  const uint8_t* byte_label;
  // (n_outputs, n) IN, used instead of the objective's, or null
  const double *given_g, *given_h;
  bool unit_hessian_search, unit_hessian_leaf;  // hessian 1 in the split search; in the leaf values
  const double* weight;                         // (n) IN, real weights, or null
  // (n_outputs) IN, 1: the outputs of a second pass; null: the first, of all
  const uint8_t* again;
  // (n) OUT of the first pass, IN of a second; null where not needed
  double *softmax_top, *softmax_total;
  double* scratch;  // (n_outputs + 3, BLOCK)
};

// n <= BLOCK rows from `at` on: sums of the gradients of all outputs, the mean of hessians
struct ProjectArgs {
  const Pair* const* pairs;  // (n_outputs) IN, each by row
  int64_t at;
  int n, n_outputs, n_sums;
  const double* factor;  // (n_sums, n_outputs) IN, of gradients
  const double* unit;    // (n_outputs) IN, of hessians
  int64_t plane;         // distance between sums
  double *g, *h;         // (n_sums, n), (n) OUT
};

struct NormArgs {  // gradient norms of rows [0, n), n <= BLOCK, from their wide gradients
  int64_t n, plane;
  int n_outputs, sampler;
  const double* field;     // IN, the sampler's parameters
  const Pair* leaf_pairs;  // (n_outputs, n) IN
  // (n_outputs) IN, the gradient that one step of the fixed point stands for
  const double* quantum;
  const int32_t* repeats;  // (n) IN, integer weights, or null
  double scale;            // norm = rint(scale * real norm)
  uint32_t* norm;          // (n) OUT
};

// which of rows [first, first + n) are in the sample, and with what weight
struct SampleArgs {
  // shard: place of the shard's first row in arrays by row; it has row id 0
  int64_t n, first, shard;
  int64_t position;  // global position of that row: draws are made from global positions
  // take every row whose repeats are above 0, with weight 1, without a draw
  bool all_rows;
  int sampler;
  const double* field;
  uint64_t key, tie_key;
  const uint32_t* norm;         // gradient norms by row, IN, or null
  const Pair* leaf_pairs;       // by row, IN, whose |g| are the norms, or null
  const double* row_subsample;  // by row, IN; null: `subsample` for all
  const int32_t* group;         // sampling group by row, IN; null: every row is its own
  const int32_t* repeats;       // by row, IN: rows of weight 0 stay out; or null
  double subsample;
  SampleThreshold threshold;
  int32_t* rows;          // (n) OUT, the ids of the sampled rows
  double* sample_weight;  // (n) OUT, their sampling weights, or null
};

// multiplies sampled rows' gradients by their sampling weights and quantises them again
struct RequantiseArgs {
  const int32_t* rows;          // (n) IN, row ids
  const double* sample_weight;  // (n) IN
  int64_t n;
  const Pair *leaf_pairs, *search_pairs_wide;  // by row, IN; search_pairs_wide may be null
  const int32_t* repeats;                      // by row, IN, or null
  const Scale *narrow, *wide;                  // IN, in units of the quantised input
  // leaf pairs and packed words go out in the order of `rows`, else by row
  bool gathered;
  Pair *reweighted_leaf_pairs, *reweighted_search_pairs;  // OUT; search pairs by row
  int32_t* packed;                                        // OUT if repeats is null
  Pair* search_pairs_narrow;                              // by row, OUT if repeats is given
  // OUT, bits of the largest |g|, leaf hessian, search hessian
  uint64_t max_bits[3];
  int64_t sum_g, sum_h, count;  // OUT, as in GradientArgs; sum of repeats
};

struct LossGradHess {  // a block's losses (or null), gradients and hessians, OUT
  double *loss, *g, *h;
};

struct PartitionArgs {
  const void* codes;      // codes of the split column, IN
  size_t code_bytes;      // 1, 2 or 4; 0: the codes are bits by row, and 1 goes right
  const int32_t* rows;    // (n) row ids, IN, or null: first, first + 1, ...
  const int32_t* packed;  // (n) gradients that move with the rows, IN, or null
  int64_t n;
  int32_t first;
  Split split;
  uint64_t* bits;         // (n / 64) which rows go right: OUT of mark, IN of move
  int64_t n_right;        // number of set bits, IN of move
  int32_t *left, *right;  // OUT of move: row ids
  int32_t *left_packed, *right_packed;
};

struct MarginalArgs {   // the sums of a fused slot -> the sums of its member columns
  const int64_t* sums;  // (product of n, width) IN
  int width;            // words of a sum: 1 (packed) or 2 (a pair)
  int n_members;
  const int* n;        // (n_members) codes of each member, by falling step
  int64_t* const* to;  // (n_members) OUT, each (n, width)
};

struct SortedSumsArgs {   // a node's rows sorted by a column -> sums by value
  const int32_t* rows;    // (n) IN
  const uint32_t* codes;  // (n) IN, rising
  int64_t n;
  const int32_t* packed;   // by row, IN: narrow words, or null
  const Pair* pairs;       // by row, IN, used if packed is null
  const int32_t* repeats;  // by row, IN, integer weights of the pairs, or null
  bool words;              // sums are packed words, else pairs
  int64_t* sums;           // (n_values) OUT
  uint32_t* values;        // (n_values) OUT, the code of each sum
};

struct MaskNode {  // a node of a tree over byte codes; left == 0: a leaf
  int32_t plane;   // index of the column's plane of codes
  uint8_t low, length;
  uint16_t left;                  // right child = left + 1
  uint16_t leaf;                  // number of the leaf
  const uint64_t* set = nullptr;  // as in Split
};

// with more leaves a walk per row is faster: the cost of masks grows with the leaves
constexpr int MASK_LEAVES = 64;

struct LeafSumArgs {    // sums of gradients by leaf
  const uint8_t* leaf;  // leaf number by row
  const int32_t* rows;  // (n) the rows to add, IN; null: the first n
  int32_t first;        // row id of leaf[0]
  bool gathered;        // q is in the order of `rows`, else by row
  const Pair* q;
  int n;
  // (2, MASK_LEAVES) += g, h, 1, 0; two copies: neighbours in one leaf need not wait for a store
  int64_t (*sums)[4];
};

// rows whose sums of products fit 64 bits: 2^(2 * 13 + 30) * 64 <= 2^62
constexpr int LINEAR_ROWS = 64;

// the sums of a ridge over n <= LINEAR_ROWS rows of a leaf, in standard units
struct LinearSumArgs {
  // (k, LINEAR_ROWS) IN, values; what follows the n rows in each array is 0 up to a multiple of 16
  const int32_t* q;
  const int32_t *g, *h;  // (n_outputs, LINEAR_ROWS) IN
  int n, k, n_outputs;
  // (n_outputs, k * (k + 5) / 2) OUT, by column a: g*q, h*q, then h*q*q with the columns up to a
  int64_t* sum;
  int32_t *low, *high;  // (k) IN OUT, the range of the values of these and the rows before
};

constexpr int LINE_ROWS = 32;

struct LineRow {       // the lines of all outputs in a row's leaf
  const double* coef;  // (1 + k, n_outputs), the constants first
  int k, leaf;
};

// the values of n <= LINE_ROWS rows with linear leaves of several outputs
struct AddLinesArgs {
  const LineRow* rows;         // (n) IN
  const double* z;             // IN, the k values of each row, row after row
  const double* const* value;  // (n_outputs) IN, by leaf: what a row gets whose line is not finite
  int n, n_outputs;
  int64_t stride;  // of the scores of an output
  double* sum;     // (LINE_ROWS, n_outputs) scratch
  double* score;   // (n_outputs, stride) IN OUT, of the first row
};

struct Literal {  // a condition on a path, and the side on which the path continues
  int32_t condition;
  bool left;
};

// the pattern of rows [0, n), n <= BLOCK, for a group of leaves (predict/shap_paths.h)
struct PatternArgs {
  const uint8_t* left;  // (n_conditions, BLOCK) IN, 1 where a row goes left
  int n, n_above, n_inside;
  const Literal* literals;  // IN, conditions above the group, sorted by column
  const int32_t* ends;      // (n_above) IN, where each column's literals end
  const int32_t* inside;    // (n_inside) IN, conditions inside the group
  uint16_t* pattern;        // (n) OUT
};

// what a leaf adds to the columns on its path, for n patterns, n <= LANES
struct LeafShapArgs {
  int n, d, n_points;  // d columns
  // (d, LANES) IN, whether a pattern satisfies the column's conditions
  const uint8_t* on_path;
  const double* weight_fraction;  // (d) IN, fraction of the training weight that does
  const double* point;            // (n_points) IN, points of the quadrature over 0..1
  const double* point_weight;     // (n_points) IN, their weights times the leaf's value
  double* const* out;             // (d) IN OUT, each (n); (d, d) for interactions
  double* scratch;                // (d * (d + 3), LANES)
};
constexpr int LANES = 64;

constexpr int GROUP_LANES = 8;  // outputs of a group of trees that are added together
// trees with the same splits, one for each output; n rows of a block, rounded up to fours
struct GroupArgs {
  const uint8_t* leaf;  // (BLOCK) IN
  int n, n_leaves, n_columns;
  int width;  // outputs, rounded up to GROUP_LANES
  // (width / GROUP_LANES, n_leaves, 1 + n_columns, GROUP_LANES) IN: constants, then slopes
  const double* table;
  const double* const* z;  // (n_columns) IN, as in LineArgs
  const char* next;        // what is read soon: a line of cache a row is fetched
  int64_t n_next;          // bytes
};

// a split of a tree whose answers for a block are known; places count in `reach`
struct SharedNode {
  int32_t split, except;     // which answers: those of `split` that `except` has not
  uint16_t at, left, right;  // its own place, and those of its children
};

struct SharedTreeArgs {     // a tree, and the answers of its splits for BLOCK rows
  const uint64_t* answers;  // (n_splits, BLOCK / 64) IN, bit i: row i goes right
  // (n_leaves - 1) IN, parents before their children; the root's place is root_place()
  const SharedNode* nodes;
  int n_leaves, n_bits;  // of leaf numbers; the place of a leaf is its number
  uint64_t* reach;       // (root_place() + n_leaves - 1, BLOCK / 64) scratch
};
inline int root_place(int n_leaves) {
  return n_leaves == 1 ? 0 : (n_leaves + 3) / 4 * 4;
}

struct LineArgs {  // the lines of a tree's leaves, for n rows of a block, rounded up to 16
  int n;
  const uint8_t* leaf;    // (BLOCK) IN, numbers of n_bits bits
  int n_bits, n_columns;  // columns in any of the lines
  const double* value;    // (1 << n_bits, at least 32) IN, the constants
  // (n_columns, 1 << n_bits, at least 32) IN; 0 where a leaf's line has not the column
  const double* slopes;
  const double* const* z;  // (n_columns) IN, each (BLOCK): the rows' values, all finite
};

struct TailArgs {  // a column's histograms over the two row sets of a node in ordered boosting
  const int64_t *body, *tail;
  bool body_packed, tail_packed;
  Sums body_joined, tail_joined;  // sums of missing values if they go left, else 0
  Sums body_total, tail_total;
};

// of a pair: from both discounts, from one number, by pair
enum class PairWeight { discounts, within, given };

// blocks of a ranked list handled together; its arrays are so much longer than the list
constexpr int PAIR_LANES = 8;

struct PairArgs {  // a block of a ranked list against the n blocks behind it (pairs.h)
  PairWeight kind;
  bool norm;  // weights are divided by 0.01 + the difference of the scores
  int64_t n;
  // (n) IN, of each block; e = e^(sigma (score - top)); rows of a block
  const double *score, *gain, *e, *count;
  const double* weight;  // (n) IN, discounts, or weights of the pairs
  double own_score, own_gain, own_e, own_count, own_discount;
  double sigma, factor;
  double *g, *h;  // (n) IN OUT, += of each row of a block
  // OUT, for each row of the own block: - gradient, hessian, |gradient|
  double sum_g, sum_h, sum_size;
};

struct RowKernels {  // gradient_pass.h, row_sample.h, pairs.h
  void (*gradients)(const GradientArgs&);
  void (*evaluate)(int objective, const double* field, const double* score, const double* label,
                   int n, LossGradHess);
  // rows [at, at + n), n <= BLOCK; a: of one output
  void (*quantise)(const QuantiseArgs& a, int64_t at, int n, const double* g, const double* h);
  void (*project)(const ProjectArgs&);
  // bits of the largest |x|, or `top` if larger
  uint64_t (*max_abs_bits)(uint64_t top, const double* x, int n);
  // x = 0 where a row has keep = 0 or a count of 0; either may be null.
  void (*clear_rows)(const uint8_t* keep, const int32_t* count, int n, double* x);
  // q = rint(x * scale), |q| <= 2^62
  void (*to_fixed)(const double* x, double scale, int64_t* q, int n);
  void (*knots)(int objective, const double* field, const double* score, const double* label, int n,
                double* at, double* mass, double* level);
  // margin (n) OUT: score k less the log of the sum of e^score over the others, along which softmax
  // is logistic loss
  void (*margins)(const double* score, int64_t plane, int n_outputs, int k, int n, double* margin);
  void (*add_leaf_values)(double* score, const LeafIds& leaf, int64_t first, const double* value,
                          int n);
  void (*gradient_norms)(const NormArgs&);
  void (*abs_gradients)(const Pair* leaf_pairs, int64_t n, uint32_t* norm);
  int64_t (*sample_rows)(const SampleArgs&);  // returns the number of sampled rows
  void (*requantise)(RequantiseArgs&);
  // x (n) IN. kept (n) OUT: the numbers within base..last, whose count is returned. above += how
  // many are larger;
  // below += the sum of the smaller ones.
  int64_t (*select_window)(const uint32_t* x, int64_t n, uint32_t base, uint32_t last,
                           uint32_t* kept, int64_t& above, int64_t& below);
  // (n, n_outputs)
  void (*apply_link)(int kind, const double* raw, double* out, int64_t n, int n_outputs);
  void (*pairs)(PairArgs&);
  // score (n) IN, place (n) OUT, both PAIR_LANES longer: how many scores are larger. For short
  // lists.
  void (*places)(const double* score, int64_t n, int64_t* place);
  void (*list_exp)(const double* score, double top, double sigma, double lowest, int64_t n,
                   double* e);
};

struct HistogramKernels {  // histogram.h, sorted_sums.h
  // hist (width, HIST_STRIDE) int64 OUT: sums of g << 32 | h
  void (*histogram)(const uint8_t* codes, size_t stride, int width, const int32_t* rows, int64_t n,
                    const int32_t* packed, int64_t* hist);
  // All rows, OUTPUTS outputs at once: columns (width), packed (OUTPUTS) IN; hist (width,
  // HIST_STRIDE, OUTPUTS) OUT
  void (*histogram_outputs)(const uint8_t* const* columns, int width, const int32_t* const* packed,
                            int64_t n, int64_t* hist);
  // 16-bit codes: the sums of slot c begin at hist + at[c]
  void (*histogram_wide)(const uint16_t* codes, size_t stride, int width, const int32_t* rows,
                         int64_t n, const int32_t* packed, const size_t* at, int64_t* hist);
  // hist (sums, 2) int64 OUT: sums of g and h; those of slot c begin at at[c]
  void (*histogram_pairs)(const void* codes, bool wide_codes, size_t stride, int width,
                          const int32_t* rows, int64_t n, const Pair* q, const int32_t* repeats,
                          const size_t* at, int64_t* hist);
  // Row lists: row r has the 16-bit codes codes[offset[r]] .. codes[offset[r + 1] - 1]. Packed
  // words; then pairs.
  void (*histogram_lists)(const uint32_t* offset, const uint16_t* codes, const int32_t* rows,
                          int64_t n, const int32_t* packed, int64_t* hist);
  void (*histogram_lists_pairs)(const uint32_t* offset, const uint16_t* codes, const int32_t* rows,
                                int64_t n, const Pair* q, const int32_t* repeats, int64_t* hist);
  void (*flush)(int64_t* packed, int64_t* pairs, int64_t n);  // pairs += packed; packed = 0
  void (*add)(int64_t* into, const int64_t* from, int64_t n);
  void (*subtract)(int64_t* into, const int64_t* from, int64_t n);
  // pairs -= packed
  void (*subtract_packed)(int64_t* into_pairs, const int64_t* packed, int64_t n);
  void (*pack)(int64_t* packed, const int64_t* pairs, int64_t n);  // packed = pairs
  void (*marginalise)(const MarginalArgs&);
  int64_t (*sorted_sums)(const SortedSumsArgs&);  // returns the number of values
};

struct SplitKernels {  // split_scan.h, partition.h
  // Best split of one column, from the cut `first` on: hist (n_bins [+ 1 missing]) packed words or
  // pairs. Replaces `best` if it finds a better one.
  void (*scan_column)(const int64_t* hist, bool packed, int first, int n_bins, bool missing,
                      Sums total, const Penalty&, int32_t column, Candidate& best);
  // n <= 64 adjacent columns of two bins each: bit i is set if the only cut of column i may reach
  // the score `bar`.
  uint64_t (*may_split)(const int64_t* hist, bool packed, int n, Sums total, const Penalty&,
                        double bar);
  // Adds one node's part to the scores of a level: score (n_bins) += ; `side`: missing values join
  // the left.
  void (*scan_level)(const int64_t* hist, bool packed, int n_bins, Sums missing, Sums total,
                     const Penalty&, bool side, double* score);
  // The same for cosine scores: dot, norm2 (n_bins) +=
  void (*scan_level_cosine)(const int64_t* hist, bool packed, int n_bins, Sums missing, Sums total,
                            const Penalty&, bool side, double* dot, double* norm2);
  // Adds one prefix model's part to a node's scores in ordered boosting: dot, norm2 (n_bins) +=
  void (*scan_tails)(const TailArgs&, int n_bins, const Penalty&, double* dot, double* norm2);
  // codes (n + 8) OUT, rising: the codes whose hessian sum is at least min_h; returns their number
  int (*codes_in_node)(const int64_t* hist, bool packed, int n, int64_t min_h, int32_t* codes);
  int64_t (*mark)(const PartitionArgs&);  // returns how many rows go right
  void (*move)(const PartitionArgs&);
};

struct PredictKernels {  // predict.h, shap.h
  // leaf (BLOCK) OUT: the leaf number of each row, of n_bits bits; reach (n_nodes, BLOCK / 64)
  // scratch
  void (*find_leaves)(const uint8_t* const* planes, size_t offset, const MaskNode*, int n_nodes,
                      int n_bits, uint64_t* reach, uint8_t* leaf);
  void (*sum_by_leaf)(const LeafSumArgs&);
  void (*linear_sums)(const LinearSumArgs&);
  void (*add_lines)(const AddLinesArgs&);
  // score (BLOCK) += value[leaf]
  void (*add_block_values)(const uint8_t* leaf, const double* value, int n_bits, double* score);
  // score (BLOCK) += a line of each row's leaf: value[leaf] + slopes[0][leaf] * z[0] + ..., from
  // left to right
  void (*add_block_lines)(const LineArgs&, double* score);
  // score (BLOCK, width) += a line of each row's leaf for each output
  void (*add_group_lines)(const GroupArgs&, double* score);
  // leaf (BLOCK) OUT: the leaf number of each row in a symmetric tree with one node a level
  void (*find_leaves_symmetric)(const uint8_t* const* planes, const MaskNode* levels, int depth,
                                uint8_t* leaf);
  // answers (n, BLOCK / 64) OUT: bit i of split k is set if row i goes right
  void (*answer_splits)(const uint8_t* const* planes, const MaskNode* splits, int n,
                        uint64_t* answers);
  // leaf (BLOCK) OUT, as in find_leaves
  void (*find_leaves_shared)(const SharedTreeArgs&, uint8_t* leaf);
  void (*goes_left)(const uint32_t* code, uint32_t low, uint32_t length, int n, uint8_t* left);
  void (*match_patterns)(const PatternArgs&);
  void (*leaf_shap_values)(const LeafShapArgs&);
  void (*leaf_shap_interactions)(const LeafShapArgs&);
  // sum (n) += value[pattern]
  void (*add_pattern_values)(const uint16_t* pattern, const double* value, int n, double* sum);
};

struct BinningKernels {  // binning.h
  // rows (n) IN: RUN float32 numbers each; x (RUN, plane) OUT
  void (*transpose16)(const char* const* rows, int n, float* x, size_t plane);
  // columns (width) IN: n codes each; rows OUT: the codes of a row side by side, `stride` bytes
  // from row to row
  void (*interleave)(const uint8_t* const* columns, int width, int n, uint8_t* rows, size_t stride);
  // The code of each x among cuts that are padded with +inf (PaddedCuts); bytes: n_cuts <= 254
  void (*bin32)(const float* x, int n, const float* cuts, int n_cuts, uint16_t* code);
  void (*bin64)(const double* x, int n, const double* cuts, int n_cuts, uint16_t* code);
  void (*bin32_byte)(const float* x, int n, const float* cuts, int n_cuts, uint8_t* code);
  void (*bin64_byte)(const double* x, int n, const double* cuts, int n_cuts, uint8_t* code);
  void (*rank)(const double* x, int n, const double* cuts, int n_cuts, uint32_t* code);
};

struct Kernels : RowKernels, HistogramKernels, SplitKernels, PredictKernels, BinningKernels {
  const char* name;
};

// Packs a tree for find_leaves. make(u): the MaskNode of inner node u. nodes (n_nodes), leaf_node
// (n_leaves) OUT. Returns the number of leaves, which are numbered in the order of nodes.
template <class Make>
inline int pack_mask_tree(const int32_t* left, int n_nodes, Make&& make, MaskNode* nodes,
                          int32_t* leaf_node) {
  int n_leaves = 0;
  for (int u = 0; u < n_nodes; u++) {
    nodes[u] = left[u] == 0 ? MaskNode{} : make(u);
    if (left[u] != 0) {
      continue;
    }
    nodes[u].leaf = (uint16_t)n_leaves;
    leaf_node[n_leaves++] = u;
  }
  return n_leaves;
}
inline MaskNode mask_node(int plane, int left, const Split& s) {
  return {plane, (uint8_t)s.low, (uint8_t)s.length, (uint16_t)left, 0, s.set};
}

inline int bits_for(int n_leaves) {  // bits of the largest leaf number
  int bits = 1;
  while (1 << bits < n_leaves) {
    bits++;
  }
  return bits;
}

const Kernels* kernels_portable();
const Kernels* kernels_avx2();
const Kernels* kernels_avx512();
const Kernels& kernels();  // the table in use
// "auto" or a table's name; returns the name in use, null if unsupported
const char* choose_kernels(const char* name);

}  // namespace sapwood
