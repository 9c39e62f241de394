// Slots: where the codes of columns lie, and where their sums do. Logical columns stay what splits, rules and samples speak of.
// Enters: how many codes every column has. Leaves: slots, groups of slots side by side, places in a histogram.
//
//   column      0      1      2      3                4
//   codes       256    2      3      20,000           4
//   slot        0      1 = 1 * c1 + 2 * c2 + 6 * c4   2 (column 3)        one update a row serves columns 1, 2 and 4
//   histogram   | slot 0: 264 | slot 1: 264 | slot 2: 20,008 | sums of columns 1, 2, 4, unfolded from slot 1 |
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace sapwood {

struct Member {  // how a slot holds a column: the column's code is slot code / step % n
  int slot;
  uint32_t step, n;
  uint32_t code(uint32_t slot_code) const { return slot_code / step % n; }
};

struct Slot {
  std::vector<int> columns;  // its members, by rising step; a single one's codes are the slot's
  int n_codes;
  size_t code_bytes;  // 1 or 2; 4 in exact tables
  bool fused() const { return columns.size() > 1; }
};

struct Group {  // slots first .. first + width - 1 side by side, rows `stride` codes apart
  int first, width;
  size_t code_bytes, stride, offset;  // offset: bytes of a row before this group
};

struct Layout {
  std::vector<Slot> slots;      // those of a byte first
  std::vector<Member> members;  // (columns)
  std::vector<Group> groups;    // of slots; none in exact tables, which have no histograms
  size_t row_bytes = 0;         // over all groups
  bool wide = false;            // some slot takes more than a byte
  bool in_order = true;         // slot k holds column k
  // Places in a histogram, in sums:
  std::vector<size_t> slot_at;    // (slots)
  std::vector<size_t> column_at;  // (columns) its slot's, or of what is unfolded from it
  size_t n_slot_sums = 0, n_sums = 0;

  void by_slot(std::vector<int>& columns) const;  // rising columns in the order of their slots
};

// n_bins (columns): of values; exact: for trees that look at every value.
Layout lay_out(const std::vector<int>& n_bins, bool exact);

}  // namespace sapwood
