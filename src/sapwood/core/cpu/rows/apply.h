// Apply: which leaf of a tree every row of a binned table falls into.
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "cpu/kernels/kernels.h"
#include "records/tree.h"

namespace sapwood {

struct Splits {  // the splits of a tree's nodes, over the codes of their slots
  Splits(const Binned& binned, const TreeView& tree);
  Splits(Splits&&) = default;   // `of` points into `bits` and `fused`
  std::vector<Split> of;        // (n_nodes)
  std::vector<uint64_t> bits;   // sets of column codes, one for each side of missing values
  std::vector<uint64_t> fused;  // sets of slot codes
};
// A split of a column as one of its slot's codes. bits (SET_WORDS) OUT: used if that takes a set.
Split in_slot(const Layout& layout, int column, const Split& split, uint64_t* bits);

struct MaskTree {  // a tree for the mask kernel: at most 256 leaves
  Splits splits;
  std::vector<MaskNode> nodes;
  std::vector<int32_t> leaves;  // (n_leaves) node by leaf number
  // Nodes whose slots have no byte codes. Each has a plane of its own after those of the slots: 255
  // where a row goes right, else 0.
  std::vector<int32_t> marked;
  int n_bits;
};
MaskTree mask_tree(const Binned& binned, const TreeView& tree);
std::vector<const uint8_t*> byte_planes(const Binned& binned, const Shard& shard);  // by slot

// leaf (n) OUT: the leaf (node id) of every row in one tree.
void apply(const Binned& binned, const TreeView& tree, int32_t* leaf, int n_threads);
// The same as leaf ids, which number the leaves in the order of nodes.
void apply(const Binned& binned, const TreeView& tree, const LeafIds& leaf, int n_threads);

}  // namespace sapwood
