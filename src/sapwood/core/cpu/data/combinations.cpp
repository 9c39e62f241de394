#include "cpu/data/combinations.h"

#include <algorithm>
#include <vector>

#include "host/pool.h"

namespace sapwood {
namespace {

constexpr int BLOCK = 256;  // rows: keys and values stay in the nearest cache
// possible keys that have a list of codes: to search the keys takes 27 ns a row
constexpr int64_t MOST = 65536;

int64_t state(double x, int32_t n_codes, double threshold) {
  if (n_codes == 0) {
    return x != x ? 2 : x > threshold;
  }
  if (!(x < 0.0 || x >= 0.0) || x == -1.0) {
    return n_codes;
  }
  return x >= 0.0 && x < (double)n_codes ? (int64_t)x : -1;  // else never met
}

// The code of every key that there can be; none where these are too many to be worth it, and keys
// are searched.
using Codes = std::vector<int32_t>;

int64_t states(const Combinations& c, int64_t j) {
  return c.n_codes[j] == 0 ? 3 : c.n_codes[j] + 1;
}

Codes all_codes(const Combinations& c, int64_t which, int64_t n_rows) {
  const int64_t most = std::min(MOST, n_rows);
  int64_t size = 1;
  for (int64_t j = c.offset[which]; j < c.offset[which + 1] && size <= most; j++) {
    size *= states(c, j);
  }
  Codes codes(size <= most ? size : 0, -1);
  const int64_t begin = c.key_offset[which];
  const int64_t end = c.key_offset[which + 1];
  for (int64_t i = begin; i < end && !codes.empty(); i++) {
    if (c.key[i] >= 0 && c.key[i] < size) {
      codes[c.key[i]] = (int32_t)(i - begin);
    }
  }
  return codes;
}

void combine_block(const Combinations& c, int64_t which, const Codes& codes, const Chunk& table,
                   int64_t first, int n, int32_t* code) {
  double x[BLOCK];
  int64_t key[BLOCK] = {};
  for (int64_t j = c.offset[which]; j < c.offset[which + 1]; j++) {
    const int64_t size = states(c, j);
    load(table.columns[c.column[j]], first, n, x);
    for (int i = 0; i < n; i++) {
      const int64_t own = state(x[i], c.n_codes[j], c.threshold[j]);
      key[i] = key[i] < 0 || own < 0 ? -1 : key[i] * size + own;
    }
  }
  const int64_t* begin = c.key + c.key_offset[which];
  const int64_t* end = c.key + c.key_offset[which + 1];
  for (int i = 0; i < n; i++) {
    if (!codes.empty()) {
      code[i] = key[i] < 0 ? -1 : codes[key[i]];
      continue;
    }
    const int64_t* at = std::lower_bound(begin, end, key[i]);
    code[i] = at != end && *at == key[i] ? (int32_t)(at - begin) : -1;
  }
}

}  // namespace

void combine(const Combinations& c, const Chunk& table, int32_t* code, int n_threads) {
  const int64_t n_blocks = (table.n_rows + BLOCK - 1) / BLOCK;
  std::vector<Codes> codes(c.n);
  for (int64_t which = 0; which < c.n; which++) {
    codes[which] = all_codes(c, which, table.n_rows);
  }
  run(n_threads, n_blocks, [&](int64_t block, int) {
    const int64_t first = block * BLOCK;
    const int n = (int)std::min<int64_t>(BLOCK, table.n_rows - first);
    for (int64_t which = 0; which < c.n; which++) {
      combine_block(c, which, codes[which], table, first, n, code + which * table.n_rows + first);
    }
  });
}

}  // namespace sapwood
