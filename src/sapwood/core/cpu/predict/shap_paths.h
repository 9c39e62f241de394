// Paths: a tree as its explanation sees it. Enters: flat trees. Leaves: groups of leaves, and for every leaf the columns on its path.
//
// A row meets a leaf through its pattern only: for each column on the leaf's path, whether the row keeps to the path there. Leaves
// that share most of their path form a group, whose pattern has a few bits: the columns above it, and the conditions inside it.
//
//        o            above: A, B                      pattern = (A kept, B kept, c, d, e)
//     A / \ ...
//      o              inside: c, d, e                  a symmetric tree is one group: its conditions are its levels
//   B / \ ...
//    c
//   / \               leaf 2 has the columns A, B, column of c, column of d, each with the share of the weight
//  d   e              that keeps to the path; a column that comes twice has the product
// 1 2 3 4
#pragma once
#include <compare>
#include <vector>

#include "cpu/predict/pack.h"

namespace sapwood {

struct Condition {       // a row goes right where code - low < length, unsigned; by a set see ModelColumns
  int32_t plane;         // which of the columns that are asked for
  uint32_t low, length;  // of the codes of that column
  int32_t set;           // or -1
  bool missing_left, unseen_left;
  auto operator<=>(const Condition&) const = default;
};

struct Factor {         // a column on the path of a leaf
  int32_t slot;         // which of the columns of its group
  uint32_t mask, want;  // a row keeps to the path there if (pattern & mask) == want
  double share;         // of the weight that keeps to it
};

struct PathLeaf {
  double value;
  int32_t factor, end;  // its factors, in the order of columns
};

struct LeafGroup {
  std::vector<Literal> literals;  // of the columns above, one column after the other
  std::vector<int32_t> ends;      // (columns above) where the literals of each end
  std::vector<int32_t> inside;    // conditions
  std::vector<int32_t> columns;   // of the table: by slot
  std::vector<PathLeaf> leaves;
  std::vector<Factor> factors;
  int n_bits() const { return (int)(ends.size() + inside.size()); }
};

struct Paths {
  int output;
  double expected;  // the mean value by weight
  std::vector<Condition> conditions;
  std::vector<LeafGroup> groups;
};

// The columns a model reads, as codes: the number of cuts below a value, or the category's code.
class ModelColumns {
 public:
  ModelColumns(int n_columns, const ForestArrays& a) : columns_(n_columns, a), sets_(a) {}  // throws invalid_argument
  int n_planes() const { return (int)columns_.used.size(); }
  Condition condition(const ForestArrays& a, int64_t node) const;
  void encode(const Chunk& table, int plane, int64_t first, int n, uint32_t* code) const;  // n <= BLOCK
  void goes_left(const Condition& c, const uint32_t* code, int n, uint8_t* left) const;    // left (n) OUT: 0 or 1

 private:
  UsedColumns columns_;
  CategorySets sets_;
};

// weight (n_nodes): how much of the data each node has seen
Paths paths_of(const ForestArrays& a, const double* weight, const ModelColumns& asked, int64_t index);

}  // namespace sapwood
