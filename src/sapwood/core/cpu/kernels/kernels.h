// The kernels: loops over rows, bins and nodes, compiled once per instruction set; a table of them for each.
// Buffers say shape, type, direction. Nothing here allocates or throws.
#pragma once
#include <stddef.h>

#include "math/split.h"
#include "math/types.h"
#include "records/sizes.h"

namespace sapwood {

constexpr int OUTPUTS = 8;           // outputs whose root histograms are counted together
constexpr int PACKED_ROWS = 131071;  // rows whose narrow sums fit a packed word: 2^14 * rows < 2^31
constexpr int BLOCK = 512;           // rows handled together in row passes and in prediction
constexpr int RUN = 16;              // float32 columns that share a line of memory

struct LeafIds {  // of rows: bytes for up to 256 leaves, else 16 bits
  void* data;
  bool wide;
};

struct GradientArgs {       // one pass over rows [0, n): scores += pending leaf values, gradients, fixed point
  int64_t n, plane, first;  // rows; distance between outputs in every array below; position of the first row
  int n_outputs, objective;
  const double* field;  // (n_outputs, n_fields) IN, the objective's own parameters
  int n_fields;
  double* score;                    // (n_outputs, n) IN OUT
  const LeafIds* leaf;              // (n_outputs) IN, leaf of each row in the tree last grown
  const double* const* value;       // (n_outputs) IN, its leaf values where they are still to be added, or null
  const double* label;              // (n) or (n_outputs, n) IN
  int64_t label_plane;              // 0: one label serves all outputs
  const uint8_t* byte_label;        // (n) IN, the same as bytes, which come faster, or null
  const double *given_g, *given_h;  // (n_outputs, n) IN, instead of the objective's, or null
  bool unit_search, unit_leaf;      // hessians of 1 in the split search, in the leaf values
  const double* factor;             // (n) IN, real weights, or null
  const int32_t* multiple;          // (n) IN, whole weights, or null
  const Scale* narrow;              // (n_outputs) IN
  const Scale* wide;                // (n_outputs) IN
  int32_t* packed;                  // (n_outputs, n) OUT narrow g << 16 | h
  Pair* fine;                       // (n_outputs, n) OUT wide, of the leaf values
  Pair* coarse;                     // (n_outputs, n) OUT narrow, or null
  Pair* apart;      // (n_outputs, n) OUT wide, of a search whose hessians are not those of the leaves, or null
  double* scratch;  // (n_outputs + 3, BLOCK)
  uint64_t* max_g;  // (n_outputs) IN OUT bits of the largest |g|
  uint64_t* max_h;  // ... and of the largest h, of the leaf values and of the search
  uint64_t* max_search;
  int64_t* sum_g;  // (n_outputs) IN OUT sum of multiple * |narrow g|
  int64_t* sum_h;
};

struct NormArgs {  // sizes of rows [0, n), n <= BLOCK, from their wide gradients
  int64_t n, plane;
  int n_outputs, sampler;
  const double* field;      // the sampler's own parameters
  const Pair* fine;         // (n_outputs, n) IN
  const double* unit;       // (n_outputs) IN, what a step of each is worth
  const int32_t* multiple;  // (n) IN, whole weights, or null
  double scale;
  uint32_t* size;  // (n) OUT
};

struct SampleArgs {         // who of rows [first, first + n) takes part, and how often it counts
  int64_t n, first, shard;  // shard: position of its first row, from which ids count
  bool every;               // all that are alive, once: nobody is asked
  int sampler;
  const double* field;
  uint64_t key, tie_key;
  const uint32_t* size;     // by row, IN, or null; so are those that follow
  const Pair* fine;         // whose |g| are the sizes instead
  const double* share;      // null: subsample for all
  const int32_t* unit;      // the group of each row; null: every row its own
  const int32_t* multiple;  // above 0 where a row is alive
  double subsample;
  SampleThreshold bar;
  int32_t* rows;  // (n) OUT: the ids of those who take part come first
  double* times;  // (n) OUT: how often they count, or null
};

struct RequantiseArgs {  // fixed point of sampled rows once more
  const int32_t* rows;   // (n) IN, row ids
  const double* times;   // (n) IN, how often they count
  int64_t n;
  const Pair *fine, *apart;                  // by row, IN; apart may be null
  const int32_t* multiple;                   // by row, IN, or null
  const Scale *narrow, *wide;                // IN, over the units of fine and apart
  bool listed;                               // fine and packed go out in the order of `rows`, else by row
  Pair *reweighted_fine, *reweighted_apart;  // OUT; apart by row
  int32_t* packed;                           // OUT where there are no multiples
  Pair* coarse;                              // by row, OUT where there are multiples
  uint64_t top[3];                           // OUT bits of the largest |g|, h, hessian of the search
  int64_t sum_g, sum_h, count;               // OUT, as in GradientArgs; the sum of multiples
};

struct Derived {  // of rows at their scores: OUT
  double *loss /* or null */, *g, *h;
};

struct PartitionArgs {
  const void* codes;      // codes of the split column, IN
  size_t code_bytes;      // 1, 2 or 4; 0: the codes are bits by row, and 1 goes right
  const int32_t* rows;    // (n) row ids, IN, or null: first, first + 1, ...
  const int32_t* packed;  // (n) gradients that travel with the rows, IN, or null
  int64_t n;
  int32_t first;
  Split split;
  uint64_t* bits;         // (n / 64) which rows go right: OUT of mark, IN of move
  int64_t n_right;        // how many those are, IN of move
  int32_t *left, *right;  // OUT of move: row ids
  int32_t *left_packed, *right_packed;
};

struct MarginalArgs {   // a slot's sums to those of its members
  const int64_t* sums;  // IN (product of n, width)
  int width;            // words of a sum: 1 (packed) or 2 (a pair)
  int n_members;        // by falling step,
  const int* n;         // their codes,
  int64_t* const* to;   // and where their sums go, (n, width) each OUT
};

struct SortedSumsArgs {   // a node's rows in the order of a column -> sums by value
  const int32_t* rows;    // (n) IN
  const uint32_t* codes;  // (n) IN, rising
  int64_t n;
  const int32_t* packed;    // by row, IN: narrow words, or null
  const Pair* pairs;        // by row, IN, where there are no words
  const int32_t* multiple;  // by row, IN, of pairs, or null
  bool words;               // sums are packed words, else pairs
  int64_t* sums;            // (values) OUT
  uint32_t* values;         // (values) OUT: their codes
};

struct MaskNode {  // a node of a tree over byte codes: split, or leaf where left = 0
  int32_t plane;   // which column plane
  uint8_t low, length;
  uint16_t left;                  // right child = left + 1
  uint16_t leaf;                  // number of the leaf
  const uint64_t* set = nullptr;  // as in Split
};

constexpr int MASK_LEAVES = 64;  // up to so many, leaves are numbered by masks: their cost grows with the leaves

struct LeafSumArgs {      // sums of rows by leaf
  const uint8_t* number;  // the leaf of each row
  const int32_t* rows;    // (n) which of them are meant; null: the first n
  int32_t first;          // what `rows` calls the first
  bool listed;            // gradients are those of `rows`, in their order
  const Pair* q;          // else of each row
  int n;
  int64_t (*sums)[4];  // (2, MASK_LEAVES) += g, h, 1, 0; two: neighbours in one leaf would wait for each other's store
};

struct Literal {  // a condition, and the side on which a path goes on
  int32_t condition;
  bool left;
};

struct PatternArgs {    // rows [0, n), n <= BLOCK, against a group of leaves (paths.h)
  const uint8_t* left;  // (n_conditions, BLOCK) IN, 1 where a row goes left
  int n, n_above, n_inside;
  const Literal* literals;  // of the columns above, one column after the other
  const int32_t *ends, *inside;
  uint16_t* pattern;  // (n) OUT
};

struct LeafArgs {         // what a leaf adds to the columns on its path, for n patterns, n <= LANES
  int n, d, n_points;     // d columns
  const uint8_t* kept;    // (d, LANES) IN, whether a pattern keeps to the path
  const double* share;    // (d) IN, of the weight that does
  const double* at;       // (n_points) IN, where the integral over 0..1 is taken ...
  const double* mass;     // (n_points) IN, ... with what weight times the value of the leaf
  double* const* column;  // (d) IN OUT, each (n); or of pairs (d, d)
  double* scratch;        // (d * (d + 3), LANES)
};
constexpr int LANES = 64;

struct TailArgs {  // a column in the two parts of a node that one model has
  const int64_t *body, *tail;
  bool body_packed, tail_packed;
  Sums body_joined, tail_joined;  // missing values, where they go left
  Sums body_total, tail_total;
};

struct Kernels {
  const char* name;
  void (*gradients)(const GradientArgs&);
  void (*evaluate)(int objective, const double* field, const double* score, const double* label, int n, Derived);
  uint64_t (*largest)(uint64_t top, const double* x, int n);           // bits of the largest |x|, or `top`
  void (*to_fixed)(const double* x, double scale, int64_t* q, int n);  // q = rint(x * scale), |q| <= 2^62
  void (*knots)(int objective, const double* field, const double* score, const double* label, int n, double* at,
                double* mass, double* level);
  // margin (n) OUT: score k less the log of the sum of e^score over the others, along which softmax is logistic loss
  void (*margins)(const double* score, int64_t plane, int n_outputs, int k, int n, double* margin);
  void (*add_leaves)(double* score, const LeafIds& leaf, int64_t first, const double* value, int n);
  void (*sizes)(const NormArgs&);
  void (*abs_gradients)(const Pair* fine, int64_t n, uint32_t* size);  // |g|
  int64_t (*ask)(const SampleArgs&);                                   // how many take part
  void (*weigh)(RequantiseArgs&);
  // x (n) IN; kept (n) OUT: the numbers from base to last come first, how many; above += how many are larger, below += the
  // sum of the smaller
  int64_t (*window)(const uint32_t* x, int64_t n, uint32_t base, uint32_t last, uint32_t* kept, int64_t& above,
                    int64_t& below);
  // hist (width, HIST_STRIDE) int64 OUT: sums of g << 32 | h
  void (*histogram)(const uint8_t* codes, size_t stride, int width, const int32_t* rows, int64_t n,
                    const int32_t* packed, int64_t* hist);
  // The same for all rows and several outputs: codes of `width` columns, packed of OUTPUTS; hist (width, HIST_STRIDE, OUTPUTS) OUT
  void (*histogram_outputs)(const uint8_t* const* columns, int width, const int32_t* const* packed, int64_t n,
                            int64_t* hist);
  // The same of 16-bit codes: those of slot c begin at hist + at[c]
  void (*histogram_wide)(const uint16_t* codes, size_t stride, int width, const int32_t* rows, int64_t n,
                         const int32_t* packed, const size_t* at, int64_t* hist);
  // hist (sums, 2) int64 OUT: sums of g, h; those of slot c begin at at[c]
  void (*histogram_pairs)(const void* codes, bool wide_codes, size_t stride, int width, const int32_t* rows, int64_t n,
                          const Pair* q, const int32_t* multiple, const size_t* at, int64_t* hist);
  // Rows of 16-bit codes, any number in each: those of row r at codes[offset[r]] .. codes[offset[r + 1] - 1]; words, then pairs
  void (*histogram_lists)(const uint32_t* offset, const uint16_t* codes, const int32_t* rows, int64_t n,
                          const int32_t* packed, int64_t* hist);
  void (*histogram_lists_pairs)(const uint32_t* offset, const uint16_t* codes, const int32_t* rows, int64_t n,
                                const Pair* q, const int32_t* multiple, int64_t* hist);
  void (*flush)(int64_t* packed, int64_t* pairs, int64_t n);  // pairs += packed; packed = 0
  void (*add)(int64_t* into, const int64_t* from, int64_t n);
  void (*subtract)(int64_t* into, const int64_t* from, int64_t n);
  void (*subtract_packed)(int64_t* into_pairs, const int64_t* packed, int64_t n);  // pairs -= packed
  void (*pack)(int64_t* packed, const int64_t* pairs, int64_t n);                  // packed = pairs
  // The sums of a fused slot's members, which the slot's are added up to: of `width` words each, 1 (packed) or 2 (pairs).
  void (*marginalise)(const MarginalArgs&);
  // Best split of one column, from the cut `first` on: bins (n_bins [+ 1 missing]) packed words or pairs. Beats `best` or leaves it.
  void (*scan)(const int64_t* hist, bool packed, int first, int n_bins, bool missing, Sums total, const Penalty&,
               int32_t column, Candidate& best);
  // Of n <= 64 columns of two bins each, side by side: a bit where the only cut may reach the score `bar`.
  uint64_t (*promising)(const int64_t* hist, bool packed, int n, Sums total, const Penalty&, double bar);
  // One node's part of a level's scores: score (n_bins) += ; with `side` the missing codes join the left.
  void (*scan_level)(const int64_t* hist, bool packed, int n_bins, Sums missing, Sums total, const Penalty&, bool side,
                     double* score);
  // The same for cosine scores: their parts `along` and `square` (n_bins) +=.
  void (*scan_level_cosine)(const int64_t* hist, bool packed, int n_bins, Sums missing, Sums total, const Penalty&,
                            bool side, double* along, double* square);
  // One model's part of the scores of ordered boosting, of a node: along, square (n_bins) +=.
  void (*scan_tails)(const TailArgs&, int n_bins, const Penalty&, double* along, double* square);
  // codes (n + 8) OUT, rising: those with a hessian of at least `least`; how many
  int (*live)(const int64_t* hist, bool packed, int n, int64_t least, int32_t* codes);
  int64_t (*mark)(const PartitionArgs&);  // how many rows go right
  void (*move)(const PartitionArgs&);
  void (*leaves)(const uint8_t* const* planes, size_t offset, const MaskNode*, int n_nodes, int n_bits, uint64_t* reach,
                 uint8_t* leaf);  // (BLOCK)
  void (*sum_leaves)(const LeafSumArgs&);
  void (*add_values)(const uint8_t* leaf, const double* value, int n_bits,
                     double* score);  // (BLOCK) score += value[leaf]
  void (*symmetric)(const uint8_t* const* planes, const MaskNode* levels, int depth,
                    uint8_t* leaf);  // (BLOCK) leaf of a symmetric tree
  // rows (n): RUN numbers each; x (RUN, plane) OUT
  void (*turn)(const char* const* rows, int n, float* x, size_t plane);
  // columns (width): n codes each, side by side in rows `stride` bytes apart OUT
  void (*interleave)(const uint8_t* const* columns, int width, int n, uint8_t* rows, size_t stride);
  void (*bin32)(const float* x, int n, const float* cuts, int n_cuts,
                uint16_t* code);  // cuts padded with +inf: PaddedCuts
  void (*bin64)(const double* x, int n, const double* cuts, int n_cuts, uint16_t* code);
  void (*bin32_byte)(const float* x, int n, const float* cuts, int n_cuts, uint8_t* code);  // n_cuts <= 254
  void (*bin64_byte)(const double* x, int n, const double* cuts, int n_cuts, uint8_t* code);
  void (*rank)(const double* x, int n, const double* cuts, int n_cuts, uint32_t* code);
  int64_t (*sorted_sums)(const SortedSumsArgs&);                                     // how many values
  void (*link)(int kind, const double* raw, double* out, int64_t n, int n_outputs);  // (n, n_outputs)
  void (*keeps_left)(const uint32_t* code, uint32_t low, uint32_t length, int n, uint8_t* left);
  void (*patterns)(const PatternArgs&);
  void (*leaf_columns)(const LeafArgs&);
  void (*leaf_pairs)(const LeafArgs&);
  void (*add_entries)(const uint16_t* pattern, const double* entry, int n, double* sum);  // sum (n) += entry[pattern]
};

inline int bits_for(int n_leaves) {  // of the largest leaf number
  int bits = 1;
  while (1 << bits < n_leaves) bits++;
  return bits;
}

const Kernels* kernels_portable();
const Kernels* kernels_avx2();
const Kernels* kernels_avx512();
const Kernels& kernels();                      // the path in use
const char* choose_kernels(const char* name);  // "auto" or a path's name; null if this machine has no such path

}  // namespace sapwood
