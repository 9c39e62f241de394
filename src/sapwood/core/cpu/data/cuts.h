// Cuts: the borders of the bins of each column. Enters: chunks of a table. Leaves: rising float64 numbers by column.
#pragma once
#include <vector>

#include "cpu/data/table.h"

namespace sapwood {

constexpr int EVERY_VALUE = 0x7fffffff;  // as max_bins: a bin for every value, however many, found from all rows
std::vector<std::vector<double>> find_cuts(const std::vector<Chunk>& chunks, const double* weight, int max_bins,
                                           int min_samples_bin, int n_threads);

}  // namespace sapwood
