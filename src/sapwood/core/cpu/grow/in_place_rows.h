// InPlaceRows: the root's rows stay where they are while splits take few of them away. Those are
// copied out; a bit a row says which rows are left. Such a split reads each code once, in order;
// moving all rows costs ten times that.
//
//   root's list   r0 r1 r2 r3 r4 r5 ...        live  1 1 1 1 1 1      split: r1, r4 move to list 0;
//                 r0 r1 r2 r3 r4 r5 ...        live  1 0 1 1 0 1      the larger child keeps the list, and these bits
//
// One-hot columns and words separate a hundredth of the rows from the others again and again.
#pragma once
#include <string.h>

#include "cpu/data/binned.h"

namespace sapwood {

struct InPlaceRows {
  bool active = false;           // some rows have left
  Memory live_bits;              // a bit a row of the root's lists, shard by shard, in whole words
  std::vector<size_t> word;      // (shards) the first word of each
  std::vector<int64_t> n_moved;  // (shards) rows that have left: places of list 0 in use

  void begin(const std::vector<int64_t>& n_rows) {
    active = true;
    word.clear();
    n_moved.assign(n_rows.size(), 0);
    size_t words = 0;
    for (const int64_t n : n_rows) {
      word.push_back(words);
      words += (size_t)n / 64 + 1;
    }
    if (live_bits.size() < words * 8) {
      live_bits = Memory(words * 8);
    }
    memset(live_bits.as<char>(), 0, words * 8);
    for (size_t s = 0; s < n_rows.size(); s++) {
      uint64_t* bits = live_bits.as<uint64_t>() + word[s];
      memset(bits, 0xff, (size_t)n_rows[s] / 64 * 8);
      if (n_rows[s] % 64 != 0) {
        bits[n_rows[s] / 64] = (1ull << (n_rows[s] % 64)) - 1;
      }
    }
  }
  uint64_t* bits(int shard, int64_t place) const {
    return live_bits.as<uint64_t>() + word[shard] + place / 64;
  }
  bool live(int shard, int64_t place) const { return *bits(shard, place) >> (place & 63) & 1; }
};

// rows, packed OUT: those of the places whose bit is set, among n from `first` on. ids, gradients
// (or null): by place
inline void compress_rows(const uint64_t* bits, int64_t n, int32_t first, const int32_t* ids,
                          const int32_t* gradients, int32_t* rows, int32_t* packed) {
  int64_t to = 0;
  for (int64_t at = 0; at < n; at += 64) {
    for (uint64_t left = bits[at / 64]; left != 0; left &= left - 1, to++) {
      const int64_t i = at + __builtin_ctzll(left);
      rows[to] = ids == nullptr ? first + (int32_t)i : ids[i];
      if (gradients != nullptr) {
        packed[to] = gradients[i];
      }
    }
  }
}

}  // namespace sapwood
