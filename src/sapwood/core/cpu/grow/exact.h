// Exact trees: every value of every column is a candidate, as in a histogram with a bin for each of them, to the last
// bit. Enters: rows and their codes (ranks), sorted by each column. Leaves: the best split of a node, or of a level.
//
//   column 0  | r7 r2 r9 r4 r0 ...  missing |      once: rows by rising code
//   node 1    | r7 r9 ... | r2 r4 r0 ...    |      a split partitions every list, stably: a node is one segment of each
//   sums      | q7+q9 | ...                        rows of equal code make one bin; codes that a node lacks make none
//
// Values that do not occur in the node are skipped. That loses nothing: a cut there has the sums of the cut before it,
// and ties go to the lower bin. Only a cut below the node's smallest value needs a bin: an empty one of code 0.
#pragma once
#include "cpu/grow/growth_core.h"

namespace sapwood {

struct SortedColumns {  // of a whole table
  SortedColumns(const Binned& b, int n_threads);
  int64_t n_rows;
  Memory rows, codes;  // (columns, n_rows)
};

struct SortedBuffers {       // what ExactGrowth keeps from tree to tree
  Memory rows[2], codes[2];  // (columns, rows): a split reads one and writes the other
  Memory goes_right;         // a bit a row
  struct Scratch {           // of one worker
    Memory sums, values, bits;
  };
  std::vector<Scratch> scratch;
};

class ExactGrowth : public GrowthCore {
 public:
  ExactGrowth(const GrowInput& in, TreeBuffers& buffers, SortedBuffers& sorted);
  void choose(int32_t id) override;
  bool choose_level(const NodeIds& level) override;

 private:
  struct SortedRows {  // the rows of a node in the order of one column, missing last
    const int32_t* rows;
    const uint32_t* codes;
    int64_t n;
  };
  struct ValueSums {  // a column's values in a node, and their sums
    ColumnHistogram bins;
    int lead;  // 1: bin 0 is the empty one
  };

  void fill_root(int32_t id) override;
  void fill_children(bool search) override;
  int threads_for_rows(int64_t n_rows) const;
  void set_sides(const int32_t* rows, int64_t n, bool right);
  void partition(const SortedRows& from, int c, int buffer, int64_t begin, int worker);
  void scan(const Node& n, int32_t id, int c, Candidate& best, int worker);
  LevelSplit scan_level(const NodeIds& level, int c, double bar, int worker);
  ValueSums value_sums(const SortedRows& s, int c, int worker);
  void count_rows(const SortedRows& s, const ValueSums& x, std::vector<int64_t>& count) const;
  SortedRows sorted(const Memory& rows, const Memory& codes, int c, int64_t begin, int64_t n) const;
  SortedRows sorted(const Node& n, int c) const;
  Sums row(int64_t r) const;
  Sums sum(const SortedRows& s, int64_t begin, int64_t end) const;

  const Gradients& q_ = in_.gradients;
  SortedBuffers& w_;
  const Kernels& k_ = kernels();
  const int64_t n_ = in_.sorted->n_rows;         // rows of the table
  const size_t words_ = ((size_t)n_ + 63) / 64;  // of bits, one a row
  std::vector<Candidate> found_;
};

}  // namespace sapwood
