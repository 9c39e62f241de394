// The frontier on the device: the best split of every node that was searched, and the nodes that are split next. The last
// block of the search does it, so that the host takes no part.
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

inline double score_of(Sums s, const Node& n, const Job& j, const Penalty& p) {
  if (s.h <= 0) return 0.0;
  if (j.direction != nullptr) return score_at(s, p, bounded_weight(s, p, n.low, n.high));
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
inline void make_children(const Job& j, const Node& n, int id, int at) {
  Node l{}, r{};
  l.g = n.left_g, l.h = n.left_h, r.g = n.g - n.left_g, r.h = n.h - n.left_h;
  l.depth = r.depth = n.depth + 1, l.column = r.column = -1, l.parent = r.parent = id;
  l.groups = r.groups = j.groups_of == nullptr ? ~0ull : n.groups & j.groups_of[n.place];
  l.low = r.low = n.low, l.high = r.high = n.high;
  if (j.direction != nullptr) bind_children(j, n, j.growth->penalty, l, r);
  j.nodes[id].left = at;
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

// The best split of one node. All lanes of a warp.
inline void take_best(const Job& j, int x, int id) {
  const Node old = j.nodes[id];
  const double unit = j.growth->unit;
  const int first_slot = j.growth->first_slot;
  const Found best = best_found(j.found + x * j.n_found, (int)j.n_found);
  if (threadIdx.x % LANES != 0) return;
  Node& n = j.nodes[id];
  n.column = -1, n.gain = 0.0;
  if (id != 0 && old.slot < first_slot) n.packed = 0;  // what was left of the parent's is stored as pairs
  if (best.place < 0) return;
  n.place = best.place, n.column = (int32_t)(best.order >> 32), n.bin = (int32_t)((best.order & 0xffffffffu) >> 1);
  n.left_g = best.g, n.left_h = best.h;
  n.missing_left = best.seen_missing ? (best.order & 1) == 0 : best.h >= old.h - best.h;
  const double gain = 0.5 * (best.score - old.score) * unit;
  n.gain = gain > j.min_split_gain ? gain : 0.0;
}

// A whole level, in the order of ids, while leaves are left. One warp.
inline void next_level(const Job& j) {
  const Growth old = *j.growth;
  const int lane = threadIdx.x % LANES, n = old.n_batch == 0 ? 1 : 2 * old.n_batch, first = old.first_child;
  const int room = j.max_leaves > 0 ? (int)j.max_leaves - old.n_leaves : 0x7fffffff;
  int taken = 0, depth = 0;
  int64_t rows = 0;
#pragma unroll 1
  for (int at = 0; at < n; at += LANES) {
    const int id = first + at + lane;
    const Node node = j.nodes[at + lane < n ? id : first];
    const bool open = at + lane < n && node.gain > 0.0;
    const unsigned votes = __ballot_sync(ALL_LANES, open);
    const int rank = taken + __popc(votes & ((1u << lane) - 1));
    const bool in = open && rank < room;
    const int64_t own = in ? node.end - node.begin : 0;
    int64_t before = own;
#pragma unroll 1
    for (int step = 1; step < LANES; step *= 2) {
      const int64_t other = __shfl_up_sync(ALL_LANES, (long long)before, step);
      if (lane >= step) before += other;
    }
    if (in) {
      j.batch[rank] = id, j.batch_at[rank] = rows + before - own;
      j.n_left[rank] = j.n_right[rank] = 0;
      make_children(j, node, id, old.n_nodes + 2 * rank);
    }
    taken += __popc(__ballot_sync(ALL_LANES, in));
    rows += __shfl_sync(ALL_LANES, (long long)before, LANES - 1);
    depth = node.depth;
  }
  if (lane != 0) return;
  Growth& t = *j.growth;
  const int n_leaves = old.n_leaves + taken;
  const bool leaves_left = j.max_leaves == 0 || n_leaves < j.max_leaves;
  const bool more = taken > 0 && leaves_left && !(j.max_depth > 0 && depth + 1 >= j.max_depth);
  j.batch_at[taken] = rows;
  t.first_child = old.n_nodes, t.n_nodes = old.n_nodes + 2 * taken, t.n_leaves = n_leaves, t.n_batch = taken;
  t.batch_rows = rows, t.first_slot = old.n_slots, t.more = more, t.n_slots = old.n_slots + (more ? taken : 0);
}

// The node that gains most. All threads of a block; nodes whose children cannot be split are split at once.
inline void next_best(const Job& j) {
  Growth& t = *j.growth;
  __shared__ double gain[LANES];
  __shared__ int node[LANES], again;
  for (again = 1; again;) {
    __syncthreads();
    double best = 0.0;
    int id = 0x7fffffff;
    for (int i = threadIdx.x; i < t.n_nodes; i += blockDim.x)
      if (j.nodes[i].left == 0 && j.nodes[i].gain > best) best = j.nodes[i].gain, id = i;
    for (int step = LANES / 2; step > 0; step /= 2) {
      const double other = __shfl_xor_sync(ALL_LANES, best, step);
      const int place = __shfl_xor_sync(ALL_LANES, id, step);
      if (other > best || (other == best && place < id)) best = other, id = place;
    }
    if (threadIdx.x % LANES == 0) gain[threadIdx.x / LANES] = best, node[threadIdx.x / LANES] = id;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < (int)blockDim.x / LANES; w++)
        if (gain[w] > best || (gain[w] == best && node[w] < id)) best = gain[w], id = node[w];
      again = 0, t.n_batch = 0, t.more = 0;
      if (best > 0.0 && (j.max_leaves == 0 || t.n_leaves < j.max_leaves)) {
        const Node n = j.nodes[id];
        make_children(j, n, id, t.n_nodes);
        j.batch[0] = id, j.batch_at[0] = 0, j.batch_at[1] = n.end - n.begin, j.n_left[0] = j.n_right[0] = 0;
        t.first_child = t.n_nodes, t.n_nodes += 2, t.n_leaves++, t.n_batch = 1, t.batch_rows = n.end - n.begin;
        t.first_slot = t.n_slots;
        const bool leaves_left = j.max_leaves == 0 || t.n_leaves < j.max_leaves;
        t.more = leaves_left && !(j.max_depth > 0 && n.depth + 1 >= j.max_depth);
        again = leaves_left && !t.more;
        if (t.more) t.n_slots++;
      }
    }
    __syncthreads();
  }
}

inline void advance(const Job& j) {
  if (j.leafwise) next_best(j);
  else if (threadIdx.x < LANES) next_level(j);
}

}  // namespace sapwood
