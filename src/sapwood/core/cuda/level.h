// Symmetric trees on the device: one split for all nodes of a level. Every node's score of every candidate is stored;
// then they are added, node after node in the order of ids, as the sum is of floats.
#pragma once
#include "cuda/search.h"

namespace sapwood {

inline double* level_scores(const Job& j, int64_t node, int place, int side) {
  return j.level_scores + ((node * j.n_tiles * LANES + place) * 2 + side) * TILE_BINS;
}

// A node's part of the score of a candidate that sends `l` left, `rows` of `all`.
template <bool COUNTS>
inline double node_part(const BlockColumn<COUNTS>& c, Sums l, int64_t rows, double least) {
  const Sums r = c.total - l;
  const int64_t others = c.all_rows - rows;
  if (COUNTS && rows > 0 && others > 0 && ((double)rows < least || (double)others < least)) return -INF;
  if (l.h == 0 || r.h == 0) return c.own_score;
  return admits(l, r, c.rule.penalty) ? score_split(l, r, threadIdx.x, c.rule) : -INF;
}

template <bool COUNTS>
SAPWOOD_INLINE void score_column(const Job& j, int x, int id, int place, int first_slot, int turn) {
  const BlockColumn<COUNTS> c(j, j.nodes[id], id, place, first_slot, turn);
  const int b = threadIdx.x;
  if (MAY_BIND && j.extra_trees && id == 0) {
    const BinRange range = occupied(c.holds_rows);
    if (b == 0) j.root_range[2 * c.place] = range.first, j.root_range[2 * c.place + 1] = range.last;
  }
  if (id == 0 && b == 0) j.root_missing[c.place] = c.missing.h;
  if (b >= c.n_bins) return;
  if (id == 0) j.root_below[c.place * TILE_BINS + b] = c.below.h;
  const bool two_sides = (id == 0 ? c.missing.h : j.root_missing[c.place]) > 0;
  const double least = least_rows(j);
#pragma unroll 1
  for (int side = 0; side <= two_sides; side++) {
    const Sums l = side ? c.below + c.missing : c.below;
    level_scores(j, x, c.place, side)[b] =
        c.total.h == 0 ? 0.0 : node_part<COUNTS>(c, l, c.rows_below + (side ? c.missing_rows : 0), least);
  }
}

SAPWOOD_BOUNDED(256, 4) void score_level(SAPWOOD_JOB, int, int step) {
  const Job& j = job;
  const Level& level = j.levels[step];
  const int x = blockIdx.x, id = level.first_child + x, first_slot = level.first_slot;
  if (x >= n_searched(level)) return;
  if (blockIdx.y == 0 && threadIdx.x == 0) j.n_left[x] = j.n_right[x] = 0;  // for the next step
  for (int place = blockIdx.y, turn = 0; place < (int)j.n_columns; place += gridDim.y, turn ^= 1) {
#ifdef SAPWOOD_PLAIN
    score_column<SAPWOOD_COUNTS>(j, x, id, place, first_slot, turn);
#else
    if (j.growth->counts_rows) score_column<true>(j, x, id, place, first_slot, turn);
    else score_column<false>(j, x, id, place, first_slot, turn);
#endif
  }
}

// The candidates of a level, by their sums over the nodes in the order of ids; a thread has a bin of a place. The best of
// every block is kept.
SAPWOOD_BOUNDED(64, 8) void choose_level(SAPWOOD_JOB, int k, int step) {
  const Job& j = job;
  const Level& level = j.levels[step];
  const int n_nodes = n_searched(level), first = level.first_child, at = blockIdx.x * blockDim.x + threadIdx.x,
            place = at / TILE_BINS, b = at % TILE_BINS;
  if (n_nodes == 0) return;
  const int column = j.column_of[place], n_bins = j.n_bins[place];
  const bool any_missing = j.root_missing[place] > 0;
  bool in = may_use(j, 0, column, place) && (b < n_bins - 1 || (any_missing && b == n_bins - 1));
  if (MAY_BIND && j.extra_trees) {  // the level has all rows of the root
    const BinRange range{j.root_range[2 * place], j.root_range[2 * place + 1]};
    in = in && b == random_cut(j, k, first, column, n_bins, range, any_missing);
  }
  const bool two_sides = in && any_missing && b < n_bins - 1;
  const double *rights = level_scores(j, 0, place, 0) + b, *lefts = level_scores(j, 0, place, 1) + b;
  const int64_t stride = j.n_tiles * LANES * 2 * TILE_BINS;
  double right = 0.0, left = 0.0, own = 0.0;
#pragma unroll 8
  for (int i = 0; i < n_nodes; i++) {
    own = own + j.nodes[first + i].score;
    if (in) right = right + rights[i * stride];
    if (two_sides) left = left + lefts[i * stride];
  }
  Best best{must_exceed(own), ~0ull, {}};
  const uint64_t order = (uint64_t)column << 32 | (uint64_t)(2 * b);
  if (two_sides && left > best.score) best = {left, order, {}};
  if (in && right > best.score) best = {right, order + 1, {}};
  write_best(best, must_exceed(own), place, any_missing, j.found + blockIdx.x);
  if (at == 0) j.growth->level_score = own;
}

}  // namespace sapwood
