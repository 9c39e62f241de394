// RowState: labels, weights and scores of the rows of one training set.
#pragma once
#include <string.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "cpu/data/binned.h"
#include "cpu/rows/leaf_state.h"
#include "host/pool.h"
#include "registry.h"

namespace sapwood {

struct RowState {
  // label (n), or (n_outputs, n) where `label_planes`; field (n_outputs, info.n_fields)
  RowState(const Binned& binned_, const double* label_, bool label_planes_, const double* weight_,
           int objective_, const std::vector<double>& field_, int n_outputs_, int n_threads_)
      : binned(binned_),
        objective(objective_),
        n_outputs(n_outputs_),
        n_threads(n_threads_),
        label(label_),
        label_planes(label_planes_),
        weights(weight_, n, reduce) {
    for (int k = 0; k < n_outputs; k++) {
      std::copy_n(field_.begin() + k * info.n_fields, info.n_fields, field.begin() + k * n_fields);
    }
    set_weights(weight_);
    if (!label_planes) {
      labels_as_bytes();
    }
  }
  // start (n_outputs)
  void fill_scores(const double* start) {
    // in parallel: the first write to a page waits for the system
    each_task([&](int64_t at, int64_t m, int) {
      for (int k = 0; k < n_outputs; k++) {
        std::fill_n(score_of(k) + at, m, start[k]);
      }
    });
  }
  // scores (n_outputs, n)
  void set_scores(const double* scores) {
    memcpy(score.as<double>(), scores, (size_t)n * n_outputs * 8);
  }
  void flush(int output, LeafState& leaf) {
    if (!leaf.pending) {
      return;
    }
    each_task([&](int64_t at, int64_t m, int) {
      kernels().add_leaf_values(score_of(output) + at, leaf.ids, at, leaf.value.data(), (int)m);
    });
    leaf.pending = false;
  }

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
    const int64_t rows = task_rows(n_outputs);
    run(threads_for(n * n_outputs, n_threads), task_count(n, rows), [&](int64_t t, int worker) {
      f(t * rows, std::min(rows, n - t * rows), worker);
    });
  }

  const Binned& binned;
  const Reduce* reduce = binned.reduce.get();  // over the holders of rows, or null
  int64_t n = binned.n_rows;                   // rows of this process
  int objective, n_outputs, n_threads;
  const ObjectiveInfo& info = objective_info(objective);
  int n_fields = info.n_fields + 1;  // those of the objective, and one that adapts (Loss::adaptive)
  // (n_outputs, n_fields)
  std::vector<double> field = std::vector<double>((size_t)n_outputs * n_fields);
  const double* label;
  bool label_planes;
  std::vector<uint8_t> byte_label;  // (n) the labels as bytes, where all of them fit
  RowWeights weights;
  // (n) real weights, or 0 and 1 where integer weights have zeros; else empty
  std::vector<double> weight;
  // rows of all holders: all; of positive weight; sum of repeats
  int64_t n_all, n_live, n_repeats;
  int32_t max_repeats = 1;                  // over the rows of all holders
  Memory score{(size_t)n * n_outputs * 8};  // (n_outputs, n) double

 private:
  void set_weights(const double* given) {
    int64_t counts[3] = {n, n, n};  // all rows, those of positive weight, repeats
    if (weights.given) {
      counts[1] = counts[2] = 0;
      for (const int32_t m : weights.repeats) {
        counts[1] += m > 0;
        counts[2] += weights.integral ? m : m > 0;
      }
    }
    const bool zeros_here = counts[1] < n;
    reduce_sum(reduce, counts, 3);
    n_all = counts[0];
    n_live = counts[1];
    n_repeats = counts[2];
    if (weights.given && !weights.integral) {
      weight.assign(given, given + n);
    } else if (zeros_here) {
      weight.resize(n);
      for (int64_t i = 0; i < n; i++) {
        weight[i] = weights.repeats[i] > 0;
      }
    }
    weights.real = nullptr;
    if (!repeated()) {
      return;
    }
    uint64_t most = 1;
    for (const int32_t m : weights.repeats) {
      most = std::max(most, (uint64_t)m);
    }
    reduce_max(reduce, &most, 1);
    max_repeats = (int32_t)most;
  }
  // For classes and small counts: a pass over the rows is limited by memory, and labels are a sixth
  // of what it reads.
  void labels_as_bytes() {
    byte_label.resize(n);
    std::atomic<bool> fits = true;
    each_task([&](int64_t at, int64_t m, int) {
      if (!fits) {
        return;
      }
      int wrong = 0;
      for (int64_t i = at; i < at + m; i++) {
        const double x = label[i];
        byte_label[i] = (uint8_t)(x >= 0.0 && x <= 255.0 ? x : 0.0);
        wrong |= byte_label[i] != x;
      }
      if (wrong != 0) {
        fits = false;
      }
    });
    if (!fits) {
      byte_label = {};
    }
  }
};

}  // namespace sapwood
