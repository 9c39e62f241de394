// LinearUnits: the columns as linear leaves in standard units read them (NUMERICS, Linear leaves).
// Enters: the table behind the bins. Leaves: bounds and units by column, and the table in fixed
// point.
#pragma once
#include <vector>

#include "cpu/data/binned.h"
#include "records/linear.h"

namespace sapwood {

struct LinearUnits {
  // (n_columns, 3) lowest and highest value of a line, and the mean: missing values count as it
  std::vector<double> bounds;
  // (n_columns) the standard deviation; 0: the column has no coefficients
  std::vector<double> unit;
  std::vector<int> exponent;  // (n_columns) one step of the fixed point is 2^(exponent - STANDARD)
  Memory values;              // (n, n_columns) int16, in fixed point around the mean

  // given (n_columns, 3): the bounds of a model that the training continues, or null
  LinearUnits(const RawTable& table, const Binned& binned, const RowWeights& weights,
              const double* given, int n_threads);
};

}  // namespace sapwood
