// Order statistics by radix counts: the largest number that enough rows reach, found digit by digit
// without a sort.
#pragma once
#include <stdint.h>

#include <algorithm>
#include <vector>

#include "cpu/kernels/kernels.h"
#include "host/pool.h"
#include "records/reduce.h"

namespace sapwood {

struct Selected {     // over the rows of all holders
  int64_t at = 0;     // the selected number, of 32 bits
  int64_t above = 0;  // rows with a larger number
  int64_t here = 0;   // rows with this number
  int64_t below = 0;  // sum of the smaller numbers
};

struct Values {
  const uint32_t* x;
  int64_t n;
};

// of 32-bit numbers; where the first digit begins
constexpr int DIGIT_BITS = 12, LEADING = 2 * DIGIT_BITS;
constexpr uint32_t N_DIGITS = 1u << DIGIT_BITS, WINDOW = 1u << LEADING;

struct DigitCount {
  int64_t rows = 0, sum = 0;
};
static_assert(sizeof(DigitCount) == 2 * sizeof(int64_t));  // reduced as integers

// count (N_DIGITS) OUT: numbers by their first digit.
template <class EachTask>
void count_first_digit(int n_threads, const EachTask& each_task, std::vector<DigitCount>& count) {
  std::vector<std::vector<DigitCount>> digits(n_threads);
  each_task([&](const Values& given, int worker) {
    // two: neighbours may share a digit
    if (digits[worker].empty()) {
      digits[worker].resize(2 * N_DIGITS);
    }
    DigitCount* mine = digits[worker].data();
    for (int64_t i = 0; i < given.n; i++) {
      DigitCount& c = mine[(given.x[i] >> LEADING) * 2 + (i & 1)];
      c.rows++;
      c.sum += given.x[i];
    }
  });
  for (const auto& d : digits) {
    for (size_t k = 0; k < d.size(); k++) {
      count[k / 2].rows += d[k].rows;
      count[k / 2].sum += d[k].sum;
    }
  }
}

// `values(begin, end, room)` returns the numbers of rows [begin, end) that take part; it may write
// them to `room` (TASK_ROWS). `prepare(begin, end)` is called once before that. `enough(m, reach,
// below)` is true up to some m, which is selected; reach: how many numbers are >= m, below: the sum
// of the others. The result is 0 where no m is enough.
// A `guess` close to the result saves a pass: the window around it is tested instead of counting
// the first digit.
template <class Prepare, class Give, class Enough>
Selected select_threshold(int64_t n, int n_threads, const Reduce* reduce, const Prepare& prepare,
                          const Give& values, const Enough& enough, int64_t guess) {
  Selected found;
  bool prepared = false;
  std::vector<DigitCount> count(N_DIGITS);
  auto each_task = [&](const auto& body) {
    run(n_threads, task_count(n), [&](int64_t task, int worker) {
      const int64_t begin = task * TASK_ROWS;
      const int64_t end = std::min(n, begin + TASK_ROWS);
      uint32_t room[TASK_ROWS];
      if (!prepared) {
        prepare(begin, end);
      }
      body(values(begin, end, room), worker);
    });
    prepared = true;
  };
  auto descend = [&](int shift) {
    reduce_sum(reduce, &count[0].rows, 2 * N_DIGITS);
    int64_t reach = found.above;
    int64_t below = found.below;
    for (const DigitCount& c : count) {
      below += c.sum;
    }
    for (int64_t d = N_DIGITS; d-- > 0;) {
      const int64_t m = found.at + (d << shift);
      reach += count[d].rows;
      below -= count[d].sum;
      if (d > 0 && !enough(m, reach, below)) {
        continue;
      }
      found = {m, reach - count[d].rows, count[d].rows, below};
      return;
    }
  };
  struct alignas(64) Local {
    std::vector<uint32_t> kept;
    int64_t above = 0, below = 0;
  };
  std::vector<Local> local(n_threads);
  // keeps the numbers of a window and counts those on either side
  auto collect_window = [&](int64_t from) {
    std::fill(local.begin(), local.end(), Local{});
    const uint32_t base = (uint32_t)from;
    const uint32_t last = base + (WINDOW - 1);
    each_task([&](const Values& given, int worker) {
      uint32_t mine[TASK_ROWS];
      Local& l = local[worker];
      const int64_t n_kept =
          kernels().select_window(given.x, given.n, base, last, mine, l.above, l.below);
      l.kept.insert(l.kept.end(), mine, mine + n_kept);
    });
    int64_t sums[3] = {0, 0, 0};
    for (const Local& l : local) {
      sums[0] += l.above;
      sums[1] += (int64_t)l.kept.size();
      sums[2] += l.below;
    }
    reduce_sum(reduce, sums, 3);
    found = {from, sums[0], sums[1], sums[2]};
  };
  auto count_digit = [&](int shift) {
    std::fill(count.begin(), count.end(), DigitCount{});
    for (const Local& l : local) {
      for (const uint32_t x : l.kept) {
        const uint32_t d = (uint32_t)(x - found.at) >> shift;
        if (d < N_DIGITS) {
          count[d].rows++;
          count[d].sum += x;
        }
      }
    }
  };
  bool near = guess >= 0;
  if (near) {
    collect_window(std::max<int64_t>(guess - WINDOW / 2, 0));
    int64_t inside = 0;
    for (const Local& l : local) {
      for (const uint32_t x : l.kept) {
        inside += x;
      }
    }
    reduce_sum(reduce, &inside, 1);
    near = (found.at == 0 || enough(found.at, found.above + found.here, found.below)) &&
           !enough(found.at + WINDOW, found.above, found.below + inside);
  }
  if (!near) {
    count_first_digit(n_threads, each_task, count);
    found = {};
    descend(LEADING);
    collect_window(found.at);
  }
  for (const int shift : {DIGIT_BITS, 0}) {
    count_digit(shift);
    descend(shift);
  }
  return found;
}

}  // namespace sapwood
