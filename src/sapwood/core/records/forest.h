// ForestArrays: the trees of a model as flat arrays over all nodes, as the model file has them.
#pragma once
#include "records/linear.h"

namespace sapwood {

struct ForestArrays {
  int64_t n_trees, n_nodes;
  const int64_t* offset;    // (n_trees + 1) first node of each tree
  const int32_t* output;    // (n_trees)
  const int32_t* column;    // (n_nodes)
  const double* threshold;  // (n_nodes)
  // (n_nodes) bit 0: missing values go left; bit 1: unseen categories go the other way
  const uint8_t* missing_left;
  // (n_nodes) left child within the tree, whose sibling follows it; 0: a leaf
  const int32_t* left;
  const double* value;  // (n_nodes)
  // (n_nodes) index of the set of codes that go left; -1: split by the threshold
  const int32_t* set;
  int64_t n_sets, n_codes;
  const int64_t* set_offset;  // (n_sets + 1) into set_code
  const int32_t* set_code;    // (n_codes) rising within a set
  LinearView linear;          // terms by node; offset is null if no leaf is linear
};

}  // namespace sapwood
