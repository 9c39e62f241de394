// Replay: a tree keeps its splits, and its leaves get the values that growth would give them from other gradients.
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "math/types.h"
#include "records/constraints.h"
#include "records/limits.h"
#include "records/tree.h"

namespace sapwood {

struct ReplayRows {  // the rows of one output, with the leaf of each
  const Binned& binned;
  const Pair* gradients;  // (n) wide
  Scale scale;
  const RowWeights& weights;
  LeafIds leaf;
  int n_threads;
};

struct ReplayedTree {  // by node; the value of a split is that which its rows would have in a leaf
  std::vector<double> value, cover, count;
};

// The values are shrunk. `limits`: what growth reads of them for leaf values.
ReplayedTree replay(const ReplayRows& rows, const TreeView& tree, const Limits& limits,
                    const SplitConstraints& constraints);

}  // namespace sapwood
