// A model: predictions, leaves, explanations.
#include "bind/shelves.h"
#include "bind/tables.h"
#include "cpu/predict/forest.h"
#include "cpu/predict/shap.h"

namespace sapwood {
namespace {

ForestArrays arrays_of(const Longs& offset, const Ints& output, const Ints& column,
                       const Doubles& threshold, const Bytes& missing_left, const Ints& left,
                       const Doubles& value, const Ints& set, const Longs& set_offset,
                       const Ints& set_code) {
  const size_t n = left.shape(0);
  const size_t t = output.shape(0);
  if (offset.shape(0) != t + 1 || column.shape(0) != n || threshold.shape(0) != n ||
      missing_left.shape(0) != n || value.shape(0) != n || set.shape(0) != n ||
      set_offset.shape(0) < 1) {
    refuse("the arrays of a forest must fit together");
  }
  ForestArrays a{};
  a.n_trees = (int64_t)t;
  a.n_nodes = (int64_t)n;
  a.offset = offset.data();
  a.output = output.data();
  a.column = column.data();
  a.threshold = threshold.data();
  a.missing_left = missing_left.data();
  a.left = left.data();
  a.value = value.data();
  a.set = set.data();
  a.n_sets = (int64_t)set_offset.shape(0) - 1;
  a.n_codes = (int64_t)set_code.shape(0);
  a.set_offset = set_offset.data();
  a.set_code = set_code.data();
  return a;
}

void set_terms(ForestArrays& a, int n_columns, const std::optional<Longs>& offset,
               const std::optional<Ints>& column, const std::optional<Doubles>& coef,
               const std::optional<Doubles>& bounds) {
  const bool terms = offset.has_value();
  if (column.has_value() != terms || coef.has_value() != terms || bounds.has_value() != terms) {
    refuse("the terms of leaves come together");
  }
  if (terms) {
    a.linear = terms_of(*offset, *column, *coef, *bounds, (size_t)a.n_nodes, n_columns);
  }
}

void new_forest(Forest* self, int n_columns, Longs offset, Ints output, Ints column,
                Doubles threshold, Bytes missing_left, Ints left, Doubles value, Ints set,
                Longs set_offset, Ints set_code, Doubles base, const std::string& link,
                std::optional<Longs> linear_offset, std::optional<Ints> linear_column,
                std::optional<Doubles> linear_coef, std::optional<Doubles> linear_bounds) {
  ForestArrays a = arrays_of(offset, output, column, threshold, missing_left, left, value, set,
                             set_offset, set_code);
  set_terms(a, n_columns, linear_offset, linear_column, linear_coef, linear_bounds);
  new (self) Forest(n_columns, a, std::vector<double>(base.data(), base.data() + base.shape(0)),
                    link_of(link));
}

void check_range(const Forest& f, const Chunk& table, int64_t first, int64_t& last) {
  if (last < 0) {
    last = f.n_trees();
  }
  if (first < 0 || first > last || last > f.n_trees()) {
    refuse("the range of trees must lie within 0..n_trees");
  }
  if ((table.lists ? table.lists->n_columns : (int)table.columns.size()) != f.n_columns()) {
    refuse("the table must have as many columns as the model");
  }
  if (table.lists && f.has_sets()) {
    refuse("sparse rows have no categories");
  }
}

nb::ndarray<nb::numpy, double> predict(const Forest& f, nb::handle x, int64_t first, int64_t last,
                                       bool raw, std::optional<Doubles2> init_score,
                                       int n_threads) {
  const Chunk table = chunk_of(x, true);
  check_range(f, table, first, last);
  threads_of(n_threads);
  const size_t n = (size_t)table.n_rows;
  const size_t k = (size_t)f.n_outputs();
  if (init_score && (init_score->shape(0) != n || init_score->shape(1) != k)) {
    refuse("init_score must be (n_rows, n_outputs)");
  }
  std::vector<double> out(n * k);
  const double* start = init_score ? init_score->data() : nullptr;
  // too short for releasing the GIL to pay
  if (n * (size_t)(last - first) < 4096) {
    f.predict(table, first, last, raw, start, out.data(), 1);
  } else {
    without_gil([&] {
      f.predict(table, first, last, raw, start, out.data(), n_threads);
    });
  }
  return k == 1 ? array(std::move(out)) : array(std::move(out), {n, k});
}

nb::ndarray<nb::numpy, int32_t> leaves(const Forest& f, nb::handle x, int64_t first, int64_t last,
                                       int n_threads) {
  const Chunk table = chunk_of(x, true);
  check_range(f, table, first, last);
  threads_of(n_threads);
  std::vector<int32_t> out((size_t)table.n_rows * (size_t)(last - first));
  without_gil([&] {
    f.leaves(table, first, last, out.data(), n_threads);
  });
  return array(std::move(out), {(size_t)table.n_rows, (size_t)(last - first)});
}

nb::tuple py_branches(Ints left, Ints column, Ints set) {
  const int64_t n = (int64_t)left.shape(0);
  if ((int64_t)column.shape(0) != n || (int64_t)set.shape(0) != n) {
    refuse("the arrays of a tree must fit together");
  }
  for (int64_t u = 0; u < n; u++) {
    if (left.data()[u] != 0 && (left.data()[u] <= u || left.data()[u] + 1 >= n)) {
      refuse("children follow their parents");
    }
  }
  Branches found = branches(left.data(), column.data(), set.data(), n);
  return nb::make_tuple(array(std::move(found.offset)), array(std::move(found.column)));
}

nb::ndarray<nb::numpy, double> py_linear_values(AnyArray table, Ints node, Doubles value,
                                                Longs offset, Ints column, Doubles coef,
                                                Doubles bounds, int n_threads) {
  const RawTable raw = table_of(table);
  const size_t n = table.shape(0);
  const size_t n_nodes = value.shape(0);
  const LinearView terms = terms_of(offset, column, coef, bounds, n_nodes, raw.n_columns);
  if (node.shape(0) != n) {
    refuse("every row needs its node");
  }
  for (size_t i = 0; i < n; i++) {
    if (node.data()[i] < 0 || (size_t)node.data()[i] >= n_nodes) {
      refuse("no such node");
    }
  }
  threads_of(n_threads);
  std::vector<double> out(n);
  without_gil([&] {
    linear_values(raw, terms, value.data(), node.data(), (int64_t)n, out.data(), n_threads);
  });
  return array(std::move(out));
}

void new_explainer(Explainer* self, int n_columns, int n_outputs, Longs offset, Ints output,
                   Ints column, Doubles threshold, Bytes missing_left, Ints left, Doubles value,
                   Ints set, Longs set_offset, Ints set_code, Doubles weight,
                   std::optional<Longs> linear_offset, std::optional<Ints> linear_column,
                   std::optional<Doubles> linear_coef, std::optional<Doubles> linear_bounds) {
  if (weight.shape(0) != left.shape(0)) {
    refuse("every node needs a weight");
  }
  ForestArrays a = arrays_of(offset, output, column, threshold, missing_left, left, value, set,
                             set_offset, set_code);
  set_terms(a, n_columns, linear_offset, linear_column, linear_coef, linear_bounds);
  new (self) Explainer(n_columns, n_outputs, a, weight.data());
}

nb::ndarray<nb::numpy, double> explain(const Explainer& e, nb::handle x,
                                       std::optional<nb::object> background, bool pairs,
                                       int64_t first, int64_t last, int n_threads) {
  const Chunk table = chunk_of(x);
  const Chunk other = background ? chunk_of(*background) : Chunk{};
  if (first < 0 || first > last || last > e.n_trees()) {
    refuse("the range of trees must lie within 0..n_trees");
  }
  if ((int)table.columns.size() != e.n_columns() ||
      (background && (int)other.columns.size() != e.n_columns())) {
    refuse("the table must have as many columns as the model");
  }
  if (background && (other.n_rows < 1 || e.max_factors() > 64)) {
    refuse("a background needs rows, and paths of at most 64 different columns");
  }
  threads_of(n_threads);
  std::vector<size_t> shape = {(size_t)table.n_rows, (size_t)e.n_outputs(), (size_t)e.n_columns()};
  if (pairs) {
    shape.push_back((size_t)e.n_columns());
  }
  size_t size = 1;
  for (const size_t side : shape) {
    size *= side;
  }
  std::vector<double> out(size);
  without_gil([&] {
    e.explain(table, background ? &other : nullptr, pairs, first, last, out.data(), n_threads);
  });
  return array(std::move(out), shape);
}

nb::dict py_paths(const Explainer& e) {
  FlatPaths f = flat(e.trees());
  nb::dict out;
  auto put = [&](const char* name, auto&& values) {
    out[name] = array(std::move(values));
  };
  put("group_at", f.group_at);
  put("bit_at", f.bit_at);
  put("leaf_at", f.leaf_at);
  put("slot_at", f.slot_at);
  put("literal_at", f.literal_at);
  put("factor_at", f.factor_at);
  put("literal_node", f.literal_node);
  put("literal_left", f.literal_left);
  put("slot_column", f.slot_column);
  put("leaf_value", f.leaf_value);
  put("factor_slot", f.factor_slot);
  put("factor_mask", f.factor_mask);
  put("factor_want", f.factor_want);
  put("weight_fraction", f.weight_fraction);
  put("points", e.points());
  put("point_weights", e.point_weights());
  return out;
}

}  // namespace

void bind_model(nb::module_& m) {
  nb::class_<Forest>(m, "Forest")
      .def("__init__", new_forest, "n_columns"_a, "offset"_a, "output"_a, "column"_a, "threshold"_a,
           "missing_left"_a, "left"_a, "value"_a, "set"_a, "set_offset"_a, "set_code"_a, "base"_a,
           "link"_a, "linear_offset"_a.none() = nb::none(), "linear_column"_a.none() = nb::none(),
           "linear_coef"_a.none() = nb::none(), "linear_bounds"_a.none() = nb::none())
      .def("predict", predict, "table"_a, "first"_a = 0, "last"_a = -1, "raw"_a = false,
           "init_score"_a.none() = nb::none(), "n_threads"_a = 1)
      .def("leaves", leaves, "table"_a, "first"_a, "last"_a, "n_threads"_a);
  m.def("branches", py_branches, "left"_a, "column"_a, "set"_a);
  m.def("linear_values", py_linear_values, "table"_a, "node"_a, "value"_a, "offset"_a, "column"_a,
        "coef"_a, "bounds"_a, "n_threads"_a);
  nb::class_<Explainer>(m, "Explainer")
      .def("__init__", new_explainer, "n_columns"_a, "n_outputs"_a, "offset"_a, "output"_a,
           "column"_a, "threshold"_a, "missing_left"_a, "left"_a, "value"_a, "set"_a,
           "set_offset"_a, "set_code"_a, "weight"_a, "linear_offset"_a.none() = nb::none(),
           "linear_column"_a.none() = nb::none(), "linear_coef"_a.none() = nb::none(),
           "linear_bounds"_a.none() = nb::none())
      .def_prop_ro("max_path_columns", &Explainer::max_factors)
      .def("expected",
           [](const Explainer& e) {
             std::vector<double> all;
             for (int64_t t = 0; t < e.n_trees(); t++) {
               all.push_back(e.expected(t));
             }
             return array(std::move(all));
           })
      .def("paths", py_paths)
      .def("explain", explain, "table"_a, "background"_a.none(), "pairs"_a, "first"_a, "last"_a,
           "n_threads"_a);
}

}  // namespace sapwood
