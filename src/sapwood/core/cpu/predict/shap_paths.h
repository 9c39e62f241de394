// Paths: a tree prepared for SHAP. Enters: flat trees. Leaves: groups of leaves, and for each leaf
// the columns on its path.
//
// What a leaf adds depends on a row's pattern only: for each column on the leaf's path, whether the
// row satisfies the column's conditions there. Leaves that share most of their path form a group.
// The pattern of a group has a few bits: one for each column above the group, and one for each
// condition inside it.
//
//        o            above: A, B                      pattern = (A on path, B on path, c, d, e)
//     A / \ ...
//      o              inside: c, d, e                  a symmetric tree is one group: its conditions are its levels
//   B / \ ...
//    c
//   / \               leaf 2 has the columns A, B, column of c, column of d, each with the fraction of the
//  d   e              training weight that stays on the path; a column that occurs twice has the product
// 1 2 3 4
#pragma once
#include <compare>
#include <vector>

#include "cpu/predict/pack.h"

namespace sapwood {

constexpr int PATTERN_BITS = 16;  // with more bits every row has its own entry
// columns in the lines of a group with patterns: one bit each if values are missing
constexpr size_t MAX_LINES = 64;

struct Condition {       // the split of a node, over codes of its column (math/split.h)
  int32_t plane;         // index of the column among those the model reads
  uint32_t low, length;  // as in Split
  int32_t set;           // or -1
  bool missing_left, unseen_left;
  auto operator<=>(const Condition&) const = default;
};

struct Factor {            // a column on the path of a leaf
  int32_t slot;            // index of the column in its group
  uint32_t mask, want;     // a row is on the path there if (pattern & mask) == want
  double weight_fraction;  // fraction of the training weight that stays on the path
};

struct LineTerm {        // a column in the line of a leaf
  int32_t factor, line;  // index among the factors of its leaf; index in LeafGroup::lines
  // mean: what the term is on average in the leaf, counted from the column's centre
  double slope, mean;
};

struct PathLeaf {
  double value;
  int32_t factor, end;  // range of its factors, sorted by column
  int32_t term, last;   // range of its terms
  double shift;         // its line at the centres of all columns, less its value
};

struct LeafGroup {
  std::vector<Literal> literals;  // conditions above the group, sorted by column
  std::vector<int32_t> ends;      // (columns above) where each column's literals end
  std::vector<int32_t> inside;    // conditions inside the group
  std::vector<int32_t> columns;   // columns of the table, by slot
  std::vector<PathLeaf> leaves;
  std::vector<Factor> factors;
  std::vector<int32_t> lines;  // columns in lines of its leaves, as ModelColumns numbers them
  std::vector<LineTerm> terms;
  int n_bits() const { return (int)(ends.size() + inside.size()); }
  bool has_patterns() const { return n_bits() <= PATTERN_BITS; }
};

struct Paths {
  int output;
  double expected;  // mean leaf value, weighted by training rows
  std::vector<Condition> conditions;
  // by condition: a node that has it, among those of all trees
  std::vector<int64_t> condition_node;
  std::vector<LeafGroup> groups;
};

// The paths of all trees as arrays, for another device. Ranges are given by where each begins; the
// last is the end. A bit of a pattern is set where a row agrees with all of the bit's literals.
struct FlatPaths {
  // of trees; groups; bits; leaves
  std::vector<int32_t> group_at, bit_at, leaf_at, slot_at, literal_at, factor_at;
  std::vector<int32_t> literal_node, literal_left;  // a node with the condition; the side
  std::vector<int32_t> slot_column;                 // of the table
  std::vector<double> leaf_value;
  std::vector<int32_t> factor_slot, factor_mask, factor_want;
  std::vector<double> weight_fraction;  // of factors
};

struct LineColumn {  // a column in lines of leaves; values are counted from its centre
  int32_t plane;
  // bounds and mean in standard units; in raw units the outer cuts and the middle one
  double low, high, centre;
};

// The columns a model reads, as codes: the number of cuts below a value, or the category's code.
class ModelColumns {
 public:
  ModelColumns(int n_columns, const ForestArrays& a);  // throws std::invalid_argument
  int n_planes() const { return (int)columns_.used.size(); }
  Condition condition(const ForestArrays& a, int64_t node) const;
  // n <= BLOCK
  void encode(const Chunk& table, int plane, int64_t first, int n, uint32_t* code) const;
  // left (n) OUT: 0 or 1
  void goes_left(const Condition& c, const uint32_t* code, int n, uint8_t* left) const;
  bool standard() const { return !bounds_.empty(); }
  const std::vector<LineColumn>& lines() const { return lines_; }
  int line_of(int column) const;  // index in lines()
  // Values as they enter lines, less the centre; z (n) OUT, finite (n) OUT: where it is 0, z is 0.
  // n <= BLOCK
  void load_line(const Chunk& table, int line, int64_t first, int n, double* z,
                 uint8_t* finite) const;

 private:
  UsedColumns columns_;
  CategorySets sets_;
  std::vector<LineColumn> lines_;
  std::vector<double> bounds_;  // (n_columns, 3) in standard units, or empty
};

// weight (n_nodes): training weight of each node
Paths paths_of(const ForestArrays& a, const double* weight, const ModelColumns& columns,
               int64_t index);
FlatPaths flat(const std::vector<Paths>& trees);

}  // namespace sapwood
