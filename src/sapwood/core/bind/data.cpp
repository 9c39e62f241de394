// Bins: cuts, the codes of a table, trees over codes.
#include <nanobind/stl/vector.h>

#include "bind/reduce.h"
#include "bind/tables.h"
#include "cpu/data/binned.h"
#include "cpu/data/canonical_codes.h"
#include "cpu/rows/apply.h"
#include "host/resident.h"

namespace sapwood {

TreeView tree_over(const Binned& b, const Ints& column, const Ints& bin, const Bytes& missing_left,
                   const Ints& left, const Ints& set, const Longs& set_offset,
                   const Ints& set_code) {
  const size_t n = left.shape(0);
  if (n < 1 || column.shape(0) != n || bin.shape(0) != n || missing_left.shape(0) != n ||
      set.shape(0) != n || set_offset.shape(0) < 1) {
    refuse("the arrays of a tree must have one length");
  }
  for (size_t u = 0; u < n; u++) {
    const int32_t l = left.data()[u];
    const int32_t c = column.data()[u];
    const int32_t s = set.data()[u];
    if (l == 0) {
      continue;
    }
    if (l <= (int64_t)u || (size_t)l + 1 >= n || c < 0 || c >= b.n_columns) {
      refuse("not a tree over these bins");
    }
    if (s >= 0) {
      const int64_t* at = set_offset.data() + s;
      const int64_t n_codes = (int64_t)set_code.shape(0);
      if ((size_t)s + 1 >= set_offset.shape(0) || at[0] < 0 || at[0] > at[1] || at[1] > n_codes) {
        refuse("no such set");
      }
      for (int64_t i = at[0]; i < at[1]; i++) {
        if (set_code.data()[i] < 0 || set_code.data()[i] >= b.n_bins[c]) {
          refuse("a set holds codes of its column");
        }
      }
      continue;
    }
    if (bin.data()[u] < 0 || bin.data()[u] >= b.n_bins[c]) {
      refuse("not a tree over these bins");
    }
    if (bin.data()[u] == b.n_bins[c] - 1 && missing_left.data()[u]) {
      refuse("a split sends nothing to the right");
    }
  }
  return {column.data(), bin.data(), missing_left.data(), left.data(),
          (int)n,        set.data(), set_offset.data(),   set_code.data()};
}

std::vector<std::vector<double>> cuts_of(nb::sequence cut_list, bool exact) {
  std::vector<std::vector<double>> all;
  for (nb::handle item : cut_list) {
    const Doubles c = nb::cast<Doubles>(item);
    all.emplace_back(c.data(), c.data() + c.shape(0));
    for (size_t i = 0; i < all.back().size(); i++) {
      if (!(all.back()[i] - all.back()[i] == 0.0) ||
          (i > 0 && !(all.back()[i - 1] < all.back()[i]))) {
        refuse("cuts must be finite and rising");
      }
    }
    if (!exact && all.back().size() > 65534) {
      refuse("a column can have at most 65534 cuts");
    }
  }
  return all;
}

namespace {

void check_dealt(const std::shared_ptr<const Reduce>& reduce, const std::vector<int64_t>& positions,
                 const std::vector<Chunk>& chunks, bool exact) {
  if (reduce != nullptr && exact) {
    refuse("exact trees need all rows in one process");
  }
  if (positions.size() != (reduce == nullptr ? 0 : chunks.size())) {
    refuse("dealt rows have one position a chunk");
  }
}

nb::list cuts(nb::sequence tables, std::optional<Doubles> weight, int max_bins, int min_samples_bin,
              int n_threads, nb::object reduce, nb::sequence position_list) {
  const std::vector<int64_t> positions = list_of<int64_t>(position_list);
  const std::shared_ptr<const Reduce> holders = reduce_of(reduce);
  const auto chunks = chunks_of(tables, holders != nullptr);
  if ((max_bins < 2 || max_bins > 65535) && max_bins != EVERY_VALUE) {
    refuse("max_bins must be 2..65535");
  }
  if (min_samples_bin < 1) {
    refuse("min_samples_bin must be at least 1");
  }
  check_dealt(holders, positions, chunks, max_bins == EVERY_VALUE);
  const double* w = weights_of(weight, n_rows_of(chunks));
  threads_of(n_threads);
  auto found = without_gil([&] {
    return find_cuts(chunks, w, max_bins, min_samples_bin, n_threads, holders.get(), positions);
  });
  nb::list out;
  for (auto& c : found) {
    out.append(array(std::move(c)));
  }
  return out;
}

void new_binned(Binned* self, nb::sequence tables, nb::sequence cut_list, int n_threads, bool exact,
                std::optional<nb::sequence> n_categories, std::optional<bool> fuse,
                nb::object reduce, nb::sequence position_list) {
  const std::vector<int64_t> positions = list_of<int64_t>(position_list);
  std::shared_ptr<const Reduce> holders = reduce_of(reduce);
  const auto chunks = chunks_of(tables, holders != nullptr);
  check_dealt(holders, positions, chunks, exact);
  std::vector<std::vector<double>> all = cuts_of(cut_list, exact);
  if (all.size() != chunks[0].columns.size()) {
    refuse("there must be one list of cuts a column");
  }
  if (exact && n_rows_of(chunks) > 0x7fffffff) {
    refuse("exact trees take at most 2^31 - 1 rows");
  }
  const std::vector<int> categories =
      n_categories ? list_of<int>(*n_categories) : std::vector<int>(all.size(), 0);
  if (categories.size() != all.size()) {
    refuse("n_categories has one number a column");
  }
  for (size_t c = 0; c < all.size(); c++) {
    if (categories[c] == 0) {
      continue;
    }
    if (categories[c] < 0 || categories[c] > 65534) {
      refuse("a column can have at most 65534 categories");
    }
    if (exact || !all[c].empty()) {
      refuse("a category column has no cuts, and exact trees none of them");
    }
    for (const Chunk& chunk : chunks) {
      if (chunk.columns[c].kind != DType::i32 || chunk.columns[c].sparse()) {
        refuse("the codes of a category column must be int32, and dense");
      }
    }
  }
  threads_of(n_threads);
  without_gil([&] {
    new (self) Binned(chunks, std::move(all), categories, exact, fuse, n_threads,
                      std::move(holders), positions);
  });
}

// columns: an iterator of uint8 or uint16 arrays, one after the other, so that no more than one
// need exist at a time.
Binned* of_codes(nb::iterable columns, nb::sequence cut_list, nb::sequence n_category_list,
                 nb::sequence missing_list, int64_t n_rows, bool grows, int n_threads) {
  std::vector<std::vector<double>> all = cuts_of(cut_list, false);
  const std::vector<int> n_categories = list_of<int>(n_category_list);
  const std::vector<int> missing = list_of<int>(missing_list);
  if (n_categories.size() != all.size() || missing.size() != all.size()) {
    refuse("there must be one number a column");
  }
  for (const int n : n_categories) {
    if (n < 0 || n > 65534) {
      refuse("a column can have at most 65534 categories");
    }
  }
  if (n_rows < 1 || n_rows > 0x7fffffff) {
    refuse("there must be 1 to 2^31 - 1 rows");
  }
  threads_of(n_threads);
  auto binned = without_gil([&] {
    Binned::Plan plan{std::move(all), n_categories,
                      std::vector<uint8_t>(missing.begin(), missing.end()), n_rows, grows};
    return std::make_unique<Binned>(std::move(plan), n_rows, std::nullopt);
  });
  int column = 0;
  auto add = [&](auto zero, const AnyArray& codes) {
    using Code = decltype(zero);
    const Code* at = static_cast<const Code*>(codes.data());
    const uint32_t most = (uint32_t)(binned->n_bins[column] - 1 + (missing[column] != 0));
    Code top = 0;
    for (int64_t i = 0; i < n_rows; i++) {
      top = std::max(top, at[i]);
    }
    if (top > most) {
      refuse("a code is too large");
    }
    binned->add_codes(column, at);
  };
  for (nb::handle item : columns) {
    const AnyArray codes = nb::cast<AnyArray>(item);
    if (column == binned->n_columns || codes.ndim() != 1 || (int64_t)codes.shape(0) != n_rows ||
        codes.stride(0) != 1) {
      refuse("there must be one code a row, for every column");
    }
    const DType kind = kind_of(codes);
    if (kind != DType::u8 && kind != DType::u16) {
      refuse("codes must be uint8 or uint16");
    }
    without_gil([&] {
      kind == DType::u8 ? add(uint8_t(), codes) : add(uint16_t(), codes);
    });
    column++;
  }
  if (column != binned->n_columns) {
    refuse("there must be one code a row, for every column");
  }
  without_gil([&] {
    binned->finish(n_threads);
  });
  return binned.release();  // Python owns it
}

template <class Code>
nb::object codes_as(const Binned& b, int column, int64_t from, int64_t n) {
  std::vector<Code> out((size_t)n);
  b.codes(column, from, n, out.data());
  return nb::cast(array(std::move(out)));
}

nb::object codes(nb::handle_t<Binned> self, int column) {
  const Binned& b = nb::cast<const Binned&>(self);
  if (column < 0 || column >= b.n_columns) {
    refuse("no such column");
  }
  const int slot = b.layout.members[column].slot;
  touch(b.n_rows * (int64_t)b.layout.slots[slot].code_bytes);
  if (b.shards.size() == 1 && b.layout.slots[slot].columns.size() == 1 &&
      b.layout.slots[slot].code_bytes == 1) {
    return nb::cast(nb::ndarray<nb::numpy, const uint8_t>(b.plane(b.shards[0], slot),
                                                          {(size_t)b.n_rows}, self));
  }
  if (b.exact) {
    return codes_as<uint32_t>(b, column, 0, b.n_rows);
  }
  return b.n_bins[column] > 255 ? codes_as<uint16_t>(b, column, 0, b.n_rows)
                                : codes_as<uint8_t>(b, column, 0, b.n_rows);
}

nb::object codes_of_rows(const Binned& b, int column, int64_t from, int64_t n) {
  if (column < 0 || column >= b.n_columns || b.exact) {
    refuse("no such column");
  }
  if (from < 0 || n < 0 || from + n > b.n_rows) {
    refuse("no such rows");
  }
  return b.n_bins[column] > 255 ? codes_as<uint16_t>(b, column, from, n)
                                : codes_as<uint8_t>(b, column, from, n);
}

nb::tuple listed(const Binned& b, int n_threads) {
  threads_of(n_threads);
  Listing l = without_gil([&] {
    return list_codes(b, n_threads);
  });
  return nb::make_tuple(array(std::move(l.column)), array(std::move(l.default_code)),
                        array(std::move(l.offset)), array(std::move(l.row)),
                        array(std::move(l.code)));
}

nb::ndarray<nb::numpy, int32_t> py_apply(const Binned& b, Ints column, Ints bin, Bytes missing_left,
                                         Ints left, Ints set, Longs set_offset, Ints set_code,
                                         int n_threads) {
  const TreeView tree = tree_over(b, column, bin, missing_left, left, set, set_offset, set_code);
  threads_of(n_threads);
  std::vector<int32_t> leaf(b.n_rows);
  without_gil([&] {
    apply(b, tree, leaf.data(), n_threads);
  });
  return array(std::move(leaf));
}

}  // namespace

void bind_data(nb::module_& m) {
  m.attr("EVERY_VALUE") = EVERY_VALUE;
  m.attr("SAMPLE_ROWS") = SAMPLE_ROWS;
  m.attr("MIN_BIN_BUDGET") = MIN_BIN_BUDGET;
  m.attr("MAX_LEAF_IDS") = MAX_LEAF_IDS;
  m.def("cuts", cuts, "chunks"_a, "weight"_a.none(), "max_bins"_a, "min_samples_bin"_a,
        "n_threads"_a, "reduce"_a.none() = nb::none(), "positions"_a = nb::tuple());
  nb::class_<Binned>(m, "Binned")
      .def("__init__", new_binned, "chunks"_a, "cuts"_a, "n_threads"_a, "exact"_a = false,
           "n_categories"_a.none() = nb::none(), "fuse"_a.none() = nb::none(),
           "reduce"_a.none() = nb::none(), "positions"_a = nb::tuple())
      .def_static("of_codes", of_codes, "columns"_a, "cuts"_a, "n_categories"_a, "has_missing"_a,
                  "n_rows"_a, "grows"_a, "n_threads"_a)
      .def_ro("n_rows", &Binned::n_rows)
      .def_ro("n_total", &Binned::n_total)
      .def_ro("n_columns", &Binned::n_columns)
      .def_prop_ro("chunk_sizes",
                   [](const Binned& b) {
                     std::vector<int64_t> sizes;
                     for (const Shard& s : b.shards) {
                       sizes.push_back(s.n_rows);
                     }
                     return sizes;
                   })
      .def_prop_ro("n_chunks",
                   [](const Binned& b) {
                     return b.shards.size();
                   })
      .def_prop_ro("n_bytes", &Binned::n_bytes)
      .def_prop_ro("slots",
                   [](const Binned& b) {
                     std::vector<std::vector<int>> slots;
                     for (const Slot& s : b.layout.slots) {
                       slots.push_back(s.columns);
                     }
                     return slots;
                   })
      .def_prop_ro("has_lists",
                   [](const Binned& b) {
                     return std::any_of(b.default_code.begin(), b.default_code.end(), [](int c) {
                       return c >= 0;
                     });
                   })
      .def_prop_ro("has_missing",
                   [](const Binned& b) {
                     return std::vector<bool>(b.has_missing.begin(), b.has_missing.end());
                   })
      .def("codes", codes, "column"_a)
      .def("codes_of_rows", codes_of_rows, "column"_a, "start"_a, "n"_a)
      .def("listed", listed, "n_threads"_a)
      .def("listed_defaults", [](const Binned& b) {
        return without_gil([&] {
          return listed_defaults(b);
        });
      });
  m.def("apply", py_apply, "binned"_a, "column"_a, "bin"_a, "missing_left"_a, "left"_a, "set"_a,
        "set_offset"_a, "set_code"_a, "n_threads"_a);
}

}  // namespace sapwood
