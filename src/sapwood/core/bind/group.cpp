// Losses and metrics of whole groups of rows.
#include "bind/arrays.h"
#include "cpu/group/rank_metric.h"
#include "cpu/group/ranking.h"

namespace sapwood {
namespace {

using Keys = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void same_length(size_t n, size_t other, const char* what) {
  if (n != other) {
    refuse(std::string(what) + " must have one value a row");
  }
}

const int32_t* groups_of(const Ints& group, size_t n) {
  same_length(n, group.shape(0), "group");
  if (n > (size_t)INT32_MAX) {
    refuse("there are more rows than groups can hold");
  }
  for (size_t i = 0; i < n; i++) {
    if (group.data()[i] < 0 || (size_t)group.data()[i] >= n) {
      refuse("groups are numbered from 0");
    }
  }
  return group.data();
}

template <class E>
E named(const std::string& name, std::initializer_list<const char*> names, const char* what) {
  int at = 0;
  for (const char* one : names) {
    if (name == one) {
      return (E)at;
    }
    at++;
  }
  refuse(std::string("no ") + what + " named " + name);
}

RankMetric metric_of(const std::string& name) {
  return named<RankMetric>(name, {"ndcg", "map", "mrr", "err", "classic"}, "metric of ranks");
}

void new_rank_loss(RankLoss* self, const std::string& kind, Ints group, Doubles label, Doubles gain,
                   std::optional<Doubles> weight, std::optional<Keys> key, nb::dict settings) {
  const size_t n = label.shape(0);
  const int32_t* of = groups_of(group, n);
  same_length(n, gain.shape(0), "gain");
  RankSettings s;
  s.kind = named<RankLossKind>(
      kind, {"lambdarank", "rank_xendcg", "query_rmse", "pair_logit", "yetirank"},
      "loss of groups");
  s.metric = metric_of(nb::cast<std::string>(settings["metric"]));
  s.truncation = nb::cast<int64_t>(settings["truncation"]);
  s.sigma = nb::cast<double>(settings["sigma"]);
  s.norm = nb::cast<bool>(settings["norm"]);
  s.score_norm = nb::cast<bool>(settings["score_norm"]);
  s.permutations = nb::cast<int>(settings["permutations"]);
  s.neighbours = nb::cast<int>(settings["neighbours"]);
  s.decay = nb::cast<double>(settings["decay"]);
  s.seed = nb::cast<uint64_t>(settings["seed"]);
  if (s.truncation < 1 || !(s.sigma > 0.0) || s.permutations < 1 || s.neighbours < 1) {
    refuse("settings out of range");
  }
  if (key) {
    same_length(n, key->shape(0), "key");
  }
  if (s.kind == RankLossKind::yetirank && !key) {
    refuse("noise needs a key of each row");
  }
  const double* w = weights_of(weight, (int64_t)n);
  new (self) RankLoss(of, label.data(), gain.data(), w, key ? key->data() : nullptr, (int64_t)n, s);
}

// winner, loser (n_pairs) row ids; weight (n_pairs) above 0
void set_pairs(RankLoss& self, Ints winner, Ints loser, Doubles weight) {
  const size_t n = winner.shape(0);
  const size_t n_rows = (size_t)self.n_rows();
  if (loser.shape(0) != n || weight.shape(0) != n) {
    refuse("winner, loser and weight of pairs have one length");
  }
  RankPairs p;
  p.begin.assign(n_rows + 1, 0);
  p.other.resize(2 * n);
  p.weight.resize(2 * n);
  for (size_t i = 0; i < n; i++) {
    for (const int32_t row : {winner.data()[i], loser.data()[i]}) {
      if (row < 0 || (size_t)row >= n_rows) {
        refuse("a pair names a row that there is not");
      }
      p.begin[row + 1]++;
    }
  }
  for (size_t i = 0; i < n_rows; i++) {
    p.begin[i + 1] += p.begin[i];
  }
  std::vector<int64_t> next(p.begin.begin(), p.begin.end() - 1);
  for (size_t i = 0; i < n; i++) {
    const int32_t a = winner.data()[i];
    const int32_t b = loser.data()[i];
    int64_t at = next[a]++;
    p.other[at] = b;
    p.weight[at] = weight.data()[i];
    at = next[b]++;
    p.other[at] = a;
    p.weight[at] = -weight.data()[i];
  }
  self.set_pairs(std::move(p));
}

nb::tuple gradients(const RankLoss& self, Doubles score, uint64_t round, int n_threads) {
  same_length((size_t)self.n_rows(), score.shape(0), "score");
  threads_of(n_threads);
  std::vector<double> g(score.shape(0));
  std::vector<double> h(score.shape(0));
  without_gil([&] {
    self.gradients(score.data(), round, n_threads, g.data(), h.data());
  });
  return nb::make_tuple(array(std::move(g)), array(std::move(h)));
}

void new_groups(Groups* self, Ints group) {
  new (self) Groups(groups_of(group, group.shape(0)), nullptr, (int64_t)group.shape(0));
}

nb::ndarray<nb::numpy, double> measure(const Groups& self, const std::string& name, Doubles gain,
                                       Doubles score, int64_t top, const std::string& ties,
                                       int n_threads) {
  RankMeasureArgs a;
  a.measure = named<RankMeasure>(name, {"ndcg", "map", "mrr", "err", "precision", "recall"},
                                 "measure of ranks");
  a.ties = named<TieRule>(ties, {"average", "pessimistic", "input"}, "rule for ties");
  a.top = top;
  same_length(self.row.size(), gain.shape(0), "gain");
  same_length(self.row.size(), score.shape(0), "score");
  if (top < 1) {
    refuse("top must be at least 1");
  }
  threads_of(n_threads);
  std::vector<double> value(self.size());
  without_gil([&] {
    measure_groups(self, gain.data(), score.data(), a, n_threads, value.data());
  });
  return array(std::move(value));
}

}  // namespace

void bind_group(nb::module_& m) {
  nb::class_<RankLoss>(m, "RankLoss")
      .def("__init__", new_rank_loss, "kind"_a, "group"_a, "label"_a, "gain"_a, "weight"_a.none(),
           "key"_a.none(), "settings"_a)
      .def("set_pairs", set_pairs, "winner"_a, "loser"_a, "weight"_a)
      .def("gradients", gradients, "score"_a, "round"_a, "n_threads"_a = 1);
  nb::class_<Groups>(m, "Groups")
      .def("__init__", new_groups, "group"_a)
      .def("measure", measure, "name"_a, "gain"_a, "score"_a, "top"_a, "ties"_a, "n_threads"_a = 1);
}

}  // namespace sapwood
