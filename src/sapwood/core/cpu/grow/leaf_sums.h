// Sums of the leaves of a finished tree, for their values, and the leaf id of each row.
#pragma once
#include "cpu/grow/node_rows.h"
#include "records/tree.h"

namespace sapwood {

struct LeafTotals {             // by node of the tree; those of inner nodes are 0
  std::vector<Sums> sums;       // wide
  std::vector<int64_t> counts;  // of rows, or their weights in fixed point
};

// Whether leaf ids are found by masks, for all rows in order (few leaves); else by the row lists of
// the leaves.
bool leaves_by_masks(const Binned& binned, const RowWeights& weights, const Limits& limits);

// leaf OUT, unless its data is null: ids by row, in the order of the leaves. by_masks: it must be
// given
LeafTotals sum_leaves(const GrowInput& in, const NodeRows& rows, const std::vector<Node>& nodes,
                      const NodeIds& leaves, const Tree& tree, LeafIds leaf, bool by_masks);

}  // namespace sapwood
