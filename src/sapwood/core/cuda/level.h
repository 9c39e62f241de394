// Symmetric trees on the device: one split for all nodes of a level. Every node's score of every candidate is stored;
// then they are added, node after node in the order of ids, as the sum is of floats.
#pragma once
#include "cuda/search.h"

namespace sapwood {

inline int level_size(const Growth& t) { return t.n_batch == 0 ? 1 : 2 * t.n_batch; }
inline double* level_scores(const Job& j, int64_t node, int place, int side) {
  return j.level_scores + ((node * j.n_tiles * LANES + place) * 2 + side) * TILE_BINS;
}

// A node's part of the score of a candidate that sends `l` left, `rows` of `all`.
template <bool COUNTS>
inline double node_part(const Node& n, Sums l, int bin, const ScoreRule& rule, int64_t rows, int64_t all,
                        double least) {
  const Sums r = Sums{n.g, n.h} - l;
  if (COUNTS && rows > 0 && all - rows > 0 && ((double)rows < least || (double)(all - rows) < least)) return -INF;
  return l.h == 0 || r.h == 0 ? n.score : admits(l, r, rule.penalty) ? score_split(l, r, bin, rule) : -INF;
}

template <bool COUNTS>
SAPWOOD_INLINE void score_column(const Job& j, int x) {
  if (is_padding(j)) return;
  const WarpColumn<COUNTS> c(j, x);
  Node n = j.nodes[c.id];
  n.g = c.total.g, n.h = c.total.h, n.score = c.own_score;
  if (c.missing.h > 0) j.level_missing[c.place] = 1;
  double *right = level_scores(j, c.id - j.growth->first_child, c.place, 0),
         *left = level_scores(j, c.id - j.growth->first_child, c.place, 1);
  const double least = least_rows(j);
  c.each_bin([&](int b, Sums l, int64_t rows) {
    if (b >= c.n_bins) return;
#pragma unroll 1
    for (int side = 0; side < 2; side++) {
      double s = 0.0;
      if (n.h != 0) s = node_part<COUNTS>(n, l, b, c.rule, rows, c.all_rows, least);
      (side ? left : right)[b] = s;
      l = l + c.missing, rows += c.missing_rows;
    }
  });
}

SAPWOOD_BOUNDED(256, 2) void score_level(SAPWOOD_JOB, int, int) {
  const Job& j = job;
  const Growth& t = *j.growth;
  if (t.n_jobs == 0 || (int)blockIdx.x >= level_size(t)) return;
#ifdef SAPWOOD_PLAIN
  score_column<SAPWOOD_COUNTS>(j, blockIdx.x);
#else
  if (t.counts_rows) score_column<true>(j, blockIdx.x);
  else score_column<false>(j, blockIdx.x);
#endif
}

// Sums of what a cut sends left in one node, without missing values, and of those. One warp.
inline void left_of(const Job& j, const Node& n, int place, int bin, Sums& values, Sums& missing) {
  const int lane = threadIdx.x % LANES;
  const Sums* sums = j.histograms + n.slot * j.histogram_size + place / LANES * TILE_SUMS + place % LANES;
  Sums own;
  for (int b = lane; b <= bin; b += LANES) own = own + (n.packed ? unpack(sums[b * LANES].g) : sums[b * LANES]);
  values = {warp_sum(own.g), warp_sum(own.h)};
  const Sums last = sums[j.n_bins[place] * LANES];
  missing = n.packed ? unpack(last.g) : last;
}

// All nodes of the level take the split. One block.
inline void split_level(const Job& j, const Found& best) {
  Growth& t = *j.growth;
  __shared__ int64_t all_left, all, all_missing;
  const int n_nodes = level_size(t), first = t.first_child, warp = threadIdx.x / LANES, n_warps = blockDim.x / LANES,
            bin = (int)((best.order & 0xffffffffu) >> 1);
  if (threadIdx.x == 0) all_left = all = all_missing = 0;
  __syncthreads();
  for (int i = warp; i < n_nodes; i += n_warps) {
    Node& n = j.nodes[first + i];
    Sums values, missing;
    left_of(j, n, best.place, bin, values, missing);
    if (threadIdx.x % LANES != 0) continue;
    n.left_g = values.g, n.left_h = values.h;
    add_to(&all_left, values.h), add_to(&all, n.h), add_to(&all_missing, missing.h);
  }
  __syncthreads();
  const bool missing_left = all_missing > 0 ? (best.order & 1) == 0 : all_left >= all - all_left;
  for (int i = warp; i < n_nodes; i += n_warps) {
    Node& n = j.nodes[first + i];
    Sums values, missing;
    left_of(j, n, best.place, bin, values, missing);
    if (threadIdx.x % LANES != 0) continue;
    if (missing_left) n.left_g += missing.g, n.left_h += missing.h;
    n.place = best.place, n.column = (int32_t)(best.order >> 32), n.bin = bin, n.missing_left = missing_left;
    ScoreRule rule{t.penalty};
    if (j.direction != nullptr)
      rule.bounded = true, rule.low = n.low, rule.high = n.high, rule.direction = j.direction[n.place],
      rule.free_bin = j.n_bins[n.place] - 1;
    n.gain = 0.0;
    if (n.left_h > 0 && n.left_h < n.h) {
      const Sums l{n.left_g, n.left_h};
      n.gain = 0.5 * (score_split(l, Sums{n.g, n.h} - l, bin, rule) - n.score) * t.unit;
    }
    j.batch[i] = first + i, j.n_left[i] = j.n_right[i] = 0;
    make_children(j, n, first + i, t.n_nodes + 2 * i);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  int64_t rows = 0;
  for (int i = 0; i < n_nodes; i++) j.batch_at[i] = rows, rows += j.nodes[first + i].end - j.nodes[first + i].begin;
  j.batch_at[n_nodes] = rows;
  const int depth = j.nodes[first].depth;
  t.first_child = t.n_nodes, t.n_nodes += 2 * n_nodes, t.n_leaves = 2 * n_nodes, t.n_batch = n_nodes;
  t.batch_rows = rows, t.first_slot = t.n_slots, t.more = depth + 1 < j.max_depth;
  if (t.more) t.n_slots += n_nodes;
}

// The best candidate of 32 bins of one column, by the sum over the nodes. A warp.
inline void sum_column(const Job& j, int n_nodes, int first, int part) {
  const int place = part / (TILE_BINS / LANES);
  if (place >= (int)j.n_columns) return write_none(j.found + part);
  const int b = part % (TILE_BINS / LANES) * LANES + (int)threadIdx.x % LANES;
  const int column = j.column_of[place], n_bins = j.n_bins[place];
  const bool any_missing = j.level_missing[place] != 0;
  const bool in = may_use(j, 0, column, place) && (b < n_bins - 1 || (any_missing && b == n_bins - 1));
  double right = 0.0, left = 0.0, own = 0.0;
#pragma unroll 4
  for (int i = 0; i < n_nodes; i++) {
    own = own + j.nodes[first + i].score;
    if (in) right = right + level_scores(j, i, place, 0)[b], left = left + level_scores(j, i, place, 1)[b];
  }
  Best best{must_exceed(own), ~0ull, {}};
  const uint64_t order = (uint64_t)column << 32 | (uint64_t)(2 * b);
  if (in && any_missing && b < n_bins - 1 && left > best.score) best = {left, order, {}};
  if (in && right > best.score) best = {right, order + 1, {}};
  write_best(best, must_exceed(own), place, any_missing, j.found + part);
}

SAPWOOD_BOUNDED(256, 2) void choose_level(SAPWOOD_JOB, int, int) {
  const Job& j = job;
  Growth& t = *j.growth;
  if (t.n_jobs == 0) return;
  const int n_parts = (int)j.n_tiles * (int)TILE_SUMS / LANES, n_nodes = level_size(t), n_warps = blockDim.x / LANES;
  for (int i = threadIdx.x; i < n_nodes && blockIdx.x == 0; i += blockDim.x) {
    Node& n = j.nodes[t.first_child + i];
    if (t.first_child + i != 0 && n.slot < t.first_slot) n.packed = 0;
  }
  const int part = blockIdx.x * n_warps + threadIdx.x / LANES;
  if (part < n_parts) sum_column(j, n_nodes, t.first_child, part);
  if (!last_block(j.arrived + 1, gridDim.x)) return;
  __shared__ Found best;
  __shared__ int worth;
  if (threadIdx.x < LANES) {
    const Found found = best_found(j.found, n_parts);
    double all = 0.0;
    for (int i = 0; i < n_nodes; i++) all = all + j.nodes[t.first_child + i].score;
    if (threadIdx.x == 0)
      best = found, worth = found.place >= 0 && 0.5 * (found.score - all) * t.unit - j.min_split_gain > 0.0;
  }
  __syncthreads();
  if (worth) split_level(j, best);
  __syncthreads();
  for (int k = threadIdx.x; k < (int)j.n_tiles * LANES; k += blockDim.x) j.level_missing[k] = 0;
  if (threadIdx.x != 0) return;
  t.n_jobs = 0;
  if (!worth) t.n_batch = 0, t.more = 0;
}

}  // namespace sapwood
