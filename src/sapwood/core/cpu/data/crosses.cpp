#include "cpu/data/crosses.h"

#include <algorithm>
#include <limits>

#include "host/pool.h"

namespace sapwood {
namespace {

constexpr int BLOCK = 256;  // rows: both sources stay in the nearest cache

double mean_of(const double* mean, int64_t n_codes, double code) {
  if (code >= 0.0 && code < (double)n_codes) return mean[(int64_t)code];
  return mean[code != code || code == -1.0 ? n_codes : n_codes + 1];
}

void cross_block(const Crosses& c, int64_t which, const Chunk& table, int64_t first, int n, float* value) {
  double a[BLOCK], b[BLOCK];
  load(table.columns[c.left[which]], first, n, a);
  load(table.columns[c.right[which]], first, n, b);
  const double* mean = c.mean + c.offset[which];
  const int64_t n_codes = c.offset[which + 1] - c.offset[which] - 2;
  switch (c.kind[which]) {
    case DIFFERENCE:
      for (int i = 0; i < n; i++) a[i] = a[i] - b[i];
      break;
    case PRODUCT:
      for (int i = 0; i < n; i++) a[i] = a[i] * b[i];
      break;
    case RATIO:
      for (int i = 0; i < n; i++) a[i] = a[i] / b[i];
      break;
    default:
      for (int i = 0; i < n; i++) a[i] = a[i] - mean_of(mean, n_codes, b[i]);
  }
  for (int i = 0; i < n; i++) {
    const float x = (float)a[i] + 0.0f;  // one zero
    value[i] = x - x == 0.0f ? x : std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

void cross(const Crosses& c, const Chunk& table, float* value, int n_threads) {
  const int64_t n_blocks = (table.n_rows + BLOCK - 1) / BLOCK;
  run(n_threads, n_blocks, [&](int64_t block, int) {
    const int64_t first = block * BLOCK;
    const int n = (int)std::min<int64_t>(BLOCK, table.n_rows - first);
    for (int64_t which = 0; which < c.n; which++)
      cross_block(c, which, table, first, n, value + which * table.n_rows + first);
  });
}

}  // namespace sapwood
