// Tables that stream by: their cuts, their codes, and codes that are stored in a file.
#include "bind/tables.h"
#include "cpu/data/binned.h"
#include "cpu/data/cut_sketch.h"
#include "host/resident.h"

namespace sapwood {

namespace {

// where the planes of a file begin: a multiple of the page size of any machine
constexpr size_t ALIGNED = 1 << 16;

void add(CutSketch& sketch, nb::handle table, std::optional<Doubles> weight, int n_threads) {
  const Chunk chunk = chunk_of(table);
  if (chunk.columns.size() != sketch.missing().size()) {
    refuse("there must be as many columns as in the first chunk");
  }
  const double* w = weights_of(weight, chunk.n_rows);
  threads_of(n_threads);
  without_gil([&] {
    sketch.add(chunk, w, n_threads);
  });
}

nb::list found_cuts(CutSketch& sketch, int min_samples_bin, int n_threads) {
  if (min_samples_bin < 1) {
    refuse("min_samples_bin must be at least 1");
  }
  threads_of(n_threads);
  auto found = without_gil([&] {
    return sketch.cuts(min_samples_bin, n_threads);
  });
  nb::list out;
  for (auto& c : found) {
    out.append(array(std::move(c)));
  }
  return out;
}

Binned::Plan plan_of(nb::sequence cut_list, nb::sequence n_categories, nb::sequence missing,
                     int64_t n_rows) {
  Binned::Plan plan{cuts_of(cut_list, false), list_of<int>(n_categories), {}, n_rows};
  for (const bool one : list_of<bool>(missing)) {
    plan.missing.push_back(one);
  }
  const size_t n = plan.cuts.size();
  if (n == 0 || plan.n_categories.size() != n || plan.missing.size() != n) {
    refuse("lists must be of all columns");
  }
  if (n_rows < 1 || n_rows > 0x7fffffff) {
    refuse("a store has 1 to 2^31 - 1 rows");
  }
  for (size_t c = 0; c < n; c++) {
    if (plan.n_categories[c] < 0 || plan.n_categories[c] > 65534 ||
        (plan.n_categories[c] > 0 && !plan.cuts[c].empty())) {
      refuse("a column has cuts, or up to 65534 categories");
    }
  }
  return plan;
}

struct Encoder {  // the codes of some consecutive rows of a table at a time
  Binned binned;
  Encoder(Binned::Plan plan, int64_t held) : binned(std::move(plan), held, {}) {}
};

void new_encoder(Encoder* self, nb::sequence cut_list, nb::sequence n_categories,
                 nb::sequence missing, int64_t n_rows, int64_t held) {
  Binned::Plan plan = plan_of(cut_list, n_categories, missing, n_rows);
  if (held < 1) {
    refuse("an encoder holds at least one row");
  }
  without_gil([&] {
    new (self) Encoder(std::move(plan), held);
  });
}

bool fill(Encoder& self, nb::handle table, int64_t from, int64_t n, int64_t to, int n_threads) {
  const Chunk chunk = chunk_of(table);
  const Binned& b = self.binned;
  if ((int)chunk.columns.size() != b.n_columns) {
    refuse("the table has another number of columns");
  }
  if (from < 0 || n < 0 || from + n > chunk.n_rows || to < 0 || to + n > b.n_rows) {
    refuse("no such rows");
  }
  for (int c = 0; c < b.n_columns; c++) {
    if (b.is_category[c] && (chunk.columns[c].kind != DType::i32 || chunk.columns[c].sparse())) {
      refuse("the codes of a category column must be int32, and dense");
    }
  }
  threads_of(n_threads);
  return without_gil([&] {
    return self.binned.fill(chunk, from, n, to, n_threads);
  });
}

// where the rows of a block or of a plane begin in a file of so many rows, and the bytes of each
struct Place {
  size_t offset, row_bytes;
};

// The places of all blocks, then of all planes; and the size of the file.
std::vector<Place> places_of(const Layout& layout, int64_t n_rows, size_t& size) {
  std::vector<Place> places;
  for (const SlotBlock& b : layout.blocks) {
    places.push_back({(size_t)n_rows * b.offset, b.stride * b.code_bytes});
  }
  size_t at = ((size_t)n_rows * layout.row_bytes + 64 + ALIGNED - 1) / ALIGNED * ALIGNED;
  for (const Slot& s : layout.slots) {
    places.push_back({at, s.code_bytes});
    at += plane_bytes(n_rows, s);
  }
  size = at;
  return places;
}

nb::tuple file_places(const Encoder& self, int64_t n_rows) {
  size_t size;
  nb::list out;
  for (const Place& p : places_of(self.binned.layout, n_rows, size)) {
    out.append(nb::make_tuple(p.offset, p.row_bytes));
  }
  return nb::make_tuple(out, size);
}

// The bytes of the first n rows, in the order of the places.
nb::list bytes(nb::handle_t<Encoder> self, int64_t n) {
  const Binned& b = nb::cast<const Encoder&>(self).binned;
  if (n < 0 || n > b.n_rows) {
    refuse("no such rows");
  }
  nb::list out;
  auto add = [&](const void* at, size_t row_bytes) {
    out.append(nb::ndarray<nb::numpy, const uint8_t>(at, {(size_t)n * row_bytes}, self));
  };
  for (const SlotBlock& g : b.layout.blocks) {
    add(b.block(b.shards[0], g), g.stride * g.code_bytes);
  }
  for (size_t s = 0; s < b.layout.slots.size(); s++) {
    add(b.plane(b.shards[0], (int)s), b.layout.slots[s].code_bytes);
  }
  return out;
}

nb::ndarray<nb::numpy, const uint8_t> mapped(int file, size_t n_bytes) {
  auto* memory = new Memory(Memory::of_file(file, 0, n_bytes));
  nb::capsule owner(memory, [](void* p) noexcept {
    delete static_cast<Memory*>(p);
  });
  return nb::ndarray<nb::numpy, const uint8_t>(memory->as<uint8_t>(), {n_bytes}, owner);
}

Binned* stored(int file, size_t n_bytes, nb::sequence cut_list, nb::sequence n_categories,
               nb::sequence missing, int64_t n_rows) {
  Binned::Plan plan = plan_of(cut_list, n_categories, missing, n_rows);
  return without_gil([&] {
    size_t size;
    const Binned empty(plan, 0, {});  // for its layout
    const std::vector<Place> places = places_of(empty.layout, n_rows, size);
    if (size != n_bytes) {
      throw std::invalid_argument("the file has another size than codes of these columns need");
    }
    const size_t planes = places[empty.layout.blocks.size()].offset;
    Binned::Codes codes{Memory::of_file(file, 0, planes),
                        Memory::of_file(file, planes, size - planes)};
    return new Binned(std::move(plan), n_rows, std::move(codes));
  });
}

}  // namespace

void bind_store(nb::module_& m) {
  nb::class_<CutSketch>(m, "CutSketch")
      .def(
          "__init__",
          [](CutSketch* self, int n_columns, int max_bins) {
            if (n_columns < 0) {
              refuse("there are columns");
            }
            if (max_bins < 2 || max_bins > 65535) {
              refuse("max_bins must be 2..65535");
            }
            new (self) CutSketch(n_columns, max_bins);
          },
          "n_columns"_a, "max_bins"_a)
      .def("add", add, "table"_a, "weight"_a.none(), "n_threads"_a)
      .def("cuts", found_cuts, "min_samples_bin"_a, "n_threads"_a)
      .def_prop_ro("missing",
                   [](const CutSketch& s) {
                     nb::list out;
                     for (const uint8_t one : s.missing()) {
                       out.append(one != 0);
                     }
                     return out;
                   })
      .def_prop_ro("n_rows", &CutSketch::n_rows)
      .def_prop_ro("integral", &CutSketch::integral);
  nb::class_<Encoder>(m, "Encoder")
      .def("__init__", new_encoder, "cuts"_a, "n_categories"_a, "missing"_a, "n_rows"_a, "held"_a)
      .def("fill", fill, "table"_a, "start"_a, "n"_a, "to"_a, "n_threads"_a)
      .def("places", file_places, "n_rows"_a)
      .def("bytes", bytes, "n"_a)
      .def_prop_ro("slots", [](const Encoder& e) {
        nb::list out;
        for (const Slot& s : e.binned.layout.slots) {
          nb::list columns;
          for (const int c : s.columns) {
            columns.append(c);
          }
          out.append(columns);
        }
        return out;
      });
  m.def("stored", stored, "file"_a, "n_bytes"_a, "cuts"_a, "n_categories"_a, "missing"_a,
        "n_rows"_a, nb::rv_policy::take_ownership);
  m.def("mapped", mapped, "file"_a, "n_bytes"_a);
  m.def("resident_bytes", resident_bytes);
  m.def("release_pages", [] {
    without_gil([] {
      trim_heap();
      release_pages();
    });
  });
  m.def(
      "touch",
      [](int64_t n_bytes) {
        without_gil([&] {
          touch(n_bytes);
        });
      },
      "n_bytes"_a);
  m.def("set_resident_limit", set_resident_limit, "n_bytes"_a);
  m.def(
      "set_scratch",
      [](std::optional<std::string> folder) {
        set_scratch(folder ? folder->c_str() : nullptr);
      },
      "folder"_a.none());
  m.def(
      "codes_fit",
      [](const Binned& b, int n_threads) {
        threads_of(n_threads);
        return without_gil([&] {
          return b.codes_fit(n_threads);
        });
      },
      "binned"_a, "n_threads"_a);
}

}  // namespace sapwood
