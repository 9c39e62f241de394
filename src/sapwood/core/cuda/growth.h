// One step of growth on the device: the rows of a batch of nodes go to their children, the smaller children's histograms
// are built, the others are what remains of their parents', and both are searched.
#pragma once
#include "cuda/frontier.h"
#include "cuda/gradient_pass.h"

namespace sapwood {

constexpr int TILE_BINS = 256;                    // codes of a narrow column
constexpr int64_t TILE_SUMS = TILE_BINS * LANES;  // sums of a tile of 32 columns: [bin][column]
constexpr int64_t MAX_SPAN = 32768;               // rows whose parts fit 32-bit sums: 2^15 * 2^15 < 2^31
constexpr int ROWS_EACH = 8;                      // rows of a thread in one step of the partition
constexpr int MAX_PACKED_ROWS = 131071;           // rows whose narrow sums fit one word
constexpr int PART_BITS = 15;                     // of a number whose parts are added apart

// ---------------------------------------------------------------------------------------------------- the root
// Fixes the scales of an output, and what the search of its tree needs; its first node.
inline void begin_tree(const Job& j, int k) {
  Output& o = j.output[k];
  Growth& t = *j.growth;
  fix_scales(j, o);
  const int32_t n_rows = j.all_rows ? (int32_t)j.n : t.n_rows;
  t.scale = o.is_narrow ? o.narrow : Scale{WIDE, o.narrow.g, o.narrow.h};
  const double gs = g_scale(t.scale), hs = h_scale(t.scale);
  t.unit = hs / (gs * gs);
  t.penalty = {j.reg_lambda * hs, j.reg_alpha * gs, j.max_delta_step * gs / hs, j.min_child_weight * hs};
  const double min_rows = j.min_samples_leaf == 0.0 ? o.own_min_samples : j.min_samples_leaf;
  t.min_samples = min_rows;
  t.min_count = min_rows * power_of_two((int)j.weight_shift);
  t.counts_rows = min_rows > 1.0;
  if (t.counts_rows && j.counts_by_hessian &&
      (o.constant_hessian || j.unit_search || j.unit_leaf)) {  // then the hessian counts rows
    const double rows = t.min_count * (double)quantise_h(of_bits(o.kept_max_search), hs);
    t.penalty.min_h = rows > t.penalty.min_h ? rows : t.penalty.min_h;
    t.counts_rows = 0;
  }
  t.fast = o.is_narrow && !j.repeated;
  int bits = o.is_narrow ? NARROW : WIDE;
  for (int64_t w = j.max_repeats; w > 1; w = (w + 1) / 2) bits += j.repeated != 0;
  t.n_parts = t.fast ? 1 : (bits + PART_BITS - 1) / PART_BITS;
  t.count_parts = !t.counts_rows && !j.counts_nodes ? 0 : j.repeats == nullptr ? 1 : 3;  // counts are below 2^31
  j.levels[0] = {1, 1, 0, 0, 0, 1, 1, n_rows};
  j.n_left[0] = j.n_right[0] = 0;
  Node root{};
  root.column = -1, root.end = n_rows, root.buffer = j.all_rows ? -1 : -2, root.low = -INF, root.high = INF;
  root.groups = ~0ull, root.parent = -1, root.packed = t.fast && n_rows <= MAX_PACKED_ROWS;
  j.nodes[0] = root;
}

// Clears the histograms of some slots.
inline void clear_slots(const Job& j, int64_t slot, int64_t n, bool counts) {
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = slot * j.histogram_size + first; i < (slot + n) * j.histogram_size; i += step) {
    *(uint4*)(j.histograms + i) = uint4{};
    if (counts) j.counts[i] = 0;
  }
}

SAPWOOD_KERNEL void begin(SAPWOOD_JOB, int k, int) {
  const Job& j = job;
  if (blockIdx.x == 0 && threadIdx.x == 0) begin_tree(j, k);
  clear_slots(j, 0, 1, j.counts != nullptr);
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = first; i < 16 * j.max_nodes; i += step) j.leaf_sums[i] = 0;
}

// ------------------------------------------------------------------------------------------------------- rows
struct RowSource {         // where the rows of a node are listed
  const Listed* list;      // a row list, or null
  const uint32_t* sample;  // the root's rows, or null: all rows in order
  const int32_t* packed;
  RowSource(const Job& j, int buffer, int k)
      : list(buffer >= 0 ? j.lists + buffer * j.n : nullptr),
        sample(buffer == -2 ? j.sample : nullptr),
        packed(j.packed + k * j.n) {}
  Listed at(int64_t place) const {
    if (list != nullptr) return list[place];
    const uint32_t row = sample != nullptr ? sample[place] : (uint32_t)place;
    return {row, packed[row]};
  }
};
// The last i with items[i].at <= x; they rise. All lanes of a warp together.
template <class Item>
inline int find_item(const Item* items, int n, int64_t x) {
  const int lane = threadIdx.x % LANES;
  int low = 0, size = n;  // the answer is in low .. low + size - 1
  while (size > 1) {
    const int step = (size + LANES - 1) / LANES, probe = low + lane * step;
    const unsigned votes = __ballot_sync(ALL_LANES, probe < low + size && items[probe].at <= x);
    const int next = low + (__popc(votes) - 1) * step;
    size = low + size - next < step ? low + size - next : step;
    low = next;
  }
  return low;
}

struct Span {  // of the concatenated rows of several nodes, what a block has
  int64_t low, high;
  Span(int64_t total, int64_t min_rows, int block, int n_blocks) {
    int64_t each = (total + n_blocks - 1) / n_blocks;
    each = each < min_rows ? min_rows : each;
    low = block * each, high = low + each < total ? low + each : total;
  }
};

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
                                                     : j.sets + SET_WORDS * id) {}
};

// Sends rows `first .. first + n - 1` of a node's list to its children; at most ROWS_EACH rows a thread.
inline void send_rows(const Job& j, int k, const NodeSplit& n, int at, int64_t first, int rows) {
  __shared__ int count[2][ROWS_EACH * MAX_WARPS], base[2], total[2];
  const int tid = threadIdx.x, lane = tid % LANES, warp = tid / LANES, n_warps = blockDim.x / LANES;
  Split split = threshold_split((uint32_t)n.bin, (uint32_t)j.n_bins[n.place], n.missing_left != 0);
  split.set = n.set;
  const RowSource source(j, n.buffer, k);
  const uint8_t* codes = j.planes + (int64_t)n.place * j.n;
  Listed own[ROWS_EACH];
  unsigned right[ROWS_EACH];
  if (source.list != nullptr) {
#pragma unroll
    for (int e = 0; e < ROWS_EACH; e++)
      if ((int)(e * blockDim.x) + tid < rows) own[e] = source.list[first + e * blockDim.x + tid];
  } else {
#pragma unroll
    for (int e = 0; e < ROWS_EACH; e++)
      if ((int)(e * blockDim.x) + tid < rows) own[e] = source.at(first + e * blockDim.x + tid);
  }
#pragma unroll
  for (int e = 0; e < ROWS_EACH; e++) {
    const int i = e * blockDim.x + tid, rest = rows - (i - lane), n_rows = rest < 0 ? 0 : rest < LANES ? rest : LANES;
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
      const int i = from + lane, mine = i < ROWS_EACH * n_warps ? count[warp][i] : 0;
      int up = mine;
      for (int step = 1; step < LANES; step *= 2) {
        const int other = __shfl_up_sync(ALL_LANES, up, step);
        if (lane >= step) up += other;
      }
      if (i < ROWS_EACH * n_warps) count[warp][i] = sum + up - mine;
      sum += __shfl_sync(ALL_LANES, up, LANES - 1);
    }
    if (lane == 0) {
      total[warp] = sum;
      base[warp] = sum == 0 ? 0 : atomicAdd((warp == 0 ? j.n_left : j.n_right) + at, sum);
    }
  }
  __syncthreads();
  Listed* out = j.lists + (n.buffer == 0 ? 1 : 0) * j.n;
  const int left_at = n.begin + base[0], right_at = n.end - base[1] - total[1];
  const unsigned before = (1u << lane) - 1;
#pragma unroll
  for (int e = 0; e < ROWS_EACH; e++) {
    if ((int)(e * blockDim.x) + tid >= rows) continue;
    const int goes = right[e] >> lane & 1, rights = __popc(right[e] & before);
    const int to = (goes ? right_at + rights : left_at + lane - rights) + count[goes][e * n_warps + warp];
    out[to] = own[e];
  }
  __syncthreads();
}

// Sums of a tile, [bin][column]: pairs, or words where they fit.
inline Sums load_sums(const Sums* tile, int at, bool packed) {
  if (packed) return unpack(((const int64_t*)tile)[at]);
  const uint4 w = *(const uint4*)(tile + at);
  return {(int64_t)((uint64_t)w.y << 32 | w.x), (int64_t)((uint64_t)w.w << 32 | w.z)};
}
inline void store_sums(Sums* tile, int at, Sums x, bool packed) {
  if (packed) ((int64_t*)tile)[at] = pack(x);
  else tile[at] = x;
}

// Sums of what a cut sends left in one node, without missing values, and of those. One warp.
inline void left_of(const Job& j, const Node& n, int place, int bin, Sums& values, Sums& missing) {
  const int lane = threadIdx.x % LANES;
  const Sums* tile = j.histograms + n.slot * j.histogram_size + place / LANES * TILE_SUMS;
  const int column = place % LANES;
  const bool packed = n.packed != 0;
  Sums own;
  for (int b = lane; b <= bin; b += LANES) own = own + load_sums(tile, b * LANES + column, packed);
  values = {warp_sum(own.g), warp_sum(own.h)};
  missing = load_sums(tile, j.n_bins[place] * LANES + column, packed);
}

// The same of a set of codes, missing values among them.
inline Sums sum_of_set(const Job& j, const Node& n, int place, const uint64_t* right) {
  const Sums* tile = j.histograms + n.slot * j.histogram_size + place / LANES * TILE_SUMS;
  Sums own;
  for (int b = threadIdx.x % LANES; b <= j.n_bins[place]; b += LANES)
    if (!(right[b >> 6] >> (b & 63) & 1)) own = own + load_sums(tile, b * LANES + place % LANES, n.packed != 0);
  return {warp_sum(own.g), warp_sum(own.h)};
}

// Symmetric: a node takes the split of its level. One warp; its first lane has the node.
inline void take_level_split(const Job& j, Node& n, const LevelSplit& split, const uint64_t* set) {
  Sums values, missing;
  const int kind = has_categories(j) ? j.category[split.place] : 0;
  if (kind != 0) values = sum_of_set(j, n, split.place, set);
  else left_of(j, n, split.place, split.bin, values, missing);
  n.place = split.place, n.column = split.column, n.bin = split.bin, n.missing_left = split.missing_left;
  n.left_g = values.g + (split.missing_left ? missing.g : 0),
  n.left_h = values.h + (split.missing_left ? missing.h : 0);
  ScoreRule rule{j.growth->penalty};
  if (kind == PARTITION) rule.penalty.lambda = rule.penalty.lambda + j.cat_l2 * h_scale(j.growth->scale);
  if (MAY_BIND && j.direction != nullptr)
    rule.bounded = true, rule.low = n.low, rule.high = n.high, rule.direction = j.direction[n.place],
    rule.free_bin = j.n_bins[n.place] - 1;
  n.gain = 0.0;
  if (n.left_h <= 0 || n.left_h >= n.h) return;
  const Sums l{n.left_g, n.left_h};
  n.gain = 0.5 * (score_split(l, Sums{n.g, n.h} - l, n.bin, rule) - n.score) * j.growth->unit;
}

// The children of a batch become nodes: each block has some of them, the last blocks first, as they have fewest rows.
inline void record_batch(const Job& j, int step, const Batch& batch) {
  const int from = gridDim.x - 1 - blockIdx.x, n_warps = blockDim.x / LANES;
  const Level& level = batch.level;
  for (int i = from + gridDim.x * (threadIdx.x / LANES); i < level.n_batch; i += gridDim.x * n_warps) {
    const int id = batch.items[i].node;
    Node n = j.nodes[id];
    if (is_symmetric(j)) take_level_split(j, n, batch.split, batch.set);
    if (is_symmetric(j) && has_categories(j) && threadIdx.x % LANES < SET_WORDS)
      j.sets[SET_WORDS * id + threadIdx.x % LANES] = batch.set[threadIdx.x % LANES];
    if (threadIdx.x % LANES != 0) continue;
    Node& out = j.nodes[id];
    if (is_symmetric(j))
      out.place = n.place, out.column = n.column, out.bin = n.bin, out.missing_left = n.missing_left, out.gain = n.gain;
    make_children(j, n, id, level.first_child + 2 * i, step);
    j.batch[i] = batch.items[i];
  }
  if (from == 0 && threadIdx.x == 0) j.levels[step] = level;
}

// The nodes of a step are chosen and recorded, and their rows go to the children where those are searched.
SAPWOOD_BOUNDED(128, 8) void partition(SAPWOOD_JOB, int k, int step) {
  const Job& j = job;
  __shared__ BatchItem here[MAX_HERE + 1];
  __shared__ Batch batch;
  next_batch(j, step, here, &batch);
  const Level& t = batch.level;
  const Span span(t.n_rows, j.min_rows, blockIdx.x, gridDim.x);
  if (t.more && span.low < span.high) {
    int at = find_item(batch.items, t.n_batch, span.low);
    for (int64_t low = span.low; low < span.high;) {
      while (batch.items[at + 1].at <= low) at++;
      const NodeSplit n(j, batch.items[at].node, j.nodes[batch.items[at].node], batch);
      const int64_t first = batch.items[at].at, stop = batch.items[at + 1].at,
                    end = stop < span.high ? stop : span.high, most = (int64_t)ROWS_EACH * blockDim.x,
                    rows = end - low < most ? end - low : most;
      send_rows(j, k, n, at, n.begin + low - first, (int)rows);
      low += rows;
    }
  }
  if (t.more) clear_slots(j, t.first_slot, t.n_batch, j.growth->count_parts > 0);
  record_batch(j, step, batch);
}

}  // namespace sapwood
