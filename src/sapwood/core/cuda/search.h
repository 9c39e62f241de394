// The split search on the device: a block has some columns of a node, one at a time, and a thread a
// bin. Sums are exact integers and scores one fixed expression of them, so the order in which
// candidates are compared is free.
#pragma once
#include "cuda/column.h"

namespace sapwood {

// Far more than a score may lose by rounding: a quotient that misses a bar by this factor cannot
// exceed it.
constexpr double MARGIN = 1.0 - 0x1p-40;

// A plain score is not divided out where it cannot exceed `bar`.
template <bool PLAIN>
SAPWOOD_INLINE double score_candidate(Sums l, Sums r, int bin, const ScoreRule& rule, double bar) {
  if constexpr (!PLAIN) {
    return score_split(l, r, bin, rule);
  }
  const Penalty& p = rule.penalty;  // soft(g, 0) is g
  const double gl = (double)l.g;
  const double hl = (double)l.h;
  const double gr = (double)r.g;
  const double hr = (double)r.h;
  const double bl = hl + p.lambda;
  const double br = hr + p.lambda;
  const double top = (gl * gl) * br + (gr * gr) * bl;
  const double below = bl * br;
  return top < below * (bar * MARGIN) ? -INF : top / below;
}

// The candidates of the bin of this thread; those that are below `bar` need not be scored.
template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void score_bin(const BlockColumn<COUNTS>& c, double least, double bar, Best& best) {
  const bool any_missing = c.missing.h > 0;
  const int b = threadIdx.x;
  const int end = any_missing ? c.n_bins : c.n_bins - 1;
#pragma unroll 1
  // missing left, then right
  for (int side = any_missing && b < c.n_bins - 1; side >= 0 && b < end; side--) {
    const Sums l = side ? c.below + c.missing : c.below;
    const Sums r = c.total - l;
    bool in = admits(l, r, c.rule.penalty);
    if constexpr (COUNTS) {
      const int64_t left = c.rows_below + (side ? c.missing_rows : 0);
      in = in && (double)left >= least && (double)(c.all_rows - left) >= least;
    }
    if (!in) {
      continue;
    }
    const double s = score_candidate<PLAIN>(l, r, b, c.rule, bar);
    if (s > best.score) {
      best = {s, (uint64_t)c.column << 32 | (uint64_t)(2 * b + !side), l};
    }
  }
}

// A split that the node must have need not be worth it, and beats all others; it must only have
// enough on both sides.
template <bool COUNTS>
SAPWOOD_INLINE void force_bin(const BlockColumn<COUNTS>& c, double least, Best& best) {
  Best found{-INF, ~0ull, {}};
  score_bin<false, COUNTS>(c, least, -INF, found);
  if (found.order != ~0ull) {
    best = {INF, found.order, found.left};
  }
}

struct BlockBest {  // over the columns of a block
  Best best{-INF, ~0ull, {}};
  OwnScore own;        // of the node
  double bar = -INF;   // what a split must exceed
  double most = -INF;  // the best score of this warp
  int place = -1;
  bool missing = false;
};

// The sets of a column of categories: a thread has a step.
template <bool COUNTS>
SAPWOOD_INLINE void search_sets(const Job& j, int k, int id, const BlockColumn<COUNTS>& c,
                                BlockBest& found) {
  Steps& s = shared_steps();
  make_steps(j, c.place, c.own, c.own_rows, c.total,
             weight_of(j, of_tree(j, j.nodes)[id], c.all_rows), s);
  const int n_front = s.n[0];
  const int step = threadIdx.x;
  const int at = step < n_front ? step : step - n_front;
  const bool back = step >= n_front;
  const bool onehot = j.category[c.place] == ONE_HOT;
  if (step >= n_front + s.n[1] || !s.step[back][at].candidate) {
    return;
  }
  if (!is_chosen(j, k, id, c.column, onehot, s.among, step, s.step[back][at].start)) {
    return;
  }
  const Sums l = s.left[back][at];
  const Sums r = c.total - l;
  if (!admits(l, r, c.rule.penalty)) {
    return;
  }
  if (COUNTS && growth_of(j).counts_rows) {
    const int64_t left = s.rows_left[back][at];
    if ((double)left < least_rows(j) || (double)(c.all_rows - left) < least_rows(j)) {
      return;
    }
  }
  ScoreRule rule = c.rule;
  rule.penalty = column_penalty(j, growth_of(j), c.place);
  rule.direction = 0;
  const double score = score_split(l, r, step, rule);
  if (score > found.best.score) {
    found.best = {score,
                  (uint64_t)c.column << 32 | (uint64_t)(2 * step + !s.step[back][at].missing), l};
  }
}

template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void search_column(const Job& j, int k, int x, int id, int place, int first_slot,
                                  int turn, BlockBest& found) {
  const BlockColumn<COUNTS> c(j, 0, of_tree(j, j.nodes)[id], id, place, first_slot, turn,
                              found.own);
  found.bar = must_exceed(c.own_score);
  if (found.best.score < found.bar) {
    found.best.score = found.bar;
  }
  if (found.most < found.bar) {
    found.most = found.bar;
  }
  const bool sets = has_categories(j) && j.category[place];
  int only = -1;  // the one cut that is considered
  const int forced = MAY_BIND && j.forced != nullptr ? of_tree(j, j.nodes)[id].forced : -1;
  const bool forces = forced >= 0 && j.forced[forced].column == c.column;
  if (forces && j.forced[forced].bin == (int)threadIdx.x) {
    force_bin<COUNTS>(c, least_rows(j), found.best);
    if (found.best.score == INF) {
      found.place = place;
      found.missing = c.missing.h > 0;
    }
  }
  if (MAY_BIND && j.extra_trees && !sets) {
    only = random_cut(j, k, id, c.column, c.n_bins, occupied(c.holds_rows), c.missing.h > 0);
    if (only < 0) {
      return;
    }
  }
  if (!may_use(j, x, c.column, c.place)) {
    return;
  }
  const uint64_t order = found.best.order;
  if constexpr (MAY_HAVE_CATEGORIES) {
    if (sets) {
      search_sets<COUNTS>(j, k, id, c, found);
    }
  }
  if (!sets && (only < 0 || only == (int)threadIdx.x)) {
    score_bin<PLAIN, COUNTS>(c, least_rows(j), found.most, found.best);
  }
  if (found.best.order != order) {
    found.place = place;
    found.missing = c.missing.h > 0;
  }
  found.most = found.best.score;
  for (int step = LANES / 2; step > 0 && (int)gridDim.y < (int)j.n_columns; step /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, found.most, step);
    found.most = other > found.most ? other : found.most;
  }
}

SAPWOOD_BOUNDED(256, 4) void search(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const int k = given + place_of_tree();
  const NodeBlock node(j, step);
  if (!node.in) {
    return;
  }
  const int x = node.x;
  const int id = node.id;
  const int first_slot = node.first_slot;
  BlockBest found;
  node.each_place(j, [&](int place, int& turn) {
#ifdef SAPWOOD_PLAIN  // compiled for these rules alone
    search_column<SAPWOOD_PLAIN, SAPWOOD_COUNTS>(j, k, x, id, place, first_slot, turn, found);
#else
    const Growth& t = growth_of(j);
    const bool plain = is_plain(t.penalty) && j.direction == nullptr && !is_cosine(j);
    if (plain && t.count_parts == 0) {
      search_column<true, false>(j, k, x, id, place, first_slot, turn, found);
    } else if (plain) {
      search_column<true, true>(j, k, x, id, place, first_slot, turn, found);
    } else if (t.count_parts == 0) {
      search_column<false, false>(j, k, x, id, place, first_slot, turn, found);
    } else {
      search_column<false, true>(j, k, x, id, place, first_slot, turn, found);
    }
#endif
  });
  write_best(found.best, found.bar, found.place, found.missing,
             of_tree(j, j.found) + x * j.n_found + blockIdx.y);
  if (!last_block(of_tree(j, j.arrived) + x, gridDim.y)) {
    return;
  }
  if (threadIdx.x < LANES) {
    take_best(j, k, of_tree(j, j.found) + x * j.n_found, gridDim.y, id);
  }
  if constexpr (MAY_HAVE_CATEGORIES) {
    if (!has_categories(j)) {
      return;
    }
    __threadfence_block();
    __syncthreads();
    write_set(j, id);
  }
}

}  // namespace sapwood
