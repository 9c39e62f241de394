// A table as it comes: columns of any numeric type and stride, in chunks of consecutive rows. Views only; nothing is copied.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace sapwood {

enum class Kind : uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

struct Column {
  const char* data;
  int64_t stride;  // bytes
  Kind kind;
};

struct Chunk {
  int64_t n_rows;
  std::vector<Column> columns;
};

template <class T, class Real>
void load_as(const Column& c, int64_t first, int n, Real* out) {
  const char* at = c.data + first * c.stride;
  for (int i = 0; i < n; i++) {
    T v;
    __builtin_memcpy(&v, at + i * c.stride, sizeof v);
    out[i] = (Real)v;
  }
}

// Rows first .. first + n - 1 as float64.
inline void load(const Column& c, int64_t first, int n, double* out) {
  switch (c.kind) {
    case Kind::f32:
      return load_as<float>(c, first, n, out);
    case Kind::f64:
      return load_as<double>(c, first, n, out);
    case Kind::i8:
      return load_as<int8_t>(c, first, n, out);
    case Kind::i16:
      return load_as<int16_t>(c, first, n, out);
    case Kind::i32:
      return load_as<int32_t>(c, first, n, out);
    case Kind::i64:
      return load_as<int64_t>(c, first, n, out);
    case Kind::u8:
      return load_as<uint8_t>(c, first, n, out);
    case Kind::u16:
      return load_as<uint16_t>(c, first, n, out);
    case Kind::u32:
      return load_as<uint32_t>(c, first, n, out);
    case Kind::u64:
      return load_as<uint64_t>(c, first, n, out);
  }
}

// One column's cuts, ready for the search kernels: padded with +inf, and rounded down to float32, which keeps x <= cut for float32 x.
struct Cuts {
  std::vector<double> d;
  std::vector<float> f;
  int n = 0;

  Cuts() = default;
  explicit Cuts(const std::vector<double>& cuts);
};

// Codes of rows first .. first + n - 1 of a column (n <= BLOCK).
void encode(const Column& column, int64_t first, int n, const Cuts& cuts, uint16_t* code);

}  // namespace sapwood
