// A linear leaf: its value at a row, and the equations for its coefficients (NUMERICS, Linear leaves).
#pragma once
#include "math/fixed.h"

namespace sapwood::inline SAPWOOD_ISA {

constexpr int LINEAR = 30;             // bits of a column's values in raw units: |q| <= 2^30
constexpr int STANDARD = 13;           // in standard units: sums of 64 products of two values and a hessian fit 64 bits
constexpr double DEPENDENT = 0x1p-30;  // a pivot of at most this fraction of its diagonal: no coefficient

// A value as it enters a line; bounds (n_columns, 3): lowest and highest value, and what a missing one counts as.
inline double bounded(const double* bounds, int32_t column, double x) {
  const double *b = bounds + 3 * (int64_t)column, low = b[0], high = b[1];
  const double above = x < low ? low : x, inside = above > high ? high : above;
  return x != x ? b[2] : inside;
}

// coef (n) and column (n), the constant first; x(column) gives a value of the row. If a value is missing, infinite or
// far too large, the sum is not finite and `otherwise`, the leaf's plain value, is returned.
template <class Row>
inline double linear_value(const double* coef, const int32_t* column, int64_t n, double otherwise, Row&& x) {
  double sum = coef[0];
  for (int64_t j = 1; j < n; j++) sum = sum + coef[j] * x(column[j]);
  return sum - sum == 0.0 ? sum : otherwise;
}

// Solves A x = b for a symmetric A (k, k) by A = L D L'. L replaces A below the diagonal, d gets D (k), b gets x.
// A column that the columns before it determine gets 0, and so does one with an infinite penalty.
inline void solve_ridge(double* a, double* d, double* b, int k) {
  for (int i = 0; i < k; i++) {
    double* row = a + i * k;
    double pivot = row[i];
    for (int j = 0; j < i; j++) {
      if (d[j] == 0.0) {
        row[j] = 0.0;
        continue;
      }
      double rest = row[j];
      for (int m = 0; m < j; m++) rest = rest - (row[m] * a[j * k + m]) * d[m];
      row[j] = rest / d[j];
      pivot = pivot - (row[j] * row[j]) * d[j];
    }
    d[i] = pivot > DEPENDENT * row[i] ? pivot : 0.0;
  }
  for (int i = 0; i < k; i++)
    for (int j = 0; j < i; j++) b[i] = b[i] - a[i * k + j] * b[j];
  for (int i = k - 1; i >= 0; i--) {
    b[i] = d[i] == 0.0 ? 0.0 : b[i] / d[i];
    for (int j = i + 1; j < k; j++) b[i] = b[i] - a[j * k + i] * b[j];
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
