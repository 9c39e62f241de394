// Gradients: those of one output in fixed point, as growth reads them.
#pragma once
#include "math/types.h"

namespace sapwood {

struct Gradients {   // of one output, in fixed point
  Scale scale;       // of the split search
  Scale leaf_scale;  // of the leaf values
  // (n) narrow words, or null where the search uses pairs; used up by the growth of a tree
  int32_t* packed;
  const Pair* search;  // (n) pairs of the search
  const Pair* leaf;    // (n) wide pairs
  // packed, leaf: of the sampled rows only, in their order, from the place of each shard's first
  // row on
  bool gathered, leaf_gathered;
  bool constant_hessian;  // every row has the same hessian, and repeats are 1
  // the largest quantised hessian per unit of count: count >= H / max_hessian_per_count
  double max_hessian_per_count;
};

}  // namespace sapwood
