// Linear leaves: a ridge on the columns of a leaf's branch, from integer sums over its rows
// (NUMERICS, Linear leaves).
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "cpu/leaf/linear_units.h"

namespace sapwood {

struct LinearRows {  // the rows of some outputs, with the leaf of each
  RawTable table;
  const LinearUnits* units;             // null: raw units
  std::vector<const Pair*> leaf_pairs;  // by output: (n) wide gradients, those of the leaf values
  std::vector<Scale> scale;             // by output
  const RowWeights& weights;
  const uint8_t* in_sample;  // (n) 1: the row is in the sample; null: all rows are
  LeafIds leaf;
  int64_t n;
  int n_leaves, n_threads;
  const Reduce* reduce;  // over the holders of rows, or null
  Memory *space, *sums;  // scratch that the caller keeps from tree to tree
};

struct LinearRule {
  const int64_t* offset;  // (n_leaves + 1)
  const int32_t* column;  // the columns of each leaf's branch, rising
  const double* value;    // (n_outputs, n_leaves) shrunk leaf values
  double rate, reg_lambda, linear_lambda, linear_smooth;
};

std::vector<LinearPart> fit_linear(const LinearRows& rows, const LinearRule& rule);  // by output

// The columns of the splits by thresholds above each leaf, rising, as LinearRule has them. Nodes
// (n): left child, 0 in leaves, whose sibling follows it; column; set, -1 where a threshold
// decides.
struct Branches {
  std::vector<int64_t> offset{0};
  std::vector<int32_t> column;
};
Branches branches(const int32_t* left, const int32_t* column, const int32_t* set, int64_t n);

// out (n) OUT: the value of every row, given its node (n); value by node.
void linear_values(const RawTable& table, const LinearView& part, const double* value,
                   const int32_t* node, int64_t n, double* out, int n_threads);
// score (n) IN OUT: adds the value of every row, given its leaf; value by leaf.
void add_linear(const RawTable& table, const LinearView& part, const std::vector<double>& value,
                const LeafIds& leaf, int64_t n, double* score, int n_threads);
// The same for outputs of the same leaves, in standard units: parts, values by output; score
// (n_outputs, n).
void add_linear(const RawTable& table, const std::vector<LinearView>& parts,
                const std::vector<const double*>& values, int n_leaves, const LeafIds& leaf,
                int64_t n, double* score, int n_threads);

}  // namespace sapwood
