// Limits: how large a tree may grow, and how its splits and leaves are regularised.
#pragma once

namespace sapwood {

struct Limits {
  int max_depth = 0, max_leaves = 0;  // 0 = none
  double min_child_weight = 0, min_samples_leaf = 0 /* the objective's own */, reg_lambda = 0,
         reg_alpha = 0, min_split_gain = 0, max_delta_step = 0, path_smooth = 0,
         learning_rate = 0.1;
  double colsample_bytree = 1, colsample_bylevel = 1, colsample_bynode = 1;
  int max_cat_to_onehot = 4, max_cat_threshold = 32;
  double cat_smooth = 10, cat_l2 = 10, min_data_per_group = 100;

  bool at_max_depth(int depth) const { return max_depth > 0 && depth >= max_depth; }
  int leaf_limit() const { return max_leaves > 0 ? max_leaves : 0x7fffffff; }
};

}  // namespace sapwood
