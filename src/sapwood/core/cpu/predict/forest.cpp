#include "cpu/predict/forest.h"

#include <string.h>

#include <algorithm>
#include <stdexcept>

#include "cpu/data/transpose.h"
#include "host/pool.h"
#include "math/linear.h"

namespace sapwood {
namespace {

constexpr int STRIPE =
    64;  // rows binned together: those of a wide row-major table then stay in L2 from column to column
constexpr int64_t WIDE_ROW = 512;  // bytes
constexpr int BLOCK_ROWS = 128;    // rows that a thread follows down at a time
constexpr int INTERLEAVE = 8;      // rows that go down a tree together; 16 are no faster
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
        a.missing_left[at + u] != a.missing_left[first] || a.set[at + u] != a.set[first])
      return -1;
  }
  return depth;
}

constexpr int MAX_CODES = 65534;  // of a column of categories, as bins have them
constexpr int SMALL_SET = 512;    // below it sets have a bit a code, others where these are no more words than codes
constexpr int TOP_BYTE = 253;     // so that the codes of missing and of new values, the two after it, are bytes
constexpr double UNSEEN = -2.0;   // the code of a category that training has not met

// Above every code of a set, which is empty where missing values are alone on the left.
int32_t above(const ForestArrays& a, int64_t s) {
  return a.set_offset[s] < a.set_offset[s + 1] ? a.set_code[a.set_offset[s + 1] - 1] + 1 : 0;
}

// Whether what training has not met goes left: the other way than missing values where the second bit says so.
bool unseen_left(uint8_t sides) { return ((sides ^ sides >> 1) & 1) != 0; }

// The code of a category among those of a column: `top` is in no set, missing and new ones follow.
int code_of(double x, int top) { return x >= 0.0 ? (x < top ? (int)x : top) : x == UNSEEN ? top + 2 : top + 1; }

uint8_t code_of(double x, const PaddedCuts& cuts) {
  return (uint8_t)(x != x ? cuts.n + 1 : std::lower_bound(cuts.d.begin(), cuts.d.begin() + cuts.n, x) - cuts.d.begin());
}

}  // namespace

// Every set holds rising codes, and a column is split by sets or by thresholds, not by both.
void Forest::check_sets(const ForestArrays& a) {
  check(a.n_sets >= 0 && a.set_offset[0] == 0 && a.set_offset[a.n_sets] == a.n_codes, "sets do not cover their codes");
  for (int64_t s = 0; s < a.n_sets; s++) {
    check(a.set_offset[s] <= a.set_offset[s + 1] && a.set_offset[s + 1] <= a.n_codes, "offsets of sets must not fall");
    for (int64_t i = a.set_offset[s]; i < a.set_offset[s + 1]; i++)
      check(a.set_code[i] < MAX_CODES && a.set_code[i] > (i > a.set_offset[s] ? a.set_code[i - 1] : -1),
            "the codes of a set must rise");
  }
  top_.assign(n_columns_, -1);
  for (int64_t u = 0; u < a.n_nodes; u++) {
    if (a.left[u] == 0 || a.set[u] < 0) continue;
    check(a.set[u] < a.n_sets, "a split asks for a set that is not there");
    top_[a.column[u]] = std::max(top_[a.column[u]], above(a, a.set[u]));
  }
  for (int64_t u = 0; u < a.n_nodes; u++)
    check(a.left[u] == 0 || (a.set[u] >= 0) == (top_[a.column[u]] >= 0), "a column is split by sets and by thresholds");
}

Forest::Forest(int n_columns, const ForestArrays& a, std::vector<double> base, Link link)
    : n_columns_(n_columns), base_(std::move(base)), link_(link) {
  check(n_columns >= 1 && !base_.empty(), "a forest needs columns and base scores");
  check(a.offset[0] == 0 && a.offset[a.n_trees] == a.n_nodes, "tree offsets do not cover the nodes");
  std::vector<std::vector<double>> thresholds(n_columns);
  for (int64_t t = 0; t < a.n_trees; t++) {
    const int64_t at = a.offset[t], n = a.offset[t + 1] - at;
    check(n >= 1 && n < 0x1fffffff && at >= 0 && at + n <= a.n_nodes, "tree offsets must rise");
    check(a.output[t] >= 0 && a.output[t] < n_outputs(), "a tree adds to an output that is not there");
    for (int64_t u = 0; u < n; u++) {
      const int32_t left = a.left[at + u], c = a.column[at + u];
      if (left == 0) continue;
      check(left > u && left + 1 < n, "a child must follow its parent inside its tree");
      check(c >= 0 && c < n_columns, "a split asks for a column that is not there");
      const double x = a.threshold[at + u];
      check(x == x && x != -INF && (x != INF || !a.missing_left[at + u]), "a split has an impossible threshold");
      if (x != INF && a.set[at + u] < 0) thresholds[c].push_back(x);
    }
  }
  check_sets(a);
  set_offset_.assign(a.set_offset, a.set_offset + a.n_sets + 1);
  set_code_.assign(a.set_code, a.set_code + a.n_codes);
  std::vector<int64_t> set_at(a.n_sets);
  for (int64_t s = 0; s < a.n_sets; s++) {
    const int end = above(a, s), words = (end + 63) / 64;
    const bool in_bits = end <= SMALL_SET || words <= a.set_offset[s + 1] - a.set_offset[s];
    set_at[s] = in_bits ? (int64_t)bit_sets_.size() : ~s;
    if (!in_bits) continue;
    bit_sets_.push_back((uint64_t)end);
    bit_sets_.resize(bit_sets_.size() + words, 0);
    for (int64_t i = a.set_offset[s]; i < a.set_offset[s + 1]; i++)
      bit_sets_[set_at[s] + 1 + a.set_code[i] / 64] |= 1ull << (a.set_code[i] % 64);
  }
  mask_sets_.reserve(std::count_if(a.set, a.set + a.n_nodes, [](int32_t s) { return s >= 0; }));  // nodes point to them
  plane_of_.assign(n_columns, -1);
  for (int64_t u = 0; u < a.n_nodes; u++)
    if (a.left[u] != 0) plane_of_[a.column[u]] = 0;
  const int64_t n_terms = a.linear.offset == nullptr ? 0 : a.linear.offset[a.n_nodes];
  for (int64_t j = 0; j < n_terms; j++)
    if (a.linear.column[j] >= 0) plane_of_[a.linear.column[j]] = 0;
  for (int c = 0; c < n_columns; c++) {
    if (plane_of_[c] < 0) continue;
    auto& x = thresholds[c];
    std::sort(x.begin(), x.end());
    x.erase(std::unique(x.begin(), x.end()), x.end());
    maskable_ = maskable_ && x.size() <= 254;
    if (top_[c] > TOP_BYTE) wide_columns_.push_back(c);
    plane_of_[c] = (int)used_.size();
    used_.push_back(c);
    cuts_.emplace_back(x);
  }
  if (n_terms > 0) {
    linear_.offset.assign(a.linear.offset, a.linear.offset + a.n_nodes + 1);
    linear_.coef.assign(a.linear.coef, a.linear.coef + n_terms);
    for (int64_t j = 0; j < n_terms; j++)
      linear_.column.push_back(a.linear.column[j] < 0 ? -1 : plane_of_[a.linear.column[j]]);
  }
  walk_.resize(a.n_nodes);
  value_.assign(a.value, a.value + a.n_nodes);
  for (int64_t t = 0; t < a.n_trees; t++) {
    const int64_t at = a.offset[t];
    const int n = (int)(a.offset[t + 1] - at);
    PackedTree tree{at,
                    n,
                    a.output[t],
                    symmetric_depth(a, at, n),
                    (int64_t)masks_.size(),
                    (int64_t)leaf_value_.size(),
                    bits_for((n + 1) / 2),
                    maskable_ && n <= 511,
                    (int)wide_.size(),
                    0};
    for (int u = 0; u < n; u++) {
      const int32_t left = a.left[at + u];
      Walk& w = walk_[at + u];
      w.threshold = left == 0 ? INF : a.threshold[at + u], w.plane = left == 0 ? -1 : plane_of_[a.column[at + u]];
      const uint8_t sides = a.missing_left[at + u];
      w.left = left == 0 ? u * 4 + 1 : left * 4 + unseen_left(sides) * 2 + (sides & 1);
      if (left != 0 && a.set[at + u] >= 0) w.set = set_at[a.set[at + u]], w.plane = -2 - w.plane;
    }
    if (tree.masked) {
      most_nodes_ = std::max(most_nodes_, n);
      auto mask = [&](int u) {
        MaskNode m{};
        if (a.left[at + u] == 0) return m;
        const int p = plane_of_[a.column[at + u]], top = top_[a.column[at + u]];
        m.plane = p, m.left = (uint16_t)a.left[at + u];
        if (top >= 0) {
          const int32_t s = a.set[at + u];
          const bool missing = a.missing_left[at + u] & 1, unseen = unseen_left(a.missing_left[at + u]);
          if (top > TOP_BYTE) {
            const auto column = std::lower_bound(wide_columns_.begin(), wide_columns_.end(), a.column[at + u]);
            wide_.push_back({(int)(column - wide_columns_.begin()), set_at[s], missing, unseen});
            m.plane = (int)used_.size() + tree.n_wide++, m.low = 1, m.length = 1;
            return m;
          }
          auto& right = mask_sets_.emplace_back();
          right.fill(~0ull);
          auto to_left = [&](int code) { right[code / 64] &= ~(1ull << (code % 64)); };
          for (int64_t i = a.set_offset[s]; i < a.set_offset[s + 1]; i++) to_left(a.set_code[i]);
          if (missing) to_left(top + 1);
          if (unseen) to_left(top + 2);
          m.set = right.data();
          return m;
        }
        const PaddedCuts& cuts = cuts_[p];
        const double x = a.threshold[at + u];
        const int bin =
            x == INF ? cuts.n : (int)(std::lower_bound(cuts.d.begin(), cuts.d.begin() + cuts.n, x) - cuts.d.begin());
        const int low = bin + 1, end = cuts.n + 1 + (a.missing_left[at + u] ? 0 : 1);
        m.low = (uint8_t)low, m.length = (uint8_t)(end - low);
        return m;
      };
      int n_leaves = 0;
      leaf_value_.resize(leaf_value_.size() + 256, 0.0);
      if (n_terms > 0) leaf_node_.resize(leaf_value_.size(), at);
      for (int u = 0; u < n; u++) {
        if (a.left[at + u] == 0) leaf_value_[tree.first_value + n_leaves] = a.value[at + u];
        if (a.left[at + u] == 0 && n_terms > 0) leaf_node_[tree.first_value + n_leaves] = at + u;
        if (tree.symmetric_depth < 0) {
          masks_.push_back(mask(u));
          if (a.left[at + u] == 0) masks_.back().leaf = (uint16_t)n_leaves;
        }
        n_leaves += a.left[at + u] == 0;
      }
      for (int d = 0; d < tree.symmetric_depth; d++) masks_.push_back(mask((1 << d) - 1));
      most_wide_ = std::max(most_wide_, tree.n_wide);
    }
    trees_.push_back(tree);
  }
}

bool Forest::in_set(int64_t set, double x) const {
  if (set >= 0) {
    const uint64_t* bits = &bit_sets_[set];
    return x < (double)bits[0] && (bits[1 + (int64_t)x / 64] >> ((int64_t)x % 64) & 1);
  }
  const int32_t *first = set_code_.data() + set_offset_[~set], *last = set_code_.data() + set_offset_[~set + 1];
  return x < MAX_CODES && std::binary_search(first, last, (int32_t)x);
}

int32_t Forest::follow(const PackedTree& t, const double* row) const {
  const Walk* w = &walk_[t.first_node];
  int32_t u = 0;
  while (w[u].plane != -1) {
    const bool by_set = w[u].plane < 0;
    const double x = row[by_set ? -2 - w[u].plane : w[u].plane];
    const bool missing = by_set ? !(x >= 0.0) : x != x;  // codes below 0, and NaN
    const int side = by_set && x == UNSEEN ? 2 : 1;
    const bool left = missing ? w[u].left & side : by_set ? in_set(w[u].set, x) : x <= w[u].threshold;
    u = (w[u].left >> 2) + !left;
  }
  return u;
}

// The same for INTERLEAVE pairs of a tree without sets and a row, which has a place at -1 that leaves ask for. They go down abreast, so
// that while one waits for its node the others move: 5 times as fast as one after the other, on trees of 500 leaves. A leaf sends
// every row to itself.
template <bool MISSING>
void Forest::follow(const Walk* const* tree, const double* const* row, int32_t* leaf) {
  int32_t u[INTERLEAVE] = {};
  for (int32_t moved = 1; moved != 0;) {
    moved = 0;
#pragma GCC unroll 8
    for (int j = 0; j < INTERLEAVE; j++) {
      const Walk at = tree[j][u[j]];
      const double value = row[j][at.plane];
      bool right = value > at.threshold;
      if (MISSING) right |= (value != value) & !(at.left & 1);
      const int32_t next = (at.left >> 2) + right;
      moved |= next ^ u[j];
      u[j] = next;
    }
  }
  for (int j = 0; j < INTERLEAVE; j++) leaf[j] = u[j];
}

void Forest::load_row(const Chunk& table, int64_t row, double* x) const {
  if (!table.lists) {
    for (size_t p = 0; p < used_.size(); p++) load(table.columns[used_[p]], row, 1, x + p);
    return;
  }
  const RowLists& lists = *table.lists;
  std::fill(x, x + used_.size(), lists.fill_value);
  for (int64_t i = lists.offset[row]; i < lists.offset[row + 1]; i++)
    if (const int p = plane_of_[lists.column[i]]; p >= 0) load(lists.values, i, 1, x + p);
}

// Codes of n rows of lists, one byte plane a used column: most are that of the absent value.
void Forest::encode_lists(const RowLists& lists, int64_t row, int n, uint8_t* codes) const {
  for (size_t p = 0; p < used_.size(); p++) memset(codes + p * BLOCK, code_of(lists.fill_value, cuts_[p]), n);
  for (int i = 0; i < n; i++)
    for (int64_t at = lists.offset[row + i]; at < lists.offset[row + i + 1]; at++) {
      const int p = plane_of_[lists.column[at]];
      if (p < 0) continue;
      double x;
      load(lists.values, at, 1, &x);
      codes[(size_t)p * BLOCK + i] = code_of(x, cuts_[p]);
    }
}

// What a node of a forest with terms gives a row: x by place in used_.
template <class Row>
double Forest::given(int64_t node, Row&& x) const {
  const int64_t first = linear_.offset[node], n = linear_.offset[node + 1] - first;
  if (n == 0) return value_[node];
  return linear_value(&linear_.coef[first], &linear_.column[first], n, value_[node], x);
}

// Row by row: where there are no sets, through INTERLEAVE trees at a time.
void Forest::by_rows(const Chunk& table, int64_t row, int n, int64_t first, int64_t last, const double* start,
                     double* out) const {
  std::vector<double> place(used_.size() + 1, 0.0);
  double* x = place.data() + 1;
  const bool sets = set_offset_.size() > 1;
  const double* same[INTERLEAVE];
  std::fill(same, same + INTERLEAVE, x);
  const int k = n_outputs();
  for (int i = 0; i < n; i++) {
    load_row(table, row + i, x);
    double* s = out + (row + i) * k;
    for (int j = 0; j < k; j++) s[j] = start == nullptr ? base_[j] : start[(row + i) * k + j];
    for (int64_t t = first; t < last; t += INTERLEAVE) {
      const int m = (int)std::min<int64_t>(INTERLEAVE, last - t);
      const Walk* tree[INTERLEAVE];
      int32_t leaf[INTERLEAVE];
      for (int j = 0; j < INTERLEAVE; j++) tree[j] = &walk_[trees_[t + std::min(j, m - 1)].first_node];
      if (!sets) follow<true>(tree, same, leaf);
      for (int j = 0; j < m; j++) {
        const PackedTree& one = trees_[t + j];
        const int64_t u = one.first_node + (sets ? follow(one, x) : leaf[j]);
        const double v = linear_.coef.empty() ? value_[u] : given(u, [=](int32_t p) { return x[p]; });
        s[one.output] = s[one.output] + v;
      }
    }
  }
}

void Forest::by_trees(const Chunk& table, int64_t row, int n, int64_t first, int64_t last, const double* start,
                      double* out) const {
  const int k = n_outputs();
  const size_t stride = used_.size() + 1;
  std::vector<double> x(n * stride, 0.0);  // of each row a place at -1, which leaves ask for, then the columns
  const double* rows = x.data() + 1;
  int32_t leaf[BLOCK_ROWS + INTERLEAVE];
  for (int i = 0; i < n; i++) {
    load_row(table, row + i, x.data() + 1 + i * stride);
    for (int j = 0; j < k; j++) out[(row + i) * k + j] = start == nullptr ? base_[j] : start[(row + i) * k + j];
  }
  bool missing = false;
  for (const double value : x) missing |= value != value;
  for (int64_t t = first; t < last; t++) {
    const PackedTree& tree = trees_[t];
    const Walk* same[INTERLEAVE];
    std::fill(same, same + INTERLEAVE, &walk_[tree.first_node]);
    for (int i = 0; i < n; i += INTERLEAVE) {
      const double* row_of[INTERLEAVE];
      for (int j = 0; j < INTERLEAVE; j++) row_of[j] = rows + stride * (size_t)std::min(i + j, n - 1);
      if (missing) follow<true>(same, row_of, leaf + i);
      else follow<false>(same, row_of, leaf + i);
    }
    for (int i = 0; i < n; i++) {
      const int64_t u = tree.first_node + leaf[i];
      const double* own = rows + i * stride;
      double* s = out + (row + i) * k + tree.output;
      *s = *s + (linear_.coef.empty() ? value_[u] : given(u, [=](int32_t p) { return own[p]; }));
    }
  }
}

void Forest::by_blocks(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start, double* out,
                       int n_threads) const {
  const int k = n_outputs(), n_planes = (int)used_.size();
  struct alignas(64) Local {
    std::vector<uint8_t> codes;   // (n_planes + most_wide_, BLOCK)
    std::vector<int32_t> wide;    // (wide_columns_, BLOCK)
    std::vector<uint64_t> right;  // a bit a code
    std::vector<const uint8_t*> planes;
    std::vector<uint64_t> reach;
    std::vector<double> score, rows;
  };
  std::vector<Local> local(n_threads);
  std::vector<uint8_t> wanted(table.columns.size(), 0);
  for (size_t p = 0; p < used_.size() && !table.lists; p++) wanted[used_[p]] = 1;
  const std::vector<int> near = row_major_runs(table, wanted);
  run(n_threads, (table.n_rows + BLOCK - 1) / BLOCK, [&](int64_t b, int worker) {
    Local& mine = local[worker];
    if (mine.planes.empty()) {
      mine.codes.assign((size_t)(n_planes + most_wide_) * BLOCK + 64, 0);
      mine.wide.assign(wide_columns_.size() * BLOCK, 0);
      mine.right.assign(most_wide_ > 0 ? (MAX_CODES + 2) / 64 + 1 : 0, ~0ull);
      for (int p = 0; p < n_planes + most_wide_; p++) mine.planes.push_back(mine.codes.data() + (size_t)p * BLOCK);
      mine.planes.push_back(nullptr);
      mine.reach.resize((size_t)most_nodes_ * (BLOCK / 64));
      mine.score.resize((size_t)k * BLOCK);
      if (!linear_.coef.empty()) mine.rows.resize((size_t)n_planes * BLOCK);
    }
    const int64_t at = b * BLOCK;
    const int n = (int)std::min<int64_t>(BLOCK, table.n_rows - at);
    for (int j = 0; j < k; j++)
      for (int i = 0; i < n; i++) mine.score[j * BLOCK + i] = start == nullptr ? base_[j] : start[(at + i) * k + j];
    if (table.lists) encode_lists(*table.lists, at, n, mine.codes.data());
    TransposedStripe<STRIPE> turned(table, near);
    for (int first_row = 0; first_row < n && !table.lists; first_row += STRIPE) {
      const int m = std::min(STRIPE, n - first_row);
      const char* line = nullptr;
      turned.go(at + first_row, m);
      for (int p = 0; p < n_planes; p++) {
        const Column& column = table.columns[used_[p]];
        if (column.stride >= WIDE_ROW && (line == nullptr || column.data - line >= 64) &&
            at + first_row + 2 * STRIPE <= table.n_rows) {
          line = column.data;  // the next stripe's rows, whose addresses no hardware foresees
          for (int i = STRIPE; i < 2 * STRIPE; i++)
            __builtin_prefetch(line + (at + first_row + i) * column.stride, 0, 2);
        }
        uint8_t* plane = mine.codes.data() + (size_t)p * BLOCK + first_row;
        if (const int top = top_[used_[p]]; top > TOP_BYTE) continue;
        else if (top >= 0) {
          double x[STRIPE];
          load(column, at + first_row, m, x);
          for (int i = 0; i < m; i++) plane[i] = (uint8_t)code_of(x[i], top);
          continue;
        }
        if (const float* x = turned.of(used_[p])) kernels().bin32_byte(x, m, cuts_[p].f.data(), cuts_[p].n, plane);
        else encode(column, at + first_row, m, cuts_[p], plane);
        if (linear_.coef.empty()) continue;
        double value[STRIPE];
        load(column, at + first_row, m, value);
        for (int i = 0; i < m; i++) mine.rows[(size_t)(first_row + i) * n_planes + p] = value[i];
      }
    }
    for (size_t c = 0; c < wide_columns_.size(); c++) {
      const int top = top_[wide_columns_[c]];
      double x[BLOCK];
      load(table.columns[wide_columns_[c]], at, n, x);
      int32_t* wide = &mine.wide[c * BLOCK];
      for (int i = 0; i < n; i++) wide[i] = code_of(x[i], top);
    }
    for (int64_t t = first; t < last; t++) {
      const PackedTree& tree = trees_[t];
      for (int k = 0; k < tree.n_wide; k++) {
        const WideNode& node = wide_[tree.first_wide + k];
        const int32_t* wide = &mine.wide[(size_t)node.column * BLOCK];
        uint8_t* plane = mine.codes.data() + (size_t)(n_planes + k) * BLOCK;
        auto flip = [&] {  // between a table in which all go right and that of the node
          auto one = [&](int code) { mine.right[code / 64] ^= 1ull << (code % 64); };
          if (node.set >= 0) {
            const uint64_t* bits = &bit_sets_[node.set];
            for (uint64_t w = 0; w < (bits[0] + 63) / 64; w++) mine.right[w] ^= bits[1 + w];
          } else {
            const int32_t* codes = set_code_.data();
            std::for_each(codes + set_offset_[~node.set], codes + set_offset_[~node.set + 1], one);
          }
          const int top = top_[wide_columns_[node.column]];
          if (node.missing_left) one(top + 1);
          if (node.unseen_left) one(top + 2);
        };
        flip();
        for (int i = 0; i < BLOCK; i++) plane[i] = (uint8_t)(mine.right[wide[i] >> 6] >> (wide[i] & 63) & 1);
        flip();
      }
      double* score = &mine.score[tree.output * BLOCK];
      uint8_t leaf[BLOCK];
      if (tree.symmetric_depth >= 0)
        kernels().find_leaves_symmetric(mine.planes.data(), &masks_[tree.first_mask], tree.symmetric_depth, leaf);
      else
        kernels().find_leaves(mine.planes.data(), 0, &masks_[tree.first_mask], tree.n_nodes, tree.n_bits,
                              mine.reach.data(), leaf);
      if (linear_.coef.empty()) kernels().add_block_values(leaf, &leaf_value_[tree.first_value], tree.n_bits, score);
      for (int i = 0; i < n && !linear_.coef.empty(); i++) {
        const double* x = &mine.rows[(size_t)i * n_planes];
        score[i] = score[i] + given(leaf_node_[tree.first_value + leaf[i]], [=](int32_t p) { return x[p]; });
      }
    }
    double* to = out + at * k;
    for (int j = 0; j < k; j++)
      for (int i = 0; i < n; i++) to[i * k + j] = mine.score[j * BLOCK + i];
    if (!raw && link_ != Link::identity) kernels().apply_link((int)link_, to, to, n, k);
  });
}

void Forest::predict(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start, double* out,
                     int n_threads) const {
  bool masked = maskable_ && table.n_rows >= FEW_ROWS &&
                !(table.lists && (set_offset_.size() > 1 || !linear_.coef.empty()));  // lists give codes of cuts only
  for (int64_t t = first; masked && t < last; t++) masked = trees_[t].masked;
  if (masked) return by_blocks(table, first, last, raw, start, out, n_threads);
  run(table.n_rows <= BLOCK_ROWS ? 1 : n_threads, (table.n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS, [&](int64_t b, int) {
    const int64_t at = b * BLOCK_ROWS;
    const int n = (int)std::min<int64_t>(BLOCK_ROWS, table.n_rows - at);
    if (set_offset_.size() == 1 && n >= INTERLEAVE) by_trees(table, at, n, first, last, start, out);
    else by_rows(table, at, n, first, last, start, out);
    if (!raw && link_ != Link::identity)
      kernels().apply_link((int)link_, out + at * n_outputs(), out + at * n_outputs(), n, n_outputs());
  });
}

void Forest::leaves(const Chunk& table, int64_t first, int64_t last, int32_t* out, int n_threads) const {
  run(n_threads, (table.n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS, [&](int64_t b, int) {
    std::vector<double> x(used_.size());
    for (int64_t i = b * BLOCK_ROWS; i < std::min(table.n_rows, (b + 1) * BLOCK_ROWS); i++) {
      load_row(table, i, x.data());
      for (int64_t t = first; t < last; t++) out[i * (last - first) + (t - first)] = follow(trees_[t], x.data());
    }
  });
}

}  // namespace sapwood
