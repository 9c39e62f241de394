// The frontier on the device: the best split of every node that was searched, and the nodes that are split next. Every
// block finds those nodes for itself when it starts, so that neither the host nor a barrier of the grid takes part.
#pragma once
#include "cuda/job.h"
#include "cuda/platform.h"
#include "math/gain.h"
#include "math/split.h"

namespace sapwood {

inline int sibling(int id) { return id & 1 ? id + 1 : id - 1; }
inline bool beats(double score, uint64_t order, double other, uint64_t other_order) {
  return score > other || (score == other && order < other_order);
}

#if defined(SAPWOOD_PLAIN) && SAPWOOD_PLAIN == 1
constexpr bool MAY_BIND = false;  // compiled for a search without monotone constraints
#else
constexpr bool MAY_BIND = true;
#endif

inline double score_of(Sums s, const Node& n, const Job& j, const Penalty& p) {
  if (s.h <= 0) return 0.0;
  if (MAY_BIND && j.direction != nullptr) return score_at(s, p, bounded_weight(s, p, n.low, n.high));
  return node_score(s, p);
}

// Monotone bounds of the children of a node that was just split: the middle of their values lies between the two.
inline void bind_children(const Job& j, const Node& n, const Penalty& p, Node& l, Node& r) {
  const int d = j.direction[n.place];
  if (d == 0 || l.h <= 0 || r.h <= 0 || n.bin == j.n_bins[n.place] - 1) return;
  const double wl = bounded_weight({l.g, l.h}, p, n.low, n.high), wr = bounded_weight({r.g, r.h}, p, n.low, n.high),
               middle = 0.5 * (wl + wr);
  (d > 0 ? l : r).high = middle, (d > 0 ? r : l).low = middle;
}

// Splits a node of the frontier: its children become nodes. `at`: the first child's id
inline void make_children(const Job& j, const Node& n, int id, int at, int step) {
  Node l{}, r{};
  l.g = n.left_g, l.h = n.left_h, r.g = n.g - n.left_g, r.h = n.h - n.left_h;
  l.depth = r.depth = n.depth + 1, l.column = r.column = -1, l.parent = r.parent = id;
  l.groups = r.groups = j.groups_of == nullptr ? ~0ull : n.groups & j.groups_of[n.place];
  l.low = r.low = n.low, l.high = r.high = n.high;
  if (MAY_BIND && j.direction != nullptr) bind_children(j, n, j.growth->penalty, l, r);
  j.nodes[id].left = at, j.nodes[id].step = step;
  j.nodes[at] = l, j.nodes[at + 1] = r;
}

// The best of what was found for the columns of one node. All lanes of a warp; every lane gets it.
inline Found best_found(const Found* found, int n) {
  const int lane = threadIdx.x % LANES;
  double score = -INF;
  uint64_t order = ~0ull;
  int at = 0;
#pragma unroll 1
  for (int k = lane; k < n; k += LANES)
    if (beats(found[k].score, found[k].order, score, order)) score = found[k].score, order = found[k].order, at = k;
#pragma unroll 1
  for (int step = LANES / 2; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, score, step);
    const uint64_t its = __shfl_xor_sync(ALL_LANES, (unsigned long long)order, step);
    const int place = __shfl_xor_sync(ALL_LANES, at, step);
    if (beats(other, its, score, order)) score = other, order = its, at = place;
  }
  return found[at];
}

// The best split of a node, from the best of every column. All lanes of a warp.
inline void take_best(const Job& j, const Found* found, int n_found, int id) {
  const Found best = best_found(found, n_found);
  if (threadIdx.x % LANES != 0) return;
  Node& n = j.nodes[id];
  n.column = -1, n.gain = 0.0;
  if (best.place < 0) return;
  n.place = best.place, n.column = (int32_t)(best.order >> 32), n.bin = (int32_t)((best.order & 0xffffffffu) >> 1);
  n.left_g = best.g, n.left_h = best.h;
  n.missing_left = best.seen_missing ? (best.order & 1) == 0 : best.h >= n.h - best.h;
  const double gain = 0.5 * (best.score - n.score) * j.growth->unit;
  n.gain = gain > j.min_split_gain ? gain : 0.0;
}

constexpr int MAX_HERE = 512;  // nodes of a batch whose items are in shared memory
constexpr int MAX_WARPS = 32;

struct LevelSplit {  // symmetric: the split of all nodes of a level
  int32_t worth, place, column, bin, missing_left;
};

struct Batch {
  Level old, level;        // the tree before the step and after it
  const BatchItem* items;  // (level.n_batch + 1) the last has the number of rows
  LevelSplit split;
  uint64_t set[SET_WORDS];  // of a split by categories
};

struct Scanned {
  int64_t before, all;
};
inline int64_t up_to_lane(int64_t x) {  // the sum of this lane and those before it. All lanes of a warp
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    const int64_t other = __shfl_up_sync(ALL_LANES, (long long)x, step);
    if ((int)threadIdx.x % LANES >= step) x += other;
  }
  return x;
}

// The sum of what the threads before this one have, and that of all. All threads of a block.
inline Scanned block_scan(int64_t x) {
  __shared__ int64_t parts[MAX_WARPS];
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, n_warps = blockDim.x / LANES;
  const int64_t up = up_to_lane(x);
  __syncthreads();  // all threads have read the parts of an earlier scan
  if (lane == LANES - 1) parts[warp] = up;
  __syncthreads();
  const int64_t own = lane < n_warps ? parts[lane] : 0, sum = up_to_lane(own);
  return {__shfl_sync(ALL_LANES, (long long)(sum - own), warp) + up - x,
          __shfl_sync(ALL_LANES, (long long)sum, LANES - 1)};
}

// Symmetric: the best candidate of the level that was searched last. All threads of a block.
inline LevelSplit best_of_level(const Job& j) {
  __shared__ LevelSplit split;
  if (threadIdx.x < LANES) {
    const Found best = best_found(j.found, (int)j.n_found);
    const Growth& t = *j.growth;
    if (threadIdx.x == 0) {
      split = {0, 0, -1, 0, 0};
      if (best.place >= 0 && 0.5 * (best.score - t.level_score) * t.unit - j.min_split_gain > 0.0) {
        const int bin = (int)((best.order & 0xffffffffu) >> 1);
        const int64_t below = j.root_below[best.place * 256 + bin];  // the level has all rows of the root
        const bool left = best.seen_missing ? (best.order & 1) == 0 : below >= j.nodes[0].h - below;
        split = {1, best.place, (int32_t)(best.order >> 32), bin, left};
      }
    }
  }
  __syncthreads();
  return split;
}

// Symmetric: the codes that go right in a split by categories of a level. All threads of a block.
inline void set_of_level(const Job& j, const LevelSplit& split, uint64_t* set) {
  const bool any = has_categories(j) && split.worth && j.category[split.place];
  uint32_t* words = (uint32_t*)set;
  if (threadIdx.x < 2 * SET_WORDS) words[threadIdx.x] = ~0u;
  __syncthreads();
  const CodeStep* steps = j.steps + (int64_t)split.place * 256;
  for (int k = threadIdx.x; any && k <= split.bin; k += blockDim.x)
    if (steps[k].start == steps[split.bin].start)
      atomicAnd(words + steps[k].code / LANES, ~(1u << steps[k].code % LANES));
  __syncthreads();
  const int missing = any ? j.n_bins[split.place] : 0;
  if (any && threadIdx.x == 0) {
    if (split.missing_left) set[missing >> 6] &= ~(1ull << (missing & 63));
    else set[missing >> 6] |= 1ull << (missing & 63);
  }
  __syncthreads();
}

// A whole level, in the order of ids, while leaves are left.
inline Level next_level(const Job& j, const Level& old, int step, const LevelSplit& split, BatchItem* items, int n) {
  const bool symmetric = is_symmetric(j);
  const int room = symmetric || j.max_leaves == 0 ? 0x7fffffff : (int)j.max_leaves - old.n_leaves;
  constexpr int ROW_BITS = 40;
  int64_t sum = 0;  // nodes, then rows
  for (int first = 0; first < n; first += blockDim.x) {
    const int i = first + threadIdx.x, id = old.first_child + i;
    int64_t own = 0;
    if (i < n && (symmetric ? split.worth != 0 : j.nodes[id].gain > 0.0))
      own = ((int64_t)1 << ROW_BITS) + (j.nodes[id].end - j.nodes[id].begin);
    const Scanned scanned = block_scan(own);
    const int64_t before = sum + scanned.before, rank = before >> ROW_BITS;
    const int at = (int)(before & (((int64_t)1 << ROW_BITS) - 1));
    if (own != 0 && rank <= room) items[rank] = {id, at};  // the first that has no room ends the list
    sum += scanned.all;
  }
  const int n_open = (int)(sum >> ROW_BITS), taken = n_open < room ? n_open : room;
  if (n_open <= room && threadIdx.x == 0) items[taken] = {-1, (int32_t)(sum & (((int64_t)1 << ROW_BITS) - 1))};
  __syncthreads();
  const int n_leaves = old.n_leaves + taken;
  const bool leaves_left = symmetric || j.max_leaves == 0 || n_leaves < j.max_leaves;
  const bool more = taken > 0 && leaves_left && !(j.max_depth > 0 && step >= j.max_depth);
  return {old.n_nodes + 2 * taken,          n_leaves, taken,          old.n_nodes, old.n_slots,
          old.n_slots + (more ? taken : 0), more,     items[taken].at};
}

// The node that gains most. A node that some block has marked as split in this very step still counts.
inline Level next_best(const Job& j, const Level& old, int step, BatchItem* items) {
  __shared__ double gains[MAX_WARPS];
  __shared__ int ids[MAX_WARPS];
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, n_warps = blockDim.x / LANES;
  const bool open = j.max_leaves == 0 || old.n_leaves < j.max_leaves;
  double best = 0.0;
  int id = 0x7fffffff;
#pragma unroll 1
  for (int i = threadIdx.x; i < old.n_nodes && open; i += blockDim.x) {
    const double gain = j.nodes[i].gain;
    const int split = j.nodes[i].step;
    if ((split == 0 || split >= step) && gain > best) best = gain, id = i;
  }
#pragma unroll 1
  for (int by = LANES / 2; by > 0; by /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, best, by);
    const int place = __shfl_xor_sync(ALL_LANES, id, by);
    if (other > best || (other == best && place < id)) best = other, id = place;
  }
  if (lane == 0) gains[warp] = best, ids[warp] = id;
  __syncthreads();
#pragma unroll 1
  for (int w = 0; w < n_warps; w++)
    if (gains[w] > best || (gains[w] == best && ids[w] < id)) best = gains[w], id = ids[w];
  if (!(best > 0.0)) {
    return {old.n_nodes, old.n_leaves, 0, old.n_nodes, old.n_slots, old.n_slots, 0, 0};
  }
  const Node& n = j.nodes[id];
  const int rows = n.end - n.begin;
  if (threadIdx.x == 0) items[0] = {id, 0}, items[1] = {-1, rows};
  __syncthreads();
  const bool leaves_left = j.max_leaves == 0 || old.n_leaves + 1 < j.max_leaves;
  const bool more = leaves_left && !(j.max_depth > 0 && n.depth + 1 >= j.max_depth);
  return {old.n_nodes + 2, old.n_leaves + 1, 1, old.n_nodes, old.n_slots, old.n_slots + more, more, rows};
}

// The nodes that a step splits. All threads of every block. here (MAX_HERE + 1), out: in shared memory
inline void next_batch(const Job& j, int step, BatchItem* here, Batch* out) {
  const Level old = j.levels[step - 1];
  const int n = !old.more ? 0 : step == 1 ? 1 : 2 * old.n_batch;
  BatchItem* items = is_leafwise(j) || n <= MAX_HERE ? here : j.batch;  // every block writes the same there
  LevelSplit split{};
  if (is_symmetric(j) && n > 0) split = best_of_level(j);
  const Level level = is_leafwise(j) ? next_best(j, old, step, items) : next_level(j, old, step, split, items, n);
  if (threadIdx.x == 0) out->old = old, out->level = level, out->items = items, out->split = split;
  __syncthreads();
  if (is_symmetric(j) && has_categories(j)) set_of_level(j, split, out->set);
}

}  // namespace sapwood
