// Sums of products over the rows of a linear leaf, as exact integers.
#pragma once
#include "cpu/kernels/kernels.h"

namespace sapwood::inline SAPWOOD_ISA {

static void linear_sums(const LinearSumArgs& a) {
  const int n = (a.n + 15) & ~15;
  int64_t* sum = a.sum;
  for (int j = 0; j < a.k; j++) {
    const int32_t* qj = a.q + j * LINEAR_ROWS;
    int64_t with_g = 0, with_h = 0;
    for (int i = 0; i < n; i++) with_g += (int64_t)qj[i] * a.g[i], with_h += (int64_t)qj[i] * a.h[i];
    *sum++ = with_g, *sum++ = with_h;
    for (int m = 0; m <= j; m++) {
      const int32_t* qm = a.q + m * LINEAR_ROWS;
      int64_t both = 0;
      for (int i = 0; i < n; i++) both += (int64_t)(qj[i] * qm[i]) * a.h[i];
      *sum++ = both;
    }
    int32_t low = a.low[j], high = a.high[j];
    for (int i = 0; i < a.n; i++) low = qj[i] < low ? qj[i] : low, high = qj[i] > high ? qj[i] : high;
    a.low[j] = low, a.high[j] = high;
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
