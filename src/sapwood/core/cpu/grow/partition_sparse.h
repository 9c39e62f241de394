// Partition by a sparse column: the node's row list and the column's list of rows of other codes
// than the default are intersected; both rise. Enters: a node's rows, a column's entries. Leaves:
// one bit a row, as the kernel `mark` does.
#pragma once
#include <string.h>

#include "cpu/data/sparse_columns.h"
#include "cpu/kernels/kernels.h"

namespace sapwood {

// The first place of at .. end - 1 whose row is not below `row`, by steps that double.
inline const int32_t* gallop(const int32_t* at, const int32_t* end, int32_t row) {
  int64_t step = 1;
  while (step < end - at && at[step] < row) {
    at += step;
    step *= 2;
  }
  return std::lower_bound(at, at + std::min<int64_t>(step + 1, end - at), row);
}

inline int64_t mark_sparse(const PartitionArgs& a, const Entries& column, uint32_t default_code) {
  auto goes_right = [&](uint32_t code) {
    return code - a.split.low < a.split.length;
  };
  const bool other = goes_right(default_code);  // whether rows of the default code go right
  memset(a.bits, other ? 0xff : 0, (size_t)(a.n + 63) / 64 * 8);
  int64_t right = other ? a.n : 0;
  auto put = [&](int64_t i, uint16_t code) {
    if (goes_right(code) == other) {
      return;
    }
    a.bits[i >> 6] ^= 1ull << (i & 63);
    right += other ? -1 : 1;
  };
  if (a.n == 0) {
    return 0;
  }
  const int32_t low = a.rows == nullptr ? a.first : a.rows[0];
  const int32_t high = a.rows == nullptr ? a.first + (int32_t)a.n - 1 : a.rows[a.n - 1];
  const int32_t* entry = std::lower_bound(column.rows, column.rows + column.n, low);
  const int32_t* end = std::upper_bound(entry, column.rows + column.n, high);
  if (a.rows == nullptr) {
    for (; entry < end; entry++) {
      put(*entry - a.first, column.codes[entry - column.rows]);
    }
  } else if (end - entry < a.n) {  // walk the shorter list, search the longer one
    for (const int32_t* row = a.rows; entry < end; entry++) {
      row = gallop(row, a.rows + a.n, *entry);
      if (*row == *entry) {
        put(row - a.rows, column.codes[entry - column.rows]);
      }
    }
  } else {
    for (int64_t i = 0; i < a.n && entry < end; i++) {
      entry = gallop(entry, end, a.rows[i]);
      if (entry < end && *entry == a.rows[i]) {
        put(i, column.codes[entry - column.rows]);
      }
    }
  }
  if (a.n % 64 != 0) {
    a.bits[a.n >> 6] &= (1ull << (a.n & 63)) - 1;
  }
  return right;
}

}  // namespace sapwood
