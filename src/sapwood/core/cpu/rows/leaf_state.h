// LeafState: the leaves of the tree last grown for one output. Enters: the tree, or leaf ids found elsewhere.
// Leaves: the leaf of every row, and leaf values that wait until the next row pass adds them to the scores.
#pragma once
#include <vector>

#include "cpu/rows/apply.h"
#include "host/memory.h"
#include "records/linear.h"

namespace sapwood {

struct LeafState {
  Memory memory;                    // what `ids` points to
  LeafIds ids{nullptr, false};      // (n) ids count the leaves in the order of nodes
  std::vector<double> value;        // (n_leaves)
  bool pending = false;             // the values are still to be added to the scores
  LinearPart linear;                // the terms of linear leaves, or empty
  std::vector<int32_t> large_id;    // (n) node ids, only for trees of more than MAX_LEAF_IDS leaves
  std::vector<double> large_value;  // (n_nodes) their values

  LeafIds buffer(int64_t n, size_t n_leaves);  // a place for n ids; contents are undefined
  void find_ids(const Binned& binned, const Tree& tree, int n_threads);
  void set_ids(const int32_t* id, int64_t n, size_t n_leaves, int n_threads);
  void relabel(const std::vector<int32_t>& new_id, std::vector<double> new_value, int64_t n, int n_threads);
  std::vector<int32_t> list_ids(int64_t n) const;
};

inline int leaf_of(const LeafIds& leaf, int64_t row) {
  return leaf.wide ? ((const uint16_t*)leaf.data)[row] : ((const uint8_t*)leaf.data)[row];
}

}  // namespace sapwood
