// Training, once trees stand: what their leaves say, and scores with it.
#include "bind/shelves.h"
#include "bind/tables.h"
#include "bind/trainer.h"

namespace sapwood {
namespace {

// An output whose tree stands, with as many values as it has leaves.
int leaves_of(PyTrainer& self, int output, const std::optional<Doubles>& values = {}) {
  const size_t n = self.trainer->n_leaves(output_of(self, output));
  if (n == 0 || n > MAX_LEAF_IDS) {
    refuse("leaf values can be refitted in trees of at most 65,536 leaves");
  }
  if (values && values->shape(0) != n) {
    refuse("there must be one value a leaf");
  }
  return output;
}

std::vector<double> list(const Doubles& x) {
  return std::vector<double>(x.data(), x.data() + x.shape(0));
}

nb::ndarray<nb::numpy, double> refit(PyTrainer& s, int output, const std::string& method,
                                     int iterations, double reg_lambda, double reg_alpha,
                                     double max_delta_step) {
  leaves_of(s, output);
  const bool joint = method == "joint";
  if (method != "newton" && method != "gradient" && method != "exact" && !joint) {
    refuse("no leaf estimation named " + method);
  }
  if (joint && (s.trainer->pointwise() || s.trainer->n_leaves(output) != s.trainer->n_leaves(0))) {
    refuse("joint leaf values are those of softmax, in trees of the same splits");
  }
  if (iterations < 0 || !(reg_lambda >= 0.0) || !(reg_alpha >= 0.0) || !(max_delta_step >= 0.0)) {
    refuse("limits must not be negative");
  }
  const LeafRule rule{method == "exact",
                      method == "gradient",
                      joint,
                      iterations,
                      {reg_lambda, reg_alpha, max_delta_step}};
  return array(without_gil([&] {
    return s.trainer->refit(output, rule);
  }));
}

void set_leaf_ids(PyTrainer& s, int output, Ints leaf_id, int64_t n_leaves) {
  if (n_leaves < 1 || n_leaves > (int64_t)MAX_LEAF_IDS) {
    refuse("rows can be assigned to at most 65,536 leaves");
  }
  if ((int64_t)leaf_id.shape(0) != s.trainer->n_rows()) {
    refuse("every row needs a leaf");
  }
  for (size_t i = 0; i < leaf_id.shape(0); i++) {
    if (leaf_id.data()[i] < 0 || leaf_id.data()[i] >= n_leaves) {
      refuse("no such leaf");
    }
  }
  without_gil([&] {
    s.trainer->set_leaf_ids(output_of(s, output), leaf_id.data(), (size_t)n_leaves);
  });
}

void assign_rows(PyTrainer& s, int output, const Binned& table, Ints column, Ints bin,
                 Bytes missing_left, Ints left, Ints set, Longs set_offset, Ints set_code) {
  const TreeView tree =
      tree_over(table, column, bin, missing_left, left, set, set_offset, set_code);
  if (tree.n_leaves() > (int)MAX_LEAF_IDS) {
    refuse("rows can be assigned to at most 65,536 leaves");
  }
  if (table.n_rows != s.trainer->n_rows()) {
    refuse("every row needs a leaf");
  }
  without_gil([&] {
    s.trainer->assign_rows(output_of(s, output), table, tree);
  });
}

void relabel_leaves(PyTrainer& s, int output, std::optional<Ints> new_id, Doubles value) {
  const size_t n = s.trainer->n_leaves(leaves_of(s, output));
  const size_t n_new = value.shape(0);
  if (new_id ? new_id->shape(0) != n : n_new != n) {
    refuse("every leaf needs a new id and a value");
  }
  for (size_t i = 0; new_id && i < n; i++) {
    if (new_id->data()[i] < 0 || (size_t)new_id->data()[i] >= n_new) {
      refuse("no such leaf");
    }
  }
  const std::vector<int32_t> map =
      new_id ? std::vector<int32_t>(new_id->data(), new_id->data() + n) : std::vector<int32_t>{};
  without_gil([&] {
    s.trainer->relabel_leaves(output, map, list(value));
  });
}

void set_table(PyTrainer& s, nb::object table) {
  const AnyArray a = nb::cast<AnyArray>(table);
  const RawTable raw = table_of(a);
  if ((int64_t)a.shape(0) != s.trainer->n_rows()) {
    refuse("the table of values must have the rows of the binned one");
  }
  s.table = table;
  s.trainer->set_table(raw);
}

// The table of values must have the columns of the binned one, except for `set_linear`.
void own_table(PyTrainer& s) {
  if (!s.table.is_valid() ||
      s.trainer->table().n_columns != nb::cast<const Binned&>(s.binned).n_columns) {
    refuse("linear leaves need a table of values, with the columns of the binned one");
  }
}

nb::ndarray<nb::numpy, double> standardise(PyTrainer& s, std::optional<Doubles> bounds) {
  own_table(s);
  if (bounds && bounds->shape(0) != 3 * (size_t)nb::cast<const Binned&>(s.binned).n_columns) {
    refuse("every column needs three bounds");
  }
  return array(std::vector<double>(without_gil([&] {
    return s.trainer->standardise(bounds ? bounds->data() : nullptr);
  })));
}

void set_linear(PyTrainer& s, int output, Longs offset, Ints column, Doubles coef, Doubles bounds) {
  const size_t n = s.trainer->n_leaves(leaves_of(s, output));
  if (!s.table.is_valid()) {
    refuse("linear leaves need a table of values");
  }
  const LinearView v = terms_of(offset, column, coef, bounds, n, s.trainer->table().n_columns);
  const int64_t n_terms = v.offset[n];
  s.trainer->set_linear(
      output,
      {{v.offset, v.offset + n + 1}, {v.column, v.column + n_terms}, {v.coef, v.coef + n_terms}},
      list(bounds));
}

nb::list py_fit_linear(PyTrainer& s, int first, Longs offset, Ints column, Doubles2 value,
                       double rate, double reg_lambda, double linear_lambda, double linear_smooth) {
  const size_t n = s.trainer->n_leaves(leaves_of(s, first));
  const int end = first + (int)value.shape(0);
  if (value.shape(0) == 0 || value.shape(1) != n) {
    refuse("there must be one value a leaf");
  }
  for (int k = first; k < end; k++) {
    if (s.trainer->n_leaves(leaves_of(s, k)) != n) {
      refuse("these outputs must have the same leaves");
    }
  }
  const int64_t* at = offset.data();
  own_table(s);
  if (offset.shape(0) != n + 1 || at[0] != 0 || at[n] != (int64_t)column.shape(0)) {
    refuse("every leaf needs its columns");
  }
  for (size_t i = 0; i < n; i++) {
    if (at[i] > at[i + 1]) {
      refuse("the columns of leaves must follow each other");
    }
  }
  for (size_t j = 0; j < column.shape(0); j++) {
    if (column.data()[j] < 0 || column.data()[j] >= nb::cast<const Binned&>(s.binned).n_columns) {
      refuse("no such column");
    }
  }
  if (!(reg_lambda >= 0.0) || !(linear_lambda >= 0.0) || !(linear_smooth >= 0.0)) {
    refuse("limits must not be negative");
  }
  const LinearRule rule{at,         column.data(), value.data(), rate,
                        reg_lambda, linear_lambda, linear_smooth};
  nb::list out;
  for (LinearPart& part : without_gil([&] {
         return s.trainer->fit_linear(first, end, rule);
       })) {
    out.append(nb::make_tuple(array(std::move(part.offset)), array(std::move(part.column)),
                              array(std::move(part.coef))));
  }
  return out;
}

nb::list py_replay(PyTrainer& s, int first, int end, Ints column, Ints bin, Bytes missing_left,
                   Ints left, Ints set, Longs set_offset, Ints set_code, nb::dict limits) {
  const Binned& b = nb::cast<const Binned&>(s.binned);
  const TreeView tree = tree_over(b, column, bin, missing_left, left, set, set_offset, set_code);
  if (tree.n_leaves() > (int)MAX_LEAF_IDS) {
    refuse("trees of at most 65,536 leaves can be replayed");
  }
  const Limits own = limits_of(limits);
  if (output_of(s, first) >= end || output_of(s, end - 1) < first) {
    refuse("no such outputs");
  }
  nb::list out;
  for (ReplayedTree& one : without_gil([&] {
         return s.trainer->replay(first, end, tree, own);
       })) {
    out.append(nb::make_tuple(array(std::move(one.value)), array(std::move(one.cover)),
                              array(std::move(one.count))));
  }
  return out;
}

void py_restore(PyTrainer& s, int output, Ints column, Ints bin, Bytes missing_left, Ints left,
                Ints set, Longs set_offset, Ints set_code, Doubles value) {
  const Binned& b = nb::cast<const Binned&>(s.binned);
  const TreeView tree = tree_over(b, column, bin, missing_left, left, set, set_offset, set_code);
  if (value.shape(0) != left.shape(0)) {
    refuse("every node needs a value");
  }
  without_gil([&] {
    s.trainer->restore(output_of(s, output), tree, value.data());
  });
}

}  // namespace

void bind_leaves(nb::class_<PyTrainer>& trainer) {
  trainer
      .def(
          "leaf_ids",
          [](PyTrainer& s, int output) {
            return array(s.trainer->leaf_ids(leaves_of(s, output)));
          },
          "output"_a)
      .def(
          "leaf_loss_sums",
          [](PyTrainer& s, int output, Doubles step) {
            leaves_of(s, output, step);
            return loss_gradient_hessian(without_gil([&] {
              return s.trainer->leaf_loss_sums(output, step.data());
            }));
          },
          "output"_a, "step"_a)
      .def("replay", py_replay, "first"_a, "end"_a, "column"_a, "bin"_a, "missing_left"_a, "left"_a,
           "set"_a, "set_offset"_a, "set_code"_a, "limits"_a)
      .def("restore", py_restore, "output"_a, "column"_a, "bin"_a, "missing_left"_a, "left"_a,
           "set"_a, "set_offset"_a, "set_code"_a, "value"_a)
      .def("refit", refit, "output"_a, "method"_a, "iterations"_a, "reg_lambda"_a, "reg_alpha"_a,
           "max_delta_step"_a)
      .def("fields",
           [](PyTrainer& s) {
             return array(s.trainer->fields());
           })
      .def(
          "line_search",
          [](PyTrainer& s, int output, Doubles value) {
            leaves_of(s, output, value);
            return without_gil([&] {
              return s.trainer->line_search(output, list(value));
            });
          },
          "output"_a, "value"_a)
      .def("set_leaf_ids", set_leaf_ids, "output"_a, "leaf_id"_a, "n_leaves"_a)
      .def("assign_rows", assign_rows, "output"_a, "table"_a, "column"_a, "bin"_a, "missing_left"_a,
           "left"_a, "set"_a, "set_offset"_a, "set_code"_a)
      .def("relabel_leaves", relabel_leaves, "output"_a, "new_id"_a.none(), "value"_a)
      .def("set_table", set_table, "table"_a)
      .def("standardise", standardise, "bounds"_a.none())
      .def("units",
           [](PyTrainer& s) {
             return array(s.trainer->units());
           })
      .def("set_linear", set_linear, "output"_a, "offset"_a, "column"_a, "coef"_a, "bounds"_a)
      .def("fit_linear", py_fit_linear, "first"_a, "offset"_a, "column"_a, "value"_a, "rate"_a,
           "reg_lambda"_a, "linear_lambda"_a, "linear_smooth"_a)
      .def(
          "add_scores",
          [](PyTrainer& s, int output) {
            without_gil([&] {
              s.trainer->add_scores(output_of(s, output));
            });
          },
          "output"_a);
}

}  // namespace sapwood
