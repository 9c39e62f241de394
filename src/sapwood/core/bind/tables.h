// Tables of Python as the core reads them: views into Python's memory, which the caller keeps
// alive.
#pragma once
#include "bind/arrays.h"
#include "cpu/data/binned.h"
#include "cpu/data/table.h"
#include "cpu/leaf/linear.h"
#include "records/tree.h"

namespace sapwood {

DType kind_of(const AnyArray& a);
// A 2-D array, a sparse table, or a sequence of 1-D and sparse columns.
Chunk chunk_of(nb::handle table, bool by_rows = false);
// At least one, all with the same columns and with rows; a holder of dealt rows may have one chunk
// of no rows.
std::vector<Chunk> chunks_of(nb::sequence tables, bool dealt = false);
// of each column, checked
std::vector<std::vector<double>> cuts_of(nb::sequence cut_list, bool exact);
RawTable table_of(const AnyArray& a);
// A tree whose splits are over the codes of a binned table, checked.
TreeView tree_over(const Binned& b, const Ints& column, const Ints& bin, const Bytes& missing_left,
                   const Ints& left, const Ints& set, const Longs& set_offset,
                   const Ints& set_code);
// The linear terms of n leaves or nodes; each begins with its intercept. bounds: empty in raw
// units.
LinearView terms_of(const Longs& offset, const Ints& column, const Doubles& coef,
                    const Doubles& bounds, size_t n, int n_columns);

}  // namespace sapwood
