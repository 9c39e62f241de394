// Histograms of byte codes on the device. A lane has a row of 32 columns and updates column (step XOR lane): the lanes
// of a warp are at different columns, which are different banks of shared memory, so no two of them ever collide.
#pragma once
#include "cuda/growth.h"

namespace sapwood {

struct RowWord {
  int32_t g, h;
};

// What a row adds in one part: the narrow word as it is, or some bits of each number.
inline RowWord part_of(const Job& j, const Growth& t, int k, Listed row, int part) {
  if (t.fast) return {row.word >> 16, row.word & 0xffff};
  const Pair* wide = (j.search_pairs != nullptr ? j.search_pairs : j.leaf_pairs) + k * j.n;
  Sums s;
  if (j.output[k].is_narrow) s = unpack(row.word);
  else s = {wide[row.row].g, wide[row.row].h};
  if (j.repeated) s = {s.g * j.repeats[row.row], s.h * j.repeats[row.row]};
  const int shift = part * PART_BITS;
  const bool top = part == t.n_parts - 1;
  const int64_t mask = ((int64_t)1 << PART_BITS) - 1, g = s.g >> shift, h = s.h >> shift;
  return {(int32_t)(top ? g : g & mask), (int32_t)(top ? h : h & mask)};
}

// Adds a row's 32 codes; sums: [bin][32 gradients, 32 hessians]
inline void add_row(const uint8_t* codes, RowWord q, int lane, uint32_t places, const uint32_t* select, int* sums) {
  const uint4* row = (const uint4*)codes;
  const uint4 a = row[lane >> 4], b = row[(lane >> 4) ^ 1];
  uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
  for (int bit = 0; bit < 2; bit++) {  // word i becomes word i XOR (lane / 4)
    const bool swap = lane >> (2 + bit) & 1;
#pragma unroll
    for (int i = 0; i < 8; i++)
      if (!(i & (1 << bit))) {
        const uint32_t x = w[i], y = w[i | (1 << bit)];
        w[i] = swap ? y : x, w[i | (1 << bit)] = swap ? x : y;
      }
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
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
inline void flush(int* sums, Sums* out, int n_columns, int shift) {
  for (int i = threadIdx.x; i < (int)TILE_SUMS; i += blockDim.x) {
    const int at = (i + (int)((blockIdx.x * 37u) % TILE_BINS) * LANES) % (int)TILE_SUMS;  // blocks start apart
    const int place = at / LANES * 2 * LANES + at % LANES;
    const int64_t g = sums[place], h = sums[place + LANES];
    if ((g | h) != 0 && at % LANES < n_columns) {
      add_to(&out[at].g, g * ((int64_t)1 << shift));
      add_to(&out[at].h, h * ((int64_t)1 << shift));
    }
    sums[place] = sums[place + LANES] = 0;
  }
}

SAPWOOD_KERNEL void histogram(const Job* job, int k, int min_rows) {
  const Job& j = *job;
  const Growth& t = *j.growth;
  if (t.n_jobs == 0) return;
  Span span(t.job_rows, min_rows);
  if (span.low >= span.high) return;
  DYNAMIC_SHARED(int, sums);
  const int tid = threadIdx.x, lane = tid % LANES, tile = blockIdx.y;
  const int rest = (int)j.n_columns - tile * LANES, n_columns = rest < LANES ? rest : LANES;
  const uint8_t* codes = j.codes + (int64_t)tile * j.n * LANES;
  uint32_t select[4], places = 0;
#pragma unroll
  for (int e = 0; e < 4; e++) {
    select[e] = (uint32_t)((4 + e) | (e ^ (lane & 3)) << 4 | (12 + e) << 8 | (12 + e) << 12);
    places |= (uint32_t)((lane ^ e) << 2) << (8 * e);
  }
  for (int i = tid; i < 2 * (int)TILE_SUMS; i += blockDim.x) sums[i] = 0;
  __syncthreads();
  int at = find_span(j.job_at, t.n_jobs, span.low);
  for (int64_t low = span.low; low < span.high;) {
    while (j.job_at[at + 1] <= low) at++;
    int64_t end = j.job_at[at + 1] < span.high ? j.job_at[at + 1] : span.high;
    end = end - low > MAX_SPAN ? low + MAX_SPAN : end;
    const Node& n = j.nodes[j.jobs[at]];
    const int64_t first = n.begin + low - j.job_at[at];
    const int rows = (int)(end - low);
    for (int part = 0; part < t.n_parts; part++) {
      Listed next{};
      if (tid < rows) next = entry(j, n, k, first + tid);
      for (int i = tid; i < rows; i += blockDim.x) {
        const Listed own = next;
        if (i + (int)blockDim.x < rows) next = entry(j, n, k, first + i + blockDim.x);
        add_row(codes + (int64_t)own.row * LANES, part_of(j, t, k, own, part), lane, places, select, sums);
      }
      __syncthreads();
      flush(sums, j.histograms + n.slot * j.histogram_size + tile * TILE_SUMS, n_columns, part * PART_BITS);
      __syncthreads();
    }
    low = end;
  }
}

}  // namespace sapwood
