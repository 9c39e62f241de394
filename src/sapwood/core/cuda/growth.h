// One step of growth on the device: the rows of a batch of nodes go to their children, the smaller
// children's histograms are built, the others are what remains of their parents', and both are
// searched.
#pragma once
#include "cuda/frontier.h"
#include "cuda/gradient_pass.h"
#include "cuda/wide_sum.h"

namespace sapwood {

constexpr int TILE_BINS = 256;                    // codes of a narrow column
constexpr int64_t TILE_SUMS = TILE_BINS * LANES;  // sums of a tile of 32 columns: [bin][column]
// rows whose parts fit 32-bit sums: 2^15 * 2^15 < 2^31
constexpr int64_t MAX_SPAN = 32768;
constexpr int ROWS_EACH = 8;             // rows of a thread in one step of the partition
constexpr int MAX_PACKED_ROWS = 131071;  // rows whose narrow sums fit one word
constexpr int PART_BITS = 15;            // of a number whose parts are added apart

// -------------------------------------------------------------------------------------------------
// the root
// The noise on a column's best split, and the columns that trees before this one have used.
inline void begin_ranks(const Job& j, int k, const Output& o, Growth& t) {
  t.noise_scale = 0.0;
  if (j.noisy) {
    // g^2 / h, from units of all rows' wide numbers to the search's
    const Output& all = j.all_output[output_of(j, k)];
    const double g = nearest(all.noise);
    const double h = nearest(all.noise + 4);
    const int shift =
        (t.scale.bits - 2 * t.scale.g + t.scale.h) - (WIDE - 2 * all.narrow.g + all.narrow.h);
    t.noise_scale =
        j.turn->random_strength * (h == 0.0 ? 0.0 : sqrt(g / h)) * sqrt(power_of_two(shift));
  }
  // the first trees of the round
  const uint32_t* used = k == place_of_tree() ? j.used + j.n_tiles : j.used;
  for (int w = 0; w < j.n_tiles && j.first_use != nullptr; w++) {
    if (k == 0 || !is_joint(j)) {
      of_tree(j, j.path)[w] = used[w];
    }
    if (k == 0) {
      j.used[w] = used[w];
    }
  }
}

// Fixes the scales of an output, and what the search of its tree needs; its first node. k: the
// tree; own_min_samples: what min_samples_leaf="auto" means
inline void begin_tree(const Job& j, int k, double own_min_samples) {
  Output& o = j.output[gradients_of(j, k)];
  Growth& t = growth_of(j, k);
  if (j.n_copies == 1) {
    fix_scales(j, o);  // else it has been done: other blocks read them
  }
  const int32_t n_rows = j.all_rows ? (int32_t)j.n : j.growth[copy_of(j, k)].n_rows;
  t.scale = o.is_narrow ? o.narrow : Scale{WIDE, o.narrow.g, o.narrow.h};
  const double gs = g_scale(t.scale);
  const double hs = h_scale(t.scale);
  t.unit = hs / (gs * gs);
  t.penalty = {j.reg_lambda * hs, j.reg_alpha * gs, j.max_delta_step * gs / hs,
               j.min_child_weight * hs};
  const double min_rows = j.min_samples_leaf == 0.0 ? own_min_samples : j.min_samples_leaf;
  t.min_samples = min_rows;
  t.min_count = min_rows * power_of_two((int)j.weight_shift);
  t.counts_rows = min_rows > 1.0;
  // limits of all outputs together
  if (is_joint(j)) {
    t.penalty.min_h = 0.0;
    t.counts_rows = t.counts_rows && k == 0;
  }
  if (t.counts_rows && j.counts_by_hessian && !is_joint(j) &&
      (o.constant_hessian || j.unit_search || j.unit_leaf)) {  // then the hessian counts rows
    const double rows = t.min_count * (double)quantise_h(of_bits(o.kept_max_search), hs);
    t.penalty.min_h = rows > t.penalty.min_h ? rows : t.penalty.min_h;
    t.counts_rows = 0;
  }
  if (MAY_RANK) {
    begin_ranks(j, k, o, t);
  }
  t.fast = o.is_narrow && !j.repeated;
  int bits = o.is_narrow ? NARROW : WIDE;
  for (int64_t w = j.max_repeats; w > 1; w = (w + 1) / 2) {
    bits += j.repeated != 0;
  }
  t.n_parts = t.fast ? 1 : (bits + PART_BITS - 1) / PART_BITS;
  // counts are below 2^31
  t.count_parts = !t.counts_rows && !(j.counts_nodes && (!is_joint(j) || k == 0)) ? 0
                  : j.repeats == nullptr                                          ? 1
                                                                                  : 3;
  if (!is_joint(j) || k == 0) {
    of_tree(j, j.levels)[0] = {1, 1, 0, 0, 0, 1, 1, n_rows};
    of_tree(j, j.n_left)[0] = of_tree(j, j.n_right)[0] = 0;
  }
  Node root{};
  root.column = -1;
  root.end = n_rows;
  root.buffer = j.all_rows ? -1 : -2;
  root.low = -INF;
  root.high = INF;
  root.forced = j.forced != nullptr ? 0 : -1;
  root.groups = ~0ull;
  root.parent = -1;
  root.packed = t.fast && n_rows <= MAX_PACKED_ROWS;
  nodes_of(j, k)[0] = root;
}

// The same of all outputs that are split together. All threads of a block.
inline void begin_joint(const Job& j) {
  double own = 0.0;
  double largest = 0.0;
  for (int k = 0; k < (int)j.n_joint; k++) {
    own = j.output[k].own_min_samples > own ? j.output[k].own_min_samples : own;
  }
  for (int k = threadIdx.x; k < (int)j.n_joint; k += blockDim.x) {
    begin_tree(j, k, own);
  }
  __threadfence_block();
  __syncthreads();
  double noise2 = 0.0;
  for (int k = 0; k < (int)j.n_joint; k++) {
    largest = j.growth[k].unit > largest ? j.growth[k].unit : largest;
  }
  for (int k = 0; k < (int)j.n_joint; k++) {
    const double own = j.growth[k].noise_scale;
    noise2 = noise2 + j.growth[k].unit / largest * (own * own);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < (int)j.n_joint; k += blockDim.x) {
    j.growth[k].share = j.growth[k].unit / largest;
    j.growth[k].noise_scale = sqrt(noise2);
  }
}

// Clears the histograms of some slots.
inline void clear_slots(const Job& j, int64_t slot, int64_t n, bool counts) {
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int k = 0; k < n_joint(j); k++) {
    Sums* histograms = histograms_of(j, k);
    for (int64_t i = slot * j.histogram_size + first; i < (slot + n) * j.histogram_size;
         i += step) {
      *(uint4*)(histograms + i) = uint4{};
      if (counts && k == 0) {
        of_tree(j, j.counts)[i] = 0;
      }
    }
  }
}

SAPWOOD_KERNEL void begin(SAPWOOD_JOB, int given, int) {
  const Job& j = job;
  const int k = given + place_of_tree();
  if (is_joint(j)) {
    if (blockIdx.x == 0) {
      begin_joint(j);
    }
  } else if (blockIdx.x == 0 && threadIdx.x == 0) {
    begin_tree(j, k, j.output[gradients_of(j, k)].own_min_samples);
    if (place_of_tree() == 0 && !j.one_tree) {
      j.growth->n_finished += n_beside();  // no block reads it before the last step
    }
  }
  clear_slots(j, 0, 1, j.counts != nullptr);
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const int64_t n_sums = 16 * j.max_nodes * (j.one_tree ? j.n_outputs : 1);
  for (int64_t i = first; i < n_sums; i += step) {
    of_tree(j, j.leaf_sums)[i] = 0;
  }
}

// -------------------------------------------------------------------------------------------------
// rows
struct RowSource {         // where the rows of a node are listed
  const Listed* list;      // a row list, or null
  const uint32_t* sample;  // the root's rows, or null: all rows in order
  const int32_t* packed;
  bool has_words;  // the row list has the words of this output
  RowSource(const Job& j, int buffer, int k)
      : list(buffer >= 0 ? of_tree(j, j.lists) + buffer * j.n : nullptr),
        sample(buffer == -2 ? j.sample + copy_of(j, k) * j.n : nullptr),
        packed(j.packed + gradients_of(j, k) * j.n),
        has_words(!is_joint(j) || k == 0) {}
  Listed at(int64_t place) const {
    if (list != nullptr && has_words) {
      return list[place];
    }
    if (list != nullptr) {
      return {list[place].row, packed[list[place].row]};
    }
    const uint32_t row = sample != nullptr ? sample[place] : (uint32_t)place;
    return {row, packed[row]};
  }
};
// The last i with items[i].at <= x; they rise. All lanes of a warp together.
template <class Item>
inline int find_item(const Item* items, int n, int64_t x) {
  const int lane = threadIdx.x % LANES;
  int low = 0;
  int size = n;  // the answer is in low .. low + size - 1
  while (size > 1) {
    const int step = (size + LANES - 1) / LANES;
    const int probe = low + lane * step;
    const unsigned votes = __ballot_sync(ALL_LANES, probe < low + size && items[probe].at <= x);
    const int next = low + (__popc(votes) - 1) * step;
    size = low + size - next < step ? low + size - next : step;
    low = next;
  }
  return low;
}

struct NodeSplit {  // of a node: its rows and where they go
  int32_t begin, end, buffer, place, bin, missing_left;
  const uint64_t* set;  // of codes that go right; null: a range
  NodeSplit(const Job& j, int id, const Node& n, const Batch& batch)
      : begin(n.begin),
        end(n.end),
        buffer(n.buffer),
        place(batch.split.worth ? batch.split.place : n.place),
        bin(batch.split.worth ? batch.split.bin : n.bin),
        missing_left(batch.split.worth ? batch.split.missing_left : n.missing_left),
        set(!has_categories(j) || !j.category[place] ? nullptr
            : batch.split.worth                      ? batch.set
                                                     : of_tree(j, j.sets) + SET_WORDS * id) {}
};

// Sends rows `first .. first + n - 1` of a node's list to its children; at most ROWS_EACH rows a
// thread.
inline void send_rows(const Job& j, int k, const NodeSplit& n, int at, int64_t first, int rows) {
  __shared__ int count[2][ROWS_EACH * MAX_WARPS];
  __shared__ int base[2];
  __shared__ int total[2];
  const int tid = threadIdx.x;
  const int lane = tid % LANES;
  const int warp = tid / LANES;
  const int n_warps = blockDim.x / LANES;
  Split split = threshold_split((uint32_t)n.bin, (uint32_t)j.n_bins[n.place], n.missing_left != 0);
  split.set = n.set;
  const RowSource source(j, n.buffer, k);
  const uint8_t* codes = j.planes + (int64_t)n.place * j.n;
  Listed own[ROWS_EACH];
  unsigned right[ROWS_EACH];
  if (source.list != nullptr) {
#pragma unroll
    for (int e = 0; e < ROWS_EACH; e++) {
      if ((int)(e * blockDim.x) + tid < rows) {
        own[e] = source.list[first + e * blockDim.x + tid];
      }
    }
  } else {
#pragma unroll
    for (int e = 0; e < ROWS_EACH; e++) {
      if ((int)(e * blockDim.x) + tid < rows) {
        own[e] = source.at(first + e * blockDim.x + tid);
      }
    }
  }
#pragma unroll
  for (int e = 0; e < ROWS_EACH; e++) {
    const int i = e * blockDim.x + tid;
    const int rest = rows - (i - lane);
    const int n_rows = rest < 0 ? 0 : rest < LANES ? rest : LANES;
    right[e] = __ballot_sync(ALL_LANES, i < rows && goes_right(split, codes[own[e].row]));
    if (lane == 0) {
      count[1][e * n_warps + warp] = __popc(right[e]);
      count[0][e * n_warps + warp] = n_rows - __popc(right[e]);
    }
  }
  __syncthreads();
  if (warp < 2) {  // warp 0 the left side, warp 1 the right one
    int sum = 0;
    for (int from = 0; from < ROWS_EACH * n_warps; from += LANES) {
      const int i = from + lane;
      const int mine = i < ROWS_EACH * n_warps ? count[warp][i] : 0;
      int up = mine;
      for (int step = 1; step < LANES; step *= 2) {
        const int other = __shfl_up_sync(ALL_LANES, up, step);
        if (lane >= step) {
          up += other;
        }
      }
      if (i < ROWS_EACH * n_warps) {
        count[warp][i] = sum + up - mine;
      }
      sum += __shfl_sync(ALL_LANES, up, LANES - 1);
    }
    if (lane == 0) {
      total[warp] = sum;
      base[warp] =
          sum == 0
              ? 0
              : atomicAdd((warp == 0 ? of_tree(j, j.n_left) : of_tree(j, j.n_right)) + at, sum);
    }
  }
  __syncthreads();
  Listed* out = of_tree(j, j.lists) + (n.buffer == 0 ? 1 : 0) * j.n;
  const int left_at = n.begin + base[0];
  const int right_at = n.end - base[1] - total[1];
  const unsigned before = (1u << lane) - 1;
#pragma unroll
  for (int e = 0; e < ROWS_EACH; e++) {
    if ((int)(e * blockDim.x) + tid >= rows) {
      continue;
    }
    const int goes = right[e] >> lane & 1;
    const int rights = __popc(right[e] & before);
    const int to =
        (goes ? right_at + rights : left_at + lane - rights) + count[goes][e * n_warps + warp];
    out[to] = own[e];
  }
  __syncthreads();
}

// Sums of a tile, [bin][column]: pairs, or words where they fit.
inline Sums load_sums(const Sums* tile, int at, bool packed) {
  if (packed) {
    return unpack(((const int64_t*)tile)[at]);
  }
  const uint4 w = *(const uint4*)(tile + at);
  return {(int64_t)((uint64_t)w.y << 32 | w.x), (int64_t)((uint64_t)w.w << 32 | w.z)};
}
inline void store_sums(Sums* tile, int at, Sums x, bool packed) {
  if (packed) {
    ((int64_t*)tile)[at] = pack(x);
  } else {
    tile[at] = x;
  }
}

// Sums of what a cut sends left in one node, without missing values, and of those. One warp.
inline void left_of(const Job& j, int k, const Node& n, int place, int bin, Sums& values,
                    Sums& missing) {
  const int lane = threadIdx.x % LANES;
  const Sums* tile = histograms_of(j, k) + n.slot * j.histogram_size + place / LANES * TILE_SUMS;
  const int column = place % LANES;
  const bool packed = n.packed != 0;
  Sums own;
#pragma unroll 4  // reads that do not wait for each other
  for (int i = 0; i < TILE_BINS / LANES; i++) {
    if (i * LANES + lane <= bin) {
      own = own + load_sums(tile, (i * LANES + lane) * LANES + column, packed);
    }
  }
  missing = load_sums(tile, j.n_bins[place] * LANES + column, packed);
  values = {warp_sum(own.g), warp_sum(own.h)};
}

// The same of a set of codes, missing values among them.
inline Sums sum_of_set(const Job& j, const Node& n, int place, const uint64_t* right) {
  const Sums* tile =
      of_tree(j, j.histograms) + n.slot * j.histogram_size + place / LANES * TILE_SUMS;
  Sums own;
  for (int b = threadIdx.x % LANES; b <= j.n_bins[place]; b += LANES) {
    if (!(right[b >> 6] >> (b & 63) & 1)) {
      own = own + load_sums(tile, b * LANES + place % LANES, n.packed != 0);
    }
  }
  return {warp_sum(own.g), warp_sum(own.h)};
}

// Symmetric: a node with the split of its level. One warp; its first lane has the node.
inline Node with_level_split(const Job& j, int id, const LevelSplit& split, const uint64_t* set) {
  const Node& from = of_tree(j, j.nodes)[id];
  Sums l;
  Sums missing;
  const int kind = has_categories(j) ? j.category[split.place] : 0;
  if (kind != 0) {
    l = sum_of_set(j, from, split.place, set);
  } else {
    left_of(j, 0, from, split.place, split.bin, l, missing);
  }
  if (split.missing_left) {
    l = l + missing;
  }
  Node n = from;
  n.place = split.place;
  n.column = split.column;
  n.bin = split.bin;
  n.missing_left = split.missing_left;
  n.left_g = l.g;
  n.left_h = l.h;
  const ScoreRule rule = rule_of(j, n, n.place, column_penalty(j, growth_of(j), n.place));
  n.gain = 0.0;
  if (l.h > 0 && l.h < n.h) {
    n.gain = gain_of_split(j, growth_of(j), n, l, n.place,
                           score_split(l, Sums{n.g, n.h} - l, n.bin, rule));
  }
  return n;
}

// Symmetric: what the nodes of a level gain by a split, added in the order of ids. All threads of a
// block.
inline double level_gain(const Job& j, int first, int n, const LevelSplit& split,
                         const uint64_t* set) {
  __shared__ double gained;
  // every block writes the same
  for (int i = threadIdx.x / LANES; i < n; i += blockDim.x / LANES) {
    const Node node = with_level_split(j, first + i, split, set);
    if (threadIdx.x % LANES == 0) {
      of_tree(j, j.nodes)[first + i].gain = node.gain;
    }
  }
  __threadfence_block();
  __syncthreads();
  if (threadIdx.x == 0) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
      sum = sum + of_tree(j, j.nodes)[first + i].gain;
    }
    gained = sum;
  }
  __syncthreads();
  return gained;
}

// The nodes that a step splits. All threads of every block. here (MAX_HERE + 1), out: in shared
// memory
inline void next_batch(const Job& j, int k, int step, BatchItem* here, Batch* out) {
  const Level old = of_tree(j, j.levels)[step - 1];
  const int n = !old.more ? 0 : step == 1 ? 1 : 2 * old.n_batch;
  // every block writes the same there
  BatchItem* items = is_leafwise(j) || n <= MAX_HERE ? here : of_tree(j, j.batch);
  LevelSplit split{};
  int ahead = 0;
  // a level has 2^depth nodes: what is read does not wait for what the level was
  if (is_symmetric(j)) {
    const int leaves = (int)j.max_nodes / 2;
    const int full = 1 << (step < 16 ? step - 1 : 15);
    const int most = full < leaves ? full : leaves;
    const int here = (int)threadIdx.x < most ? most - 1 + threadIdx.x : 0;
    ahead = of_tree(j, j.nodes)[here].end - of_tree(j, j.nodes)[here].begin;
    split = is_joint(j) ? *j.level_split : best_of_level(j, k, most - 1);
    if (n == 0) {
      split = {};
    }
  }
  if (is_symmetric(j) && has_categories(j)) {
    set_of_level(j, split, out->set);
  }
  if (is_symmetric(j) && !is_joint(j) && is_cosine(j) && j.min_split_gain != 0.0 && split.worth) {
    split.worth = level_gain(j, old.first_child, n, split, out->set) > j.min_split_gain;
  }
  const Level level = is_leafwise(j) ? next_best(j, old, step, items)
                                     : next_level(j, old, step, split, items, n, ahead);
  if (threadIdx.x == 0) {
    out->old = old;
    out->level = level;
    out->items = items;
    out->split = split;
  }
  __syncthreads();
}

// The children of a batch become nodes: each of some blocks has some of them. from: this one, of n
inline void record_batch(const Job& j, int step, const Batch& batch, int from, int n) {
  const int n_warps = blockDim.x / LANES;
  const Level& level = batch.level;
  for (int i = from + n * (threadIdx.x / LANES); i < level.n_batch; i += n * n_warps) {
    const int id = batch.items[i].node;
    if (is_joint(j)) {  // the split is in the nodes of all outputs
      for (int k = threadIdx.x % LANES; k < (int)j.n_joint; k += LANES) {
        make_children(j, k, nodes_of(j, k)[id], id, level.first_child + 2 * i, step);
      }
      if (threadIdx.x % LANES == 0) {
        of_tree(j, j.batch)[i] = batch.items[i];
      }
      if (is_symmetric(j) && has_categories(j) && threadIdx.x % LANES < SET_WORDS) {
        of_tree(j, j.sets)[SET_WORDS * id + threadIdx.x % LANES] = batch.set[threadIdx.x % LANES];
      }
      continue;
    }
    const Node n =
        is_symmetric(j) ? with_level_split(j, id, batch.split, batch.set) : of_tree(j, j.nodes)[id];
    if (is_symmetric(j) && has_categories(j) && threadIdx.x % LANES < SET_WORDS) {
      of_tree(j, j.sets)[SET_WORDS * id + threadIdx.x % LANES] = batch.set[threadIdx.x % LANES];
    }
    if (threadIdx.x % LANES != 0) {
      continue;
    }
    Node& out = of_tree(j, j.nodes)[id];
    if (is_symmetric(j)) {
      out.place = n.place;
      out.column = n.column;
      out.bin = n.bin;
      out.missing_left = n.missing_left;
      out.gain = n.gain;
    }
    make_children(j, 0, n, id, level.first_child + 2 * i, step);
    of_tree(j, j.batch)[i] = batch.items[i];
  }
  if (from == 0 && threadIdx.x == 0) {
    of_tree(j, j.levels)[step] = level;
  }
}

// The nodes of a step are chosen and recorded, and their rows go to the children where those are
// searched.
SAPWOOD_BOUNDED(128, 8) void partition(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const int k = given + place_of_tree();
  __shared__ BatchItem here[MAX_HERE + 1];
  __shared__ Batch batch;
  next_batch(j, k, step, here, &batch);
  const Level& t = batch.level;
  const Span span(t.n_rows, j.min_rows, blockIdx.x, gridDim.x);
  if (t.more && span.low < span.high) {
    int at = find_item(batch.items, t.n_batch, span.low);
    for (int64_t low = span.low; low < span.high;) {
      while (batch.items[at + 1].at <= low) {
        at++;
      }
      const NodeSplit n(j, batch.items[at].node, of_tree(j, j.nodes)[batch.items[at].node], batch);
      const int64_t first = batch.items[at].at;
      const int64_t stop = first + n.end - n.begin;
      const int64_t end = stop < span.high ? stop : span.high;
      const int64_t most = (int64_t)ROWS_EACH * blockDim.x;
      const int64_t rows = end - low < most ? end - low : most;
      if (rows > 0) {
        send_rows(j, k, n, at, n.begin + low - first, (int)rows);
      }
      low = rows > 0 ? low + rows : batch.items[at + 1].at;
    }
  }
  if (t.more) {
    clear_slots(j, t.first_slot, t.n_batch, growth_of(j).count_parts > 0);
  }
  // the last blocks first: they have fewest rows
  record_batch(j, step, batch, gridDim.x - 1 - blockIdx.x, gridDim.x);
}

}  // namespace sapwood
