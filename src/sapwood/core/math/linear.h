// A linear leaf: its value at a row, and the equations for its coefficients (NUMERICS, Linear
// leaves).
#pragma once
#include "math/fixed.h"

namespace sapwood::inline SAPWOOD_ISA {

constexpr int LINEAR = 30;  // bits of a column's values in raw units: |q| <= 2^30
// in standard units: sums of 64 products of two values and a hessian fit 64 bits
constexpr int STANDARD = 13;
// a pivot of at most this fraction of its diagonal: no coefficient
constexpr double DEPENDENT = 0x1p-30;

// A value as it enters a line; bounds (n_columns, 3): lowest and highest value, and what a missing
// one counts as.
inline double bounded(const double* bounds, int32_t column, double x) {
  const double* b = bounds + 3 * (int64_t)column;
  const double low = b[0];
  const double high = b[1];
  const double above = x < low ? low : x;
  const double inside = above > high ? high : above;
  return x != x ? b[2] : inside;
}

// coef (n) and column (n), the constant first; x(column) gives a value of the row. If a value is
// missing, infinite or far too large, the sum is not finite and `otherwise`, the leaf's plain
// value, is returned.
template <class Row>
inline double linear_value(const double* coef, const int32_t* column, int64_t n, double otherwise,
                           Row&& x) {
  double sum = coef[0];
  for (int64_t j = 1; j < n; j++) {
    sum = sum + coef[j] * x(column[j]);
  }
  return sum - sum == 0.0 ? sum : otherwise;
}

// Solves A x = b for a symmetric A (k, k) by A = L D L'. L replaces A below the diagonal, d gets D
// (k), b gets x.
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
      for (int m = 0; m < j; m++) {
        rest = rest - (row[m] * a[j * k + m]) * d[m];
      }
      row[j] = rest / d[j];
      pivot = pivot - (row[j] * row[j]) * d[j];
    }
    d[i] = pivot > DEPENDENT * row[i] ? pivot : 0.0;
  }
  for (int i = 0; i < k; i++) {
    for (int j = 0; j < i; j++) {
      b[i] = b[i] - a[i * k + j] * b[j];
    }
  }
  for (int i = k - 1; i >= 0; i--) {
    b[i] = d[i] == 0.0 ? 0.0 : b[i] / d[i];
    for (int j = i + 1; j < k; j++) {
      b[i] = b[i] - a[j * k + i] * b[j];
    }
  }
}

// In raw units, from the range of its values in the leaf, low < high.
inline FixedColumn fixed_column(double low, double high) {
  const double centre = 0.5 * low + 0.5 * high;
  const double up = high - centre;
  const double down = centre - low;
  const int e = exponent_of(up < down ? down : up);
  return {centre, power_of_two(LINEAR - e), power_of_two(e - LINEAR), power_of_two(e - LINEAR)};
}

struct LineRule {
  Scale scale;  // of gradients
  int shift;    // counts read count / 2^shift
  double rate, reg_lambda, linear_lambda, linear_smooth;
};

inline int line_sums(int k) {
  return k * (k + 5) / 2;
}
inline int line_space(int k) {
  return k * (k + 3);
}

// The constant and the coefficients of a leaf; returns how many there are, at most k + 1; 0: no
// column can have one. sum(): the sums over complete rows one after the other: by column a: g*q,
// h*q, then h*q*q with the columns up to a; space (line_space(k)); to_column, to_coef (k + 1) OUT
template <class NextSum>
inline int solve_line(int k, const FixedColumn* fixed, const int32_t* column, const LineSums& own,
                      double value, const LineRule& rule, NextSum&& sum, double* space,
                      int32_t* to_column, double* to_coef) {
  const double gs = g_scale(rule.scale);
  const double hs = h_scale(rule.scale);
  const double lambda = rule.reg_lambda * hs;
  const double smooth = rule.linear_smooth * hs;
  const double g = (double)own.complete.g;
  const double h = (double)own.complete.h;
  if (k == 0 || h == 0.0 || (double)own.count < (k + 1) * power_of_two(rule.shift)) {
    return 0;
  }
  double* a = space;
  double* d = a + k * k;
  double* b = d + k;
  double* mean = b + k;
  for (int i = 0; i < k; i++) {
    const double with_g = sum();
    mean[i] = sum();  // h*q, for now
    b[i] = with_g - (mean[i] * g) / h;
    for (int j = 0; j <= i; j++) {
      a[i * k + j] = sum() - (mean[i] * mean[j]) / h;
    }
  }
  for (int i = 0; i < k; i++) {
    const double variance = a[i * k + i];
    const double step = fixed[i].in_units;
    a[i * k + i] = variance + (((rule.linear_lambda * hs) / step) / step + (smooth * variance) / h);
    mean[i] = fixed[i].centre + (mean[i] / h) * fixed[i].quantum;
  }
  solve_ridge(a, d, b, k);
  const double shift =
      -(g - (double)own.all.g * (h / (double)own.all.h)) / (h + lambda) * (hs / gs);
  double constant = value + rule.rate * shift;
  int n = 1;
  bool sound = true;
  for (int i = 0; i < k; i++) {
    const double coef = rule.rate * ((-b[i] / fixed[i].quantum) * (hs / gs));
    if (coef == 0.0) {
      continue;
    }
    constant = constant - coef * mean[i];
    to_column[n] = column[i];
    to_coef[n] = coef;
    n++;
    sound = sound && coef - coef == 0.0;
  }
  to_column[0] = -1;
  to_coef[0] = constant;
  return sound && constant - constant == 0.0 && n > 1 ? n : 0;
}

}  // namespace sapwood::inline SAPWOOD_ISA
