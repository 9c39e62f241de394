// SparseColumns: most rows of a sparse column have one code, its default code; only the other rows
// are listed.
// Enters: sparse columns and their cuts. Leaves: the listed rows of each, and which columns share a
// slot.
//
//   columns     a  b  c       a bundle of a and b      lists of a, b and c
//   row 0       .  2  .       first(b) + 2             first(b) + 2
//   row 1       1  .  3       first(a) + 1             first(a) + 1, first(c) + 3   a and c overlap: not in one bundle
//   row 2       .  .  .       0                        (nothing)
//
// Sums of the default code are not accumulated row by row: they are the node's sums less those of
// the other codes.
#pragma once
#include "cpu/data/table.h"
#include "host/memory.h"
#include "records/layout.h"

namespace sapwood {

struct Entries {          // the listed rows of one column in a shard
  const int32_t* rows;    // (n) rising
  const uint16_t* codes;  // (n) none of them the default code
  int64_t n;
};

class SparseColumns {  // the sparse columns of a shard
 public:
  SparseColumns() = default;
  // default_code (columns): -1 where a column is not stored sparsely. Until `keep`, rows are read
  // where the chunk has them.
  SparseColumns(const Chunk& chunk, const std::vector<int>& default_code,
                const std::vector<PaddedCuts>& cuts, int n_threads);
  Entries of(int column) const {
    return {rows_of_[column], codes_.as<uint16_t>() + begin_[column], count_[column]};
  }
  void keep(const std::vector<uint8_t>& wanted);  // only some columns; their rows are copied
  size_t n_bytes() const { return rows_.size() + codes_.size(); }

 private:
  Memory rows_, codes_;
  std::vector<int64_t> begin_, count_;   // (columns)
  std::vector<const int32_t*> rows_of_;  // (columns)
  // (columns) rows, where some stored values have the default code
  std::vector<std::vector<int32_t>> filtered_;
};

struct RowCodes {  // slot codes of lists, row by row
  Memory offset;   // (n_rows + 1) uint32
  Memory codes;    // (entries) uint16, rising within a row
  RowCodes(const SparseColumns& sparse, const Layout& layout, const Slot& slot, int64_t n_rows);
};

// The code of what sparse columns do not store, where at most a quarter of their rows is stored;
// else -1.
std::vector<int> default_codes(const std::vector<Chunk>& chunks,
                               const std::vector<PaddedCuts>& cuts);

// Which sparse columns share a slot; n_codes (columns): of values, and the missing one where there
// are any.
std::vector<BundlePlan> bundle_columns(const std::vector<SparseColumns>& shards,
                                       const std::vector<int64_t>& first, int64_t n_rows,
                                       const std::vector<int>& default_code,
                                       const std::vector<int>& n_bins,
                                       const std::vector<uint8_t>& has_missing);

}  // namespace sapwood
