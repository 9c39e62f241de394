// Together: the trees of several outputs with one structure, that is one tree whose leaves are vectors (NUMERICS, vector leaves).
// Enters: the growths of all outputs. Leaves: the same, grown in step; only the choice of a split knows of the others.
//
//   output      0          1          2
//   sums     [rows]     [rows]     [rows]        each counts and parts its own rows
//   scores     s_0   +    s_1   +    s_2         of every cut, in one unit, are added: the best is taken by all
#pragma once
#include <memory>
#include <optional>

#include "frontier.h"
#include "search.h"

namespace sapwood {

// Scores of an output are in units of its own, powers of two: they are added as parts of the largest.
struct Units {
  double unit = 0, deviation = 0;  // of all outputs together
  std::vector<double> share;       // at most 1
  template <class Outputs>
  Units(const Outputs& outputs, const std::vector<GrowInput>& in) {
    for (const auto& g : outputs) unit = std::max(unit, g->unit());
    double square = 0.0;
    for (size_t k = 0; k < in.size(); k++) {
      share.push_back(outputs[k]->unit() / unit);
      square = square + share[k] * (in[k].deviation * in[k].deviation);
    }
    deviation = __builtin_sqrt(square);
  }
};

// Growth: the one of grow.cpp, which lets us in.
template <class Growth>
class Together {
 public:
  // apart: each output's own work is done by one worker, else by all of them, one output after the other
  Together(std::vector<std::unique_ptr<Growth>>& outputs, const std::vector<GrowInput>& in, int n_threads, bool apart)
      : g_(outputs),
        in_(in[0]),
        b_(in_.binned),
        lim_(in_.limits),
        n_threads_(n_threads),
        apart_(apart),
        units_(outputs, in),
        judge_(in_.taste, units_.deviation, units_.unit, in_.seed, in_.tree),
        counts_(lim_.min_samples_leaf > 1.0) {}

  void grow() {
    const int most = lim_.max_leaves > 0 ? lim_.max_leaves : 0x7fffffff;
    each([](Growth& g) { g.plant(); });
    if (most < 2 || nodes(0)[0].n_rows < 2) return;
    each([](Growth& g) { g.root_histogram(); });
    if (in_.grower.shared_split) grow_levels(most);
    else grow_nodes(most);
  }

 private:
  using Nodes = std::vector<Node>;
  using Ids = std::vector<int32_t>;  // of nodes that take one split: one node, or a level
  using Shared = Search::Shared;
  using Sides = std::vector<Sums>;  // of one side of a node, by output

  size_t n_outputs() const { return g_.size(); }
  Nodes& nodes(size_t k) { return g_[k]->nodes_; }
  Search& search(size_t k) { return g_[k]->s_; }
  const Tally& tally(size_t k) { return g_[k]->t_; }
  template <class F>
  void each(F&& f) {
    if (apart_) run(n_threads_, (int64_t)n_outputs(), [&](int64_t k, int) { f(*g_[k]); });
    else
      for (auto& g : g_) f(*g);
  }

  // ------------------------------------------------------------------------------------------------ frontier
  bool deep_enough(int depth) const { return lim_.max_depth > 0 && depth >= lim_.max_depth; }

  void grow_levels(int most) {
    Ids level{0};
    for (int depth = 0; !deep_enough(depth) && 2 * (int64_t)level.size() <= most; depth++) {
      const std::optional<double> gain = choose(level);
      const bool freely = judge_.cosine() && lim_.min_split_gain == 0.0;  // the angle may close while the loss rises
      if (!gain || !(freely || *gain > lim_.min_split_gain)) return;
      expand(level, !deep_enough(depth + 1) && 4 * (int64_t)level.size() <= most);
      Ids next;
      for (const int32_t id : level) next.insert(next.end(), {nodes(0)[id].left, nodes(0)[id].left + 1});
      level = std::move(next);
    }
  }

  void grow_nodes(int most) {
    Frontier frontier(in_.grower, in_.grower.whole_level, most);
    auto meet = [&](int32_t id) {
      const std::optional<double> gain = choose({id});
      if (gain && *gain > lim_.min_split_gain) frontier.open(*gain, id);
      else release(id);
    };
    if (!deep_enough(0)) meet(0);
    Ids batch;
    while (frontier.next([&](int32_t id) { return nodes(0)[id].depth; }, batch)) {
      const int depth = nodes(0)[batch[0]].depth;
      const bool more = frontier.room();
      expand(batch, more);
      for (const int32_t id : batch)
        for (int32_t c = nodes(0)[id].left; c < nodes(0)[id].left + 2 && more && !deep_enough(depth + 1); c++) meet(c);
      frontier.trim([&](int32_t id) { release(id); });
    }
  }

  void expand(const Ids& batch, bool more) {
    each([&](Growth& g) { g.expand(batch, more, false); });
    for (const int32_t id : batch) judge_.inherit(id, nodes(0)[id].left, nodes(0)[id].best.column);
  }
  void release(int32_t id) {
    for (auto& g : g_) g->t_.release(g->nodes_[id].hist);
  }

  // -------------------------------------------------------------------------------------------------- search
  // Gives these nodes their best split, in all outputs, if there is one; what it gains.
  std::optional<double> choose(const Ids& ids) {
    const int64_t n_codes = tally(0).n_codes * (int64_t)(ids.size() * n_outputs());
    const int threads = n_codes < FORK_NS ? 1 : n_threads_;
    search(0).choose_columns(ids[0], nodes(0)[ids[0]].depth);
    const std::vector<int>& columns = search(0).allowed(ids[0]);
    const double own = score_of(ids);
    std::vector<Shared> found(columns.size());
    auto scan = [&](bool limited) {
      run(threads, (int64_t)columns.size(), [&](int64_t k, int) {
        if (limited && (found[k].column < 0 || enough(ids, found[k]))) return;
        Cuts cuts = score(ids, columns[k]);
        if (limited) veto(ids, columns[k], cuts);
        found[k] = best_of(cuts, ids, columns[k], worth(own));
      });
      return judge_.best(found, own, ids[0]);
    };
    Shared best = scan(false);
    if (best.column >= 0 && !enough(ids, best)) best = scan(true);  // limits only lower scores: else it is the best
    if (best.column < 0) return {};
    if (!any_missing(ids, best.column)) best.missing_left = left_heavier(ids, best);
    double gained = 0.0;
    for (size_t k = 0; k < n_outputs(); k++) {
      double one = 0.0;
      for (const int32_t id : ids) search(k).take(nodes(k)[id], id, best, left_of(k, id, best));
      if (b_.is_category[best.column]) g_[k]->take_set(ids, best.bin);
      for (const int32_t id : ids) one = one + nodes(k)[id].gain;
      gained = gained + one;
    }
    return gained;
  }

  double score_of(const Ids& ids) {  // of the nodes as they are
    Angle all;
    for (size_t k = 0; k < n_outputs(); k++) {
      Angle one;
      for (const int32_t id : ids) {
        const Node& n = nodes(k)[id];
        const Angle a = judge_.cosine() ? Judge::angle(n.sum, search(k).penalty()) : Angle{n.score, 0.0};
        one = {one.along + a.along, one.square + a.square};
      }
      all = {all.along + units_.share[k] * one.along, all.square + units_.share[k] * one.square};
    }
    return judge_.cosine() ? length(all) : all.along;
  }

  struct Cuts {  // the scores of a column's candidates
    std::vector<double> right,
        left;  // by the side of missing values; of single categories all are `right`, and by step
    Search::Steps steps;
  };

  bool any_missing(const Ids& ids, int c) {
    if (!b_.has_missing[c]) return false;
    for (size_t k = 0; k < n_outputs(); k++)
      for (const int32_t id : ids)
        if (nodes(k)[id].n_rows > 0 && tally(k).at(nodes(k)[id].hist, c, b_.n_bins[c]).h > 0) return true;
    return false;
  }

  Cuts score(const Ids& ids, int c) {
    Cuts cuts;
    if (b_.is_category[c]) {
      cuts.steps = search(0).level_steps(nodes(0), ids, c);
      cuts.right = sum_scores(ids, c, cuts.steps.size(), false, &cuts.steps);
      return cuts;
    }
    const bool missing = any_missing(ids, c);
    cuts.right = sum_scores(ids, c, (size_t)(b_.n_bins[c] - !missing), false, nullptr);
    if (missing) cuts.left = sum_scores(ids, c, (size_t)b_.n_bins[c] - 1, true, nullptr);
    return cuts;
  }

  // (n) of the first cuts, or of the steps; node after node, then output after output.
  std::vector<double> sum_scores(const Ids& ids, int c, size_t n, bool side, const Search::Steps* steps) {
    const Kernels& kernel = kernels();
    std::vector<double> all(n, 0.0), squares(judge_.cosine() ? n : 0, 0.0), one, square;
    for (size_t k = 0; k < n_outputs(); k++) {
      Penalty p = search(k).penalty();
      p.min_h = 0.0;  // a limit for all outputs together
      one.assign(n, 0.0), square.assign(squares.size(), 0.0);
      for (const int32_t id : ids) {
        const Node& node = nodes(k)[id];
        if (node.n_rows == 0) continue;
        const Bins bins = search(k).bins_of(node, c);
        if (steps != nullptr) score_steps(node, bins, *steps, p, one, square);
        else if (judge_.cosine())
          kernel.scan_level_cosine(bins.sums, bins.packed, (int)n, bins.gone(), node.sum, p, side, one.data(),
                                   square.data());
        else kernel.scan_level(bins.sums, bins.packed, (int)n, bins.gone(), node.sum, p, side, one.data());
      }
      for (size_t i = 0; i < n; i++) all[i] = all[i] + units_.share[k] * one[i];
      for (size_t i = 0; i < squares.size(); i++) squares[i] = squares[i] + units_.share[k] * square[i];
    }
    for (size_t i = 0; i < squares.size(); i++) all[i] = length({all[i], squares[i]});
    return all;
  }

  // One category against the rest.
  void score_steps(const Node& node, const Bins& bins, const Search::Steps& steps, const Penalty& p,
                   std::vector<double>& score, std::vector<double>& square) const {
    if (node.sum.h == 0) return;
    for (size_t i = 0; i < steps.size(); i++) {
      const Sums l = bins.at(steps[i].code), r = node.sum - l;
      const bool empty = l.h == 0 || r.h == 0;
      if (!judge_.cosine()) {
        score[i] = score[i] + (empty ? node_score(node.sum, p) : split_score(l, r, p));
        continue;
      }
      const Angle own = Judge::angle(node.sum, p), a = Judge::angle(l, p), b = Judge::angle(r, p);
      score[i] = score[i] + (empty ? own.along : a.along + b.along);
      square[i] = square[i] + (empty ? own.square : a.square + b.square);
    }
  }

  Shared best_of(const Cuts& cuts, const Ids& ids, int c, double bar) {
    Shared best;
    if (b_.is_category[c]) {
      best.score = bar;
      for (int i = 0; i < (int)cuts.steps.size(); i++)
        if (cuts.steps[i].ends && cuts.right[i] > best.score)
          best = {cuts.right[i], c, cuts.steps[i].code, cuts.steps[i].code == b_.n_bins[c]};
    } else {
      int first = 0, last = (int)cuts.right.size() - 1;
      if (in_.rules.extra) {
        std::vector<const Node*> all;
        for (const int32_t id : ids) all.push_back(&nodes(0)[id]);
        last = search(0).random_bin(all, ids[0], c), first = std::max(last, 0);
      }
      best = Search::best_of(cuts.right, cuts.left, c, bar, first, last);
    }
    return best;
  }

  bool left_heavier(const Ids& ids, const Shared& split) {
    Sides l(n_outputs()), r(n_outputs());  // of all nodes
    for (const int32_t id : ids)
      for (size_t k = 0; k < n_outputs(); k++) {
        const Sums part = left_of(k, id, split);
        l[k] = l[k] + part, r[k] = r[k] + (nodes(k)[id].sum - part);
      }
    return mean(l) >= mean(r);
  }

  // What goes left in a node; the bin of a split by a single category is its code.
  Sums left_of(size_t k, int32_t id, const Shared& split) {
    const Node& n = nodes(k)[id];
    const int c = split.column;
    Sums l;
    if (n.n_rows == 0) return l;
    if (b_.is_category[c]) return tally(k).at(n.hist, c, split.bin);
    if (split.missing_left && b_.has_missing[c]) l = tally(k).at(n.hist, c, b_.n_bins[c]);
    for (int b = 0; b <= split.bin; b++) l = l + tally(k).at(n.hist, c, b);
    return l;
  }

  // -------------------------------------------------------------------------------------------------- limits
  double mean(const Sides& side) {  // of hessians over outputs
    double h = 0.0;
    for (size_t k = 0; k < n_outputs(); k++) h = h + (double)side[k].h / search(k).h_unit();
    return h / (double)n_outputs();
  }
  bool poor(double left, double right, bool few) const {  // few: rows on a side; an empty one is no harm
    if (!(left > 0.0 && right > 0.0)) return false;
    return few || left < lim_.min_child_weight || right < lim_.min_child_weight;
  }

  // Whether a split leaves enough on both sides of every node, as far as hessians tell.
  bool enough(const Ids& ids, const Shared& split) {
    if (lim_.min_child_weight == 0.0 && !counts_) return true;
    Sides l(n_outputs()), r(n_outputs());
    for (const int32_t id : ids) {
      for (size_t k = 0; k < n_outputs(); k++) l[k] = left_of(k, id, split), r[k] = nodes(k)[id].sum - l[k];
      if (poor(mean(l), mean(r), counts_ && !search(0).surely_enough(l[0].h, l[0].h + r[0].h))) return false;
    }
    return true;
  }

  // Takes out the candidates that do not.
  void veto(const Ids& ids, int c, Cuts& cuts) {
    for (const int32_t id : ids) {
      if (nodes(0)[id].n_rows == 0) continue;
      const std::vector<int64_t> count = rows_of(id, c);
      veto_side(id, c, cuts.steps, count, false, cuts.right);
      veto_side(id, c, cuts.steps, count, true, cuts.left);
    }
  }
  void veto_side(int32_t id, int c, const Search::Steps& steps, const std::vector<int64_t>& count, bool side,
                 std::vector<double>& score) {
    const size_t n = score.size();
    const bool one = b_.is_category[c];  // alone on the left
    std::vector<double> left(n, 0.0), right(n, 0.0);
    for (size_t k = 0; k < n_outputs(); k++) {
      const Bins bins = search(k).bins_of(nodes(k)[id], c);
      const double unit = search(k).h_unit();
      int64_t h = side ? bins.gone().h : 0;
      for (size_t i = 0; i < n; i++) {
        h = one ? bins.at(steps[i].code).h : h + bins.at((int)i).h;
        left[i] = left[i] + (double)h / unit, right[i] = right[i] + (double)(nodes(k)[id].sum.h - h) / unit;
      }
    }
    const double outputs = (double)n_outputs();
    int64_t total = 0, rows = side ? count.back() : 0;
    for (const int64_t x : count) total += x;
    for (size_t i = 0; i < n; i++) {
      rows = one ? count[steps[i].code] : rows + count[i];
      if (poor(left[i] / outputs, right[i] / outputs, counts_ && search(0).few(rows, total))) score[i] = -INF;
    }
  }

  // (bins + 1) rows of a node by code, missing last; 0 where they do not matter.
  std::vector<int64_t> rows_of(int32_t id, int c) {
    const Gradients& q = in_.gradients;
    std::vector<int64_t> count((size_t)b_.n_bins[c] + 1, 0);
    if (counts_ && !q.constant_hessian) search(0).count_codes(nodes(0)[id], c, count);
    for (int code = 0; code < b_.n_bins[c] + b_.has_missing[c] && counts_ && q.constant_hessian; code++)
      count[code] = tally(0).at(nodes(0)[id].hist, c, code).h / (int64_t)q.most_per_count;
    return count;
  }

  std::vector<std::unique_ptr<Growth>>& g_;
  const GrowInput& in_;
  const Binned& b_;
  const Limits& lim_;
  const int n_threads_;
  const bool apart_;
  const Units units_;
  Judge judge_;
  const bool counts_;  // rows
};

}  // namespace sapwood
