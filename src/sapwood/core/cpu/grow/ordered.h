// OrderedGrowth: a tree whose splits are judged by rows that its values have not seen (NUMERICS, ordered boosting).
// Enters: the growths of all outputs, over the rows of all models. Leaves: the splits, one structure for all of them.
//
//   model       0              1                   2
//   rows   [body|tail]  [body    |tail  ]  [body           |tail         ]      a node of the tree has a part of each
//   score   a value from the body fits the tail: for every side, and added up
#pragma once
#include "cpu/grow/lockstep.h"

namespace sapwood {

inline CosineParts tail_fit(Sums body, Sums tail, const Penalty& p) {
  return tail_fit((double)body.g, (double)body.h, (double)tail.g, (double)tail.h, p);
}

template <class Growth>
class OrderedGrowth : Lockstep<Growth> {
 public:
  OrderedGrowth(std::vector<std::unique_ptr<Growth>>& outputs, const std::vector<GrowInput>& in, int n_threads)
      : Base(outputs, in, n_threads) {}

  // ends: of the rows of every model's body and tail, which lie one after the other
  std::vector<Tree> grow(const std::vector<int64_t>& ends) {
    branches_.push_back({});
    for (size_t id = 0; id < ends.size(); id++) branches_[0].parts.push_back((int32_t)id);
    for (auto& g : g_) {
      g->make_root(ends);
      for (const int32_t id : branches_[0].parts) g->root_histogram(id);
    }
    if (in_.grower.shared_split) this->grow_levels(false);
    else this->grow_nodes();
    std::vector<Tree> trees;
    for (size_t k = 0; k < n_outputs(); k++) trees.push_back(make_tree(k));
    return trees;
  }

 private:
  using Base = Lockstep<Growth>;
  using Base::any_missing, Base::n_outputs, Base::nodes, Base::poor, Base::search;
  using Base::b_, Base::counts_, Base::g_, Base::in_, Base::ranker_, Base::lim_, Base::units_;
  using typename Base::Ids, typename Base::LevelSplit, typename Base::Steps;
  struct Branch {  // a node of the tree
    Ids parts;     // nodes of a growth: body and tail of every model
    int depth = 0;
    int32_t left = 0;          // first child, once split
    std::vector<double> gain;  // by output
  };

  int depth(int32_t id) override { return branches_[id].depth; }
  Ids parts(const Ids& batch) override {
    Ids all;
    for (const int32_t id : batch) all.insert(all.end(), branches_[id].parts.begin(), branches_[id].parts.end());
    return all;
  }
  Ids last(const Ids& batch) const {  // those of the last model, which knows all rows
    Ids all;
    for (const int32_t id : batch) all.insert(all.end(), branches_[id].parts.end() - 2, branches_[id].parts.end());
    return all;
  }

  Ids expand(const Ids& batch, bool more) override {
    for (auto& g : g_) g->expand(parts(batch), more, false);
    Ids children;
    for (const int32_t id : batch) {
      const int32_t left = branches_[id].left = (int32_t)branches_.size();
      Branch side[2];
      for (const int32_t part : branches_[id].parts)
        for (const int s : {0, 1}) side[s].parts.push_back(nodes(0)[part].left + s);
      for (const int s : {0, 1}) {
        side[s].depth = branches_[id].depth + 1;
        branches_.push_back(std::move(side[s]));
        children.push_back(left + s);
      }
    }
    return children;
  }

  // -------------------------------------------------------------------------------------------------- search
  double score(CosineParts a) const { return ranker_.cosine() ? length(a) : fall(a); }

  double score_of(const Ids& batch) override {
    CosineParts all;
    for (size_t k = 0; k < n_outputs(); k++) {
      CosineParts one;
      for (const int32_t id : batch)
        for (size_t m = 0; m < branches_[id].parts.size(); m += 2) one = one + own(k, id, m);
      all = {all.along + units_.share[k] * one.along, all.square + units_.share[k] * one.square};
    }
    return score(all);
  }
  CosineParts own(size_t k, int32_t id, size_t m) {
    const Ids& part = branches_[id].parts;
    return tail_fit(nodes(k)[part[m]].sum, nodes(k)[part[m + 1]].sum, search(k).penalty());
  }

  // left OUT: what goes left of a part at each of its first cuts, or of the steps of a column of categories.
  void fill(size_t k, int32_t part, int c, const Steps* steps, bool missing_left, std::vector<Sums>& left) {
    const Node& node = nodes(k)[part];
    if (node.n_rows == 0) return (void)std::fill(left.begin(), left.end(), Sums{});
    const ColumnHistogram bins = search(k).bins_of(node, c);
    Sums l = missing_left ? bins.gone() : Sums{};
    for (size_t i = 0; i < left.size(); i++) {
      if (steps != nullptr && (*steps)[i].fresh) l = {};
      left[i] = l = l + bins.at(steps != nullptr ? (*steps)[i].code : (int)i);
    }
  }

  // (n) of the first cuts, or of the steps; model after model of each node, then output after output.
  std::vector<double> scores(const Ids& batch, int c, size_t n, bool side, const Steps* steps) {
    std::vector<double> all(n, 0.0), squares(n, 0.0), one, square;
    std::vector<Sums> left(steps != nullptr ? n : 0), tail(left.size());
    const Kernels& kernel = kernels();
    for (size_t k = 0; k < n_outputs(); k++) {
      const Penalty& p = penalty(k, c);
      one.assign(n, 0.0), square.assign(n, 0.0);
      for (const int32_t id : batch)
        for (size_t m = 0; m < branches_[id].parts.size(); m += 2) {
          const Ids& part = branches_[id].parts;
          const Node &of_body = nodes(k)[part[m]], &of_tail = nodes(k)[part[m + 1]];
          if (of_body.n_rows == 0 || of_tail.n_rows == 0) continue;  // no value, or nobody to judge it
          if (steps == nullptr) {
            const ColumnHistogram a = search(k).bins_of(of_body, c), b = search(k).bins_of(of_tail, c);
            kernel.scan_tails({a.sums, b.sums, a.packed, b.packed, side ? a.gone() : Sums{}, side ? b.gone() : Sums{},
                               of_body.sum, of_tail.sum},
                              (int)n, p, one.data(), square.data());
            continue;
          }
          fill(k, part[m], c, steps, side, left), fill(k, part[m + 1], c, steps, side, tail);
          for (size_t i = 0; i < n; i++) {
            const CosineParts both =
                tail_fit(left[i], tail[i], p) + tail_fit(of_body.sum - left[i], of_tail.sum - tail[i], p);
            one[i] = one[i] + both.along, square[i] = square[i] + both.square;
          }
        }
      for (size_t i = 0; i < n; i++) {
        all[i] = all[i] + units_.share[k] * one[i];
        squares[i] = squares[i] + units_.share[k] * square[i];
      }
    }
    for (size_t i = 0; i < n; i++) all[i] = score(CosineParts{all[i], squares[i]});
    return all;
  }
  const Penalty& penalty(size_t k, int c) {
    return b_.is_category[c] ? search(k).categories_->penalty(c, b_.n_bins[c]) : search(k).penalty();
  }

  LevelSplit best_of(const Ids& batch, int c, double bar, bool limited) override {
    const int n_bins = b_.n_bins[c];
    const bool set = b_.is_category[c], missing = any_missing(batch, c);
    const Steps steps = steps_of(batch, c);
    const Steps* by = set ? &steps : nullptr;
    std::vector<double> right = scores(batch, c, set ? steps.size() : (size_t)(n_bins - !missing), false, by), left;
    if (missing && !set) left = scores(batch, c, (size_t)n_bins - 1, true, by);
    for (const int32_t id : batch)
      if (limited) this->veto(last({id}), c, by, right, left);  // of all rows, as the last model has them
    LevelSplit best;
    if (!set) best = SplitFinder::best_of(right, left, c, bar, 0, (int)right.size() - 1);
    else best.score = bar;
    bool side = false;
    for (int i = 0; i < (int)steps.size(); i++) {
      side = (side && !steps[i].fresh) || steps[i].code == n_bins;
      if (steps[i].ends && right[i] > best.score) best = {right[i], c, i, side};
    }
    if (best.column >= 0 && !missing) best.missing_left = left_heavier(batch, best);
    return best;
  }

  // The steps of a column, from rows of all models: none where it holds numbers.
  Steps steps_of(const Ids& batch, int c) {
    return b_.is_category[c] ? search(0).level_steps(nodes(0), last(batch), c) : Steps{};
  }
  // What goes left of some parts.
  Sums left_of(size_t k, const Ids& parts, const LevelSplit& split, const Steps& steps) {
    const bool set = b_.is_category[split.column];
    std::vector<Sums> left((size_t)split.bin + 1);
    Sums all;
    for (const int32_t part : parts) {
      fill(k, part, split.column, set ? &steps : nullptr, split.missing_left && !set, left);
      all = all + left.back();
    }
    return all;
  }
  Sums sum_of(size_t k, const Ids& parts) {
    Sums all;
    for (const int32_t part : parts) all = all + nodes(k)[part].sum;
    return all;
  }

  bool left_heavier(const Ids& batch, const LevelSplit& split) {
    const Steps steps = steps_of(batch, split.column);
    double l = 0.0, r = 0.0;
    for (size_t k = 0; k < n_outputs(); k++) {
      const Sums left = left_of(k, last(batch), split, steps), right = sum_of(k, last(batch)) - left;
      l = l + (double)left.h / search(k).h_unit(), r = r + (double)right.h / search(k).h_unit();
    }
    return l >= r;
  }

  double take(const Ids& batch, LevelSplit best) override {
    const int c = best.column;
    const bool set = b_.is_category[c];
    const Steps steps = steps_of(batch, c);
    double gained = 0.0;
    for (const int32_t id : batch) branches_[id].gain.clear();
    for (size_t k = 0; k < n_outputs(); k++) {
      double one = 0.0;
      for (const int32_t id : batch) {
        const Ids& part = branches_[id].parts;
        CosineParts before, after;
        for (size_t m = 0; m < part.size(); m += 2) {
          for (const size_t at : {m, m + 1})
            nodes(k)[part[at]].best = {best.score, c, best.bin, best.missing_left, left_of(k, {part[at]}, best, steps)};
          const Node &body = nodes(k)[part[m]], &tail = nodes(k)[part[m + 1]];
          const Penalty& p = penalty(k, c);
          before = before + own(k, id, m);
          after = after + (tail_fit(body.best.left, tail.best.left, p) +
                           tail_fit(body.sum - body.best.left, tail.sum - tail.best.left, p));
        }
        branches_[id].gain.push_back(0.5 * (fall(after) - fall(before)) * search(k).unit());
        one = one + branches_[id].gain.back();
      }
      if (set) {
        Ids codes = Categories::set(steps, best.bin);
        if (codes.back() == b_.n_bins[c]) codes.pop_back();  // the side of missing values is known
        g_[k]->take_set(parts(batch), codes);
      }
      gained = gained + one;
    }
    return gained;
  }

  // -------------------------------------------------------------------------------------------------- limits
  bool enough(const Ids& batch, const LevelSplit& split) override {
    if (lim_.min_child_weight == 0.0 && !counts_) return true;
    const Steps steps = steps_of(batch, split.column);
    const double outputs = (double)n_outputs();
    for (const int32_t id : batch) {
      double l = 0.0, r = 0.0;
      bool few = false;
      for (size_t k = 0; k < n_outputs(); k++) {
        const Sums left = left_of(k, last({id}), split, steps), all = sum_of(k, last({id}));
        l = l + (double)left.h / search(k).h_unit(), r = r + (double)(all - left).h / search(k).h_unit();
        few = few || (k == 0 && counts_ && !search(0).count_bound_holds(left.h, all.h));
      }
      if (poor(l / outputs, r / outputs, few)) return false;
    }
    return true;
  }
  Tree make_tree(size_t k) {
    Tree t = Growth::blank(branches_.size());
    for (size_t i = 0; i < branches_.size(); i++)
      if (branches_[i].left != 0)
        g_[k]->write(nodes(k)[branches_[i].parts[0]], i, branches_[i].left, branches_[i].gain[k], t);
    for (Node& n : nodes(k)) g_[k]->t_.release(n.hist);
    return t;
  }

  std::vector<Branch> branches_;
};

}  // namespace sapwood
