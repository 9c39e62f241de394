// SHAP: rows to patterns, patterns to what a leaf adds to each column, and those values to rows.
//
// A leaf of value v, reached through columns j = 1 .. d, is a product game. If each column is known
// with probability t, column j stays on the path with probability a_j(t) = t * on_path_j + (1 - t)
// * weight_fraction_j. Column i then has the Shapley value (Owen 1972)
//
//   (on_path_i - weight_fraction_i) * integral over 0..1 of v * product over j != i of a_j(t) dt
//
// The integrand is a polynomial of degree d - 1, so Gauss quadrature with d / 2 points, rounded up,
// is exact. The products without factor i need no division:
//
//   before[i] = point_weight * a_1 * ... * a_{i-1}        after[i] = a_d * ... * a_{i+1}        sum += before[i] * after[i]
#pragma once
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/lookup_add.h"

namespace sapwood::inline SAPWOOD_ISA {

static void goes_left(const uint32_t* code, uint32_t low, uint32_t length, int n, uint8_t* left) {
  for (int i = 0; i < n; i++) {
    left[i] = code[i] - low >= length;
  }
}

static void match_patterns(const PatternArgs& a) {
  for (int i = 0; i < a.n; i++) {
    a.pattern[i] = 0;
  }
  auto add = [&](const uint8_t* bits, int place) {
    for (int i = 0; i < a.n; i++) {
      a.pattern[i] = (uint16_t)(a.pattern[i] | bits[i] << place);
    }
  };
  int at = 0;
  for (int c = 0; c < a.n_above; c++) {
    uint8_t on_path[BLOCK];
    for (int i = 0; i < a.n; i++) {
      on_path[i] = 1;
    }
    for (; at < a.ends[c]; at++) {
      const uint8_t* left = a.left + (size_t)a.literals[at].condition * BLOCK;
      const uint8_t other = !a.literals[at].left;
      for (int i = 0; i < a.n; i++) {
        on_path[i] &= left[i] ^ other;
      }
    }
    add(on_path, c);
  }
  for (int c = 0; c < a.n_inside; c++) {
    add(a.left + (size_t)a.inside[c] * BLOCK, a.n_above + c);
  }
}

// a_j(t) of one lane
static inline double path_weight(uint8_t on_path, double yes, double no) {
  return on_path ? yes : no;
}

static void leaf_shap_values(const LeafShapArgs& a) {
  const int m = (a.n + 7) / 8 * 8;                 // whole vectors
  double* sum = a.scratch;                         // (d, LANES)
  double* before = sum + (size_t)a.d * LANES;      // (d, LANES)
  double* through = before + (size_t)a.d * LANES;  // (d, LANES) a_j
  double run[LANES];
  for (int q = 0; q < a.n_points; q++) {
    const double t = a.point[q];
    for (int i = 0; i < m; i++) {
      run[i] = a.point_weight[q];
    }
    for (int j = 0; j < a.d; j++) {
      const double no = (1.0 - t) * a.weight_fraction[j];
      const double yes = t + no;
      const uint8_t* on_path = a.on_path + j * LANES;
      double* b = before + j * LANES;
      double* x = through + j * LANES;
      for (int i = 0; i < m; i++) {
        x[i] = path_weight(on_path[i], yes, no);
        b[i] = run[i];
        run[i] = run[i] * x[i];
      }
    }
    for (int i = 0; i < m; i++) {
      run[i] = 1.0;
    }
    for (int j = a.d - 1; j >= 0; j--) {
      double* s = sum + j * LANES;
      double* b = before + j * LANES;
      double* x = through + j * LANES;
      if (q == 0) {
        for (int i = 0; i < m; i++) {
          s[i] = b[i] * run[i];
        }
      } else {
        for (int i = 0; i < m; i++) {
          s[i] = s[i] + b[i] * run[i];
        }
      }
      for (int i = 0; i < m; i++) {
        run[i] = run[i] * x[i];
      }
    }
  }
  for (int j = 0; j < a.d; j++) {
    const uint8_t* on_path = a.on_path + j * LANES;
    const double yes = 1.0 - a.weight_fraction[j];
    const double no = -a.weight_fraction[j];
    for (int i = 0; i < a.n; i++) {
      a.out[j][i] = a.out[j][i] + sum[j * LANES + i] * path_weight(on_path[i], yes, no);
    }
  }
}

// The same for pairs: both columns are left out of the product, which gives half of their
// interaction.
static void leaf_shap_interactions(const LeafShapArgs& a) {
  const int m = (a.n + 7) / 8 * 8;
  double* sum = a.scratch;                           // (d, d, LANES)
  double* before = sum + (size_t)a.d * a.d * LANES;  // (d, LANES)
  double* after = before + (size_t)a.d * LANES;      // (d, LANES)
  double* through = after + (size_t)a.d * LANES;     // (d, LANES)
  double run[LANES];
  for (int i = 0; i < a.d * a.d * LANES; i++) {
    sum[i] = 0.0;
  }
  for (int q = 0; q < a.n_points; q++) {
    const double t = a.point[q];
    for (int i = 0; i < m; i++) {
      run[i] = 0.5 * a.point_weight[q];
    }
    for (int j = 0; j < a.d; j++) {
      const double no = (1.0 - t) * a.weight_fraction[j];
      const double yes = t + no;
      for (int i = 0; i < m; i++) {
        through[j * LANES + i] = path_weight(a.on_path[j * LANES + i], yes, no);
        before[j * LANES + i] = run[i];
        run[i] = run[i] * through[j * LANES + i];
      }
    }
    for (int i = 0; i < m; i++) {
      run[i] = 1.0;
    }
    for (int j = a.d - 1; j >= 0; j--) {
      for (int i = 0; i < m; i++) {
        after[j * LANES + i] = run[i];
        run[i] = run[i] * through[j * LANES + i];
      }
    }
    for (int j = 0; j < a.d; j++) {
      for (int i = 0; i < m; i++) {
        run[i] = before[j * LANES + i];
      }
      for (int k = j + 1; k < a.d; k++) {
        for (int i = 0; i < m; i++) {
          double& s = sum[(j * a.d + k) * LANES + i];
          s = s + run[i] * after[k * LANES + i];
          run[i] = run[i] * through[k * LANES + i];
        }
      }
    }
  }
  for (int j = 0; j < a.d; j++) {
    for (int k = j + 1; k < a.d; k++) {
      for (int i = 0; i < a.n; i++) {
        const double of_j = path_weight(a.on_path[j * LANES + i], 1.0 - a.weight_fraction[j],
                                        -a.weight_fraction[j]);
        const double of_k = path_weight(a.on_path[k * LANES + i], 1.0 - a.weight_fraction[k],
                                        -a.weight_fraction[k]);
        double& to = a.out[j * a.d + k][i];
        to = to + sum[(j * a.d + k) * LANES + i] * (of_j * of_k);
      }
    }
  }
}

static void add_pattern_values(const uint16_t* pattern, const double* entry, int n, double* sum) {
  lookup_add(sum, pattern, entry, n);
}

}  // namespace sapwood::inline SAPWOOD_ISA
