// Forest: a frozen model, ready to predict. Enters: flat trees, then tables. Leaves: scores or leaf ids.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cpu/data/table.h"
#include "cpu/kernels/kernels.h"
#include "records/linear.h"

namespace sapwood {

struct ForestArrays {
  int64_t n_trees, n_nodes;
  const int64_t* offset;  // (n_trees + 1)
  const int32_t* output;  // (n_trees)
  const int32_t* column;  // (n_nodes) ...
  const double* threshold;
  const uint8_t* missing_left;  // 1: missing goes left; 2 more: what training has not met goes the other way
  const int32_t* left;
  const double* value;
  const int32_t* set;  // (n_nodes) the set of codes that goes left, or -1: by the threshold
  int64_t n_sets, n_codes;
  const int64_t* set_offset;  // (n_sets + 1) into set_code
  const int32_t* set_code;    // (n_codes)
  LinearView linear;          // terms of nodes; null: there are none
};

class Forest {
 public:
  Forest(int n_columns, const ForestArrays& a, std::vector<double> base, Link link);  // throws std::invalid_argument
  int n_columns() const { return n_columns_; }
  bool has_sets() const { return set_offset_.size() > 1; }
  int n_outputs() const { return (int)base_.size(); }
  int64_t n_trees() const { return (int64_t)trees_.size(); }
  // out (n, n_outputs); start (n, n_outputs) replaces the base scores, or null
  void predict(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start, double* out,
               int n_threads) const;
  void leaves(const Chunk& table, int64_t first, int64_t last, int32_t* out,
              int n_threads) const;  // (n, last - first) node ids

 private:
  struct Walk {  // a node for following one row: x <= threshold goes left, or the codes of a set
    union {
      double threshold;
      int64_t set;  // into bit_sets_; ~ its number where it is searched
    };
    int32_t plane;  // place of its column in used_; -1 in leaves, -2 - place where a set decides
    int32_t
        left;  // left child * 4 + unseen * 2 + missing left; a leaf itself, which every value and missing come back to
  };
  struct PackedTree {
    int64_t first_node;
    int n_nodes, output, symmetric_depth;  // depth, or -1
    int64_t first_mask, first_value;       // into masks_, leaf_value_; masks_ holds one node a level where symmetric
    int n_bits;                            // of a leaf's number
    bool masked;
    int first_wide, n_wide;  // into wide_
  };
  struct WideNode {  // a split by codes of more than a byte, whose answers make a plane
    int column;      // place in wide_columns_
    int64_t set;     // as in Walk
    bool missing_left, unseen_left;
  };
  void check_sets(const ForestArrays& a);
  bool in_set(int64_t set, double x) const;
  int32_t follow(const PackedTree& t, const double* row) const;
  template <bool MISSING>
  static void follow(const Walk* const* tree, const double* const* row, int32_t* leaf);
  void by_rows(const Chunk& table, int64_t row, int n, int64_t first, int64_t last, const double* start,
               double* out) const;
  void by_trees(const Chunk& table, int64_t row, int n, int64_t first, int64_t last, const double* start,
                double* out) const;
  void by_blocks(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start, double* out,
                 int n_threads) const;
  void load_row(const Chunk& table, int64_t row, double* x) const;  // x (used_) OUT
  void encode_lists(const RowLists& lists, int64_t row, int n, uint8_t* codes) const;
  template <class Row>
  double given(int64_t node, Row&& x) const;

  int n_columns_;
  std::vector<double> base_;
  Link link_;
  std::vector<PackedTree> trees_;
  std::vector<Walk> walk_;
  std::vector<double> value_;     // by node
  std::vector<int> used_;         // columns that some split asks for
  std::vector<int> plane_of_;     // column -> place in used_
  std::vector<PaddedCuts> cuts_;  // by place in used_
  std::vector<int> top_;          // by column: above every code of its sets; -1: split by thresholds
  std::vector<int64_t> set_offset_;
  std::vector<int32_t> set_code_;
  std::vector<uint64_t> bit_sets_;  // of each set how many codes it has a bit for, then the bits, 1 goes left
  std::vector<MaskNode> masks_;
  std::vector<std::array<uint64_t, SET_WORDS>> mask_sets_;
  std::vector<int> wide_columns_;
  std::vector<WideNode> wide_;
  int most_wide_ = 0;               // of a tree
  std::vector<double> leaf_value_;  // by leaf number, 256 a tree
  LinearPart linear_;               // of nodes, or empty; columns by place in used_
  std::vector<int64_t> leaf_node_;  // by leaf number, as leaf_value_, where there are terms
  bool maskable_ = true;
  int most_nodes_ = 1;
};

}  // namespace sapwood
