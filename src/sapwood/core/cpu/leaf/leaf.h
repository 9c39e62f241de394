// Leaf values beyond one Newton step: exact sums and exact order statistics over a leaf's rows
// (NUMERICS 8).
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "cpu/kernels/kernels.h"

namespace sapwood {

struct LeafRows {  // the rows of one output, with the leaf of each
  int objective;
  const double* field;
  const double *score, *label;  // (n)
  const RowWeights& weights;
  const double* weight;      // (n) real weights times sampling weights, or null
  const uint8_t* in_sample;  // (n) 1: the row is in the sample; null: all rows are
  LeafIds leaf;              // null data: all rows are in one leaf
  int64_t n;
  int n_leaves, n_threads;
  const Reduce* reduce;     // over the holders of rows, or null
  Memory* space = nullptr;  // that `leaf_newton` may use and leave to the next call, or null

  bool takes(int64_t row) const {
    return (in_sample == nullptr || in_sample[row]) && (!weights.given || weights.repeats[row] > 0);
  }
  bool takes_all() const { return in_sample == nullptr && !weights.given; }
  int64_t repeats(int64_t row) const { return weights.integral ? weights.repeats[row] : 1; }
  double weight_of(int64_t row) const { return weight == nullptr ? 1.0 : weight[row]; }
  int leaf_of(int64_t row) const {
    return leaf.data == nullptr ? 0
           : leaf.wide          ? ((const uint16_t*)leaf.data)[row]
                                : ((const uint8_t*)leaf.data)[row];
  }
};

struct LeafLossSums {  // by leaf; the loss of a leaf with a row that is not finite is infinite
  std::vector<double> loss, g, h;
};

struct LeafPenalty {
  double lambda = 0, alpha = 0, max_step = 0;  // 0: none
  // lambda only shortens each step; the minimised loss does not include it
  bool damps = false;
};

struct LeafRule {  // how leaf values are found after growth: Newton steps, or one of these
  // joint: one Newton step of all outputs together
  bool exact = false, gradient = false, joint = false;
  int iterations = 1;
  LeafPenalty penalty;
};

// New values of all leaves, before shrinkage; for all rules but the joint one.
std::vector<double> refit_leaves(const LeafRows& rows, const LeafRule& rule);
// Sums at score + step[leaf]; `space` is reused between calls. Without `losses`, finite losses are
// given as 0.
LeafLossSums leaf_loss_sums(const LeafRows& rows, const double* step, Memory& space,
                            bool losses = true);
// At most `iterations` Newton steps with backtracking from `step`; 0: one step that is not tested.
// `weight`: used in place of the hessians where given.
std::vector<double> leaf_newton(const LeafRows& rows, std::vector<double> step, int iterations,
                                const LeafPenalty&, const std::vector<double>* weight);
// One Newton step of all classes together by the whole hessian of softmax: (n_outputs, n_leaves).
// score (n_outputs, n), label (n)
std::vector<double> leaf_joint(const LeafRows& rows, const double* score, const double* label,
                               int n_outputs, double lambda);
// The factor on `value` that minimises the loss.
double line_search(const LeafRows& rows, const std::vector<double>& value);

// knots.cpp: quantiles of knots (NUMERICS 8)
// by leaf: the minimum of a piecewise linear loss
std::vector<double> leaf_knots(const LeafRows& rows);
double knot_quantile(const LeafRows& rows, double level);  // quantile of |knot| over all rows
// line_search of a piecewise linear loss
double knot_line_search(const LeafRows& rows, const std::vector<double>& value);

}  // namespace sapwood
