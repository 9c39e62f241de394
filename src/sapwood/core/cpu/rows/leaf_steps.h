// The step of every node of a tree from the sums of its gradients, before shrinkage (NUMERICS 6).
#pragma once
#include <vector>

#include "math/gain.h"
#include "records/limits.h"

namespace sapwood {

// path_smooth draws a step towards its parent's, the more, the fewer rows the node has. left
// (n_nodes): 0 in leaves; sums, count (n_nodes); by_many(node): its split is by a set of categories
// of many, whose children have cat_l2 too.
template <class ByMany>
std::vector<double> node_steps(const int32_t* left, const std::vector<Sums>& sums,
                               const std::vector<double>& count, const Scale& scale,
                               const Limits& limits, ByMany&& by_many) {
  const size_t n = sums.size();
  std::vector<double> step(n);
  std::vector<double> lambda(n, limits.reg_lambda);
  const double smooth = limits.path_smooth;
  for (size_t i = 0; i < n; i++) {  // parents come first and leave their step with their children
    const double own =
        leaf_value(sums[i], scale, lambda[i], limits.reg_alpha, limits.max_delta_step);
    const double above = step[i];
    step[i] =
        i == 0 || smooth == 0.0 ? own : (own * count[i] + above * smooth) / (count[i] + smooth);
    if (left[i] == 0) {
      continue;
    }
    step[left[i]] = step[left[i] + 1] = step[i];
    if (by_many(i)) {
      lambda[left[i]] = lambda[left[i] + 1] = limits.reg_lambda + limits.cat_l2;
    }
  }
  return step;
}

}  // namespace sapwood
