// Histograms of byte codes on the device. A lane has a row of 32 columns and updates column (step
// XOR lane): the lanes of a warp are at different columns, which are different banks of shared
// memory, so no two of them ever collide. A tile of at most 16 or 8 columns has 2 or 4 copies of
// their sums side by side, and takes as many steps as columns.
#pragma once
#include "cuda/growth.h"

namespace sapwood {

struct RowWord {
  int32_t g, h;
};

// Some bits of a number; those of the last part have its sign.
inline int32_t bits_of_part(int64_t x, int part, bool last) {
  const int64_t shifted = x >> (part * PART_BITS);
  return (int32_t)(last ? shifted : shifted & (((int64_t)1 << PART_BITS) - 1));
}

// What a row adds in one part: the narrow word as it is, or some bits of each number. k: the place
// of the gradients
inline RowWord part_of(const Job& j, const Growth& t, int k, Listed row, int part) {
  if (part >= t.n_parts) {  // what it counts for
    const int64_t count = j.repeats == nullptr ? 1 : j.repeats[row.row];
    return {bits_of_part(count, part - t.n_parts, part == t.n_parts + t.count_parts - 1), 0};
  }
  const Pair* wide = (j.search_pairs != nullptr ? j.search_pairs : j.leaf_pairs) + k * j.n;
  Sums s;
  if (j.output[k].is_narrow) {
    s = unpack(row.word);
  } else {
    s = {wide[row.row].g, wide[row.row].h};
  }
  if (j.repeated) {
    s = {s.g * j.repeats[row.row], s.h * j.repeats[row.row]};
  }
  const bool last = part == t.n_parts - 1;
  return {bits_of_part(s.g, part, last), bits_of_part(s.h, part, last)};
}

template <int WIDTH>
struct RowCodes {  // 32 codes of a row, the half of the lane first; of a narrow tile the first half
  uint4 a, b;
  void load(const uint8_t* codes, int lane) {
    const uint4* row = (const uint4*)codes;
    if constexpr (WIDTH < LANES) {
      a = read_ahead(row);
    } else {
      a = read_ahead(row + (lane >> 4));
      b = read_ahead(row + ((lane >> 4) ^ 1));
    }
  }
};

// Adds a row's codes; sums: [bin][32 gradients, 32 hessians]
template <int WIDTH>
inline void add_row(const RowCodes<WIDTH>& row, RowWord q, int lane, uint32_t places,
                    const uint32_t* select, int* sums) {
  constexpr int N_WORDS = WIDTH / 4;
  uint32_t w[8] = {row.a.x, row.a.y, row.a.z, row.a.w, row.b.x, row.b.y, row.b.z, row.b.w};
#pragma unroll
  for (int bit = 0; bit < 2 && 1 << bit < N_WORDS; bit++) {  // word i becomes word i XOR (lane / 4)
    const bool swap = lane >> (2 + bit) & 1;
#pragma unroll
    for (int i = 0; i < N_WORDS; i++) {
      if (!(i & (1 << bit))) {
        const uint32_t x = w[i];
        const uint32_t y = w[i | (1 << bit)];
        w[i] = swap ? y : x;
        w[i | (1 << bit)] = swap ? x : y;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < N_WORDS; i++) {
    const uint32_t columns = places ^ (0x10101010u * (uint32_t)i);
#pragma unroll
    for (int e = 0; e < 4; e++) {  // code * 256 + column * 4, in bytes
      int* at = (int*)((char*)sums + permute_bytes(w[i], columns, select[e]));
      atomicAdd(at, q.g);
      atomicAdd(at + LANES, q.h);
    }
  }
}

// Adds the block's sums of one part to a histogram, and clears them.
template <int WIDTH>
inline void flush(int* sums, Sums* out, int64_t* counts, int n_columns, int shift, bool packed) {
  for (int i = threadIdx.x; i < TILE_BINS * WIDTH; i += blockDim.x) {
    const int bin = (i / WIDTH + (int)(blockIdx.x * 37u)) % TILE_BINS;
    const int column = i % WIDTH;  // blocks start apart
    int* own = sums + bin * 2 * LANES + column;
    int64_t g = own[0];
    int64_t h = own[LANES];
    own[0] = own[LANES] = 0;
#pragma unroll
    for (int copy = WIDTH; copy < LANES; copy += WIDTH) {
      g += own[copy];
      h += own[copy + LANES];
      own[copy] = own[copy + LANES] = 0;
    }
    if ((g | h) == 0 || column >= n_columns) {
      continue;
    }
    const int at = bin * LANES + column;
    if (packed) {
      add_to((int64_t*)out + at, pack({g, h}));
    } else {
      add_to(counts != nullptr ? counts + at : &out[at].g, g * ((int64_t)1 << shift));
      if (counts == nullptr) {
        add_to(&out[at].h, h * ((int64_t)1 << shift));
      }
    }
  }
}

struct LaneColumns {  // which column each step of a lane is at
  uint32_t select[4], places = 0;
  explicit LaneColumns(int lane) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      select[e] = (uint32_t)((4 + e) | (e ^ (lane & 3)) << 4 | (12 + e) << 8 | (12 + e) << 12);
      places |= (uint32_t)((lane ^ e) << 2) << (8 * e);
    }
  }
};

// Some rows of a node. While a row is added, the codes of the next are on their way, and the place
// of the one after it.
template <bool FAST, int WIDTH>
inline void add_rows(const Job& j, const Growth& t, int k, const RowSource& source, int64_t first,
                     int rows, int part, const uint8_t* codes, const LaneColumns& columns,
                     int* sums) {
  const int lane = threadIdx.x % LANES;
  const int step = blockDim.x;
  int i = threadIdx.x;
  if (i >= rows) {
    return;
  }
  Listed own = source.at(first + i);
  Listed next{};
  RowCodes<WIDTH> row{};
  RowCodes<WIDTH> next_row{};
  if (i + step < rows) {
    next = source.at(first + i + step);
  }
  row.load(codes + (int64_t)own.row * LANES, lane);
  for (; i < rows; i += step) {
    Listed after{};
    if (i + step < rows) {
      next_row.load(codes + (int64_t)next.row * LANES, lane);
    }
    if (i + 2 * step < rows) {
      after = source.at(first + i + 2 * step);
    }
    const RowWord q =
        FAST ? RowWord{own.word >> 16, own.word & 0xffff} : part_of(j, t, k, own, part);
    add_row<WIDTH>(row, q, lane, columns.places, columns.select, sums);
    own = next;
    next = after;
    row = next_row;
  }
}

// The same as functions of their own: what the kernel keeps besides costs their loops no registers.
template <bool FAST, int WIDTH>
SAPWOOD_APART void add_rows_of(const Job& job, int k, int tile, int buffer, int64_t first, int rows,
                               int part, int* sums) {
  const RowSource source(job, buffer, k);
  const uint8_t* codes = job.codes + (int64_t)tile * job.n * LANES;
  add_rows<FAST, WIDTH>(job, growth_of(job, k), gradients_of(job, k), source, first, rows, part,
                        codes, LaneColumns(threadIdx.x % LANES), sums);
}

// Where the rows of the children are, and which of them are built: the smaller ones. All threads of
// every block; each block writes down some of the children. Returns the number of rows that are
// added, and what nodes cost besides.
inline int list_items(const Job& j, int k, bool writes, const Level& level, BuildItem* items) {
  Node* nodes = nodes_of(j, k);
  int sum = 0;
  for (int first = 0; first < level.n_batch; first += blockDim.x) {
    const int i = first + threadIdx.x;
    BuildItem item{};
    int rows = 0;
    if (i < level.n_batch) {
      const Node& n = nodes[of_tree(j, j.batch)[i].node];
      const int n_left = of_tree(j, j.n_left)[i];
      const int n_right = n.end - n.begin - n_left;
      const bool left_small = n_left <= n_right;
      rows = left_small ? n_left : n_right;
      item.begin = left_small ? n.begin : n.begin + n_left;
      item.buffer = n.buffer == 0 ? 1 : 0;
      item.slot = level.first_slot + i;
      item.packed = growth_of(j, k).fast && rows <= MAX_PACKED_ROWS;
      item.n_rows = rows;
      if (i % (int)gridDim.x == (int)(gridDim.x - 1 - blockIdx.x) && writes) {
        const int left = level.first_child + 2 * i;
        Node& l = nodes[left];
        Node& r = nodes[left + 1];
        l.begin = n.begin;
        l.end = r.begin = n.begin + n_left;
        r.end = n.end;
        l.buffer = r.buffer = item.buffer;
        Node& small = left_small ? l : r;
        Node& large = left_small ? r : l;
        small.slot = item.slot;
        small.packed = item.packed;
        large.slot = n.slot;
        large.packed = n.packed;
      }
    }
    const Scanned scanned = block_scan(i < level.n_batch ? rows + j.node_cost : 0);
    item.at = sum + (int)scanned.before;
    if (i < level.n_batch) {
      items[i] = item;
    }
    sum += (int)scanned.all;
  }
  if (threadIdx.x == 0) {
    items[level.n_batch].at = sum;
  }
  __syncthreads();
  return sum;
}

// The rows of a block's span, node after node.
template <int WIDTH>
inline void add_items(const Job& job, int k, int tile, int n_columns, const BuildItem* items,
                      int n_items, Span span, int* sums) {
  const Job& j = job;
  const Growth& t = growth_of(j, k);
  const int n_parts = t.n_parts;
  const int count_parts = t.count_parts;
  const int fast = t.fast;
  int at = find_item(items, n_items, span.low);
  for (int64_t low = span.low; low < span.high;) {
    while (items[at + 1].at <= low) {
      at++;
    }
    const BuildItem n = items[at];
    int64_t end = n.at + n.n_rows < span.high ? n.at + n.n_rows : span.high;
    if (low >= end) {
      low = items[at + 1].at;
      continue;
    }
    end = end - low > MAX_SPAN ? low + MAX_SPAN : end;
    const int64_t first = n.begin + low - n.at;
    const int64_t place = n.slot * j.histogram_size + tile * TILE_SUMS;
    for (int part = 0; part < n_parts + count_parts; part++) {
      const bool counts = part >= n_parts;
      if (fast && !counts) {
        add_rows_of<true, WIDTH>(job, k, tile, n.buffer, first, (int)(end - low), part, sums);
      } else {
        add_rows_of<false, WIDTH>(job, k, tile, n.buffer, first, (int)(end - low), part, sums);
      }
      __syncthreads();
      flush<WIDTH>(sums, histograms_of(j, k) + place,
                   counts ? of_tree(j, j.counts) + place : nullptr, n_columns,
                   (counts ? part - n_parts : part) * PART_BITS, n.packed != 0 && !counts);
      __syncthreads();
    }
    low = end;
  }
}

// The histograms of the smaller children, or that of the root. A block has some rows of a tile of
// columns, and one of the outputs that are split together.
SAPWOOD_BOUNDED(1024, 1) void histogram(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const int k = is_joint(j) ? (int)(blockIdx.y / j.n_tiles) : given + place_of_tree();
  const int tile = is_joint(j) ? (int)(blockIdx.y % j.n_tiles) : (int)blockIdx.y;
  const Level& level = of_tree(j, j.levels)[step];
  if (!level.more) {
    return;
  }
  __shared__ BuildItem here[MAX_HERE + 1];
  DYNAMIC_SHARED(int, sums);
  // every block of an output writes the same there
  BuildItem* items = level.n_batch <= MAX_HERE ? here
                     : is_joint(j)             ? of_tree(j, j.items) + k * j.n_items
                                               : of_tree(j, j.items);
  for (int i = threadIdx.x; i < (int)TILE_SUMS / 2; i += blockDim.x) {
    ((uint4*)sums)[i] = uint4{};
  }
  int n_rows = level.n_rows;
  int n_items = level.n_batch;
  if (step > 0) {
    n_rows = list_items(j, k, tile == 0, level, items);
  } else {
    const Node& root = nodes_of(j, k)[0];
    n_items = 1;
    if (threadIdx.x == 0) {
      items[0] = {0, 0, root.buffer, 0, root.packed, n_rows};
      items[1].at = n_rows;
    }
    __syncthreads();
  }
  const Span span(n_rows, j.min_rows, blockIdx.x, gridDim.x);
  if (span.low >= span.high) {
    return;
  }
  const int rest = (int)j.n_columns - tile * LANES;
  const int n_columns = rest < LANES ? rest : LANES;
  if constexpr (MAY_BE_NARROW) {
    if (n_columns <= 8) {
      return add_items<8>(job, k, tile, n_columns, items, n_items, span, sums);
    }
    if (n_columns <= 16) {
      return add_items<16>(job, k, tile, n_columns, items, n_items, span, sums);
    }
  }
  add_items<LANES>(job, k, tile, n_columns, items, n_items, span, sums);
}

}  // namespace sapwood
