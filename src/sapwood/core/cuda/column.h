// A column of a node as the searches read it: a block has the column, a thread a bin. The chain of
// steps from a sum to a score is long, so that one candidate after the other in a thread takes most
// of the time.
#pragma once
#include "cuda/categories.h"

namespace sapwood {

constexpr int BIN_WARPS = TILE_BINS / LANES;
constexpr int MAX_GROUPS = 2;  // of threads, each with the column of a node of its own

// The group of this thread, and its bin there.
#if defined(SAPWOOD_POLICY) && SAPWOOD_POLICY != 1
inline int group_of() {
  return 0;
}
inline int bin_of() {
  return threadIdx.x;
}
#else
inline int group_of() {
  return threadIdx.x / TILE_BINS;
}
inline int bin_of() {
  return threadIdx.x % TILE_BINS;
}
#endif

// How many nodes a step searches.
inline int n_searched(const Level& level) {
  return !level.more ? 0 : level.n_batch == 0 ? 1 : 2 * level.n_batch;
}

// A block that searches some columns of a node.
struct NodeBlock {
  int x, id, first_slot;  // the node among those of the step, and of the tree
  bool in;                // whether there is one
  SAPWOOD_INLINE NodeBlock(const Job& j, int step) : NodeBlock(j, step, blockIdx.x) {}
  SAPWOOD_INLINE NodeBlock(const Job& j, int step, int x) : x(x) {
    const Level& level = of_tree(j, j.levels)[step];
    id = level.first_child + x;
    first_slot = level.first_slot;
    in = x < n_searched(level);
    if (in && blockIdx.y == 0 && bin_of() == 0) {
      of_tree(j, j.n_left)[x] = of_tree(j, j.n_right)[x] = 0;  // for the next step
    }
  }
  template <class F>
  SAPWOOD_INLINE void each_place(const Job& j, F&& f) const {  // f(place, turn): turns alternate
    const int n_columns = (int)j.n_columns;
    if (is_leafwise(j)) {  // nearly always one
      for (int place = blockIdx.y, turn = 0; place < n_columns; place += gridDim.y, turn ^= 1) {
        f(place, turn);
      }
      return;
    }
    const int each = (n_columns + gridDim.y - 1) / gridDim.y;
    const int most = (blockIdx.y + 1) * each;
    // columns side by side share what is read of memory
    const int end = most < n_columns ? most : n_columns;
    for (int place = blockIdx.y * each, turn = 0; place < end; place++, turn ^= 1) {
      f(place, turn);
    }
  }
};

// A thread that has a bin of a place, over all nodes of a level.
struct LevelBin {
  int n_nodes, first, at, place, b;
  SAPWOOD_INLINE LevelBin(const Job& j, int step)
      : n_nodes(n_searched(of_tree(j, j.levels)[step])),
        first(of_tree(j, j.levels)[step].first_child),
        at(blockIdx.x * blockDim.x + threadIdx.x),
        place(at / TILE_BINS),
        b(at % TILE_BINS) {}
};

// Sums over the bins up to that of each thread, and over all. All threads of a block; those of a
// group are as many as bins.
// packed: they fit one word
struct BinScan {
  Sums below, total;
  SAPWOOD_INLINE explicit BinScan(Sums own, bool packed = false) {
    __shared__ Sums shared_parts[MAX_GROUPS][BIN_WARPS];
    Sums* parts = shared_parts[group_of()];
    const int lane = threadIdx.x % LANES;
    const int warp = bin_of() / LANES;
    int64_t word = 0;
    if (packed) {
      word = up_to_lane(pack(own));
    } else {
      below = {up_to_lane(own.g), up_to_lane(own.h)};
    }
    __syncthreads();  // all threads have read the parts of an earlier scan
    if (lane == LANES - 1) {
      parts[warp] = packed ? Sums{word, 0} : below;
    }
    __syncthreads();
    if (packed) {
      int64_t all = 0;
#pragma unroll
      for (int w = 0; w < BIN_WARPS; w++) {
        const int64_t part = parts[w].g;
        if (w < warp) {
          word += part;
        }
        all += part;
      }
      below = unpack(word);
      total = unpack(all);
      return;
    }
#pragma unroll
    for (int w = 0; w < BIN_WARPS; w++) {
      const Sums part = parts[w];
      if (w < warp) {
        below = below + part;
      }
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
  if (threadIdx.x % LANES == 0) {
    votes[threadIdx.x / LANES] = vote;
  }
  __syncthreads();
  BinRange range{TILE_BINS, -1};
  for (int b = 0; b < TILE_BINS; b++) {
    if (votes[b / LANES] >> b % LANES & 1) {
      range = {range.last < 0 ? b : range.first, b};
    }
  }
  return range;
}

// extra_trees: a random cut between bins that hold rows, or of values against missing ones; -1:
// none.
inline int random_cut(const Job& j, int k, int id, int column, int n_bins, BinRange range,
                      bool missing) {
  const int n_cuts = range.last > range.first ? range.last - range.first : 0;
  const int among = range.last < 0 ? 0 : n_cuts + missing;
  if (among == 0) {
    return -1;
  }
  const uint64_t own = fold(fold(j.turn->cut_key, (uint64_t)(j.turn->tree + k)), (uint64_t)id);
  const int at = (int)multiply_high(draw(own, (uint64_t)column), (uint64_t)among);
  return at < n_cuts ? range.first + at : n_bins - 1;
}

// The score of a node, which is that of its first column: the others have the same sums.
struct OwnScore {
  double score = 0.0;
  bool known = false;
};

// One column of a node; a thread has a bin. Of a larger child the sums are what the smaller one
// leaves of the parent's, and are stored.
template <bool COUNTS>
struct BlockColumn {
  int place, column, n_bins;
  bool holds_rows;
  Sums own, below, total, missing;  // own: of the bin of this thread; below: up to it
  int64_t own_rows = 0, rows_below = 0, all_rows = 0, missing_rows = 0;
  double own_score;
  ScoreRule rule;

  // turn: 0 and 1 in turn, where a block has several columns
  SAPWOOD_INLINE BlockColumn(const Job& j, int k, Node& n, int id, int place, int first_slot,
                             int turn, OwnScore&& score = {})
      : BlockColumn(j, k, n, id, place, first_slot, turn, score) {}
  SAPWOOD_INLINE BlockColumn(const Job& j, int k, Node& n, int id, int place, int first_slot,
                             int turn, OwnScore& score)
      : place(place), column(j.column_of[place]), n_bins(j.n_bins[place]) {
    __shared__ Sums shared_missing[2][MAX_GROUPS];
    __shared__ int64_t shared_rows[2][MAX_GROUPS];
    Sums* histograms = histograms_of(j, k);
    const int group = group_of();
    const int b = bin_of();
    const int at = b * LANES + place % LANES;
    const bool rest = id != 0 && n.slot < first_slot;
    const bool packed = n.packed != 0;
    const int64_t tile = n.slot * j.histogram_size + place / LANES * TILE_SUMS;
    own = load_sums(histograms + tile, at, packed);
    int64_t rows = COUNTS ? of_tree(j, j.counts)[tile + at] : 0;
    if (rest) {  // a child of a node whose sums are words has few rows as well
      const Node& small = nodes_of(j, k)[sibling(id)];
      const int64_t other = small.slot * j.histogram_size + place / LANES * TILE_SUMS;
      own = own - load_sums(histograms + other, at, small.packed != 0);
      store_sums(histograms + tile, at, own, packed);
      if (COUNTS) {
        of_tree(j, j.counts)[tile + at] = rows = rows - of_tree(j, j.counts)[other + at];
      }
    }
    if (b == n_bins) {
      shared_missing[turn][group] = own;
      shared_rows[turn][group] = rows;
    }
    holds_rows = own.h > 0 && b < n_bins;
    own_rows = rows;
    // columns a block: a branch more costs less than the work that it saves
    const bool many = !is_leafwise(j);
    const BinScan scan(own, packed && many);
    below = scan.below;
    total = scan.total;
    missing = shared_missing[turn][group];
    if constexpr (COUNTS) {
      const BinScan counted(Sums{rows, 0});
      rows_below = counted.below.g;
      all_rows = counted.total.g;
      missing_rows = shared_rows[turn][group];
    }
    rule = rule_of(j, n, place, growth_of(j, k).penalty);
    if (!score.known || !many) {
      score = {score_of(total, n, j, rule.penalty), true};
    }
    own_score = score.score;
    if (place == 0 && b == 0) {
      n.g = total.g;
      n.h = total.h;
      n.score = own_score;
    }
  }
};

struct Best {
  double score;
  uint64_t order;
  Sums left;
};

// The thread with the best candidate of a block writes it; none does where it does not exceed
// `bar`.
inline void write_best(const Best& best, double bar, int place, bool seen_missing, Found* out) {
  __shared__ double scores[MAX_WARPS];
  __shared__ uint64_t orders[MAX_WARPS];
  const int lane = threadIdx.x % LANES;
  const int n_warps = blockDim.x / LANES;
  double score = best.score;
  uint64_t order = best.order;
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(ALL_LANES, score, step);
    const uint64_t its = __shfl_xor_sync(ALL_LANES, (unsigned long long)order, step);
    if (beats(other, its, score, order)) {
      score = other;
      order = its;
    }
  }
  if (lane == 0) {
    scores[threadIdx.x / LANES] = score;
    orders[threadIdx.x / LANES] = order;
  }
  __syncthreads();
  for (int w = 0; w < n_warps; w++) {
    if (beats(scores[w], orders[w], score, order)) {
      score = scores[w];
      order = orders[w];
    }
  }
  if (!(score > bar)) {
    if (threadIdx.x == 0) {
      *out = {-INF, 0, 0, ~0ull, -1, 0};
    }
  } else if (best.order == order) {
    *out = {score, best.left.g, best.left.h, order, place, seen_missing};
  }
}

// The parts of a node's score that are added over nodes and outputs: the score itself, or both of a
// cosine.
inline CosineParts node_parts(const Job& j, Sums all, double score, const Penalty& p) {
  return is_cosine(j) ? cosine_parts(all, p) : CosineParts{score, 0.0};
}
inline double score_of_parts(const Job& j, CosineParts a) {
  return is_cosine(j) ? cosine_score(a) : a.dot;
}

// Symmetric trees: the scores of a node's candidates, by the side of missing values (0: right).
inline int64_t level_place(const Job& j, int64_t node, int place, int side) {
  return ((node * j.n_tiles * LANES + place) * 2 + side) * TILE_BINS;
}
inline void store_parts(const Job& j, int node, int place, int side, CosineParts parts) {
  const int64_t at = level_place(j, node, place, side) + bin_of();
  of_tree(j, j.level_scores)[at] = parts.dot;
  if (is_cosine(j)) {
    of_tree(j, j.level_norms)[at] = parts.norm2;
  }
}
// Adds numbers that are a stride apart one after the other, SIZE of them at a time, then half as
// many, and so on: reads do not wait for each other. at: how many are added already
template <int SIZE>
SAPWOOD_INLINE void add_in_order(const double* from, int64_t stride, int n, int& at, double& sum) {
#pragma unroll 1
  for (; at + SIZE <= n; at += SIZE) {
    double own[SIZE];
#pragma unroll
    for (int e = 0; e < SIZE; e++) {
      own[e] = from[(at + e) * stride];
    }
#pragma unroll
    for (int e = 0; e < SIZE; e++) {
      sum = sum + own[e];
    }
  }
  if constexpr (SIZE > 1) {
    add_in_order<SIZE / 2>(from, stride, n, at, sum);
  }
}

// The same of a bin, added over the first n nodes in the order of ids.
SAPWOOD_INLINE CosineParts sum_parts(const Job& j, int n, int place, int side, int bin) {
  const int64_t first = level_place(j, 0, place, side) + bin;
  const int64_t stride = j.n_tiles * LANES * 2 * TILE_BINS;
  CosineParts sum;
  int at = 0;
  add_in_order<32>(of_tree(j, j.level_scores) + first, stride, n, at, sum.dot);
  at = 0;
  if (is_cosine(j)) {
    add_in_order<8>(of_tree(j, j.level_norms) + first, stride, n, at, sum.norm2);
  }
  return sum;
}

// The minimum count of a side; rows are not counted where hessians do.
inline double least_rows(const Job& j) {
  return growth_of(j).counts_rows ? growth_of(j).min_count : -1.0;
}

inline bool may_use(const Job& j, int x, int column, int place) {
  return column >= 0 &&
         (!has_columns(j) ||
          (of_tree(j, j.allowed)[x * j.n_tiles + place / LANES] >> place % LANES & 1));
}

}  // namespace sapwood
