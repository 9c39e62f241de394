// Crosses: columns of numbers that a model makes of others (NUMERICS, crosses).
// Enters: a table, categories as codes. Leaves: a number for every cross and row.
#pragma once
#include <stdint.h>

#include "cpu/data/table.h"
#include "math/cross.h"

namespace sapwood {

struct Crosses {  // as in sapwood/data/crosses.py
  int64_t n;
  const uint8_t* kind;    // (n) CrossKind
  const int32_t* left;    // (n) a column of numbers
  const int32_t* right;   // (n) a column of numbers; of a centred one a column of categories
  const int64_t* offset;  // (n + 1) first mean of each, and the end
  // of a centred one: by code, then that of missing and that of unseen categories
  const double* mean;
};

// value (n, n_rows) OUT: NaN where it is not finite.
void cross(const Crosses& c, const Chunk& table, float* value, int n_threads);

}  // namespace sapwood
