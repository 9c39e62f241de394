// The frontier on the device: the best split of every node that was searched, and the nodes that
// are split next. Every block finds those nodes for itself when it starts, so that neither the host
// nor a barrier of the grid takes part.
#pragma once
#include "cuda/job.h"
#include "cuda/platform.h"
#include "math/rank.h"
#include "math/split.h"

namespace sapwood {

inline int sibling(int id) {
  return id & 1 ? id + 1 : id - 1;
}
inline bool beats(double score, uint64_t order, double other, uint64_t other_order) {
  return score > other || (score == other && order < other_order);
}

#if defined(SAPWOOD_PLAIN) && SAPWOOD_PLAIN == 1
constexpr bool MAY_BIND = false;  // compiled for a search without monotone constraints
#else
constexpr bool MAY_BIND = true;
#endif

inline double score_of(Sums s, const Node& n, const Job& j, const Penalty& p) {
  if (s.h <= 0) {
    return 0.0;
  }
  if (is_cosine(j)) {
    return cosine_score(cosine_parts(s, p));
  }
  if (MAY_BIND && j.direction != nullptr) {
    return score_at(s, p, bounded_weight(s, p, n.low, n.high));
  }
  return node_score(s, p);
}

// Monotone bounds of the children of a node that was just split: the middle of their values lies
// between the two.
inline void bind_children(const Job& j, const Node& n, const Penalty& p, Node& l, Node& r) {
  const int d = j.direction[n.place];
  if (d == 0 || l.h <= 0 || r.h <= 0 || n.bin == j.n_bins[n.place] - 1) {
    return;
  }
  const double wl = bounded_weight({l.g, l.h}, p, n.low, n.high);
  const double wr = bounded_weight({r.g, r.h}, p, n.low, n.high);
  const double middle = 0.5 * (wl + wr);
  (d > 0 ? l : r).high = middle;
  (d > 0 ? r : l).low = middle;
}

// The rule of a column in a node. penalty: that of its output's search
inline ScoreRule rule_of(const Job& j, const Node& n, int place, const Penalty& penalty) {
  ScoreRule rule{penalty, is_cosine(j)};
  if (MAY_BIND && j.direction != nullptr) {
    rule.bounded = true;
    rule.low = n.low;
    rule.high = n.high;
    rule.direction = j.direction[place];
    rule.free_bin = j.n_bins[place] - 1;
  }
  return rule;
}
// The penalty of a column, of sets of categories of many with cat_l2.
inline Penalty column_penalty(const Job& j, const Growth& t, int place) {
  Penalty p = t.penalty;
  if (has_categories(j) && j.category[place] == PARTITION) {
    p.lambda = p.lambda + j.cat_l2 * h_scale(t.scale);
  }
  return p;
}
// How far the loss falls by a split of this score, whatever it was chosen by.
inline double gain_of_split(const Job& j, const Growth& t, const Node& n, Sums left, int place,
                            double score) {
  const Sums all{n.g, n.h};
  if (!is_cosine(j)) {
    return 0.5 * (score - n.score) * t.unit;
  }
  return 0.5 *
         (split_score(left, all - left, column_penalty(j, t, place)) - node_score(all, t.penalty)) *
         t.unit;
}

// Splits a node of the frontier: its children become nodes. `at`: the first child's id
inline void make_children(const Job& j, int k, const Node& n, int id, int at, int step) {
  Node l{};
  Node r{};
  l.g = n.left_g;
  l.h = n.left_h;
  r.g = n.g - n.left_g;
  r.h = n.h - n.left_h;
  l.depth = r.depth = n.depth + 1;
  l.column = r.column = -1;
  l.parent = r.parent = id;
  l.groups = r.groups = j.groups_of == nullptr ? ~0ull : n.groups & j.groups_of[n.place];
  l.low = r.low = n.low;
  l.high = r.high = n.high;
  if (MAY_BIND && j.direction != nullptr) {
    bind_children(j, n, growth_of(j).penalty, l, r);
  }
  const bool forced = MAY_BIND && j.forced != nullptr && n.rank == INF;
  l.forced = forced ? j.forced[n.forced].left : -1;
  r.forced = forced ? j.forced[n.forced].right : -1;
  if (MAY_RANK && j.first_use != nullptr && k == 0) {
    const uint32_t* path = of_tree(j, j.path) + id * j.n_tiles;
    for (int w = 0; w < j.n_tiles; w++) {
      of_tree(j, j.path)[at * j.n_tiles + w] = of_tree(j, j.path)[(at + 1) * j.n_tiles + w] =
          path[w] | (n.column / LANES == w ? 1u << n.column % LANES : 0);
    }
  }
  Node* nodes = nodes_of(j, k);
  nodes[id].left = at;
  nodes[id].step = step;
  nodes[at] = l;
  nodes[at + 1] = r;
}

// How the best splits of columns are compared in a node, or in the level that begins with it.
struct Ranker {
  const Job& j;
  int id;
  double own;  // its score
  uint64_t node;
  RankRule rule;
  Ranker(const Job& j, int k, int id, double own, double unit, double noise_scale)
      : j(j), id(id), own(own) {
    node = fold(fold(j.turn->noise_key, (uint64_t)(j.turn->tree + k)), (uint64_t)id);
    rule = {j.feature_weight, j.first_use, noise_scale, penalty_scale(j.cosine != 0, unit),
            j.cosine != 0};
  }
  double operator()(const Found& f) const {
    if (f.place < 0 || f.score == INF || !adjusts(rule)) {
      return f.score;
    }
    const int column = (int)(f.order >> 32);
    const bool used = j.first_use != nullptr &&
                      (of_tree(j, j.path)[id * j.n_tiles + column / LANES] >> column % LANES & 1);
    return adjusted_score(f.score, own, column, used, node, rule);
  }
};

// The lane whose candidate beats those of the others: the largest score, then the smallest order,
// both as parts of 32 bits. All lanes of a warp.
inline int best_lane(double score, uint64_t order) {
  const uint64_t bits = bits_of(score + 0.0);
  const uint64_t  // there is one zero
      parts[2] = {bits >> 63 ? ~bits : bits | 1ull << 63, ~order};
  bool in = true;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint32_t own = in ? (uint32_t)(parts[i / 2] >> (i % 2 ? 0 : 32)) : 0;
    const uint32_t most = warp_max(own);
    in = in && own == most;
  }
  return first_lane(__ballot_sync(ALL_LANES, in));
}

// What one lane has found; nothing where its score is that of none. All lanes of a warp.
inline Found found_by(int lane, const Found* found, double score, int at) {
  Found best = found[__shfl_sync(ALL_LANES, at, lane)];
  if (!(__shfl_sync(ALL_LANES, score, lane) > -INF)) {
    best.place = -1;
  }
  return best;
}

// The best of what was found for the columns of one node; `each` places belong to one column. All
// lanes of a warp; every lane gets it.
template <class Rank>
inline Found best_found(const Found* found, int n, int each, const Rank& rank) {
  double score = -INF;
  uint64_t order = ~0ull;
  int at = 0;
#pragma unroll 1
  for (int c = threadIdx.x % LANES; c < n / each; c += LANES) {
    int own = c * each;
    for (int i = own + 1; i < (c + 1) * each; i++) {
      if (beats(found[i].score, found[i].order, found[own].score, found[own].order)) {
        own = i;
      }
    }
    const double its = rank(found[own]);
    if (its > -INF && beats(its, found[own].order, score, order)) {
      score = its;
      order = found[own].order;
      at = own;
    }
  }
  return found_by(best_lane(score, order), found, score, at);
}
// The same by their scores alone.
inline Found best_found(const Found* found, int n) {
  constexpr int N_READS = 4;  // that do not wait for each other
  double score = -INF;
  uint64_t order = ~0ull;
  int at = 0;
#pragma unroll 1
  for (int first = threadIdx.x % LANES; first < n; first += N_READS * LANES) {
    double scores[N_READS];
    uint64_t orders[N_READS];
#pragma unroll
    for (int e = 0; e < N_READS; e++) {
      const int c = first + e * LANES;
      scores[e] = c < n ? found[c].score : -INF;
      orders[e] = c < n ? found[c].order : ~0ull;
    }
#pragma unroll
    for (int e = 0; e < N_READS; e++) {
      if (beats(scores[e], orders[e], score, order)) {
        score = scores[e];
        order = orders[e];
        at = first + e * LANES;
      }
    }
  }
  return found_by(best_lane(score, order), found, score, at);
}

// The best split of a node, from the best of every column. All lanes of a warp.
inline void take_best(const Job& j, int k, const Found* found, int n_found, int id) {
  const Growth& t = growth_of(j);
  Node& n = of_tree(j, j.nodes)[id];
  Found best;
  if (is_ranked(j)) {
    best = best_found(found, n_found, 1, Ranker(j, k, id, n.score, t.unit, t.noise_scale));
  } else {
    best = best_found(found, n_found);
  }
  if (threadIdx.x % LANES != 0) {
    return;
  }
  n.column = -1;
  n.gain = n.rank = 0.0;
  if (best.place < 0) {
    return;
  }
  n.place = best.place;
  n.column = (int32_t)(best.order >> 32);
  n.bin = (int32_t)((best.order & 0xffffffffu) >> 1);
  n.left_g = best.g;
  n.left_h = best.h;
  n.missing_left = best.seen_missing ? (best.order & 1) == 0 : best.h >= n.h - best.h;
  const Sums left{best.g, best.h};
  const bool forced = MAY_BIND && best.score == INF;
  if (forced) {
    best.score = score_split(left, Sums{n.g, n.h} - left, n.bin, rule_of(j, n, n.place, t.penalty));
  }
  n.gain = gain_of_split(j, t, n, left, n.place, best.score);
  if (!forced && !(n.gain > j.min_split_gain)) {
    n.gain = 0.0;
  }
  n.rank = forced ? INF : n.gain;
}

constexpr int MAX_HERE = 512;  // nodes of a batch whose items are in shared memory
constexpr int MAX_WARPS = 32;

struct Batch {
  Level old, level;        // the tree before the step and after it
  const BatchItem* items;  // (level.n_batch + 1) the last has the number of rows
  LevelSplit split;
  uint64_t set[SET_WORDS];  // of a split by categories
};

struct Scanned {
  int64_t before, all;
};
// the sum of this lane and those before it. All lanes of a warp
inline int64_t up_to_lane(int64_t x) {
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    const int64_t other = __shfl_up_sync(ALL_LANES, (long long)x, step);
    if ((int)threadIdx.x % LANES >= step) {
      x += other;
    }
  }
  return x;
}

// The sum of what the threads before this one have, and that of all. All threads of a block.
inline Scanned block_scan(int64_t x) {
  __shared__ int64_t parts[MAX_WARPS];
  const int lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES;
  const int n_warps = blockDim.x / LANES;
  const int64_t up = up_to_lane(x);
  __syncthreads();  // all threads have read the parts of an earlier scan
  if (lane == LANES - 1) {
    parts[warp] = up;
  }
  __syncthreads();
  const int64_t own = lane < n_warps ? parts[lane] : 0;
  const int64_t sum = up_to_lane(own);
  return {__shfl_sync(ALL_LANES, (long long)(sum - own), warp) + up - x,
          __shfl_sync(ALL_LANES, (long long)sum, LANES - 1)};
}

struct Span {  // of the concatenated rows of several nodes, what a block has
  int64_t low, high;
  Span(int64_t total, int64_t min_rows, int block, int n_blocks) {
    int64_t each = (total + n_blocks - 1) / n_blocks;
    each = each < min_rows ? min_rows : each;
    low = block * each;
    high = low + each < total ? low + each : total;
  }
};

// Symmetric: the best candidate of the level that was searched last. All threads of a block. k: the
// output; first: the level's first node
inline LevelSplit best_of_level(const Job& j, int k, int first) {
  __shared__ LevelSplit split;
  if (threadIdx.x < LANES) {
    const Growth& t = growth_of(j);
    const int64_t all = of_tree(j, j.nodes)[0].h;  // the level has all rows of the root
    const double level_score = t.level_score;
    const double unit = t.unit;
    const double bar = must_exceed(level_score);
    const int n_found = (int)j.n_found;
    const int each = n_found / (int)j.n_columns;
    const Found* found = of_tree(j, j.found);
    Found best;
    if (is_ranked(j)) {
      const Ranker ranker(j, k, first, level_score, unit, t.noise_scale);
      best = best_found(found, n_found, each, [&](const Found& f) {
        return f.score > bar ? ranker(f) : -INF;
      });
    } else {
      best = best_found(found, n_found);
    }
    if (threadIdx.x == 0) {
      split = {0, 0, -1, 0, 0, 0};
      const bool worth =
          is_cosine(j) || 0.5 * (best.score - level_score) * unit - j.min_split_gain > 0.0;
      if (best.place >= 0 && best.score > bar && worth) {
        const bool left = best.seen_missing ? (best.order & 1) == 0 : best.h >= all - best.h;
        split = {
            1,    best.place, (int32_t)(best.order >> 32), (int)((best.order & 0xffffffffu) >> 1),
            left, 0};
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
  if (threadIdx.x < 2 * SET_WORDS) {
    words[threadIdx.x] = ~0u;
  }
  __syncthreads();
  const CodeStep* steps = of_tree(j, j.steps) + (int64_t)split.place * 256;
  if (is_joint(j) && any && threadIdx.x == 0) {
    atomicAnd(words + split.bin / LANES, ~(1u << split.bin % LANES));
  }
  for (int k = threadIdx.x; any && !is_joint(j) && k <= split.bin; k += blockDim.x) {
    if (steps[k].start == steps[split.bin].start) {
      atomicAnd(words + steps[k].code / LANES, ~(1u << steps[k].code % LANES));
    }
  }
  __syncthreads();
  const int missing = any ? j.n_bins[split.place] : 0;
  if (any && threadIdx.x == 0) {
    if (split.missing_left) {
      set[missing >> 6] &= ~(1ull << (missing & 63));
    } else {
      set[missing >> 6] |= 1ull << (missing & 63);
    }
  }
  __syncthreads();
}

// A whole level, in the order of ids, while leaves are left.
// ahead: symmetric: rows of this thread's node, read before
inline Level next_level(const Job& j, const Level& old, int step, const LevelSplit& split,
                        BatchItem* items, int n, int ahead) {
  const bool symmetric = is_symmetric(j);
  const int room = symmetric || j.max_leaves == 0 ? 0x7fffffff : (int)j.max_leaves - old.n_leaves;
  constexpr int ROW_BITS = 40;
  int64_t sum = 0;  // nodes, then rows
  for (int first = 0; first < n; first += blockDim.x) {
    const int i = first + threadIdx.x;
    const int id = old.first_child + i;
    const Node& node = of_tree(j, j.nodes)[id];
    int64_t own = 0;
    if (i < n && (symmetric ? split.worth != 0 : node.rank > 0.0)) {
      own = ((int64_t)1 << ROW_BITS) + (symmetric && first == 0 ? ahead : node.end - node.begin) +
            j.node_cost;
    }
    const Scanned scanned = block_scan(own);
    const int64_t before = sum + scanned.before;
    const int64_t rank = before >> ROW_BITS;
    const int at = (int)(before & (((int64_t)1 << ROW_BITS) - 1));
    // the first that has no room ends the list
    if (own != 0 && rank <= room) {
      items[rank] = {id, at};
    }
    sum += scanned.all;
  }
  const int n_open = (int)(sum >> ROW_BITS);
  const int taken = n_open < room ? n_open : room;
  if (n_open <= room && threadIdx.x == 0) {
    items[taken] = {-1, (int32_t)(sum & (((int64_t)1 << ROW_BITS) - 1))};
  }
  __syncthreads();
  const int n_leaves = old.n_leaves + taken;
  const bool leaves_left = symmetric || j.max_leaves == 0 || n_leaves < j.max_leaves;
  const bool more = taken > 0 && leaves_left && !(j.max_depth > 0 && step >= j.max_depth);
  return {old.n_nodes + 2 * taken,          n_leaves, taken,          old.n_nodes, old.n_slots,
          old.n_slots + (more ? taken : 0), more,     items[taken].at};
}

// The node that gains most. A node that some block has marked as split in this very step still
// counts.
inline Level next_best(const Job& j, const Level& old, int step, BatchItem* items) {
  __shared__ double gains[MAX_WARPS];
  __shared__ int ids[MAX_WARPS];
  const int lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES;
  const int n_warps = blockDim.x / LANES;
  const bool open = j.max_leaves == 0 || old.n_leaves < j.max_leaves;
  double best = 0.0;
  int id = 0x7fffffff;
#pragma unroll 1
  for (int i = threadIdx.x; i < old.n_nodes && open; i += blockDim.x) {
    const double gain = of_tree(j, j.nodes)[i].rank;
    const int split = of_tree(j, j.nodes)[i].step;
    if ((split == 0 || split >= step) && gain > best) {
      best = gain;
      id = i;
    }
  }
#pragma unroll 1
  for (int by = LANES / 2; by > 0; by /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, best, by);
    const int place = __shfl_xor_sync(ALL_LANES, id, by);
    if (other > best || (other == best && place < id)) {
      best = other;
      id = place;
    }
  }
  if (lane == 0) {
    gains[warp] = best;
    ids[warp] = id;
  }
  __syncthreads();
#pragma unroll 1
  for (int w = 0; w < n_warps; w++) {
    if (gains[w] > best || (gains[w] == best && ids[w] < id)) {
      best = gains[w];
      id = ids[w];
    }
  }
  if (!(best > 0.0)) {
    return {old.n_nodes, old.n_leaves, 0, old.n_nodes, old.n_slots, old.n_slots, 0, 0};
  }
  const Node& n = of_tree(j, j.nodes)[id];
  const int rows = n.end - n.begin;
  if (threadIdx.x == 0) {
    items[0] = {id, 0};
    items[1] = {-1, rows};
  }
  __syncthreads();
  const bool leaves_left = j.max_leaves == 0 || old.n_leaves + 1 < j.max_leaves;
  const bool more = leaves_left && !(j.max_depth > 0 && n.depth + 1 >= j.max_depth);
  return {old.n_nodes + 2, old.n_leaves + 1,   1,    old.n_nodes,
          old.n_slots,     old.n_slots + more, more, rows};
}

}  // namespace sapwood
