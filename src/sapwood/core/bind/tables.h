// Tables of Python as the core reads them: views into Python's memory, which the caller keeps alive.
#pragma once
#include "bind/arrays.h"
#include "cpu/data/table.h"
#include "cpu/leaf/linear.h"

namespace sapwood {

DType kind_of(const AnyArray& a);
// A 2-D array, a sparse table, or a sequence of 1-D and sparse columns.
Chunk chunk_of(nb::handle table, bool by_rows = false);
std::vector<Chunk> chunks_of(nb::sequence tables);  // at least one, all with rows and the same columns
RawTable table_of(const AnyArray& a);

}  // namespace sapwood
