// Ordered target statistics: a row's category as a number, from the labels of the rows before it
// (NUMERICS).
#pragma once
#include <stdint.h>

#include <vector>

#include "cpu/data/table.h"

namespace sapwood {

// A random order of the rows with a positive count, one for every `which`. count (n), or null: all
// rows.
std::vector<int32_t> hash_order(uint64_t seed, uint64_t which, const int32_t* count, int64_t n);

struct Encode {
  // by column: (n) 0 .. n_codes - 1; -1: missing, -2: new, categories of their own
  std::vector<const int32_t*> code;
  std::vector<int32_t> n_codes;  // by column
  const int64_t* mass;           // (n_masses, n) what a row adds to the numerator
  int64_t n_masses;
  const int32_t* count;  // (n) what it adds to the denominator, or null: 1
  const int32_t* order;  // (n_order) the rows that count, first to last
  int64_t n_order, n;
  double mass_unit, count_unit;
  std::vector<double> priors;
};

// value (n_columns, n_masses, n_priors, n) OUT: from the rows before each; from all of them where a
// row does not count.
void encode(const Encode& what, double* value, int n_threads);
// The same as codes: of each value the number of cuts below it. cuts (n_columns * n_masses *
// n_priors): of 254 at most.
void encode(const Encode& what, const std::vector<PaddedCuts>& cuts, uint8_t* code, int n_threads);

// sum (n_masses + 1, n_codes + 1): what all rows of each code add up to, and last what they count
// for; codes below 0 come last. It is 0 before the call.
void sum_by_code(const int32_t* code, int32_t n_codes, const int64_t* mass, int64_t n_masses,
                 const int32_t* count, int64_t n, int64_t* sum);

}  // namespace sapwood
