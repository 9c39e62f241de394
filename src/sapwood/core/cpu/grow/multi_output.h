// MultiOutputGrowth: the trees of several outputs with one structure, that is one tree whose leaves are vectors (NUMERICS, vector leaves).
// Enters: the growths of all outputs. Leaves: the same, grown in step; only the choice of a split knows of the others.
//
//   output      0          1          2
//   sums     [rows]     [rows]     [rows]        each counts and parts its own rows
//   scores     s_0   +    s_1   +    s_2         of every cut, in one unit, are added: the best is taken by all
#pragma once
#include "cpu/grow/lockstep.h"

namespace sapwood {

// A branch is a node, of the same number in each growth.
template <class Growth>
class MultiOutputGrowth : Lockstep<Growth> {
 public:
  // apart: each output's own work is done by one worker, else by all of them, one output after the other
  MultiOutputGrowth(std::vector<std::unique_ptr<Growth>>& outputs, const std::vector<GrowInput>& in, int n_threads,
                    bool apart)
      : Base(outputs, in, n_threads), apart_(apart) {}

  void grow() {
    each([](Growth& g) { g.make_root(); });
    if (most_ < 2 || nodes(0)[0].n_rows < 2) return;
    each([](Growth& g) { g.root_histogram(); });
    const bool without_gil =
        ranker_.cosine() && lim_.min_split_gain == 0.0;  // the angle may close while the loss rises
    if (in_.grower.shared_split) this->grow_levels(without_gil);
    else this->grow_nodes();
  }

 private:
  using Base = Lockstep<Growth>;
  using Base::any_missing, Base::n_outputs, Base::nodes, Base::poor, Base::search, Base::tally, Base::units_;
  using Base::b_, Base::counts_, Base::g_, Base::in_, Base::ranker_, Base::lim_, Base::most_, Base::n_threads_;
  using typename Base::Ids, typename Base::LevelSplit, typename Base::Steps;
  using Sides = std::vector<Sums>;  // of one side of a node, by output

  template <class F>
  void each(F&& f) {
    if (apart_) run(n_threads_, (int64_t)n_outputs(), [&](int64_t k, int) { f(*g_[k]); });
    else
      for (auto& g : g_) f(*g);
  }

  int depth(int32_t id) override { return nodes(0)[id].depth; }
  Ids parts(const Ids& ids) override { return ids; }
  Ids expand(const Ids& ids, bool more) override {
    each([&](Growth& g) { g.expand(ids, more, false); });
    Ids children;
    for (const int32_t id : ids) {
      const int32_t left = nodes(0)[id].left;
      ranker_.inherit(id, left, nodes(0)[id].best.column);
      children.insert(children.end(), {left, left + 1});
    }
    return children;
  }

  double take(const Ids& ids, LevelSplit best) override {
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

  double score_of(const Ids& ids) override {
    CosineParts all;
    for (size_t k = 0; k < n_outputs(); k++) {
      CosineParts one;
      for (const int32_t id : ids) {
        const Node& n = nodes(k)[id];
        const CosineParts a =
            ranker_.cosine() ? SplitRanker::angle(n.sum, search(k).penalty()) : CosineParts{n.score, 0.0};
        one = {one.along + a.along, one.square + a.square};
      }
      all = {all.along + units_.share[k] * one.along, all.square + units_.share[k] * one.square};
    }
    return ranker_.cosine() ? length(all) : all.along;
  }

  // (n) of the first cuts, or of the steps; node after node, then output after output.
  std::vector<double> sum_scores(const Ids& ids, int c, size_t n, bool side, const Steps* steps) {
    const Kernels& kernel = kernels();
    std::vector<double> all(n, 0.0), squares(ranker_.cosine() ? n : 0, 0.0), one, square;
    for (size_t k = 0; k < n_outputs(); k++) {
      Penalty p = search(k).penalty();
      p.min_h = 0.0;  // a limit for all outputs together
      one.assign(n, 0.0), square.assign(squares.size(), 0.0);
      for (const int32_t id : ids) {
        const Node& node = nodes(k)[id];
        if (node.n_rows == 0) continue;
        const ColumnHistogram bins = search(k).bins_of(node, c);
        if (steps != nullptr) score_steps(node, bins, *steps, p, one, square);
        else if (ranker_.cosine())
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
  void score_steps(const Node& node, const ColumnHistogram& bins, const Steps& steps, const Penalty& p,
                   std::vector<double>& score, std::vector<double>& square) const {
    if (node.sum.h == 0) return;
    for (size_t i = 0; i < steps.size(); i++) {
      const Sums l = bins.at(steps[i].code), r = node.sum - l;
      const bool empty = l.h == 0 || r.h == 0;
      if (!ranker_.cosine()) {
        score[i] = score[i] + (empty ? node_score(node.sum, p) : split_score(l, r, p));
        continue;
      }
      const CosineParts own = SplitRanker::angle(node.sum, p), a = SplitRanker::angle(l, p),
                        b = SplitRanker::angle(r, p);
      score[i] = score[i] + (empty ? own.along : a.along + b.along);
      square[i] = square[i] + (empty ? own.square : a.square + b.square);
    }
  }

  LevelSplit best_of(const Ids& ids, int c, double bar, bool limited) override {
    const bool one = b_.is_category[c], missing = !one && any_missing(ids, c);  // one: category, alone on the left
    const int n_bins = b_.n_bins[c];
    const Steps steps = one ? search(0).level_steps(nodes(0), ids, c) : Steps{};
    const Steps* by = one ? &steps : nullptr;
    std::vector<double> right = sum_scores(ids, c, one ? steps.size() : (size_t)(n_bins - !missing), false, by), left;
    if (missing) left = sum_scores(ids, c, (size_t)n_bins - 1, true, by);
    for (const int32_t id : ids)
      if (limited) this->veto({id}, c, by, right, left);
    if (!one) {
      int first = 0, last = (int)right.size() - 1;
      if (in_.rules.extra) {
        std::vector<const Node*> all;
        for (const int32_t id : ids) all.push_back(&nodes(0)[id]);
        last = search(0).random_bin(all, ids[0], c), first = std::max(last, 0);
      }
      return SplitFinder::best_of(right, left, c, bar, first, last);
    }
    LevelSplit best;
    best.score = bar;
    for (size_t i = 0; i < steps.size(); i++)
      if (steps[i].ends && right[i] > best.score) best = {right[i], c, steps[i].code, steps[i].code == n_bins};
    return best;
  }

  bool left_heavier(const Ids& ids, const LevelSplit& split) {
    Sides l(n_outputs()), r(n_outputs());  // of all nodes
    for (const int32_t id : ids)
      for (size_t k = 0; k < n_outputs(); k++) {
        const Sums part = left_of(k, id, split);
        l[k] = l[k] + part, r[k] = r[k] + (nodes(k)[id].sum - part);
      }
    return mean(l) >= mean(r);
  }

  // What goes left in a node; the bin of a split by a single category is its code.
  Sums left_of(size_t k, int32_t id, const LevelSplit& split) {
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

  bool enough(const Ids& ids, const LevelSplit& split) override {
    if (lim_.min_child_weight == 0.0 && !counts_) return true;
    Sides l(n_outputs()), r(n_outputs());
    for (const int32_t id : ids) {
      for (size_t k = 0; k < n_outputs(); k++) l[k] = left_of(k, id, split), r[k] = nodes(k)[id].sum - l[k];
      if (poor(mean(l), mean(r), counts_ && !search(0).count_bound_holds(l[0].h, l[0].h + r[0].h))) return false;
    }
    return true;
  }

  const bool apart_;
};

}  // namespace sapwood
