// Prediction on the device: a thread has a row, whose values become codes once; then it walks
// through tree after tree, which the block has in shared memory, and adds the leaf values in the
// order of trees, as the CPU does.
//
//   codes in shared memory   [used column][thread]: whatever columns the lanes of a warp test, they are at different banks
//   trees in shared memory   as many as fit; a tree that does not fit alone is read from global memory
#pragma once
#include "cuda/job.h"
#include "cuda/platform.h"
#include "math/cross.h"
#include "math/linear.h"
#include "math/link.h"
#include "math/split.h"

namespace sapwood {

constexpr uint32_t NO_VALUE = 0xffff;  // the code of a missing value
constexpr int CHUNK_NODES = 2048;      // nodes of the trees that are in shared memory

// The number of cuts below a value.
inline uint32_t rank_of(double x, const double* cuts, int n) {
  if (x != x) {
    return NO_VALUE;
  }
  int low = 0;
  for (int size = n; size > 0;) {
    const int half = size / 2;
    if (cuts[low + half] < x) {
      low += half + 1;
      size -= half + 1;
    } else {
      size = half;
    }
  }
  return (uint32_t)low;
}

inline double table_value(const PredictJob& j, int64_t row, int64_t column) {
  const char* at = j.table + row * j.row_stride + column * j.column_stride;
  return j.is_double ? *(const double*)at : (double)*(const float*)at;
}

// A value of the table, or of a cross of its columns.
inline double value_of(const PredictJob& j, int64_t row, int64_t column) {
  auto given = [&](int64_t c) {
    return table_value(j, row, c);
  };
  if (column < j.n_columns) {
    return given(column);
  }
  const int64_t* c = j.crosses.own + 5 * (column - j.n_columns);
  return (double)by_cross_kind((int)c[0], [&](auto kind) {
    return cross_value<decltype(kind)::value>(given(c[1]), given(c[2]), j.crosses.mean + c[3],
                                              c[4]);
  });
}

// PLAIN: a model of thresholds alone, without crosses and linear leaves, whose codes are in shared
// memory. With what other models need, the compiler would not know where codes are, and predictions
// would take twice the time.
template <bool PLAIN>
inline uint32_t walk_code(const PredictJob& j, int64_t row, int c) {
  const double x = PLAIN ? table_value(j, row, j.used[c]) : value_of(j, row, j.used[c]);
  const int limit = PLAIN ? -1 : j.code_limit[c];
  if (limit >= 0) {
    return (uint32_t)code_of(x, limit);
  }
  return rank_of(x, j.cuts + j.cut_at[c], (int)(j.cut_at[c + 1] - j.cut_at[c]));
}

// Whether a row goes right at a node, whose fields are read at once.
template <bool PLAIN, class Stride>
inline bool goes_right(uint64_t n, const uint32_t* codes, Stride stride, const uint32_t* sets) {
  const uint32_t low = n & 0xffff;
  const uint32_t length = n >> 16 & 0xffff;
  const uint32_t column = n >> 32 & 0xffff;
  if (!PLAIN && (column & BY_SET)) {
    const uint32_t code = codes[(column - BY_SET) * stride];
    return sets[(uint32_t)n + code / 32] >> (code % 32) & 1;
  }
  return codes[column * stride] - low < length;
}

template <bool PLAIN, class Stride>
inline int walk_codes(const WalkNode* nodes, int depth, const uint32_t* codes, Stride stride,
                      const uint32_t* sets) {
  int at = 0;
  for (int d = 0; d < depth; d++) {  // a leaf leads to itself
    const uint64_t n = *(const uint64_t*)(nodes + at);
    at = (int)(n >> 48) + goes_right<PLAIN>(n, codes, stride, sets);
  }
  return at;
}

// What a linear leaf adds; node: among those of all trees.
inline double line_value(const PredictJob& j, int64_t row, int64_t node, double value) {
  const int64_t first = j.lines.at[2 * node];
  const int64_t n = j.lines.at[2 * node + 1];
  if (n == 0) {
    return value;
  }
  return linear_value(j.lines.coef + first, j.lines.column + first, n, value, [&](int32_t c) {
    const double x = value_of(j, row, c);
    return j.lines.bounds == nullptr ? x : bounded(j.lines.bounds, c, x);
  });
}

template <bool PLAIN, class Stride>
inline void predict_rows(const PredictJob& j, int first_tree, int last_tree) {
  DYNAMIC_SHARED(double, values);
  WalkNode* nodes = (WalkNode*)(values + CHUNK_NODES);
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const bool in = row < j.n_rows;
  const bool shared = PLAIN || j.codes == nullptr;
  uint32_t* codes = shared ? (uint32_t*)(nodes + CHUNK_NODES) + threadIdx.x : j.codes + row;
  const Stride stride = shared ? (Stride)blockDim.x : (Stride)j.n_rows;
  for (int c = 0; c < (int)j.n_used && in; c++) {
    codes[c * stride] = walk_code<PLAIN>(j, row, c);
  }
  double score = 0.0;
  int output = -1;
  for (int chunk = 0; chunk < (int)j.n_chunks; chunk++) {
    const int first = j.chunk_at[chunk];
    const int end = j.chunk_at[chunk + 1];
    const int from = j.trees[first].first_node;
    const int n = j.trees[end].first_node - from;
    const bool fits = n <= CHUNK_NODES;
    __syncthreads();
    for (int i = threadIdx.x; i < n && fits; i += blockDim.x) {
      nodes[i] = j.nodes[from + i];
      values[i] = j.values[from + i];
    }
    __syncthreads();
    for (int t = first; t < end && in; t++) {
      const WalkTree tree = j.trees[t];
      if (tree.index < first_tree || tree.index >= last_tree) {
        continue;
      }
      if (tree.output != output) {
        if (output >= 0) {
          j.score[row * j.n_outputs + output] = score;
        }
        output = tree.output;
        score = j.score[row * j.n_outputs + output];
      }
      auto value_in = [&](const WalkNode* all, const double* of_leaf, int at) {
        const int leaf = walk_codes<PLAIN>(all + at, tree.depth, codes, stride, j.sets);
        const double value = of_leaf[at + leaf];
        return PLAIN || j.lines.at == nullptr ? value
                                              : line_value(j, row, tree.first_node + leaf, value);
      };
      const double value = fits ? value_in(nodes, values, tree.first_node - from)
                                : value_in(j.nodes, j.values, tree.first_node);
      score = score + value;
    }
  }
  if (in && output >= 0) {
    j.score[row * j.n_outputs + output] = score;
  }
}

SAPWOOD_BOUNDED(512, 2) void predict(SAPWOOD_ARGUMENTS(PredictJob), int first_tree, int last_tree) {
  predict_rows<false, int64_t>(job, first_tree, last_tree);
}
SAPWOOD_BOUNDED(512, 2)
void predict_plain(SAPWOOD_ARGUMENTS(PredictJob), int first_tree, int last_tree) {
  predict_rows<true, int>(job, first_tree, last_tree);
}

// Raw scores become predictions, in place.
SAPWOOD_KERNEL void apply_link(SAPWOOD_ARGUMENTS(PredictJob), int, int) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  double* scores = job.score + row * job.n_outputs;
  if (row < job.n_rows) {
    link_row((Link)job.link, scores, scores, (int)job.n_outputs);
  }
}

}  // namespace sapwood
