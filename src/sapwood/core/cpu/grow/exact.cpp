#include "cpu/grow/exact.h"

namespace sapwood {

SortedColumns::SortedColumns(const Binned& b, int n_threads)
    : n_rows(b.n_rows), rows((size_t)b.n_rows * b.n_columns * 4), codes((size_t)b.n_rows * b.n_columns * 4) {
  run(n_threads, b.n_columns, [&](int64_t c, int) {  // a counting sort
    const uint32_t* code = (const uint32_t*)b.plane(b.shards[0], (int)c);
    std::vector<int32_t> at(b.n_bins[c] + 2, 0);  // codes 0 .. n_bins, one place on
    for (int64_t i = 0; i < n_rows; i++) at[code[i] + 1]++;
    for (size_t k = 1; k < at.size(); k++) at[k] += at[k - 1];
    const size_t first = (size_t)c * n_rows;
    for (int64_t i = 0; i < n_rows; i++) {
      const int32_t to = at[code[i]]++;
      rows.as<int32_t>()[first + to] = (int32_t)i, codes.as<uint32_t>()[first + to] = code[i];
    }
  });
}

}  // namespace sapwood
