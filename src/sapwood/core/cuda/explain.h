// Shapley values on the device, as the CPU finds them (cpu/kernels/shap.h,
// cpu/predict/shap_paths.h): what a leaf adds depends on the pattern of a row alone, so the sums
// over the leaves of a group are made once for each pattern. Then a thread has a row: it finds its
// pattern in every group and adds the entry, trees and groups in the order of the model.
//
//   codes in shared memory   [used column][thread]       sums in shared memory   [column][thread], of one output
#pragma once
#include "cuda/predict.h"

namespace sapwood {

constexpr int MAX_FACTORS = 32;  // columns on the path of a leaf

// Adds to out (n_slots) what a leaf adds to the columns of its path: quadrature as in
// cpu/kernels/shap.h.
SAPWOOD_APART void add_leaf_values(const ExplainJob& j, const ExplainLeaf& leaf, uint32_t pattern,
                                   double* out) {
  const int d = leaf.n_factors;
  const ExplainFactor* f = j.factors + leaf.factor;
  double sum[MAX_FACTORS];
  double before[MAX_FACTORS];
  double through[MAX_FACTORS];
  const int n_points = (d + 1) / 2;
  const int first = n_points * (n_points - 1) / 2;
  for (int q = 0; q < n_points; q++) {
    const double t = j.points[first + q];
    double run = j.point_weights[first + q] * leaf.value;
    for (int i = 0; i < d; i++) {
      const double no = (1.0 - t) * f[i].weight_fraction;
      const double yes = t + no;
      through[i] = (pattern & f[i].mask) == f[i].want ? yes : no;
      before[i] = run;
      run = run * through[i];
    }
    run = 1.0;
    for (int i = d - 1; i >= 0; i--) {
      sum[i] = q == 0 ? before[i] * run : sum[i] + before[i] * run;
      run = run * through[i];
    }
  }
  for (int i = 0; i < d; i++) {
    const bool on_path = (pattern & f[i].mask) == f[i].want;
    double& to = out[f[i].slot];
    to = to + sum[i] * (on_path ? 1.0 - f[i].weight_fraction : -f[i].weight_fraction);
  }
}

// The entries of all groups that have a table: a block has a group, a thread some of its patterns.
SAPWOOD_KERNEL void fill_entries(SAPWOOD_ARGUMENTS(ExplainJob), int first_group, int) {
  const ExplainGroup g = job.groups[first_group + blockIdx.x];
  if (g.entry < 0) {
    return;
  }
  for (uint32_t pattern = threadIdx.x; pattern < 1u << g.n_bits; pattern += blockDim.x) {
    double* out = job.entries + g.entry + (int64_t)pattern * g.n_slots;
    for (int i = 0; i < g.n_slots; i++) {
      out[i] = 0.0;
    }
    for (int i = 0; i < g.n_leaves; i++) {
      add_leaf_values(job, job.leaves[g.leaf + i], pattern, out);
    }
  }
}

// Which bits of a group's pattern a row has.
inline uint32_t pattern_of(const ExplainJob& j, const ExplainGroup& g, const uint32_t* codes,
                           int64_t stride) {
  uint32_t pattern = 0;
  for (int b = 0; b < g.n_bits; b++) {
    bool all = true;
    for (int l = j.literal_at[g.bit + b]; l < j.literal_at[g.bit + b + 1]; l++) {
      const uint64_t n = *(const uint64_t*)(j.literals + l);  // `left`: whether the path goes left
      all = all && goes_right<false>(n, codes, stride, j.walk.sets) != (n >> 48 != 0);
    }
    pattern |= (uint32_t)all << b;
  }
  return pattern;
}

SAPWOOD_KERNEL void explain(SAPWOOD_ARGUMENTS(ExplainJob), int first_tree, int last_tree) {
  const ExplainJob& j = job;
  DYNAMIC_SHARED(double, shared);
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= j.walk.n_rows) {
    return;
  }
  double* sums = j.sums == nullptr ? shared + threadIdx.x : j.sums + row;
  uint32_t* codes = j.sums == nullptr ? (uint32_t*)(shared + j.n_columns * blockDim.x) + threadIdx.x
                                      : j.walk.codes + row;
  const int64_t stride = j.sums == nullptr ? blockDim.x : j.walk.n_rows;
  for (int c = 0; c < (int)j.walk.n_used; c++) {
    codes[c * stride] = walk_code<false>(j.walk, row, c);
  }
  for (int64_t k = 0; k < j.walk.n_outputs; k++) {
    double* out = j.out + (row * j.walk.n_outputs + k) * j.n_columns;
    for (int64_t c = 0; c < j.n_columns; c++) {
      sums[c * stride] = out[c];
    }
    for (int t = first_tree; t < last_tree; t++) {
      if (j.tree_output[t] != k) {
        continue;
      }
      for (int at = j.group_at[t]; at < j.group_at[t + 1]; at++) {
        const ExplainGroup g = j.groups[at];
        const uint32_t pattern = pattern_of(j, g, codes, stride);
        const double* entry = j.entries + g.entry + (int64_t)pattern * g.n_slots;
        double own[MAX_FACTORS];
        if (g.entry < 0) {  // one leaf with many columns: the row has an entry of its own
          for (int i = 0; i < g.n_slots; i++) {
            own[i] = 0.0;
          }
          for (int i = 0; i < g.n_leaves; i++) {
            add_leaf_values(j, j.leaves[g.leaf + i], pattern, own);
          }
          entry = own;
        }
        for (int i = 0; i < g.n_slots; i++) {
          double& sum = sums[j.slot_column[g.slot + i] * stride];
          sum = sum + entry[i];
        }
      }
    }
    for (int64_t c = 0; c < j.n_columns; c++) {
      out[c] = sums[c * stride];
    }
  }
}

}  // namespace sapwood
