// What a table may be: dense, sparse, by columns; everything is checked here, once.
#include "bind/tables.h"

namespace sapwood {

DType kind_of(const AnyArray& a) {
  if (a.dtype() == nb::dtype<bool>()) {
    return DType::u8;
  }
  for (int k = 0; k <= (int)DType::u64; k++) {
    if (by_type((DType)k, [&](auto zero) {
          return a.dtype() == nb::dtype<decltype(zero)>();
        })) {
      return (DType)k;
    }
  }
  refuse("a column must hold float32, float64, integers or booleans in native byte order");
}

namespace {

Column column_of(const AnyArray& a, int64_t offset, int64_t stride) {
  const int64_t size = a.itemsize();
  return {static_cast<const char*>(a.data()) + offset * size, stride * size, kind_of(a)};
}

// Entries first .. last - 1 as a column of n_rows: sapwood.data.sparse.
Column stored_column(const AnyArray& values, const Ints& rows, int64_t first, int64_t last,
                     int64_t n_rows, double fill_value) {
  if (first < 0 || first > last || last > (int64_t)rows.shape(0) || values.ndim() != 1 ||
      values.shape(0) != rows.shape(0)) {
    refuse("the entries of a sparse table do not fit together");
  }
  const int32_t* at = rows.data();
  for (int64_t i = first, above = -1; i < last; above = at[i++]) {
    if (at[i] <= above || at[i] >= n_rows) {
      refuse("the rows of a sparse column must rise, and lie within the table");
    }
  }
  Column column = column_of(values, first * values.stride(0), values.stride(0));
  column.rows = at + first;
  column.n_stored = last - first;
  column.fill_value = fill_value;
  return column;
}

RowLists row_lists(const AnyArray& values, const Ints& columns, const Longs& offset,
                   int64_t n_columns, double fill_value) {
  const int64_t n = (int64_t)columns.shape(0);
  bool fine = values.ndim() == 1 && (int64_t)values.shape(0) == n && offset.data()[0] == 0 &&
              offset.data()[offset.shape(0) - 1] == n;
  for (size_t i = 1; i < offset.shape(0); i++) {
    fine = fine && offset.data()[i - 1] <= offset.data()[i];
  }
  for (int64_t i = 0; i < n; i++) {
    fine = fine && columns.data()[i] >= 0 && columns.data()[i] < n_columns;
  }
  if (!fine) {
    refuse("the entries of a sparse table do not fit together");
  }
  return {offset.data(), columns.data(), column_of(values, 0, values.stride(0)), fill_value,
          (int)n_columns};
}

Chunk sparse_chunk(nb::handle table) {
  const AnyArray values = nb::cast<AnyArray>(table.attr("values"));
  const Ints index = nb::cast<Ints>(table.attr("index"));
  const Longs offset = nb::cast<Longs>(table.attr("offset"));
  const auto n_rows = nb::cast<int64_t>(table.attr("n_rows"));
  const auto n_columns = nb::cast<int64_t>(table.attr("n_columns"));
  const double fill_value = nb::cast<double>(table.attr("absent"));
  const bool by_rows = nb::cast<bool>(table.attr("by_rows"));
  if ((int64_t)offset.shape(0) != (by_rows ? n_rows : n_columns) + 1) {
    refuse("the entries of a sparse table do not fit together");
  }
  Chunk chunk;
  chunk.n_rows = n_rows;
  if (by_rows) {
    chunk.lists = row_lists(values, index, offset, n_columns, fill_value);
  }
  for (int64_t c = 0; c < n_columns && !by_rows; c++) {
    chunk.columns.push_back(
        stored_column(values, index, offset.data()[c], offset.data()[c + 1], n_rows, fill_value));
  }
  return chunk;
}

}  // namespace

Chunk chunk_of(nb::handle table, bool by_rows) {
  Chunk chunk;
  AnyArray a;
  if (nb::hasattr(table, "by_rows")) {
    chunk = sparse_chunk(table);
    if (chunk.lists && !by_rows) {
      refuse("sparse rows can be predicted only; give columns");
    }
    return chunk;
  }
  if (nb::try_cast(table, a)) {
    if (a.ndim() != 2) {
      refuse("a table must have 2 dimensions");
    }
    chunk.n_rows = (int64_t)a.shape(0);
    const Column first = column_of(a, 0, a.stride(0));
    const int64_t next = a.stride(1) * (int64_t)a.itemsize();
    chunk.columns.assign(a.shape(1), first);
    for (size_t c = 0; c < a.shape(1); c++) {
      chunk.columns[c].data += (int64_t)c * next;
    }
    return chunk;
  }
  chunk.n_rows = -1;
  for (nb::handle item : table) {
    AnyArray column;
    const bool sparse = !nb::try_cast(item, column);
    if (!sparse && column.ndim() != 1) {
      refuse("a column must have 1 dimension");
    }
    const int64_t n = sparse ? nb::cast<int64_t>(item.attr("n_rows")) : (int64_t)column.shape(0);
    if (chunk.n_rows >= 0 && n != chunk.n_rows) {
      refuse("the columns of a table must have one length");
    }
    chunk.n_rows = n;
    if (sparse) {
      const Ints rows = nb::cast<Ints>(item.attr("rows"));
      chunk.columns.push_back(stored_column(nb::cast<AnyArray>(item.attr("values")), rows, 0,
                                            (int64_t)rows.shape(0), n,
                                            nb::cast<double>(item.attr("absent"))));
    } else {
      chunk.columns.push_back(column_of(column, 0, column.stride(0)));
    }
  }
  return chunk;
}

std::vector<Chunk> chunks_of(nb::sequence tables, bool dealt) {
  std::vector<Chunk> chunks;
  for (nb::handle t : tables) {
    Chunk c = chunk_of(t);
    if (c.columns.empty()) {
      refuse("a table needs at least one column");
    }
    if (!chunks.empty() && c.columns.size() != chunks[0].columns.size()) {
      refuse("all chunks must have the same columns");
    }
    if (c.n_rows > 0x7fffffff) {
      refuse("a chunk holds at most 2^31 - 1 rows; give the data in several chunks");
    }
    if (c.n_rows > 0 || (dealt && nb::len(tables) == 1)) {
      chunks.push_back(std::move(c));
    }
  }
  if (chunks.empty()) {
    refuse("there are no rows");
  }
  return chunks;
}

RawTable table_of(const AnyArray& a) {
  const DType kind = kind_of(a);
  if (a.ndim() != 2 || (kind != DType::f32 && kind != DType::f64) || a.stride(1) != 1 ||
      a.stride(0) != (int64_t)a.shape(1)) {
    refuse("a table of values must be float32 or float64, row by row");
  }
  if (a.shape(0) > 0x7fffffff) {
    refuse("linear leaves take at most 2^31 - 1 rows");
  }
  return {a.data(), kind == DType::f64, (int)a.shape(1)};
}

LinearView terms_of(const Longs& offset, const Ints& column, const Doubles& coef,
                    const Doubles& bounds, size_t n, int n_columns) {
  const int64_t* at = offset.data();
  if (offset.shape(0) != n + 1 || at[0] != 0 || at[n] != (int64_t)column.shape(0) ||
      column.shape(0) != coef.shape(0)) {
    refuse("the terms of leaves must fit together");
  }
  const bool bounded = bounds.shape(0) > 0;
  if (bounded) {
    n_columns = std::min(n_columns, (int)std::min<size_t>(bounds.shape(0) / 3, INT32_MAX));
  }
  for (size_t i = 0; i < n; i++) {
    if (at[i] > at[i + 1]) {
      refuse("the terms of leaves must follow each other");
    }
    for (int64_t j = at[i]; j < at[i + 1]; j++) {
      if (j == at[i] ? column.data()[j] != -1
                     : column.data()[j] < 0 || column.data()[j] >= n_columns) {
        refuse("a leaf has a constant and then coefficients of columns");
      }
    }
  }
  return {at, column.data(), coef.data(), bounded ? bounds.data() : nullptr};
}

}  // namespace sapwood
