// The split search on the device: a block has a node and a tile of 32 columns; a thread has some bins of one column.
// Sums are exact integers and scores one fixed expression of them, so the order in which candidates are compared is free.
#pragma once
#include "cuda/growth.h"

namespace sapwood {

struct TileSearch {  // shared by the threads of a block
  Sums group[SEARCH_WARPS][LANES];  // sums of the bins of each thread
  Sums missing[LANES];
  double score[SEARCH_WARPS];
  uint64_t order[SEARCH_WARPS];
  int winner;
};

// Own bins of a column; of a larger child they are what the smaller one leaves of the parent's, and are stored.
inline Sums load_bins(const Job& j, const Node& n, int id, int tile, int first, Sums* own) {
  const int lane = threadIdx.x % LANES;
  const int64_t at = tile * TILE_SUMS + first * LANES + lane;
  Sums* mine = j.histograms + n.slot * j.histogram_size + at;
  const bool rest = id != 0 && n.slot < j.growth->first_slot;
  const Sums* small = rest ? j.histograms + j.nodes[sibling(id)].slot * j.histogram_size + at : nullptr;
  Sums sum;
#pragma unroll
  for (int b = 0; b < OWN_BINS; b++) {
    own[b] = mine[b * LANES];
    if (rest) own[b] = own[b] - small[b * LANES];
  }
#pragma unroll
  for (int b = 0; b < OWN_BINS; b++) {
    sum = sum + own[b];
    if (rest) mine[b * LANES] = own[b];
  }
  return sum;
}

template <bool PLAIN>
inline double score_candidate(Sums l, Sums r, int bin, const ScoreRule& rule) {
  if constexpr (!PLAIN) return score_split(l, r, bin, rule);
  const Penalty& p = rule.penalty;  // soft(g, 0) is g
  const double gl = (double)l.g, hl = (double)l.h, gr = (double)r.g, hr = (double)r.h, bl = hl + p.lambda,
               br = hr + p.lambda;
  return ((gl * gl) * br + (gr * gr) * bl) / (bl * br);
}

struct Best {
  double score;
  uint64_t order;
  Sums left;
};

// The candidates of a thread's bins. before: sums of the bins below them
template <bool PLAIN>
inline void scan_bins(const Sums* own, Sums before, int first, int n_bins, Sums missing, Sums total, int column,
                      const ScoreRule& rule, Best& best) {
  const bool any_missing = missing.h > 0;
  auto consider = [&](Sums l, int b, bool missing_left) {
    const Sums r = total - l;
    if (!admits(l, r, rule.penalty)) return;
    const double s = score_candidate<PLAIN>(l, r, b, rule);
    const uint64_t order = (uint64_t)column << 32 | (uint64_t)(2 * b + !missing_left);
    if (s > best.score) best = {s, order, l};
  };
  Sums l = before;
#pragma unroll
  for (int i = 0; i < OWN_BINS; i++) {
    const int b = first + i;
    l = l + own[i];
    if (b >= n_bins || (b == n_bins - 1 && !any_missing)) continue;
    if (any_missing && b < n_bins - 1) consider(l + missing, b, true);
    consider(l, b, false);
  }
}

// The thread with the best candidate of the block writes it.
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
  for (int w = 0; w < SEARCH_WARPS; w++)
    if (beats(s.score[w], s.order[w], score, order)) score = s.score[w], order = s.order[w];
  if (!(score > bar)) {
    if (threadIdx.x == 0) *out = {-INF, 0, 0, ~0ull, -1, 0};
  } else if (best.order == order) {
    *out = {score, best.left.g, best.left.h, order, place, seen_missing};
  }
}

template <bool PLAIN>
inline void search_tile(const Job& j, int x) {
  __shared__ TileSearch s;
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, tile = blockIdx.y, first = warp * OWN_BINS;
  const int id = x & 1 ? sibling(j.jobs[x / 2]) : j.jobs[x / 2];
  Node& n = j.nodes[id];
  const int place = tile * LANES + lane, column = j.column_of[place], n_bins = j.n_bins[place];
  Sums own[OWN_BINS];
  s.group[warp][lane] = load_bins(j, n, id, tile, first, own);
#pragma unroll
  for (int b = 0; b < OWN_BINS; b++)
    if (first + b == n_bins) s.missing[lane] = own[b];
  __syncthreads();
  Sums before, total;
  for (int w = 0; w < SEARCH_WARPS; w++) {
    if (w == warp) before = total;
    total = total + s.group[w][id == 0 ? 0 : lane];
  }
  if (id == 0 && lane != 0) {
    before = Sums{};
    for (int w = 0; w < warp; w++) before = before + s.group[w][lane];
  }
  if (id != 0) total = {n.g, n.h};
  ScoreRule rule{j.growth->penalty};
  Node whole{};
  whole.g = total.g, whole.h = total.h, whole.low = n.low, whole.high = n.high;
  const double own_score = id == 0 ? score_of(whole, j, rule.penalty) : n.score, bar = must_exceed(own_score);
  if (id == 0 && tile == 0 && threadIdx.x == 0) n.g = total.g, n.h = total.h, n.score = own_score;
  if (j.direction != nullptr)
    rule.bounded = true, rule.low = n.low, rule.high = n.high, rule.direction = j.direction[place],
    rule.free_bin = n_bins - 1;
  Best best{bar, ~0ull, {}};
  const int64_t words = (j.n_tiles * LANES + LANES - 1) / LANES;
  const bool allowed = column >= 0 && (j.allowed == nullptr || (j.allowed[x * words + tile] >> lane & 1));
  if (allowed) scan_bins<PLAIN>(own, before, first, n_bins, s.missing[lane], total, column, rule, best);
  write_best(best, bar, place, s.missing[lane].h > 0, s, j.found + x * (j.n_tiles + j.n_wide) + tile);
}

SAPWOOD_KERNEL void search(const Job* job, int, int) {
  const Job& j = *job;
  const Growth& t = *j.growth;
  if (t.n_jobs == 0) return;
  const bool root = t.n_batch == 0;
  const int x = blockIdx.x, n = root ? 1 : 2 * t.n_jobs;
  if (x < n) {
    if (is_plain(t.penalty) && j.direction == nullptr) search_tile<true>(j, x);
    else search_tile<false>(j, x);
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
