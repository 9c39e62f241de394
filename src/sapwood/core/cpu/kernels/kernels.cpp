// All kernels for one instruction set: compiled once for each, with SAPWOOD_ISA naming the
// namespace they live in.
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/binning.h"
#include "cpu/kernels/gradient_pass.h"
#include "cpu/kernels/histogram.h"
#include "cpu/kernels/linear_sums.h"
#include "cpu/kernels/pairs.h"
#include "cpu/kernels/partition.h"
#include "cpu/kernels/predict.h"
#include "cpu/kernels/row_sample.h"
#include "cpu/kernels/shap.h"
#include "cpu/kernels/sorted_sums.h"
#include "cpu/kernels/split_scan.h"

#define SAPWOOD_JOIN_(a, b) a##b
#define SAPWOOD_JOIN(a, b) SAPWOOD_JOIN_(a, b)
#define SAPWOOD_TEXT_(a) #a
#define SAPWOOD_TEXT(a) SAPWOOD_TEXT_(a)

namespace sapwood {

const Kernels* SAPWOOD_JOIN(kernels_, SAPWOOD_ISA)() {
  static constexpr Kernels table = {
      {gradients, evaluate, quantise, project, max_abs_bits, clear_rows, to_fixed, knots, margins,
       add_leaf_values, gradient_norms, abs_gradients, sample_rows, requantise, select_window,
       apply_link, pairs, places, list_exp},
      {histogram, histogram_outputs, histogram_wide, histogram_pairs, histogram_lists,
       histogram_lists_pairs, flush, add, subtract, subtract_packed, pack, marginalise,
       sorted_sums},
      {scan_column, may_split, scan_level, scan_level_cosine, scan_tails, codes_in_node, mark,
       move},
      {find_leaves, sum_by_leaf, linear_sums, add_lines, add_block_values, add_block_lines,
       add_group_lines, find_leaves_symmetric, answer_splits, find_leaves_shared, goes_left,
       match_patterns, leaf_shap_values, leaf_shap_interactions, add_pattern_values},
      {transpose16, interleave, bin32<uint16_t>, bin64<uint16_t>, bin32<uint8_t>, bin64<uint8_t>,
       rank},
      SAPWOOD_TEXT(SAPWOOD_ISA),
  };
  return &table;
}

}  // namespace sapwood
