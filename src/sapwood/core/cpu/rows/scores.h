// RowState: labels, weights and scores of the rows of one training set.
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "cpu/rows/leaf_state.h"
#include "host/pool.h"
#include "registry.h"

namespace sapwood {

struct RowState {
  // label (n), or (n_outputs, n) where `label_planes`; field (n_outputs, info.n_fields)
  RowState(const Binned& binned, const double* label, bool label_planes, const double* weight, int objective,
           const std::vector<double>& field, int n_outputs, int n_threads);
  void fill_scores(const double* start);  // start (n_outputs)
  void set_scores(const double* scores);  // scores (n_outputs, n)
  void flush(int output, LeafState& leaf);

  bool repeated() const {
    return weights.integral && !weights.zero_one;
  }  // some row of some holder counts more than once
  bool has_zeros() const { return n_live < n_all; }  // some row of some holder has weight 0
  const double* label_of(int output) const { return label + (label_planes ? output * n : 0); }
  const double* field_of(int output) const { return field.data() + output * n_fields; }
  double* score_of(int output) const { return score.as<double>() + output * n; }
  const double* weight_at() const { return weight.empty() ? nullptr : weight.data(); }
  // f(first row, number of rows, worker) for every task of consecutive rows.
  template <class F>
  void each_task(F&& f) const {
    run(threads_for(n, n_threads), task_count(n),
        [&](int64_t t, int worker) { f(t * TASK_ROWS, std::min(TASK_ROWS, n - t * TASK_ROWS), worker); });
  }

  const Binned& binned;
  const Reduce* reduce;  // over the holders of rows, or null
  int64_t n;             // rows of this process
  int objective, n_outputs, n_threads;
  const ObjectiveInfo& info;
  int n_fields;               // those of the objective, and one that adapts (Loss::adaptive)
  std::vector<double> field;  // (n_outputs, n_fields)
  const double* label;
  bool label_planes;
  std::vector<uint8_t> byte_label;  // (n) the labels as bytes, where all of them fit
  RowWeights weights;
  std::vector<double> weight;        // (n) real weights, or 0 and 1 where integer weights have zeros; else empty
  int64_t n_all, n_live, n_repeats;  // rows of all holders: all; of positive weight; sum of repeats
  int32_t max_repeats = 1;           // over the rows of all holders
  Memory score;                      // (n_outputs, n) double

 private:
  void set_weights(const double* given);
  void labels_as_bytes();
};

}  // namespace sapwood
