// LeafState: the leaves of the tree last grown for one output. Enters: the tree, or leaf ids found
// elsewhere.
// Leaves: the leaf of every row, and leaf values that wait until the next row pass adds them to the
// scores.
#pragma once
#include <string.h>

#include <algorithm>
#include <vector>

#include "cpu/rows/apply.h"
#include "host/memory.h"
#include "host/pool.h"
#include "records/linear.h"

namespace sapwood {

inline int leaf_of(const LeafIds& leaf, int64_t row) {
  return leaf.wide ? ((const uint16_t*)leaf.data)[row] : ((const uint8_t*)leaf.data)[row];
}

// id(row) for every row into `out`, in parallel.
template <class Id>
void write_ids(const LeafIds& out, int64_t n, int n_threads, Id&& id) {
  run(threads_for(n, n_threads), task_count(n), [&](int64_t t, int) {
    for (int64_t i = t * TASK_ROWS; i < std::min(n, (t + 1) * TASK_ROWS); i++) {
      if (out.wide) {
        ((uint16_t*)out.data)[i] = (uint16_t)id(i);
      } else {
        ((uint8_t*)out.data)[i] = (uint8_t)id(i);
      }
    }
  });
}

struct LeafState {
  Memory memory;                // what `ids` points to
  LeafIds ids{nullptr, false};  // (n) ids count the leaves in the order of nodes
  std::vector<double> value;    // (n_leaves)
  bool pending = false;         // the values are still to be added to the scores
  bool linear_pending = false;  // ... and their linear terms with them
  // the first of the outputs that have the same leaves, where that is known
  int leaves_of = -1;
  LinearPart linear;                // the terms of linear leaves, or empty
  std::vector<int32_t> large_id;    // (n) node ids, only for trees of more than MAX_LEAF_IDS leaves
  std::vector<double> large_value;  // (n_nodes) their values

  LeafIds buffer(int64_t n, size_t n_leaves) {  // a place for n ids; contents are undefined
    const bool wide = n_leaves > 256;
    const size_t need = (size_t)n * (wide ? 2 : 1);
    if (memory.size() < need) {
      memory = Memory(need);
    }
    return ids = {memory.as<void>(), wide};
  }
  // Rows outside the sample have a leaf too.
  void find_ids(const Binned& binned, const Tree& tree, int n_threads) {
    if (value.size() <= MAX_LEAF_IDS) {
      return apply(binned, view(tree), buffer(binned.n_rows, value.size()), n_threads);
    }
    large_id.resize(binned.n_rows);
    large_value = tree.value;
    apply(binned, view(tree), large_id.data(), n_threads);
  }
  void set_ids(const int32_t* id, int64_t n, size_t n_leaves, int n_threads) {
    write_ids(buffer(n, n_leaves), n, n_threads, [=](int64_t i) {
      return id[i];
    });
    value.assign(n_leaves, 0.0);
    linear = {};
  }
  void copy_ids(const LeafState& from, int64_t n, size_t n_leaves) {
    const LeafIds to = buffer(n, n_leaves);
    memcpy(to.data, from.ids.data, (size_t)n * (to.wide ? 2 : 1));
  }
  void relabel(const std::vector<int32_t>& new_id, std::vector<double> new_value, int64_t n,
               int n_threads) {
    if (!new_id.empty()) {
      write_ids(ids, n, n_threads, [&](int64_t i) {
        return new_id[leaf_of(ids, i)];
      });
    }
    value = std::move(new_value);
  }
  std::vector<int32_t> list_ids(int64_t n) const {
    std::vector<int32_t> out(n);
    for (int64_t i = 0; i < n; i++) {
      out[i] = leaf_of(ids, i);
    }
    return out;
  }
};

}  // namespace sapwood
