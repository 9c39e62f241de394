// Histograms: for every slot of a tile, the sum of (g, h) per code over a node's rows.
//
//   a row of a block (uint8)     | s0 s1 s2 ... s15 | s16 ... s31 |      stride bytes
//   histogram (int64)            | slot 0: 264 words | slot 1: 264 words | ...   8 slots at a time: one add a row
//
// A packed word holds g in its upper and h in its lower 32 bits, so one add serves both; words are
// flushed into 64-bit pairs before a lane can overflow (PACKED_ROWS). A node's rows are scattered
// over the table: a strip of them is copied side by side and added in order, while the rows of the
// next strip are on their way to L2. Measured on one core, ns per row and column: all rows 0.32,
// about one store a cycle; half of them to 1/64 0.33 to 0.37 where the table fits L3, else up to
// 0.46 (uncopied 0.40 to 0.50).
#pragma once
#include <utility>

#include "cpu/kernels/kernels.h"

namespace sapwood::inline SAPWOOD_ISA {

// columns counted at a time: 0.32 ns against 0.42 for 14 where L1 has 32 KB
constexpr int NARROW_TILE = TILE / 2;
// rows of a strip: a strip in order stays in L2 from tile to tile,
constexpr int64_t IN_ORDER = 4096;
constexpr int64_t COPIED = 1024;  // and a copied one while the next is fetched;
// the first, which nobody fetched, is short, and each may be twice the last
constexpr int64_t FIRST_COPIED = 128;
constexpr int AHEAD = 64;  // rows fetched ahead of pairs, which are not copied

static int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

struct Fetch {  // rows of a table that will be wanted soon
  const uint8_t* codes;
  size_t stride;
  int width;
  const int32_t* rows;
  int64_t n;
  // into L2, since L1 is full; both ends may lie in two cache lines
  void operator()(int64_t i) const {
    const uint8_t* row = codes + (size_t)(uint32_t)rows[i] * stride;
    __builtin_prefetch(row, 0, 2);
    __builtin_prefetch(row + width - 1, 0, 2);
  }
};

// Accumulates n rows in order, and fetches one other row for every `each` of them: evenly, since
// memory serves a burst slowly.
template <int WIDTH>
static void tile(const uint8_t* __restrict codes, size_t stride, int64_t n,
                 const int32_t* __restrict packed, int64_t* __restrict hist, const Fetch& fetch,
                 int64_t each) {
  auto update = [&](int64_t i) {
    const uint8_t* row = codes + i * stride;
    const int64_t v = widen(packed[i]);
#pragma GCC unroll 8
    for (int c = 0; c < WIDTH; c++) {
      hist[c * HIST_STRIDE + row[c]] += v;
    }
  };
  int64_t i = 0;
  for (int64_t k = 0; k < fetch.n; k++) {
    fetch(k);
    for (int64_t j = 0; j < each; j++) {
      update(i++);
    }
  }
  for (; i < n; i++) {
    update(i);
  }
}

template <int... WIDTH>
constexpr auto tile_of(int width, std::integer_sequence<int, WIDTH...>) {
  constexpr decltype(&tile<1>) all[] = {tile<WIDTH + 1>...};
  return all[width - 1];
}

// A strip of rows in order; `next` is fetched meanwhile.
static void accumulate_strip(const uint8_t* codes, size_t stride, int width, int64_t n,
                             const int32_t* packed, int64_t* hist, const Fetch& next) {
  const int n_tiles = (width + NARROW_TILE - 1) / NARROW_TILE;
  for (int t = 0; t < n_tiles; t++) {
    const int first = width * t / n_tiles;
    const int last = width * (t + 1) / n_tiles;
    const int64_t from = next.n * t / n_tiles;
    const int64_t share = min_of(next.n * (t + 1) / n_tiles - from, n);
    tile_of(last - first, std::make_integer_sequence<int, NARROW_TILE>())(
        codes + first, stride, n, packed, hist + first * HIST_STRIDE,
        {next.codes, next.stride, next.width, next.rows + from, share}, share == 0 ? 0 : n / share);
  }
}

// Scattered rows, WORDS * 4 bytes of each.
template <int WORDS>
static void gather(const uint8_t* codes, size_t stride, int width, const int32_t* rows, int64_t n,
                   const int32_t* packed, int64_t* hist) {
  uint8_t strip[COPIED * WORDS * 4];
  const Fetch all{codes, stride, width, rows, n};
  int64_t m = min_of(FIRST_COPIED, n);
  for (int64_t i = 0; i < m; i++) {
    all(i);
  }
  for (int64_t at = 0; at < n;) {
    for (int64_t i = 0; i < m; i++) {
      __builtin_memcpy(strip + i * WORDS * 4, codes + (size_t)(uint32_t)rows[at + i] * stride,
                       WORDS * 4);
    }
    const int64_t n_next = min_of(min_of(COPIED, 2 * m), n - at - m);
    accumulate_strip(strip, WORDS * 4, width, m, packed + at, hist,
                     {codes, stride, width, rows + at + m, n_next});
    at += m;
    m = n_next;
  }
}

template <int... WORDS>
constexpr auto gather_of(int words, std::integer_sequence<int, WORDS...>) {
  constexpr decltype(&gather<1>) all[] = {gather<WORDS + 1>...};
  return all[words - 1];
}

static void histogram(const uint8_t* codes, size_t stride, int width, const int32_t* rows,
                      int64_t n, const int32_t* packed, int64_t* hist) {
  if (rows != nullptr) {
    return gather_of((width + 3) / 4, std::make_integer_sequence<int, SLOT_BLOCK / 4>())(
        codes, stride, width, rows, n, packed, hist);
  }
  for (int64_t at = 0; at < n; at += IN_ORDER) {
    accumulate_strip(codes + at * stride, stride, width, min_of(IN_ORDER, n - at), packed + at,
                     hist, {});
  }
}

// Rows in order, several outputs: one code serves a vector of words. Four columns at a time, so
// that an add does not wait for the last one's store where a column has few codes.
template <int WIDTH>
static void outputs_tile(const uint8_t* const* columns, int64_t at, int64_t n,
                         const int32_t* packed, int64_t* hist) {
  typedef int32_t Narrow __attribute__((vector_size(OUTPUTS * 4)));
  typedef int64_t Wide __attribute__((vector_size(OUTPUTS * 8)));
  const Narrow* q = (const Narrow*)packed;
  Wide* sums = (Wide*)hist;
  const uint8_t* codes[WIDTH];
  for (int c = 0; c < WIDTH; c++) {
    codes[c] = columns[c] + at;
  }
  for (int64_t i = 0; i < n; i++) {
    const Wide x = __builtin_convertvector(q[i], Wide);
    const Wide v = ((x >> 16) << 32) + (x & 0xffff);
    for (int c = 0; c < WIDTH; c++) {
      sums[c * HIST_STRIDE + codes[c][i]] += v;
    }
  }
}

static void histogram_outputs(const uint8_t* const* columns, int width,
                              const int32_t* const* packed, int64_t n, int64_t* hist) {
  constexpr int64_t STEP = 2048;  // rows whose gradients stay in L2 from tile to tile
  alignas(64) int32_t side_by_side[STEP * OUTPUTS];
  for (int64_t at = 0; at < n; at += STEP) {
    const int64_t m = min_of(STEP, n - at);
    for (int64_t i = 0; i < m; i++) {
      for (int k = 0; k < OUTPUTS; k++) {
        side_by_side[i * OUTPUTS + k] = packed[k][at + i];
      }
    }
    int c = 0;
    for (; c + 4 <= width; c += 4) {
      outputs_tile<4>(columns + c, at, m, side_by_side, hist + c * HIST_STRIDE * OUTPUTS);
    }
    for (; c < width; c++) {
      outputs_tile<1>(columns + c, at, m, side_by_side, hist + c * HIST_STRIDE * OUTPUTS);
    }
  }
}

static void histogram_wide(const uint16_t* __restrict codes, size_t stride, int width,
                           const int32_t* __restrict rows, int64_t n,
                           const int32_t* __restrict packed, const size_t* __restrict at,
                           int64_t* __restrict hist) {
  for (int64_t i = 0; i < n; i++) {
    if (rows != nullptr && i + AHEAD < n) {
      __builtin_prefetch(codes + (size_t)(uint32_t)rows[i + AHEAD] * stride, 0, 2);
    }
    const uint16_t* row =
        codes + (rows == nullptr ? (size_t)i : (size_t)(uint32_t)rows[i]) * stride;
    const int64_t v = widen(packed[i]);
    for (int c = 0; c < width; c++) {
      hist[at[c] + row[c]] += v;
    }
  }
}

template <class Code>
static void pairs_of(const Code* __restrict codes, size_t stride, int width,
                     const int32_t* __restrict rows, int64_t n, const Pair* __restrict q,
                     const int32_t* __restrict repeats, const size_t* __restrict at,
                     int64_t* __restrict hist) {
  for (int64_t i = 0; i < n; i++) {
    const size_t r = rows == nullptr ? (size_t)i : (size_t)(uint32_t)rows[i];
    if (rows != nullptr && i + AHEAD < n) {
      const size_t later = (size_t)(uint32_t)rows[i + AHEAD];
      __builtin_prefetch(codes + later * stride, 0, 2);
      __builtin_prefetch(codes + later * stride + width - 1, 0, 2);
      __builtin_prefetch(q + later, 0, 2);
    }
    const int64_t w = repeats == nullptr ? 1 : repeats[r];
    const int64_t g = q[r].g * w;
    const int64_t h = q[r].h * w;
    const Code* row = codes + r * stride;
    for (int c = 0; c < width; c++) {
      int64_t* word = hist + 2 * (at[c] + row[c]);
      word[0] += g;
      word[1] += h;
    }
  }
}

static void histogram_pairs(const void* codes, bool wide_codes, size_t stride, int width,
                            const int32_t* rows, int64_t n, const Pair* q, const int32_t* repeats,
                            const size_t* at, int64_t* hist) {
  if (wide_codes) {
    pairs_of((const uint16_t*)codes, stride, width, rows, n, q, repeats, at, hist);
  } else {
    pairs_of((const uint8_t*)codes, stride, width, rows, n, q, repeats, at, hist);
  }
}

// Lists: `add(i, r)` gives what is added for row r, the i-th of them.
template <class Add>
static void each_list(const uint32_t* offset, const uint16_t* codes, const int32_t* rows, int64_t n,
                      Add&& add) {
  constexpr int FAR = 2 * AHEAD;  // first where a row's codes are is fetched, then the codes
  for (int64_t i = 0; i < n; i++) {
    if (rows != nullptr && i + FAR < n) {
      __builtin_prefetch(offset + (uint32_t)rows[i + FAR], 0, 2);
      __builtin_prefetch(codes + offset[(uint32_t)rows[i + AHEAD]], 0, 2);
    }
    const size_t r = rows == nullptr ? (size_t)i : (size_t)(uint32_t)rows[i];
    add(i, r, codes + offset[r], codes + offset[r + 1]);
  }
}

static void histogram_lists(const uint32_t* offset, const uint16_t* codes, const int32_t* rows,
                            int64_t n, const int32_t* packed, int64_t* hist) {
  each_list(offset, codes, rows, n,
            [&](int64_t i, size_t, const uint16_t* at, const uint16_t* end) {
              const int64_t v = widen(packed[i]);
              for (; at < end; at++) {
                hist[*at] += v;
              }
            });
}

static void histogram_lists_pairs(const uint32_t* offset, const uint16_t* codes,
                                  const int32_t* rows, int64_t n, const Pair* q,
                                  const int32_t* repeats, int64_t* hist) {
  each_list(offset, codes, rows, n,
            [&](int64_t, size_t r, const uint16_t* at, const uint16_t* end) {
              const int64_t w = repeats == nullptr ? 1 : repeats[r];
              const int64_t g = q[r].g * w;
              const int64_t h = q[r].h * w;
              for (; at < end; at++) {
                hist[2 * *at] += g;
                hist[2 * *at + 1] += h;
              }
            });
}

static void flush(int64_t* packed, int64_t* pairs, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    pairs[2 * i] += packed[i] >> 32;
    pairs[2 * i + 1] += packed[i] & 0xffffffff;
    packed[i] = 0;
  }
}

static void add(int64_t* into, const int64_t* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    into[i] += from[i];
  }
}

static void subtract(int64_t* into, const int64_t* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    into[i] -= from[i];
  }
}

static void subtract_packed(int64_t* into_pairs, const int64_t* packed, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    into_pairs[2 * i] -= packed[i] >> 32;
    into_pairs[2 * i + 1] -= packed[i] & 0xffffffff;
  }
}

// One member after the other, the outermost first, so that the rest is soon short:
//
//   sums (n, inner)     own[k] = sum of row k      rest[j] = sum of column j, the sums of a slot without that member
template <int WIDTH>
static void marginalise_as(const MarginalArgs& a) {
  int64_t space[2][256 / 2 * WIDTH];
  const int64_t* sums = a.sums;
  int inner = WIDTH;
  for (int m = 1; m < a.n_members; m++) {
    inner *= a.n[m];
  }
  for (int m = 0; m + 1 < a.n_members; m++) {
    int64_t* own = a.to[m];
    int64_t* rest = m + 2 < a.n_members ? space[m % 2] : a.to[m + 1];
    for (int j = 0; j < inner; j++) {
      rest[j] = 0;
    }
    for (int k = 0; k < a.n[m]; k++) {
      const int64_t* row = sums + k * inner;
      int64_t total[WIDTH] = {};
      for (int j = 0; j < inner; j += WIDTH) {
        for (int w = 0; w < WIDTH; w++) {
          total[w] += row[j + w];
          rest[j + w] += row[j + w];
        }
      }
      for (int w = 0; w < WIDTH; w++) {
        own[k * WIDTH + w] = total[w];
      }
    }
    sums = rest;
    inner /= a.n[m + 1];
  }
}

static void marginalise(const MarginalArgs& a) {
  a.width == 1 ? marginalise_as<1>(a) : marginalise_as<2>(a);
}

static void pack(int64_t* packed, const int64_t* pairs, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    packed[i] = pairs[2 * i] * 4294967296 + pairs[2 * i + 1];
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
