// Lockstep: growths that take one split together, whatever decides on it (together.h, tails.h).
// Enters: the growths of all outputs. Leaves: the same, grown in step.
//
//   branch      a node of the tree, which has nodes of each growth for its parts
//   batch       branches that are split at once; a level of a symmetric tree takes one split
#pragma once
#include <memory>
#include <optional>

#include "cpu/grow/frontier.h"
#include "cpu/grow/split_finder.h"

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
class Lockstep {
 protected:
  using Ids = std::vector<int32_t>;
  using LevelSplit = SplitFinder::LevelSplit;
  using Steps = SplitFinder::Steps;

  Lockstep(std::vector<std::unique_ptr<Growth>>& outputs, const std::vector<GrowInput>& in, int n_threads)
      : g_(outputs),
        in_(in[0]),
        b_(in_.binned),
        lim_(in_.limits),
        most_(lim_.max_leaves > 0 ? lim_.max_leaves : 0x7fffffff),
        n_threads_(n_threads),
        units_(outputs, in),
        ranker_(in_.taste, units_.deviation, units_.unit, in_.seed, in_.tree),
        counts_(lim_.min_samples_leaf > 1.0) {}
  ~Lockstep() = default;

  virtual int depth(int32_t id) = 0;
  virtual Ids parts(const Ids& batch) = 0;
  virtual Ids expand(const Ids& batch, bool more) = 0;  // their children; more: these may be split
  virtual double score_of(const Ids& batch) = 0;        // as they are
  virtual LevelSplit best_of(const Ids& batch, int c, double bar, bool limited) = 0;
  virtual bool enough(const Ids& batch, const LevelSplit& split) = 0;  // on both sides of each, as far as hessians tell
  virtual double take(const Ids& batch, LevelSplit split) = 0;         // what it gains

  size_t n_outputs() const { return g_.size(); }
  std::vector<Node>& nodes(size_t k) { return g_[k]->nodes_; }
  SplitFinder& search(size_t k) { return g_[k]->s_; }
  const HistogramBuilder& tally(size_t k) { return g_[k]->t_; }

  // ------------------------------------------------------------------------------------------------ frontier
  bool at_max_depth(int depth) const { return lim_.max_depth > 0 && depth >= lim_.max_depth; }

  // freely: whatever a level gains
  void grow_levels(bool without_gil) {
    Ids level{0};
    for (int depth = 0; !at_max_depth(depth) && 2 * (int64_t)level.size() <= most_; depth++) {
      const std::optional<double> gain = choose(level);
      if (!gain || !(without_gil || *gain > lim_.min_split_gain)) return;
      level = expand(level, !at_max_depth(depth + 1) && 4 * (int64_t)level.size() <= most_);
    }
  }

  void grow_nodes() {
    Frontier frontier(in_.grower, in_.grower.whole_level, most_);
    auto release = [&](int32_t id) {
      for (auto& g : g_)
        for (const int32_t part : parts({id})) g->t_.release(g->nodes_[part].hist);
    };
    auto meet = [&](int32_t id) {
      const std::optional<double> gain = choose({id});
      if (gain && *gain > lim_.min_split_gain) frontier.open(*gain, id);
      else release(id);
    };
    if (most_ > 1 && !at_max_depth(0)) meet(0);
    Ids batch;
    while (frontier.next([&](int32_t id) { return depth(id); }, batch)) {
      const bool more = frontier.room() && !at_max_depth(depth(batch[0]) + 1);
      for (const int32_t child : expand(batch, more))
        if (more) meet(child);
      frontier.trim(release);
    }
  }

  // -------------------------------------------------------------------------------------------------- search
  // Gives these branches their best split, in all outputs, if there is one; what it gains.
  std::optional<double> choose(const Ids& batch) {
    const int64_t n_codes = tally(0).n_codes * (int64_t)(parts(batch).size() * n_outputs());
    search(0).choose_columns(batch[0], depth(batch[0]));
    const std::vector<int>& columns = search(0).allowed(batch[0]);
    const double own = score_of(batch);
    std::vector<LevelSplit> found(columns.size());
    auto scan = [&](bool limited) {
      run(n_codes < FORK_NS ? 1 : n_threads_, (int64_t)columns.size(), [&](int64_t k, int) {
        if (limited && (found[k].column < 0 || enough(batch, found[k]))) return;
        found[k] = best_of(batch, columns[k], worth(own), limited);
      });
      return ranker_.best(found, own, batch[0]);
    };
    LevelSplit best = scan(false);
    if (best.column >= 0 && !enough(batch, best)) best = scan(true);  // limits only lower scores: else it is the best
    if (best.column < 0) return {};
    return take(batch, best);
  }

  bool any_missing(const Ids& batch, int c) {
    if (!b_.has_missing[c]) return false;
    for (size_t k = 0; k < n_outputs(); k++)
      for (const int32_t part : parts(batch))
        if (nodes(k)[part].n_rows > 0 && tally(k).at(nodes(k)[part].hist, c, b_.n_bins[c]).h > 0) return true;
    return false;
  }

  // -------------------------------------------------------------------------------------------------- limits
  // left, right: hessians, means over outputs; few: rows on a side. An empty side is no harm.
  bool poor(double left, double right, bool few) const {
    if (!(left > 0.0 && right > 0.0)) return false;
    return few || left < lim_.min_child_weight || right < lim_.min_child_weight;
  }

  // right, left IN OUT: scores of the first cuts, by the side of missing values, or of the steps (right);
  // -inf where a branch of these parts would have too little.
  void veto(const Ids& parts, int c, const Steps* steps, std::vector<double>& right, std::vector<double>& left) {
    const std::vector<int64_t> count = rows_of(parts, c);
    veto(parts, c, steps, count, false, right);
    veto(parts, c, steps, count, true, left);
  }
  void veto(const Ids& parts, int c, const Steps* steps, const std::vector<int64_t>& count, bool missing_left,
            std::vector<double>& score) {
    const size_t n = score.size();
    std::vector<double> left(n, 0.0), right(n, 0.0);
    std::vector<int64_t> below(n);
    for (size_t k = 0; k < n_outputs(); k++) {
      std::fill(below.begin(), below.end(), 0);
      int64_t all = 0;
      for (const int32_t part : parts) {
        const Node& node = nodes(k)[part];
        if (node.n_rows == 0) continue;
        const ColumnHistogram bins = search(k).bins_of(node, c);
        int64_t h = missing_left ? bins.gone().h : 0;
        for (size_t i = 0; i < n; i++) {
          if (steps != nullptr && (*steps)[i].fresh) h = 0;
          h += bins.at(steps != nullptr ? (*steps)[i].code : (int)i).h;
          below[i] += h;
        }
        all += node.sum.h;
      }
      const double one = 1.0 / search(k).h_unit();  // exact: a power of two
      for (size_t i = 0; i < n; i++)
        left[i] = left[i] + (double)below[i] * one, right[i] = right[i] + (double)(all - below[i]) * one;
    }
    int64_t total = 0, rows = missing_left ? count.back() : 0;
    for (const int64_t x : count) total += x;
    const double outputs = (double)n_outputs();
    for (size_t i = 0; i < n; i++) {
      if (steps != nullptr && (*steps)[i].fresh) rows = 0;
      rows += count[steps != nullptr ? (*steps)[i].code : (int)i];
      if (poor(left[i] / outputs, right[i] / outputs, counts_ && search(0).few(rows, total))) score[i] = -INF;
    }
  }

  // (bins + 1) rows of nodes by code, missing last; 0 where they do not matter.
  std::vector<int64_t> rows_of(const Ids& parts, int c) {
    const Gradients& q = in_.gradients;
    std::vector<int64_t> count((size_t)b_.n_bins[c] + 1, 0), more;
    for (const int32_t part : parts) {
      const Node& node = nodes(0)[part];
      if (!counts_ || node.n_rows == 0) continue;
      if (!q.constant_hessian) search(0).count_codes(node, c, more);
      for (size_t code = 0; code < more.size(); code++) count[code] += more[code];
      for (int code = 0; code < b_.n_bins[c] + b_.has_missing[c] && q.constant_hessian; code++)
        count[code] += tally(0).at(node.hist, c, code).h / (int64_t)q.max_hessian_per_count;
    }
    return count;
  }

  std::vector<std::unique_ptr<Growth>>& g_;
  const GrowInput& in_;
  const Binned& b_;
  const Limits& lim_;
  const int most_;  // leaves
  const int n_threads_;
  const Units units_;
  SplitRanker ranker_;
  const bool counts_;  // rows
};

}  // namespace sapwood
