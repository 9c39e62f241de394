#include "cpu/leaf/linear.h"

#include <algorithm>

#include "cpu/rows/leaf_state.h"
#include "host/pool.h"
#include "math/linear.h"

namespace sapwood {
namespace {

constexpr int AHEAD = 16;  // rows to prefetch; 32 and 64 are no faster
// rows whose fixed-point values are adjacent: those of ten columns stay in L1
constexpr int BLOCK_ROWS = 128;

bool finite(double x) {
  return x - x == 0.0;
}

struct RowsByLeaf {  // the rows in use, leaf by leaf
  const int32_t* rows;
  std::vector<int64_t> start;  // (n_leaves + 1)
};

// f(row, leaf) for the rows of a task that are in use.
template <class Id, class F>
void each_used(const LinearRows& r, int64_t task, F&& f) {
  const Id* leaf = (const Id*)r.leaf.data;
  for (int64_t i = task * TASK_ROWS; i < std::min(r.n, (task + 1) * TASK_ROWS); i++) {
    if ((r.in_sample == nullptr || r.in_sample[i]) && r.weights.of(i) > 0) {
      f(i, leaf[i]);
    }
  }
}

// A counting sort, task by task:  counts (task, leaf) -> places (task, leaf) -> rows
template <class Id>
RowsByLeaf group_rows(const LinearRows& r) {
  const int64_t n_tasks = task_count(r.n);
  const int64_t n_leaves = r.n_leaves;
  const int n_threads = threads_for(r.n, r.n_threads);
  std::vector<int64_t> place((size_t)(n_leaves * n_tasks), 0);
  run(n_threads, n_tasks, [&](int64_t t, int) {
    int64_t* count = place.data() + t * n_leaves;
    each_used<Id>(r, t, [&](int64_t, Id leaf) {
      count[leaf]++;
    });
  });
  RowsByLeaf g;
  int64_t total = 0;
  for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
    g.start.push_back(total);
    for (int64_t t = 0; t < n_tasks; t++) {
      const int64_t count = place[t * n_leaves + leaf];
      place[t * n_leaves + leaf] = total;
      total += count;
    }
  }
  g.start.push_back(total);
  if (r.space->size() < (size_t)total * 4) {
    *r.space = Memory((size_t)total * 4);
  }
  int32_t* rows = r.space->as<int32_t>();
  g.rows = rows;
  run(n_threads, n_tasks, [&](int64_t t, int) {
    int64_t* at = place.data() + t * n_leaves;
    each_used<Id>(r, t, [&](int64_t i, Id leaf) {
      rows[at[leaf]++] = (int32_t)i;
    });
  });
  return g;
}

struct LeafSums {      // of one output
  Sums all, complete;  // gradients of all rows, of the complete rows
};

struct Leaf {
  // (k) the columns of its branch; in the end those with more than one value
  std::vector<int32_t> column;
  std::vector<double> low, high;   // (k) the range of values, in standard units that of q
  std::vector<FixedColumn> fixed;  // (k)
  // complete rows: those whose values of these columns are all finite
  int64_t count = 0;
  std::vector<LeafSums> of;  // by output
  // (n_outputs, n_sums) over complete rows, by column a: g*q, h*q, then h*q*q with the columns up
  // to a
  __int128* sum = nullptr;

  size_t n_sums() const { return (size_t)line_sums((int)column.size()); }

  void add_columns(const int32_t* first, const int32_t* last, const LinearUnits* units) {
    for (; first < last; first++) {
      const int32_t c = *first;
      if (units != nullptr && units->unit[c] == 0.0) {
        continue;
      }
      column.push_back(c);
      if (units == nullptr) {
        continue;
      }
      const double quantum = power_of_two(units->exponent[c] - STANDARD);
      fixed.push_back({units->bounds[3 * c + 2], 1.0 / quantum, quantum, quantum / units->unit[c]});
    }
  }
};

struct LeafTask {  // some rows of a leaf
  int leaf;
  int64_t begin, end;
  size_t at;  // of its sums
};

template <class Real>
const Real* row_of(const RawTable& t, int64_t row) {
  return (const Real*)t.data + row * t.n_columns;
}

// The rows of a leaf are scattered: without prefetching, a fit waits two thirds of its time
// (300,000 rows, 28 columns). Always inline: a compiler drops a call that only prefetches.
template <class Real>
[[gnu::always_inline]] inline void prefetch_row(const LinearRows& r, const int32_t* rows, int64_t i,
                                                int64_t n, const std::vector<int32_t>& column) {
  if (i + AHEAD >= n) {
    return;
  }
  const Real* x = row_of<Real>(r.table, rows[i + AHEAD]);
  for (const int32_t c : column) {
    __builtin_prefetch(x + c);
  }
  __builtin_prefetch(r.leaf_pairs[0] + rows[i + AHEAD]);
}

// The range of the finite values of each column.
template <class Real>
void find_range(const LinearRows& r, const int32_t* rows, int64_t n, Leaf& leaf) {
  const size_t k = leaf.column.size();
  leaf.low.assign(k, INF);
  leaf.high.assign(k, -INF);
  for (int64_t i = 0; i < n; i++) {
    prefetch_row<Real>(r, rows, i, n, leaf.column);
    const Real* x = row_of<Real>(r.table, rows[i]);
    for (size_t a = 0; a < k; a++) {
      const double v = (double)x[leaf.column[a]];
      if (finite(v)) {
        leaf.low[a] = std::min(leaf.low[a], v);
        leaf.high[a] = std::max(leaf.high[a], v);
      }
    }
  }
}

// The sums of the ridge of one output: products of integers, added as integers of 128 bits.
template <class Real>
void add_up(const LinearRows& r, const int32_t* rows, int64_t n, Leaf& leaf) {
  const int k = (int)leaf.column.size();
  LeafSums& own = leaf.of[0];
  std::fill_n(leaf.sum, leaf.n_sums(), 0);
  std::vector<int64_t> q((size_t)k * BLOCK_ROWS);
  int64_t g[BLOCK_ROWS];
  int64_t h[BLOCK_ROWS];
  for (int64_t at = 0; at < n; at += BLOCK_ROWS) {
    int m = 0;
    for (int64_t i = at; i < std::min(n, at + BLOCK_ROWS); i++) {
      prefetch_row<Real>(r, rows, i, n, leaf.column);
      const Real* x = row_of<Real>(r.table, rows[i]);
      const int64_t repeats = r.weights.integral ? r.weights.of(rows[i]) : 1;
      const Pair& pair = r.leaf_pairs[0][rows[i]];
      g[m] = repeats * pair.g;
      h[m] = repeats * pair.h;
      own.all.g += g[m];
      own.all.h += h[m];
      bool complete = true;
      for (int a = 0; a < k; a++) {
        const double v = (double)x[leaf.column[a]] - leaf.fixed[a].centre;
        complete = complete && finite(v);
        q[a * BLOCK_ROWS + m] = rounded(v * leaf.fixed[a].scale);
      }
      leaf.count += complete ? r.weights.of(rows[i]) : 0;
      m += complete;
    }
    for (int i = 0; i < m; i++) {
      own.complete.g += g[i];
      own.complete.h += h[i];
    }
    __int128* sum = leaf.sum;
    for (int a = 0; a < k; a++) {
      const int64_t* qa = &q[a * BLOCK_ROWS];
      __int128 s[2] = {0, 0};
      for (int i = 0; i < m; i++) {
        s[0] += (__int128)qa[i] * g[i];
        s[1] += (__int128)qa[i] * h[i];
      }
      *sum++ += s[0];
      *sum++ += s[1];
      for (int b = 0; b <= a; b++) {
        const int64_t* qb = &q[b * BLOCK_ROWS];
        __int128 both = 0;
        for (int i = 0; i < m; i++) {
          both += (__int128)(qa[i] * qb[i]) * h[i];
        }
        *sum++ += both;
      }
    }
  }
}

// The same in standard units, for all outputs: all rows are complete, and their values are in fixed
// point.
void add_up_standard(const LinearRows& r, const int32_t* rows, int64_t n, Leaf& leaf) {
  const int k = (int)leaf.column.size();
  const int n_outputs = (int)r.leaf_pairs.size();
  const size_t n_columns = r.table.n_columns;
  const size_t n_all = leaf.n_sums() * n_outputs;
  const int16_t* table = r.units->values.as<int16_t>();
  const bool whole_rows = n_columns <= 32 * (size_t)k;  // a cache line has 32 values
  if (n == 0) {
    std::fill_n(leaf.sum, n_all, 0);
  }
  std::vector<int32_t> q((size_t)k * LINEAR_ROWS);
  std::vector<int32_t> low(k, INT32_MAX);
  std::vector<int32_t> high(k, INT32_MIN);
  std::vector<int64_t> sum(n_all);
  std::vector<int32_t> both((size_t)n_outputs * 2 * LINEAR_ROWS);
  int32_t* g = both.data();
  int32_t* h = g + (size_t)n_outputs * LINEAR_ROWS;
  for (int64_t at = 0; at < n; at += LINEAR_ROWS) {
    const int m = (int)std::min<int64_t>(LINEAR_ROWS, n - at);
    for (int i = 0; i < m; i++) {
      if (at + i + AHEAD < n) {
        const int32_t next = rows[at + i + AHEAD];
        __builtin_prefetch(r.leaf_pairs[0] + next);
        const int16_t* x = table + next * n_columns;
        if (whole_rows) {
          for (size_t c = 0; c < n_columns; c += 32) {
            __builtin_prefetch(x + c);
          }
        }
        for (size_t a = 0; a < leaf.column.size() && !whole_rows; a++) {
          __builtin_prefetch(x + leaf.column[a]);
        }
      }
      const int64_t row = rows[at + i];
      const int16_t* x = table + row * n_columns;
      for (int a = 0; a < k; a++) {
        q[a * LINEAR_ROWS + i] = x[leaf.column[a]];
      }
      leaf.count += r.weights.of(row);
    }
    for (int o = 0; o < n_outputs; o++) {
      const Pair* pairs = r.leaf_pairs[o];
      int32_t* to_g = g + o * LINEAR_ROWS;
      int32_t* to_h = h + o * LINEAR_ROWS;
      Sums& all = leaf.of[o].all;
      for (int i = 0; i < m; i++) {
        const Pair& pair = pairs[rows[at + i]];
        to_g[i] = pair.g;
        to_h[i] = pair.h;
        all.g += pair.g;
        all.h += pair.h;
      }
      for (int i = m; i < LINEAR_ROWS; i++) {
        to_g[i] = to_h[i] = 0;
      }
    }
    for (int a = 0; a < k && m < LINEAR_ROWS; a++) {
      for (int i = m; i < LINEAR_ROWS; i++) {
        q[a * LINEAR_ROWS + i] = 0;
      }
    }
    kernels().linear_sums({q.data(), g, h, m, k, n_outputs, sum.data(), low.data(), high.data()});
    for (size_t s = 0; s < n_all; s++) {
      leaf.sum[s] = at == 0 ? sum[s] : leaf.sum[s] + sum[s];
    }
  }
  for (LeafSums& own : leaf.of) {
    own.complete = own.all;
  }
  leaf.low.assign(low.begin(), low.end());
  leaf.high.assign(high.begin(), high.end());
}

// The same for rows that count several times, whose products do not fit 64 bits.
void add_up_repeated(const LinearRows& r, const int32_t* rows, int64_t n, Leaf& leaf) {
  const int k = (int)leaf.column.size();
  std::fill_n(leaf.sum, leaf.n_sums() * leaf.of.size(), 0);
  leaf.low.assign(k, INF);
  leaf.high.assign(k, -INF);
  for (int64_t i = 0; i < n; i++) {
    const int16_t* x = r.units->values.as<int16_t>() + (size_t)rows[i] * r.table.n_columns;
    const int64_t repeats = r.weights.of(rows[i]);
    leaf.count += repeats;
    __int128* sum = leaf.sum;
    for (size_t o = 0; o < leaf.of.size(); o++) {
      const Pair& pair = r.leaf_pairs[o][rows[i]];
      const int64_t g = repeats * pair.g;
      const int64_t h = repeats * pair.h;
      leaf.of[o].all.g += g;
      leaf.of[o].all.h += h;
      for (int a = 0; a < k; a++) {
        const int64_t q = x[leaf.column[a]];
        *sum++ += (__int128)q * g;
        *sum++ += (__int128)q * h;
        for (int b = 0; b <= a; b++) {
          *sum++ += (__int128)(q * x[leaf.column[b]]) * h;
        }
      }
    }
    for (int a = 0; a < k; a++) {
      const double q = x[leaf.column[a]];
      leaf.low[a] = std::min(leaf.low[a], q);
      leaf.high[a] = std::max(leaf.high[a], q);
    }
  }
  for (LeafSums& own : leaf.of) {
    own.complete = own.all;
  }
}

// Removes the columns of one value, and their sums.
void drop_constant(Leaf& leaf) {
  const size_t k = leaf.column.size();
  std::vector<uint8_t> varies(k);
  Leaf kept;
  for (size_t a = 0; a < k; a++) {
    varies[a] = leaf.low[a] < leaf.high[a];
    if (varies[a]) {
      kept.column.push_back(leaf.column[a]);
      kept.fixed.push_back(leaf.fixed[a]);
    }
  }
  if (kept.column.size() == k) {
    return;
  }
  __int128* to = leaf.sum;
  const __int128* from = leaf.sum;
  for (size_t o = 0; o < leaf.of.size(); o++) {
    for (size_t a = 0; a < k; a++, from += a + 2) {
      if (!varies[a]) {
        continue;
      }
      *to++ = from[0];
      *to++ = from[1];
      for (size_t b = 0; b <= a; b++) {
        if (varies[b]) {
          *to++ = from[2 + b];
        }
      }
    }
  }
  leaf.column.swap(kept.column);
  leaf.fixed.swap(kept.fixed);
}

// Appends the intercept and the coefficients of a leaf to `part`; nothing where no column can have
// a coefficient.
void solve(const Leaf& leaf, int output, const LinearRows& r, const LinearRule& rule, double value,
           std::vector<double>& space, LinearPart& part) {
  const size_t k = leaf.column.size();
  const size_t first = part.coef.size();
  const LeafSums& own = leaf.of[output];
  const __int128* sum = leaf.sum + output * leaf.n_sums();
  space.resize((size_t)line_space((int)k));
  part.column.resize(first + k + 1);
  part.coef.resize(first + k + 1);
  const LineRule line{r.scale[output], r.weights.shift,    rule.rate,
                      rule.reg_lambda, rule.linear_lambda, rule.linear_smooth};
  const int n = solve_line((int)k, leaf.fixed.data(), leaf.column.data(),
                           {leaf.count, own.all, own.complete}, value, line,
                           [&] {
                             return (double)*sum++;
                           },
                           space.data(), &part.column[first], &part.coef[first]);
  part.column.resize(first + n);
  part.coef.resize(first + n);
}

// Ranges of all leaves over all holders. As keys that sort like the values, so that maxima of
// integers can be taken.
void reduce_ranges(const Reduce* reduce, std::vector<Leaf>& leaves) {
  std::vector<uint64_t> key;
  for (const Leaf& l : leaves) {
    for (size_t a = 0; a < l.column.size(); a++) {
      key.push_back(~ordered(l.low[a]));
      key.push_back(ordered(l.high[a]));
    }
  }
  reduce_max(reduce, key.data(), key.size());
  const uint64_t* next = key.data();
  for (Leaf& l : leaves) {
    for (size_t a = 0; a < l.column.size(); a++) {
      l.low[a] = unordered(~*next++);
      l.high[a] = unordered(*next++);
    }
  }
}

// The sums of all leaves over all holders.
void reduce_leaves(const Reduce* reduce, std::vector<Leaf>& leaves) {
  std::vector<__int128> sums;
  for (Leaf& l : leaves) {
    sums.push_back(l.count);
    for (const LeafSums& own : l.of) {
      for (const int64_t x : {own.all.g, own.all.h, own.complete.g, own.complete.h}) {
        sums.push_back(x);
      }
    }
    sums.insert(sums.end(), l.sum, l.sum + l.n_sums() * l.of.size());
  }
  reduce_sum(reduce, sums.data(), sums.size());
  const __int128* next = sums.data();
  for (Leaf& l : leaves) {
    l.count = (int64_t)*next++;
    for (LeafSums& own : l.of) {
      for (int64_t* x : {&own.all.g, &own.all.h, &own.complete.g, &own.complete.h}) {
        *x = (int64_t)*next++;
      }
    }
    const size_t n = l.n_sums() * l.of.size();
    std::copy_n(next, n, l.sum);
    next += n;
  }
}

// Keeps the columns with more than one value, and finds their fixed point.
void fix(Leaf& leaf) {
  std::vector<int32_t> several;
  for (size_t a = 0; a < leaf.low.size(); a++) {
    if (!(leaf.low[a] < leaf.high[a])) {
      continue;
    }
    several.push_back(leaf.column[a]);
    leaf.fixed.push_back(fixed_column(leaf.low[a], leaf.high[a]));
  }
  leaf.column = several;
}

// The leaves of a tree, and their rows in tasks of one leaf.
struct LeafTasks {
  std::vector<Leaf> leaves;
  std::vector<LeafTask> tasks;  // leaf by leaf, at least one each
  std::vector<size_t> first;    // (n_leaves + 1) the tasks of each leaf
};

// visit(rows, how many, their sums OUT) for all tasks; join(leaf IN OUT, those of another task of
// the leaf).
template <class Visit, class Join>
void each_leaf(const LinearRows& r, const int32_t* rows, int n_threads, LeafTasks& of,
               Visit&& visit, Join&& join) {
  size_t n_outputs = r.leaf_pairs.size();
  size_t size = 0;
  for (LeafTask& t : of.tasks) {
    t.at = size;
    size += of.leaves[t.leaf].n_sums() * n_outputs;
  }
  if (r.sums->size() < size * sizeof(__int128)) {
    *r.sums = Memory(size * sizeof(__int128));
  }
  std::vector<Leaf> parts(of.tasks.size());
  run(n_threads, (int64_t)of.tasks.size(), [&](int64_t t, int) {
    const LeafTask& s = of.tasks[t];
    Leaf& part = parts[t];
    part.column = of.leaves[s.leaf].column;
    part.fixed = of.leaves[s.leaf].fixed;
    part.of.resize(n_outputs);
    part.sum = r.sums->as<__int128>() + s.at;
    if (!part.column.empty()) {
      visit(r, rows + s.begin, s.end - s.begin, part);
    }
  });
  run(n_threads, (int64_t)of.leaves.size(), [&](int64_t l, int) {
    for (size_t t = of.first[l] + 1; t < of.first[l + 1]; t++) {
      join(parts[of.first[l]], parts[t]);
    }
    of.leaves[l] = std::move(parts[of.first[l]]);
  });
}

void join_ranges(Leaf& to, const Leaf& from) {
  for (size_t a = 0; a < from.low.size(); a++) {
    to.low[a] = std::min(to.low[a], from.low[a]);
    to.high[a] = std::max(to.high[a], from.high[a]);
  }
}

void join_sums(Leaf& to, const Leaf& from) {
  to.count += from.count;
  for (size_t o = 0; o < from.of.size(); o++) {
    to.of[o] = {to.of[o].all + from.of[o].all, to.of[o].complete + from.of[o].complete};
  }
  for (size_t i = 0; i < from.n_sums() * from.of.size(); i++) {
    to.sum[i] += from.sum[i];
  }
}

// By output; of one output where units are raw.
template <class Real>
std::vector<LinearPart> fit_as(const LinearRows& r, const LinearRule& rule) {
  const size_t n_outputs = r.leaf_pairs.size();
  const RowsByLeaf rows = r.leaf.wide ? group_rows<uint16_t>(r) : group_rows<uint8_t>(r);
  const int n_threads = threads_for(r.n * (int64_t)n_outputs, r.n_threads);
  LeafTasks of;
  of.leaves.resize(r.n_leaves);
  for (int l = 0; l < r.n_leaves; l++) {
    of.leaves[l].add_columns(rule.column + rule.offset[l], rule.column + rule.offset[l + 1],
                             r.units);
    of.first.push_back(of.tasks.size());
    int64_t at = rows.start[l];
    const int64_t end = rows.start[l + 1];
    do {
      of.tasks.push_back({l, at, std::min(end, at + TASK_ROWS), 0});
    } while ((at += TASK_ROWS) < end);
  }
  of.first.push_back(of.tasks.size());
  auto each = [&](auto&& visit, auto&& join) {
    each_leaf(r, rows.rows, n_threads, of, visit, join);
  };
  if (r.units != nullptr) {
    each(r.weights.integral && !r.weights.zero_one ? add_up_repeated : add_up_standard,
         [](Leaf& to, const Leaf& from) {
           join_ranges(to, from);
           join_sums(to, from);
         });
    if (r.reduce != nullptr) {
      reduce_ranges(r.reduce, of.leaves);
      reduce_leaves(r.reduce, of.leaves);
    }
    for (Leaf& l : of.leaves) {
      drop_constant(l);
    }
  } else {
    each(find_range<Real>, join_ranges);
    if (r.reduce != nullptr) {
      reduce_ranges(r.reduce, of.leaves);
    }
    for (Leaf& l : of.leaves) {
      fix(l);
    }
    each(add_up<Real>, join_sums);
    if (r.reduce != nullptr) {
      reduce_leaves(r.reduce, of.leaves);
    }
  }
  std::vector<LinearPart> parts(n_outputs);
  run(n_outputs > 1 ? n_threads : 1, (int64_t)n_outputs, [&](int64_t o, int) {
    LinearPart& part = parts[o];
    std::vector<double> space;
    const size_t most = (size_t)(rule.offset[r.n_leaves] + r.n_leaves);
    part.column.reserve(most);
    part.coef.reserve(most);
    for (int l = 0; l < r.n_leaves; l++) {
      part.offset.push_back((int64_t)part.coef.size());
      solve(of.leaves[l], (int)o, r, rule, rule.value[o * r.n_leaves + l], space, part);
    }
    part.offset.push_back((int64_t)part.coef.size());
  });
  return parts;
}

template <class Real, class ByRow, class Visit>
void each_value(const RawTable& table, const LinearView& p, const double* value, int64_t n,
                int n_threads, ByRow&& by_row, Visit&& visit) {
  run(threads_for(n, n_threads), task_count(n), [&](int64_t t, int) {
    for (int64_t i = t * TASK_ROWS; i < std::min(n, (t + 1) * TASK_ROWS); i++) {
      const int64_t l = by_row(i);
      const int64_t first = p.offset[l];
      const int64_t m = p.offset[l + 1] - first;
      const Real* x = row_of<Real>(table, i);
      visit(i, m == 0 ? value[l]
                      : linear_value(p.coef + first, p.column + first, m, value[l], [&](int32_t c) {
                          return p.bounds == nullptr ? (double)x[c]
                                                     : bounded(p.bounds, c, (double)x[c]);
                        }));
    }
  });
}

struct Term {
  double coef, low, high, missing;
  int64_t column;
};

// Adds the values of rows in standard units. Each term has its bounds beside it.
template <class Real>
void add_standard(const RawTable& table, const LinearView& p, const std::vector<double>& value,
                  const LeafIds& leaf, int64_t n, double* score, int n_threads) {
  std::vector<Term> terms;
  for (int64_t j = 0; j < p.offset[value.size()]; j++) {
    // a constant, of column -1, does not use them
    const double* b = p.bounds + 3 * (int64_t)std::max(p.column[j], 0);
    terms.push_back({p.coef[j], b[0], b[1], b[2], p.column[j]});
  }
  run(threads_for(n, n_threads), task_count(n), [&](int64_t t, int) {
    for (int64_t i = t * TASK_ROWS; i < std::min(n, (t + 1) * TASK_ROWS); i++) {
      const int l = leaf_of(leaf, i);
      const Real* x = row_of<Real>(table, i);
      const Term* a = terms.data() + p.offset[l];
      const Term* end = terms.data() + p.offset[l + 1];
      double sum = a < end ? a->coef : value[l];
      for (a += a < end; a < end; a++) {
        const double v = (double)x[a->column];
        const double above = v < a->low ? a->low : v;
        const double z = above > a->high ? a->high : above;
        sum = sum + a->coef * (v != v ? a->missing : z);
      }
      score[i] = score[i] + (finite(sum) ? sum : value[l]);
    }
  });
}

// The terms of the leaves of several outputs, which may lack some of the columns that others have:
// then their coefficient is 0. A row adds the terms of all outputs at once.
struct SharedTerms {
  std::vector<int64_t> offset{0};  // (n_leaves + 1) into `terms`
  std::vector<Term> terms;         // without coefficients
  // (n_leaves + n_terms, n_outputs): the constants of a leaf, then its coefficients
  std::vector<double> coef;

  SharedTerms(const std::vector<LinearView>& parts, const std::vector<const double*>& values,
              int n_leaves) {
    const size_t n_outputs = parts.size();
    const double* bounds = parts[0].bounds;
    coef.reserve((size_t)(parts[0].offset[n_leaves] + n_leaves) * n_outputs);
    std::vector<int32_t> columns;
    for (int l = 0; l < n_leaves; l++) {
      columns.clear();
      for (const LinearView& p : parts) {
        for (int64_t j = p.offset[l] + 1; j < p.offset[l + 1]; j++) {
          columns.push_back(p.column[j]);
        }
      }
      std::sort(columns.begin(), columns.end());
      columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
      const size_t first = coef.size();
      coef.resize(first + (columns.size() + 1) * n_outputs, 0.0);
      for (const int32_t c : columns) {
        terms.push_back({0.0, bounds[3 * c], bounds[3 * c + 1], bounds[3 * c + 2], c});
      }
      offset.push_back((int64_t)terms.size());
      for (size_t o = 0; o < n_outputs; o++) {
        const LinearView& p = parts[o];
        int64_t j = p.offset[l];
        const bool constant = j == p.offset[l + 1];
        coef[first + o] = constant ? values[o][l] : p.coef[j++];
        for (size_t t = 0; t < columns.size() && !constant; t++) {
          if (j < p.offset[l + 1] && p.column[j] == columns[t]) {
            coef[first + (t + 1) * n_outputs + o] = p.coef[j++];
          }
        }
      }
    }
  }
};

template <class Real>
void add_shared(const RawTable& table, const SharedTerms& shared,
                const std::vector<const double*>& values, const LeafIds& leaf, int64_t n,
                double* score, int n_threads) {
  const int n_outputs = (int)values.size();
  const int64_t task_size = task_rows(n_outputs);
  run(threads_for(n * (int64_t)n_outputs, n_threads), task_count(n, task_size),
      [&](int64_t task, int) {
        std::vector<double> z;
        std::vector<double> sums((size_t)n_outputs * LINE_ROWS);
        LineRow rows[LINE_ROWS];
        for (int64_t at = task * task_size, end = std::min(n, at + task_size); at < end;
             at += LINE_ROWS) {
          const int m = (int)std::min<int64_t>(LINE_ROWS, end - at);
          z.clear();
          for (int i = 0; i < m; i++) {
            const int l = leaf_of(leaf, at + i);
            const int64_t first = shared.offset[l];
            const int64_t last = shared.offset[l + 1];
            const Real* x = row_of<Real>(table, at + i);
            rows[i] = {shared.coef.data() + (first + l) * n_outputs, (int)(last - first), l};
            for (const Term *a = shared.terms.data() + first, *stop = shared.terms.data() + last;
                 a < stop; a++) {
              const double v = (double)x[a->column];
              const double above = v < a->low ? a->low : v;
              const double inside = above > a->high ? a->high : above;
              z.push_back(v != v ? a->missing : inside);
            }
          }
          kernels().add_lines(
              {rows, z.data(), values.data(), m, n_outputs, n, sums.data(), score + at});
        }
      });
}

}  // namespace

Branches branches(const int32_t* left, const int32_t* column, const int32_t* set, int64_t n) {
  Branches found;
  std::vector<std::vector<int32_t>> above(n);
  for (int64_t u = 0; u < n; u++) {
    std::vector<int32_t>& own = above[u];
    if (left[u] == 0) {
      found.column.insert(found.column.end(), own.begin(), own.end());
      found.offset.push_back((int64_t)found.column.size());
      continue;
    }
    const auto at = std::lower_bound(own.begin(), own.end(), column[u]);
    // categories are not numbers
    if (set[u] < 0 && (at == own.end() || *at != column[u])) {
      own.insert(at, column[u]);
    }
    above[left[u]] = own;
    above[left[u] + 1] = std::move(own);
  }
  return found;
}

std::vector<LinearPart> fit_linear(const LinearRows& rows, const LinearRule& rule) {
  if (rows.units != nullptr || rows.leaf_pairs.size() == 1) {
    return rows.table.wide ? fit_as<double>(rows, rule) : fit_as<float>(rows, rule);
  }
  std::vector<LinearPart> parts;
  for (size_t o = 0; o < rows.leaf_pairs.size(); o++) {
    LinearRows one = rows;
    LinearRule own = rule;
    one.leaf_pairs = {rows.leaf_pairs[o]};
    one.scale = {rows.scale[o]};
    own.value = rule.value + o * rows.n_leaves;
    parts.push_back(fit_linear(one, own)[0]);
  }
  return parts;
}

void linear_values(const RawTable& table, const LinearView& part, const double* value,
                   const int32_t* node, int64_t n, double* out, int n_threads) {
  auto by_row = [=](int64_t i) {
    return node[i];
  };
  auto visit = [=](int64_t i, double v) {
    out[i] = v;
  };
  if (table.wide) {
    each_value<double>(table, part, value, n, n_threads, by_row, visit);
  } else {
    each_value<float>(table, part, value, n, n_threads, by_row, visit);
  }
}

void add_linear(const RawTable& table, const LinearView& part, const std::vector<double>& value,
                const LeafIds& leaf, int64_t n, double* score, int n_threads) {
  if (part.bounds != nullptr) {
    if (table.wide) {
      return add_standard<double>(table, part, value, leaf, n, score, n_threads);
    }
    return add_standard<float>(table, part, value, leaf, n, score, n_threads);
  }
  auto by_row = [=](int64_t i) {
    return leaf_of(leaf, i);
  };
  auto visit = [=](int64_t i, double v) {
    score[i] = score[i] + v;
  };
  if (table.wide) {
    each_value<double>(table, part, value.data(), n, n_threads, by_row, visit);
  } else {
    each_value<float>(table, part, value.data(), n, n_threads, by_row, visit);
  }
}

void add_linear(const RawTable& table, const std::vector<LinearView>& parts,
                const std::vector<const double*>& values, int n_leaves, const LeafIds& leaf,
                int64_t n, double* score, int n_threads) {
  const SharedTerms shared(parts, values, n_leaves);
  if (table.wide) {
    add_shared<double>(table, shared, values, leaf, n, score, n_threads);
  } else {
    add_shared<float>(table, shared, values, leaf, n, score, n_threads);
  }
}

}  // namespace sapwood
