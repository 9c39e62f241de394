#include "cpu/grow/leaf_sums.h"

#include <string.h>

#include <algorithm>

#include "cpu/rows/apply.h"
#include "host/pool.h"

namespace sapwood {
namespace {

// The mask kernel finds the leaves of 512 rows at a time, and the sums of the sampled ones follow
// in order. With few leaves that is faster than a walk through the row lists.
void sum_by_masks(const GrowInput& in, const Tree& t, uint8_t* leaf, LeafTotals& totals) {
  const Binned& b = in.binned;
  const Gradients& q = in.gradients;
  const MaskTree m = mask_tree(b, view(t));
  struct alignas(64) Local {
    int64_t sums[2 * MASK_LEAVES][4];
    std::vector<uint64_t> reach;
  };
  std::vector<Local> local(in.n_threads);
  for (size_t shard = 0; shard < b.shards.size(); shard++) {
    const Shard& s = b.shards[shard];
    const auto planes = byte_planes(b, s);
    const std::vector<int32_t>* rows =
        in.sampled_rows == nullptr ? nullptr : &(*in.sampled_rows)[shard];
    run(threads_for(s.n_rows, in.n_threads), task_count(s.n_rows), [&](int64_t task, int worker) {
      Local& mine = local[worker];
      if (mine.reach.empty()) {
        mine.reach.resize(m.nodes.size() * (BLOCK / 64));
        memset(mine.sums, 0, sizeof mine.sums);
      }
      const int64_t first = task * TASK_ROWS;
      const int64_t end = std::min(s.n_rows, first + TASK_ROWS);
      uint8_t ids[TASK_ROWS];
      for (int64_t at = first; at < end; at += BLOCK) {
        kernels().find_leaves(planes.data(), (size_t)at, m.nodes.data(), (int)m.nodes.size(),
                              m.n_bits, mine.reach.data(), ids + (at - first));
      }
      memcpy(leaf + s.first + first, ids, (size_t)(end - first));
      LeafSumArgs a{ids,
                    nullptr,
                    (int32_t)first,
                    q.leaf_gathered,
                    q.leaf + s.first + first,
                    (int)(end - first),
                    mine.sums};
      if (rows != nullptr) {
        const auto from = std::lower_bound(rows->begin(), rows->end(), (int32_t)first);
        const auto to = std::lower_bound(from, rows->end(), (int32_t)end);
        a.rows = rows->data() + (from - rows->begin());
        a.n = (int)(to - from);
        if (a.gathered) {
          a.q = q.leaf + s.first + (from - rows->begin());
        }
      }
      kernels().sum_by_leaf(a);
    });
  }
  for (const Local& l : local) {
    for (size_t k = 0; k < m.leaves.size() && !l.reach.empty(); k++) {
      const int32_t u = m.leaves[k];
      for (const int64_t* x : {l.sums[k], l.sums[MASK_LEAVES + k]}) {
        totals.sums[u] = totals.sums[u] + Sums{x[0], x[1]};
        totals.counts[u] += x[2];
      }
    }
  }
}

// rows of a range, at most: their gradients and leaf ids stay in L2
constexpr int64_t RANGE_ROWS = 1 << 16;

struct LeafSum {
  Sums sum;
  int64_t count = 0;
};

// Rows first .. first + n - 1, or those in the list.
LeafSum sum_rows(const GrowInput& in, const Shard& shard, const int32_t* rows, int64_t first,
                 int64_t n) {
  LeafSum leaf;
  const Pair* q = in.gradients.leaf + shard.first;
  if (!in.weights.given) {
    for (int64_t i = 0; i < n; i++) {
      const Pair& x = q[rows == nullptr ? first + i : rows[i]];
      leaf.sum.g += x.g;
      leaf.sum.h += x.h;
    }
    leaf.count = n;
    return leaf;
  }
  const int32_t* weight = in.weights.repeats.data() + shard.first;
  for (int64_t i = 0; i < n; i++) {
    const int64_t r = rows == nullptr ? first + i : rows[i];
    const int64_t w = in.weights.integral ? weight[r] : 1;
    leaf.sum.g += q[r].g * w;
    leaf.sum.h += q[r].h * w;
    leaf.count += weight[r];
  }
  return leaf;
}

template <class Id>
void write_ids(Id* out, Id id, const int32_t* rows, int64_t first, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    out[rows == nullptr ? first + i : rows[i]] = id;
  }
}

// begin OUT (n_ranges + 1): the place in a leaf's list from which on its rows are in range 0, 1,
// ...
void find_ranges(const int32_t* rows, const Segment& s, int64_t step, size_t n_ranges,
                 int64_t* begin) {
  int64_t at = s.begin;
  for (size_t k = 0; k <= n_ranges; k++) {
    const int64_t row = (int64_t)k * step;
    if (k == n_ranges) {
      at = s.end;
    } else if (rows == nullptr) {
      at = std::max(s.begin, std::min(s.end, row));
    } else {  // from where the last range began, in steps of growing size: few rows are looked at
      int64_t jump = 1;
      while (at + jump < s.end && rows[at + jump - s.begin] < row) {
        at += jump;
        jump *= 2;
      }
      at = std::lower_bound(rows + (at - s.begin), rows + (std::min(s.end, at + jump) - s.begin),
                            (int32_t)row) -
           rows + s.begin;
    }
    begin[k] = at;
  }
}

// A worker takes a range of rows, and of every leaf's list the part that lies there: two writers of
// neighbouring ids would take the cache lines from each other (measured: 1.6 to 1.9 times slower),
// and one writer for all makes many workers wait.
void sum_by_lists(const GrowInput& in, const NodeRows& rows, const std::vector<Node>& nodes,
                  const NodeIds& leaves, LeafIds leaf, LeafTotals& totals) {
  std::vector<std::vector<LeafSum>> local(in.n_threads);
  std::vector<int64_t> begins;
  for (int shard = 0; shard < (int)in.binned.shards.size(); shard++) {
    const Shard& s = in.binned.shards[shard];
    // leaves, as places in `leaves`, and their rows here
    std::vector<std::pair<size_t, Segment>> own;
    for (size_t k = 0; k < leaves.size(); k++) {
      for (const Segment& segment : nodes[leaves[k]].segments) {
        if (segment.shard == shard) {
          own.push_back({k, segment});
        }
      }
    }
    const int64_t step = std::clamp(s.n_rows / (2 * in.n_threads) + 1, TASK_ROWS, RANGE_ROWS);
    const auto n_ranges = (size_t)((s.n_rows + step - 1) / step);
    const int threads = threads_for(s.n_rows, in.n_threads);
    begins.resize(own.size() * (n_ranges + 1));
    constexpr int64_t LEAVES = 16;  // of a task
    run(threads, ((int64_t)own.size() + LEAVES - 1) / LEAVES, [&](int64_t task, int) {
      for (int64_t k = task * LEAVES;
           k < std::min<int64_t>((task + 1) * LEAVES, (int64_t)own.size()); k++) {
        find_ranges(rows.rows(nodes[leaves[own[k].first]], own[k].second), own[k].second, step,
                    n_ranges, &begins[k * (n_ranges + 1)]);
      }
    });
    run(threads, (int64_t)n_ranges, [&](int64_t range, int worker) {
      local[worker].resize(leaves.size());
      for (size_t k = 0; k < own.size(); k++) {
        const auto& [id, whole] = own[k];
        const int64_t* begin = &begins[k * (n_ranges + 1) + range];
        const int64_t n = begin[1] - begin[0];
        if (n == 0) {
          continue;
        }
        const int32_t* ids = rows.rows(nodes[leaves[id]], {shard, begin[0], begin[1]});
        const LeafSum sum = sum_rows(in, s, ids, begin[0], n);
        LeafSum& mine = local[worker][id];
        mine.sum = mine.sum + sum.sum;
        mine.count += sum.count;
        if (leaf.data == nullptr) {
          continue;
        }
        if (leaf.wide) {
          write_ids((uint16_t*)leaf.data + s.first, (uint16_t)id, ids, begin[0], n);
        } else {
          write_ids((uint8_t*)leaf.data + s.first, (uint8_t)id, ids, begin[0], n);
        }
      }
    });
  }
  for (const std::vector<LeafSum>& l : local) {
    for (size_t k = 0; k < l.size(); k++) {
      totals.sums[leaves[k]] = totals.sums[leaves[k]] + l[k].sum;
      totals.counts[leaves[k]] += l[k].count;
    }
  }
}

}  // namespace

bool leaves_by_masks(const Binned& binned, const RowWeights& weights, const Limits& limits) {
  const bool few = (limits.max_leaves > 0 && limits.max_leaves <= MASK_LEAVES) ||
                   (limits.max_depth > 0 && limits.max_depth <= 6);  // 2^6 leaves
  return few && !binned.layout.wide && (!weights.given || weights.zero_one);
}

LeafTotals sum_leaves(const GrowInput& in, const NodeRows& rows, const std::vector<Node>& nodes,
                      const NodeIds& leaves, const Tree& tree, LeafIds leaf, bool by_masks) {
  LeafTotals totals{std::vector<Sums>(nodes.size()), std::vector<int64_t>(nodes.size(), 0)};
  if (by_masks) {
    sum_by_masks(in, tree, (uint8_t*)leaf.data, totals);
  } else {
    sum_by_lists(in, rows, nodes, leaves, leaf, totals);
  }
  if (in.reduce() == nullptr) {
    return totals;
  }
  std::vector<int64_t> all;
  for (const int32_t u : leaves) {
    all.insert(all.end(), {totals.sums[u].g, totals.sums[u].h, totals.counts[u]});
  }
  reduce_sum(in.reduce(), all.data(), all.size());
  for (size_t k = 0; k < leaves.size(); k++) {
    totals.sums[leaves[k]] = {all[3 * k], all[3 * k + 1]};
    totals.counts[leaves[k]] = all[3 * k + 2];
  }
  return totals;
}

}  // namespace sapwood
