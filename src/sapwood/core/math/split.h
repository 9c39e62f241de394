// A split: which side a code goes to, in which order the candidates of a column are considered, and which of two wins.
#pragma once
#include <stdint.h>

#include "math/types.h"

namespace sapwood {

struct Split {  // which codes go right: a range, code - low < length (unsigned; the missing code is the last), or a set
  uint32_t low, length;
  const uint64_t* set = nullptr;  // a bit a code, SET_WORDS words at least
};
inline bool goes_right(const Split& s, uint32_t code) {
  return s.set != nullptr ? s.set[code >> 6] >> (code & 63) & 1 : code - s.low < s.length;
}
constexpr uint64_t SET_WORDS = 4;  // every byte code has its bit
inline uint64_t set_words(uint64_t n_codes) { return n_codes <= 64 * SET_WORDS ? SET_WORDS : (n_codes + 63) / 64; }

inline bool better(const Candidate& a, const Candidate& b) {  // across columns; within a column the scan has chosen
  if (a.column < 0) return false;
  return b.column < 0 || a.score > b.score || (a.score == b.score && a.column < b.column);
}

}  // namespace sapwood

namespace sapwood::inline SAPWOOD_ISA {

// The candidates of one column, in the order that decides ties (the first of equals wins): at every cut the missing values
// go left, then right; without missing values only right. The last cut parts values from missing ones.
// at(bin) -> Sums; consider(left, bin, missing_left) for the cuts first .. last
template <class At, class Consider>
inline void for_each_candidate(int first, int last, int n_bins, Sums missing, const At& at, Consider&& consider) {
  const bool any_missing = missing.h > 0;
  const int end = last < n_bins - 1 ? last + 1 : n_bins - 1;
  Sums l;
  for (int b = 0; b < end; b++) {
    l = l + at(b);
    if (b < first) continue;
    if (any_missing) consider(l + missing, b, true);
    consider(l, b, false);
  }
  if (any_missing && last == n_bins - 1) consider(l + at(n_bins - 1), n_bins - 1, false);
}

// The same order over scores that are there already: right, left (cuts) by the side of missing values. -> best(score, cut, missing_left)
template <class Take>
inline void for_each_score(int first, int last, const double* right, const double* left, int n_left, Take&& take) {
  for (int b = first; b <= last; b++) {
    if (b < n_left) take(left[b], b, true);
    take(right[b], b, false);
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
