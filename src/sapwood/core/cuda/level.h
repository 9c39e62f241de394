// Symmetric trees on the device: one split for all nodes of a level. Every node's score of every
// candidate is stored; then they are added, node after node in the order of ids, as the sum is of
// floats.
#pragma once
#include "cuda/column.h"

namespace sapwood {

// A node's part of the score of a candidate that sends `l` left, `rows` of `all`.
template <bool COUNTS>
inline CosineParts node_part(const Job& j, const BlockColumn<COUNTS>& c, Sums l, int64_t rows,
                             double least, const ScoreRule& rule) {
  const Sums r = c.total - l;
  const int64_t others = c.all_rows - rows;
  if (c.total.h == 0) {
    return {};
  }
  if (COUNTS && rows > 0 && others > 0 && ((double)rows < least || (double)others < least)) {
    return {-INF, 0.0};
  }
  if (l.h == 0 || r.h == 0) {
    return node_parts(j, c.total, c.own_score, c.rule.penalty);
  }
  if (!admits(l, r, c.rule.penalty)) {
    return {-INF, 0.0};
  }
  if (is_cosine(j)) {
    return cosine_parts(l, rule.penalty) + cosine_parts(r, rule.penalty);
  }
  return {score_split(l, r, bin_of(), rule), 0.0};
}

// The steps of a column of categories: those of the root, as every level has all of its rows.
template <bool COUNTS>
SAPWOOD_INLINE void score_sets(const Job& j, int x, int id, const BlockColumn<COUNTS>& c) {
  __shared__ Sums by_code[TILE_BINS];
  __shared__ Sums up_to[TILE_BINS];
  __shared__ int64_t rows_by_code[TILE_BINS];
  __shared__ int64_t rows_up_to[TILE_BINS];
  CodeStep* steps = of_tree(j, j.steps) + (int64_t)c.place * TILE_BINS;
  int32_t* n_steps = of_tree(j, j.n_steps) + 2 * c.place;
  const int k = threadIdx.x;
  if (id == 0) {
    Steps& s = shared_steps();
    make_steps(j, c.place, c.own, c.own_rows, c.total,
               weight_of(j, of_tree(j, j.nodes)[0], c.all_rows), s);
    if (k < s.n[0]) {
      steps[k] = s.step[0][k];
    } else if (k < s.n[0] + s.n[1]) {
      steps[k] = s.step[1][k - s.n[0]];
    }
    if (k == 0) {
      n_steps[0] = s.n[0] + s.n[1];
      n_steps[1] = s.among;
      of_tree(j, j.root_missing)[c.place] = c.missing.h;
    }
    __threadfence_block();
  }
  __syncthreads();
  by_code[k] = c.own;
  rows_by_code[k] = c.own_rows;
  __syncthreads();
  const bool in = k < n_steps[0];
  const CodeStep step = in ? steps[k] : CodeStep{};
  const BinScan scan(in ? by_code[step.code] : Sums{});
  const BinScan counted(Sums{in && COUNTS ? rows_by_code[step.code] : 0, 0});
  up_to[k] = scan.below;
  rows_up_to[k] = counted.below.g;
  __syncthreads();
  if (!in) {
    return;
  }
  const bool first = step.start == 0;
  const Sums l = first ? scan.below : scan.below - up_to[step.start - 1];
  const int64_t rows = counted.below.g - (first ? 0 : rows_up_to[step.start - 1]);
  if (id == 0) {
    of_tree(j, j.root_below)[c.place * TILE_BINS + k] = l.h;
  }
  ScoreRule rule = c.rule;
  rule.penalty = column_penalty(j, growth_of(j), c.place);
  rule.direction = 0;
  store_parts(j, x, c.place, 0, node_part<COUNTS>(j, c, l, rows, least_rows(j), rule));
}

template <bool COUNTS>
SAPWOOD_INLINE void score_column(const Job& j, int x, int id, int place, int first_slot, int turn,
                                 OwnScore& own) {
  const BlockColumn<COUNTS> c(j, 0, of_tree(j, j.nodes)[id], id, place, first_slot, turn, own);
  const int b = bin_of();
  if constexpr (MAY_HAVE_CATEGORIES) {
    if (has_categories(j) && j.category[place]) {
      return score_sets<COUNTS>(j, x, id, c);
    }
  }
  if (MAY_BIND && j.extra_trees && id == 0) {
    const BinRange range = occupied(c.holds_rows);
    if (b == 0) {
      of_tree(j, j.root_range)[2 * c.place] = range.first;
      of_tree(j, j.root_range)[2 * c.place + 1] = range.last;
    }
  }
  if (id == 0 && b == 0) {
    of_tree(j, j.root_missing)[c.place] = c.missing.h;
  }
  if (b >= c.n_bins) {
    return;
  }
  if (id == 0) {
    of_tree(j, j.root_below)[c.place * TILE_BINS + b] = c.below.h;
  }
  const bool two_sides = (id == 0 ? c.missing.h : of_tree(j, j.root_missing)[c.place]) > 0;
  const double least = least_rows(j);
#pragma unroll 1
  for (int side = 0; side <= two_sides; side++) {
    const Sums l = side ? c.below + c.missing : c.below;
    const int64_t rows = c.rows_below + (side ? c.missing_rows : 0);
    store_parts(j, x, c.place, side, node_part<COUNTS>(j, c, l, rows, least, c.rule));
  }
}

// The candidates of a bin of a place.
struct LevelCandidates {
  bool in, two_sides;              // whether there are any; whether missing values may go left, too
  bool any_missing, missing_left;  // missing_left: a set that holds them
  SAPWOOD_INLINE LevelCandidates(const Job& j, int k, int first, int place, int b) {
    const int column = j.column_of[place];
    const int n_bins = j.n_bins[place];
    const bool sets = has_categories(j) && j.category[place];
    const bool allowed = may_use(j, 0, column, place);
    any_missing = of_tree(j, j.root_missing)[place] > 0;
    missing_left = false;
    in = allowed && !sets && (b < n_bins - 1 || (any_missing && b == n_bins - 1));
    const int32_t* n_steps = of_tree(j, j.n_steps) + 2 * place;
    if (sets && b < n_steps[0]) {
      const CodeStep added = of_tree(j, j.steps)[(int64_t)place * TILE_BINS + b];
      in = allowed && added.candidate &&
           is_chosen(j, k, first, column, j.category[place] == ONE_HOT, n_steps[1], b, added.start);
      missing_left = added.missing != 0;
    }
    if (MAY_BIND && j.extra_trees && !sets) {  // the level has all rows of the root
      const int32_t* range = of_tree(j, j.root_range) + 2 * place;
      in = in && b == random_cut(j, k, first, column, n_bins, {range[0], range[1]}, any_missing);
    }
    two_sides = in && !sets && any_missing && b < n_bins - 1;
  }
  // The better one of both sides; what it sends left of the root goes with it.
  SAPWOOD_INLINE Best best(const Job& j, int place, int b, double right, double left) const {
    const Sums below{0, of_tree(j, j.root_below)[place * TILE_BINS + b]};
    const uint64_t order = (uint64_t)j.column_of[place] << 32 | (uint64_t)(2 * b);
    Best best{-INF, ~0ull, {}};
    if (two_sides && left > best.score) {
      best = {left, order, below};
    }
    if (in && right > best.score) {
      best = {right, order + !missing_left, below};
    }
    return best;
  }
};

// The score of a level without a split: those of its nodes, added in the order of ids. All threads
// of a block.
inline void score_nodes(const Job& j, int first, int n) {
  constexpr int N_HERE = 128;
  __shared__ CosineParts parts[N_HERE];
  CosineParts sum;
  for (int from = 0; from < n; from += N_HERE) {
    const int here = n - from < N_HERE ? n - from : N_HERE;
    __syncthreads();
    for (int i = threadIdx.x; i < here; i += blockDim.x) {
      const Node& node = of_tree(j, j.nodes)[first + from + i];
      parts[i] = node_parts(j, Sums{node.g, node.h}, node.score, growth_of(j).penalty);
    }
    __syncthreads();
    for (int i = 0; i < here && threadIdx.x == 0; i++) {
      sum = sum + parts[i];
    }
  }
  if (threadIdx.x == 0) {
    growth_of(j).level_score = score_of_parts(j, sum);
  }
}

// What the blocks of choose_level find of a column, by a block that has scored all nodes of the
// level. All its threads.
SAPWOOD_INLINE void choose_here(const Job& j, int k, int first, int n_nodes, int place) {
  __threadfence_block();
  __syncthreads();  // all scores of the column are there
  const int b = bin_of();
  const int each = (int)(j.n_found / j.n_columns);
  const bool mine = group_of() == 0;
  Best best{-INF, ~0ull, {}};
  bool any_missing = false;
  if (mine) {
    const LevelCandidates own(j, k, first, place, b);
    const double right = own.in ? score_of_parts(j, sum_parts(j, n_nodes, place, 0, b)) : 0.0;
    const double left = own.two_sides ? score_of_parts(j, sum_parts(j, n_nodes, place, 1, b)) : 0.0;
    best = own.best(j, place, b, right, left);
    any_missing = own.any_missing;
  }
  Found* found = of_tree(j, j.found) + place * each;
  if (mine && b > 0 && b < each) {
    found[b] = {-INF, 0, 0, ~0ull, -1, 0};
  }
  write_best(best, -INF, place, any_missing, found);
  if (place == 0) {
    score_nodes(j, first, n_nodes);
  }
}

SAPWOOD_INLINE void score_place(const Job& j, const NodeBlock& node, int place, int turn,
                                OwnScore& own) {
#ifdef SAPWOOD_PLAIN
  score_column<SAPWOOD_COUNTS>(j, node.x, node.id, place, node.first_slot, turn, own);
#else
  if (growth_of(j).count_parts > 0) {
    score_column<true>(j, node.x, node.id, place, node.first_slot, turn, own);
  } else {
    score_column<false>(j, node.x, node.id, place, node.first_slot, turn, own);
  }
#endif
}

SAPWOOD_BOUNDED(256, 4) void score_level(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const NodeBlock node(j, step);
  if (!node.in) {
    return;
  }
  OwnScore own;
  node.each_place(j, [&](int place, int& turn) {
    score_place(j, node, place, turn, own);
    if (node.id == 0) {
      choose_here(j, given + place_of_tree(), 0, 1, place);
    }
  });
}

// A level of few nodes at once: a block has a column of all of them, a group of its threads a node.
// Its columns are no categories.
SAPWOOD_BOUNDED(MAX_GROUPS* TILE_BINS, 2) void score_whole_level(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const NodeBlock node(j, step, group_of());
  if (!node.in) {
    return;  // all nodes of a level are searched, or none
  }
  OwnScore own;
  score_place(j, node, blockIdx.y, 0, own);
  choose_here(j, given + place_of_tree(), node.id - node.x, blockDim.x / TILE_BINS, blockIdx.y);
}

// The candidates of a level, by their sums over the nodes in the order of ids; a thread has a bin
// of a place. The best of every block is kept; the last block has the level's own score.
SAPWOOD_BOUNDED(64, 8) void choose_level(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const auto [n_nodes, first, at, place, b] = LevelBin(j, step);
  if (n_nodes == 0) {
    return;
  }
  if (blockIdx.x == j.n_found) {
    return score_nodes(j, first, n_nodes);
  }
  const LevelCandidates own(j, given + place_of_tree(), first, place, b);
  double right = 0.0;
  double left = 0.0;
  if (own.in) {
    right = score_of_parts(j, sum_parts(j, n_nodes, place, 0, b));
  }
  if (own.two_sides) {
    left = score_of_parts(j, sum_parts(j, n_nodes, place, 1, b));
  }
  write_best(own.best(j, place, b, right, left), -INF, place, own.any_missing,
             of_tree(j, j.found) + blockIdx.x);
}

}  // namespace sapwood
