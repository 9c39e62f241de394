// SplitPreference: what the user prefers among splits, beyond their gain.
#pragma once
#include <stdint.h>

#include <vector>

namespace sapwood {

struct SplitPreference {                // of the user
  bool cosine = false;                  // the angle between gradients and the step, not the fall of the loss
  std::vector<double> weight, penalty;  // (n_columns) factors on gains, what a column's first use costs; empty: none
  std::vector<uint8_t> used;            // (n_columns) by the trees so far
  double luck = 0;                      // of this round: standard deviation, in units of the gradients'
};

}  // namespace sapwood
