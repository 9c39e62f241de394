// A split: which side a code goes to, and which of two candidates wins.
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
