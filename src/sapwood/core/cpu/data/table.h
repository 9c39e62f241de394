// A table as it comes: columns of any numeric type and stride, in chunks of consecutive rows. These
// are views: nothing is copied.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace sapwood {

enum class DType : uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

// f(a zero of the C++ type of `kind`)
template <class F>
[[gnu::always_inline]] inline auto by_type(DType kind, F&& f) {
  if (kind == DType::f32) {
    return f(float());
  }
  if (kind == DType::f64) {
    return f(double());
  }
  if (kind == DType::i8) {
    return f(int8_t());
  }
  if (kind == DType::i16) {
    return f(int16_t());
  }
  if (kind == DType::i32) {
    return f(int32_t());
  }
  if (kind == DType::i64) {
    return f(int64_t());
  }
  if (kind == DType::u8) {
    return f(uint8_t());
  }
  if (kind == DType::u16) {
    return f(uint16_t());
  }
  if (kind == DType::u32) {
    return f(uint32_t());
  }
  return f(uint64_t());
}

struct Column {
  const char* data;
  int64_t stride;  // bytes
  DType kind;
  // (n_stored) IN, rising: whose values `data` has; null: those of all rows
  const int32_t* rows = nullptr;
  int64_t n_stored = 0;
  double fill_value = 0.0;  // the value of all other rows
  bool sparse() const { return rows != nullptr; }
  Column stored() const { return {data, stride, kind}; }  // its stored values alone, as a column
};

struct RowLists {         // a table row by row, of which only some values are stored
  const int64_t* offset;  // (n_rows + 1) IN, into what follows
  const int32_t* column;  // (n_stored) IN, in any order within a row, none twice
  Column values;          // (n_stored)
  double fill_value;      // the value of all others
  int n_columns;
};

struct Chunk {
  int64_t n_rows;
  std::vector<Column> columns;
  std::optional<RowLists> lists;  // for prediction only: then there are no columns
};

inline int64_t n_rows_of(const std::vector<Chunk>& chunks) {
  int64_t n = 0;
  for (const Chunk& c : chunks) {
    n += c.n_rows;
  }
  return n;
}

template <class T, class Real>
void load_as(const Column& c, int64_t first, int n, Real* out) {
  const char* at = c.data + first * c.stride;
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) {
    T v;
    __builtin_memcpy(&v, at + i * c.stride, sizeof v);
    out[i] = (Real)v;
  }
}

void load_stored(const Column& c, int64_t first, int n, double* out);

// Rows first .. first + n - 1 as float64.
inline void load(const Column& c, int64_t first, int n, double* out) {
  if (c.sparse()) {
    return load_stored(c, first, n, out);
  }
  by_type(c.kind, [&](auto zero) {
    load_as<decltype(zero)>(c, first, n, out);
  });
}

// Calls f(rows, values, n) for blocks of the stored values of a sparse column.
template <class F>
void each_block(const Column& c, F&& f) {
  constexpr int64_t STEP = 512;
  double x[STEP];
  for (int64_t at = 0; at < c.n_stored; at += STEP) {
    const int n = (int)std::min(STEP, c.n_stored - at);
    load(c.stored(), at, n, x);
    f(c.rows + at, x, n);
  }
}

// Rows first .. first + n - 1 of a sparse column.
inline void load_stored(const Column& c, int64_t first, int n, double* out) {
  for (int i = 0; i < n; i++) {
    out[i] = c.fill_value;
  }
  const int32_t* end = c.rows + c.n_stored;
  for (const int32_t* at = std::lower_bound(c.rows, end, first); at < end && *at < first + n;
       at++) {
    load(c.stored(), at - c.rows, 1, out + (*at - first));
  }
}

// One column's cuts, ready for the search kernels: padded with +inf, and also rounded down to
// float32, which keeps
// x <= cut for float32 x.
struct PaddedCuts {
  std::vector<double> d;
  std::vector<float> f;
  int n = 0;

  PaddedCuts() = default;
  explicit PaddedCuts(const std::vector<double>& cuts);
};

// Codes of rows first .. first + n - 1 of a column (n <= BLOCK); as bytes, of at most 254 cuts.
void encode(const Column& column, int64_t first, int n, const PaddedCuts& cuts, uint16_t* code);
void encode(const Column& column, int64_t first, int n, const PaddedCuts& cuts, uint8_t* code);

}  // namespace sapwood
