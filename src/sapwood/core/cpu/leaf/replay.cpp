#include "cpu/leaf/replay.h"

#include <algorithm>

#include "cpu/rows/leaf_state.h"
#include "cpu/rows/leaf_steps.h"
#include "host/pool.h"

namespace sapwood {
namespace {

struct LeafSum {
  Sums sums;
  int64_t count = 0;
};

std::vector<LeafSum> sum_by_leaf(const ReplayRows& r, size_t n_leaves) {
  const int64_t n = r.binned.n_rows;
  const int n_threads = threads_for(n, r.n_threads);
  std::vector<std::vector<LeafSum>> local(n_threads, std::vector<LeafSum>(n_leaves));
  run(n_threads, task_count(n), [&](int64_t t, int worker) {
    LeafSum* to = local[worker].data();
    for (int64_t i = t * TASK_ROWS; i < std::min(n, (t + 1) * TASK_ROWS); i++) {
      LeafSum& sum = to[leaf_of(r.leaf, i)];
      const int64_t weight = r.weights.given ? r.weights.repeats[i] : 1, times = r.weights.integral ? weight : 1;
      const bool live = weight > 0;
      sum.sums.g += live ? r.gradients[i].g * times : 0, sum.sums.h += live ? r.gradients[i].h * times : 0;
      sum.count += weight;
    }
  });
  std::vector<int64_t> all(3 * n_leaves, 0);
  for (const std::vector<LeafSum>& own : local)
    for (size_t k = 0; k < n_leaves; k++)
      all[3 * k] += own[k].sums.g, all[3 * k + 1] += own[k].sums.h, all[3 * k + 2] += own[k].count;
  reduce_sum(r.binned.reduce.get(), all.data(), all.size());
  std::vector<LeafSum> out(n_leaves);
  for (size_t k = 0; k < n_leaves; k++) out[k] = {{all[3 * k], all[3 * k + 1]}, all[3 * k + 2]};
  return out;
}

}  // namespace

ReplayedTree replay(const ReplayRows& r, const TreeView& tree, const Limits& limits,
                    const SplitConstraints& constraints) {
  const size_t n = (size_t)tree.n_nodes, n_leaves = (size_t)tree.n_leaves();
  const std::vector<LeafSum> by_leaf = sum_by_leaf(r, n_leaves);
  std::vector<LeafSum> total(n);
  ReplayedTree out{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)};
  const double hs = h_scale(r.scale), unit = power_of_two(-r.weights.shift);
  for (size_t i = n, leaf = n_leaves; i-- > 0;) {
    if (const int32_t left = tree.left[i]; left != 0)
      total[i] = {total[left].sums + total[left + 1].sums, total[left].count + total[left + 1].count};
    else total[i] = by_leaf[--leaf];
    out.cover[i] = (double)total[i].sums.h / hs, out.count[i] = (double)total[i].count * unit;
  }
  std::vector<Sums> sums(n);
  for (size_t i = 0; i < n; i++) sums[i] = total[i].sums;
  out.value = node_steps(tree.left, sums, out.count, r.scale, limits, [&](size_t i) {
    const int c = tree.column[i];
    return tree.set[i] >= 0 && r.binned.n_bins[c] > limits.max_cat_to_onehot && !constraints.is_onehot(c);
  });
  for (double& value : out.value) value = limits.learning_rate * value;
  return out;
}

}  // namespace sapwood
