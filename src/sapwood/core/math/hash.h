// Randomness as a function of coordinates (NUMERICS 1): the same draw for a row wherever it lives.
#pragma once
#include <stdint.h>

namespace sapwood::inline SAPWOOD_ISA {

// Every purpose of a draw, in rising order: two with one number would give correlated draws.
enum Purpose : uint64_t {
  CUTS = 1,
  ROWS,
  TREE_COLUMNS,
  LEVEL_COLUMNS,
  NODE_COLUMNS,
  HOLDOUT,
  FOLDS,
  DROPS = 16,  // rounds that dart drops
  RANDOM_CUT = 20,
  LISTED = 21,
  PERMUTATION = 40,      // the order of rows
  RANDOM_STRENGTH = 41,  // noise on a column's best split
  TURN = 42,             // the permutation that a round uses
  SKETCH = 43,           // signs of outputs in a sketch of their gradients
  PERMUTE = 50,          // permutation importance
  SAGE = 51,             // SAGE importance
  RANKS = 60             // noise on the ranks of a group
};

inline uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

inline uint64_t fold(uint64_t h, uint64_t v) {
  return mix(h + 0x9E3779B97F4A7C15u * (v + 1));
}

inline uint64_t key(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b) {
  return fold(fold(fold(fold(0, seed), purpose), a), b);
}

inline uint64_t draw(uint64_t key, uint64_t i) {
  return fold(key, i);
}

}  // namespace sapwood::inline SAPWOOD_ISA
