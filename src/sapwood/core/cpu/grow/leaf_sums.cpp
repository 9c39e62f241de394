#include "cpu/grow/leaf_sums.h"

#include <string.h>

#include <algorithm>

#include "cpu/rows/apply.h"
#include "host/pool.h"

namespace sapwood {
namespace {

// The mask kernel finds the leaves of 512 rows at a time, and the sums of the sampled ones follow in order. With few
// leaves that is faster than a walk through the row lists.
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
    const std::vector<int32_t>* rows = in.sampled_rows == nullptr ? nullptr : &(*in.sampled_rows)[shard];
    run(threads_for(s.n_rows, in.n_threads), task_count(s.n_rows), [&](int64_t task, int worker) {
      Local& mine = local[worker];
      if (mine.reach.empty()) {
        mine.reach.resize(m.nodes.size() * (BLOCK / 64));
        memset(mine.sums, 0, sizeof mine.sums);
      }
      const int64_t first = task * TASK_ROWS, end = std::min(s.n_rows, first + TASK_ROWS);
      uint8_t ids[TASK_ROWS];
      for (int64_t at = first; at < end; at += BLOCK)
        kernels().find_leaves(planes.data(), (size_t)at, m.nodes.data(), (int)m.nodes.size(), m.n_bits,
                              mine.reach.data(), ids + (at - first));
      memcpy(leaf + s.first + first, ids, (size_t)(end - first));
      LeafSumArgs a{ids,      nullptr, (int32_t)first, q.leaf_gathered, q.leaf + s.first + first, (int)(end - first),
                    mine.sums};
      if (rows != nullptr) {
        const auto from = std::lower_bound(rows->begin(), rows->end(), (int32_t)first),
                   to = std::lower_bound(from, rows->end(), (int32_t)end);
        a.rows = rows->data() + (from - rows->begin()), a.n = (int)(to - from);
        if (a.gathered) a.q = q.leaf + s.first + (from - rows->begin());
      }
      kernels().sum_by_leaf(a);
    });
  }
  for (const Local& l : local)
    for (size_t k = 0; k < m.leaves.size() && !l.reach.empty(); k++) {
      const int32_t u = m.leaves[k];
      for (const int64_t* x : {l.sums[k], l.sums[MASK_LEAVES + k]})
        totals.sums[u] = totals.sums[u] + Sums{x[0], x[1]}, totals.counts[u] += x[2];
    }
}

struct Piece {  // some rows of a leaf
  size_t leaf;
  Segment s;
  Sums sum;
  int64_t count = 0;
};

template <class Id>
void write_ids(Id* out, const Piece& p, const int32_t* rows) {
  for (int64_t i = 0; i < p.s.end - p.s.begin; i++) out[rows == nullptr ? p.s.begin + i : rows[i]] = (Id)p.leaf;
}

void sum_piece(const GrowInput& in, const int32_t* rows, Piece& p) {
  const int64_t first = in.binned.shards[p.s.shard].first, n = p.s.end - p.s.begin;
  const Pair* q = in.gradients.leaf + first;
  if (!in.weights.given) {
    for (int64_t i = 0; i < n; i++) {
      const Pair& x = q[rows == nullptr ? p.s.begin + i : rows[i]];
      p.sum.g += x.g, p.sum.h += x.h;
    }
    p.count = n;
    return;
  }
  const int32_t* weight = in.weights.repeats.data() + first;
  for (int64_t i = 0; i < n; i++) {
    const int64_t r = rows == nullptr ? p.s.begin + i : rows[i], w = in.weights.integral ? weight[r] : 1;
    p.sum.g += q[r].g * w, p.sum.h += q[r].h * w;
    p.count += weight[r];
  }
}

// One worker writes the leaf ids while the others sum: two writers of neighbouring bytes would take the cache lines
// from each other (measured: 1.6 to 1.9 times slower).
void sum_by_lists(const GrowInput& in, const NodeRows& rows, const std::vector<Node>& nodes, const NodeIds& leaves,
                  LeafIds leaf, LeafTotals& totals) {
  std::vector<Piece> pieces;
  int64_t n_rows = 0;
  for (size_t k = 0; k < leaves.size(); k++)
    for (const Segment& s : nodes[leaves[k]].segments) {
      n_rows += s.end - s.begin;
      for (int64_t at = s.begin; at < s.end; at += TASK_ROWS)
        pieces.push_back({k, {s.shard, at, std::min(s.end, at + TASK_ROWS)}, {}, 0});
    }
  run(threads_for(n_rows, in.n_threads), (int64_t)pieces.size() + 1, [&](int64_t task, int) {
    if (task > 0) {
      Piece& p = pieces[task - 1];
      return sum_piece(in, rows.rows(nodes[leaves[p.leaf]], p.s), p);
    }
    for (size_t k = 0; k < pieces.size() && leaf.data != nullptr; k++) {
      const Piece& p = pieces[k];
      const int32_t* ids = rows.rows(nodes[leaves[p.leaf]], p.s);
      const int64_t first = in.binned.shards[p.s.shard].first;
      if (leaf.wide) write_ids((uint16_t*)leaf.data + first, p, ids);
      else write_ids((uint8_t*)leaf.data + first, p, ids);
    }
  });
  for (const Piece& p : pieces) {
    const int32_t u = leaves[p.leaf];
    totals.sums[u] = totals.sums[u] + p.sum, totals.counts[u] += p.count;
  }
}

}  // namespace

bool leaves_by_masks(const Binned& binned, const RowWeights& weights, const Limits& limits) {
  const bool few = (limits.max_leaves > 0 && limits.max_leaves <= MASK_LEAVES) ||
                   (limits.max_depth > 0 && limits.max_depth <= 6);  // 2^6 leaves
  return few && !binned.layout.wide && (!weights.given || weights.zero_one);
}

LeafTotals sum_leaves(const GrowInput& in, const NodeRows& rows, const std::vector<Node>& nodes, const NodeIds& leaves,
                      const Tree& tree, LeafIds leaf, bool by_masks) {
  LeafTotals totals{std::vector<Sums>(nodes.size()), std::vector<int64_t>(nodes.size(), 0)};
  if (by_masks) sum_by_masks(in, tree, (uint8_t*)leaf.data, totals);
  else sum_by_lists(in, rows, nodes, leaves, leaf, totals);
  if (in.reduce() == nullptr) return totals;
  std::vector<int64_t> all;
  for (const int32_t u : leaves) all.insert(all.end(), {totals.sums[u].g, totals.sums[u].h, totals.counts[u]});
  reduce_sum(in.reduce(), all.data(), all.size());
  for (size_t k = 0; k < leaves.size(); k++)
    totals.sums[leaves[k]] = {all[3 * k], all[3 * k + 1]}, totals.counts[leaves[k]] = all[3 * k + 2];
  return totals;
}

}  // namespace sapwood
