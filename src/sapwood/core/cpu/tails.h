// Tails: a tree whose splits are judged by rows that its values have not seen (NUMERICS, ordered boosting).
// Enters: the growths of all outputs, over the rows of all models. Leaves: the splits, one structure for all of them.
//
//   model       0              1                   2
//   rows   [body|tail]  [body    |tail  ]  [body           |tail         ]      a node of the tree has a part of each
//   score   a value from the body fits the tail: for every side, and added up
#pragma once
#include <memory>
#include <optional>

#include "together.h"

namespace sapwood {

inline Angle fit_of(Sums body, Sums tail, const Penalty& p) {
  return fit_of((double)body.g, (double)body.h, (double)tail.g, (double)tail.h, p);
}

// Growth: the one of grow.cpp, which lets us in.
template <class Growth>
class Tails {
 public:
  Tails(std::vector<std::unique_ptr<Growth>>& outputs, const std::vector<GrowInput>& in, int n_threads)
      : g_(outputs),
        in_(in[0]),
        b_(in_.binned),
        lim_(in_.limits),
        n_threads_(n_threads),
        units_(outputs, in),
        judge_(in_.taste, units_.deviation, units_.unit, in_.seed, in_.tree),
        counts_(lim_.min_samples_leaf > 1.0) {}

  // ends: of the rows of every model's body and tail, which lie one after the other
  std::vector<Tree> grow(const std::vector<int64_t>& ends) {
    const int most = lim_.max_leaves > 0 ? lim_.max_leaves : 0x7fffffff;
    branches_.push_back({});
    for (size_t id = 0; id < ends.size(); id++) branches_[0].parts.push_back((int32_t)id);
    for (auto& g : g_) {
      g->plant(ends);
      for (const int32_t id : branches_[0].parts) g->root_histogram(id);
    }
    if (in_.grower.shared_split) grow_levels(most);
    else grow_nodes(most);
    std::vector<Tree> trees;
    for (size_t k = 0; k < n_outputs(); k++) trees.push_back(harvest(k));
    return trees;
  }

 private:
  using Ids = std::vector<int32_t>;
  using Shared = Search::Shared;
  using Steps = Search::Steps;
  struct Branch {  // a node of the tree
    Ids parts;     // nodes of a growth: body and tail of every model
    int depth = 0;
    int32_t left = 0;          // first child, once split
    std::vector<double> gain;  // by output
  };

  size_t n_outputs() const { return g_.size(); }
  std::vector<Node>& nodes(size_t k) { return g_[k]->nodes_; }
  Search& search(size_t k) { return g_[k]->s_; }
  const Tally& tally(size_t k) { return g_[k]->t_; }

  // ------------------------------------------------------------------------------------------------ frontier
  bool deep_enough(int depth) const { return lim_.max_depth > 0 && depth >= lim_.max_depth; }

  void grow_levels(int most) {
    Ids level{0};
    for (int depth = 0; !deep_enough(depth) && 2 * (int64_t)level.size() <= most; depth++) {
      const std::optional<double> gain = choose(level);
      if (!gain || !(*gain > lim_.min_split_gain)) return;
      level = expand(level, !deep_enough(depth + 1) && 4 * (int64_t)level.size() <= most);
    }
  }

  void grow_nodes(int most) {
    Frontier frontier(in_.grower, in_.grower.whole_level, most);
    auto meet = [&](int32_t id) {
      const std::optional<double> gain = choose({id});
      if (gain && *gain > lim_.min_split_gain) frontier.open(*gain, id);
      else release(id);
    };
    if (most > 1 && !deep_enough(0)) meet(0);
    Ids batch;
    while (frontier.next([&](int32_t id) { return branches_[id].depth; }, batch)) {
      const bool more = frontier.room() && !deep_enough(branches_[batch[0]].depth + 1);
      for (const int32_t child : expand(batch, more))
        if (more) meet(child);
      frontier.trim([&](int32_t id) { release(id); });
    }
  }

  Ids parts(const Ids& batch) const {
    Ids all;
    for (const int32_t id : batch) all.insert(all.end(), branches_[id].parts.begin(), branches_[id].parts.end());
    return all;
  }
  Ids last(const Ids& batch) const {  // those of the last model, which knows all rows
    Ids all;
    for (const int32_t id : batch) all.insert(all.end(), branches_[id].parts.end() - 2, branches_[id].parts.end());
    return all;
  }

  Ids expand(const Ids& batch, bool more) {  // their children
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
  void release(int32_t id) {
    for (auto& g : g_)
      for (const int32_t part : branches_[id].parts) g->t_.release(g->nodes_[part].hist);
  }

  // -------------------------------------------------------------------------------------------------- search
  // Gives these nodes their best split, if there is one; what it gains.
  std::optional<double> choose(const Ids& batch) {
    const int64_t n_codes = tally(0).n_codes * (int64_t)(parts(batch).size() * n_outputs());
    search(0).choose_columns(batch[0], branches_[batch[0]].depth);
    const std::vector<int>& columns = search(0).allowed(batch[0]);
    const double own = score_of(batch);
    std::vector<Shared> found(columns.size());
    auto scan = [&](bool limited) {
      run(n_codes < FORK_NS ? 1 : n_threads_, (int64_t)columns.size(), [&](int64_t k, int) {
        if (limited && (found[k].column < 0 || enough(batch, found[k]))) return;
        found[k] = best_of(batch, columns[k], worth(own), limited);
      });
      return judge_.best(found, own, batch[0]);
    };
    Shared best = scan(false);
    if (best.column >= 0 && !enough(batch, best)) best = scan(true);  // limits only lower scores: else it is the best
    if (best.column < 0) return {};
    return take(batch, best);
  }

  double score(Angle a) const { return judge_.cosine() ? length(a) : fall(a); }

  double score_of(const Ids& batch) {  // of the nodes as they are
    Angle all;
    for (size_t k = 0; k < n_outputs(); k++) {
      Angle one;
      for (const int32_t id : batch)
        for (size_t m = 0; m < branches_[id].parts.size(); m += 2) one = one + own(k, id, m);
      all = {all.along + units_.share[k] * one.along, all.square + units_.share[k] * one.square};
    }
    return score(all);
  }
  Angle own(size_t k, int32_t id, size_t m) {
    const Ids& part = branches_[id].parts;
    return fit_of(nodes(k)[part[m]].sum, nodes(k)[part[m + 1]].sum, search(k).penalty());
  }

  // left OUT: what goes left of a part at each of its first cuts, or of the steps of a column of categories.
  void fill(size_t k, int32_t part, int c, const Steps* steps, bool missing_left, std::vector<Sums>& left) {
    const Node& node = nodes(k)[part];
    if (node.n_rows == 0) return (void)std::fill(left.begin(), left.end(), Sums{});
    const Bins bins = search(k).bins_of(node, c);
    Sums l = missing_left ? bins.gone() : Sums{};
    for (size_t i = 0; i < left.size(); i++) {
      if (steps != nullptr && (*steps)[i].fresh) l = {};
      left[i] = l = l + bins.at(steps != nullptr ? (*steps)[i].code : (int)i);
    }
  }

  // (n) of the first cuts, or of the steps; model after model of each node, then output after output.
  std::vector<double> scores(const Ids& batch, int c, size_t n, bool side, const Steps* steps, bool limited) {
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
            const Bins a = search(k).bins_of(of_body, c), b = search(k).bins_of(of_tail, c);
            kernel.scan_tails({a.sums, b.sums, a.packed, b.packed, side ? a.gone() : Sums{}, side ? b.gone() : Sums{},
                               of_body.sum, of_tail.sum},
                              (int)n, p, one.data(), square.data());
            continue;
          }
          fill(k, part[m], c, steps, side, left), fill(k, part[m + 1], c, steps, side, tail);
          for (size_t i = 0; i < n; i++) {
            const Angle both = fit_of(left[i], tail[i], p) + fit_of(of_body.sum - left[i], of_tail.sum - tail[i], p);
            one[i] = one[i] + both.along, square[i] = square[i] + both.square;
          }
        }
      for (size_t i = 0; i < n; i++) {
        all[i] = all[i] + units_.share[k] * one[i];
        squares[i] = squares[i] + units_.share[k] * square[i];
      }
    }
    for (size_t i = 0; i < n; i++) all[i] = score(Angle{all[i], squares[i]});
    for (const int32_t id : batch)
      if (limited) veto(id, c, side, steps, all);
    return all;
  }
  const Penalty& penalty(size_t k, int c) {
    return b_.is_category[c] ? search(k).categories_->penalty(c, b_.n_bins[c]) : search(k).penalty();
  }

  Shared best_of(const Ids& batch, int c, double bar, bool limited) {
    const int n_bins = b_.n_bins[c];
    const bool missing = any_missing(batch, c);
    Shared best;
    if (!b_.is_category[c]) {
      const std::vector<double> right = scores(batch, c, (size_t)(n_bins - !missing), false, nullptr, limited),
                                left = scores(batch, c, (size_t)(missing ? n_bins - 1 : 0), true, nullptr, limited);
      best = Search::best_of(right, left, c, bar, 0, (int)right.size() - 1);
    } else {
      const Steps steps = steps_of(batch, c);
      const std::vector<double> all = scores(batch, c, steps.size(), false, &steps, limited);
      bool side = false;
      best.score = bar;
      for (int i = 0; i < (int)steps.size(); i++) {
        side = (side && !steps[i].fresh) || steps[i].code == n_bins;
        if (steps[i].ends && all[i] > best.score) best = {all[i], c, i, side};
      }
    }
    if (best.column >= 0 && !missing) best.missing_left = left_heavier(batch, best);
    return best;
  }

  bool any_missing(const Ids& batch, int c) {
    if (!b_.has_missing[c]) return false;
    for (size_t k = 0; k < n_outputs(); k++)
      for (const int32_t part : parts(batch))
        if (nodes(k)[part].n_rows > 0 && tally(k).at(nodes(k)[part].hist, c, b_.n_bins[c]).h > 0) return true;
    return false;
  }

  // The steps of a column, from rows of all models: none where it holds numbers.
  Steps steps_of(const Ids& batch, int c) {
    return b_.is_category[c] ? search(0).level_steps(nodes(0), last(batch), c) : Steps{};
  }
  // What goes left of some parts.
  Sums left_of(size_t k, const Ids& parts, const Shared& split, const Steps& steps) {
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

  bool left_heavier(const Ids& batch, const Shared& split) {
    const Steps steps = steps_of(batch, split.column);
    double l = 0.0, r = 0.0;
    for (size_t k = 0; k < n_outputs(); k++) {
      const Sums left = left_of(k, last(batch), split, steps), right = sum_of(k, last(batch)) - left;
      l = l + (double)left.h / search(k).h_unit(), r = r + (double)right.h / search(k).h_unit();
    }
    return l >= r;
  }

  double take(const Ids& batch, const Shared& best) {
    const int c = best.column;
    const bool set = b_.is_category[c];
    const Steps steps = steps_of(batch, c);
    double gained = 0.0;
    for (const int32_t id : batch) branches_[id].gain.clear();
    for (size_t k = 0; k < n_outputs(); k++) {
      double one = 0.0;
      for (const int32_t id : batch) {
        const Ids& part = branches_[id].parts;
        Angle before, after;
        for (size_t m = 0; m < part.size(); m += 2) {
          for (const size_t at : {m, m + 1})
            nodes(k)[part[at]].best = {best.score, c, best.bin, best.missing_left, left_of(k, {part[at]}, best, steps)};
          const Node &body = nodes(k)[part[m]], &tail = nodes(k)[part[m + 1]];
          const Penalty& p = penalty(k, c);
          before = before + own(k, id, m);
          after = after + (fit_of(body.best.left, tail.best.left, p) +
                           fit_of(body.sum - body.best.left, tail.sum - tail.best.left, p));
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
  // Whether a split leaves enough on both sides of every node, as far as hessians tell.
  bool enough(const Ids& batch, const Shared& split) {
    if (lim_.min_child_weight == 0.0 && !counts_) return true;
    const Steps steps = steps_of(batch, split.column);
    for (const int32_t id : batch) {
      double l = 0.0, r = 0.0;
      bool few = false;
      for (size_t k = 0; k < n_outputs(); k++) {
        const Sums left = left_of(k, last({id}), split, steps), all = sum_of(k, last({id}));
        l = l + (double)left.h / search(k).h_unit(), r = r + (double)(all - left).h / search(k).h_unit();
        few = few || (k == 0 && counts_ && !search(0).surely_enough(left.h, all.h));
      }
      if (poor(l, r, few)) return false;
    }
    return true;
  }
  bool poor(double left, double right, bool few) const {  // sums over outputs; an empty side is no harm
    const double outputs = (double)n_outputs();
    if (!(left > 0.0 && right > 0.0)) return false;
    return few || left / outputs < lim_.min_child_weight || right / outputs < lim_.min_child_weight;
  }

  // Takes out the candidates that leave a side of a node too little, of all rows as the last model has them.
  void veto(int32_t id, int c, bool side, const Steps* steps, std::vector<double>& out) {
    const size_t n = out.size();
    std::vector<double> left(n, 0.0), right(n, 0.0);
    std::vector<Sums> body(n), tail(n);
    const Ids part = last({id});
    for (size_t k = 0; k < n_outputs(); k++) {
      fill(k, part[0], c, steps, side, body), fill(k, part[1], c, steps, side, tail);
      const int64_t all = nodes(k)[part[0]].sum.h + nodes(k)[part[1]].sum.h;
      const double unit = search(k).h_unit();
      for (size_t i = 0; i < n; i++) {
        const int64_t h = body[i].h + tail[i].h;
        left[i] = left[i] + (double)h / unit, right[i] = right[i] + (double)(all - h) / unit;
      }
    }
    std::vector<int64_t> count((size_t)b_.n_bins[c] + 1, 0), more;
    for (const int32_t one : part) {
      if (!counts_ || nodes(0)[one].n_rows == 0) continue;
      search(0).count_codes(nodes(0)[one], c, more);
      for (size_t b = 0; b < more.size(); b++) count[b] += more[b];
    }
    int64_t total = 0, rows = side ? count.back() : 0;
    for (const int64_t x : count) total += x;
    for (size_t i = 0; i < n; i++) {
      if (steps != nullptr && (*steps)[i].fresh) rows = 0;
      rows += count[steps != nullptr ? (*steps)[i].code : (int)i];
      if (poor(left[i], right[i], counts_ && search(0).few(rows, total))) out[i] = -INF;
    }
  }

  Tree harvest(size_t k) {
    Tree t = Growth::blank(branches_.size());
    for (size_t i = 0; i < branches_.size(); i++)
      if (branches_[i].left != 0)
        g_[k]->write(nodes(k)[branches_[i].parts[0]], i, branches_[i].left, branches_[i].gain[k], t);
    for (Node& n : nodes(k)) g_[k]->t_.release(n.hist);
    return t;
  }

  std::vector<std::unique_ptr<Growth>>& g_;
  const GrowInput& in_;
  const Binned& b_;
  const Limits& lim_;
  const int n_threads_;
  const Units units_;
  Judge judge_;
  const bool counts_;  // rows
  std::vector<Branch> branches_;
};

}  // namespace sapwood
