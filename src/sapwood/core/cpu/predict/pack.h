// PackedForest: a model laid out for prediction. Enters: ForestArrays. Leaves: nodes for single
// rows, masks for blocks.
#pragma once
#include <array>
#include <new>
#include <stdexcept>

#include "cpu/data/table.h"
#include "cpu/kernels/kernels.h"
#include "records/forest.h"

namespace sapwood {

constexpr int MAX_CODES = 65534;  // codes of a column of categories, as bins have them
// so that the two codes after it, of missing and unseen categories, are bytes too
constexpr int MAX_BYTE_LIMIT = 253;
constexpr int LEAF_VALUES = 256;  // values a tree has in PackedForest::leaf_value
constexpr int MIN_GROUP = 3;      // trees with the same splits from which on they are a group
// columns in the lines of a tree up to which tables of slopes are faster than terms
constexpr int MAX_TABLES = 32;

// A vector that begins at a cache line: a load of 64 bytes from within takes one line, not two.
template <class T>
struct LineAllocator {
  typedef T value_type;
  LineAllocator() = default;
  template <class Other>
  LineAllocator(const LineAllocator<Other>&) {}
  T* allocate(size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t{64}); }
  bool operator==(const LineAllocator&) const { return true; }
};
template <class T>
using LineVector = std::vector<T, LineAllocator<T>>;

inline void check(bool fine, const char* what) {
  if (!fine) {
    throw std::invalid_argument(what);
  }
}

struct UsedColumns {          // the columns that a model reads
  std::vector<int> used;      // rising
  std::vector<int> plane_of;  // (n_columns) index in `used`, or -1
  // (n_columns) above every code of the column's sets; -1: split by thresholds
  std::vector<int> code_limit;
  std::vector<PaddedCuts> cuts;                       // by index in `used`: the thresholds
  UsedColumns(int n_columns, const ForestArrays& a);  // throws std::invalid_argument
};

struct CategorySets {           // the sets of codes that go left
  std::vector<int64_t> offset;  // (n_sets + 1) into code
  std::vector<int32_t> code;    // rising within a set
  // (n_sets) where a set lies in `bits`; ~set if it has no bits and is searched
  std::vector<int64_t> place;
  std::vector<uint64_t> bits;  // a set: the number of codes that have a bit, then the bits
  explicit CategorySets(const ForestArrays& a);  // of arrays that UsedColumns has checked
  template <class Code>
  bool has(int64_t place, Code x) const {  // x >= 0
    if (place >= 0) {
      const uint64_t* set = &bits[place];
      return x < (Code)set[0] && (set[1 + (int64_t)x / 64] >> ((int64_t)x % 64) & 1);
    }
    return x < (Code)MAX_CODES && std::binary_search(code.begin() + offset[~place],
                                                     code.begin() + offset[~place + 1], (int32_t)x);
  }
};

struct RowNode {  // a node for following one row
  union {
    double threshold;
    int64_t set;  // CategorySets::place
  };
  int32_t plane;  // index of its column in `used`; -1 in leaves; -2 - index if a set decides
  // Left child * 4 + unseen goes left * 2 + missing goes left. A leaf is its own left child, with
  // threshold INF and missing left, so that a row which has arrived stays.
  int32_t left;
  int32_t child() const { return left >> 2; }
  bool missing_left() const { return left & 1; }
  bool unseen_left() const { return left & 2; }
};

struct PackedTree {
  int64_t first_node;
  int n_nodes, output, symmetric_depth;  // depth if the tree is symmetric, else -1
  // into masks (one node a level if symmetric) and leaf_value
  int64_t first_mask, first_value;
  int n_bits;   // of a leaf number
  bool masked;  // byte codes and at most 256 leaves: blocks can use masks
  // the tree before it has the same splits: each row is in the same leaf
  bool same_leaves;
  bool is_shared;          // has nodes in `shared`
  int64_t first_shared;    // into shared
  int first_wide, n_wide;  // into wide
  // columns in its lines, if blocks have them as tables; else -1
  int n_lines;
  // into line_planes and slopes; of the first tree of a group, into groups
  int64_t first_line, first_slope;
  // trees of its group and columns in their lines, if it is the first; else 0
  int n_group, n_group_lines;
};

struct WideNode {  // a split by 16-bit codes: its answers for a block make a plane of their own
  int column;      // index in wide_columns
  int64_t set;     // as in RowNode
  bool missing_left, unseen_left;
};

struct PackedForest : UsedColumns {
  CategorySets sets;
  std::vector<PackedTree> trees;
  std::vector<RowNode> nodes;
  std::vector<double> value;  // (n_nodes)
  std::vector<MaskNode> masks;
  std::vector<std::array<uint64_t, SET_WORDS>> mask_sets;  // what masks point to
  // of trees that are neither symmetric nor have wide nodes
  std::vector<SharedNode> shared;
  std::vector<MaskNode> splits;   // the different splits of these
  std::vector<int> wide_columns;  // columns whose codes take 16 bits
  std::vector<WideNode> wide;
  LineVector<double> leaf_value;  // by leaf number, LEAF_VALUES a tree
  LinearPart linear;              // terms by node, or empty; columns as indices in `used`
  std::vector<double> bounds;     // (used, 3) of linear leaves in standard units, or empty
  std::vector<uint8_t> in_lines;  // (used) whether some line has the column
  // node by leaf number, as leaf_value; empty if no leaf is linear
  std::vector<int64_t> leaf_node;
  std::vector<int32_t> line_planes;  // of each tree with tables, rising
  LineVector<double> slopes;         // of each tree with tables: LineArgs
  // of trees with the same splits, one for each output: GroupArgs::table
  LineVector<double> groups;
  int max_nodes = 1, max_wide = 0;  // largest number of nodes, of wide nodes, in a masked tree
  // throws std::invalid_argument
  PackedForest(int n_columns, int n_outputs, const ForestArrays& a);
  bool has_sets() const { return !sets.place.empty(); }
  bool has_linear() const { return !linear.coef.empty(); }

 private:
  struct SplitNumbers;  // of the different splits, while packing
  RowNode row_node(const ForestArrays& a, int64_t at, int u) const;
  MaskNode mask(const ForestArrays& a, int64_t node, PackedTree& tree);
  void pack_masks(const ForestArrays& a, PackedTree& tree, SplitNumbers& numbers);
  void pack_shared(const ForestArrays& a, PackedTree& tree, SplitNumbers& numbers);
  void pack_linear(const ForestArrays& a);
  bool line_columns(const PackedTree& tree, std::vector<int32_t>& planes) const;
  void pack_lines(PackedTree& tree);
  bool pack_group(int64_t first, int k);
  void pack_tables(int n_outputs);
};

inline int bin_of(const PaddedCuts& cuts, double x) {  // the number of cuts below x
  return (int)(std::lower_bound(cuts.d.begin(), cuts.d.begin() + cuts.n, x) - cuts.d.begin());
}

}  // namespace sapwood
