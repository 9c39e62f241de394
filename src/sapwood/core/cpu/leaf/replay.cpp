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

struct Used {  // a row of a task
  int32_t row, leaf;
};

constexpr int64_t OUTPUTS = 8;  // whose sums a task finds

// (n_outputs, n_leaves)
std::vector<LeafSum> sum_by_leaf(const ReplayRows& r, size_t n_leaves) {
  const int64_t n = r.binned.n_rows;
  const int64_t n_tasks = task_count(n);
  const int64_t n_outputs = (int64_t)r.gradients.size();
  const int n_threads = threads_for(n * n_outputs, r.n_threads);
  const size_t size = n_leaves * r.gradients.size();
  const bool repeated = r.weights.integral && !r.weights.zero_one;
  std::vector<std::vector<LeafSum>> local(n_threads);
  const int64_t n_groups = (n_outputs + OUTPUTS - 1) / OUTPUTS;
  run(n_threads, n_tasks * n_groups, [&](int64_t job, int worker) {
    if (local[worker].empty()) {
      local[worker].resize(size);
    }
    const int64_t first = job % n_groups * OUTPUTS;
    const int64_t start = job / n_groups * TASK_ROWS;
    const int64_t m = std::min(n - start, TASK_ROWS);
    std::vector<Used> used;  // the rows in use
    used.reserve((size_t)m);
    LeafSum* to = local[worker].data() + first * n_leaves;
    for (int64_t i = start; i < start + m; i++) {
      const int64_t weight = r.in_sample == nullptr || r.in_sample[i] ? r.weights.of(i) : 0;
      if (weight > 0) {
        used.push_back({(int32_t)(i - start), leaf_of(r.leaf, i)});
        to[used.back().leaf].count += weight;
      }
    }
    for (int64_t output = first; output < std::min(n_outputs, first + OUTPUTS);
         output++, to += n_leaves) {
      const Pair* q = r.gradients[output] + start;
      if (repeated) {
        for (const Used& u : used) {
          const int64_t times = r.weights.repeats[start + u.row];
          to[u.leaf].sums = to[u.leaf].sums + Sums{q[u.row].g * times, q[u.row].h * times};
        }
      } else {
        for (const Used& u : used) {
          to[u.leaf].sums = to[u.leaf].sums + Sums{q[u.row].g, q[u.row].h};
        }
      }
    }
  });
  std::vector<int64_t> all(3 * size, 0);
  for (const std::vector<LeafSum>& own : local) {
    for (size_t k = 0; k < own.size(); k++) {
      all[3 * k] += own[k].sums.g;
      all[3 * k + 1] += own[k].sums.h;
      all[3 * k + 2] += own[k].count;
    }
  }
  reduce_sum(r.binned.reduce.get(), all.data(), all.size());
  std::vector<LeafSum> out(size);
  for (size_t k = 0; k < size; k++) {
    // the first output of its group
    const size_t counted = k % n_leaves + k / n_leaves / OUTPUTS * OUTPUTS * n_leaves;
    out[k] = {{all[3 * k], all[3 * k + 1]}, all[3 * counted + 2]};
  }
  return out;
}

// What a split takes off the loss; 0 where a side has no rows.
double gain_of(Sums left, Sums right, const Scale& scale, const Limits& limits) {
  if (left.h == 0 || right.h == 0) {
    return 0.0;
  }
  const double gs = g_scale(scale);
  const double hs = h_scale(scale);
  const Penalty p{limits.reg_lambda * hs, limits.reg_alpha * gs, limits.max_delta_step * gs / hs,
                  0.0};
  return 0.5 * (split_score(left, right, p) - node_score(left + right, p)) * (hs / (gs * gs));
}

// by_leaf (n_leaves): the sums of one output
ReplayedTree replay_one(const ReplayRows& r, const Scale& scale, const LeafSum* by_leaf,
                        const TreeView& tree, const Limits& limits,
                        const SplitConstraints& constraints) {
  const size_t n = (size_t)tree.n_nodes;
  const size_t n_leaves = (size_t)tree.n_leaves();
  std::vector<LeafSum> total(n);
  const std::vector<double> zero(n, 0.0);
  ReplayedTree out{zero, zero, zero, zero};
  const double hs = h_scale(scale);
  const double unit = power_of_two(-r.weights.shift);
  for (size_t i = n, leaf = n_leaves; i-- > 0;) {
    if (const int32_t left = tree.left[i]; left != 0) {
      total[i] = {total[left].sums + total[left + 1].sums,
                  total[left].count + total[left + 1].count};
      out.gain[i] = gain_of(total[left].sums, total[left + 1].sums, scale, limits);
    } else {
      total[i] = by_leaf[--leaf];
    }
    out.cover[i] = (double)total[i].sums.h / hs;
    out.count[i] = (double)total[i].count * unit;
  }
  std::vector<Sums> sums(n);
  for (size_t i = 0; i < n; i++) {
    sums[i] = total[i].sums;
  }
  out.value = node_steps(tree.left, sums, out.count, scale, limits, [&](size_t i) {
    const int c = tree.column[i];
    return tree.set[i] >= 0 && r.binned.n_bins[c] > limits.max_cat_to_onehot &&
           !constraints.is_onehot(c);
  });
  for (double& value : out.value) {
    value = limits.learning_rate * value;
  }
  return out;
}

}  // namespace

std::vector<ReplayedTree> replay(const ReplayRows& r, const TreeView& tree, const Limits& limits,
                                 const SplitConstraints& constraints) {
  const size_t n_leaves = (size_t)tree.n_leaves();
  const std::vector<LeafSum> by_leaf = sum_by_leaf(r, n_leaves);
  std::vector<ReplayedTree> out;
  for (size_t k = 0; k < r.gradients.size(); k++) {
    out.push_back(
        replay_one(r, r.scale[k], by_leaf.data() + k * n_leaves, tree, limits, constraints));
  }
  return out;
}

}  // namespace sapwood
