// Binned: the codes of a table, the immutable form that trees are grown on. Enters: chunks and
// cuts. Leaves: shards.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cpu/data/cuts.h"
#include "cpu/data/sparse_columns.h"
#include "cpu/data/table.h"
#include "cpu/data/weights.h"
#include "cpu/kernels/kernels.h"
#include "host/memory.h"
#include "records/layout.h"
#include "records/reduce.h"

namespace sapwood {

// The codes of some consecutive rows, twice:
//   blocks  row-major, up to 32 slots side by side: what histograms read
//   planes  one slot after the other, padded: what partitions read
// Slots that are lists have instead:
//   lists   row by row: what histograms read
//   sparse    column by column: what partitions read
struct Shard {
  int64_t n_rows = 0;
  int64_t first = 0;  // where its rows begin in the arrays by row of this process
  // global position of its first row among the rows of all holders: what draws are made from
  int64_t position = 0;
  Memory blocks, planes;
  std::vector<size_t> plane_at;  // (slots) bytes
  std::vector<RowCodes> lists;   // (slots that are lists)
  SparseColumns sparse;          // their columns
};

// Of the plane of a slot: readable a block past its end.
inline size_t plane_bytes(int64_t n_rows, const Slot& s) {
  return ((size_t)n_rows * s.code_bytes + BLOCK + 63) / 64 * 64;
}

class Binned {
 public:
  // exact: for trees that evaluate every value; 32-bit codes in planes only, all chunks in one
  // shard
  // n_categories (n_columns): for columns that hold category codes, int32, negative where missing;
  // 0 for numbers
  // fuse: columns with few codes share slots, which changes no sum; not given: wherever that is
  // faster
  // throws std::invalid_argument: a code is too large
  Binned(const std::vector<Chunk>& chunks, std::vector<std::vector<double>> cuts,
         const std::vector<int>& n_categories, bool exact, std::optional<bool> fuse, int n_threads,
         std::shared_ptr<const Reduce> reduce = nullptr,
         const std::vector<int64_t>& positions = {});
  // A table whose codes are stored, or to be filled in: its only shard has `held` rows. The layout
  // is that of n_rows rows, in which the columns marked by `missing` (n_columns) have missing
  // values.
  struct Plan {
    std::vector<std::vector<double>> cuts;
    std::vector<int> n_categories;
    std::vector<uint8_t> missing;
    int64_t n_rows;
    bool grows = true;  // trees will grow on it; without that it has no blocks
  };
  struct Codes {  // what a shard of a plan consists of
    Memory blocks, planes;
  };
  Binned(Plan plan, int64_t held, std::optional<Codes> stored);
  // Codes that are known, column by column: `add_codes` for each of them, then `finish`.
  template <class Code>
  void add_codes(int column, const Code* codes);  // (n_rows); each column once
  void finish(int n_threads);
  Binned(const Binned&) = delete;
  // Codes of n rows of a chunk, from row `from` on, into the only shard, from row `to` on; false: a
  // column has missing values and is not marked.
  bool fill(const Chunk& chunk, int64_t from, int64_t n, int64_t to, int n_threads);
  bool codes_fit(int n_threads) const;   // whether no code is beyond those that its slot has
  std::shared_ptr<const Reduce> reduce;  // over the holders of rows; null: all rows are here
  int64_t n_rows = 0;                    // of this process
  int64_t n_total = 0;                   // of all holders
  int n_columns = 0;
  bool exact = false;
  std::vector<std::vector<double>> cuts;
  std::vector<int> n_bins;  // of values; the code n_bins means missing
  std::vector<uint8_t> has_missing, is_category;
  bool any_category = false;
  std::vector<int> default_code;  // the default code of a sparse column, or -1
  Layout layout;
  std::vector<Shard> shards;
  size_t n_bytes() const;
  void* block(const Shard& s, const SlotBlock& b) const {
    return s.blocks.as<char>() + (size_t)s.n_rows * b.offset;
  }
  void* plane(const Shard& s, int slot) const { return s.planes.as<char>() + s.plane_at[slot]; }
  uint32_t slot_code(const Shard& s, int slot, int64_t row) const {
    const void* codes = plane(s, slot);
    const size_t bytes = layout.slots[slot].code_bytes;
    return bytes == 1   ? ((const uint8_t*)codes)[row]
           : bytes == 2 ? ((const uint16_t*)codes)[row]
                        : ((const uint32_t*)codes)[row];
  }
  uint32_t code(const Shard& s, int column, int64_t row) const;
  template <class Code>
  void codes(int column, int64_t from, int64_t n, Code* out) const;  // of consecutive rows, (n) OUT
  // The code that a split of a column tests: that of its slot, or the column's own where the slot
  // is a list.
  uint32_t split_code(const Shard& s, int column, int64_t row) const {
    const int slot = layout.members[column].slot;
    return layout.slots[slot].lists() ? listed_code(s, column, row) : slot_code(s, slot, row);
  }

 private:
  std::vector<SparseColumns> encode_sparse(const std::vector<Chunk>& chunks,
                                           const std::vector<PaddedCuts>& ready,
                                           std::optional<bool> fuse, int n_threads);
  void find_missing(const std::vector<Chunk>& chunks, int64_t rows, int n_threads);
  void set_columns(const std::vector<int>& n_categories);
  Shard new_shard(int64_t n_rows, std::optional<Codes> stored = {}, bool grows = true);
  void fill_block(const Shard& shard, const SlotBlock& b, int64_t at, int n) const;
  void add_shard(Shard shard);
  template <class Code>
  void encode_column(const Chunk& chunk, int c, int64_t at, int n, const PaddedCuts& ready,
                     const float* single, Code* code) const;
  template <class Code, class TransposedStripe>
  void encode_slot(const Chunk& chunk, int slot, int64_t at, int n,
                   const std::vector<PaddedCuts>& ready, TransposedStripe& stripe, Code* code,
                   std::vector<uint8_t>& gone) const;
  void encode_shard(const Chunk& chunk, SparseColumns sparse, const std::vector<PaddedCuts>& ready,
                    int n_threads);
  // missing (columns) OUT: 1 where a value is
  void encode_rows(const Chunk& chunk, int64_t from, int64_t n, Shard& shard, int64_t to,
                   const std::vector<PaddedCuts>& ready, int n_threads,
                   std::vector<uint8_t>& missing) const;
  void encode_bundles(Shard& shard, SparseColumns sparse, int n_threads);
  uint32_t listed_code(const Shard& s, int column, int64_t row) const;
  void rank_chunks(const std::vector<Chunk>& chunks, const std::vector<PaddedCuts>& ready,
                   int n_threads);
};

}  // namespace sapwood
