// The Python module `_core`: argument checks and the release of the GIL, no arithmetic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "cpu/bins.h"
#include "cpu/combine.h"
#include "cpu/encode.h"
#include "cpu/forest.h"
#include "cpu/listing.h"
#include "cpu/pool.h"
#include "cpu/shap.h"
#include "cpu/trainer.h"
#include "math/hash.h"
#include "math/real.h"

namespace nb = nanobind;
using namespace sapwood;

namespace {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles2 = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Longs = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Longs2 = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& what) { throw nb::value_error(what.c_str()); }

// Once Python is leaving, a daemon thread that asks for the GIL would be ended by an exception through our frames, and the process
// aborted. So such a thread waits for the end instead, and Python leaves only when no thread of ours is on its way to the GIL.
struct Gate {
  std::atomic<bool> closed{false};
  std::atomic<int> entering{0};
  std::thread::id leaver;

  void enter() {
    entering.fetch_add(1);
    if (!closed || std::this_thread::get_id() == leaver) return;
    entering.fetch_sub(1);
    for (;;) ::pause();
  }
  void entered() { entering.fetch_sub(1); }
  void close() {
    leaver = std::this_thread::get_id();
    closed = true;
    const nb::gil_scoped_release
        release;  // those on their way get it now; a second at most, in case a fork left the count wrong
    for (int ms = 0; entering > 0 && ms < 1000; ms++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};
Gate gate;

struct Release {
  PyThreadState* state = PyEval_SaveThread();
  ~Release() {
    gate.enter();
    PyEval_RestoreThread(state);
    gate.entered();
  }
};

// Runs `f` without the GIL; a Ctrl-C noticed on the way comes out as the KeyboardInterrupt it is.
template <class F>
auto freely(F&& f) {
  try {
    const Release release;
    return f();
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

bool interrupted() {
  gate.enter();
  const nb::gil_scoped_acquire acquire;
  gate.entered();
  return PyErr_CheckSignals() != 0;
}

template <class T>
nb::ndarray<nb::numpy, T> array(std::vector<T>&& values, std::vector<size_t> shape = {}) {
  auto* held = new std::vector<T>(std::move(values));
  if (shape.empty()) shape = {held->size()};
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(held->data(), shape.size(), shape.data(), owner);
}

Kind kind_of(const AnyArray& a) {
  const nb::dlpack::dtype t = a.dtype();
  if (t.lanes == 1) {
    if (t.code == (uint8_t)nb::dlpack::dtype_code::Float && t.bits == 32) return Kind::f32;
    if (t.code == (uint8_t)nb::dlpack::dtype_code::Float && t.bits == 64) return Kind::f64;
    const bool is_signed = t.code == (uint8_t)nb::dlpack::dtype_code::Int;
    if (is_signed || t.code == (uint8_t)nb::dlpack::dtype_code::UInt ||
        (t.code == (uint8_t)nb::dlpack::dtype_code::Bool && t.bits == 8))
      switch (t.bits) {
        case 8:
          return is_signed ? Kind::i8 : Kind::u8;
        case 16:
          return is_signed ? Kind::i16 : Kind::u16;
        case 32:
          return is_signed ? Kind::i32 : Kind::u32;
        case 64:
          return is_signed ? Kind::i64 : Kind::u64;
      }
  }
  refuse("a column must hold float32, float64, integers or booleans in native byte order");
}

Column column_of(const AnyArray& a, int64_t offset, int64_t stride) {
  const int64_t size = a.itemsize();
  return {static_cast<const char*>(a.data()) + offset * size, stride * size, kind_of(a)};
}

// Entries first .. last - 1 as a column of n_rows: sapwood.data.sparse.
Column stored_column(const AnyArray& values, const Ints& rows, int64_t first, int64_t last, int64_t n_rows,
                     double absent) {
  if (first < 0 || first > last || last > (int64_t)rows.shape(0) || values.ndim() != 1 ||
      values.shape(0) != rows.shape(0))
    refuse("the entries of a sparse table do not fit together");
  const int32_t* at = rows.data();
  for (int64_t i = first, above = -1; i < last; above = at[i++])
    if (at[i] <= above || at[i] >= n_rows) refuse("the rows of a sparse column must rise, and lie within the table");
  Column column = column_of(values, first * values.stride(0), values.stride(0));
  column.rows = at + first, column.n_stored = last - first, column.absent = absent;
  return column;
}

RowLists row_lists(const AnyArray& values, const Ints& columns, const Longs& offset, int64_t n_columns, double absent) {
  const int64_t n = (int64_t)columns.shape(0);
  bool fine = values.ndim() == 1 && (int64_t)values.shape(0) == n && offset.data()[0] == 0 &&
              offset.data()[offset.shape(0) - 1] == n;
  for (size_t i = 1; i < offset.shape(0); i++) fine = fine && offset.data()[i - 1] <= offset.data()[i];
  for (int64_t i = 0; i < n; i++) fine = fine && columns.data()[i] >= 0 && columns.data()[i] < n_columns;
  if (!fine) refuse("the entries of a sparse table do not fit together");
  return {offset.data(), columns.data(), column_of(values, 0, values.stride(0)), absent, (int)n_columns};
}

Chunk sparse_chunk(nb::handle table) {
  const AnyArray values = nb::cast<AnyArray>(table.attr("values"));
  const Ints index = nb::cast<Ints>(table.attr("index"));
  const Longs offset = nb::cast<Longs>(table.attr("offset"));
  const auto n_rows = nb::cast<int64_t>(table.attr("n_rows")), n_columns = nb::cast<int64_t>(table.attr("n_columns"));
  const double absent = nb::cast<double>(table.attr("absent"));
  const bool by_rows = nb::cast<bool>(table.attr("by_rows"));
  if ((int64_t)offset.shape(0) != (by_rows ? n_rows : n_columns) + 1)
    refuse("the entries of a sparse table do not fit together");
  Chunk chunk;
  chunk.n_rows = n_rows;
  if (by_rows) chunk.lists = row_lists(values, index, offset, n_columns, absent);
  for (int64_t c = 0; c < n_columns && !by_rows; c++)
    chunk.columns.push_back(stored_column(values, index, offset.data()[c], offset.data()[c + 1], n_rows, absent));
  return chunk;
}

// A 2-D array, a sparse table, or a sequence of 1-D and sparse columns; views into Python's memory, which the caller keeps alive.
Chunk chunk_of(nb::handle table, bool by_rows = false) {
  Chunk chunk;
  AnyArray a;
  if (nb::hasattr(table, "by_rows")) {
    chunk = sparse_chunk(table);
    if (chunk.lists && !by_rows) refuse("sparse rows can be predicted only; give columns");
    return chunk;
  }
  if (nb::try_cast(table, a)) {
    if (a.ndim() != 2) refuse("a table must have 2 dimensions");
    chunk.n_rows = (int64_t)a.shape(0);
    const Column first = column_of(a, 0, a.stride(0));
    const int64_t next = a.stride(1) * (int64_t)a.itemsize();
    chunk.columns.assign(a.shape(1), first);
    for (size_t c = 0; c < a.shape(1); c++) chunk.columns[c].data += (int64_t)c * next;
    return chunk;
  }
  chunk.n_rows = -1;
  for (nb::handle item : table) {
    AnyArray column;
    const bool sparse = !nb::try_cast(item, column);
    if (!sparse && column.ndim() != 1) refuse("a column must have 1 dimension");
    const int64_t n = sparse ? nb::cast<int64_t>(item.attr("n_rows")) : (int64_t)column.shape(0);
    if (chunk.n_rows >= 0 && n != chunk.n_rows) refuse("the columns of a table must have one length");
    chunk.n_rows = n;
    if (sparse) {
      const Ints rows = nb::cast<Ints>(item.attr("rows"));
      chunk.columns.push_back(stored_column(nb::cast<AnyArray>(item.attr("values")), rows, 0, (int64_t)rows.shape(0), n,
                                            nb::cast<double>(item.attr("absent"))));
    } else {
      chunk.columns.push_back(column_of(column, 0, column.stride(0)));
    }
  }
  return chunk;
}

std::vector<Chunk> chunks_of(nb::sequence tables) {
  std::vector<Chunk> chunks;
  for (nb::handle t : tables) {
    Chunk c = chunk_of(t);
    if (c.columns.empty()) refuse("a table needs at least one column");
    if (!chunks.empty() && c.columns.size() != chunks[0].columns.size())
      refuse("all chunks must have the same columns");
    if (c.n_rows > 0x7fffffff) refuse("a chunk holds at most 2^31 - 1 rows; give the data in several chunks");
    if (c.n_rows > 0) chunks.push_back(std::move(c));
  }
  if (chunks.empty()) refuse("there are no rows");
  return chunks;
}

int threads_of(int n) {
  if (n < 1 || n > 1024) refuse("n_threads must be 1..1024");
  return n;
}

const double* weights_of(const std::optional<Doubles>& w, int64_t n) {
  if (!w) return nullptr;
  if ((int64_t)w->shape(0) != n) refuse("there must be one weight a row");
  for (int64_t i = 0; i < n; i++)
    if (!(w->data()[i] >= 0.0 && w->data()[i] < INF)) refuse("weights must be finite and not negative");
  return w->data();
}

nb::list cuts(nb::sequence tables, std::optional<Doubles> weight, int max_bins, int min_samples_bin, int n_threads) {
  const auto chunks = chunks_of(tables);
  int64_t n = 0;
  for (const Chunk& c : chunks) n += c.n_rows;
  if ((max_bins < 2 || max_bins > 65535) && max_bins != EVERY_VALUE) refuse("max_bins must be 2..65535");
  if (min_samples_bin < 1) refuse("min_samples_bin must be at least 1");
  const double* w = weights_of(weight, n);
  threads_of(n_threads);
  auto found = freely([&] { return find_cuts(chunks, w, max_bins, min_samples_bin, n_threads); });
  nb::list out;
  for (auto& c : found) out.append(array(std::move(c)));
  return out;
}

void new_binned(Binned* self, nb::sequence tables, nb::sequence cut_list, int n_threads, bool exact,
                std::optional<std::vector<int>> n_categories, std::optional<bool> fuse) {
  const auto chunks = chunks_of(tables);
  std::vector<std::vector<double>> all;
  for (nb::handle item : cut_list) {
    const Doubles c = nb::cast<Doubles>(item);
    all.emplace_back(c.data(), c.data() + c.shape(0));
    for (size_t i = 0; i < all.back().size(); i++)
      if (!(all.back()[i] - all.back()[i] == 0.0) || (i > 0 && !(all.back()[i - 1] < all.back()[i])))
        refuse("cuts must be finite and rising");
    if (!exact && all.back().size() > 65534) refuse("a column can have at most 65534 cuts");
  }
  if (all.size() != chunks[0].columns.size()) refuse("there must be one list of cuts a column");
  int64_t n = 0;
  for (const Chunk& c : chunks) n += c.n_rows;
  if (exact && n > 0x7fffffff) refuse("exact trees take at most 2^31 - 1 rows");
  const std::vector<int> categories = n_categories.value_or(std::vector<int>(all.size(), 0));
  if (categories.size() != all.size()) refuse("n_categories has one number a column");
  for (size_t c = 0; c < all.size(); c++) {
    if (categories[c] == 0) continue;
    if (categories[c] < 0 || categories[c] > 65534) refuse("a column can have at most 65534 categories");
    if (exact || !all[c].empty()) refuse("a category column has no cuts, and exact trees none of them");
    for (const Chunk& chunk : chunks)
      if (chunk.columns[c].kind != Kind::i32 || chunk.columns[c].sparse())
        refuse("the codes of a category column must be int32, and dense");
  }
  threads_of(n_threads);
  freely([&] { new (self) Binned(chunks, std::move(all), categories, exact, fuse, n_threads); });
}

template <class Code>
nb::object codes_as(const Binned& b, int column) {
  std::vector<Code> out(b.n_rows);
  b.codes(column, out.data());
  return nb::cast(array(std::move(out)));
}

nb::object codes(const Binned& b, int column) {
  if (column < 0 || column >= b.n_columns) refuse("no such column");
  if (b.exact) return codes_as<uint32_t>(b, column);
  return b.n_bins[column] > 255 ? codes_as<uint16_t>(b, column) : codes_as<uint8_t>(b, column);
}

nb::tuple listed(const Binned& b, int n_threads) {
  threads_of(n_threads);
  Listing l = freely([&] { return list_codes(b, n_threads); });
  return nb::make_tuple(array(std::move(l.column)), array(std::move(l.usual)), array(std::move(l.offset)),
                        array(std::move(l.row)), array(std::move(l.code)));
}

template <class Info>
int index_of(int n, const Info& (*at)(int), const std::string& name, const char* what) {
  for (int i = 0; i < n; i++)
    if (name == at(i).name) return i;
  refuse(std::string("no ") + what + " named " + name);
}

struct PyTrainer {  // keeps what the trainer only points to
  nb::object binned;
  Doubles2 label;
  std::unique_ptr<Trainer> trainer;
  std::optional<Doubles> share = {};
  std::optional<Ints> unit = {};
  nb::object table = {};
};

// A field is a number, or a list of one for each output.
std::vector<double> fields_of(const ObjectiveInfo& o, nb::dict given, int output = 0, int n_outputs = 1) {
  std::vector<double> values;
  for (int i = 0; i < o.n_fields; i++) {
    const Field& f = o.fields[i];
    if (!given.contains(f.name)) refuse(std::string("fields lack ") + f.name);
    nb::object one = given[f.name];
    if (nb::isinstance<nb::list>(one)) {
      if ((int)nb::len(one) != n_outputs) refuse(std::string(f.name) + " must have a value for each output");
      one = one[output];
    }
    const double x = nb::cast<double>(one);
    if (!(x >= f.low && x <= f.high)) refuse(std::string(f.name) + " is out of range");
    values.push_back(x);
  }
  if ((int)given.size() != o.n_fields) refuse(std::string("objective ") + o.name + " has no such fields");
  return values;
}

void new_trainer(PyTrainer* self, nb::object binned, Doubles2 label, std::optional<Doubles> weight,
                 const std::string& objective, nb::dict fields, int n_outputs, int n_threads) {
  const Binned& b = nb::cast<const Binned&>(binned);
  const int o = index_of(n_objectives(), objective_info, objective, "objective");
  const ObjectiveInfo& info = objective_info(o);
  if ((int64_t)label.shape(1) != b.n_rows) refuse("there must be one label a row");
  const bool planes = label.shape(0) > 1;
  if (n_outputs < 1 || (planes && ((int)label.shape(0) != n_outputs || !info.pointwise)) ||
      (info.adaptive && n_outputs > 1))
    refuse("objective " + objective + " cannot have that many outputs");
  const double* w = weights_of(weight, b.n_rows);
  threads_of(n_threads);
  std::vector<double> field;
  for (int k = 0; k < n_outputs; k++)
    for (const double x : fields_of(info, fields, k, n_outputs)) field.push_back(x);
  auto trainer = freely(
      [&] { return std::make_unique<Trainer>(b, label.data(), planes, w, o, std::move(field), n_outputs, n_threads); });
  new (self) PyTrainer{binned, label, std::move(trainer)};
}

Limits limits_of(nb::dict d) {
  Limits l;
  auto take = [&](const char* name, auto& into) {
    if (!d.contains(name)) refuse(std::string("limits lack ") + name);
    into = nb::cast<std::remove_reference_t<decltype(into)>>(d[name]);
  };
  take("max_depth", l.max_depth), take("max_leaves", l.max_leaves), take("min_child_weight", l.min_child_weight);
  take("min_samples_leaf", l.min_samples_leaf), take("reg_lambda", l.reg_lambda), take("reg_alpha", l.reg_alpha);
  take("min_split_gain", l.min_split_gain), take("max_delta_step", l.max_delta_step),
      take("path_smooth", l.path_smooth), take("learning_rate", l.learning_rate);
  take("colsample_bytree", l.colsample_bytree), take("colsample_bylevel", l.colsample_bylevel),
      take("colsample_bynode", l.colsample_bynode);
  take("max_cat_to_onehot", l.max_cat_to_onehot), take("max_cat_threshold", l.max_cat_threshold),
      take("cat_smooth", l.cat_smooth), take("cat_l2", l.cat_l2), take("min_data_per_group", l.min_data_per_group);
  if (d.size() != 18) refuse("limits hold an unknown name");
  for (const double x : {l.min_child_weight, l.min_samples_leaf, l.reg_lambda, l.reg_alpha, l.max_delta_step,
                         l.path_smooth, l.cat_smooth, l.cat_l2, l.min_data_per_group})
    if (!(x >= 0.0 && x < INF)) refuse("limits must be finite and not negative");
  if (l.max_depth < 0 || l.max_leaves < 0 || l.max_cat_to_onehot < 0 || l.max_cat_threshold < 1)
    refuse("limits must not be negative");
  return l;
}

// forced: rows of column, bin, and the places of what follows left and right, or -1
void set_rules(PyTrainer& self, const std::vector<int>& direction, bool intermediate,
               const std::vector<std::vector<int32_t>>& groups, bool extra,
               const std::vector<std::vector<int32_t>>& forced, const std::vector<int>& alone) {
  const Binned& b = nb::cast<const Binned&>(self.binned);
  Rules r;
  if (!direction.empty() && (int)direction.size() != b.n_columns) refuse("there must be one direction a column");
  for (const int d : direction) {
    if (d < -1 || d > 1) refuse("a direction is -1, 0 or 1");
    if (d != 0 && b.is_category[r.direction.size()]) refuse("categories have no order to keep");
    r.direction.push_back((int8_t)d);
  }
  r.intermediate = intermediate && !direction.empty(), r.extra = extra, r.groups = groups;
  if (!groups.empty()) r.groups_of.resize(b.n_columns);
  for (size_t g = 0; g < groups.size(); g++)
    for (const int32_t c : groups[g]) {
      if (c < 0 || c >= b.n_columns) refuse("no such column in a group");
      r.groups_of[c].push_back((int32_t)g);
    }
  for (const auto& of : r.groups_of)
    if (of.empty()) refuse("every column needs a group");
  for (int32_t i = 0; i < (int32_t)forced.size(); i++) {
    const auto& f = forced[i];
    if (f.size() != 4 || f[0] < 0 || f[0] >= b.n_columns || b.is_category[f[0]] || f[1] < 0 ||
        f[1] >= b.n_bins[f[0]] - 1)
      refuse("a forced split has a column, one of its cuts, and two places");
    for (const int32_t next : {f[2], f[3]})
      if (next != -1 && (next <= i || next >= (int32_t)forced.size())) refuse("no such forced split");
    r.forced.push_back({f[0], f[1], f[2], f[3]});
  }
  r.alone.resize(alone.empty() ? 0 : b.n_columns, 0);
  for (const int c : alone) {
    if (c < 0 || c >= b.n_columns || !b.is_category[c]) refuse("only columns of categories are split one by one");
    r.alone[c] = 1;
  }
  self.trainer->set_rules(std::move(r));
}

void set_taste(PyTrainer& self, bool cosine, std::vector<double> weight, std::vector<double> penalty,
               const std::vector<int>& used) {
  const size_t n = (size_t)nb::cast<const Binned&>(self.binned).n_columns;
  for (const auto& list : {weight, penalty}) {
    if (!list.empty() && list.size() != n) refuse("there must be one weight and one penalty a column");
    for (const double x : list)
      if (!(x >= 0.0 && x < INF)) refuse("weights and penalties of columns must be finite and not negative");
  }
  std::vector<uint8_t> so_far(penalty.empty() ? 0 : n, 0);
  for (const int c : used) {
    if (c < 0 || (size_t)c >= n) refuse("no such column");
    if (!so_far.empty()) so_far[c] = 1;
  }
  self.trainer->set_taste({cosine, std::move(weight), std::move(penalty), std::move(so_far), 0.0});
}

int output_of(PyTrainer& self, int output) {
  if (output < 0 || output >= self.trainer->n_outputs()) refuse("no such output");
  return output;
}

void set_sampler(PyTrainer& self, const std::string& name, nb::dict fields, std::optional<Doubles> share,
                 std::optional<Ints> unit) {
  const int which = index_of(n_samplers(), sampler_info, name, "sampler");
  const SamplerInfo& info = sampler_info(which);
  std::vector<double> values;
  for (int i = 0; i < info.n_fields; i++) {
    if (!fields.contains(info.fields[i])) refuse(std::string("fields lack ") + info.fields[i]);
    values.push_back(nb::cast<double>(fields[info.fields[i]]));
    if (!(values.back() - values.back() == 0.0)) refuse("fields must be finite");
  }
  if ((int)fields.size() != info.n_fields) refuse("sampler " + name + " has no such fields");
  const size_t n = (size_t)self.trainer->n_rows();
  if ((share && share->shape(0) != n) || (unit && unit->shape(0) != n)) refuse("shares and units are of rows");
  if (unit && info.counted != Counted::nothing) refuse("sampler " + name + " looks at rows, not at groups");
  self.share = share, self.unit = unit;
  self.trainer->set_sampler(which, std::move(values), share ? share->data() : nullptr, unit ? unit->data() : nullptr);
}

nb::list grow(PyTrainer& self, const std::string& policy, nb::dict limits, uint64_t seed, uint64_t tree, double luck,
              bool together, const std::vector<int64_t>& ends) {
  if (!(luck >= 0.0 && luck < INF)) refuse("luck must be finite and not negative");
  const int g = index_of(n_growers(), grower_info, policy, "growth policy");
  const Limits l = limits_of(limits);
  if (grower_info(g).shared_split && self.trainer->node_rules()) refuse("symmetric trees share their splits");
  if (grower_info(g).shared_split && (l.max_depth < 1 || l.max_depth > 16) && l.max_leaves == 0)
    refuse("symmetric trees need a depth of 1..16");
  if (together && self.trainer->n_outputs() > 1 && !self.trainer->grows_together(l))
    refuse("trees with vector leaves cannot have these rules or columns");
  if (!ends.empty()) {
    if (!self.trainer->grows_tails()) refuse("the rows of several models cannot have these rules or chunks");
    if (ends.size() % 2 != 0 || ends.front() < 0 || ends.back() != self.trainer->n_rows() ||
        !std::is_sorted(ends.begin(), ends.end()))
      refuse("ends must rise to the number of rows, two for every model");
  }
  nb::list trees;
  for (Tree& t : freely([&] { return self.trainer->grow(g, l, seed, tree, luck, together, ends); })) {
    nb::dict d;
    d["column"] = array(std::move(t.column)), d["bin"] = array(std::move(t.bin)),
    d["threshold"] = array(std::move(t.threshold));
    d["missing_left"] = array(std::move(t.missing_left)), d["left"] = array(std::move(t.left)),
    d["value"] = array(std::move(t.value));
    d["gain"] = array(std::move(t.gain)), d["cover"] = array(std::move(t.cover)),
    d["count"] = array(std::move(t.count));
    d["set"] = array(std::move(t.set)), d["set_offset"] = array(std::move(t.set_offset)),
    d["set_code"] = array(std::move(t.set_code));
    trees.append(d);
  }
  return trees;
}

// An output whose tree stands, with as many values as it has leaves.
int leaves_of(PyTrainer& self, int output, const std::optional<Doubles>& values = {}) {
  const size_t n = self.trainer->n_leaves(output_of(self, output));
  if (n == 0 || n > 65536) refuse("leaf values can be refitted in trees of at most 65,536 leaves");
  if (values && values->shape(0) != n) refuse("there must be one value a leaf");
  return output;
}

std::vector<double> list(const Doubles& x) { return std::vector<double>(x.data(), x.data() + x.shape(0)); }

nb::list py_gradients(PyTrainer& s, const std::string& precision, bool unit_search, bool unit_leaf,
                      std::optional<Doubles2> g, std::optional<Doubles2> h) {
  if (precision != "auto" && precision != "narrow" && precision != "wide") refuse("no precision named " + precision);
  if (g.has_value() != h.has_value()) refuse("gradients and hessians come together");
  for (const auto& x : {g, h})
    if (x && ((int)x->shape(0) != s.trainer->n_outputs() || (int64_t)x->shape(1) != s.trainer->n_rows()))
      refuse("gradients must have the shape of the scores");
  nb::list out;
  for (const char* name : freely([&] {
         return s.trainer->gradients(precision, unit_search, unit_leaf, g ? g->data() : nullptr,
                                     h ? h->data() : nullptr);
       }))
    out.append(name);
  return out;
}

nb::tuple three(LeafSums sums) {
  return nb::make_tuple(array(std::move(sums.loss)), array(std::move(sums.g)), array(std::move(sums.h)));
}

nb::ndarray<nb::numpy, double> refit(PyTrainer& s, int output, const std::string& method, int iterations,
                                     double reg_lambda, double reg_alpha, double max_delta_step) {
  leaves_of(s, output);
  const bool joint = method == "joint";
  if (method != "newton" && method != "gradient" && method != "exact" && !joint)
    refuse("no leaf estimation named " + method);
  if (joint && (s.trainer->pointwise() || s.trainer->n_leaves(output) != s.trainer->n_leaves(0)))
    refuse("joint leaf values are those of softmax, in trees of the same splits");
  if (iterations < 0 || !(reg_lambda >= 0.0) || !(reg_alpha >= 0.0) || !(max_delta_step >= 0.0))
    refuse("limits must not be negative");
  const LeafRule rule{
      method == "exact", method == "gradient", joint, iterations, {reg_lambda, reg_alpha, max_delta_step}};
  return array(freely([&] { return s.trainer->refit(output, rule); }));
}

void set_leaves(PyTrainer& s, int output, std::optional<Ints> number, Doubles value) {
  const size_t n = s.trainer->n_leaves(leaves_of(s, output)), n_new = value.shape(0);
  if (number ? number->shape(0) != n : n_new != n) refuse("every leaf needs a new number and a value");
  for (size_t i = 0; number && i < n; i++)
    if (number->data()[i] < 0 || (size_t)number->data()[i] >= n_new) refuse("no such leaf");
  const std::vector<int32_t> map =
      number ? std::vector<int32_t>(number->data(), number->data() + n) : std::vector<int32_t>{};
  freely([&] { s.trainer->set_leaves(output, map, list(value)); });
}

RawTable table_of(const AnyArray& a) {
  const Kind kind = kind_of(a);
  if (a.ndim() != 2 || (kind != Kind::f32 && kind != Kind::f64) || a.stride(1) != 1 ||
      a.stride(0) != (int64_t)a.shape(1))
    refuse("a table of values must be float32 or float64, row by row");
  if (a.shape(0) > 0x7fffffff) refuse("linear leaves take at most 2^31 - 1 rows");
  return {a.data(), kind == Kind::f64, (int)a.shape(1)};
}

// Terms of `n` leaves or nodes over so many columns; each begins with its constant.
LinearView terms_of(const Longs& offset, const Ints& column, const Doubles& coef, size_t n, int n_columns) {
  const int64_t* at = offset.data();
  if (offset.shape(0) != n + 1 || at[0] != 0 || at[n] != (int64_t)column.shape(0) || column.shape(0) != coef.shape(0))
    refuse("the terms of leaves must fit together");
  for (size_t i = 0; i < n; i++) {
    if (at[i] > at[i + 1]) refuse("the terms of leaves must follow each other");
    for (int64_t j = at[i]; j < at[i + 1]; j++)
      if (j == at[i] ? column.data()[j] != -1 : column.data()[j] < 0 || column.data()[j] >= n_columns)
        refuse("a leaf has a constant and then coefficients of columns");
  }
  return {at, column.data(), coef.data()};
}

void set_table(PyTrainer& s, nb::object table) {
  const AnyArray a = nb::cast<AnyArray>(table);
  const RawTable raw = table_of(a);
  if ((int64_t)a.shape(0) != s.trainer->n_rows() || raw.n_columns != nb::cast<const Binned&>(s.binned).n_columns)
    refuse("the table of values must have the shape of the binned one");
  s.table = table;
  s.trainer->set_table(raw);
}

nb::tuple py_fit_linear(PyTrainer& s, int output, Longs offset, Ints column, Doubles value, double rate,
                        double reg_lambda, double linear_lambda, double linear_smooth) {
  const size_t n = s.trainer->n_leaves(leaves_of(s, output, value));
  const int64_t* at = offset.data();
  if (!s.table.is_valid()) refuse("linear leaves need a table of values");
  if (offset.shape(0) != n + 1 || at[0] != 0 || at[n] != (int64_t)column.shape(0))
    refuse("every leaf needs its columns");
  for (size_t i = 0; i < n; i++)
    if (at[i] > at[i + 1]) refuse("the columns of leaves must follow each other");
  for (size_t j = 0; j < column.shape(0); j++)
    if (column.data()[j] < 0 || column.data()[j] >= nb::cast<const Binned&>(s.binned).n_columns)
      refuse("no such column");
  if (!(reg_lambda >= 0.0) || !(linear_lambda >= 0.0) || !(linear_smooth >= 0.0)) refuse("limits must not be negative");
  const LinearRule rule{at, column.data(), value.data(), rate, reg_lambda, linear_lambda, linear_smooth};
  LinearPart part = freely([&] { return s.trainer->fit_linear(output, rule); });
  return nb::make_tuple(array(std::move(part.offset)), array(std::move(part.column)), array(std::move(part.coef)));
}

nb::ndarray<nb::numpy, double> py_linear_values(AnyArray table, Ints node, Doubles value, Longs offset, Ints column,
                                                Doubles coef, int n_threads) {
  const RawTable raw = table_of(table);
  const size_t n = table.shape(0), n_nodes = value.shape(0);
  const LinearView terms = terms_of(offset, column, coef, n_nodes, raw.n_columns);
  if (node.shape(0) != n) refuse("every row needs its node");
  for (size_t i = 0; i < n; i++)
    if (node.data()[i] < 0 || (size_t)node.data()[i] >= n_nodes) refuse("no such node");
  threads_of(n_threads);
  std::vector<double> out(n);
  freely([&] { linear_values(raw, terms, value.data(), node.data(), (int64_t)n, out.data(), n_threads); });
  return array(std::move(out));
}

void assign(PyTrainer& s, int output, Ints number, int64_t n_leaves) {
  if (n_leaves < 1 || n_leaves > 65536) refuse("rows can be assigned to at most 65,536 leaves");
  if ((int64_t)number.shape(0) != s.trainer->n_rows()) refuse("every row needs a leaf");
  for (size_t i = 0; i < number.shape(0); i++)
    if (number.data()[i] < 0 || number.data()[i] >= n_leaves) refuse("no such leaf");
  freely([&] { s.trainer->assign(output_of(s, output), number.data(), (size_t)n_leaves); });
}

// loss, gradient and hessian of rows: score and label (n)
nb::tuple py_evaluate(const std::string& objective, nb::dict fields, Doubles score, Doubles label) {
  const int o = index_of(n_objectives(), objective_info, objective, "objective");
  std::vector<double> f = fields_of(objective_info(o), fields);
  f.push_back(INF);  // what adapts has not begun
  const size_t n = score.shape(0);
  if (label.shape(0) != n) refuse("there must be one label a score");
  LeafSums out;
  out.loss.resize(n), out.g.resize(n), out.h.resize(n);
  freely([&] {
    kernels().evaluate(o, f.data(), score.data(), label.data(), (int)n, {out.loss.data(), out.g.data(), out.h.data()});
  });
  return three(std::move(out));
}

void check_scores(PyTrainer& self, const Doubles& start) {
  if ((int)start.shape(0) != self.trainer->n_outputs()) refuse("there must be one start score an output");
}

nb::ndarray<nb::numpy, int32_t> py_apply(const Binned& b, Ints column, Ints bin, Bytes missing_left, Ints left,
                                         Ints set, Longs set_offset, Ints set_code, int n_threads) {
  const size_t n = left.shape(0);
  if (n < 1 || column.shape(0) != n || bin.shape(0) != n || missing_left.shape(0) != n || set.shape(0) != n ||
      set_offset.shape(0) < 1)
    refuse("the arrays of a tree must have one length");
  for (size_t u = 0; u < n; u++) {
    const int32_t l = left.data()[u], c = column.data()[u], s = set.data()[u];
    if (l == 0) continue;
    if (l <= (int64_t)u || (size_t)l + 1 >= n || c < 0 || c >= b.n_columns) refuse("not a tree over these bins");
    if (s >= 0) {
      const int64_t *at = set_offset.data() + s, n_codes = (int64_t)set_code.shape(0);
      if ((size_t)s + 1 >= set_offset.shape(0) || at[0] < 0 || at[0] > at[1] || at[1] > n_codes) refuse("no such set");
      for (int64_t i = at[0]; i < at[1]; i++)
        if (set_code.data()[i] < 0 || set_code.data()[i] >= b.n_bins[c]) refuse("a set holds codes of its column");
      continue;
    }
    if (bin.data()[u] < 0 || bin.data()[u] >= b.n_bins[c]) refuse("not a tree over these bins");
    if (bin.data()[u] == b.n_bins[c] - 1 && missing_left.data()[u]) refuse("a split sends nothing to the right");
  }
  threads_of(n_threads);
  std::vector<int32_t> leaf(b.n_rows);
  const TreeView tree{column.data(), bin.data(), missing_left.data(), left.data(),
                      (int)n,        set.data(), set_offset.data(),   set_code.data()};
  freely([&] { apply(b, tree, leaf.data(), n_threads); });
  return array(std::move(leaf));
}

Link link_of(const std::string& name) {
  for (size_t i = 0; i < sizeof LINKS / sizeof LINKS[0]; i++)
    if (name == LINKS[i]) return (Link)i;
  refuse("no link named " + name);
}

ForestArrays arrays_of(const Longs& offset, const Ints& output, const Ints& column, const Doubles& threshold,
                       const Bytes& missing_left, const Ints& left, const Doubles& value, const Ints& set,
                       const Longs& set_offset, const Ints& set_code) {
  const size_t n = left.shape(0), t = output.shape(0);
  if (offset.shape(0) != t + 1 || column.shape(0) != n || threshold.shape(0) != n || missing_left.shape(0) != n ||
      value.shape(0) != n || set.shape(0) != n || set_offset.shape(0) < 1)
    refuse("the arrays of a forest must fit together");
  return {(int64_t)t,
          (int64_t)n,
          offset.data(),
          output.data(),
          column.data(),
          threshold.data(),
          missing_left.data(),
          left.data(),
          value.data(),
          set.data(),
          (int64_t)set_offset.shape(0) - 1,
          (int64_t)set_code.shape(0),
          set_offset.data(),
          set_code.data(),
          {}};
}

void new_forest(Forest* self, int n_columns, Longs offset, Ints output, Ints column, Doubles threshold,
                Bytes missing_left, Ints left, Doubles value, Ints set, Longs set_offset, Ints set_code, Doubles base,
                const std::string& link, std::optional<Longs> linear_offset, std::optional<Ints> linear_column,
                std::optional<Doubles> linear_coef) {
  ForestArrays a = arrays_of(offset, output, column, threshold, missing_left, left, value, set, set_offset, set_code);
  if (linear_offset.has_value() != linear_column.has_value() || linear_offset.has_value() != linear_coef.has_value())
    refuse("the terms of leaves come together");
  if (linear_offset) a.linear = terms_of(*linear_offset, *linear_column, *linear_coef, left.shape(0), n_columns);
  new (self) Forest(n_columns, a, std::vector<double>(base.data(), base.data() + base.shape(0)), link_of(link));
}

void check_range(const Forest& f, const Chunk& table, int64_t first, int64_t& last) {
  if (last < 0) last = f.n_trees();
  if (first < 0 || first > last || last > f.n_trees()) refuse("no such range of trees");
  if ((table.lists ? table.lists->n_columns : (int)table.columns.size()) != f.n_columns())
    refuse("the table has another number of columns than the model");
  if (table.lists && f.has_sets()) refuse("sparse rows have no categories");
}

nb::ndarray<nb::numpy, double> predict(const Forest& f, nb::handle x, int64_t first, int64_t last, bool raw,
                                       std::optional<Doubles2> init_score, int n_threads) {
  const Chunk table = chunk_of(x, true);
  check_range(f, table, first, last);
  threads_of(n_threads);
  const size_t n = (size_t)table.n_rows, k = (size_t)f.n_outputs();
  if (init_score && (init_score->shape(0) != n || init_score->shape(1) != k))
    refuse("init_score must be (n_rows, n_outputs)");
  std::vector<double> out(n * k);
  const double* start = init_score ? init_score->data() : nullptr;
  if (n * (size_t)(last - first) < 4096)
    f.predict(table, first, last, raw, start, out.data(), 1);  // too short to let others run meanwhile
  else freely([&] { f.predict(table, first, last, raw, start, out.data(), n_threads); });
  return k == 1 ? array(std::move(out)) : array(std::move(out), {n, k});
}

nb::ndarray<nb::numpy, int32_t> leaves(const Forest& f, nb::handle x, int64_t first, int64_t last, int n_threads) {
  const Chunk table = chunk_of(x, true);
  check_range(f, table, first, last);
  threads_of(n_threads);
  std::vector<int32_t> out((size_t)table.n_rows * (size_t)(last - first));
  freely([&] { f.leaves(table, first, last, out.data(), n_threads); });
  return array(std::move(out), {(size_t)table.n_rows, (size_t)(last - first)});
}

nb::ndarray<nb::numpy, int32_t> py_combine(nb::handle x, Longs offset, Ints column, Ints n_codes, Doubles threshold,
                                           Longs key_offset, Longs key, int n_threads) {
  const Chunk table = chunk_of(x);
  threads_of(n_threads);
  const size_t n = offset.shape(0) - 1, n_sources = column.shape(0);
  auto rise = [n](const Longs& o, size_t end) {
    bool fine = o.shape(0) == n + 1 && o.data()[0] == 0 && o.data()[n] == (int64_t)end;
    for (size_t i = 0; fine && i < n; i++) fine = o.data()[i] <= o.data()[i + 1];
    return fine;
  };
  if (offset.shape(0) == 0 || !rise(offset, n_sources) || !rise(key_offset, key.shape(0)))
    refuse("offsets of combinations must rise from 0 to the end");
  if (n_codes.shape(0) != n_sources || threshold.shape(0) != n_sources) refuse("every source needs all its parts");
  for (size_t j = 0; j < n_sources; j++)
    if (column.data()[j] < 0 || column.data()[j] >= (int64_t)table.columns.size() || n_codes.data()[j] < 0)
      refuse("no such source of a combination");
  std::vector<int32_t> code(n * (size_t)table.n_rows);
  const Combinations c{(int64_t)n,       offset.data(),     column.data(), n_codes.data(),
                       threshold.data(), key_offset.data(), key.data()};
  freely([&] { combine(c, table, code.data(), n_threads); });
  return array(std::move(code), {n, (size_t)table.n_rows});
}

void new_explainer(Explainer* self, int n_columns, int n_outputs, Longs offset, Ints output, Ints column,
                   Doubles threshold, Bytes missing_left, Ints left, Doubles value, Ints set, Longs set_offset,
                   Ints set_code, Doubles weight) {
  if (weight.shape(0) != left.shape(0)) refuse("every node needs a weight");
  const ForestArrays a =
      arrays_of(offset, output, column, threshold, missing_left, left, value, set, set_offset, set_code);
  new (self) Explainer(n_columns, n_outputs, a, weight.data());
}

nb::ndarray<nb::numpy, double> explain(const Explainer& e, nb::handle x, std::optional<nb::object> background,
                                       bool pairs, int64_t first, int64_t last, int n_threads) {
  const Chunk table = chunk_of(x), other = background ? chunk_of(*background) : Chunk{};
  if (first < 0 || first > last || last > e.n_trees()) refuse("no such range of trees");
  if ((int)table.columns.size() != e.n_columns() || (background && (int)other.columns.size() != e.n_columns()))
    refuse("the table has another number of columns than the model");
  if (background && (other.n_rows < 1 || e.most_factors() > 64))
    refuse("a background needs rows, and paths of at most 64 different columns");
  threads_of(n_threads);
  std::vector<size_t> shape = {(size_t)table.n_rows, (size_t)e.n_outputs(), (size_t)e.n_columns()};
  if (pairs) shape.push_back((size_t)e.n_columns());
  size_t size = 1;
  for (const size_t side : shape) size *= side;
  std::vector<double> out(size);
  freely([&] { e.explain(table, background ? &other : nullptr, pairs, first, last, out.data(), n_threads); });
  return array(std::move(out), shape);
}

nb::dict objectives() {
  nb::dict all;
  for (int i = 0; i < n_objectives(); i++) {
    const ObjectiveInfo& o = objective_info(i);
    nb::dict d;
    nb::dict fields;
    for (int j = 0; j < o.n_fields; j++) {
      const Field& f = o.fields[j];
      fields[f.name] = nb::make_tuple(f.low, f.high, f.open, f.initial, f.aliases);
    }
    d["doc"] = o.doc, d["link"] = o.link, d["metric"] = o.metric, d["labels"] = o.labels, d["leaf"] = o.leaf;
    d["path_smooth"] = o.path_smooth, d["pointwise"] = o.pointwise, d["bound"] = o.bound, d["knots"] = o.knots;
    d["adaptive"] = o.adaptive, d["steps"] = o.steps, d["fields"] = fields;
    all[o.name] = d;
  }
  return all;
}

nb::dict growers() {
  nb::dict all;
  for (int i = 0; i < n_growers(); i++) all[grower_info(i).name] = grower_info(i).doc;
  return all;
}

nb::dict samplers() {
  nb::dict all;
  for (int i = 0; i < n_samplers(); i++) {
    const SamplerInfo& info = sampler_info(i);
    nb::dict d;
    nb::list fields;
    for (int j = 0; j < info.n_fields; j++) fields.append(info.fields[j]);
    d["doc"] = info.doc, d["fields"] = fields, d["shares"] = info.shares;
    d["by_gradient"] = info.counted != Counted::nothing, d["weighs"] = info.weighs;
    all[info.name] = d;
  }
  return all;
}

nb::ndarray<nb::numpy, double> py_link(const std::string& name, Doubles2 raw, int n_threads) {
  const int64_t n = (int64_t)raw.shape(0);
  const int k = (int)raw.shape(1), kind = (int)link_of(name);
  threads_of(n_threads);
  std::vector<double> out((size_t)n * k);
  freely([&] {
    constexpr int64_t ROWS_EACH = 4096;
    run(n_threads, (n + ROWS_EACH - 1) / ROWS_EACH, [&](int64_t t, int) {
      const int64_t at = t * ROWS_EACH;
      kernels().link(kind, raw.data() + at * k, out.data() + at * k, std::min(ROWS_EACH, n - at), k);
    });
  });
  return array(std::move(out), {(size_t)n, (size_t)k});
}

double py_exact_sum(Doubles values, std::optional<Doubles> weight, int n_threads) {
  const int64_t n = (int64_t)values.shape(0);
  const double* w = weights_of(weight, n);
  for (int64_t i = 0; i < n; i++)
    if (!(values.data()[i] - values.data()[i] == 0.0)) refuse("only finite values can be summed");
  threads_of(n_threads);
  return freely([&] { return exact_sum(values.data(), w, n, n_threads); });
}

double py_weight_sum(Doubles weight, int n_threads) {
  weights_of(weight, (int64_t)weight.shape(0));
  return freely([&] { return weight_sum(weight.data(), (int64_t)weight.shape(0), threads_of(n_threads)); });
}

nb::tuple py_counts(Doubles weight) {
  const int64_t n = (int64_t)weight.shape(0);
  Weights w(weights_of(weight, n), n);
  return nb::make_tuple(array(std::move(w.multiple)), w.whole, w.shift);
}

template <class Index>
nb::object ranks_of(const int32_t* found_at, int64_t n, const std::vector<int32_t>& rank) {
  std::vector<Index> out(n);
  for (int64_t i = 0; i < n; i++) out[i] = (Index)rank[found_at[i]];
  return nb::cast(array(std::move(out)));
}

// Distinct values by a small hash table, sorted afterwards; index (n) as uint8 or int32. Gives up (None) beyond `limit` or at a NaN.
template <class T>
nb::object distinct_of(const AnyArray& a, size_t limit) {
  const int64_t n = (int64_t)a.shape(0), stride = a.stride(0);
  const T* x = static_cast<const T*>(a.data());
  size_t size = 64;
  while (size < 4 * limit) size *= 2;
  std::vector<int32_t> slot(size, -1);
  std::vector<T> found;
  const Memory memory((size_t)n * 4);
  int32_t* found_at = memory.as<int32_t>();
  T last{};
  int32_t last_at = -1;
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i * stride] == T(0) ? T(0) : x[i * stride];
    if (v != v) return nb::none();
    if (found.size() <= 4) {  // few so far, as in most classifications: no need to hash
      for (last_at = (int32_t)found.size() - 1; last_at >= 0 && found[last_at] != v;) last_at--;
      last = v;
    }
    if (last_at < 0 || v != last) {
      uint64_t bits = 0;
      __builtin_memcpy(&bits, &v, sizeof v);
      size_t at = mix(bits) & (size - 1);
      while (slot[at] >= 0 && found[slot[at]] != v) at = (at + 1) & (size - 1);
      if (slot[at] < 0) {
        if (found.size() == limit) return nb::none();
        slot[at] = (int32_t)found.size();
        found.push_back(v);
      }
      last = v, last_at = slot[at];
    }
    found_at[i] = last_at;
  }
  std::vector<int32_t> order(found.size());
  for (size_t k = 0; k < order.size(); k++) order[k] = (int32_t)k;
  std::sort(order.begin(), order.end(), [&](int32_t p, int32_t q) { return found[p] < found[q]; });
  std::vector<int32_t> rank(found.size());
  std::vector<T> sorted;
  for (size_t k = 0; k < order.size(); k++) rank[order[k]] = (int32_t)k, sorted.push_back(found[order[k]]);
  const bool few = rank.size() <= 256;
  return nb::make_tuple(array(std::move(sorted)),
                        few ? ranks_of<uint8_t>(found_at, n, rank) : ranks_of<int32_t>(found_at, n, rank));
}

nb::object distinct(AnyArray values, int64_t limit) {
  if (values.ndim() != 1) refuse("values must have 1 dimension");
  if (limit < 1 || limit > 1 << 28) refuse("limit must be 1..2^28");
  switch (kind_of(values)) {
    case Kind::f32:
      return distinct_of<float>(values, limit);
    case Kind::f64:
      return distinct_of<double>(values, limit);
    case Kind::i8:
      return distinct_of<int8_t>(values, limit);
    case Kind::i16:
      return distinct_of<int16_t>(values, limit);
    case Kind::i32:
      return distinct_of<int32_t>(values, limit);
    case Kind::i64:
      return distinct_of<int64_t>(values, limit);
    case Kind::u8:
      return distinct_of<uint8_t>(values, limit);
    case Kind::u16:
      return distinct_of<uint16_t>(values, limit);
    case Kind::u32:
      return distinct_of<uint32_t>(values, limit);
    case Kind::u64:
      return distinct_of<uint64_t>(values, limit);
  }
  return nb::none();
}

const int32_t* counts_of(const std::optional<Ints>& count, int64_t n) {
  if (!count) return nullptr;
  if ((int64_t)count->shape(0) != n) refuse("there must be one count a row");
  for (int64_t i = 0; i < n; i++)
    if (count->data()[i] < 0) refuse("counts must not be negative");
  return count->data();
}

nb::ndarray<nb::numpy, int32_t> py_hash_order(uint64_t seed, uint64_t which, std::optional<Ints> count, int64_t n) {
  if (n < 0 || n > 0x7fffffff) refuse("an order has at most 2^31 - 1 rows");
  const int32_t* c = counts_of(count, n);
  return array(freely([&] { return hash_order(seed, which, c, n); }));
}

nb::ndarray<nb::numpy, double> py_encode(const std::vector<Ints>& codes, const std::vector<int32_t>& n_codes,
                                         Longs2 mass, std::optional<Ints> count, Ints order, double mass_unit,
                                         double count_unit, const std::vector<double>& priors, int n_threads) {
  const int64_t n = (int64_t)mass.shape(1), n_order = (int64_t)order.shape(0);
  if (codes.size() != n_codes.size()) refuse("there must be one number of codes a column");
  Encode e{{},        n_codes,    mass.data(), (int64_t)mass.shape(0), counts_of(count, n), order.data(), n_order, n,
           mass_unit, count_unit, priors};
  for (size_t c = 0; c < codes.size(); c++) {
    if ((int64_t)codes[c].shape(0) != n) refuse("there must be one code a row");
    for (int64_t i = 0; i < n; i++)
      if (codes[c].data()[i] < -2 || codes[c].data()[i] >= n_codes[c]) refuse("a code is -2, -1 or below n_codes");
    e.code.push_back(codes[c].data());
  }
  for (int64_t i = 0; i < n_order; i++)
    if (order.data()[i] < 0 || order.data()[i] >= n) refuse("no such row in the order");
  threads_of(n_threads);
  std::vector<double> value(codes.size() * mass.shape(0) * priors.size() * (size_t)n, 0.0);
  freely([&] { encode(e, value.data(), n_threads); });
  return array(std::move(value), {codes.size(), mass.shape(0), priors.size(), (size_t)n});
}

nb::ndarray<nb::numpy, uint64_t> py_draw(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b, int64_t n) {
  if (n < 0) refuse("n must not be negative");
  std::vector<uint64_t> out(n);
  const uint64_t k = key(seed, purpose, a, b);
  for (int64_t i = 0; i < n; i++) out[i] = draw(k, i);
  return array(std::move(out));
}

nb::ndarray<nb::numpy, double> py_math(const std::string& name, Doubles x) {
  double (*f)(double) = nullptr;
  if (name == "exp") f = sapwood::exp;
  else if (name == "log") f = sapwood::log;
  else if (name == "log1p") f = sapwood::log1p;
  else if (name == "expm1") f = sapwood::expm1;
  else if (name == "sigmoid") f = sapwood::sigmoid;
  else if (name == "softplus") f = sapwood::softplus;
  else if (name == "tanh") f = sapwood::tanh;
  else refuse("no function named " + name);
  std::vector<double> out(x.shape(0));
  for (size_t i = 0; i < out.size(); i++) out[i] = f(x.data()[i]);
  return array(std::move(out));
}

void set_isa(const std::string& name) {
  if (choose_kernels(name.c_str()) == nullptr)
    refuse("this machine has no path named " + name + "; try auto, portable, avx2 or avx512");
}

}  // namespace

NB_MODULE(_core, m) {
  set_poll(interrupted);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { gate.close(); }));
  if (const char* isa = getenv("SAPWOOD_ISA"); isa != nullptr && *isa != 0) set_isa(isa);
  m.attr("EVERY_VALUE") = EVERY_VALUE;
  m.def("cuts", cuts, nb::arg("chunks"), nb::arg("weight").none(), nb::arg("max_bins"), nb::arg("min_samples_bin"),
        nb::arg("n_threads"));
  nb::class_<Binned>(m, "Binned")
      .def("__init__", new_binned, nb::arg("chunks"), nb::arg("cuts"), nb::arg("n_threads"), nb::arg("exact") = false,
           nb::arg("n_categories").none() = nb::none(), nb::arg("fuse").none() = nb::none())
      .def_ro("n_rows", &Binned::n_rows)
      .def_ro("n_columns", &Binned::n_columns)
      .def_prop_ro("n_chunks", [](const Binned& b) { return b.shards.size(); })
      .def_prop_ro("n_bytes", &Binned::n_bytes)
      .def_prop_ro("slots",
                   [](const Binned& b) {
                     std::vector<std::vector<int>> slots;
                     for (const Slot& s : b.layout.slots) slots.push_back(s.columns);
                     return slots;
                   })
      .def("codes", codes, nb::arg("column"))
      .def("listed", listed, nb::arg("n_threads"));
  nb::class_<PyTrainer>(m, "Trainer")
      .def("__init__", new_trainer, nb::arg("binned"), nb::arg("label").noconvert(), nb::arg("weight").none(),
           nb::arg("objective"), nb::arg("fields"), nb::arg("n_outputs"), nb::arg("n_threads"))
      .def("start", [](PyTrainer& s) { return array(freely([&] { return s.trainer->start(); })); })
      .def(
          "fill_scores",
          [](PyTrainer& s, Doubles start) { check_scores(s, start), s.trainer->fill_scores(start.data()); },
          nb::arg("start"))
      .def(
          "set_scores",
          [](PyTrainer& s, Doubles2 scores) {
            if ((int)scores.shape(0) != s.trainer->n_outputs() || (int64_t)scores.shape(1) != s.trainer->n_rows())
              refuse("scores must be (n_outputs, n_rows)");
            s.trainer->set_scores(scores.data());
          },
          nb::arg("scores"))
      .def("scores",
           [](PyTrainer& s) {
             const double* from = freely([&] { return s.trainer->scores(); });
             const size_t k = (size_t)s.trainer->n_outputs(), n = (size_t)s.trainer->n_rows();
             return array(std::vector<double>(from, from + k * n), {k, n});
           })
      .def("gradients", py_gradients, nb::arg("precision"), nb::arg("unit_search") = false,
           nb::arg("unit_leaf") = false, nb::arg("gradient").none() = nb::none(),
           nb::arg("hessian").none() = nb::none())
      .def("set_sampler", set_sampler, nb::arg("name"), nb::arg("fields"), nb::arg("share").none() = nb::none(),
           nb::arg("unit").none() = nb::none())
      .def(
          "sample",
          [](PyTrainer& s, uint64_t seed, uint64_t round, std::optional<double> subsample) {
            if (subsample && !(*subsample > 0.0 && *subsample <= 1.0))
              refuse("subsample must be above 0 and at most 1");
            return freely([&] { return s.trainer->sample(seed, round, subsample); });
          },
          nb::arg("seed"), nb::arg("round"), nb::arg("subsample").none())
      .def("set_rules", set_rules, nb::arg("direction"), nb::arg("intermediate"), nb::arg("groups"), nb::arg("extra"),
           nb::arg("forced"), nb::arg("alone"))
      .def("set_taste", set_taste, nb::arg("cosine"), nb::arg("weight"), nb::arg("penalty"), nb::arg("used"))
      .def("grow", grow, nb::arg("policy"), nb::arg("limits"), nb::arg("seed"), nb::arg("tree"), nb::arg("luck") = 0.0,
           nb::arg("together") = false, nb::arg("ends") = std::vector<int64_t>{})
      .def(
          "do_as", [](PyTrainer& s, const PyTrainer& other) { s.trainer->do_as(*other.trainer); }, nb::arg("other"))
      .def(
          "leaves", [](PyTrainer& s, int output) { return array(s.trainer->leaves(leaves_of(s, output))); },
          nb::arg("output"))
      .def(
          "sums",
          [](PyTrainer& s, int output, Doubles step) {
            leaves_of(s, output, step);
            return three(freely([&] { return s.trainer->sums(output, step.data()); }));
          },
          nb::arg("output"), nb::arg("step"))
      .def("refit", refit, nb::arg("output"), nb::arg("method"), nb::arg("iterations"), nb::arg("reg_lambda"),
           nb::arg("reg_alpha"), nb::arg("max_delta_step"))
      .def(
          "search_step",
          [](PyTrainer& s, int output, Doubles value) {
            leaves_of(s, output, value);
            return freely([&] { return s.trainer->search_step(output, list(value)); });
          },
          nb::arg("output"), nb::arg("value"))
      .def("assign", assign, nb::arg("output"), nb::arg("number"), nb::arg("n_leaves"))
      .def("set_leaves", set_leaves, nb::arg("output"), nb::arg("number").none(), nb::arg("value"))
      .def("set_table", set_table, nb::arg("table"))
      .def("fit_linear", py_fit_linear, nb::arg("output"), nb::arg("offset"), nb::arg("column"), nb::arg("value"),
           nb::arg("rate"), nb::arg("reg_lambda"), nb::arg("linear_lambda"), nb::arg("linear_smooth"))
      .def(
          "add_scores", [](PyTrainer& s, int output) { s.trainer->add_scores(output_of(s, output)); },
          nb::arg("output"));
  m.def("evaluate", py_evaluate, nb::arg("objective"), nb::arg("fields"), nb::arg("score"), nb::arg("label"));
  m.def("apply", py_apply, nb::arg("binned"), nb::arg("column"), nb::arg("bin"), nb::arg("missing_left"),
        nb::arg("left"), nb::arg("set"), nb::arg("set_offset"), nb::arg("set_code"), nb::arg("n_threads"));
  m.def("linear_values", py_linear_values, nb::arg("table"), nb::arg("node"), nb::arg("value"), nb::arg("offset"),
        nb::arg("column"), nb::arg("coef"), nb::arg("n_threads"));
  nb::class_<Forest>(m, "Forest")
      .def("__init__", new_forest, nb::arg("n_columns"), nb::arg("offset"), nb::arg("output"), nb::arg("column"),
           nb::arg("threshold"), nb::arg("missing_left"), nb::arg("left"), nb::arg("value"), nb::arg("set"),
           nb::arg("set_offset"), nb::arg("set_code"), nb::arg("base"), nb::arg("link"),
           nb::arg("linear_offset").none() = nb::none(), nb::arg("linear_column").none() = nb::none(),
           nb::arg("linear_coef").none() = nb::none())
      .def("predict", predict, nb::arg("table"), nb::arg("first") = 0, nb::arg("last") = -1, nb::arg("raw") = false,
           nb::arg("init_score").none() = nb::none(), nb::arg("n_threads") = 1)
      .def("leaves", leaves, nb::arg("table"), nb::arg("first"), nb::arg("last"), nb::arg("n_threads"));
  nb::class_<Explainer>(m, "Explainer")
      .def("__init__", new_explainer, nb::arg("n_columns"), nb::arg("n_outputs"), nb::arg("offset"), nb::arg("output"),
           nb::arg("column"), nb::arg("threshold"), nb::arg("missing_left"), nb::arg("left"), nb::arg("value"),
           nb::arg("set"), nb::arg("set_offset"), nb::arg("set_code"), nb::arg("weight"))
      .def_prop_ro("most_columns", &Explainer::most_factors)
      .def("expected",
           [](const Explainer& e) {
             std::vector<double> all;
             for (int64_t t = 0; t < e.n_trees(); t++) all.push_back(e.expected(t));
             return array(std::move(all));
           })
      .def("explain", explain, nb::arg("table"), nb::arg("background").none(), nb::arg("pairs"), nb::arg("first"),
           nb::arg("last"), nb::arg("n_threads"));
  m.def("objectives", objectives);
  m.def("growers", growers);
  m.def("samplers", samplers);
  m.def("link", py_link, nb::arg("name"), nb::arg("raw"), nb::arg("n_threads") = 1);
  m.def("exact_sum", py_exact_sum, nb::arg("values"), nb::arg("weight").none(), nb::arg("n_threads") = 1);
  m.def("weight_sum", py_weight_sum, nb::arg("weight"), nb::arg("n_threads") = 1);
  m.def("counts", py_counts, nb::arg("weight"));
  m.def("distinct", distinct, nb::arg("values"), nb::arg("limit"));
  m.def("draw", py_draw, nb::arg("seed"), nb::arg("purpose"), nb::arg("a"), nb::arg("b"), nb::arg("n"));
  m.def("hash_order", py_hash_order, nb::arg("seed"), nb::arg("which"), nb::arg("count").none(), nb::arg("n"));
  m.def("encode", py_encode, nb::arg("codes"), nb::arg("n_codes"), nb::arg("mass"), nb::arg("count").none(),
        nb::arg("order"), nb::arg("mass_unit"), nb::arg("count_unit"), nb::arg("priors"), nb::arg("n_threads"));
  m.def("combine", py_combine, nb::arg("table"), nb::arg("offset"), nb::arg("column"), nb::arg("n_codes"),
        nb::arg("threshold"), nb::arg("key_offset"), nb::arg("key"), nb::arg("n_threads"));
  m.def("math", py_math, nb::arg("name"), nb::arg("x"));
  m.def("isa", [] { return kernels().name; });
  m.def("set_isa", set_isa, nb::arg("name"));
  m.def("n_workers", pool_workers);
}
