#include "cpu/predict/forest.h"

#include <string.h>

#include "cpu/data/transpose.h"
#include "host/pool.h"
#include "math/linear.h"

namespace sapwood {
namespace {

// rows binned together: a wide row-major table's stay in L2 from column to column
constexpr int STRIPE = 64;
// bytes from row to row beyond which the next stripe is prefetched
constexpr int64_t WIDE_ROW = 512;
constexpr int64_t MAX_TOGETHER = 4;            // blocks that go through the trees together
constexpr size_t LARGE_TABLES = 1 << 16;       // slopes from which on they do
constexpr size_t TOGETHER_BYTES = 768 << 10;   // what they read, at most: it must stay in L2
constexpr size_t MAX_SHARED_SPLITS = 1 << 13;  // answers of so many for a block fit L2
constexpr int BLOCK_ROWS = 128;                // rows of a task that descends trees
// rows that descend a tree together; 16 are no faster
constexpr int INTERLEAVE = 8;
// with fewer rows descending is faster than filling a block of 512
constexpr int MIN_BLOCK_ROWS = 48;

// Leaves of INTERLEAVE pairs of a tree without sets and a row, whose element -1 exists since leaves
// read it. The pairs descend side by side: while one waits for its node the others move, which is 5
// times as fast on trees of 500 leaves.
template <bool MISSING>
void descend_interleaved(const RowNode* const* tree, const double* const* row, int32_t* leaf) {
  int32_t u[INTERLEAVE] = {};
  for (int32_t moved = 1; moved != 0;) {
    moved = 0;
#pragma GCC unroll 8
    for (int j = 0; j < INTERLEAVE; j++) {
      const RowNode at = tree[j][u[j]];
      const bool right =
          goes_right(row[j][at.plane], at.threshold, MISSING ? at.missing_left() : true);
      const int32_t next = at.child() + right;
      moved |= next ^ u[j];
      u[j] = next;
    }
  }
  for (int j = 0; j < INTERLEAVE; j++) {
    leaf[j] = u[j];
  }
}

}  // namespace

int32_t Forest::descend(const PackedTree& t, const double* row) const {
  const RowNode* nodes = &f_.nodes[t.first_node];
  int32_t u = 0;
  while (nodes[u].plane != -1) {
    const RowNode& at = nodes[u];
    const bool right = at.plane >= 0 ? goes_right(row[at.plane], at.threshold, at.missing_left())
                                     : category_goes_right(row[-2 - at.plane], at.missing_left(),
                                                           at.unseen_left(), [&](double x) {
                                                             return f_.sets.has(at.set, x);
                                                           });
    u = at.child() + right;
  }
  return u;
}

// x (used) OUT
void Forest::load_row(const Chunk& table, int64_t row, double* x) const {
  if (!table.lists) {
    for (size_t p = 0; p < f_.used.size(); p++) {
      load(table.columns[f_.used[p]], row, 1, x + p);
    }
    return;
  }
  const RowLists& lists = *table.lists;
  std::fill(x, x + f_.used.size(), lists.fill_value);
  for (int64_t i = lists.offset[row]; i < lists.offset[row + 1]; i++) {
    if (const int p = f_.plane_of[lists.column[i]]; p >= 0) {
      load(lists.values, i, 1, x + p);
    }
  }
}

// z (used) OUT: values as they enter lines
void Forest::bound_row(const double* x, double* z) const {
  for (size_t p = 0; p < f_.used.size(); p++) {
    z[p] = f_.bounds.empty() ? x[p] : bounded(f_.bounds.data(), (int)p, x[p]);
  }
}

// The value of a leaf in a forest with linear leaves; x (used) IN: values as they enter lines,
// `stride` apart.
double Forest::leaf_output(int64_t node, const double* x, int64_t stride) const {
  const LinearPart& l = f_.linear;
  const int64_t first = l.offset[node];
  const int64_t n = l.offset[node + 1] - first;
  if (n == 0) {
    return f_.value[node];
  }
  return linear_value(&l.coef[first], &l.column[first], n, f_.value[node], [=](int32_t p) {
    return x[p * stride];
  });
}

void Forest::begin_scores(int64_t row, int n, const double* start, double* out) const {
  const int k = n_outputs();
  for (int64_t i = row; i < row + n; i++) {
    for (int j = 0; j < k; j++) {
      out[i * k + j] = start == nullptr ? base_[j] : start[i * k + j];
    }
  }
}

// leaf (m) OUT: the leaves of one row in trees [first, first + m), m <= INTERLEAVE; x (used) IN,
// and x[-1] exists.
void Forest::descend_trees(const double* x, int64_t first, int m, int32_t* leaf) const {
  const PackedTree* trees = &f_.trees[first];
  if (f_.has_sets()) {
    for (int j = 0; j < m; j++) {
      leaf[j] = descend(trees[j], x);
    }
    return;
  }
  const RowNode* tree[INTERLEAVE];
  const double* same[INTERLEAVE];
  std::fill(same, same + INTERLEAVE, x);
  for (int j = 0; j < INTERLEAVE; j++) {
    tree[j] = &f_.nodes[trees[std::min(j, m - 1)].first_node];
  }
  descend_interleaved<true>(tree, same, leaf);
}

// Row by row. out (n, n_outputs) IN OUT
void Forest::by_rows(const Chunk& table, int64_t row, int n, int64_t first, int64_t last,
                     double* out) const {
  std::vector<double> values(f_.used.size() + 1, 0.0);
  double* x = values.data() + 1;
  const bool linear = f_.has_linear();
  std::vector<double> z(linear ? f_.used.size() : 0);
  int32_t leaf[INTERLEAVE];
  for (int i = 0; i < n; i++) {
    load_row(table, row + i, x);
    if (linear) {
      bound_row(x, z.data());
    }
    double* s = out + (row + i) * n_outputs();
    for (int64_t t = first; t < last; t += INTERLEAVE) {
      const int m = (int)std::min<int64_t>(INTERLEAVE, last - t);
      descend_trees(x, t, m, leaf);
      for (int j = 0; j < m; j++) {
        const PackedTree& one = f_.trees[t + j];
        const int64_t u = one.first_node + leaf[j];
        s[one.output] = s[one.output] + (linear ? leaf_output(u, z.data()) : f_.value[u]);
      }
    }
  }
}

// Tree by tree, INTERLEAVE rows at a time; n <= BLOCK_ROWS, no sets. out (n, n_outputs) IN OUT
void Forest::by_trees(const Chunk& table, int64_t row, int n, int64_t first, int64_t last,
                      double* out) const {
  const int k = n_outputs();
  const bool linear = f_.has_linear();
  const size_t stride = f_.used.size() + 1;
  // for each row one element that leaves read, then the columns
  std::vector<double> x(n * stride, 0.0);
  const double* rows = x.data() + 1;
  int32_t leaf[BLOCK_ROWS + INTERLEAVE];
  for (int i = 0; i < n; i++) {
    load_row(table, row + i, x.data() + 1 + i * stride);
  }
  bool missing = false;
  for (const double value : x) {
    missing |= value != value;
  }
  std::vector<double> z(linear ? x.size() : 0);
  for (int i = 0; i < n && linear; i++) {
    bound_row(rows + i * stride, z.data() + i * stride);
  }
  for (int64_t t = first; t < last; t++) {
    const PackedTree& tree = f_.trees[t];
    const RowNode* same[INTERLEAVE];
    std::fill(same, same + INTERLEAVE, &f_.nodes[tree.first_node]);
    for (int i = 0; i < n; i += INTERLEAVE) {
      const double* row_of[INTERLEAVE];
      for (int j = 0; j < INTERLEAVE; j++) {
        row_of[j] = rows + stride * (size_t)std::min(i + j, n - 1);
      }
      if (missing) {
        descend_interleaved<true>(same, row_of, leaf + i);
      } else {
        descend_interleaved<false>(same, row_of, leaf + i);
      }
    }
    for (int i = 0; i < n; i++) {
      const int64_t u = tree.first_node + leaf[i];
      double* s = out + (row + i) * k + tree.output;
      *s = *s + (linear ? leaf_output(u, z.data() + i * stride) : f_.value[u]);
    }
  }
}

static int group_width(int n_outputs) {
  return (n_outputs + GROUP_LANES - 1) / GROUP_LANES * GROUP_LANES;
}

struct alignas(64) Forest::Block {
  LineVector<uint8_t> codes;           // (n_planes + max_wide, BLOCK)
  std::vector<const uint8_t*> planes;  // (n_planes + max_wide + 1) into codes; the last is null
  std::vector<int32_t> wide;           // (wide_columns, BLOCK) 16-bit codes
  std::vector<uint64_t> right;         // one bit a 16-bit code: goes right
  // (splits, BLOCK / 64) of shared splits: goes right; or empty
  LineVector<uint64_t> answers;
  LineVector<uint64_t> reach;      // (max_nodes + 3, BLOCK / 64)
  LineVector<double> score;        // (n_outputs, BLOCK); while in_rows, (BLOCK, width)
  LineVector<double> other_score;  // room to turn it
  bool in_rows = false;
  // (n_planes, BLOCK) values as they enter lines, if there are linear leaves
  LineVector<double> z;
  alignas(64) uint8_t leaf[BLOCK];  // of the last tree

  void allocate(const PackedForest& f, int n_outputs) {
    const size_t n_planes = f.used.size();
    const size_t n = n_planes + f.max_wide;
    codes.assign(n * BLOCK + 64, 0);
    for (size_t p = 0; p < n; p++) {
      planes.push_back(codes.data() + p * BLOCK);
    }
    planes.push_back(nullptr);
    wide.assign(f.wide_columns.size() * BLOCK, 0);
    right.assign(f.max_wide > 0 ? (MAX_CODES + 2) / 64 + 1 : 0, ~0ull);
    reach.resize((size_t)(f.max_nodes + 3) * (BLOCK / 64));
    score.resize((size_t)group_width(n_outputs) * BLOCK);
    other_score.resize(f.groups.empty() ? 0 : score.size());
    if (f.has_linear()) {
      z.resize(n_planes * BLOCK);
    }
  }

  void turn_scores(int n_outputs, bool to_rows) {
    if (to_rows == in_rows) {
      return;
    }
    const int width = group_width(n_outputs);
    for (int j = 0; j < n_outputs; j++) {
      for (int i = 0; i < BLOCK; i++) {
        const size_t plane = (size_t)j * BLOCK + i;
        const size_t row = (size_t)i * width + j;
        other_score[to_rows ? row : plane] = score[to_rows ? plane : row];
      }
    }
    score.swap(other_score);
    in_rows = to_rows;
  }
};

// Codes of n rows of lists: first the code of the fill value for all, then those of the stored
// values.
void Forest::encode_lists(const RowLists& lists, int64_t row, int n, uint8_t* codes) const {
  auto code = [&](double x, int p) {
    return (uint8_t)(x != x ? f_.cuts[p].n + 1 : bin_of(f_.cuts[p], x));
  };
  for (size_t p = 0; p < f_.used.size(); p++) {
    memset(codes + p * BLOCK, code(lists.fill_value, (int)p), n);
  }
  for (int i = 0; i < n; i++) {
    for (int64_t at = lists.offset[row + i]; at < lists.offset[row + i + 1]; at++) {
      const int p = f_.plane_of[lists.column[at]];
      if (p < 0) {
        continue;
      }
      double x;
      load(lists.values, at, 1, &x);
      codes[(size_t)p * BLOCK + i] = code(x, p);
    }
  }
}

// Byte codes of m rows of one column, from `row` on; `floats` (m): its values, if they have been
// transposed, or null.
void Forest::encode_stripe(const Chunk& table, int plane, int64_t row, int m, const float* floats,
                           int first, Block& block) const {
  const Column& column = table.columns[f_.used[plane]];
  const PaddedCuts& cuts = f_.cuts[plane];
  const int limit = f_.code_limit[f_.used[plane]];
  uint8_t* codes = block.codes.data() + (size_t)plane * BLOCK + first;
  double x[STRIPE];
  if (limit >= 0) {
    load(column, row, m, x);
    for (int i = 0; i < m; i++) {
      codes[i] = (uint8_t)code_of(x[i], limit);
    }
    return;
  }
  if (floats != nullptr) {
    kernels().bin32_byte(floats, m, cuts.f.data(), cuts.n, codes);
  } else {
    encode(column, row, m, cuts, codes);
  }
  if (!f_.has_linear() || !f_.in_lines[plane]) {
    return;
  }
  double* z = &block.z[(size_t)plane * BLOCK + first];
  load(column, row, m, z);
  for (int i = 0; i < m && !f_.bounds.empty(); i++) {
    z[i] = bounded(f_.bounds.data(), plane, z[i]);
  }
}

// Codes of rows [at, at + n): bytes in block.codes, 16 bits in block.wide.
void Forest::encode_block(const Chunk& table, const std::vector<int>& runs, int64_t at, int n,
                          Block& block) const {
  if (table.lists) {
    return encode_lists(*table.lists, at, n, block.codes.data());
  }
  TransposedStripe<STRIPE> transposed(table, runs);
  for (int first = 0; first < n; first += STRIPE) {
    const int64_t row = at + first;
    const int m = std::min(STRIPE, n - first);
    const char* line = nullptr;
    transposed.go(row, m);
    for (int p = 0; p < (int)f_.used.size(); p++) {
      const Column& column = table.columns[f_.used[p]];
      if (column.stride >= WIDE_ROW && (line == nullptr || column.data - line >= 64) &&
          row + 2 * STRIPE <= table.n_rows) {
        // the next stripe's rows: hardware does not foresee addresses so far apart
        line = column.data;
        for (int i = STRIPE; i < 2 * STRIPE; i++) {
          __builtin_prefetch(line + (row + i) * column.stride, 0, 2);
        }
      }
      const int limit = f_.code_limit[f_.used[p]];
      if (limit <= MAX_BYTE_LIMIT) {
        encode_stripe(table, p, row, m, limit < 0 ? transposed.of(f_.used[p]) : nullptr, first,
                      block);
      }
    }
  }
  for (size_t c = 0; c < f_.wide_columns.size(); c++) {
    double x[BLOCK];
    load(table.columns[f_.wide_columns[c]], at, n, x);
    for (int i = 0; i < n; i++) {
      block.wide[c * BLOCK + i] = code_of(x[i], f_.code_limit[f_.wide_columns[c]]);
    }
  }
}

// One plane for each split of a tree by 16-bit codes: 1 where a row goes right.
void Forest::wide_planes(const PackedTree& tree, Block& block) const {
  for (int k = 0; k < tree.n_wide; k++) {
    const WideNode& node = f_.wide[tree.first_wide + k];
    const int limit = f_.code_limit[f_.wide_columns[node.column]];
    auto flip = [&] {  // turns a table in which every code goes right into the node's, and back
      auto one = [&](int code) {
        block.right[code / 64] ^= 1ull << (code % 64);
      };
      if (node.set >= 0) {
        const uint64_t* bits = &f_.sets.bits[node.set];
        for (uint64_t w = 0; w < (bits[0] + 63) / 64; w++) {
          block.right[w] ^= bits[1 + w];
        }
      } else {
        const int32_t* codes = f_.sets.code.data();
        std::for_each(codes + f_.sets.offset[~node.set], codes + f_.sets.offset[~node.set + 1],
                      one);
      }
      if (node.missing_left) {
        one(limit + 1);
      }
      if (node.unseen_left) {
        one(limit + 2);
      }
    };
    const int32_t* wide = &block.wide[(size_t)node.column * BLOCK];
    uint8_t* plane = block.codes.data() + (f_.used.size() + k) * BLOCK;
    flip();
    for (int i = 0; i < BLOCK; i++) {
      plane[i] = (uint8_t)(block.right[wide[i] >> 6] >> (wide[i] & 63) & 1);
    }
    flip();
  }
}

// block.leaf: those of a tree
void Forest::find_block_leaves(const PackedTree& tree, Block& block) const {
  if (tree.n_wide > 0) {
    wide_planes(tree, block);
  }
  const MaskNode* masks = &f_.masks[tree.first_mask];
  const uint8_t* const* planes = block.planes.data();
  uint64_t* reach = block.reach.data();
  if (tree.symmetric_depth >= 0) {
    kernels().find_leaves_symmetric(planes, masks, tree.symmetric_depth, block.leaf);
  } else if (tree.is_shared && !block.answers.empty()) {
    kernels().find_leaves_shared({block.answers.data(), f_.shared.data() + tree.first_shared,
                                  (tree.n_nodes + 1) / 2, tree.n_bits, reach},
                                 block.leaf);
  } else {
    kernels().find_leaves(planes, 0, masks, tree.n_nodes, tree.n_bits, reach, block.leaf);
  }
}

// known: block.leaf has the tree's leaves already
void Forest::add_tree(const PackedTree& tree, int n, bool known, Block& block) const {
  if (!known) {
    find_block_leaves(tree, block);
  }
  block.turn_scores(n_outputs(), false);
  const uint8_t* leaf = block.leaf;
  double* score = &block.score[tree.output * BLOCK];
  const double* value = &f_.leaf_value[tree.first_value];
  if (!f_.has_linear() || tree.n_lines == 0) {
    return kernels().add_block_values(leaf, value, tree.n_bits, score);
  }
  if (tree.n_lines > 0) {
    const double* z[MAX_TABLES];
    for (int c = 0; c < tree.n_lines; c++) {
      z[c] = &block.z[(size_t)f_.line_planes[tree.first_line + c] * BLOCK];
    }
    return kernels().add_block_lines({(n + 15) / 16 * 16, leaf, tree.n_bits, tree.n_lines, value,
                                      &f_.slopes[tree.first_slope], z},
                                     score);
  }
  for (int i = 0; i < n; i++) {
    score[i] = score[i] + leaf_output(f_.leaf_node[tree.first_value + leaf[i]], &block.z[i], BLOCK);
  }
}

// The trees of a group; `tree`: its first; fetch: also fetch the table of the group after it, which
// lies behind its own
void Forest::add_group(const PackedTree& tree, int n, bool known, bool fetch, Block& block) const {
  if (!known) {
    find_block_leaves(tree, block);
  }
  block.turn_scores(n_outputs(), true);
  const double* z[MAX_TABLES];
  for (int c = 0; c < tree.n_group_lines; c++) {
    z[c] = &block.z[(size_t)f_.line_planes[tree.first_line + c] * BLOCK];
  }
  const int width = group_width(n_outputs());
  const int n_leaves = (tree.n_nodes + 1) / 2;
  const int64_t size = (int64_t)width * n_leaves * (1 + tree.n_group_lines);
  const int64_t next = tree.first_slope + size;
  const int64_t n_next = fetch ? std::min(size, (int64_t)f_.groups.size() - next) * 8 : 0;
  const double* tables = f_.groups.data();
  kernels().add_group_lines({block.leaf, (n + 3) / 4 * 4, n_leaves, tree.n_group_lines, width,
                             tables + tree.first_slope, z, (const char*)(tables + next), n_next},
                            block.score.data());
}

// Whether blocks answer the different splits of trees [first, last) once, before the trees. An
// answer that is kept takes half the time of one given within a tree.
bool Forest::shares_splits(int64_t first, int64_t last) const {
  auto at = [&](int64_t t) {
    return t < n_trees() ? f_.trees[t].first_shared : (int64_t)f_.shared.size();
  };
  return f_.splits.size() <= MAX_SHARED_SPLITS && at(last) - at(first) >= (int64_t)f_.splits.size();
}

// How many blocks go through the trees together. Tables of slopes are larger than caches: several
// blocks use those of
// a tree before the next tree's are read.
int64_t Forest::blocks_together(int64_t n_blocks, bool shares, int n_threads) const {
  if (f_.slopes.size() + f_.groups.size() < LARGE_TABLES) {
    return 1;
  }
  const size_t bytes = f_.used.size() * BLOCK * 9 + (shares ? f_.splits.size() * (BLOCK / 8) : 0);
  const int64_t most = std::clamp<int64_t>((int64_t)(TOGETHER_BYTES / bytes), 1, MAX_TOGETHER);
  return std::clamp<int64_t>(n_threads == 1 ? n_blocks : n_blocks / (4 * n_threads), 1, most);
}

void Forest::by_blocks(const Chunk& table, int64_t first, int64_t last, bool raw,
                       const double* start, double* out, int n_threads) const {
  const int k = n_outputs();
  const int64_t n_blocks = (table.n_rows + BLOCK - 1) / BLOCK;
  const bool shares = shares_splits(first, last);
  const int64_t together = blocks_together(n_blocks, shares, n_threads);
  std::vector<Block> blocks(n_threads * together);
  std::vector<uint8_t> wanted(table.columns.size(), 0);
  for (size_t p = 0; p < f_.used.size() && !table.lists; p++) {
    wanted[f_.used[p]] = 1;
  }
  const std::vector<int> runs = row_major_runs(table, wanted);
  run(n_threads, (n_blocks + together - 1) / together, [&](int64_t task, int worker) {
    Block* own = &blocks[worker * together];
    const int64_t begin = task * together;
    const int64_t end = std::min(n_blocks, begin + together);
    auto rows = [&](int64_t b) {
      return (int)std::min<int64_t>(BLOCK, table.n_rows - b * BLOCK);
    };
    for (int64_t b = begin; b < end; b++) {
      Block& block = own[b - begin];
      if (block.planes.empty()) {
        block.allocate(f_, k);
      }
      for (int j = 0; j < k; j++) {
        for (int i = 0; i < rows(b); i++) {
          block.score[j * BLOCK + i] = start == nullptr ? base_[j] : start[(b * BLOCK + i) * k + j];
        }
      }
      encode_block(table, runs, b * BLOCK, rows(b), block);
      if (!shares) {
        continue;
      }
      block.answers.resize(f_.splits.size() * (BLOCK / 64));
      kernels().answer_splits(block.planes.data(), f_.splits.data(), (int)f_.splits.size(),
                              block.answers.data());
    }
    for (int64_t t = first, step; t < last; t += step) {
      const PackedTree& tree = f_.trees[t];
      const bool known = t > first && tree.same_leaves;
      const bool group = tree.n_group > 0 && t + tree.n_group <= last;
      step = group ? tree.n_group : 1;
      for (int64_t b = begin; b < end; b++) {
        if (group) {
          add_group(tree, rows(b), known, b == begin, own[b - begin]);
        } else {
          add_tree(tree, rows(b), known, own[b - begin]);
        }
      }
    }
    for (int64_t b = begin; b < end; b++) {
      own[b - begin].turn_scores(k, false);
      double* to = out + b * BLOCK * k;
      for (int j = 0; j < k; j++) {
        for (int i = 0; i < rows(b); i++) {
          to[i * k + j] = own[b - begin].score[j * BLOCK + i];
        }
      }
      if (!raw && link_ != Link::identity) {
        kernels().apply_link((int)link_, to, to, rows(b), k);
      }
    }
  });
}

void Forest::predict(const Chunk& table, int64_t first, int64_t last, bool raw, const double* start,
                     double* out, int n_threads) const {
  // encode_lists knows thresholds only
  bool masked =
      table.n_rows >= MIN_BLOCK_ROWS && !(table.lists && (f_.has_sets() || f_.has_linear()));
  for (int64_t t = first; masked && t < last; t++) {
    masked = f_.trees[t].masked;
  }
  if (masked) {
    return by_blocks(table, first, last, raw, start, out, n_threads);
  }
  run(table.n_rows <= BLOCK_ROWS ? 1 : n_threads, (table.n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS,
      [&](int64_t b, int) {
        const int64_t at = b * BLOCK_ROWS;
        const int n = (int)std::min<int64_t>(BLOCK_ROWS, table.n_rows - at);
        const int k = n_outputs();
        begin_scores(at, n, start, out);
        if (!f_.has_sets() && n >= INTERLEAVE) {
          by_trees(table, at, n, first, last, out);
        } else {
          by_rows(table, at, n, first, last, out);
        }
        if (!raw && link_ != Link::identity) {
          kernels().apply_link((int)link_, out + at * k, out + at * k, n, k);
        }
      });
}

void Forest::leaves(const Chunk& table, int64_t first, int64_t last, int32_t* out,
                    int n_threads) const {
  run(n_threads, (table.n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS, [&](int64_t b, int) {
    std::vector<double> x(f_.used.size() + 1, 0.0);
    int32_t leaf[INTERLEAVE];
    for (int64_t i = b * BLOCK_ROWS; i < std::min(table.n_rows, (b + 1) * BLOCK_ROWS); i++) {
      load_row(table, i, x.data() + 1);
      for (int64_t t = first; t < last; t += INTERLEAVE) {
        const int m = (int)std::min<int64_t>(INTERLEAVE, last - t);
        descend_trees(x.data() + 1, t, m, leaf);
        std::copy(leaf, leaf + m, out + i * (last - first) + (t - first));
      }
    }
  });
}

}  // namespace sapwood
