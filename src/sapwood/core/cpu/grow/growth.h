// Growing one tree: a frontier of nodes, and for each that is split: partition -> histogram -> [reduce] -> split search.
#pragma once
#include <functional>

#include "cpu/grow/in_place_rows.h"
#include "cpu/rows/apply.h"
#include "records/constraints.h"
#include "records/gradients.h"
#include "records/limits.h"
#include "records/preference.h"
#include "registry.h"

namespace sapwood {

struct Histogram {  // sums per slot and code, in the places of a Layout: packed words, or pairs
  int64_t* data = nullptr;
  bool packed = false;
};

struct WorkerHistogram {  // one worker's own histogram while several share a node's rows
  Memory packed, pairs;
  int64_t rows = 0;  // in `packed` since it was last flushed
  bool used = false, flushed = false;
};

// Buffers that outlive a tree: row lists, histograms, bits.
struct Workspace {
  struct Lists {  // by shard: a split reads one list and writes the other
    Memory rows[2];
    Memory packed;  // the gradients beside list 0; those beside list 1 overwrite the root's, which are not asked again
    Memory root_packed;  // the root's, where it has only some of the rows
    Memory spare;        // those beside list 1, where the root's are kept
  };
  std::vector<Lists> lists;
  InPlaceRows kept;
  Memory bits;
  std::vector<Memory> histograms;
  std::vector<int64_t*> free_packed, free_pairs;
  std::vector<WorkerHistogram> privates;
  Memory root_counts;                   // of all rows, in every tree the same, where some tree has asked,
  std::vector<uint8_t> root_counted;    // (slots) and for which
  Memory ordered[2], ordered_codes[2];  // exact: (columns, rows), lists by column as `lists` has them by shard
  Memory goes_right;                    // a bit a row
  struct ExactScratch {                 // of one worker
    Memory sums, values;
  };
  std::vector<ExactScratch> sheets;
};

struct SortedColumns;  // the rows of a table in the order of each column

struct GrowInput {
  const Binned& binned;
  const Gradients& gradients;
  const RowWeights& weights;
  const std::vector<std::vector<int32_t>>* chosen;  // by shard: row ids, or null for all rows
  const Limits& limits;
  const GrowerInfo& grower;
  uint64_t seed, tree;
  int n_threads;
  const int64_t* root;           // the root's histogram as HistogramBuilder keeps it, or null: to be counted
  const SortedColumns* ordered;  // exact trees: every value is looked at; null: histograms
  const SplitConstraints& rules;
  const SplitPreference& taste;
  double deviation;  // of luck, in the units of the search
};

// Whether the leaves of a tree will be numbered by masks, all rows in order; else by the row lists of its leaves.
bool leaves_by_masks(const Binned& binned, const RowWeights& weights, const Limits& limits);

// `numbers(n_leaves)` gives room for the number of each row's leaf: asked for and filled where that costs no pass of its own (never beyond
// 65,536 leaves); value OUT: each leaf's value by that number
using AllocateLeafIds = std::function<LeafIds(size_t)>;
Tree grow_tree(const GrowInput& in, Workspace& work, const AllocateLeafIds& numbers, std::vector<double>& value);

// The trees of several outputs, all with the same splits; everything by output. apart: an output is one worker's.
std::vector<Tree> grow_multi_output(const std::vector<GrowInput>& in, Workspace* work,
                                    const std::vector<AllocateLeafIds>& numbers,
                                    std::vector<std::vector<double>>& value, int n_threads, bool apart);

// The splits of trees over the rows of several models, bodies and tails, which end where `ends` says; all outputs with the same, no values.
std::vector<Tree> grow_ordered(const std::vector<GrowInput>& in, Workspace* work, const std::vector<int64_t>& ends,
                               int n_threads);

}  // namespace sapwood
