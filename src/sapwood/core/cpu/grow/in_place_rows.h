// InPlaceRows: the root's rows while splits take only few of them away. Those are copied out; the rest stay where they are, and a bit a row
// says who is left. A split then costs a look at each code, in order, where moving all rows to the next list costs ten times that.
//
//   root's list   r0 r1 r2 r3 r4 r5 ...        live  1 1 1 1 1 1      split: r1, r4 go out, to list 0;
//                 r0 r1 r2 r3 r4 r5 ...        live  1 0 1 1 0 1      the larger child has the same list, and these bits
//
// One-hot columns and words part a hundredth of the rows from the others again and again.
#pragma once
#include <string.h>

#include "cpu/data/binned.h"

namespace sapwood {

struct InPlaceRows {
  bool on = false;             // some rows have left
  Memory live;                 // a bit a row of the root's lists, shard by shard, in whole words
  std::vector<size_t> word;    // (shards) the first word of each
  std::vector<int64_t> taken;  // (shards) rows that have left: places of list 0 in use

  void begin(const std::vector<int64_t>& n_rows) {
    on = true, word.clear(), taken.assign(n_rows.size(), 0);
    size_t words = 0;
    for (const int64_t n : n_rows) word.push_back(words), words += (size_t)n / 64 + 1;
    if (live.size() < words * 8) live = Memory(words * 8);
    memset(live.as<char>(), 0, words * 8);
    for (size_t s = 0; s < n_rows.size(); s++) {
      uint64_t* bits = live.as<uint64_t>() + word[s];
      memset(bits, 0xff, (size_t)n_rows[s] / 64 * 8);
      if (n_rows[s] % 64 != 0) bits[n_rows[s] / 64] = (1ull << (n_rows[s] % 64)) - 1;
    }
  }
  uint64_t* bits(int shard, int64_t place) const { return live.as<uint64_t>() + word[shard] + place / 64; }
  bool has(int shard, int64_t place) const { return *bits(shard, place) >> (place & 63) & 1; }
};

// rows, packed OUT: those of places whose bit is set, of n from `first` on; ids and gradients (or null) are those of the places.
inline void compress_rows(const uint64_t* bits, int64_t n, int32_t first, const int32_t* ids, const int32_t* gradients,
                          int32_t* rows, int32_t* packed) {
  int64_t to = 0;
  for (int64_t at = 0; at < n; at += 64)
    for (uint64_t left = bits[at / 64]; left != 0; left &= left - 1, to++) {
      const int64_t i = at + __builtin_ctzll(left);
      rows[to] = ids == nullptr ? first + (int32_t)i : ids[i];
      if (gradients != nullptr) packed[to] = gradients[i];
    }
}

}  // namespace sapwood
