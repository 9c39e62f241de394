// Float32 columns that lie side by side, as in a row-major table, are read sixteen at a time. A row
// of those is a line of memory, and a transposition in registers makes columns of sixteen rows: 0.1
// ns a value, against 0.4 one by one.
// Enters: a table. Leaves: values of its columns, some rows at a time.
#pragma once
#include <vector>

#include "cpu/data/table.h"
#include "cpu/kernels/kernels.h"

namespace sapwood {

constexpr int STRIPE_ROWS = 128;  // rows read together, sixteen columns of them: they stay in L1

// The first of sixteen columns side by side among which `first` .. `last` are, or -1.
inline int row_major_run(const Chunk& chunk, int first, int last) {
  const int at = std::min(first, (int)chunk.columns.size() - RUN);
  if (at < 0 || last >= at + RUN) {
    return -1;
  }
  const Column& head = chunk.columns[at];
  for (int k = 0; k < RUN; k++) {
    const Column& c = chunk.columns[at + k];
    if (c.kind != DType::f32 || c.sparse() || c.stride != head.stride ||
        c.data != head.data + 4 * k) {
      return -1;
    }
  }
  return at;
}

// For every column the first of its sixteen, or -1. Where fewer than half of them are wanted,
// reading one by one is as fast.
inline std::vector<int> row_major_runs(const Chunk& chunk, const std::vector<uint8_t>& wanted) {
  const int n = (int)chunk.columns.size();
  std::vector<int> all(n, -1);
  for (int first = 0; first < n; first += RUN) {
    const int last = std::min(n, first + RUN) - 1;
    const int at = row_major_run(chunk, first, last);
    int n_wanted = 0;
    for (int c = first; c <= last; c++) {
      n_wanted += wanted[c];
    }
    if (2 * n_wanted >= RUN) {
      std::fill(all.begin() + first, all.begin() + last + 1, at);
    }
  }
  return all;
}

template <int ROWS>
class TransposedStripe {  // some rows of a table
 public:
  TransposedStripe(const Chunk& chunk, const std::vector<int>& all) : chunk_(chunk), all_(all) {}
  void go(int64_t first, int n) {
    first_ = first;
    n_ = n;
    at_ = -1;
  }  // n <= ROWS
  // (n) or null: it is to be read alone
  const float* of(int column) {
    const int at = all_[column];
    if (at < 0) {
      return nullptr;
    }
    if (at != at_) {
      const Column& head = chunk_.columns[at];
      const char* rows[ROWS];
      for (int i = 0; i < n_; i++) {
        rows[i] = head.data + (first_ + i) * head.stride;
      }
      kernels().transpose16(rows, n_, x_, ROWS);
      at_ = at;
    }
    return x_ + (column - at) * ROWS;
  }

 private:
  const Chunk& chunk_;
  const std::vector<int>& all_;
  int64_t first_ = 0;
  int n_ = 0, at_ = -1;
  alignas(64) float x_[RUN * ROWS];
};

}  // namespace sapwood
