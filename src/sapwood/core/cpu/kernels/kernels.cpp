// All kernels for one instruction set: compiled once for each, with SAPWOOD_ISA naming the namespace they live in.
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/binning.h"
#include "cpu/kernels/gradient_pass.h"
#include "cpu/kernels/histogram.h"
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
      SAPWOOD_TEXT(SAPWOOD_ISA),
      gradients,
      evaluate,
      top_bits,
      to_fixed,
      knots,
      margins,
      add_leaves,
      sizes,
      abs_gradients,
      ask,
      weigh,
      window,
      histogram,
      histogram_outputs,
      histogram_wide,
      histogram_pairs,
      histogram_lists,
      histogram_lists_pairs,
      flush,
      add,
      subtract,
      subtract_packed,
      pack,
      marginalise,
      scan,
      promising,
      scan_level,
      scan_level_cosine,
      scan_tails,
      live,
      mark,
      move,
      leaves,
      sum_leaves,
      add_values,
      symmetric,
      turn,
      interleave,
      bin32<uint16_t>,
      bin64<uint16_t>,
      bin32<uint8_t>,
      bin64<uint8_t>,
      rank,
      sorted_sums,
      link,
      keeps_left,
      patterns,
      leaf_columns,
      leaf_pairs,
      add_entries,
  };
  return &table;
}

}  // namespace sapwood
