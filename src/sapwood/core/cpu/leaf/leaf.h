// The value of a leaf beyond one Newton step: exact sums and exact order statistics over its rows (NUMERICS 8).
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "cpu/kernels/kernels.h"

namespace sapwood {

struct LeafRows {  // the rows of one output, by leaf
  int objective;
  const double* field;
  const double *score, *label;  // (n)
  const RowWeights& weights;
  const double* factor;  // (n) real weights, or null
  const uint8_t* used;   // (n) rows of the sample, or null for all
  LeafIds leaf;          // null data: all rows in one leaf
  int64_t n;
  int n_leaves, n_threads;
};

struct LeafSums {  // by leaf; a leaf with a row that is not finite has an infinite loss
  std::vector<double> loss, g, h;
};

struct LeafPenalty {
  double lambda = 0, alpha = 0, max_step = 0;  // 0: none
  bool damps = false;                          // lambda shortens each step, and is no part of what the steps minimise
};

std::vector<double> leaf_weights(const LeafRows& rows);
// At score + step[leaf]; `space` to reuse. Without `losses` those that are not infinite are 0.
LeafSums leaf_sums(const LeafRows& rows, const double* step, Memory& space, bool losses = true);

// At most `iterations` Newton steps with backtracking from `step`, or (0) one step that is not tested; with `weight` (leaf_weights) in the place of hessians.
std::vector<double> leaf_newton(const LeafRows& rows, std::vector<double> step, int iterations, const LeafPenalty&,
                                const std::vector<double>* weight);
// One Newton step of all classes at once, by the whole hessian of softmax: (n_outputs, n_leaves); score (n_outputs, n), label (n)
std::vector<double> leaf_joint(const LeafRows& rows, const double* score, const double* label, int n_outputs,
                               double lambda);
std::vector<double> leaf_knots(const LeafRows& rows);    // what minimises a piecewise linear loss
double knot_spread(const LeafRows& rows, double level);  // quantile of |knot|, over all leaves
double line_search(const LeafRows& rows,
                   const std::vector<double>& value);  // the factor on `value` that minimises the loss

}  // namespace sapwood
