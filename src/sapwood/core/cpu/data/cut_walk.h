// From sorted values to cuts: what the cuts of a table in memory and of a table that streams by
// have in common.
// Enters: ordered keys of a column's values, with weights. Leaves: rising float64 numbers.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "cpu/data/cuts.h"
#include "math/real.h"

namespace sapwood {

// A cut between two neighbours, of which the lower may be -inf and the higher +inf; the cut is
// finite.
inline double middle(double a, double b) {
  const double m = 0.5 * a + 0.5 * b;
  return std::max(m >= a && m < b ? m : a, std::numeric_limits<double>::lowest());
}

template <class Key>
std::vector<double> between(const std::vector<Key>& sorted) {
  std::vector<double> cuts;
  for (size_t j = 0; j + 1 < sorted.size(); j++) {
    cuts.push_back(middle(unordered(sorted[j]), unordered(sorted[j + 1])));
  }
  return cuts;
}

template <class Key, class Weight = int32_t>
struct Sorted {
  Key* keys;
  Weight* weights;  // null: every row counts once
};
// Least significant digit first, 11 bits a pass; digits in which all keys agree are skipped.
// Returns `from` or `space`, whichever holds the sorted keys.
template <class Key, class Weight>
Sorted<Key, Weight> radix_sort(Sorted<Key, Weight> from, Sorted<Key, Weight> space, size_t n) {
  constexpr int DIGITS = sizeof(Key) == 4 ? 3 : 6;
  std::vector<uint32_t> counts(DIGITS * 2048, 0);
  for (size_t i = 0; i < n; i++) {
    for (int d = 0; d < DIGITS; d++) {
      counts[d * 2048 + (from.keys[i] >> (11 * d) & 2047)]++;
    }
  }
  for (int d = 0; d < DIGITS; d++) {
    uint32_t* count = &counts[d * 2048];
    uint32_t at = 0;
    bool agree = false;
    for (int j = 0; j < 2048; j++) {
      agree = agree || count[j] == n;
      const uint32_t c = count[j];
      count[j] = at;
      at += c;
    }
    if (agree) {
      continue;
    }
    for (size_t i = 0; i < n; i++) {
      const uint32_t to = count[from.keys[i] >> (11 * d) & 2047]++;
      space.keys[to] = from.keys[i];
      if (from.weights != nullptr) {
        space.weights[to] = from.weights[i];
      }
    }
    std::swap(from, space);
  }
  return from;
}

struct Run {  // equal keys at begin .. end - 1 of a sorted list, and the sum of their weights
  size_t begin, end;
  int64_t weight;
};
template <class Key, class Weight>
Run run_at(const Sorted<Key, Weight>& s, size_t n, size_t begin) {
  Run r{begin, begin, 0};
  for (; r.end < n && s.keys[r.end] == s.keys[begin]; r.end++) {
    r.weight += s.weights == nullptr ? 1 : s.weights[r.end];
  }
  return r;
}

// Bins of about equal weight; a heavy value takes one bin and leaves the others to the rest
// (NUMERICS 3).
template <class Key, class Weight>
std::vector<double> walk(const Sorted<Key, Weight>& s, size_t n, int bins) {
  int64_t rest = 0;
  int64_t acc = 0;
  for (size_t i = 0; i < n; i++) {
    rest += s.weights == nullptr ? 1 : s.weights[i];
  }
  std::vector<double> cuts;
  int64_t bin_weight = (rest + bins - 1) / bins;
  for (Run r = run_at(s, n, 0); r.end < n && bins > 1;) {
    const Run next = run_at(s, n, r.end);
    acc += r.weight;
    if (acc >= bin_weight || next.weight >= bin_weight) {
      cuts.push_back(middle(unordered(s.keys[r.begin]), unordered(s.keys[next.begin])));
      rest -= acc;
      acc = 0;
      bins--;
      bin_weight = (rest + bins - 1) / bins;
    }
    r = next;
  }
  return cuts;
}

inline bool is_value(double x) {
  return x == x;
}  // not missing

struct BinBudget {
  int max_bins, min_samples_bin;
  // The cuts of a sorted list of n entries, which stand for so many rows; integral: weights are
  // repeats.
  template <class Key, class Weight>
  std::vector<double> cut(const Sorted<Key, Weight>& sorted, size_t n, int64_t n_rows,
                          bool integral) const {
    std::vector<Key> values;
    for (size_t i = 0; i < n && (int)values.size() <= max_bins; i++) {
      if (values.empty() || sorted.keys[i] != values.back()) {
        values.push_back(sorted.keys[i]);
      }
    }
    if ((int)values.size() <= max_bins) {
      return between(values);
    }
    int64_t rows = integral ? 0 : n_rows;
    for (size_t i = 0; integral && i < n; i++) {
      rows += sorted.weights[i];
    }
    return walk(sorted, n,
                (int)std::min<int64_t>(max_bins,
                                       std::max<int64_t>(MIN_BIN_BUDGET, rows / min_samples_bin)));
  }
};

struct Drawn {
  uint64_t draw;
  int64_t position;  // global position of the row
  bool operator<(const Drawn& o) const {
    return draw != o.draw ? draw < o.draw : position < o.position;
  }
};

}  // namespace sapwood
