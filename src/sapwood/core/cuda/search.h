// The split search on the device: a warp has a column of a node, and a lane some of its bins, which follow each other.
// Sums are exact integers and scores one fixed expression of them, so the order in which candidates are compared is free.
#pragma once
#include "cuda/growth.h"

namespace sapwood {

#if defined(SAPWOOD_PLAIN) && SAPWOOD_PLAIN == 1 && SAPWOOD_COUNTS == 0
constexpr int SEARCH_BLOCKS = 3;  // of a multiprocessor: the plain search takes few registers
#else
constexpr int SEARCH_BLOCKS = 2;
#endif

// Far more than a score may lose by rounding: a quotient that misses a bar by this factor cannot exceed it.
constexpr double MARGIN = 1.0 - 0x1p-40;

// The node that is searched in place x: the smaller child of a job, or its sibling.
inline int node_of(const Job& j, int x) { return x & 1 ? sibling(j.jobs[x / 2]) : j.jobs[x / 2]; }

// The place that a warp has.
inline int own_place() { return (int)(blockIdx.y * (blockDim.x / LANES) + threadIdx.x / LANES); }
inline bool is_padding(const Job& j) { return own_place() >= (int)j.n_columns; }

// The sum of this lane and those before it. All lanes of a warp together.
SAPWOOD_INLINE Sums up_to_lane(Sums x) {
  const int lane = threadIdx.x % LANES;
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    const Sums other{__shfl_up_sync(ALL_LANES, (long long)x.g, step), __shfl_up_sync(ALL_LANES, (long long)x.h, step)};
    if (lane >= step) x = x + other;
  }
  return x;
}
SAPWOOD_INLINE Sums from_lane(Sums x, int lane) {
  return {__shfl_sync(ALL_LANES, (long long)x.g, lane), __shfl_sync(ALL_LANES, (long long)x.h, lane)};
}

// One column of a node, for the lanes of a warp. Of a larger child its bins are what the smaller one leaves of the
// parent's, and are stored as they are read. Loops are not unrolled: each kernel runs its code once, so that fetching
// the instructions takes most of the time.
template <bool COUNTS>
struct WarpColumn {
  int id, place, column, n_bins;
  Sums total, missing;
  int64_t all_rows = 0, missing_rows = 0;
  double own_score;
  ScoreRule rule;

  SAPWOOD_INLINE WarpColumn(const Job& j, int x)
      : id(node_of(j, x)), place(own_place()), column(j.column_of[place]), n_bins(j.n_bins[place]) {
    Node& n = j.nodes[id];
    const int64_t at = place / LANES * TILE_SUMS + place % LANES;
    rest_ = id != 0 && n.slot < j.growth->first_slot, packed_ = n.packed != 0;
    sums_ = j.histograms + n.slot * j.histogram_size + at, small_ = sums_;
    if (COUNTS) counts_ = j.counts + n.slot * j.histogram_size + at, small_counts_ = counts_;
    if (rest_) {
      const Node& small = j.nodes[sibling(id)];
      small_ = j.histograms + small.slot * j.histogram_size + at, small_packed_ = small.packed != 0;
      if (COUNTS) small_counts_ = j.counts + small.slot * j.histogram_size + at;
    }
    missing = bin(n_bins), total = {n.g, n.h};
    if (COUNTS) missing_rows = count(n_bins);
    if (id == 0 || COUNTS) add_all();
    __syncwarp(ALL_LANES);  // all lanes have read the missing bin before one of them stores it
    rule.penalty = j.growth->penalty;
    if (j.direction != nullptr)
      rule.bounded = true, rule.low = n.low, rule.high = n.high, rule.direction = j.direction[place],
      rule.free_bin = n_bins - 1;
    own_score = score_of(total, n, j, rule.penalty);
    if (place == 0 && threadIdx.x % LANES == 0) n.g = total.g, n.h = total.h, n.score = own_score;
  }

  SAPWOOD_INLINE Sums bin(int b) const {
    const Sums own = of(sums_[b * LANES], packed_);
    return rest_ ? own - of(small_[b * LANES], small_packed_) : own;
  }
  SAPWOOD_INLINE int64_t count(int b) const {
    return rest_ ? counts_[b * LANES] - small_counts_[b * LANES] : counts_[b * LANES];
  }

  // f(bin, sums up to it, rows up to it) for every bin of values; 64 bins at a time, two of them a lane's
  template <class F>
  SAPWOOD_INLINE void each_bin(F&& f) const {
    const int lane = threadIdx.x % LANES;
    Sums before, next[2] = {bin(2 * lane), bin(2 * lane + 1)};
    int64_t rows_before = 0, next_rows[2] = {0, 0};
    if (COUNTS) next_rows[0] = count(2 * lane), next_rows[1] = count(2 * lane + 1);
#pragma unroll 1
    for (int first = 0; first < TILE_BINS; first += 2 * LANES) {
      const int b = first + 2 * lane, ahead = b + 2 * LANES;
      const Sums one = next[0], two = next[1];
      const int64_t rows_one = next_rows[0], rows_two = next_rows[1];
      if (first + 2 * LANES < TILE_BINS) {
        next[0] = bin(ahead), next[1] = bin(ahead + 1);
        if (COUNTS) next_rows[0] = count(ahead), next_rows[1] = count(ahead + 1);
      }
      if (rest_) sums_[b * LANES] = one, sums_[(b + 1) * LANES] = two;
      if (COUNTS && rest_) counts_[b * LANES] = rows_one, counts_[(b + 1) * LANES] = rows_two;
      const Sums l = before + up_to_lane(one + two);
      int64_t rows = 0;
      if (COUNTS) rows = rows_before + up_to_lane(Sums{rows_one + rows_two, 0}).g;
#pragma unroll 1
      for (int i = 0; i < 2; i++) f(b + i, i ? l : l - two, i ? rows : rows - rows_two);
      before = from_lane(l, LANES - 1);
      if (COUNTS) rows_before = __shfl_sync(ALL_LANES, (long long)rows, LANES - 1);
    }
  }

 private:
  SAPWOOD_INLINE static Sums of(Sums stored, bool packed) { return packed ? unpack(stored.g) : stored; }
  SAPWOOD_INLINE void add_all() {  // the root has its sums from here
    Sums sum;
#pragma unroll 1
    for (int b = threadIdx.x % LANES; b < TILE_BINS; b += LANES) {
      if (id == 0) sum = sum + bin(b);
      if (COUNTS) all_rows += count(b);
    }
    if (id == 0) total = {warp_sum(sum.g), warp_sum(sum.h)};
    if (COUNTS) all_rows = warp_sum(all_rows);
  }

  Sums* sums_;
  const Sums* small_;
  int64_t *counts_ = nullptr, *small_counts_ = nullptr;
  bool rest_, packed_, small_packed_ = false;
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

// The candidates of a column, as far as a lane has them.
template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void scan_bins(const WarpColumn<COUNTS>& c, bool allowed, double least, Best& best) {
  const bool any_missing = c.missing.h > 0;
  const int last = any_missing ? c.n_bins - 1 : c.n_bins - 2;
  c.each_bin([&](int b, Sums values, int64_t rows) {
#pragma unroll 1
    for (int side = any_missing && b < c.n_bins - 1; side >= 0; side--) {  // missing left, then right
      const Sums l = side ? values + c.missing : values, r = c.total - l;
      bool in = allowed && b <= last && admits(l, r, c.rule.penalty);
      if constexpr (COUNTS) {
        const int64_t left = rows + (side ? c.missing_rows : 0);
        in = in && (double)left >= least && (double)(c.all_rows - left) >= least;
      }
      if (!in) continue;
      const double s = score_candidate<PLAIN>(l, r, b, c.rule, best.score);
      if (s > best.score) best = {s, (uint64_t)c.column << 32 | (uint64_t)(2 * b + !side), l};
    }
  });
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

// The minimum count of a side; rows are not counted where hessians do.
inline double least_rows(const Job& j) { return j.growth->counts_rows ? j.growth->min_count : -1.0; }

inline bool may_use(const Job& j, int x, int column, int place) {
  return column >= 0 && (j.allowed == nullptr || (j.allowed[x * j.n_tiles + place / LANES] >> place % LANES & 1));
}

template <bool PLAIN, bool COUNTS>
SAPWOOD_INLINE void search_column(const Job& j, int x) {
  if (is_padding(j)) return write_none(j.found + x * j.n_found + own_place());
  const WarpColumn<COUNTS> c(j, x);
  const double bar = must_exceed(c.own_score);
  Best best{bar, ~0ull, {}};
  scan_bins<PLAIN, COUNTS>(c, may_use(j, x, c.column, c.place), least_rows(j), best);
  write_best(best, bar, c.place, c.missing.h > 0, j.found + x * j.n_found + c.place);
}

SAPWOOD_BOUNDED(256, SEARCH_BLOCKS) void search(SAPWOOD_JOB, int, int) {
  const Job& j = job;
  const Growth& t = *j.growth;
  if (t.n_jobs == 0) return;
  const bool root = t.n_batch == 0;
  const int x = blockIdx.x, n = root ? 1 : 2 * t.n_jobs;
  if (x < n) {
#ifdef SAPWOOD_PLAIN  // compiled for these rules alone
    search_column<SAPWOOD_PLAIN, SAPWOOD_COUNTS>(j, x);
#else
    const bool plain = is_plain(t.penalty) && j.direction == nullptr;
    if (plain && !t.counts_rows) search_column<true, false>(j, x);
    else if (plain) search_column<true, true>(j, x);
    else if (!t.counts_rows) search_column<false, false>(j, x);
    else search_column<false, true>(j, x);
#endif
  }
  // Few nodes: the last block of all has a warp for each. Many: the last block of each node.
  const int n_warps = blockDim.x / LANES;
  const bool few = n <= n_warps;
  if (!few && x < n && last_block(j.found_arrived + x, gridDim.y) && threadIdx.x < LANES)
    take_best(j, x, node_of(j, x));
  if (!last_block(j.arrived + 1, gridDim.x * gridDim.y)) return;
  if (few && (int)threadIdx.x / LANES < n) take_best(j, threadIdx.x / LANES, node_of(j, threadIdx.x / LANES));
  __syncthreads();
  advance(j);
  __syncthreads();
  if (threadIdx.x == 0) j.growth->n_jobs = 0;
}

}  // namespace sapwood
