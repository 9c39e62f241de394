// Order statistics by counts: the largest number that enough rows reach, digit by digit, without an order among the rows.
#pragma once
#include <stdint.h>

#include <algorithm>
#include <vector>

#include "pool.h"

namespace sapwood {

struct Highest {
  int64_t at = 0;     // the number, of 32 bits
  int64_t above = 0;  // rows with a larger one
  int64_t here = 0;   // rows with this one
  int64_t below = 0;  // the sum of the smaller ones
};

// `number(row, x)` says whether a row takes part and gives its x; `enough(m, reach, below)`, which is true up to some m, is told the
// rows with x >= m and the sum of the others. 0 where no m is enough.
template <class Number, class Enough>
Highest highest(int64_t n, int n_threads, const Number& number, const Enough& enough) {
  constexpr int64_t PIECE = 16384;
  struct Counts {
    std::vector<int64_t> rows, sum;
  };
  Highest found;
  uint64_t prefix = 0;
  int64_t above = 0, total = 0;
  for (const int shift : {21, 10, 0}) {
    const int width = shift == 21 ? 11 : shift == 10 ? 11 : 10;
    const size_t n_digits = (size_t)1 << width;
    std::vector<Counts> local(n_threads);
    run(n < PIECE ? 1 : n_threads, (n + PIECE - 1) / PIECE, [&](int64_t task, int worker) {
      Counts& mine = local[worker];
      if (mine.rows.empty()) mine.rows.assign(n_digits, 0), mine.sum.assign(n_digits, 0);
      for (int64_t i = task * PIECE; i < std::min(n, (task + 1) * PIECE); i++) {
        uint32_t x;
        if (!number(i, x) || (uint64_t)x >> shift >> width != prefix) continue;
        mine.rows[(x >> shift) & (n_digits - 1)]++, mine.sum[(x >> shift) & (n_digits - 1)] += x;
      }
    });
    Counts all{std::vector<int64_t>(n_digits, 0), std::vector<int64_t>(n_digits, 0)};
    for (const Counts& l : local)
      for (size_t d = 0; d < l.rows.size(); d++) all.rows[d] += l.rows[d], all.sum[d] += l.sum[d];
    int64_t below = found.below;  // of smaller prefixes, and then of this one
    for (const int64_t s : all.sum) below += s;
    total = above;
    for (size_t d = n_digits; d-- > 0;) {
      total += all.rows[d], below -= all.sum[d];
      const uint64_t m = ((prefix << width) + d) << shift;
      if (d > 0 && !enough((int64_t)m, total, below)) continue;
      prefix = (prefix << width) + d;
      found.here = all.rows[d], found.below = below;
      above = total - all.rows[d];
      break;
    }
  }
  found.at = (int64_t)prefix, found.above = above;
  return found;
}

}  // namespace sapwood
