// Combinations: columns of categories that a model makes of others (NUMERICS, combinations).
// Enters: a table, categories as codes. Leaves: a code for every combination and row.
#pragma once
#include <stdint.h>

#include "cpu/data/table.h"

namespace sapwood {

struct Combinations {  // as in sapwood/model/combine.py
  int64_t n;
  const int64_t* offset;      // (n + 1) first source of each, and the end
  const int32_t* column;      // (n_sources)
  const int32_t* n_codes;     // (n_sources) categories; 0: a number
  const double* threshold;    // (n_sources) of numbers
  const int64_t* key_offset;  // (n + 1) first key of each, and the end
  const int64_t* key;         // rising within each
};

// code (n, n_rows) OUT: -1 where a row's states are none of the keys.
void combine(const Combinations& c, const Chunk& table, int32_t* code, int n_threads);

}  // namespace sapwood
