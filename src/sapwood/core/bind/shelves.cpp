// The shelves as Python sees them: objectives, links, growers and samplers.
#include "bind/shelves.h"

#include <algorithm>

#include "cpu/kernels/kernels.h"

namespace sapwood {

std::vector<double> fields_of(const ObjectiveInfo& o, nb::dict given, int output, int n_outputs) {
  std::vector<double> values;
  for (int i = 0; i < o.n_fields; i++) {
    const Field& f = o.fields[i];
    if (!given.contains(f.name)) {
      refuse(std::string("fields lack ") + f.name);
    }
    nb::object one = given[f.name];
    if (nb::isinstance<nb::list>(one)) {
      if ((int)nb::len(one) != n_outputs) {
        refuse(std::string(f.name) + " must have a value for each output");
      }
      one = one[output];
    }
    const double x = nb::cast<double>(one);
    if (!(x >= f.low && x <= f.high)) {
      refuse(std::string(f.name) + " is out of range");
    }
    values.push_back(x);
  }
  if ((int)given.size() != o.n_fields) {
    refuse(std::string("objective ") + o.name + " has no such fields");
  }
  return values;
}

Link link_of(const std::string& name) {
  for (size_t i = 0; i < sizeof LINKS / sizeof LINKS[0]; i++) {
    if (name == LINKS[i]) {
      return (Link)i;
    }
  }
  refuse("no link named " + name);
}

nb::tuple loss_gradient_hessian(LeafLossSums sums) {
  return nb::make_tuple(array(std::move(sums.loss)), array(std::move(sums.g)),
                        array(std::move(sums.h)));
}

namespace {

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
    d["doc"] = o.doc;
    d["link"] = o.link;
    d["metric"] = o.metric;
    d["labels"] = o.labels;
    d["leaf"] = o.leaf;
    d["path_smooth"] = o.path_smooth;
    d["pointwise"] = o.pointwise;
    d["hessian_is_bound"] = o.hessian_is_bound;
    d["knots"] = o.knots;
    d["adaptive"] = o.adaptive;
    d["steps"] = o.steps;
    d["fields"] = fields;
    all[o.name] = d;
  }
  return all;
}

nb::dict growers() {
  nb::dict all;
  for (int i = 0; i < n_growers(); i++) {
    all[grower_info(i).name] = grower_info(i).doc;
  }
  return all;
}

nb::dict samplers() {
  nb::dict all;
  for (int i = 0; i < n_samplers(); i++) {
    const SamplerInfo& info = sampler_info(i);
    nb::dict d;
    nb::list fields;
    for (int j = 0; j < info.n_fields; j++) {
      fields.append(info.fields[j]);
    }
    d["doc"] = info.doc;
    d["fields"] = fields;
    d["takes_subsample"] = info.takes_subsample;
    d["by_gradient"] = info.threshold != Threshold::none;
    d["reweights"] = info.reweights;
    all[info.name] = d;
  }
  return all;
}

// loss, gradient and hessian of rows: score and label (n)
nb::tuple py_evaluate(const std::string& objective, nb::dict fields, Doubles score, Doubles label) {
  const int o = index_of(n_objectives(), objective_info, objective, "objective");
  std::vector<double> f = fields_of(objective_info(o), fields);
  f.push_back(INF);  // what adapts has not begun
  const size_t n = score.shape(0);
  if (label.shape(0) != n) {
    refuse("there must be one label a score");
  }
  LeafLossSums out;
  out.loss.resize(n);
  out.g.resize(n);
  out.h.resize(n);
  without_gil([&] {
    kernels().evaluate(o, f.data(), score.data(), label.data(), (int)n,
                       {out.loss.data(), out.g.data(), out.h.data()});
  });
  return loss_gradient_hessian(std::move(out));
}

nb::ndarray<nb::numpy, double> py_link(const std::string& name, Doubles2 raw, int n_threads) {
  const int64_t n = (int64_t)raw.shape(0);
  const int k = (int)raw.shape(1);
  const int kind = (int)link_of(name);
  threads_of(n_threads);
  std::vector<double> out((size_t)n * k);
  without_gil([&] {
    constexpr int64_t ROWS_EACH = 4096;
    run(n_threads, (n + ROWS_EACH - 1) / ROWS_EACH, [&](int64_t t, int) {
      const int64_t at = t * ROWS_EACH;
      kernels().apply_link(kind, raw.data() + at * k, out.data() + at * k,
                           std::min(ROWS_EACH, n - at), k);
    });
  });
  return array(std::move(out), {(size_t)n, (size_t)k});
}

}  // namespace

void bind_shelves(nb::module_& m) {
  m.def("objectives", objectives);
  m.def("growers", growers);
  m.def("samplers", samplers);
  m.def("evaluate", py_evaluate, "objective"_a, "fields"_a, "score"_a, "label"_a);
  m.def("link", py_link, "name"_a, "raw"_a, "n_threads"_a = 1);
}

}  // namespace sapwood
