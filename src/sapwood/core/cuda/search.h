// The split search on the device: a warp has a column of a node, and a lane some of its bins, which follow each other.
// Sums are exact integers and scores one fixed expression of them, so the order in which candidates are compared is free.
#pragma once
#include "cuda/growth.h"

namespace sapwood {

constexpr int OWN_BINS = TILE_BINS / LANES;  // bins of a lane

// Far more than a score may lose by rounding: a quotient that misses a bar by this factor cannot exceed it.
constexpr double MARGIN = 1.0 - 0x1p-40;

// The place that a warp has.
inline int own_place() { return (int)(blockIdx.y * (blockDim.x / LANES) + threadIdx.x / LANES); }
inline bool is_padding(const Job& j) { return own_place() >= (int)j.n_columns; }

// The sum of the lanes before this one. All lanes of a warp together.
inline int64_t before_lane(int64_t x) {
  const int lane = threadIdx.x % LANES;
  int64_t up = x;
  for (int step = 1; step < LANES; step *= 2) {
    const int64_t other = __shfl_up_sync(ALL_LANES, (long long)up, step);
    if (lane >= step) up += other;
  }
  return up - x;
}

// One column of a node, as one lane sees it. Of a larger child the bins are what the smaller one leaves of the parent's,
// and are stored.
template <bool COUNTS>
struct WarpColumn {
  int id, place, column, n_bins, first;
  Sums bins[OWN_BINS], before, total, missing;
  int64_t counts[COUNTS ? OWN_BINS : 1], rows = 0, all_rows = 0, missing_rows = 0;  // rows: before the own bins
  double own_score;
  ScoreRule rule;

  static SAPWOOD_INLINE Sums of(Sums stored, bool packed) { return packed ? unpack(stored.g) : stored; }
  static SAPWOOD_INLINE Sums from_lane(Sums x, int lane) {
    return {__shfl_sync(ALL_LANES, (long long)x.g, lane), __shfl_sync(ALL_LANES, (long long)x.h, lane)};
  }

  SAPWOOD_INLINE WarpColumn(const Job& j, int x)
      : id(x & 1 ? sibling(j.jobs[x / 2]) : j.jobs[x / 2]),
        place(own_place()),
        column(j.column_of[place]),
        n_bins(j.n_bins[place]),
        first((int)(threadIdx.x % LANES) * OWN_BINS) {
    load(j, j.nodes[id]);
    Sums sum;
#pragma unroll
    for (int b = 0; b < OWN_BINS; b++) sum = sum + bins[b];
    before = {before_lane(sum.g), before_lane(sum.h)};
    Sums last;  // the lane that has the bin of missing values
    int64_t last_rows = 0;
#pragma unroll
    for (int b = 0; b < OWN_BINS; b++) {
      if (b == n_bins % OWN_BINS) last = bins[b];
      if (COUNTS && b == n_bins % OWN_BINS) last_rows = counts[b];
    }
    missing = from_lane(last, n_bins / OWN_BINS);
    if constexpr (COUNTS) {
      int64_t own = 0;
#pragma unroll
      for (int b = 0; b < OWN_BINS; b++) own += counts[b];
      rows = before_lane(own), all_rows = __shfl_sync(ALL_LANES, (long long)(rows + own), LANES - 1);
      missing_rows = __shfl_sync(ALL_LANES, (long long)last_rows, n_bins / OWN_BINS);
    }
    set_rule(j, j.nodes[id], from_lane(before + sum, LANES - 1));
  }

  SAPWOOD_INLINE void load(const Job& j, const Node& n) {
    const int64_t at = place / LANES * TILE_SUMS + first * LANES + place % LANES, mine = n.slot * j.histogram_size + at;
    const bool rest = id != 0 && n.slot < j.growth->first_slot, packed = n.packed != 0;
    Sums* sums = j.histograms + mine;
#pragma unroll
    for (int b = 0; b < OWN_BINS; b++) {
      bins[b] = of(sums[b * LANES], packed);
      if constexpr (COUNTS) counts[b] = j.counts[mine + b * LANES];
    }
    if (!rest) return;
    const Node& small = j.nodes[sibling(id)];
    const int64_t other = small.slot * j.histogram_size + at;
    const bool small_packed = small.packed != 0;
#pragma unroll
    for (int b = 0; b < OWN_BINS; b++) {
      bins[b] = bins[b] - of(j.histograms[other + b * LANES], small_packed);
      if constexpr (COUNTS) counts[b] -= j.counts[other + b * LANES];
    }
#pragma unroll
    for (int b = 0; b < OWN_BINS; b++) {
      sums[b * LANES] = bins[b];
      if constexpr (COUNTS) j.counts[mine + b * LANES] = counts[b];
    }
  }

  SAPWOOD_INLINE void set_rule(const Job& j, Node& n, Sums all) {
    rule.penalty = j.growth->penalty;
    if (id != 0) {
      total = {n.g, n.h}, own_score = n.score;
    } else {  // the root has its sums from here
      Node root{};
      root.g = all.g, root.h = all.h, root.low = -INF, root.high = INF;
      total = all, own_score = score_of(root, j, rule.penalty);
      if (place == 0 && threadIdx.x % LANES == 0) n.g = all.g, n.h = all.h, n.score = own_score;
    }
    if (j.direction != nullptr)
      rule.bounded = true, rule.low = n.low, rule.high = n.high, rule.direction = j.direction[place],
      rule.free_bin = n_bins - 1;
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

// The candidates of a lane's bins.
template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void scan_bins(const WarpColumn<COUNTS>& c, double least, Best& best) {
  const bool any_missing = c.missing.h > 0;
  int64_t rows = c.rows;
  auto consider = [&](Sums l, int b, bool missing_left) {
    const Sums r = c.total - l;
    if (!admits(l, r, c.rule.penalty)) return;
    if constexpr (COUNTS) {
      const int64_t left = rows + (missing_left ? c.missing_rows : 0);
      if ((double)left < least || (double)(c.all_rows - left) < least) return;
    }
    const double s = score_candidate<PLAIN>(l, r, b, c.rule, best.score);
    const uint64_t order = (uint64_t)c.column << 32 | (uint64_t)(2 * b + !missing_left);
    if (s > best.score) best = {s, order, l};
  };
  Sums l = c.before;
#pragma unroll
  for (int i = 0; i < OWN_BINS; i++) {
    const int b = c.first + i;
    l = l + c.bins[i];
    if constexpr (COUNTS) rows += c.counts[i];
    if (b >= c.n_bins || (b == c.n_bins - 1 && !any_missing)) continue;
    if (any_missing && b < c.n_bins - 1) consider(l + c.missing, b, true);
    consider(l, b, false);
  }
}

inline void write_none(Found* out) {
  if (threadIdx.x % LANES == 0) *out = {-INF, 0, 0, ~0ull, -1, 0};
}

// The lane with the best candidate of a warp writes it.
inline void write_best(const Best& best, double bar, int place, bool seen_missing, Found* out) {
  double score = best.score;
  uint64_t order = best.order;
  for (int step = LANES / 2; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, score, step);
    const uint64_t its = __shfl_xor_sync(ALL_LANES, (unsigned long long)order, step);
    if (beats(other, its, score, order)) score = other, order = its;
  }
  if (!(score > bar)) write_none(out);
  else if (best.order == order) *out = {score, best.left.g, best.left.h, order, place, seen_missing};
}

inline bool may_use(const Job& j, int x, int column, int place) {
  return column >= 0 && (j.allowed == nullptr || (j.allowed[x * j.n_tiles + place / LANES] >> place % LANES & 1));
}

template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void search_column(const Job& j, int x) {
  if (is_padding(j)) return write_none(j.found + x * j.n_found + own_place());
  const WarpColumn<COUNTS> c(j, x);
  const double bar = must_exceed(c.own_score);
  Best best{bar, ~0ull, {}};
  if (may_use(j, x, c.column, c.place)) scan_bins<PLAIN, COUNTS>(c, j.growth->min_count, best);
  write_best(best, bar, c.place, c.missing.h > 0, j.found + x * j.n_found + c.place);
}

SAPWOOD_BOUNDED(256, 2) void search(const Job* job, int, int) {
  const Job j = *job;  // a copy: stores cannot change it
  const Growth& t = *j.growth;
  if (t.n_jobs == 0) return;
  const bool root = t.n_batch == 0;
  const int x = blockIdx.x, n = root ? 1 : 2 * t.n_jobs;
  if (x < n) {
    const bool plain = is_plain(t.penalty) && j.direction == nullptr;
    if (plain && !t.counts_rows) search_column<true, false>(j, x);
    else if (plain) search_column<true, true>(j, x);
    else if (!t.counts_rows) search_column<false, false>(j, x);
    else search_column<false, true>(j, x);
  }
  if (!last_block(j.arrived + 1, gridDim.x * gridDim.y)) return;
  for (int i = threadIdx.x / LANES; i < n; i += blockDim.x / LANES)
    take_best(j, i, i & 1 ? sibling(j.jobs[i / 2]) : j.jobs[i / 2]);
  __syncthreads();
  advance(j);
  __syncthreads();
  if (threadIdx.x == 0) j.growth->n_jobs = 0;
}

}  // namespace sapwood
