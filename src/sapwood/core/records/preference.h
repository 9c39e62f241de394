// SplitPreference: what the user prefers among splits, beyond their gain.
#pragma once
#include <stdint.h>

#include <vector>

namespace sapwood {

struct SplitPreference {
  bool cosine = false;  // score_function: cosine; false: the reduction of the loss
  // (n_columns) feature weights, penalties of a first use; empty: none
  std::vector<double> weight, penalty;
  std::vector<uint8_t> used;  // (n_columns) 1: a tree of an earlier round uses the column
  // noise of this round, in units of the gradients' standard deviation
  double random_strength = 0;
};

}  // namespace sapwood
