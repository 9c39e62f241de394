// Linear leaves: sums of products over the rows of a leaf, as exact integers; and the values of
// rows.
#pragma once
#include "cpu/kernels/kernels.h"

namespace sapwood::inline SAPWOOD_ISA {

static void linear_sums(const LinearSumArgs& a) {
  const int n = (a.n + 15) & ~15;
  const int width = a.k * (a.k + 5) / 2;
  int at = 0;  // in the sums of an output
  for (int j = 0; j < a.k; j++) {
    const int32_t* qj = a.q + j * LINEAR_ROWS;
    for (int o = 0; o < a.n_outputs; o++) {
      const int32_t* g = a.g + o * LINEAR_ROWS;
      const int32_t* h = a.h + o * LINEAR_ROWS;
      int64_t with_g = 0;
      int64_t with_h = 0;
      for (int i = 0; i < n; i++) {
        with_g += (int64_t)qj[i] * g[i];
        with_h += (int64_t)qj[i] * h[i];
      }
      a.sum[o * width + at] = with_g;
      a.sum[o * width + at + 1] = with_h;
    }
    at += 2;
    for (int m = 0; m <= j; m++, at++) {
      const int32_t* qm = a.q + m * LINEAR_ROWS;
      int32_t product[LINEAR_ROWS];
      for (int i = 0; i < n; i++) {
        product[i] = qj[i] * qm[i];
      }
      for (int o = 0; o < a.n_outputs; o++) {
        const int32_t* h = a.h + o * LINEAR_ROWS;
        int64_t both = 0;
        for (int i = 0; i < n; i++) {
          both += (int64_t)product[i] * h[i];
        }
        a.sum[o * width + at] = both;
      }
    }
    int32_t low = a.low[j];
    int32_t high = a.high[j];
    for (int i = 0; i < a.n; i++) {
      low = qj[i] < low ? qj[i] : low;
      high = qj[i] > high ? qj[i] : high;
    }
    a.low[j] = low;
    a.high[j] = high;
  }
}

static void add_lines(const AddLinesArgs& a) {
  const int n_outputs = a.n_outputs;
  const double* z = a.z;
  for (int i = 0; i < a.n; i++) {
    const double* coef = a.rows[i].coef;
    double* sum = a.sum + i * n_outputs;
    for (int o = 0; o < n_outputs; o++) {
      sum[o] = coef[o];
    }
    for (int j = 0; j < a.rows[i].k; j++, z++) {
      coef += n_outputs;
      for (int o = 0; o < n_outputs; o++) {
        sum[o] = sum[o] + coef[o] * *z;
      }
    }
    bool sound = true;
    for (int o = 0; o < n_outputs; o++) {
      sound = sound & (sum[o] - sum[o] == 0.0);
    }
    for (int o = 0; o < n_outputs && !sound; o++) {
      sum[o] = sum[o] - sum[o] == 0.0 ? sum[o] : a.value[o][a.rows[i].leaf];
    }
  }
  for (int o = 0; o < n_outputs; o++) {
    double* to = a.score + o * a.stride;
    for (int i = 0; i < a.n; i++) {
      to[i] = to[i] + a.sum[i * n_outputs + o];
    }
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
