// A split: which side a row goes to, in which order the candidates of a column are considered, and
// which of two wins.
#pragma once
#include <stdint.h>

#include "math/types.h"

namespace sapwood {

constexpr uint64_t SET_WORDS = 4;  // every byte code has its bit
inline uint64_t set_words(uint64_t n_codes) {
  return n_codes <= 64 * SET_WORDS ? SET_WORDS : (n_codes + 63) / 64;
}

// Which codes go right: a range, code - low < length (unsigned), or a set. Codes of a column with
// n_bins bins are
// 0 .. n_bins - 1; missing values have the code n_bins.
struct Split {
  uint32_t low, length;
  const uint64_t* set = nullptr;  // (set_words(n_bins + 1)) one bit a code
};
inline bool goes_right(const Split& s, uint32_t code) {
  return s.set != nullptr ? s.set[code >> 6] >> (code & 63) & 1 : code - s.low < s.length;
}

// Bins above `bin` go right, and missing values unless missing_left.
inline Split threshold_split(uint32_t bin, uint32_t n_bins, bool missing_left) {
  return {bin + 1, n_bins + !missing_left - (bin + 1)};
}

// right (set_words(n_bins + 1)) OUT: the set of a Split whose codes `left` (n) go left.
inline void fill_set(const int32_t* left, uint64_t n, int n_bins, bool missing_left,
                     uint64_t* right) {
  for (uint64_t w = 0; w < set_words((uint64_t)n_bins + 1); w++) {
    right[w] = ~0ull;
  }
  for (uint64_t i = 0; i < n; i++) {
    right[left[i] >> 6] &= ~(1ull << (left[i] & 63));
  }
  if (missing_left) {
    right[n_bins >> 6] &= ~(1ull << (n_bins & 63));
  }
}

// The same rule for the values of a table: NaN is missing.
inline bool goes_right(double x, double threshold, bool missing_left) {
  return (x > threshold) | ((x != x) & !missing_left);  // no branch: half of the rows go right
}

// The same for category codes of a table: UNSEEN stands for a category that training has not seen,
// any other negative code (and NaN) for a missing value. in_left(code): whether the split's set has
// a code >= 0.
constexpr int UNSEEN = -2;
template <class Code, class InLeft>
inline bool category_goes_right(Code code, bool missing_left, bool unseen_left, InLeft&& in_left) {
  return code >= 0 ? !in_left(code) : !(code == (Code)UNSEEN ? unseen_left : missing_left);
}
// A category's code within a column of a model: `limit` for codes that are in no set, then missing
// and unseen.
inline int code_of(double x, int limit) {
  return x >= 0.0 ? (x < limit ? (int)x : limit) : x == UNSEEN ? limit + 2 : limit + 1;
}
// `sides` as in ForestArrays::missing_left.
inline bool sends_unseen_left(uint8_t sides) {
  return ((sides ^ sides >> 1) & 1) != 0;
}

// across columns; within a column the scan has chosen
inline bool better(const Candidate& a, const Candidate& b) {
  if (a.column < 0) {
    return false;
  }
  return b.column < 0 || a.score > b.score || (a.score == b.score && a.column < b.column);
}

}  // namespace sapwood

namespace sapwood::inline SAPWOOD_ISA {

// The candidates of one column, in the order that decides ties (the first of equals wins): at every
// cut the missing values go left, then right; without missing values only right. The last cut
// separates values from missing ones. at(bin) -> Sums; consider(left, bin, missing_left) for the
// cuts first .. last
template <class At, class Consider>
inline void for_each_candidate(int first, int last, int n_bins, Sums missing, const At& at,
                               Consider&& consider) {
  const bool any_missing = missing.h > 0;
  const int end = last < n_bins - 1 ? last + 1 : n_bins - 1;
  Sums l;
  for (int b = 0; b < end; b++) {
    l = l + at(b);
    if (b < first) {
      continue;
    }
    if (any_missing) {
      consider(l + missing, b, true);
    }
    consider(l, b, false);
  }
  if (any_missing && last == n_bins - 1) {
    consider(l + at(n_bins - 1), n_bins - 1, false);
  }
}

// The same order over known scores; right and left (cuts) by the side of missing values;
// take(score, cut, missing_left)
template <class Take>
inline void for_each_score(int first, int last, const double* right, const double* left, int n_left,
                           Take&& take) {
  for (int b = first; b <= last; b++) {
    if (b < n_left) {
      take(left[b], b, true);
    }
    take(right[b], b, false);
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
