// The columns that a node may use: samples for the tree, the level and the node, and interaction
// constraints.
#pragma once
#include "cuda/frontier.h"
#include "math/hash.h"

namespace sapwood {

// out: of the columns in `set`, the share with the smallest draws. All threads of a block; words of
// 32 columns.
inline void take_columns(const uint32_t* set, int n_columns, double fraction, uint64_t k,
                         uint32_t* out) {
  const int n_words = (n_columns + LANES - 1) / LANES;
  int n = 0;
  for (int w = 0; w < n_words; w++) {
    n += __popc(set[w]);
  }
  const int wanted = (int)(fraction * (double)n + 0.5);
  const int most = wanted > 1 ? wanted : 1;
  for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
    out[w] = fraction >= 1.0 ? set[w] : 0;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < n_columns && fraction < 1.0; c += blockDim.x) {
    if (!(set[c / LANES] >> c % LANES & 1)) {
      continue;
    }
    const uint64_t own = draw(k, (uint64_t)c);
    int before = 0;
    for (int d = 0; d < n_columns; d++) {
      if (!(set[d / LANES] >> d % LANES & 1)) {
        continue;
      }
      const uint64_t other = draw(k, (uint64_t)d);
      before += other < own || (other == own && d < c);
    }
    if (before < most) {
      atomicOr(out + c / LANES, 1u << c % LANES);
    }
  }
  __syncthreads();
}

// A block has a node that is searched; of a symmetric tree the first of the level stands for all.
SAPWOOD_KERNEL void choose_columns(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const int k = given + place_of_tree();
  const Level& level = of_tree(j, j.levels)[step];
  DYNAMIC_SHARED(uint32_t, first);
  const int x = blockIdx.x;
  const int n_columns = (int)j.n_columns;
  const int n_words = (n_columns + LANES - 1) / LANES;
  if (!level.more || x >= (level.n_batch == 0 || is_symmetric(j) ? 1 : 2 * level.n_batch)) {
    return;
  }
  const int id = level.first_child + x;
  const Node& n = of_tree(j, j.nodes)[id];
  uint32_t* second = first + n_words;
  uint32_t* out = of_tree(j, j.allowed) + x * j.n_tiles;
  for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
    const int rest = n_columns - w * LANES;
    first[w] = rest >= LANES ? ~0u : (1u << rest) - 1;
  }
  __syncthreads();
  const uint64_t tree = (uint64_t)(j.turn->tree + k);
  const uint64_t* keys = j.turn->column_keys;
  take_columns(first, n_columns, j.colsample_bytree, fold(fold(keys[0], tree), 0), second);
  take_columns(second, n_columns, j.colsample_bylevel, fold(fold(keys[1], tree), (uint64_t)n.depth),
               first);
  for (int c = threadIdx.x; c < n_columns && j.groups_of != nullptr; c += blockDim.x) {
    if (!(j.groups_of[c] & n.groups)) {
      atomicAnd(first + c / LANES, ~(1u << c % LANES));
    }
  }
  __syncthreads();
  take_columns(first, n_columns, j.colsample_bynode, fold(fold(keys[2], tree), (uint64_t)id), out);
}

}  // namespace sapwood
