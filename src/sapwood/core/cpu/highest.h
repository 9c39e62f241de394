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
// rows with x >= m and the sum of the others. 0 where no m is enough. The leading digit is counted over all rows, the others over
// those that share it.
template <class Number, class Enough>
Highest highest(int64_t n, int n_threads, const Number& number, const Enough& enough) {
  constexpr int DIGIT = 11, LEADING = 2 * DIGIT;  // bits of a digit; where the first begins
  constexpr uint32_t N_DIGITS = 1u << DIGIT;
  struct Count {
    int64_t rows = 0, sum = 0;
  };
  Highest found;
  std::vector<Count> count(N_DIGITS);
  auto descend = [&](int shift) {
    int64_t reach = found.above, below = found.below;
    for (const Count& c : count) below += c.sum;
    for (int64_t d = N_DIGITS; d-- > 0;) {
      const int64_t m = found.at + (d << shift);
      reach += count[d].rows, below -= count[d].sum;
      if (d > 0 && !enough(m, reach, below)) continue;
      found = {m, reach - count[d].rows, count[d].rows, below};
      return;
    }
  };
  const int64_t n_tasks = pieces(n);
  std::vector<std::vector<Count>> local(n_threads);
  run(n_threads, n_tasks, [&](int64_t task, int worker) {
    if (local[worker].empty()) local[worker].resize(2 * N_DIGITS);  // two: neighbours may share a digit
    Count* mine = local[worker].data();
    const Number ask = number;  // own copies: the stores below cannot change them
    const int64_t end = std::min(n, (task + 1) * PIECE);
    for (int64_t i = task * PIECE; i < end; i++) {
      uint32_t x;
      if (!ask(i, x)) continue;
      Count& c = mine[(x >> LEADING) * 2 + (i & 1)];
      c.rows++, c.sum += x;
    }
  });
  for (const auto& l : local)
    for (size_t d = 0; d < l.size(); d++) count[d / 2].rows += l[d].rows, count[d / 2].sum += l[d].sum;
  descend(LEADING);
  const uint32_t first = (uint32_t)(found.at >> LEADING);
  std::vector<std::vector<uint32_t>> kept(n_threads);
  run(n_threads, n_tasks, [&](int64_t task, int worker) {
    uint32_t mine[PIECE];
    size_t count = 0;
    const int64_t end = std::min(n, (task + 1) * PIECE);
    for (int64_t i = task * PIECE; i < end; i++) {
      uint32_t x = 0;
      const bool in = number(i, x) && x >> LEADING == first;
      mine[count] = x;
      count += in;
    }
    kept[worker].insert(kept[worker].end(), mine, mine + count);
  });
  for (const int shift : {DIGIT, 0}) {
    std::fill(count.begin(), count.end(), Count{});
    const uint32_t prefix = (uint32_t)(found.at >> shift >> DIGIT);
    for (const auto& mine : kept)
      for (const uint32_t x : mine)
        if (x >> shift >> DIGIT == prefix) {
          Count& c = count[(x >> shift) & (N_DIGITS - 1)];
          c.rows++, c.sum += x;
        }
    descend(shift);
  }
  return found;
}

}  // namespace sapwood
