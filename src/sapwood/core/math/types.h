// The plain records that cross between kernels and drivers: the same type for every instruction
// set.
#pragma once
#include <stdint.h>

namespace sapwood {

struct Sums {  // exact sums of quantised gradients and hessians over rows
  int64_t g = 0, h = 0;
};

// of a linear leaf: q = rint((x - centre) * scale); quantum = 1 / scale, also in penalty units
struct FixedColumn {
  double centre, scale, quantum, in_units;
};

struct LineSums {      // of a linear leaf
  int64_t count = 0;   // of complete rows: those whose values of its columns are all finite
  Sums all, complete;  // gradients of all rows, of the complete rows
};

struct Pair {  // one row's quantised gradient and hessian
  int32_t g, h;
};
inline uint32_t abs_gradient(const Pair& q) {
  return (uint32_t)(q.g < 0 ? -q.g : q.g);
}

struct Scale {  // of fixed point: |q| <= 2^bits; g and h are the exponents of the two maxima
  int bits = 14, g = 0, h = 0;
};

struct Penalty {  // the regularisers of the gain, in quantised units
  double lambda = 0, alpha = 0, step = 0;
  double min_h = 0;  // minimum hessian sum of a side
};

struct Candidate {  // the best split found so far; `score` is what a later one must beat
  double score = 0;
  int32_t column = -1, bin = -1;
  bool missing_left = false;
  Sums left;
};

struct Field {                 // a parameter of an objective
  const char *name, *aliases;  // the peers' names, separated by commas
  double low, high;
  bool open;  // the limits themselves are excluded
  double initial;
};

// The kink of a row's loss as a function of the step d: below d = at the loss falls by mass * level
// per unit, above it rises by mass * (1 - level) per unit.
struct Knot {
  double at, mass, level;
};

enum class Link { identity, sigmoid, softmax, exp, expm1, sigmoid2, step, one_vs_all, ascending };
constexpr const char* LINKS[] = {"identity", "sigmoid", "softmax",    "exp",      "expm1",
                                 "sigmoid2", "step",    "one_vs_all", "ascending"};

// what a sampler needs from all rows before it samples
enum class Threshold { none, top_k, expected_count };

struct SampleThreshold {
  int64_t norm = -1;  // rows with a larger gradient norm are certain to take part
  // top_k: rows of exactly this norm take part if their 32-bit tie draw is at least this
  uint64_t tie = 0;
  double mu = 1.0;  // expected_count: a row takes part with probability norm / mu
};

struct Open {  // a node that could be split, as growth policies compare it
  double gain;
  int32_t id;
};

}  // namespace sapwood

namespace sapwood::inline SAPWOOD_ISA {

inline Sums operator+(Sums a, Sums b) {
  return {a.g + b.g, a.h + b.h};
}
inline Sums operator-(Sums a, Sums b) {
  return {a.g - b.g, a.h - b.h};
}

// Packed words: a row's narrow g << 16 | h, and sums g << 32 | h of up to PACKED_ROWS rows. g is
// signed, h is not.
inline Sums unpack(int32_t row) {
  return {row >> 16, row & 0xffff};
}
inline Sums unpack(int64_t sum) {
  return {sum >> 32, sum & 0xffffffff};
}
inline int64_t pack(Sums s) {
  return (int64_t)((uint64_t)s.g << 32) + s.h;
}
// as a sum of one row
inline int64_t widen(int32_t row) {
  return ((int64_t)(row >> 16) << 32) + (row & 0xffff);
}

}  // namespace sapwood::inline SAPWOOD_ISA
