// The split search on the device: a block has some columns of a node, one at a time, and a thread a bin: the chain of steps from a sum to a
// score is long, so that one candidate after the other in a thread takes most of the time. Sums are exact integers and
// scores one fixed expression of them, so the order in which candidates are compared is free.
#pragma once
#include "cuda/categories.h"

namespace sapwood {

constexpr int BIN_WARPS = TILE_BINS / LANES;

// Far more than a score may lose by rounding: a quotient that misses a bar by this factor cannot exceed it.
constexpr double MARGIN = 1.0 - 0x1p-40;

// How many nodes a step searches.
inline int n_searched(const Level& level) { return !level.more ? 0 : level.n_batch == 0 ? 1 : 2 * level.n_batch; }

// Sums over the bins up to that of each thread, and over all. All threads of a block, which are as many as bins.
struct BinScan {
  Sums below, total;
  SAPWOOD_INLINE explicit BinScan(Sums own) {
    __shared__ Sums parts[BIN_WARPS];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    below = {up_to_lane(own.g), up_to_lane(own.h)};
    __syncthreads();  // all threads have read the parts of an earlier scan
    if (lane == LANES - 1) parts[warp] = below;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < BIN_WARPS; w++) {
      const Sums part = parts[w];
      if (w < warp) below = below + part;
      total = total + part;
    }
  }
};

struct BinRange {
  int first, last;  // bins that hold rows; last < 0: none does
};
// Of the bins of values. All threads of a block, which are as many as bins.
inline BinRange occupied(bool holds) {
  __shared__ unsigned votes[BIN_WARPS];
  const unsigned vote = __ballot_sync(ALL_LANES, holds);
  __syncthreads();
  if (threadIdx.x % LANES == 0) votes[threadIdx.x / LANES] = vote;
  __syncthreads();
  BinRange range{TILE_BINS, -1};
  for (int b = 0; b < TILE_BINS; b++)
    if (votes[b / LANES] >> b % LANES & 1) range = {range.last < 0 ? b : range.first, b};
  return range;
}

// extra_trees: a random cut between bins that hold rows, or of values against missing ones; -1: none.
inline int random_cut(const Job& j, int k, int id, int column, int n_bins, BinRange range, bool missing) {
  const int n_cuts = range.last > range.first ? range.last - range.first : 0,
            among = range.last < 0 ? 0 : n_cuts + missing;
  if (among == 0) return -1;
  const uint64_t own = fold(fold(j.turn->cut_key, (uint64_t)(j.turn->tree + k)), (uint64_t)id);
  const int at = (int)multiply_high(draw(own, (uint64_t)column), (uint64_t)among);
  return at < n_cuts ? range.first + at : n_bins - 1;
}

// One column of a node; a thread has a bin. Of a larger child the sums are what the smaller one leaves of the parent's,
// and are stored.
template <bool COUNTS>
struct BlockColumn {
  int place, column, n_bins;
  bool holds_rows;
  Sums own, below, total, missing;  // own: of the bin of this thread; below: up to it
  int64_t own_rows = 0, rows_below = 0, all_rows = 0, missing_rows = 0;
  double own_score;
  ScoreRule rule;

  // turn: 0 and 1 in turn, where a block has several columns
  SAPWOOD_INLINE BlockColumn(const Job& j, Node& n, int id, int place, int first_slot, int turn)
      : place(place), column(j.column_of[place]), n_bins(j.n_bins[place]) {
    __shared__ Sums shared_missing[2];
    __shared__ int64_t shared_rows[2];
    const int b = threadIdx.x, at = b * LANES + place % LANES;
    const bool rest = id != 0 && n.slot < first_slot, packed = n.packed != 0;
    const int64_t tile = n.slot * j.histogram_size + place / LANES * TILE_SUMS;
    own = load_sums(j.histograms + tile, at, packed);
    int64_t rows = COUNTS ? j.counts[tile + at] : 0;
    if (rest) {  // a child of a node whose sums are words has few rows as well
      const Node& small = j.nodes[sibling(id)];
      const int64_t other = small.slot * j.histogram_size + place / LANES * TILE_SUMS;
      own = own - load_sums(j.histograms + other, at, small.packed != 0);
      store_sums(j.histograms + tile, at, own, packed);
      if (COUNTS) j.counts[tile + at] = rows = rows - j.counts[other + at];
    }
    if (b == n_bins) shared_missing[turn] = own, shared_rows[turn] = rows;
    holds_rows = own.h > 0 && b < n_bins, own_rows = rows;
    const BinScan scan(own);
    below = scan.below, total = scan.total, missing = shared_missing[turn];
    if constexpr (COUNTS) {
      const BinScan counted(Sums{rows, 0});
      rows_below = counted.below.g, all_rows = counted.total.g, missing_rows = shared_rows[turn];
    }
    rule.penalty = j.growth->penalty;
    if (MAY_BIND && j.direction != nullptr)
      rule.bounded = true, rule.low = n.low, rule.high = n.high, rule.direction = j.direction[place],
      rule.free_bin = n_bins - 1;
    own_score = score_of(total, n, j, rule.penalty);
    if (place == 0 && b == 0) n.g = total.g, n.h = total.h, n.score = own_score;
  }
};

// A plain score is not divided out where it cannot exceed `bar`.
template <bool PLAIN>
SAPWOOD_INLINE double score_candidate(Sums l, Sums r, int bin, const ScoreRule& rule, double bar) {
  if constexpr (!PLAIN) return score_split(l, r, bin, rule);
  const Penalty& p = rule.penalty;  // soft(g, 0) is g
  const double gl = (double)l.g, hl = (double)l.h, gr = (double)r.g, hr = (double)r.h, bl = hl + p.lambda,
               br = hr + p.lambda, top = (gl * gl) * br + (gr * gr) * bl, below = bl * br;
  return top < below * (bar * MARGIN) ? -INF : top / below;
}

struct Best {
  double score;
  uint64_t order;
  Sums left;
};

// The candidates of the bin of this thread; those that are below `bar` need not be scored.
template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void score_bin(const BlockColumn<COUNTS>& c, double least, double bar, Best& best) {
  const bool any_missing = c.missing.h > 0;
  const int b = threadIdx.x, end = any_missing ? c.n_bins : c.n_bins - 1;
#pragma unroll 1
  for (int side = any_missing && b < c.n_bins - 1; side >= 0 && b < end; side--) {  // missing left, then right
    const Sums l = side ? c.below + c.missing : c.below, r = c.total - l;
    bool in = admits(l, r, c.rule.penalty);
    if constexpr (COUNTS) {
      const int64_t left = c.rows_below + (side ? c.missing_rows : 0);
      in = in && (double)left >= least && (double)(c.all_rows - left) >= least;
    }
    if (!in) continue;
    const double s = score_candidate<PLAIN>(l, r, b, c.rule, bar);
    if (s > best.score) best = {s, (uint64_t)c.column << 32 | (uint64_t)(2 * b + !side), l};
  }
}

// The thread with the best candidate of a block writes it; none does where it does not exceed `bar`.
inline void write_best(const Best& best, double bar, int place, bool seen_missing, Found* out) {
  __shared__ double scores[MAX_WARPS];
  __shared__ uint64_t orders[MAX_WARPS];
  const int lane = threadIdx.x % LANES, n_warps = blockDim.x / LANES;
  double score = best.score;
  uint64_t order = best.order;
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, score, step);
    const uint64_t its = __shfl_xor_sync(ALL_LANES, (unsigned long long)order, step);
    if (beats(other, its, score, order)) score = other, order = its;
  }
  if (lane == 0) scores[threadIdx.x / LANES] = score, orders[threadIdx.x / LANES] = order;
  __syncthreads();
  for (int w = 0; w < n_warps; w++)
    if (beats(scores[w], orders[w], score, order)) score = scores[w], order = orders[w];
  if (!(score > bar)) {
    if (threadIdx.x == 0) *out = {-INF, 0, 0, ~0ull, -1, 0};
  } else if (best.order == order) {
    *out = {score, best.left.g, best.left.h, order, place, seen_missing};
  }
}

// The minimum count of a side; rows are not counted where hessians do.
inline double least_rows(const Job& j) { return j.growth->counts_rows ? j.growth->min_count : -1.0; }

inline bool may_use(const Job& j, int x, int column, int place) {
  return column >= 0 && (!has_columns(j) || (j.allowed[x * j.n_tiles + place / LANES] >> place % LANES & 1));
}

struct BlockBest {  // over the columns of a block
  Best best{-INF, ~0ull, {}};
  double bar = -INF;   // what a split must exceed
  double most = -INF;  // the best score of this warp
  int place = -1;
  bool missing = false;
};

// The sets of a column of categories: a thread has a step.
template <bool COUNTS>
SAPWOOD_INLINE void search_sets(const Job& j, int k, int id, const BlockColumn<COUNTS>& c, BlockBest& found) {
  Steps& s = shared_steps();
  make_steps(j, c.place, c.own, c.own_rows, c.total, weight_of(j, j.nodes[id], c.all_rows), s);
  const int n_front = s.n[0], step = threadIdx.x, at = step < n_front ? step : step - n_front;
  const bool back = step >= n_front, onehot = j.category[c.place] == ONE_HOT;
  if (step >= n_front + s.n[1] || !s.step[back][at].candidate) return;
  if (!is_chosen(j, k, id, c.column, onehot, s.among, step, s.step[back][at].start)) return;
  const Sums l = s.left[back][at], r = c.total - l;
  if (!admits(l, r, c.rule.penalty)) return;
  if (COUNTS && j.growth->counts_rows) {
    const int64_t left = s.rows_left[back][at];
    if ((double)left < least_rows(j) || (double)(c.all_rows - left) < least_rows(j)) return;
  }
  ScoreRule rule = c.rule;
  rule.penalty = category_penalty(j, c.place), rule.direction = 0;
  const double score = score_split(l, r, step, rule);
  if (score > found.best.score)
    found.best = {score, (uint64_t)c.column << 32 | (uint64_t)(2 * step + !s.step[back][at].missing), l};
}

template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void search_column(const Job& j, int k, int x, int id, int place, int first_slot, int turn,
                                  BlockBest& found) {
  const BlockColumn<COUNTS> c(j, j.nodes[id], id, place, first_slot, turn);
  found.bar = must_exceed(c.own_score);
  if (found.best.score < found.bar) found.best.score = found.bar;
  if (found.most < found.bar) found.most = found.bar;
  const bool sets = has_categories(j) && j.category[place];
  int only = -1;  // the one cut that is considered
  if (MAY_BIND && j.extra_trees && !sets) {
    only = random_cut(j, k, id, c.column, c.n_bins, occupied(c.holds_rows), c.missing.h > 0);
    if (only < 0) return;
  }
  if (!may_use(j, x, c.column, c.place)) return;
  const uint64_t order = found.best.order;
  if constexpr (MAY_HAVE_CATEGORIES)
    if (sets) search_sets<COUNTS>(j, k, id, c, found);
  if (!sets && (only < 0 || only == (int)threadIdx.x))
    score_bin<PLAIN, COUNTS>(c, least_rows(j), found.most, found.best);
  if (found.best.order != order) found.place = place, found.missing = c.missing.h > 0;
  found.most = found.best.score;
  for (int step = LANES / 2; step > 0 && (int)gridDim.y < (int)j.n_columns; step /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, found.most, step);
    found.most = other > found.most ? other : found.most;
  }
}

SAPWOOD_BOUNDED(256, 4) void search(SAPWOOD_JOB, int k, int step) {
  const Job& j = job;
  const Level& level = j.levels[step];
  const int x = blockIdx.x, id = level.first_child + x, first_slot = level.first_slot;
  if (x >= n_searched(level)) return;
  if (blockIdx.y == 0 && threadIdx.x == 0) j.n_left[x] = j.n_right[x] = 0;  // for the next step
  BlockBest found;
  for (int place = blockIdx.y, turn = 0; place < (int)j.n_columns; place += gridDim.y, turn ^= 1) {
#ifdef SAPWOOD_PLAIN  // compiled for these rules alone
    search_column<SAPWOOD_PLAIN, SAPWOOD_COUNTS>(j, k, x, id, place, first_slot, turn, found);
#else
    const Growth& t = *j.growth;
    const bool plain = is_plain(t.penalty) && j.direction == nullptr;
    if (plain && t.count_parts == 0) search_column<true, false>(j, k, x, id, place, first_slot, turn, found);
    else if (plain) search_column<true, true>(j, k, x, id, place, first_slot, turn, found);
    else if (t.count_parts == 0) search_column<false, false>(j, k, x, id, place, first_slot, turn, found);
    else search_column<false, true>(j, k, x, id, place, first_slot, turn, found);
#endif
  }
  write_best(found.best, found.bar, found.place, found.missing, j.found + x * j.n_found + blockIdx.y);
  if (!last_block(j.arrived + x, gridDim.y)) return;
  if (threadIdx.x < LANES) take_best(j, j.found + x * j.n_found, gridDim.y, id);
  if constexpr (MAY_HAVE_CATEGORIES) {
    if (!has_categories(j)) return;
    __threadfence_block();
    __syncthreads();
    write_set(j, id);
  }
}

}  // namespace sapwood
