// Outputs that are split together (NUMERICS, vector leaves): each has its own sums, and the scores
// of a candidate are added over the outputs, in order. A block has a column of a node, a thread a
// bin, and goes through the outputs.
#pragma once
#include "cuda/column.h"

namespace sapwood {

// The weights of a candidate's sides are means over the outputs; an empty side violates nothing.
inline bool violates(const Job& j, double left, double right, bool too_few) {
  const double n = (double)j.n_joint;
  const double l = left / n;
  const double r = right / n;
  return l > 0.0 && r > 0.0 && (too_few || l < j.min_child_weight || r < j.min_child_weight);
}

// A node's part of the score of a candidate in one output.
inline CosineParts joint_part(const Job& j, Sums l, Sums total, const Penalty& p) {
  if (total.h == 0) {
    return {};
  }
  const Sums r = total - l;
  const bool empty = l.h == 0 || r.h == 0;
  if (is_cosine(j)) {
    return empty ? cosine_parts(total, p) : cosine_parts(l, p) + cosine_parts(r, p);
  }
  return {empty ? node_score(total, p) : split_score(l, r, p), 0.0};
}

// both candidates of a thread's bin: missing values right, left
struct JointBin {
  CosineParts score[2], own;                           // own: the score of the node
  double left[2] = {0.0, 0.0}, right[2] = {0.0, 0.0};  // weights
  bool any_missing = false;
  template <bool COUNTS>  // sets: one category goes left, alone
  SAPWOOD_INLINE void add(const Job& j, const Growth& t, const BlockColumn<COUNTS>& c, bool sets) {
    const double one = 1.0 / h_scale(t.scale);  // exact: a power of two
    own = own + t.share * node_parts(j, c.total, c.own_score, t.penalty);
    any_missing = any_missing || c.missing.h > 0;
#pragma unroll 1
    for (int side = 0; side < 2; side++) {
      const Sums l = sets ? c.own : side ? c.below + c.missing : c.below;
      score[side] = score[side] + t.share * joint_part(j, l, c.total, t.penalty);
      left[side] = left[side] + (double)l.h * one;
      right[side] = right[side] + (double)(c.total.h - l.h) * one;
    }
  }
};

inline bool has_sets(const Job& j, int place) {
  return has_categories(j) && j.category[place];
}

// The candidates of a column of numbers.
struct JointCuts {
  int n_bins;
  bool any_missing;
  int only;  // the one cut that is considered; -1: all are
  bool holds(int b, int side) const {
    if (only >= 0 && only != b) {
      return false;
    }
    return side ? any_missing && b < n_bins - 1
                : b < n_bins - 1 || (any_missing && b == n_bins - 1);
  }
};

// Of a column of categories: whether that of this thread is a candidate. All threads of a block,
// which are as many as codes.
SAPWOOD_INLINE bool is_joint_set(const Job& j, int id, int column, bool used) {
  if (!j.extra_trees) {
    return used;
  }
  const Scanned rank = block_scan(used);
  return used && is_chosen(j, 0, id, column, true, (int)rank.all, (int)rank.before, 0);
}

template <bool COUNTS>
SAPWOOD_INLINE void search_joint_column(const Job& j, int x, int id, int place, int first_slot,
                                        int& turn, Best& best, double& bar, int& best_place,
                                        bool& missing) {
  JointBin bin;
  BlockColumn<COUNTS> c(j, 0, j.nodes[id], id, place, first_slot, turn);
  const bool sets = has_sets(j, place);
  bin.add(j, j.growth[0], c, sets);
  for (int k = 1; k < (int)j.n_joint; k++) {
    bin.add(j, j.growth[k],
            BlockColumn<false>(j, k, nodes_of(j, k)[id], id, place, first_slot, turn ^= 1), sets);
  }
  bar = must_exceed(score_of_parts(j, bin.own));
  if (best.score < bar) {
    best.score = bar;
  }
  const int b = threadIdx.x;
  JointCuts cuts{c.n_bins, bin.any_missing, -1};
  const bool set = sets && is_joint_set(j, id, c.column, c.own.h > 0);
  if (j.extra_trees && !sets) {
    cuts.only = random_cut(j, 0, id, c.column, c.n_bins, occupied(c.holds_rows), c.missing.h > 0);
    if (cuts.only < 0) {
      return;
    }
  }
  if (!may_use(j, x, c.column, place)) {
    return;
  }
  for (int side = 1; side >= 0; side--) {  // missing left, then right
    if (sets ? !set || side : !cuts.holds(b, side)) {
      continue;
    }
    bool too_few = false;
    if constexpr (COUNTS) {
      const int64_t left = sets ? c.own_rows : c.rows_below + (side ? c.missing_rows : 0);
      too_few =
          (double)left < j.growth->min_count || (double)(c.all_rows - left) < j.growth->min_count;
    }
    const double score = score_of_parts(j, bin.score[side]);
    if (violates(j, bin.left[side], bin.right[side], too_few) || !(score > best.score)) {
      continue;
    }
    best = {score,
            (uint64_t)c.column << 32 | (uint64_t)(2 * b + !(side || (sets && b == c.n_bins))),
            {}};
    best_place = place;
    missing = bin.any_missing;
  }
}

// Of outputs whose left sides have these sums, the gain of a node.
inline double joint_gain(const Job& j, int k, const Node& n) {
  if (n.left_h <= 0 || n.left_h >= n.h) {
    return 0.0;
  }
  const Growth& t = j.growth[k];
  const Sums l{n.left_g, n.left_h};
  return gain_of_split(j, t, n, l, n.place, split_score(l, Sums{n.g, n.h} - l, t.penalty));
}

inline Sums bin_sums(const Job& j, int k, const Node& n, int place, int bin) {
  const Sums* tile = histograms_of(j, k) + n.slot * j.histogram_size + place / LANES * TILE_SUMS;
  return load_sums(tile, bin * LANES + place % LANES, n.packed != 0);
}

// What a split sends left in every output, missing values apart; `n`: nodes that follow each other.
// All threads of a block.
inline void store_left(const Job& j, int first, int n, int place, int bin) {
  const int n_warps = blockDim.x / LANES;
  for (int i = threadIdx.x / LANES; i < n * (int)j.n_joint; i += n_warps) {
    const int k = i / n;
    Node& node = nodes_of(j, k)[first + i % n];
    Sums values;
    Sums missing;
    if (has_sets(j, place)) {
      values = bin_sums(j, k, node, place, bin);
    } else {
      left_of(j, k, node, place, bin, values, missing);
    }
    if (threadIdx.x % LANES == 0) {
      node.left_g = values.g;
      node.left_h = values.h;
    }
  }
  __threadfence_block();
  __syncthreads();
}

// Gives some nodes the split whose left sides they have; where none of them saw missing values,
// these go to the heavier side. Returns the side. All threads of a block.
inline bool take_joint(const Job& j, int first, int n, int place, uint64_t order,
                       bool seen_missing) {
  __shared__ int side;
  if (threadIdx.x == 0) {
    double left = 0.0;
    double right = 0.0;
    for (int k = 0; k < (int)j.n_joint && !seen_missing; k++) {
      int64_t l = 0;
      int64_t r = 0;
      for (int i = 0; i < n; i++) {
        const Node& node = nodes_of(j, k)[first + i];
        l += node.left_h;
        r += node.h - node.left_h;
      }
      const double hs = h_scale(j.growth[k].scale);
      left = left + (double)l / hs;
      right = right + (double)r / hs;
    }
    side = seen_missing ? (order & 1) == 0 : left / (double)j.n_joint >= right / (double)j.n_joint;
  }
  __syncthreads();
  const bool missing_left = side != 0;
  for (int i = threadIdx.x; i < n * (int)j.n_joint; i += blockDim.x) {
    const int k = i / n;
    Node& node = nodes_of(j, k)[first + i % n];
    const Sums missing = bin_sums(j, k, node, place, j.n_bins[place]);
    if (missing_left && !has_sets(j, place)) {
      node.left_g += missing.g;
      node.left_h += missing.h;
    }
    node.place = place;
    node.column = (int32_t)(order >> 32);
    node.bin = (int32_t)((order & 0xffffffffu) >> 1);
    node.missing_left = missing_left;
    node.gain = joint_gain(j, k, node);
  }
  __threadfence_block();
  __syncthreads();
  return missing_left;
}

// What nodes with a split gain over all outputs. One thread.
inline double joint_gains(const Job& j, int first, int n) {
  double gained = 0.0;
  for (int k = 0; k < (int)j.n_joint; k++) {
    double one = 0.0;
    for (int i = 0; i < n; i++) {
      one = one + nodes_of(j, k)[first + i].gain;
    }
    gained = gained + one;
  }
  return gained;
}

// The score of some nodes without a split, over all outputs.
inline double joint_score(const Job& j, int first, int n) {
  CosineParts all;
  for (int k = 0; k < (int)j.n_joint; k++) {
    CosineParts one;
    for (int i = 0; i < n; i++) {
      const Node& node = nodes_of(j, k)[first + i];
      one = one + node_parts(j, Sums{node.g, node.h}, node.score, j.growth[k].penalty);
    }
    all = all + j.growth[k].share * one;
  }
  return score_of_parts(j, all);
}

// The best of what the blocks of the search found for some nodes, for all threads of a block. each:
// places of a column
inline Found joint_best(const Job& j, int first, int n, const Found* found, int n_found, int each) {
  __shared__ Found best;
  if (threadIdx.x < LANES) {
    double unit = 0.0;
    for (int k = 0; k < (int)j.n_joint && is_ranked(j); k++) {
      unit = j.growth[k].unit > unit ? j.growth[k].unit : unit;
    }
    Found own;
    if (is_ranked(j)) {
      const Ranker ranker(j, 0, first, joint_score(j, first, n), unit, j.growth->noise_scale);
      own = best_found(found, n_found, each, ranker);
    } else {
      own = best_found(found, n_found);
    }
    if (threadIdx.x == 0) {
      best = own;
    }
  }
  __syncthreads();
  return best;
}

#if !defined(SAPWOOD_POLICY) || SAPWOOD_POLICY != 1
SAPWOOD_BOUNDED(256, 2) void search_joint(SAPWOOD_JOB, int, int step) {
  const Job& j = job;
  const NodeBlock node(j, step);
  if (!node.in) {
    return;
  }
  const int x = node.x;
  const int id = node.id;
  const int first_slot = node.first_slot;
  Best best{-INF, ~0ull, {}};
  double bar = -INF;
  int best_place = -1;
  bool missing = false;
  node.each_place(j, [&](int place, int& turn) {
    if (j.growth->count_parts > 0) {
      search_joint_column<true>(j, x, id, place, first_slot, turn, best, bar, best_place, missing);
    } else {
      search_joint_column<false>(j, x, id, place, first_slot, turn, best, bar, best_place, missing);
    }
  });
  write_best(best, bar, best_place, missing, j.found + x * j.n_found + blockIdx.y);
  if (!last_block(j.arrived + x, gridDim.y)) {
    return;
  }
  const Found found = joint_best(j, id, 1, j.found + x * j.n_found, gridDim.y, 1);
  if (found.place < 0) {
    return;  // the node has no split and no gain yet
  }
  const int bin = (int)((found.order & 0xffffffffu) >> 1);
  store_left(j, id, 1, found.place, bin);
  const bool left = take_joint(j, id, 1, found.place, found.order, found.seen_missing != 0);
  if (threadIdx.x != 0) {
    return;
  }
  if (has_sets(j, found.place)) {
    fill_set(&bin, bin < j.n_bins[found.place], j.n_bins[found.place], left,
             j.sets + SET_WORDS * id);
  }
  const double gained = joint_gains(j, id, 1);
  j.nodes[id].rank = gained > j.min_split_gain ? gained : 0.0;
}
#endif

// -------------------------------------------------------------------------------------------------
// symmetric trees
#if !defined(SAPWOOD_POLICY) || SAPWOOD_POLICY == 1
inline double* side_weights(const Job& j, int64_t node, int place, int side) {
  return j.side_weights + ((node * j.n_tiles * LANES + place) * 2 + side) * TILE_BINS * 2;
}

// The rows up to each bin of a node's column, and all; after the search of the first output.
struct BinRows {
  int64_t own, below, all, missing;
  SAPWOOD_INLINE BinRows(const Job& j, const Node& n, int place) {
    __shared__ int64_t shared_missing;
    const int64_t* tile = j.counts + n.slot * j.histogram_size + place / LANES * TILE_SUMS;
    const int64_t rows = tile[threadIdx.x * LANES + place % LANES];
    __syncthreads();
    if ((int)threadIdx.x == j.n_bins[place]) {
      shared_missing = rows;
    }
    const BinScan scan(Sums{rows, 0});
    own = rows;
    below = scan.below.g;
    all = scan.total.g;
    missing = shared_missing;
  }
};

template <bool COUNTS>
SAPWOOD_INLINE void score_joint_column(const Job& j, int k, int x, int id, int place,
                                       int first_slot, int turn) {
  const BlockColumn<COUNTS> c(j, k, nodes_of(j, k)[id], id, place, first_slot, turn);
  const Growth& t = j.growth[k];
  const int b = threadIdx.x;
  const bool last = k == (int)j.n_joint - 1;
  const bool counts = last && j.growth->count_parts > 0;
  const bool sets = has_sets(j, place);
  int64_t rows_left = 0;
  int64_t rows = 0;
  int64_t missing_rows = 0;
  if (counts) {
    const BinRows found(j, j.nodes[id], place);
    rows_left = sets ? found.own : found.below;
    rows = found.all;
    missing_rows = found.missing;
  }
  if (id == 0 && k == 0 && j.extra_trees) {
    const BinRange range = occupied(c.holds_rows);
    if (b == 0) {
      j.root_range[2 * place] = range.first;
      j.root_range[2 * place + 1] = range.last;
    }
  }
  if (id == 0 && b == 0) {
    j.root_missing[place] = (k == 0 ? 0 : j.root_missing[place]) + c.missing.h;
    if (k == 0) {
      j.n_steps[2 * place] = c.missing.h > 0;  // in the first output
    }
  }
  if (id == 0 && k == 0) {
    j.root_below[place * TILE_BINS + b] = c.own.h;
  }
  if (b >= c.n_bins + sets) {
    return;
  }
  const double one = 1.0 / h_scale(t.scale);
#pragma unroll 1
  for (int side = 0; side < 2; side++) {
    const Sums l = sets ? c.own : side ? c.below + c.missing : c.below;
    double* weight = side_weights(j, x, place, side) + 2 * b;
    weight[0] = (k == 0 ? 0.0 : weight[0]) + (double)l.h * one;
    weight[1] = (k == 0 ? 0.0 : weight[1]) + (double)(c.total.h - l.h) * one;
    CosineParts part = joint_part(j, l, c.total, t.penalty);
    if (last) {
      const int64_t left = rows_left + (side && !sets ? missing_rows : 0);
      const bool too_few = counts && ((double)left < j.growth->min_count ||
                                      (double)(rows - left) < j.growth->min_count);
      if (violates(j, weight[0], weight[1], too_few)) {
        part = {-INF, 0.0};
      }
    }
    store_parts(j, x, place, side, part);
  }
}

// One output's scores of every candidate in every node of a level.
SAPWOOD_BOUNDED(256, 2) void score_joint(SAPWOOD_JOB, int k, int step) {
  const Job& j = job;
  const NodeBlock node(j, step);
  if (!node.in) {
    return;
  }
  const int x = node.x;
  const int id = node.id;
  const int first_slot = node.first_slot;
  node.each_place(j, [&](int place, int& turn) {
    if (k == 0 && j.growth->count_parts > 0) {
      score_joint_column<true>(j, k, x, id, place, first_slot, turn);
    } else {
      score_joint_column<false>(j, k, x, id, place, first_slot, turn);
    }
  });
}

// Adds them over the nodes, and to those of the outputs before; a thread has a bin of a place.
SAPWOOD_BOUNDED(64, 8) void add_joint(SAPWOOD_JOB, int k, int step) {
  const Job& j = job;
  const auto [n_nodes, first, thread, place, b] = LevelBin(j, step);
  if (n_nodes == 0 || b >= j.n_bins[place] + has_sets(j, place)) {
    return;
  }
  for (int side = 0; side < 2; side++) {
    const int at = (place * 2 + side) * TILE_BINS + b;
    const CosineParts one = j.growth[k].share * sum_parts(j, n_nodes, place, side, b);
    j.joint_scores[at] = (k == 0 ? 0.0 : j.joint_scores[at]) + one.dot;
    if (is_cosine(j)) {
      j.joint_norms[at] = (k == 0 ? 0.0 : j.joint_norms[at]) + one.norm2;
    }
  }
}

// The best candidate of every block.
SAPWOOD_BOUNDED(64, 8) void choose_joint(SAPWOOD_JOB, int, int step) {
  const Job& j = job;
  const auto [n_nodes, first, at, place, b] = LevelBin(j, step);
  if (n_nodes == 0) {
    return;
  }
  const int column = j.column_of[place];
  const int n_bins = j.n_bins[place];
  const bool any_missing = j.root_missing[place] > 0;
  const bool sets = has_sets(j, place);
  const int64_t* root = j.root_below + place * TILE_BINS;  // the level has all rows of the root
  JointCuts cuts{n_bins, any_missing, -1};
  bool in[2] = {may_use(j, 0, column, place), false};
  if (j.extra_trees && !sets) {
    const BinRange range{j.root_range[2 * place], j.root_range[2 * place + 1]};
    cuts.only = random_cut(j, 0, first, column, n_bins, range, j.n_steps[2 * place] != 0);
    in[0] = in[0] && cuts.only >= 0;
  }
  if (j.extra_trees && sets && in[0]) {
    int before = 0;
    int among = 0;
    for (int code = 0; code <= n_bins; code++) {
      among += root[code] > 0;
      before += root[code] > 0 && code < b;
    }
    in[0] = is_chosen(j, 0, first, column, true, among, before, 0);
  }
  if (sets) {
    in[0] = in[0] && b <= n_bins && root[b] > 0;
  } else {
    in[1] = in[0] && cuts.holds(b, 1);
    in[0] = in[0] && cuts.holds(b, 0);
  }
  const double own = joint_score(j, first, n_nodes);
  Best best{must_exceed(own), ~0ull, {}};
  const uint64_t order = (uint64_t)column << 32 | (uint64_t)(2 * b);
  for (int side = 1; side >= 0; side--) {  // missing left, then right
    const int from = (place * 2 + side) * TILE_BINS + b;
    if (!in[side]) {
      continue;
    }
    const double score =
        score_of_parts(j, {j.joint_scores[from], is_cosine(j) ? j.joint_norms[from] : 0.0});
    if (score > best.score) {
      best = {score, order + !(side || (sets && b == n_bins)), {}};
    }
  }
  write_best(best, must_exceed(own), place, any_missing, j.found + blockIdx.x);
}

// All nodes of a level take its split, if that is worth it. One block.
SAPWOOD_KERNEL void take_level(SAPWOOD_JOB, int, int step) {
  const Job& j = job;
  const Level& level = j.levels[step];
  const int n_nodes = n_searched(level);
  const int first = level.first_child;
  if (n_nodes == 0) {
    return;
  }
  const Found best =
      joint_best(j, first, n_nodes, j.found, (int)j.n_found, (int)(j.n_found / j.n_columns));
  if (threadIdx.x == 0) {
    *j.level_split = {0, 0, -1, 0, 0, 0};
  }
  if (best.place < 0) {
    return;
  }
  const int bin = (int)((best.order & 0xffffffffu) >> 1);
  store_left(j, first, n_nodes, best.place, bin);
  const bool left = take_joint(j, first, n_nodes, best.place, best.order, best.seen_missing != 0);
  // the best cosine may come with a rise of the loss
  const bool any = is_cosine(j) && j.min_split_gain == 0.0;
  if (threadIdx.x == 0 && (any || joint_gains(j, first, n_nodes) > j.min_split_gain)) {
    *j.level_split = {1, best.place, (int32_t)(best.order >> 32), bin, left, 0};
  }
}
#endif

}  // namespace sapwood
