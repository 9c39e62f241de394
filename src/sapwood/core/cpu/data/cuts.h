// Cuts: the borders of the bins of each column. Enters: chunks of a table. Leaves: rising float64
// numbers by column.
#pragma once
#include <vector>

#include "cpu/data/table.h"
#include "records/reduce.h"

namespace sapwood {

// as max_bins: a bin for every value, however many, found from all rows
constexpr int EVERY_VALUE = 0x7fffffff;
// a column with more than max_bins values is cut by this many rows at most
constexpr int64_t SAMPLE_ROWS = 200000;
// bins that min_samples_bin leaves to a column with more than max_bins values
constexpr int MIN_BIN_BUDGET = 128;

// weight (rows of this process) or null. positions: by chunk, the global position of its first row,
// where rows are dealt to several holders (reduce); EVERY_VALUE is for one holder.
std::vector<std::vector<double>> find_cuts(const std::vector<Chunk>& chunks, const double* weight,
                                           int max_bins, int min_samples_bin, int n_threads,
                                           const Reduce* reduce = nullptr,
                                           const std::vector<int64_t>& positions = {});

}  // namespace sapwood
