// Listing: codes in a form that depends on nothing but the codes. Columns in which most rows have
// one code are saved as lists of the other rows.
// Enters: a Binned of any layout. Leaves: what datasets save, and what their fingerprints are made
// of.
#pragma once
#include "cpu/data/binned.h"

namespace sapwood {

struct Listing {
  std::vector<int32_t> column;         // (k) rising
  std::vector<uint16_t> default_code;  // (k) the code of the rows that are not listed
  std::vector<int64_t> offset{0};      // (k + 1) into what follows
  std::vector<uint32_t> row;           // rising within a column
  std::vector<uint16_t> code;
};

Listing list_codes(const Binned& binned, int n_threads);
// (columns) the default code of those that are listed, or -1
std::vector<int> listed_defaults(const Binned& binned);

}  // namespace sapwood
