// Linear leaves as plain values: the raw columns they read and the terms of each leaf.
#pragma once
#include <stdint.h>

#include <vector>

namespace sapwood {

struct RawTable {  // the columns as given, row-major; data is null where none are kept
  const void* data = nullptr;
  bool wide = false;  // float64, else float32
  int n_columns = 0;
};

struct LinearPart {  // the terms by leaf, or by node
  // (n + 1) where each leaf's terms begin; a leaf without terms has a constant value
  std::vector<int64_t> offset;
  std::vector<int32_t> column;  // (n_terms) the first term of a leaf is its intercept, column -1
  std::vector<double> coef;     // (n_terms)
};

struct LinearView {  // a LinearPart in another's memory
  const int64_t* offset = nullptr;
  const int32_t* column = nullptr;
  const double* coef = nullptr;
  // (n_columns, 3) of standard units: LinearUnits; null in raw units
  const double* bounds = nullptr;
};
inline LinearView view(const LinearPart& p, const double* bounds) {
  return {p.offset.data(), p.column.data(), p.coef.data(), bounds};
}

}  // namespace sapwood
