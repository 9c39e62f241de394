#include "cpu/grow/growth.h"

#include <algorithm>
#include <stdexcept>

#include "cpu/grow/frontier.h"
#include "cpu/grow/histogram_growth.h"
#include "cpu/grow/multi_output.h"
#include "cpu/grow/ordered.h"

namespace sapwood {
namespace {

// Symmetric trees: all nodes of a level take one split.
void grow_levels(SplitChooser& chooser, const Limits& limits) {
  const int64_t max_leaves = limits.leaf_limit();
  NodeIds level{0};
  for (int depth = 0; !limits.at_max_depth(depth) && 2 * (int64_t)level.size() <= max_leaves;
       depth++) {
    if (!chooser.choose_level(level)) {
      return;
    }
    level = chooser.split(
        level, !limits.at_max_depth(depth + 1) && 4 * (int64_t)level.size() <= max_leaves, false);
  }
}

void grow_nodes(SplitChooser& chooser, const GrowInput& in) {
  const Limits& limits = in.limits;
  // a split moves other nodes' bounds: not a level at once
  const bool rebound = in.constraints.intermediate;
  Frontier frontier(in.grower, in.grower.whole_level && !rebound, limits.leaf_limit());
  auto offer = [&](int32_t id) {
    if (chooser.rank(id) > 0) {
      frontier.open(chooser.rank(id), id);
    }
  };
  if (limits.at_max_depth(0)) {
    return;
  }
  chooser.choose(0);
  offer(0);
  NodeIds batch;
  while (frontier.next(
      [&](int32_t id) {
        return chooser.depth(id);
      },
      batch)) {
    const bool more = frontier.room() && !limits.at_max_depth(chooser.depth(batch[0]) + 1);
    // the last nodes may turn out to come too late
    if (more && batch.size() == 1 && !chooser.is_ready(batch[0])) {
      chooser.make_ready(frontier.upcoming(
          batch[0], std::max(1, frontier.n_left() / (in.reduce() == nullptr ? 2 : 3))));
    }
    for (const int32_t child : chooser.split(batch, more, true)) {
      offer(child);
    }
    if (!rebound) {
      frontier.trim([&](int32_t id) {
        chooser.release(id);
      });
      continue;
    }
    for (const int32_t id : chooser.propagate_bounds(batch[0])) {
      if (!frontier.close(chooser.rank(id), id)) {
        continue;
      }
      chooser.choose(id);
      offer(id);
      if (!(chooser.rank(id) > 0)) {
        chooser.release(id);
      }
    }
  }
}

void refuse_dealt(const GrowInput& in, const char* what) {
  if (in.reduce() != nullptr) {
    throw std::invalid_argument(
        std::string(what) + " need all rows in one process; do not deal them to several holders.");
  }
}

using Outputs = std::vector<std::unique_ptr<HistogramGrowth>>;
Outputs growths(const std::vector<GrowInput>& in, Workspace* work) {
  Outputs outputs;
  for (size_t k = 0; k < in.size(); k++) {
    outputs.push_back(std::make_unique<HistogramGrowth>(in[k], work[k]));
  }
  return outputs;
}

}  // namespace

void grow_frontier(SplitChooser& chooser, const GrowInput& in) {
  if (!chooser.make_root() || in.limits.leaf_limit() < 2) {
    return;
  }
  if (in.grower.shared_split) {
    grow_levels(chooser, in.limits);
  } else {
    grow_nodes(chooser, in);
  }
}

Tree grow_tree(const GrowInput& in, Workspace& work, const AllocateLeafIds& allocate,
               std::vector<double>& value) {
  auto grow = [&](auto&& growth) {
    grow_frontier(growth, in);
    return growth.make_tree(allocate, value);
  };
  if (in.sorted == nullptr) {
    return grow(HistogramGrowth(in, work));
  }
  refuse_dealt(in, "exact trees");
  return grow(ExactGrowth(in, work, work.sorted));
}

std::vector<Tree> grow_multi_output(const std::vector<GrowInput>& in, Workspace* work,
                                    const std::vector<AllocateLeafIds>& allocate,
                                    std::vector<std::vector<double>>& value, int n_threads,
                                    bool worker_per_output) {
  Outputs outputs = growths(in, work);
  // reduce is called from this thread
  worker_per_output = worker_per_output && in[0].reduce() == nullptr;
  MultiOutputGrowth together(outputs, in, n_threads, worker_per_output);
  grow_frontier(together, in[0]);
  std::vector<Tree> trees(in.size());
  run(worker_per_output ? n_threads : 1, (int64_t)in.size(), [&](int64_t k, int) {
    trees[k] = outputs[k]->make_tree(allocate[k], value[k]);
  });
  return trees;
}

std::vector<Tree> grow_ordered(const std::vector<GrowInput>& in, Workspace* work,
                               const std::vector<int64_t>& prefix_ends, int n_threads) {
  refuse_dealt(in[0], "trees of ordered boosting");
  Outputs outputs = growths(in, work);
  OrderedGrowth together(outputs, in, prefix_ends, n_threads);
  grow_frontier(together, in[0]);
  return together.make_trees();
}

}  // namespace sapwood
