// The codes of a table in device memory: the bin of every value, as the CPU finds it. A thread has
// a row of a column.
#pragma once
#include "cuda/predict.h"

namespace sapwood {

SAPWOOD_KERNEL void bin_values(SAPWOOD_ARGUMENTS(BinJob), int, int) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t column = blockIdx.y;
  if (row >= job.n_rows) {
    return;
  }
  const char* at = job.table + row * job.row_stride + column * job.column_stride;
  const double x = job.is_double ? *(const double*)at : (double)*(const float*)at;
  const int n_cuts = job.cut_at[column + 1] - job.cut_at[column];
  const uint32_t rank = rank_of(x, job.cuts + job.cut_at[column], n_cuts);
  job.planes[column * job.n_rows + row] = (uint8_t)(rank == NO_VALUE ? (uint32_t)n_cuts + 1 : rank);
}

}  // namespace sapwood
