// MultiOutputGrowth: the trees of several outputs with one structure, that is one tree whose leaves
// are vectors (NUMERICS, vector leaves). Enters: the growths of all outputs. Leaves: the same,
// grown in step; only the choice of a split knows the others.
//
//   output      0          1          2
//   sums     [rows]     [rows]     [rows]        each builds histograms of its own rows and partitions them
//   scores     s_0   +    s_1   +    s_2         of every cut, in one unit, are added: the best is taken by all
#pragma once
#include "cpu/grow/lockstep.h"

namespace sapwood {

class MultiOutputGrowth : public Lockstep {  // a node has the same id in each growth
 public:
  // worker_per_output: each output's own work is done by one worker, else by all of them, one
  // output after the other
  MultiOutputGrowth(Outputs& outputs, const std::vector<GrowInput>& in, int n_threads,
                    bool worker_per_output)
      : Lockstep(outputs, in, n_threads), worker_per_output_(worker_per_output) {}

  bool make_root() override {
    each([](HistogramGrowth& g) {
      g.make_root();
    });
    return nodes(0)[0].n_rows > 1;
  }
  int depth(int32_t id) const override { return nodes(0)[id].depth; }

 private:
  using Sides = std::vector<Sums>;  // one side of a node, by output

  template <class F>
  void each(F&& f) {
    if (worker_per_output_) {
      run(n_threads_, (int64_t)n_outputs(), [&](int64_t k, int) {
        f(*g_[k]);
      });
    } else {
      for (auto& g : g_) {
        f(*g);
      }
    }
  }

  NodeIds members(const NodeIds& ids) const override { return ids; }
  NodeIds expand(const NodeIds& ids, bool more) override {
    each([&](HistogramGrowth& g) {
      g.split(ids, more, false);
    });
    NodeIds children;
    for (const int32_t id : ids) {
      const int32_t left = nodes(0)[id].left;
      ranker_.inherit(id, left, nodes(0)[id].best.column);
      children.insert(children.end(), {left, left + 1});
    }
    return children;
  }
  // The best cosine may come with a rise of the loss.
  bool any_gain() const override { return ranker_.cosine() && lim_.min_split_gain == 0.0; }

  double take(const NodeIds& ids, LevelSplit best) override {
    const int c = best.column;
    if (!any_missing(ids, c)) {
      best.missing_left = left_heavier(ids, best);
    }
    double gained = 0.0;
    for (size_t k = 0; k < n_outputs(); k++) {
      double one = 0.0;
      for (const int32_t id : ids) {
        LevelSearch::take(finder(k), nodes(k)[id], id, best, left_of(k, id, best));
        one = one + nodes(k)[id].gain;
      }
      if (b_.is_category[c]) {
        g_[k]->take_set(ids, std::vector<int32_t>(best.bin < b_.n_bins[c], best.bin));
      }
      gained = gained + one;
    }
    return gained;
  }

  double score_of(const NodeIds& ids) override {
    CosineParts all;
    for (size_t k = 0; k < n_outputs(); k++) {
      CosineParts one;
      for (const int32_t id : ids) {
        const Node& n = nodes(k)[id];
        one = one + (ranker_.cosine() ? cosine_parts(n.sum, finder(k).penalty())
                                      : CosineParts{n.score, 0.0});
      }
      all = all + scales_.scale[k] * one;
    }
    return ranker_.cosine() ? cosine_score(all) : all.dot;
  }

  // (n) scores of the first cuts, or of the steps; node after node, then output after output.
  std::vector<double> sum_scores(const NodeIds& ids, int c, size_t n, bool missing_left,
                                 const Steps* steps) {
    const Kernels& kernel = kernels();
    std::vector<double> all(n, 0.0);
    std::vector<double> all_norm2(ranker_.cosine() ? n : 0, 0.0);
    std::vector<double> one;
    std::vector<double> norm2;
    for (size_t k = 0; k < n_outputs(); k++) {
      Penalty p = finder(k).penalty();
      p.min_h = 0.0;  // a limit for all outputs together
      one.assign(n, 0.0);
      norm2.assign(all_norm2.size(), 0.0);
      for (const int32_t id : ids) {
        const Node& node = nodes(k)[id];
        if (node.n_rows == 0) {
          continue;
        }
        const ColumnHistogram bins = histogram(k, id, c);
        if (steps != nullptr) {
          score_steps(node, bins, *steps, p, one, norm2);
        } else if (ranker_.cosine()) {
          kernel.scan_level_cosine(bins.sums, bins.packed, (int)n, bins.missing(), node.sum, p,
                                   missing_left, one.data(), norm2.data());
        } else {
          kernel.scan_level(bins.sums, bins.packed, (int)n, bins.missing(), node.sum, p,
                            missing_left, one.data());
        }
      }
      for (size_t i = 0; i < n; i++) {
        all[i] = all[i] + scales_.scale[k] * one[i];
      }
      for (size_t i = 0; i < norm2.size(); i++) {
        all_norm2[i] = all_norm2[i] + scales_.scale[k] * norm2[i];
      }
    }
    for (size_t i = 0; i < all_norm2.size(); i++) {
      all[i] = cosine_score({all[i], all_norm2[i]});
    }
    return all;
  }

  // One category against the rest.
  void score_steps(const Node& node, const ColumnHistogram& bins, const Steps& steps,
                   const Penalty& p, std::vector<double>& score, std::vector<double>& norm2) const {
    if (node.sum.h == 0) {
      return;
    }
    for (size_t i = 0; i < steps.size(); i++) {
      const Sums l = bins.at(steps[i].code);
      const Sums r = node.sum - l;
      const bool empty = l.h == 0 || r.h == 0;
      if (!ranker_.cosine()) {
        score[i] = score[i] + (empty ? node_score(node.sum, p) : split_score(l, r, p));
        continue;
      }
      const CosineParts both =
          empty ? cosine_parts(node.sum, p) : cosine_parts(l, p) + cosine_parts(r, p);
      score[i] = score[i] + both.dot;
      norm2[i] = norm2[i] + both.norm2;
    }
  }

  LevelSplit best_of(const NodeIds& ids, int c, double bar, bool limited) override {
    const bool category = b_.is_category[c];  // one category goes left, alone
    const bool missing = !category && any_missing(ids, c);
    const int n_bins = b_.n_bins[c];
    const Steps steps = category ? finder(0).level_steps(nodes(0), ids, c) : Steps{};
    const Steps* by = category ? &steps : nullptr;
    std::vector<double> right =
        sum_scores(ids, c, category ? steps.size() : (size_t)(n_bins - !missing), false, by);
    std::vector<double> left;
    if (missing) {
      left = sum_scores(ids, c, (size_t)n_bins - 1, true, by);
    }
    for (const int32_t id : ids) {
      if (limited) {
        veto({id}, c, by, right, left);
      }
    }
    if (!category) {
      int first = 0;
      int last = (int)right.size() - 1;
      if (in_.constraints.extra_trees) {
        std::vector<const Node*> all;
        for (const int32_t id : ids) {
          all.push_back(&nodes(0)[id]);
        }
        last = finder(0).random_bin(all, ids[0], c);
        first = std::max(last, 0);
      }
      return best_cut(right, left, c, bar, first, last);
    }
    LevelSplit best;
    best.score = bar;
    for (size_t i = 0; i < steps.size(); i++) {
      if (steps[i].is_candidate && right[i] > best.score) {
        best = {right[i], c, steps[i].code, steps[i].code == n_bins};
      }
    }
    return best;
  }

  bool left_heavier(const NodeIds& ids, const LevelSplit& split) {
    Sides l(n_outputs());
    Sides r(n_outputs());  // of all nodes
    for (const int32_t id : ids) {
      for (size_t k = 0; k < n_outputs(); k++) {
        const Sums left = left_of(k, id, split);
        l[k] = l[k] + left;
        r[k] = r[k] + (nodes(k)[id].sum - left);
      }
    }
    return mean_hessian(l) >= mean_hessian(r);
  }

  // What goes left in a node; the bin of a split by a single category is its code.
  Sums left_of(size_t k, int32_t id, const LevelSplit& split) const {
    if (nodes(k)[id].n_rows == 0) {
      return {};
    }
    const ColumnHistogram bins = histogram(k, id, split.column);
    return b_.is_category[split.column] ? bins.at(split.bin)
                                        : bins.prefix(split.bin, split.missing_left);
  }

  double mean_hessian(const Sides& side) const {  // over outputs
    double h = 0.0;
    for (size_t k = 0; k < n_outputs(); k++) {
      h = h + (double)side[k].h / finder(k).hessian_scale();
    }
    return h / (double)n_outputs();
  }

  bool within_limits(const NodeIds& ids, const LevelSplit& split) override {
    if (lim_.min_child_weight == 0.0 && !counts_rows_) {
      return true;
    }
    Sides l(n_outputs());
    Sides r(n_outputs());
    for (const int32_t id : ids) {
      for (size_t k = 0; k < n_outputs(); k++) {
        l[k] = left_of(k, id, split);
        r[k] = nodes(k)[id].sum - l[k];
      }
      const bool too_few = counts_rows_ && !finder(0).count_bound_holds(l[0].h, l[0].h + r[0].h);
      if (violates_limits(mean_hessian(l), mean_hessian(r), too_few)) {
        return false;
      }
    }
    return true;
  }

  const bool worker_per_output_;
};

}  // namespace sapwood
