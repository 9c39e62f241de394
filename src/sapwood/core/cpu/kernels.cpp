// All kernels for one instruction set: compiled once for each, with SAPWOOD_ISA naming the namespace they live in.
#include "kernels.h"

#include "ask.h"
#include "binning.h"
#include "compact.h"
#include "histogram.h"
#include "lanes.h"
#include "partition.h"
#include "predict.h"
#include "rows.h"
#include "split.h"

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
      plain_sizes,
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
      unfold,
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
      weave,
      bin32<uint16_t>,
      bin64<uint16_t>,
      bin32<uint8_t>,
      bin64<uint8_t>,
      rank,
      compact,
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
