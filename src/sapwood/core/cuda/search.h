// The split search on the device: a block has a node and a tile of 32 columns; a thread has some bins of one column.
// Sums are exact integers and scores one fixed expression of them, so the order in which candidates are compared is free.
#pragma once
#include "cuda/growth.h"

namespace sapwood {

// Far below what a score may lose by rounding: a quotient that misses a bar by this factor cannot exceed it.
constexpr double MARGIN = 1.0 - 0x1p-40;

struct TileSearch {  // shared by the threads of a block
  Sums group[SEARCH_GROUPS][SEARCH_COLUMNS];  // sums of the bins of each thread
  Sums missing[SEARCH_COLUMNS];
  int64_t rows[SEARCH_GROUPS][SEARCH_COLUMNS], missing_rows[SEARCH_COLUMNS];  // the same of counts
  double score[TILE_BINS / LANES];
  uint64_t order[TILE_BINS / LANES];
  int winner;
};

// Sums and counts of a thread's bins in a histogram; of a larger child they are what the smaller one leaves of the
// parent's, and are stored first.
template <bool COUNTS>
struct OwnBins {
  Sums* sums;
  int64_t* counts;
  Sums all;
  int64_t rows = 0;
  bool is_packed;

  static Sums of(Sums stored, bool packed) { return packed ? unpack(stored.g) : stored; }
  Sums at(int b) const { return of(sums[b * LANES], is_packed); }
  OwnBins(const Job& j, const Node& n, int id, int place, int first) {
    const int64_t at = place / LANES * TILE_SUMS + first * LANES + place % LANES,
                  mine = n.slot * j.histogram_size + at;
    sums = j.histograms + mine, counts = COUNTS ? j.counts + mine : nullptr;
    const bool rest = id != 0 && n.slot < j.growth->first_slot;
    const int64_t other = rest ? j.nodes[sibling(id)].slot * j.histogram_size + at : mine;
    const Sums* small = j.histograms + other;
    const bool packed = n.packed != 0, small_packed = rest && j.nodes[sibling(id)].packed != 0;
    is_packed = packed && !rest;
#pragma unroll
    for (int b = 0; b < OWN_BINS; b++) {
      Sums own = of(sums[b * LANES], packed);
      if (rest) own = own - of(small[b * LANES], small_packed), sums[b * LANES] = own;
      all = all + own;
      if constexpr (COUNTS) {
        int64_t count = counts[b * LANES];
        if (rest) count -= j.counts[other + b * LANES], counts[b * LANES] = count;
        rows += count;
      }
    }
  }
};

// A plain score is not divided out where it cannot exceed `bar`.
template <bool PLAIN>
inline double score_candidate(Sums l, Sums r, int bin, const ScoreRule& rule, double bar) {
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

struct Column {  // of a node: what its threads have in common
  Sums missing, total;
  int64_t missing_rows, all_rows;
  int column, n_bins;
  double min_count;
};

// The candidates of a thread's bins. before, rows: sums and counts of the bins below them
template <bool PLAIN, bool COUNTS>
inline void scan_bins(const OwnBins<COUNTS>& own, Sums before, int64_t rows, int first, const Column& c,
                      const ScoreRule& rule, Best& best) {
  const Sums missing = c.missing, total = c.total;
  const int n_bins = c.n_bins, column = c.column;
  const bool any_missing = missing.h > 0;
  auto consider = [&](Sums l, int b, bool missing_left) {
    const Sums r = total - l;
    if (!admits(l, r, rule.penalty)) return;
    if constexpr (COUNTS) {
      const int64_t left = rows + (missing_left ? c.missing_rows : 0);
      if ((double)left < c.min_count || (double)(c.all_rows - left) < c.min_count) return;
    }
    const double s = score_candidate<PLAIN>(l, r, b, rule, best.score);
    const uint64_t order = (uint64_t)column << 32 | (uint64_t)(2 * b + !missing_left);
    if (s > best.score) best = {s, order, l};
  };
  Sums l = before;
#pragma unroll 2
  for (int i = 0; i < OWN_BINS; i++) {
    const int b = first + i;
    l = l + own.at(i);
    if constexpr (COUNTS) rows += own.counts[i * LANES];
    if (b >= n_bins || (b == n_bins - 1 && !any_missing)) continue;
    if (any_missing && b < n_bins - 1) consider(l + missing, b, true);
    consider(l, b, false);
  }
}

// The thread with the best candidate of the block writes it.
template <int WARPS>
inline void write_best(const Best& best, double bar, int place, bool seen_missing, TileSearch& s, Found* out) {
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  double score = best.score;
  uint64_t order = best.order;
  for (int step = LANES / 2; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, score, step);
    const uint64_t its = __shfl_xor_sync(ALL_LANES, (unsigned long long)order, step);
    if (beats(other, its, score, order)) score = other, order = its;
  }
  if (lane == 0) s.score[warp] = score, s.order[warp] = order;
  __syncthreads();
  for (int w = 0; w < WARPS; w++)
    if (beats(s.score[w], s.order[w], score, order)) score = s.score[w], order = s.order[w];
  if (!(score > bar)) {
    if (threadIdx.x == 0) *out = {-INF, 0, 0, ~0ull, -1, 0};
  } else if (best.order == order) {
    *out = {score, best.left.g, best.left.h, order, place, seen_missing};
  }
}

// One column of a node, as one of its threads sees it. All threads of a block make theirs together.
template <bool COUNTS>
struct TileColumn {
  int id, place, column, n_bins, first;
  OwnBins<COUNTS> own;
  Sums before, total, missing;
  int64_t rows = 0, all_rows = 0, missing_rows = 0;  // rows: before the own bins
  double own_score;
  ScoreRule rule;

  TileColumn(const Job& j, int x, TileSearch& s)
      : id(x & 1 ? sibling(j.jobs[x / 2]) : j.jobs[x / 2]),
        place(blockIdx.y * SEARCH_COLUMNS + threadIdx.x % SEARCH_COLUMNS),
        column(j.column_of[place]),
        n_bins(j.n_bins[place]),
        first(threadIdx.x / SEARCH_COLUMNS * OWN_BINS),
        own(j, j.nodes[id], id, place, first) {
    Node& n = j.nodes[id];
    const int mine = threadIdx.x % SEARCH_COLUMNS, group = threadIdx.x / SEARCH_COLUMNS;
    s.group[group][mine] = own.all;
    if (n_bins / OWN_BINS == group) {
      s.missing[mine] = own.at(n_bins % OWN_BINS);
      if constexpr (COUNTS) s.missing_rows[mine] = own.counts[n_bins % OWN_BINS * LANES];
    }
    if constexpr (COUNTS) s.rows[group][mine] = own.rows;
    __syncthreads();
    for (int g = 0; g < SEARCH_GROUPS; g++) {
      if (g < group) before = before + s.group[g][mine];
      if (id == 0) total = total + s.group[g][0];
      if constexpr (COUNTS) all_rows += s.rows[g][mine], rows += g < group ? s.rows[g][mine] : 0;
    }
    missing = s.missing[mine];
    if constexpr (COUNTS) missing_rows = s.missing_rows[mine];
    rule.penalty = j.growth->penalty;
    if (id != 0) {
      total = {n.g, n.h}, own_score = n.score;
    } else {
      Node whole{};
      whole.g = total.g, whole.h = total.h, whole.low = -INF, whole.high = INF;
      own_score = score_of(whole, j, rule.penalty);
      if (blockIdx.y == 0 && threadIdx.x == 0) n.g = total.g, n.h = total.h, n.score = own_score;
    }
    if (j.direction != nullptr)
      rule.bounded = true, rule.low = n.low, rule.high = n.high, rule.direction = j.direction[place],
      rule.free_bin = n_bins - 1;
  }
};

template <bool PLAIN, bool COUNTS>
inline void search_tile(const Job& j, int x, TileSearch& s) {
  const TileColumn<COUNTS> c(j, x, s);
  const double bar = must_exceed(c.own_score);
  Best best{bar, ~0ull, {}};
  const uint32_t* allowed = j.allowed == nullptr ? nullptr : j.allowed + x * j.n_tiles + c.place / LANES;
  const Column column{c.missing, c.total, c.missing_rows, c.all_rows, c.column, c.n_bins, j.growth->min_count};
  if (c.column >= 0 && (allowed == nullptr || (*allowed >> c.place % LANES & 1)))
    scan_bins<PLAIN, COUNTS>(c.own, c.before, c.rows, c.first, column, c.rule, best);
  write_best<SEARCH_WARPS>(best, bar, c.place, c.missing.h > 0, s, j.found + x * j.n_found + blockIdx.y);
}

SAPWOOD_BOUNDED(256, 2) void search(const Job* job, int, int) {
  const Job j = *job;  // a copy: stores cannot change it
  const Growth& t = *j.growth;
  __shared__ TileSearch s;
  if (t.n_jobs == 0) return;
  const bool root = t.n_batch == 0;
  const int x = blockIdx.x, n = root ? 1 : 2 * t.n_jobs;
  if (x < n) {
    const bool plain = is_plain(t.penalty) && j.direction == nullptr;
    if (plain && !t.counts_rows) search_tile<true, false>(j, x, s);
    else if (plain) search_tile<true, true>(j, x, s);
    else if (!t.counts_rows) search_tile<false, false>(j, x, s);
    else search_tile<false, true>(j, x, s);
  }
  if (!last_block(j.arrived + 1, gridDim.x * gridDim.y)) return;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    take_best(j, i, i & 1 ? sibling(j.jobs[i / 2]) : j.jobs[i / 2]);
  __syncthreads();
  advance(j);
  __syncthreads();
  if (threadIdx.x == 0) j.growth->n_jobs = 0;
}

}  // namespace sapwood
