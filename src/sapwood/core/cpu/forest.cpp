#include "forest.h"

#include <string.h>

#include <algorithm>
#include <stdexcept>

#include "../math/real.h"
#include "pool.h"

namespace sapwood {
namespace {

constexpr int STRIPE =
    64;  // rows binned together: those of a wide row-major table then stay in L2 from column to column
constexpr int64_t WIDE_ROW = 512;  // bytes
constexpr int FEW_ROWS = 48;       // below, following each row down is quicker than filling a block of 512

void check(bool fine, const char* what) {
  if (!fine) throw std::invalid_argument(what);
}

// Whether a tree asks one question a level, and is laid out level by level: its depth, or -1.
int symmetric_depth(const ForestArrays& a, int64_t at, int64_t n) {
  int depth = 0;
  while (((int64_t)2 << depth) - 1 < n) depth++;
  if (((int64_t)2 << depth) - 1 != n || depth < 1 || depth > 8) return -1;
  for (int64_t u = 0; u < n; u++) {
    const bool leaf = u >= ((int64_t)1 << depth) - 1;
    if (a.left[at + u] != (leaf ? 0 : (int32_t)(2 * u + 1))) return -1;
    if (leaf) continue;
    int level = 0;
    while (((int64_t)2 << level) - 1 <= u) level++;
    const int64_t first = at + ((int64_t)1 << level) - 1;
    if (a.column[at + u] != a.column[first] || a.threshold[at + u] != a.threshold[first] ||
        a.missing_left[at + u] != a.missing_left[first])
      return -1;
  }
  return depth;
}

uint8_t code_of(double x, const Cuts& cuts) {
  return (uint8_t)(x != x ? cuts.n + 1 : std::lower_bound(cuts.d.begin(), cuts.d.begin() + cuts.n, x) - cuts.d.begin());
}

}  // namespace

Forest::Forest(int n_columns, const ForestArrays& a, std::vector<double> base, Link link)
    : n_columns_(n_columns), base_(std::move(base)), link_(link) {
  check(n_columns >= 1 && !base_.empty(), "a forest needs columns and base scores");
  check(a.offset[0] == 0 && a.offset[a.n_trees] == a.n_nodes, "tree offsets do not cover the nodes");
  std::vector<std::vector<double>> thresholds(n_columns);
  for (int64_t t = 0; t < a.n_trees; t++) {
    const int64_t at = a.offset[t], n = a.offset[t + 1] - at;
    check(n >= 1 && n < 0x3fffffff && at >= 0 && at + n <= a.n_nodes, "tree offsets must rise");
    check(a.output[t] >= 0 && a.output[t] < n_outputs(), "a tree adds to an output that is not there");
    for (int64_t u = 0; u < n; u++) {
      const int32_t left = a.left[at + u], c = a.column[at + u];
      if (left == 0) continue;
      check(left > u && left + 1 < n, "a child must follow its parent inside its tree");
      check(c >= 0 && c < n_columns, "a split asks for a column that is not there");
      const double x = a.threshold[at + u];
      check(x == x && x != -INF && (x != INF || !a.missing_left[at + u]), "a split has an impossible threshold");
      if (x != INF) thresholds[c].push_back(x);
    }
  }
  plane_of_.assign(n_columns, -1);
  for (int64_t u = 0; u < a.n_nodes; u++)
    if (a.left[u] != 0) plane_of_[a.column[u]] = 0;
  for (int c = 0; c < n_columns; c++) {
    if (plane_of_[c] < 0) continue;
    auto& x = thresholds[c];
    std::sort(x.begin(), x.end());
    x.erase(std::unique(x.begin(), x.end()), x.end());
    maskable_ = maskable_ && x.size() <= 254;
    plane_of_[c] = (int)used_.size();
    used_.push_back(c);
    cuts_.emplace_back(x);
  }
  walk_.resize(a.n_nodes);
  value_.assign(a.value, a.value + a.n_nodes);
  for (int64_t t = 0; t < a.n_trees; t++) {
    const int64_t at = a.offset[t];
    const int n = (int)(a.offset[t + 1] - at);
    OneTree tree{at,
                 n,
                 a.output[t],
                 symmetric_depth(a, at, n),
                 (int64_t)masks_.size(),
                 (int64_t)leaf_value_.size(),
                 bits_for((n + 1) / 2),
                 maskable_ && n <= 511};
    for (int u = 0; u < n; u++) {
      const int32_t left = a.left[at + u];
      walk_[at + u] = {a.threshold[at + u], left == 0 ? -1 : plane_of_[a.column[at + u]],
                       left == 0 ? 0 : left * 2 + (a.missing_left[at + u] != 0)};
    }
    if (tree.masked) {
      most_nodes_ = std::max(most_nodes_, n);
      auto mask = [&](int u) {
        MaskNode m{};
        if (a.left[at + u] == 0) return m;
        const int p = plane_of_[a.column[at + u]];
        const Cuts& cuts = cuts_[p];
        const double x = a.threshold[at + u];
        const int bin =
            x == INF ? cuts.n : (int)(std::lower_bound(cuts.d.begin(), cuts.d.begin() + cuts.n, x) - cuts.d.begin());
        const int low = bin + 1, end = cuts.n + 1 + (a.missing_left[at + u] ? 0 : 1);
        m.plane = p, m.low = (uint8_t)low, m.length = (uint8_t)(end - low), m.left = (uint16_t)a.left[at + u];
        return m;
      };
      int n_leaves = 0;
      leaf_value_.resize(leaf_value_.size() + 256, 0.0);
      for (int u = 0; u < n; u++) {
        if (a.left[at + u] == 0) leaf_value_[tree.first_value + n_leaves] = a.value[at + u];
        if (tree.symmetric_depth < 0) {
          masks_.push_back(mask(u));
          if (a.left[at + u] == 0) masks_.back().leaf = (uint16_t)n_leaves;
        }
        n_leaves += a.left[at + u] == 0;
      }
      for (int d = 0; d < tree.symmetric_depth; d++) masks_.push_back(mask((1 << d) - 1));
    }
    trees_.push_back(tree);
  }
}

int32_t Forest::follow(const OneTree& t, const double* row) const {
  const Walk* w = &walk_[t.first_node];
  int32_t u = 0;
  while (w[u].plane >= 0) {
    const double x = row[w[u].plane];
    const bool right = x != x ? !(w[u].left & 1) : x > w[u].threshold;
    u = (w[u].left >> 1) + right;
  }
  return u;
}

void Forest::load_row(const Chunk& table, int64_t row, double* x) const {
  if (!table.lists) {
    for (size_t p = 0; p < used_.size(); p++) load(table.columns[used_[p]], row, 1, x + p);
    return;
  }
  const RowLists& lists = *table.lists;
  std::fill(x, x + used_.size(), lists.absent);
  for (int64_t i = lists.offset[row]; i < lists.offset[row + 1]; i++)
    if (const int p = plane_of_[lists.column[i]]; p >= 0) load(lists.values, i, 1, x + p);
}

// Codes of n rows of lists, one byte plane a used column: most are that of the absent value.
void Forest::encode_lists(const RowLists& lists, int64_t row, int n, uint8_t* codes) const {
  for (size_t p = 0; p < used_.size(); p++) memset(codes + p * BLOCK, code_of(lists.absent, cuts_[p]), n);
  for (int i = 0; i < n; i++)
    for (int64_t at = lists.offset[row + i]; at < lists.offset[row + i + 1]; at++) {
      const int p = plane_of_[lists.column[at]];
      if (p < 0) continue;
      double x;
      load(lists.values, at, 1, &x);
      codes[(size_t)p * BLOCK + i] = code_of(x, cuts_[p]);
    }
}

void Forest::by_rows(const Chunk& table, int64_t row, int n, int64_t first, int64_t last, const double* start,
                     double* out) const {
  std::vector<double> x(used_.size());
  const int k = n_outputs();
  for (int i = 0; i < n; i++) {
    load_row(table, row + i, x.data());
    double* s = out + (row + i) * k;
    for (int j = 0; j < k; j++) s[j] = start == nullptr ? base_[j] : start[(row + i) * k + j];
    for (int64_t t = first; t < last; t++)
      s[trees_[t].output] = s[trees_[t].output] + value_[trees_[t].first_node + follow(trees_[t], x.data())];
  }
}

void Forest::by_blocks(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start, double* out,
                       int n_threads) const {
  const int k = n_outputs(), n_planes = (int)used_.size();
  struct alignas(64) Local {
    std::vector<uint8_t> codes;
    std::vector<const uint8_t*> planes;
    std::vector<uint64_t> reach;
    std::vector<double> score;
  };
  std::vector<Local> local(n_threads);
  run(n_threads, (table.n_rows + BLOCK - 1) / BLOCK, [&](int64_t b, int worker) {
    Local& mine = local[worker];
    if (mine.planes.empty()) {
      mine.codes.assign((size_t)n_planes * BLOCK + 64, 0);
      for (int p = 0; p < n_planes; p++) mine.planes.push_back(mine.codes.data() + (size_t)p * BLOCK);
      mine.planes.push_back(nullptr);
      mine.reach.resize((size_t)most_nodes_ * (BLOCK / 64));
      mine.score.resize((size_t)k * BLOCK);
    }
    const int64_t at = b * BLOCK;
    const int n = (int)std::min<int64_t>(BLOCK, table.n_rows - at);
    for (int j = 0; j < k; j++)
      for (int i = 0; i < n; i++) mine.score[j * BLOCK + i] = start == nullptr ? base_[j] : start[(at + i) * k + j];
    uint16_t code[BLOCK];
    if (table.lists) encode_lists(*table.lists, at, n, mine.codes.data());
    for (int first_row = 0; first_row < n && !table.lists; first_row += STRIPE) {
      const int m = std::min(STRIPE, n - first_row);
      const char* line = nullptr;
      for (int p = 0; p < n_planes; p++) {
        const Column& column = table.columns[used_[p]];
        if (column.stride >= WIDE_ROW && (line == nullptr || column.data - line >= 64) &&
            at + first_row + 2 * STRIPE <= table.n_rows) {
          line = column.data;  // the next stripe's rows, whose addresses no hardware foresees
          for (int i = STRIPE; i < 2 * STRIPE; i++)
            __builtin_prefetch(line + (at + first_row + i) * column.stride, 0, 2);
        }
        encode(column, at + first_row, m, cuts_[p], code);
        uint8_t* plane = mine.codes.data() + (size_t)p * BLOCK + first_row;
        for (int i = 0; i < m; i++) plane[i] = (uint8_t)code[i];
      }
    }
    for (int64_t t = first; t < last; t++) {
      const OneTree& tree = trees_[t];
      double* score = &mine.score[tree.output * BLOCK];
      uint8_t leaf[BLOCK];
      if (tree.symmetric_depth >= 0)
        kernels().symmetric(mine.planes.data(), &masks_[tree.first_mask], tree.symmetric_depth, leaf);
      else
        kernels().leaves(mine.planes.data(), 0, &masks_[tree.first_mask], tree.n_nodes, tree.n_bits, mine.reach.data(),
                         leaf);
      kernels().add_values(leaf, &leaf_value_[tree.first_value], tree.n_bits, score);
    }
    double* to = out + at * k;
    for (int j = 0; j < k; j++)
      for (int i = 0; i < n; i++) to[i * k + j] = mine.score[j * BLOCK + i];
    if (!raw && link_ != Link::identity) kernels().link((int)link_, to, to, n, k);
  });
}

void Forest::predict(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start, double* out,
                     int n_threads) const {
  bool masked = maskable_ && table.n_rows >= FEW_ROWS;
  for (int64_t t = first; masked && t < last; t++) masked = trees_[t].masked;
  if (masked) return by_blocks(table, first, last, raw, start, out, n_threads);
  constexpr int TOGETHER = 64;
  run(table.n_rows <= TOGETHER ? 1 : n_threads, (table.n_rows + TOGETHER - 1) / TOGETHER, [&](int64_t b, int) {
    const int64_t at = b * TOGETHER;
    const int n = (int)std::min<int64_t>(TOGETHER, table.n_rows - at);
    by_rows(table, at, n, first, last, start, out);
    if (!raw && link_ != Link::identity)
      kernels().link((int)link_, out + at * n_outputs(), out + at * n_outputs(), n, n_outputs());
  });
}

void Forest::leaves(const Chunk& table, int64_t first, int64_t last, int32_t* out, int n_threads) const {
  constexpr int TOGETHER = 64;
  run(n_threads, (table.n_rows + TOGETHER - 1) / TOGETHER, [&](int64_t b, int) {
    std::vector<double> x(used_.size());
    for (int64_t i = b * TOGETHER; i < std::min(table.n_rows, (b + 1) * TOGETHER); i++) {
      load_row(table, i, x.data());
      for (int64_t t = first; t < last; t++) out[i * (last - first) + (t - first)] = follow(trees_[t], x.data());
    }
  });
}

}  // namespace sapwood
