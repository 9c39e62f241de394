// GrowInput: everything that one tree grows from.
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "records/constraints.h"
#include "records/gradients.h"
#include "records/limits.h"
#include "records/preference.h"
#include "registry.h"

namespace sapwood {

struct SortedColumns;  // exact.h

struct GrowInput {
  const Binned& binned;
  const Gradients& gradients;
  const RowWeights& weights;
  // by shard: row ids, rising; null: all rows
  const std::vector<std::vector<int32_t>>* sampled_rows;
  const Limits& limits;
  const GrowerInfo& grower;
  uint64_t seed, tree;
  int n_threads;
  const int64_t* root;  // the root's histogram, from RootHistograms; null: growth builds it
  // exact trees: the rows sorted by each column; null: trees from histograms
  const SortedColumns* sorted;
  const SplitConstraints& constraints;
  const SplitPreference& preference;
  // standard deviation of the noise of random_strength, in the units of the search
  double noise_scale;

  const Reduce* reduce() const { return binned.reduce.get(); }
};

}  // namespace sapwood
