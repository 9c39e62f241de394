// Histograms: for every column of a tile, the sum of (g, h) per code over a node's rows.
//
//   a row of a group (uint8)     | c0 c1 c2 ... c15 | c16 ... c31 |      stride bytes
//   tile histogram (int64)       | column 0: 264 words | column 1: 264 words | ...      L1-resident, one add per row and column
//
// A packed word holds g in its upper and h in its lower 32 bits, so one add serves both; words are flushed into 64-bit pairs
// before a lane can overflow (PACKED_ROWS). Measured on one core: 0.32 to 0.45 ns per row and column, about one store a cycle.
#pragma once
#include <utility>

#include "kernels.h"

namespace sapwood::inline SAPWOOD_ISA {

// Rows prefetched ahead of a gather: into L2, since L1 is full of the histogram, and both ends of the tile's bytes, since they may
// lie in two cache lines. Measured on cold rows, 1/30 of them asked: 0.52 ns; into L1 0.68; one end alone 1.1; 32 or 64 rows alike.
constexpr int AHEAD = 64;

template <int WIDTH>
static void tile(const uint8_t* __restrict codes, size_t stride, const int32_t* __restrict rows, int64_t n,
                 const int32_t* __restrict packed, int64_t* __restrict hist) {
  auto update = [&](const uint8_t* row, int32_t q) {
    const int64_t v = ((int64_t)(q >> 16) << 32) + (q & 0xffff);
#pragma GCC unroll 16
    for (int c = 0; c < WIDTH; c++) hist[c * HIST_STRIDE + row[c]] += v;
  };
  if (rows == nullptr) {
    for (int64_t i = 0; i < n; i++) update(codes + i * stride, packed[i]);
    return;
  }
  const int64_t near = n > AHEAD ? n - AHEAD : 0;
  for (int64_t i = 0; i < near; i++) {
    const uint8_t* later = codes + (size_t)(uint32_t)rows[i + AHEAD] * stride;
    __builtin_prefetch(later, 0, 2);
    __builtin_prefetch(later + WIDTH - 1, 0, 2);
    update(codes + (size_t)(uint32_t)rows[i] * stride, packed[i]);
  }
  for (int64_t i = near; i < n; i++) update(codes + (size_t)(uint32_t)rows[i] * stride, packed[i]);
}

using Tile = void (*)(const uint8_t*, size_t, const int32_t*, int64_t, const int32_t*, int64_t*);
template <int... WIDTH>
constexpr Tile tile_of(int width, std::integer_sequence<int, WIDTH...>) {
  constexpr Tile all[] = {tile<WIDTH + 1>...};
  return all[width - 1];
}

static void histogram(const uint8_t* codes, size_t stride, int width, const int32_t* rows, int64_t n,
                      const int32_t* packed, int64_t* hist) {
  // In order, 8 columns at a time: 0.32 ns against 0.42 for 14 where L1 has 32 KB.
  const int step = rows == nullptr ? TILE / 2 : width, pieces = (width + step - 1) / step;
  for (int k = 0; k < pieces; k++) {
    const int first = width * k / pieces, last = width * (k + 1) / pieces;
    tile_of(last - first, std::make_integer_sequence<int, TILE>())(codes + first, stride, rows, n, packed,
                                                                   hist + first * HIST_STRIDE);
  }
}

template <class Code>
static void pairs_of(const Code* __restrict codes, size_t stride, int width, const int32_t* __restrict rows, int64_t n,
                     const Pair* __restrict q, const int32_t* __restrict multiple, size_t hist_stride,
                     int64_t* __restrict hist) {
  for (int64_t i = 0; i < n; i++) {
    const size_t r = rows == nullptr ? (size_t)i : (size_t)(uint32_t)rows[i];
    if (rows != nullptr && i + AHEAD < n) {
      const size_t later = (size_t)(uint32_t)rows[i + AHEAD];
      __builtin_prefetch(codes + later * stride, 0, 2);
      __builtin_prefetch(codes + later * stride + width - 1, 0, 2);
      __builtin_prefetch(q + later, 0, 2);
    }
    const int64_t w = multiple == nullptr ? 1 : multiple[r];
    const int64_t g = q[r].g * w, h = q[r].h * w;
    const Code* row = codes + r * stride;
    for (int c = 0; c < width; c++) {
      int64_t* word = hist + 2 * (c * hist_stride + row[c]);
      word[0] += g;
      word[1] += h;
    }
  }
}

static void histogram_pairs(const void* codes, bool wide_codes, size_t stride, int width, const int32_t* rows,
                            int64_t n, const Pair* q, const int32_t* multiple, size_t hist_stride, int64_t* hist) {
  if (wide_codes) pairs_of((const uint16_t*)codes, stride, width, rows, n, q, multiple, hist_stride, hist);
  else pairs_of((const uint8_t*)codes, stride, width, rows, n, q, multiple, hist_stride, hist);
}

static void flush(int64_t* packed, int64_t* pairs, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    pairs[2 * i] += packed[i] >> 32;
    pairs[2 * i + 1] += packed[i] & 0xffffffff;
    packed[i] = 0;
  }
}

static void add(int64_t* into, const int64_t* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) into[i] += from[i];
}

static void subtract(int64_t* into, const int64_t* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) into[i] -= from[i];
}

static void subtract_packed(int64_t* into_pairs, const int64_t* packed, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    into_pairs[2 * i] -= packed[i] >> 32;
    into_pairs[2 * i + 1] -= packed[i] & 0xffffffff;
  }
}

static void pack(int64_t* packed, const int64_t* pairs, int64_t n) {
  for (int64_t i = 0; i < n; i++) packed[i] = pairs[2 * i] * 4294967296 + pairs[2 * i + 1];
}

}  // namespace sapwood::inline SAPWOOD_ISA
