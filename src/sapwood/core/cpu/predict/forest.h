// Forest: a frozen model, ready to predict. Enters: flat trees, then tables. Leaves: scores or leaf
// ids.
#pragma once
#include "cpu/predict/pack.h"

namespace sapwood {

class Forest {
 public:
  // throws std::invalid_argument
  Forest(int n_columns, const ForestArrays& a, std::vector<double> base, Link link)
      : base_(std::move(base)), link_(link), f_(n_columns, (int)base_.size(), a) {}
  int n_columns() const { return (int)f_.plane_of.size(); }
  bool has_sets() const { return f_.has_sets(); }
  int n_outputs() const { return (int)base_.size(); }
  int64_t n_trees() const { return (int64_t)f_.trees.size(); }
  // out (n, n_outputs) OUT; start (n, n_outputs) replaces the base scores, or null
  void predict(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start,
               double* out, int n_threads) const;
  // out (n, last - first) OUT: node ids
  void leaves(const Chunk& table, int64_t first, int64_t last, int32_t* out, int n_threads) const;

 private:
  struct Block;  // a worker's buffers for one block of rows
  int32_t descend(const PackedTree& t, const double* row) const;
  void descend_trees(const double* x, int64_t first, int m, int32_t* leaf) const;
  double leaf_output(int64_t node, const double* x, int64_t stride = 1) const;
  void load_row(const Chunk& table, int64_t row, double* x) const;
  void bound_row(const double* x, double* z) const;
  void begin_scores(int64_t row, int n, const double* start, double* out) const;
  void by_rows(const Chunk& table, int64_t row, int n, int64_t first, int64_t last,
               double* out) const;
  void by_trees(const Chunk& table, int64_t row, int n, int64_t first, int64_t last,
                double* out) const;
  void by_blocks(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start,
                 double* out, int n_threads) const;
  void encode_block(const Chunk& table, const std::vector<int>& runs, int64_t at, int n,
                    Block& block) const;
  void encode_lists(const RowLists& lists, int64_t row, int n, uint8_t* codes) const;
  void encode_stripe(const Chunk& table, int plane, int64_t row, int m, const float* floats,
                     int first, Block& block) const;
  void wide_planes(const PackedTree& tree, Block& block) const;
  void find_block_leaves(const PackedTree& tree, Block& block) const;
  void add_tree(const PackedTree& tree, int n, bool known, Block& block) const;
  void add_group(const PackedTree& tree, int n, bool known, bool fetch, Block& block) const;
  bool shares_splits(int64_t first, int64_t last) const;
  int64_t blocks_together(int64_t n_blocks, bool shares, int n_threads) const;

  std::vector<double> base_;
  Link link_;
  PackedForest f_;
};

}  // namespace sapwood
