// Replay: a tree keeps its splits, and its leaves get the values that growth would give them from
// other gradients.
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "math/types.h"
#include "records/constraints.h"
#include "records/limits.h"
#include "records/tree.h"

namespace sapwood {

struct ReplayRows {  // the rows of some outputs, with the leaf of each
  const Binned& binned;
  std::vector<const Pair*> gradients;  // by output: (n) wide
  std::vector<Scale> scale;            // by output
  const RowWeights& weights;
  const uint8_t* in_sample;  // (n) 1: the row is in the sample; null: all rows are
  LeafIds leaf;
  int n_threads;
};

struct ReplayedTree {  // by node; the value of a split is that which its rows would have in a leaf
  std::vector<double> value, cover, count, gain;
};

// By output. The values are shrunk. `limits`: what growth reads of them for leaf values and gains.
std::vector<ReplayedTree> replay(const ReplayRows& rows, const TreeView& tree, const Limits& limits,
                                 const SplitConstraints& constraints);

}  // namespace sapwood
