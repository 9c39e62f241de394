// Order statistics by counts: the largest number that enough rows reach, digit by digit, without an order among the rows.
#pragma once
#include <stdint.h>

#include <algorithm>
#include <vector>

#include "cpu/kernels/kernels.h"
#include "host/pool.h"

namespace sapwood {

struct Selected {
  int64_t at = 0;     // the number, of 32 bits
  int64_t above = 0;  // rows with a larger one
  int64_t here = 0;   // rows with this one
  int64_t below = 0;  // the sum of the smaller ones
};

struct Values {  // some of 32 bits
  const uint32_t* x;
  int64_t n;
};

// `numbers(begin, end, room)` gives those of the rows that take part, which may be put into `room` (TASK_ROWS); `prepare(begin, end)`
// comes once before that. `enough(m, reach, below)`, which is true up to some m, is told how many are >= m and the sum of the
// others. 0 where no m is enough. A good `guess` saves a pass: the first digit is then not counted, but seen to be right.
template <class Prepare, class Give, class Enough>
Selected select_threshold(int64_t n, int n_threads, const Prepare& prepare, const Give& numbers, const Enough& enough,
                          int64_t guess) {
  constexpr int DIGIT = 12, LEADING = 2 * DIGIT;  // bits of a digit; where the first begins
  constexpr uint32_t N_DIGITS = 1u << DIGIT, WINDOW = 1u << LEADING;
  struct Count {
    int64_t rows = 0, sum = 0;
  };
  Selected found;
  bool prepared = false;
  std::vector<Count> count(N_DIGITS);
  auto each_piece = [&](const auto& body) {
    run(n_threads, task_count(n), [&](int64_t task, int worker) {
      const int64_t begin = task * TASK_ROWS, end = std::min(n, begin + TASK_ROWS);
      uint32_t room[TASK_ROWS];
      if (!prepared) prepare(begin, end);
      body(numbers(begin, end, room), worker);
    });
    prepared = true;
  };
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
  struct alignas(64) Local {
    std::vector<uint32_t> kept;
    int64_t above = 0, below = 0;
  };
  std::vector<Local> local(n_threads);
  // Keeps the numbers of a window, and counts the rest on either side.
  auto look = [&](int64_t from) {
    std::fill(local.begin(), local.end(), Local{});
    const uint32_t base = (uint32_t)from, last = base + (WINDOW - 1);
    each_piece([&](const Values& given, int worker) {
      uint32_t mine[TASK_ROWS];
      Local& l = local[worker];
      const int64_t count = kernels().select_window(given.x, given.n, base, last, mine, l.above, l.below);
      l.kept.insert(l.kept.end(), mine, mine + count);
    });
    found = {from, 0, 0, 0};
    for (const Local& l : local) found.above += l.above, found.below += l.below, found.here += (int64_t)l.kept.size();
  };
  auto count_digit = [&](int shift) {
    std::fill(count.begin(), count.end(), Count{});
    for (const Local& l : local)
      for (const uint32_t x : l.kept) {
        const uint32_t d = (uint32_t)(x - found.at) >> shift;
        if (d < N_DIGITS) count[d].rows++, count[d].sum += x;
      }
  };
  bool near = guess >= 0;
  if (near) {
    look(std::max<int64_t>(guess - WINDOW / 2, 0));
    int64_t inside = 0;
    for (const Local& l : local)
      for (const uint32_t x : l.kept) inside += x;
    near = (found.at == 0 || enough(found.at, found.above + found.here, found.below)) &&
           !enough(found.at + WINDOW, found.above, found.below + inside);
  }
  if (!near) {
    std::vector<std::vector<Count>> digits(n_threads);
    each_piece([&](const Values& given, int worker) {
      if (digits[worker].empty()) digits[worker].resize(2 * N_DIGITS);  // two: neighbours may share a digit
      Count* mine = digits[worker].data();
      for (int64_t i = 0; i < given.n; i++) {
        Count& c = mine[(given.x[i] >> LEADING) * 2 + (i & 1)];
        c.rows++, c.sum += given.x[i];
      }
    });
    for (const auto& d : digits)
      for (size_t k = 0; k < d.size(); k++) count[k / 2].rows += d[k].rows, count[k / 2].sum += d[k].sum;
    found = {};
    descend(LEADING);
    look(found.at);
  }
  for (const int shift : {DIGIT, 0}) count_digit(shift), descend(shift);
  return found;
}

}  // namespace sapwood
