// Training, up to the trees of a round: scores, gradients, sample, constraints, growth.
#include "bind/trainer.h"

#include <algorithm>

#include "bind/shelves.h"

namespace sapwood {

Limits limits_of(nb::dict d) {
  Limits l;
  auto take = [&](const char* name, auto& into) {
    if (!d.contains(name)) {
      refuse(std::string("limits lack ") + name);
    }
    into = nb::cast<std::remove_reference_t<decltype(into)>>(d[name]);
  };
  take("max_depth", l.max_depth);
  take("max_leaves", l.max_leaves);
  take("min_child_weight", l.min_child_weight);
  take("min_samples_leaf", l.min_samples_leaf);
  take("reg_lambda", l.reg_lambda);
  take("reg_alpha", l.reg_alpha);
  take("min_split_gain", l.min_split_gain);
  take("max_delta_step", l.max_delta_step);
  take("path_smooth", l.path_smooth);
  take("learning_rate", l.learning_rate);
  take("colsample_bytree", l.colsample_bytree);
  take("colsample_bylevel", l.colsample_bylevel);
  take("colsample_bynode", l.colsample_bynode);
  take("max_cat_to_onehot", l.max_cat_to_onehot);
  take("max_cat_threshold", l.max_cat_threshold);
  take("cat_smooth", l.cat_smooth);
  take("cat_l2", l.cat_l2);
  take("min_data_per_group", l.min_data_per_group);
  if (d.size() != 18) {
    refuse("limits hold an unknown name");
  }
  for (const double x :
       {l.min_child_weight, l.min_samples_leaf, l.reg_lambda, l.reg_alpha, l.max_delta_step,
        l.path_smooth, l.cat_smooth, l.cat_l2, l.min_data_per_group}) {
    if (!(x >= 0.0 && x < INF)) {
      refuse("limits must be finite and not negative");
    }
  }
  if (l.max_depth < 0 || l.max_leaves < 0 || l.max_cat_to_onehot < 0 || l.max_cat_threshold < 1) {
    refuse("limits must not be negative");
  }
  return l;
}

namespace {

void new_trainer(PyTrainer* self, nb::object binned, Doubles2 label, std::optional<Doubles> weight,
                 const std::string& objective, nb::dict fields, int n_outputs, int n_threads) {
  const Binned& b = nb::cast<const Binned&>(binned);
  const int o = index_of(n_objectives(), objective_info, objective, "objective");
  const ObjectiveInfo& info = objective_info(o);
  if ((int64_t)label.shape(1) != b.n_rows) {
    refuse("there must be one label a row");
  }
  const bool planes = label.shape(0) > 1;
  if (n_outputs < 1 || (planes && ((int)label.shape(0) != n_outputs || !info.pointwise)) ||
      (info.adaptive && n_outputs > 1)) {
    refuse("objective " + objective + " cannot have that many outputs");
  }
  const double* w = weights_of(weight, b.n_rows);
  threads_of(n_threads);
  std::vector<double> field;
  for (int k = 0; k < n_outputs; k++) {
    for (const double x : fields_of(info, fields, k, n_outputs)) {
      field.push_back(x);
    }
  }
  auto trainer = without_gil([&] {
    return std::make_unique<Trainer>(b, label.data(), planes, w, o, field, n_outputs, n_threads);
  });
  new (self) PyTrainer{binned, label, std::move(trainer)};
}

void check_scores(PyTrainer& self, const Doubles& start) {
  if ((int)start.shape(0) != self.trainer->n_outputs()) {
    refuse("there must be one start score an output");
  }
}

nb::ndarray<nb::numpy, double> py_scores(PyTrainer& s, std::optional<Ints> rows) {
  const double* from = without_gil([&] {
    return s.trainer->scores();
  });
  const size_t k = (size_t)s.trainer->n_outputs();
  const size_t n = (size_t)s.trainer->n_rows();
  if (!rows) {
    return array(std::vector<double>(from, from + k * n), {k, n});
  }
  const size_t m = rows->shape(0);
  std::vector<double> out(k * m);
  for (size_t i = 0; i < m; i++) {
    if (rows->data()[i] < 0 || (size_t)rows->data()[i] >= n) {
      refuse("no such row");
    }
  }
  for (size_t o = 0; o < k; o++) {
    for (size_t i = 0; i < m; i++) {
      out[o * m + i] = from[o * n + (size_t)rows->data()[i]];
    }
  }
  return array(std::move(out), {k, m});
}

nb::list py_gradients(PyTrainer& s, const std::string& precision, bool unit_search, bool unit_leaf,
                      std::optional<Doubles2> g, std::optional<Doubles2> h) {
  if (precision != "auto" && precision != "narrow" && precision != "wide") {
    refuse("no precision named " + precision);
  }
  if (g.has_value() != h.has_value()) {
    refuse("gradients and hessians come together");
  }
  for (const auto& x : {g, h}) {
    if (x && ((int)x->shape(0) != s.trainer->n_outputs() ||
              (int64_t)x->shape(1) != s.trainer->n_rows())) {
      refuse("gradients must have the shape of the scores");
    }
  }
  nb::list out;
  for (const char* name : without_gil([&] {
         return s.trainer->gradients(
             {precision, unit_search, unit_leaf, g ? g->data() : nullptr, h ? h->data() : nullptr});
       })) {
    out.append(name);
  }
  return out;
}

void set_sampler(PyTrainer& self, const std::string& name, nb::dict fields,
                 std::optional<Doubles> subsample_by_row, std::optional<Ints> group) {
  const int which = index_of(n_samplers(), sampler_info, name, "sampler");
  const SamplerInfo& info = sampler_info(which);
  std::vector<double> values;
  for (int i = 0; i < info.n_fields; i++) {
    if (!fields.contains(info.fields[i])) {
      refuse(std::string("fields lack ") + info.fields[i]);
    }
    values.push_back(nb::cast<double>(fields[info.fields[i]]));
    if (!(values.back() - values.back() == 0.0)) {
      refuse("fields must be finite");
    }
  }
  if ((int)fields.size() != info.n_fields) {
    refuse("sampler " + name + " has no such fields");
  }
  const size_t n = (size_t)self.trainer->n_rows();
  if ((subsample_by_row && subsample_by_row->shape(0) != n) || (group && group->shape(0) != n)) {
    refuse("subsample_by_row and group must have one value for each row");
  }
  if (group && info.threshold != Threshold::none) {
    refuse("sampler " + name + " draws single rows, not whole groups");
  }
  self.subsample_by_row = subsample_by_row;
  self.group = group;
  self.trainer->set_sampler(which, std::move(values),
                            subsample_by_row ? subsample_by_row->data() : nullptr,
                            group ? group->data() : nullptr);
}

// forced: rows of column, bin, and the places of what follows left and right, or -1
void set_constraints(PyTrainer& self, nb::sequence directions, bool intermediate,
                     nb::sequence group_list, bool extra_trees, nb::sequence forced_list,
                     nb::sequence onehot_list) {
  const std::vector<int> monotone = list_of<int>(directions);
  const std::vector<int> onehot = list_of<int>(onehot_list);
  const auto groups = list_of<std::vector<int32_t>>(group_list);
  const auto forced = list_of<std::vector<int32_t>>(forced_list);
  const Binned& b = nb::cast<const Binned&>(self.binned);
  SplitConstraints r;
  if (!monotone.empty() && (int)monotone.size() != b.n_columns) {
    refuse("there must be one direction a column");
  }
  for (const int d : monotone) {
    if (d < -1 || d > 1) {
      refuse("a direction is -1, 0 or 1");
    }
    if (d != 0 && b.is_category[r.monotone.size()]) {
      refuse("categories have no order to keep");
    }
    r.monotone.push_back((int8_t)d);
  }
  r.intermediate = intermediate && !monotone.empty();
  r.extra_trees = extra_trees;
  r.groups = groups;
  if (!groups.empty()) {
    r.groups_of.resize(b.n_columns);
  }
  for (size_t g = 0; g < groups.size(); g++) {
    for (const int32_t c : groups[g]) {
      if (c < 0 || c >= b.n_columns) {
        refuse("no such column in a group");
      }
      r.groups_of[c].push_back((int32_t)g);
    }
  }
  for (const auto& of : r.groups_of) {
    if (of.empty()) {
      refuse("every column needs a group");
    }
  }
  for (int32_t i = 0; i < (int32_t)forced.size(); i++) {
    const auto& f = forced[i];
    if (f.size() != 4 || f[0] < 0 || f[0] >= b.n_columns || b.is_category[f[0]] || f[1] < 0 ||
        f[1] >= b.n_bins[f[0]] - 1) {
      refuse("a forced split has a column, one of its cuts, and two places");
    }
    for (const int32_t next : {f[2], f[3]}) {
      if (next != -1 && (next <= i || next >= (int32_t)forced.size())) {
        refuse("no such forced split");
      }
    }
    r.forced.push_back({f[0], f[1], f[2], f[3]});
  }
  r.onehot.resize(onehot.empty() ? 0 : b.n_columns, 0);
  for (const int c : onehot) {
    if (c < 0 || c >= b.n_columns || !b.is_category[c]) {
      refuse("only columns of categories are split one by one");
    }
    r.onehot[c] = 1;
  }
  self.trainer->settings().constraints = std::move(r);
}

void set_split_preference(PyTrainer& self, bool cosine, nb::sequence weight_list,
                          nb::sequence penalty_list, nb::sequence used_list) {
  std::vector<double> weight = list_of<double>(weight_list);
  std::vector<double> penalty = list_of<double>(penalty_list);
  const std::vector<int> used = list_of<int>(used_list);
  const size_t n = (size_t)nb::cast<const Binned&>(self.binned).n_columns;
  for (const auto& list : {weight, penalty}) {
    if (!list.empty() && list.size() != n) {
      refuse("there must be one weight and one penalty a column");
    }
    for (const double x : list) {
      if (!(x >= 0.0 && x < INF)) {
        refuse("weights and penalties of columns must be finite and not negative");
      }
    }
  }
  std::vector<uint8_t> so_far(penalty.empty() ? 0 : n, 0);
  for (const int c : used) {
    if (c < 0 || (size_t)c >= n) {
      refuse("no such column");
    }
    if (!so_far.empty()) {
      so_far[c] = 1;
    }
  }
  self.trainer->settings().preference = {cosine, std::move(weight), std::move(penalty),
                                         std::move(so_far), 0.0};
}

// One array for all parts of a type, with a row for each name: an array of its own would cost 1 us,
// and 5 us right after a large table was read.
template <class T>
void put_rows(nb::dict& tree,
              const std::vector<std::pair<const char*, const std::vector<T>*>>& parts) {
  std::vector<T> all;
  for (const auto& [name, values] : parts) {
    all.insert(all.end(), values->begin(), values->end());
  }
  const nb::object rows = nb::cast(array(std::move(all), {parts.size(), parts[0].second->size()}));
  for (size_t k = 0; k < parts.size(); k++) {
    tree[parts[k].first] = rows[k];
  }
}

nb::list grow(PyTrainer& self, const std::string& policy, nb::dict limits, uint64_t seed,
              uint64_t tree, double random_strength, bool multi_output, nb::sequence end_list,
              int sketch) {
  const std::vector<int64_t> prefix_ends = list_of<int64_t>(end_list);
  if (!(random_strength >= 0.0 && random_strength < INF)) {
    refuse("random_strength must be finite and not negative");
  }
  const int g = index_of(n_growers(), grower_info, policy, "growth policy");
  const Limits l = limits_of(limits);
  if (grower_info(g).shared_split && !self.trainer->settings().constraints.forced.empty()) {
    refuse("symmetric trees share their splits");
  }
  if (grower_info(g).shared_split && (l.max_depth < 1 || l.max_depth > 16) && l.max_leaves == 0) {
    refuse("symmetric trees need a depth of 1..16");
  }
  if (multi_output && self.trainer->n_outputs() > 1 && !self.trainer->can_grow_multi_output(l)) {
    refuse("trees with vector leaves cannot have these constraints or columns");
  }
  if (sketch < 0 || (sketch > 0 && (random_strength > 0.0 || !prefix_ends.empty()))) {
    refuse("a sketch has a positive size, and goes with neither random_strength nor prefix_ends");
  }
  if (!prefix_ends.empty()) {
    if (!self.trainer->can_grow_ordered()) {
      refuse("the rows of several models cannot have these constraints or chunks");
    }
    if (prefix_ends.size() % 2 != 0 || prefix_ends.front() < 0 ||
        prefix_ends.back() != self.trainer->n_rows() ||
        !std::is_sorted(prefix_ends.begin(), prefix_ends.end())) {
      refuse(
          "prefix_ends must be sorted, end with the number of rows, and have two entries for each "
          "prefix model");
    }
  }
  nb::list trees;
  for (Tree& t : without_gil([&] {
         return self.trainer->grow(
             {g, l, seed, tree, random_strength, multi_output, sketch, prefix_ends});
       })) {
    nb::dict d;
    put_rows<int32_t>(d,
                      {{"column", &t.column}, {"bin", &t.bin}, {"left", &t.left}, {"set", &t.set}});
    put_rows<double>(d, {{"threshold", &t.threshold},
                         {"value", &t.value},
                         {"gain", &t.gain},
                         {"cover", &t.cover},
                         {"count", &t.count}});
    d["missing_left"] = array(std::move(t.missing_left));
    d["set_offset"] = array(std::move(t.set_offset));
    d["set_code"] = array(std::move(t.set_code));
    trees.append(d);
  }
  return trees;
}

}  // namespace

void bind_trainer(nb::module_& m) {
  nb::class_<PyTrainer> trainer(m, "Trainer");
  trainer
      .def("__init__", new_trainer, "binned"_a, "label"_a.noconvert(), "weight"_a.none(),
           "objective"_a, "fields"_a, "n_outputs"_a, "n_threads"_a)
      .def("start",
           [](PyTrainer& s) {
             return array(without_gil([&] {
               return s.trainer->start();
             }));
           })
      .def(
          "fill_scores",
          [](PyTrainer& s, Doubles start) {
            check_scores(s, start);
            without_gil([&] {
              s.trainer->fill_scores(start.data());
            });
          },
          "start"_a)
      .def(
          "set_scores",
          [](PyTrainer& s, Doubles2 scores) {
            if ((int)scores.shape(0) != s.trainer->n_outputs() ||
                (int64_t)scores.shape(1) != s.trainer->n_rows()) {
              refuse("scores must be (n_outputs, n_rows)");
            }
            without_gil([&] {
              s.trainer->set_scores(scores.data());
            });
          },
          "scores"_a)
      .def("scores", py_scores, "rows"_a.none() = nb::none())
      .def("gradients", py_gradients, "precision"_a, "unit_search"_a = false, "unit_leaf"_a = false,
           "gradient"_a.none() = nb::none(), "hessian"_a.none() = nb::none())
      .def("set_sampler", set_sampler, "name"_a, "fields"_a,
           "subsample_by_row"_a.none() = nb::none(), "group"_a.none() = nb::none())
      .def(
          "sample",
          [](PyTrainer& s, uint64_t seed, uint64_t round, std::optional<double> subsample) {
            if (subsample && !(*subsample > 0.0 && *subsample <= 1.0)) {
              refuse("subsample must be above 0 and at most 1");
            }
            return without_gil([&] {
              return s.trainer->sample(seed, round, subsample);
            });
          },
          "seed"_a, "round"_a, "subsample"_a.none())
      .def("set_constraints", set_constraints, "monotone"_a, "intermediate"_a, "groups"_a,
           "extra_trees"_a, "forced"_a, "onehot"_a)
      .def("set_split_preference", set_split_preference, "cosine"_a, "weight"_a, "penalty"_a,
           "used"_a)
      .def("grow", grow, "policy"_a, "limits"_a, "seed"_a, "tree"_a, "random_strength"_a = 0.0,
           "multi_output"_a = false, "prefix_ends"_a = nb::tuple(), "sketch"_a = 0)
      .def(
          "copy_settings",
          [](PyTrainer& s, const PyTrainer& other) {
            s.trainer->copy_settings(*other.trainer);
          },
          "other"_a);
  bind_leaves(trainer);
}

}  // namespace sapwood
