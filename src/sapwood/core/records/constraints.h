// SplitConstraints: which splits a tree may have, as the user asked for it, by column (NUMERICS,
// constraints).
#pragma once
#include <stdint.h>

#include <vector>

namespace sapwood {

// a split that the tree must have; left and right: indices of the forced splits below it, or -1
struct Forced {
  int32_t column, bin, left, right;
};

struct SplitConstraints {
  // (n_columns) -1 falling, 0 free, 1 rising; empty: all free
  std::vector<int8_t> monotone;
  bool intermediate = false;  // monotone_constraints_method; false: basic
  // interaction constraints: columns that may share a path; empty: all may
  std::vector<std::vector<int32_t>> groups;
  std::vector<std::vector<int32_t>> groups_of;  // (n_columns) the groups of a column, rising
  bool extra_trees = false;                     // one random cut per column and node
  std::vector<Forced> forced;                   // the first one is that of the root
  // (n_columns) 1: split one category against the rest; empty: none is
  std::vector<uint8_t> onehot;
  bool is_onehot(int column) const { return !onehot.empty() && onehot[column]; }
  bool any() const {
    return !monotone.empty() || !groups.empty() || extra_trees || !forced.empty();
  }
};

}  // namespace sapwood
