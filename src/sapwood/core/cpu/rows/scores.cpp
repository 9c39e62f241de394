#include "cpu/rows/scores.h"

#include <string.h>

#include <algorithm>
#include <atomic>

namespace sapwood {

RowState::RowState(const Binned& binned_, const double* label_, bool label_planes_, const double* weight_,
                   int objective_, const std::vector<double>& field_, int n_outputs_, int n_threads_)
    : binned(binned_),
      reduce(binned_.reduce.get()),
      n(binned_.n_rows),
      objective(objective_),
      n_outputs(n_outputs_),
      n_threads(n_threads_),
      info(objective_info(objective_)),
      n_fields(info.n_fields + 1),
      field((size_t)n_outputs_ * n_fields),
      label(label_),
      label_planes(label_planes_),
      weights(weight_, binned_.n_rows, binned_.reduce.get()),
      score((size_t)n * n_outputs_ * 8) {
  for (int k = 0; k < n_outputs; k++)
    std::copy_n(field_.begin() + k * info.n_fields, info.n_fields, field.begin() + k * n_fields);
  set_weights(weight_);
  if (!label_planes) labels_as_bytes();
}

void RowState::set_weights(const double* given) {
  int64_t counts[3] = {n, n, n};  // all rows, those of positive weight, repeats
  if (weights.given) {
    counts[1] = counts[2] = 0;
    for (const int32_t m : weights.repeats) counts[1] += m > 0, counts[2] += weights.integral ? m : m > 0;
  }
  const bool zeros_here = counts[1] < n;
  reduce_sum(reduce, counts, 3);
  n_all = counts[0], n_live = counts[1], n_repeats = counts[2];
  if (weights.given && !weights.integral) weight.assign(given, given + n);
  else if (zeros_here) {
    weight.resize(n);
    for (int64_t i = 0; i < n; i++) weight[i] = weights.repeats[i] > 0;
  }
  weights.real = nullptr;
  if (!repeated()) return;
  uint64_t most = 1;
  for (const int32_t m : weights.repeats) most = std::max(most, (uint64_t)m);
  reduce_max(reduce, &most, 1);
  max_repeats = (int32_t)most;
}

// For classes and small counts: a pass over the rows is limited by memory, and labels are a sixth of what it reads.
void RowState::labels_as_bytes() {
  byte_label.resize(n);
  std::atomic<bool> fits = true;
  each_task([&](int64_t at, int64_t m, int) {
    if (!fits) return;
    int wrong = 0;
    for (int64_t i = at; i < at + m; i++) {
      const double x = label[i];
      byte_label[i] = (uint8_t)(x >= 0.0 && x <= 255.0 ? x : 0.0);
      wrong |= byte_label[i] != x;
    }
    if (wrong != 0) fits = false;
  });
  if (!fits) byte_label = {};
}

void RowState::fill_scores(const double* start) {
  each_task([&](int64_t at, int64_t m, int) {  // in parallel: the first write to a page waits for the system
    for (int k = 0; k < n_outputs; k++) std::fill_n(score_of(k) + at, m, start[k]);
  });
}

void RowState::set_scores(const double* scores) { memcpy(score.as<double>(), scores, (size_t)n * n_outputs * 8); }

void RowState::flush(int output, LeafState& leaf) {
  if (!leaf.pending) return;
  each_task([&](int64_t at, int64_t m, int) {
    kernels().add_leaf_values(score_of(output) + at, leaf.ids, at, leaf.value.data(), (int)m);
  });
  leaf.pending = false;
}

}  // namespace sapwood
