// CutSketch: the cuts of a table that streams by once, in bounded memory: those that find_cuts has
// from the whole table.
// Enters: chunks of consecutive rows, in any sizes. Leaves: cuts, and which columns have missing
// values.
//
// Of a column it keeps the distinct values, while there are few, and the values of the sample. The
// rows of the sample are those with the smallest draws by position, so they are known as soon as a
// row has come: a row that is not among the smallest now will never be.
#pragma once
#include <vector>

#include "cpu/data/cut_walk.h"
#include "cpu/data/distinct.h"
#include "cpu/data/table.h"
#include "cpu/data/weights.h"

namespace sapwood {

class CutSketch {
 public:
  CutSketch(int n_columns, int max_bins);
  // weight (chunk.n_rows) or null: for all chunks, or for none. Chunks come in the order of their
  // rows.
  void add(const Chunk& chunk, const double* weight, int n_threads);
  std::vector<std::vector<double>> cuts(int min_samples_bin, int n_threads);
  // (columns) 1 where some value is
  const std::vector<uint8_t>& missing() const { return missing_; }
  int64_t n_rows() const { return n_rows_; }
  bool integral() const { return WeightFacts(facts_).is_integral(nullptr); }  // the weights, so far

 private:
  struct Lane {  // of one column: the values of the sample, in float32 while that holds them
    std::vector<float> narrow;
    std::vector<double> wide;
    bool is_wide = false, many = false;
    KeySet seen;
    uint64_t last = 0;
    explicit Lane(int max_bins) : seen((size_t)max_bins) {}
    void push(double x);
    double at(size_t i) const { return is_wide ? wide[i] : (double)narrow[i]; }
    void keep(const std::vector<uint8_t>& kept);
  };
  void add_piece(const Chunk& chunk, const double* weight, int64_t at, int n, int n_threads);
  void shrink(int n_threads);  // to the rows of the sample

  int max_bins_;
  int64_t n_rows_ = 0;
  uint64_t ceiling_ = ~0ull;  // no draw above it is in the sample
  WeightFacts facts_;
  bool weighted_ = false;
  std::vector<Drawn> drawn_;      // of the rows that are kept
  std::vector<double> weight_;    // their weights
  std::vector<Lane> lanes_;       // (columns)
  std::vector<uint8_t> missing_;  // (columns)
};

}  // namespace sapwood
