// Layout: in which slot the codes of each column are stored, and where the slot's sums are in a
// histogram. Splits, constraints and samples always name columns, never slots.
// Enters: the number of codes of every column. Leaves: slots, blocks of slots side by side, places
// in a histogram.
//
//   column     | 0   | 1 | 2 | 3      | 4 |
//   codes      | 256 | 2 | 3 | 20,000 | 4 |
//   slot       | 0: c0 | 1: c1 + 2 c2 + 6 c4 | 2: c3, in 16 bits |      one update per row serves columns 1, 2, 4
//   histogram  | slot 0: 264 | slot 1: 264 | slot 2: 20,008 | sums of columns 1, 2, 4, marginals of slot 1: 8 each |
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace sapwood {

// how a slot holds a column: the column's code is slot code / step % n in a fused slot;
struct Member {
  int slot = 0;
  uint32_t step = 1, n = 0;
  // in a bundle or row lists it is slot code - first, if that is one of its n codes,
  uint32_t first = 0;
  int default_code = -1;  // else default_code
};

// Sparse columns (sparse_columns.h) in one slot: a bundle if no two of them differ from their
// default code in a row, else row lists.
struct BundlePlan {
  std::vector<int> columns;
  bool lists = false;
};

struct Slot {
  // its members, by falling step; a single member's codes are the slot's codes
  std::vector<int> columns;
  int n_codes;
  // 1 or 2; 4 in exact tables; 0: row lists, with any number of codes per row
  size_t code_bytes;
  bool bundled = false;  // a bundle or row lists: the codes of its sparse columns follow each other
  bool fused() const { return columns.size() > 1 && !bundled; }
  bool lists() const { return code_bytes == 0; }
};

struct SlotBlock {  // slots first .. first + width - 1 side by side, rows `stride` codes apart
  int first, width;
  size_t code_bytes, stride, offset;  // offset: bytes of a row before this block
};

struct Layout {
  std::vector<Slot> slots;        // those of a byte first
  std::vector<Member> members;    // (columns)
  std::vector<SlotBlock> blocks;  // of slots; empty in exact tables, which have no histograms
  size_t row_bytes = 0;           // over all blocks
  bool wide = false;              // some slot takes more than a byte, or has row lists
  int first_list = 0;             // slots from here on have row lists
  bool in_order = true;           // slot k holds column k
  // Places in a histogram, in sums:
  std::vector<size_t> slot_at;    // (slots)
  std::vector<size_t> column_at;  // (columns) that of its slot, or of its marginal sums
  size_t n_slot_sums = 0, n_sums = 0;

  const Slot& slot_of(int column) const { return slots[members[column].slot]; }
  // f(slot code, column code) for every code of a column's slot
  template <class F>
  void each_code(int column, F&& f) const {
    const Member& m = members[column];
    const uint32_t end = (uint32_t)slots[m.slot].n_codes;
    if (slots[m.slot].bundled) {
      for (uint32_t k = 0; k < end; k++) {
        f(k, k - m.first < m.n ? k - m.first : (uint32_t)m.default_code);
      }
      return;
    }
    for (uint32_t at = 0, code = 0; at < end; code = code + 1 == m.n ? 0 : code + 1) {
      for (uint32_t k = 0; k < m.step; k++) {
        f(at++, code);
      }
    }
  }
  void by_slot(std::vector<int>& columns) const;  // rising columns in the order of their slots
};

constexpr int MAX_MEMBERS = 8;  // of a slot: 2^8 codes in all

bool may_fuse(int n_bins, int64_t n_rows);  // whether a column has few enough bins for a fused slot

// n_bins, missing, default_code (columns): bins of values, whether some are missing, and see
// sparse_columns.h. n_rows: the more rows, the more slots are fused; 0: none. exact: a table for
// exact trees.
Layout lay_out(const std::vector<int>& n_bins, const std::vector<uint8_t>& missing,
               const std::vector<int>& default_code, const std::vector<BundlePlan>& plans,
               int64_t n_rows, bool exact);

}  // namespace sapwood
