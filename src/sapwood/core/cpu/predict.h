// Prediction: a tree over 512 binned rows at once. Every node compares its column's 512 codes and hands bit masks to its children:
//
//   reach[root] = 1111...   node: right = compare(codes, split);  reach[left] = reach & ~right;  reach[right] = reach & right
//   a leaf writes its number where its mask has ones.
//
// Cost grows with leaves, not depth, and nothing is data dependent: 4 to 14 times as fast as following one row down.
#pragma once
#include "../math/real.h"
#include "partition.h"

namespace sapwood::inline SAPWOOD_ISA {

constexpr int WORDS = BLOCK / 64;

static inline void write_leaf(uint8_t* leaf, uint64_t where, uint8_t number) {
#if defined(__AVX512BW__)
  _mm512_mask_storeu_epi8(leaf, where, _mm512_set1_epi8((char)number));
#else
  while (where) {
    leaf[__builtin_ctzll(where)] = number;
    where &= where - 1;
  }
#endif
}

// reach (n_nodes, WORDS) scratch; leaf (BLOCK) OUT
static void leaves(const uint8_t* const* planes, size_t offset, const MaskNode* node, int n_nodes, uint64_t* reach, uint8_t* leaf) {
  for (int w = 0; w < WORDS; w++) reach[w] = ~0ull;
  for (int u = 0; u < n_nodes; u++) {
    const uint64_t* mine = reach + u * WORDS;
    const MaskNode& t = node[u];
    if (t.left == 0) {
      for (int w = 0; w < WORDS; w++) write_leaf(leaf + 64 * w, mine[w], (uint8_t)t.leaf);
      continue;
    }
    const uint8_t* codes = planes[t.plane] + offset;
    uint64_t *left = reach + t.left * WORDS, *right = left + WORDS;
#pragma GCC unroll 8
    for (int w = 0; w < WORDS; w++) {
      const uint64_t r = compare64(codes + 64 * w, t.low, t.length);
      left[w] = mine[w] & ~r;
      right[w] = mine[w] & r;
    }
  }
}

// A symmetric tree: the bits of a leaf's number are its levels' answers, the first level's the highest.
static void symmetric(const uint8_t* const* planes, const MaskNode* level, int depth, uint8_t* leaf) {
#if defined(__AVX512BW__)
  for (int w = 0; w < BLOCK; w += 64) {
    __m512i number = _mm512_setzero_si512();
    for (int d = 0; d < depth; d++)
      number = _mm512_mask_add_epi8(number, compare64(planes[level[d].plane] + w, level[d].low, level[d].length), number,
                                    _mm512_set1_epi8((char)(1 << (depth - 1 - d))));
    _mm512_storeu_si512(leaf + w, number);
  }
#else
  for (int i = 0; i < BLOCK; i++) leaf[i] = 0;
  for (int d = 0; d < depth; d++) {
    const uint8_t* codes = planes[level[d].plane];
    const uint8_t low = level[d].low, length = level[d].length, bit = (uint8_t)(1 << (depth - 1 - d));
    for (int i = 0; i < BLOCK; i++) leaf[i] = (uint8_t)(leaf[i] | ((uint8_t)(codes[i] - low) < length ? bit : 0));
  }
#endif
}

static void add_values(const uint8_t* leaf, const double* value, double* score) {
  for (int i = 0; i < BLOCK; i++) score[i] = score[i] + value[leaf[i]];
}

}  // namespace sapwood::inline SAPWOOD_ISA
