#include "cpu/data/crosses.h"

#include <algorithm>

#include "host/pool.h"

namespace sapwood {
namespace {

constexpr int BLOCK = 256;  // rows: both sources stay in the nearest cache

void cross_block(const Crosses& c, int64_t which, const Chunk& table, int64_t first, int n,
                 float* value) {
  double a[BLOCK];
  double b[BLOCK];
  load(table.columns[c.left[which]], first, n, a);
  load(table.columns[c.right[which]], first, n, b);
  const double* mean = c.mean + c.offset[which];
  const int64_t n_codes = c.offset[which + 1] - c.offset[which] - 2;
  by_cross_kind(c.kind[which], [&](auto kind) {
    for (int i = 0; i < n; i++) {
      value[i] = cross_value<decltype(kind)::value>(a[i], b[i], mean, n_codes);
    }
  });
}

}  // namespace

void cross(const Crosses& c, const Chunk& table, float* value, int n_threads) {
  const int64_t n_blocks = (table.n_rows + BLOCK - 1) / BLOCK;
  run(n_threads, n_blocks, [&](int64_t block, int) {
    const int64_t first = block * BLOCK;
    const int n = (int)std::min<int64_t>(BLOCK, table.n_rows - first);
    for (int64_t which = 0; which < c.n; which++) {
      cross_block(c, which, table, first, n, value + which * table.n_rows + first);
    }
  });
}

}  // namespace sapwood
