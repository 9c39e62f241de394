// Linear leaves on the device, as cpu/leaf/linear.cpp fits them: rows leaf by leaf, the range of
// every column in its leaf, exact sums of products, then a line a thread. Only integers are added
// across rows, so their order is free.
#pragma once
#include "cuda/frontier.h"
#include "cuda/wide_sum.h"
#include "math/linear.h"

namespace sapwood {

// of a row: some value of its leaf's columns is not finite
constexpr uint32_t NOT_COMPLETE = 1u << 31;
constexpr int64_t LINE_ROWS = 256;  // rows of a block, at least

inline int64_t thread_of_grid() {
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
inline int64_t threads_of_grid() {
  return (int64_t)gridDim.x * blockDim.x;
}

inline double value_at(const LineTable& t, int64_t row, int column) {
  const int64_t at = row * t.n_columns + column;
  return t.is_double ? ((const double*)t.data)[at] : (double)((const float*)t.data)[at];
}
// From the centre of its column, in fixed point; not a number where it is not finite.
inline double from_centre(const LineTable& t, int64_t row, int column, const FixedColumn& f) {
  const double x = value_at(t, row, column);
  return ((t.bounds != nullptr ? bounded(t.bounds, column, x) : x) - f.centre) * f.scale;
}
inline bool is_used(const LineJob& j, int64_t row) {
  return (j.in_sample == nullptr || j.in_sample[row]) &&
         (j.repeats == nullptr || j.repeats[row] > 0);
}
inline int leaf_number(const LineJob& j, int64_t row) {
  return j.number[j.leaf[row]];
}

// Nothing is counted yet; in standard units the fixed point of columns is known.
SAPWOOD_KERNEL void begin_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  const LineLeaves& of = job.of;
  const int n_leaves = (int)of.n_leaves;
  const int n_columns = of.column_at[n_leaves];
  for (int64_t i = thread_of_grid(); i < n_columns; i += threads_of_grid()) {
    of.range[2 * i] = of.range[2 * i + 1] = 0;
    const int c = of.column[i];
    if (job.table.bounds == nullptr || job.table.unit[c] == 0.0) {
      continue;
    }
    const double* b = job.table.bounds + 3 * c;
    const double up = b[1] - b[2];
    const double down = b[2] - b[0];
    const double quantum = power_of_two(exponent_of(up < down ? down : up) - STANDARD);
    of.fixed[i] = {b[2], 1.0 / quantum, quantum, quantum / job.table.unit[c]};
  }
  for (int64_t l = thread_of_grid(); l < n_leaves; l += threads_of_grid()) {
    of.cursor[l] = 0;
    of.totals[l] = LineSums{};
  }
  for (int64_t i = thread_of_grid(); i < 4 * of.sum_at[n_leaves]; i += threads_of_grid()) {
    of.sums[i] = 0;
  }
}

struct RowRange {  // of a block
  int64_t low, high;
  explicit RowRange(int64_t n) {
    const int64_t each = (n + gridDim.x - 1) / gridDim.x;
    low = blockIdx.x * each;
    high = low + each < n ? low + each : n;
  }
};

// The rows in use of each leaf that a block has. All its threads. counts (n_leaves): in shared
// memory
inline void count_rows(const LineJob& j, const RowRange& range, int* counts) {
  for (int l = threadIdx.x; l < (int)j.of.n_leaves; l += blockDim.x) {
    counts[l] = 0;
  }
  __syncthreads();
  for (int64_t row = range.low + threadIdx.x; row < range.high; row += blockDim.x) {
    if (is_used(j, row)) {
      atomicAdd(&counts[leaf_number(j, row)], 1);
    }
  }
  __syncthreads();
}

SAPWOOD_KERNEL void count_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  DYNAMIC_SHARED(int, counts);
  count_rows(job, RowRange(job.n), counts);
  for (int l = threadIdx.x; l < (int)job.of.n_leaves; l += blockDim.x) {
    if (counts[l] != 0) {
      atomicAdd(job.of.cursor + l, counts[l]);
    }
  }
}

// Where the rows of each leaf begin. One block.
SAPWOOD_KERNEL void place_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  const LineLeaves& of = job.of;
  const int n_leaves = (int)of.n_leaves;
  int64_t sum = 0;
  for (int first = 0; first < n_leaves; first += blockDim.x) {
    const int l = first + threadIdx.x;
    const Scanned scanned = block_scan(l < n_leaves ? of.cursor[l] : 0);
    if (l < n_leaves) {
      of.row_at[l] = of.cursor[l] = (int32_t)(sum + scanned.before);
    }
    sum += scanned.all;
  }
  if (threadIdx.x == 0) {
    of.row_at[n_leaves] = (int32_t)sum;
  }
}

SAPWOOD_KERNEL void group_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  DYNAMIC_SHARED(int, places);
  const RowRange range(job.n);
  count_rows(job, range, places);
  for (int l = threadIdx.x; l < (int)job.of.n_leaves; l += blockDim.x) {
    places[l] = places[l] == 0 ? 0 : atomicAdd(job.of.cursor + l, places[l]);
  }
  __syncthreads();
  for (int64_t row = range.low + threadIdx.x; row < range.high; row += blockDim.x) {
    if (is_used(job, row)) {
      job.of.rows[atomicAdd(&places[leaf_number(job, row)], 1)] = (uint32_t)row;
    }
  }
}

// f(leaf, first row, end) of the rows that a block has, as they are listed. All its threads.
template <class F>
inline void each_leaf(const LineLeaves& of, F&& f) {
  const int n_leaves = (int)of.n_leaves;
  const Span span(of.row_at[n_leaves], LINE_ROWS, blockIdx.x, gridDim.x);
  if (span.low >= span.high) {
    return;
  }
  int l = 0;  // the last one that begins at its first row, or before
  for (int size = n_leaves; size > 1;) {
    const int half = size / 2;
    if (of.row_at[l + half] <= span.low) {
      l += half;
      size -= half;
    } else {
      size = half;
    }
  }
  for (; l < n_leaves && of.row_at[l] < span.high; l++) {
    const int64_t begin = of.row_at[l] > span.low ? of.row_at[l] : span.low;
    const int64_t end = of.row_at[l + 1] < span.high ? of.row_at[l + 1] : span.high;
    if (begin < end) {
      f(l, begin, end);
    }
  }
}

// The range of the finite values of each column; in standard units that of its fixed point. A warp
// has a column.
SAPWOOD_KERNEL void range_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  const LineTable& table = job.table;
  const LineLeaves& of = job.of;
  const int lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES;
  const int n_warps = blockDim.x / LANES;
  each_leaf(of, [&](int l, int64_t begin, int64_t end) {
    for (int i = of.column_at[l] + warp; i < of.column_at[l + 1]; i += n_warps) {
      const int c = of.column[i];
      if (table.unit != nullptr && table.unit[c] == 0.0) {
        continue;
      }
      uint64_t low = 0;
      uint64_t high = 0;
      for (int64_t at = begin + lane; at < end; at += LANES) {
        const int64_t row = of.rows[at];
        const double x = table.bounds == nullptr
                             ? value_at(table, row, c)
                             : (double)rounded(from_centre(table, row, c, of.fixed[i]));
        if (x - x != 0.0) {
          continue;
        }
        const uint64_t key = ordered(x);
        low = ~key > low ? ~key : low;
        high = key > high ? key : high;
      }
      low = warp_max(low);
      high = warp_max(high);
      if (lane == 0 && high != 0) {
        raise_to(of.range + 2 * i, low);
        raise_to(of.range + 2 * i + 1, high);
      }
    }
  });
}

// Keeps the columns with more than one value, and finds their fixed point. A thread has a leaf.
SAPWOOD_KERNEL void fix_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  const LineLeaves& of = job.of;
  for (int64_t l = thread_of_grid(); l < of.n_leaves; l += threads_of_grid()) {
    int kept = of.column_at[l];
    for (int i = kept; i < of.column_at[l + 1]; i++) {
      const double low = unordered(~of.range[2 * i]);
      const double high = unordered(of.range[2 * i + 1]);
      if (of.range[2 * i + 1] == 0 || !(low < high)) {
        continue;
      }
      of.fixed[kept] = job.table.bounds == nullptr ? fixed_column(low, high) : of.fixed[i];
      of.column[kept++] = of.column[i];
    }
    of.n_kept[l] = kept - of.column_at[l];
  }
}

// Which rows are complete; counts, and sums of gradients.
SAPWOOD_KERNEL void total_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  const LineLeaves& of = job.of;
  each_leaf(of, [&](int l, int64_t begin, int64_t end) {
    const int first = of.column_at[l];
    const int k = of.n_kept[l];
    if (k == 0) {
      return;
    }
    LineSums own;
    for (int64_t at = begin + threadIdx.x; at < end; at += blockDim.x) {
      const int64_t row = of.rows[at];
      const int64_t count = job.repeats != nullptr ? job.repeats[row] : 1;
      const int64_t w = job.repeated ? count : 1;
      const int64_t g = w * job.pairs[row].g;
      const int64_t h = w * job.pairs[row].h;
      bool complete = true;
      for (int a = first; a < first + k && job.table.bounds == nullptr; a++) {
        const double x = value_at(job.table, row, of.column[a]) - of.fixed[a].centre;
        complete = complete && x - x == 0.0;
      }
      own.all.g += g;
      own.all.h += h;
      if (complete) {
        own.complete.g += g;
        own.complete.h += h;
        own.count += count;
      } else {
        of.rows[at] = (uint32_t)row | NOT_COMPLETE;
      }
    }
    int64_t* to = (int64_t*)(of.totals + l);
    const int64_t sums[5] = {own.count, own.all.g, own.all.h, own.complete.g, own.complete.h};
    for (int i = 0; i < 5; i++) {
      const int64_t sum = warp_sum(sums[i]);
      if (threadIdx.x % LANES == 0 && sum != 0) {
        add_to(to + i, sum);
      }
    }
  });
}

// Some rows of a leaf in shared memory: their gradients, 0 of rows that are not complete, and their
// columns in fixed point.
struct LineTile {
  int64_t *g, *h;
  int32_t* q;  // (columns, n_rows); null: there is no room for them
  int n_rows;
  LineTile(int64_t* room, int n_rows, bool has_columns)
      : g(room),
        h(room + n_rows),
        q(has_columns ? (int32_t*)(room + 2 * n_rows) : nullptr),
        n_rows(n_rows) {}

  // Of the rows first .. first + m - 1 in the list. All threads of a block.
  void load(const LineJob& j, int l, int64_t first, int m) const {
    const LineLeaves& of = j.of;
    for (int i = threadIdx.x; i < m; i += blockDim.x) {
      const uint32_t listed = of.rows[first + i];
      const uint32_t row = listed & ~NOT_COMPLETE;
      const int64_t w = listed != row ? 0 : j.repeated ? j.repeats[row] : 1;
      g[i] = w * j.pairs[row].g;
      h[i] = w * j.pairs[row].h;
      for (int a = 0; a < of.n_kept[l] && q != nullptr; a++) {
        q[a * n_rows + i] = w == 0 ? 0 : fixed(j, l, row, a);
      }
    }
  }
  int32_t at(const LineJob& j, int l, int64_t first, int i, int a) const {
    if (q != nullptr) {
      return q[a * n_rows + i];
    }
    const uint32_t row = j.of.rows[first + i];
    return row & NOT_COMPLETE ? 0 : fixed(j, l, row, a);
  }
  static int32_t fixed(const LineJob& j, int l, int64_t row, int a) {
    const int c = j.of.column_at[l] + a;
    return (int32_t)rounded(from_centre(j.table, row, j.of.column[c], j.of.fixed[c]));
  }
};

// The sums of products over complete rows, in the order of math/linear.h. A warp has a sum. n_rows:
// of a tile
SAPWOOD_BOUNDED(256, 4) void sum_lines(SAPWOOD_ARGUMENTS(LineJob), int n_rows, int has_columns) {
  DYNAMIC_SHARED(int64_t, room);
  const LineTile tile(room, n_rows, has_columns != 0);
  const LineLeaves& of = job.of;
  const int lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES;
  const int n_warps = blockDim.x / LANES;
  each_leaf(of, [&](int l, int64_t begin, int64_t end) {
    const int n_sums = line_sums(of.n_kept[l]);
    for (int64_t first = begin; first < end && n_sums > 0; first += n_rows) {
      const int m = end - first < n_rows ? (int)(end - first) : n_rows;
      tile.load(job, l, first, m);
      __syncthreads();
      for (int s = warp, a = 0; s < n_sums; s += n_warps) {
        while (line_sums(a + 1) <= s) {
          a++;
        }
        const int what = s - line_sums(a);
        const int b = what - 2;  // with gradients, with hessians, with hessians and column b
        WideSum sum;
        for (int i = lane; i < m; i += LANES) {
          const int64_t q = tile.at(job, l, first, i, a);
          sum.add_signed(b < 0 ? q : q * tile.at(job, l, first, i, b),
                         what == 0 ? tile.g[i] : tile.h[i]);
        }
        sum.add_to_parts(of.sums + 4 * (of.sum_at[l] + s));
      }
      __syncthreads();
    }
  });
}

// The terms of each leaf. A thread has a leaf.
SAPWOOD_KERNEL void solve_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  const LineLeaves& of = job.of;
  const LineRule rule{job.output->wide, (int)job.weight_shift, job.rate,
                      job.reg_lambda,   job.linear_lambda,     job.linear_smooth};
  for (int64_t l = thread_of_grid(); l < of.n_leaves; l += threads_of_grid()) {
    const int first = of.column_at[l];
    const int at = first + (int)l;  // a leaf has a constant, too
    const int64_t* sum = of.sums + 4 * of.sum_at[l];
    auto next = [&] {
      return sum += 4, nearest_signed(sum - 4);
    };
    job.terms.at[l] = at;
    job.terms.n[l] = solve_line(of.n_kept[l], of.fixed + first, of.column + first, of.totals[l],
                                of.value[l], rule, next, of.space + of.space_at[l],
                                job.terms.column + at, job.terms.coef + at);
  }
}

// The lines of an output's tree into scores.
SAPWOOD_KERNEL void add_lines(SAPWOOD_ARGUMENTS(LineJob), int, int) {
  const LineTerms& terms = job.terms;
  for (int64_t row = thread_of_grid(); row < job.n; row += threads_of_grid()) {
    const int l = leaf_number(job, row);
    const int n = terms.n[l];
    const int at = terms.at[l];
    const double value = terms.value[l];
    auto x = [&](int32_t c) {
      const double own = value_at(job.table, row, c);
      return terms.bounds == nullptr ? own : bounded(terms.bounds, c, own);
    };
    job.score[row] =
        job.score[row] +
        (n == 0 ? value : linear_value(terms.coef + at, terms.column + at, n, value, x));
  }
}

}  // namespace sapwood
