// OrderedGrowth: a tree whose splits are judged by rows that its values have not seen (NUMERICS,
// ordered boosting).
// Enters: the growths of all outputs, over the rows of all prefix models. Leaves: the splits, the
// same for all outputs.
//
//   model       0              1                   2
//   rows   [body|tail]  [body    |tail  ]  [body           |tail         ]      a node has some rows of each
//   score   how well a value from the body fits the tail: for every side, and added up
//
// Each body and each tail of a node is a node of its own in the growths (a member): it has its own
// histogram and is partitioned on its own. All members of a node share one split.
#pragma once
#include "cpu/grow/lockstep.h"

namespace sapwood {

class OrderedGrowth : public Lockstep {
 public:
  // prefix_ends: where each body and each tail ends in the row list
  OrderedGrowth(Outputs& outputs, const std::vector<GrowInput>& in,
                const std::vector<int64_t>& prefix_ends, int n_threads)
      : Lockstep(outputs, in, n_threads), prefix_ends_(prefix_ends) {}

  bool make_root() override {
    for (auto& g : g_) {
      g->make_roots(prefix_ends_);
    }
    nodes_.resize(1);
    for (size_t id = 0; id < prefix_ends_.size(); id++) {
      nodes_[0].members.push_back((int32_t)id);
    }
    return true;
  }
  int depth(int32_t id) const override { return nodes_[id].depth; }

  std::vector<Tree> make_trees() {
    std::vector<Tree> trees;
    for (size_t k = 0; k < n_outputs(); k++) {
      trees.push_back(GrowthCore::blank_tree(nodes_.size()));
      for (size_t i = 0; i < nodes_.size(); i++) {
        if (nodes_[i].left != 0) {
          g_[k]->write_split(nodes(k)[nodes_[i].members[0]], i, nodes_[i].left, nodes_[i].gain[k],
                             trees[k]);
        }
      }
      for (int32_t id = 0; id < (int32_t)nodes(k).size(); id++) {
        g_[k]->release(id);
      }
    }
    return trees;
  }

 private:
  struct LockstepNode {
    NodeIds members;  // nodes of a growth: body and tail of every model
    int depth = 0;
    int32_t left = 0;          // first child, once split
    std::vector<double> gain;  // by output
  };

  NodeIds members(const NodeIds& batch) const override {
    NodeIds all;
    for (const int32_t id : batch) {
      all.insert(all.end(), nodes_[id].members.begin(), nodes_[id].members.end());
    }
    return all;
  }
  NodeIds last_members(const NodeIds& batch) const {  // of the last model, which knows all rows
    NodeIds all;
    for (const int32_t id : batch) {
      all.insert(all.end(), nodes_[id].members.end() - 2, nodes_[id].members.end());
    }
    return all;
  }

  NodeIds expand(const NodeIds& batch, bool more) override {
    for (auto& g : g_) {
      g->split(members(batch), more, false);
    }
    NodeIds children;
    for (const int32_t id : batch) {
      const int32_t left = nodes_[id].left = (int32_t)nodes_.size();
      LockstepNode side[2];
      for (const int32_t member : nodes_[id].members) {
        for (const int s : {0, 1}) {
          side[s].members.push_back(nodes(0)[member].left + s);
        }
      }
      for (const int s : {0, 1}) {
        side[s].depth = nodes_[id].depth + 1;
        nodes_.push_back(std::move(side[s]));
        children.push_back(left + s);
      }
    }
    return children;
  }

  // -----------------------------------------------------------------------------------------------
  // search
  double score(CosineParts a) const {
    return ranker_.cosine() ? cosine_score(a) : loss_reduction(a);
  }

  double score_of(const NodeIds& batch) override {
    CosineParts all;
    for (size_t k = 0; k < n_outputs(); k++) {
      CosineParts one;
      for (const int32_t id : batch) {
        for (size_t m = 0; m < nodes_[id].members.size(); m += 2) {
          one = one + own_fit(k, id, m);
        }
      }
      all = all + scales_.scale[k] * one;
    }
    return score(all);
  }
  CosineParts own_fit(size_t k, int32_t id, size_t m) const {  // without a split
    const NodeIds& member = nodes_[id].members;
    return tail_fit(nodes(k)[member[m]].sum, nodes(k)[member[m + 1]].sum, finder(k).penalty());
  }

  // left OUT: what goes left in a member at each of its first cuts, or of the steps of a category
  // column
  void fill(size_t k, int32_t member, int c, const Steps* steps, bool missing_left,
            std::vector<Sums>& left) const {
    if (nodes(k)[member].n_rows == 0) {
      return (void)std::fill(left.begin(), left.end(), Sums{});
    }
    const ColumnHistogram bins = histogram(k, member, c);
    Sums l = missing_left ? bins.missing() : Sums{};
    for (size_t i = 0; i < left.size(); i++) {
      if (steps != nullptr && (*steps)[i].starts) {
        l = {};
      }
      left[i] = l = l + bins.at(steps != nullptr ? (*steps)[i].code : (int)i);
    }
  }

  // (n) scores of the first cuts, or of the steps; model after model of each node, then output
  // after output.
  std::vector<double> scores(const NodeIds& batch, int c, size_t n, bool missing_left,
                             const Steps* steps) {
    std::vector<double> all(n, 0.0);
    std::vector<double> all_norm2(n, 0.0);
    std::vector<double> one;
    std::vector<double> norm2;
    for (size_t k = 0; k < n_outputs(); k++) {
      one.assign(n, 0.0);
      norm2.assign(n, 0.0);
      for (const int32_t id : batch) {
        for (size_t m = 0; m < nodes_[id].members.size(); m += 2) {
          add_fits(k, nodes_[id].members[m], nodes_[id].members[m + 1], c, missing_left, steps, one,
                   norm2);
        }
      }
      for (size_t i = 0; i < n; i++) {
        all[i] = all[i] + scales_.scale[k] * one[i];
        all_norm2[i] = all_norm2[i] + scales_.scale[k] * norm2[i];
      }
    }
    for (size_t i = 0; i < n; i++) {
      all[i] = score(CosineParts{all[i], all_norm2[i]});
    }
    return all;
  }
  // dot, norm2 (cuts or steps) +=: one model's fits
  void add_fits(size_t k, int32_t body, int32_t tail, int c, bool missing_left, const Steps* steps,
                std::vector<double>& dot, std::vector<double>& norm2) const {
    const Node& of_body = nodes(k)[body];
    const Node& of_tail = nodes(k)[tail];
    if (of_body.n_rows == 0 || of_tail.n_rows == 0) {
      return;  // no value, or no rows to judge it
    }
    const Penalty& p = finder(k).penalty(c);
    const size_t n = dot.size();
    if (steps == nullptr) {
      const ColumnHistogram a = histogram(k, body, c);
      const ColumnHistogram b = histogram(k, tail, c);
      kernels().scan_tails({a.sums, b.sums, a.packed, b.packed, missing_left ? a.missing() : Sums{},
                            missing_left ? b.missing() : Sums{}, of_body.sum, of_tail.sum},
                           (int)n, p, dot.data(), norm2.data());
      return;
    }
    std::vector<Sums> left(n);
    std::vector<Sums> left_tail(n);
    fill(k, body, c, steps, missing_left, left);
    fill(k, tail, c, steps, missing_left, left_tail);
    for (size_t i = 0; i < n; i++) {
      const CosineParts both = tail_fit(left[i], left_tail[i], p) +
                               tail_fit(of_body.sum - left[i], of_tail.sum - left_tail[i], p);
      dot[i] = dot[i] + both.dot;
      norm2[i] = norm2[i] + both.norm2;
    }
  }

  LevelSplit best_of(const NodeIds& batch, int c, double bar, bool limited) override {
    const int n_bins = b_.n_bins[c];
    const bool category = b_.is_category[c];
    const bool missing = any_missing(batch, c);
    const Steps steps = steps_of(batch, c);
    const Steps* by = category ? &steps : nullptr;
    std::vector<double> right =
        scores(batch, c, category ? steps.size() : (size_t)(n_bins - !missing), false, by);
    std::vector<double> left;
    if (missing && !category) {
      left = scores(batch, c, (size_t)n_bins - 1, true, by);
    }
    for (const int32_t id : batch) {
      if (limited) {
        veto(last_members({id}), c, by, right, left);
      }
    }
    LevelSplit best;
    if (!category) {
      best = best_cut(right, left, c, bar, 0, (int)right.size() - 1);
    } else {
      best.score = bar;
    }
    bool side = false;
    for (int i = 0; i < (int)steps.size(); i++) {
      side = (side && !steps[i].starts) || steps[i].code == n_bins;
      if (steps[i].is_candidate && right[i] > best.score) {
        best = {right[i], c, i, side};
      }
    }
    if (best.column >= 0 && !missing) {
      best.missing_left = left_heavier(batch, best);
    }
    return best;
  }

  // The steps of a category column, from the rows of all models; none for a column of numbers.
  Steps steps_of(const NodeIds& batch, int c) const {
    return b_.is_category[c] ? finder(0).level_steps(nodes(0), last_members(batch), c) : Steps{};
  }
  // What goes left in some members.
  Sums left_of(size_t k, const NodeIds& ids, const LevelSplit& split, const Steps& steps) const {
    const bool category = b_.is_category[split.column];
    std::vector<Sums> left((size_t)split.bin + 1);
    Sums all;
    for (const int32_t id : ids) {
      fill(k, id, split.column, category ? &steps : nullptr, split.missing_left && !category, left);
      all = all + left.back();
    }
    return all;
  }
  // Hessians left and right in members of all outputs, summed over outputs.
  struct Hessians {
    double left = 0.0, right = 0.0;
  };
  Hessians hessians(const NodeIds& ids, const LevelSplit& split, const Steps& steps,
                    bool* bound_holds) const {
    Hessians both;
    for (size_t k = 0; k < n_outputs(); k++) {
      Sums all;
      for (const int32_t id : ids) {
        all = all + nodes(k)[id].sum;
      }
      const Sums left = left_of(k, ids, split, steps);
      both.left = both.left + (double)left.h / finder(k).hessian_scale();
      both.right = both.right + (double)(all - left).h / finder(k).hessian_scale();
      if (k == 0 && bound_holds != nullptr) {
        *bound_holds = finder(0).count_bound_holds(left.h, all.h);
      }
    }
    return both;
  }

  bool left_heavier(const NodeIds& batch, const LevelSplit& split) {
    const Hessians h = hessians(last_members(batch), split, steps_of(batch, split.column), nullptr);
    return h.left >= h.right;
  }

  double take(const NodeIds& batch, LevelSplit best) override {
    const int c = best.column;
    const Steps steps = steps_of(batch, c);
    double gained = 0.0;
    for (const int32_t id : batch) {
      nodes_[id].gain.clear();
    }
    for (size_t k = 0; k < n_outputs(); k++) {
      double one = 0.0;
      const Penalty& p = finder(k).penalty(c);
      for (const int32_t id : batch) {
        const NodeIds& member = nodes_[id].members;
        CosineParts before;
        CosineParts after;
        for (size_t m = 0; m < member.size(); m += 2) {
          for (const size_t at : {m, m + 1}) {
            nodes(k)[member[at]].best = {best.score, c, best.bin, best.missing_left,
                                         left_of(k, {member[at]}, best, steps)};
          }
          const Node& body = nodes(k)[member[m]];
          const Node& tail = nodes(k)[member[m + 1]];
          before = before + own_fit(k, id, m);
          after = after + (tail_fit(body.best.left, tail.best.left, p) +
                           tail_fit(body.sum - body.best.left, tail.sum - tail.best.left, p));
        }
        nodes_[id].gain.push_back(0.5 * (loss_reduction(after) - loss_reduction(before)) *
                                  finder(k).gain_scale());
        one = one + nodes_[id].gain.back();
      }
      if (b_.is_category[c]) {
        NodeIds codes = Categories::set(steps, best.bin);
        if (codes.back() == b_.n_bins[c]) {
          codes.pop_back();  // the side of missing values is known
        }
        g_[k]->take_set(members(batch), codes);
      }
      gained = gained + one;
    }
    return gained;
  }

  bool within_limits(const NodeIds& batch, const LevelSplit& split) override {
    if (lim_.min_child_weight == 0.0 && !counts_rows_) {
      return true;
    }
    const Steps steps = steps_of(batch, split.column);
    const double outputs = (double)n_outputs();
    for (const int32_t id : batch) {
      bool bound_holds = true;
      const Hessians h = hessians(last_members({id}), split, steps, &bound_holds);
      if (violates_limits(h.left / outputs, h.right / outputs, counts_rows_ && !bound_holds)) {
        return false;
      }
    }
    return true;
  }

  const std::vector<int64_t>& prefix_ends_;
  std::vector<LockstepNode> nodes_;  // of the tree
};

}  // namespace sapwood
