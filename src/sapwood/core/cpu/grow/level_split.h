// LevelSearch: one split for all nodes of a level (symmetric trees): the sum of the nodes' scores
// decides.
// Enters: the nodes of a level and their histograms. Leaves: the split, which every node takes.
#pragma once
#include "cpu/grow/split_finder.h"

namespace sapwood {

struct LevelSplit {
  double score = 0;
  int column = -1, bin = -1;  // bin: of a category split a step
  bool missing_left = false;
};

// The best of the cuts first .. last, if it beats `bar`. right, left: scores by the side of missing
// values
inline LevelSplit best_cut(const std::vector<double>& right, const std::vector<double>& left, int c,
                           double bar, int first, int last) {
  LevelSplit best;
  best.score = bar;
  for_each_score(first, last, right.data(), left.data(), (int)left.size(),
                 [&](double s, int b, bool missing_left) {
                   if (s > best.score) {
                     best = {s, c, b, missing_left};
                   }
                 });
  return best;
}

class LevelSearch {
 public:
  using Steps = SplitFinder::Steps;
  struct LeftSums {
    Sums values, missing;  // what a split sends left, whatever it does with missing values; those
  };

  LevelSearch(const GrowInput& in, SplitFinder& finder, RowCounts& counts,
              const HistogramBuilder& builder)
      : in_(in), finder_(finder), counts_(counts), builder_(builder) {}

  // False: no split is worth it.
  bool find(std::vector<Node>& nodes, const NodeIds& level) {
    finder_.prepare_counts(level);
    const int threads = builder_.total_codes * (int64_t)level.size() < FORK_NS ? 1 : in_.n_threads;
    return find(
        nodes, level, threads,
        [&](int c, double bar, int) {
          return b_.is_category[c] ? find_sets(nodes, level, c, bar)
                                   : scan_column(nodes, level, c, bar);
        },
        [&](const Node& n, const LevelSplit& split) -> LeftSums {
          if (n.n_rows == 0) {
            return {};
          }
          const ColumnHistogram bins = finder_.histogram(n, split.column);
          return {b_.is_category[split.column] ? sum_of(n, split.column, set_)
                                               : bins.prefix(split.bin, false),
                  bins.missing()};
        });
  }

  // The same by other scans. scan(column, bar, worker) -> LevelSplit; left_of(node, split) ->
  // LeftSums
  template <class Scan, class LeftOf>
  bool find(std::vector<Node>& nodes, const NodeIds& level, int n_threads, Scan&& scan,
            LeftOf&& left_of) {
    const double own = score(nodes, level);
    finder_.choose_columns(level[0], nodes[level[0]].depth);
    const std::vector<int> columns = finder_.allowed_columns(level[0]);
    std::vector<LevelSplit> found(columns.size());
    run(n_threads, (int64_t)columns.size(), [&](int64_t k, int worker) {
      found[k] = scan(columns[k], must_exceed(own), worker);
    });
    LevelSplit best = finder_.ranker().best(found, own, level[0]);
    const bool cosine = finder_.ranker().cosine();
    if (best.column < 0) {
      return false;
    }
    if (!cosine && !(0.5 * (best.score - own) * finder_.gain_scale() - lim_.min_split_gain > 0)) {
      return false;
    }
    const bool category = b_.is_category[best.column];
    if (category) {
      set_ = Categories::set(finder_.level_steps(nodes, level, best.column), best.bin);
    }
    std::vector<LeftSums> left;
    Sums all_left;
    Sums all;
    int64_t missing = 0;
    for (const int32_t id : level) {
      left.push_back(left_of(nodes[id], best));
      all_left = all_left + left.back().values;
      all = all + nodes[id].sum;
      missing += left.back().missing.h;
    }
    if (missing == 0) {
      best.missing_left = all_left.h >= all.h - all_left.h;
    }
    double gained = 0.0;
    for (size_t k = 0; k < level.size(); k++) {
      const bool joins = best.missing_left && !category;  // a set names the missing code itself
      take(finder_, nodes[level[k]], level[k], best,
           joins ? left[k].values + left[k].missing : left[k].values);
      gained = gained + nodes[level[k]].gain;
    }
    if (category && set_.back() == b_.n_bins[best.column]) {
      set_.pop_back();
    }
    return !cosine || lim_.min_split_gain == 0.0 || gained > lim_.min_split_gain;
  }

  // codes that the last split sends left, if by categories
  const std::vector<int32_t>& set() const { return set_; }

  // A node takes the split of its level. left: what goes there
  static void take(const SplitFinder& finder, Node& n, int32_t id, const LevelSplit& best,
                   Sums left) {
    n.best = {best.score, best.column, best.bin, best.missing_left, left};
    if (left.h > 0 && left.h < n.sum.h) {
      n.best.score = finder.score_of_best(n, id);
      n.gain = finder.gain(n);
    }
  }

  // score (cuts) +=: one node's part; -inf where a side would have too little hessian
  void add_scores(const Node& n, int32_t id, int c, const ColumnHistogram& bins, bool missing_left,
                  std::vector<double>& score) const {
    if (!finder_.constraints().monotone()) {
      return k_.scan_level(bins.sums, bins.packed, (int)score.size(), bins.missing(), n.sum,
                           finder_.penalty(), missing_left, score.data());
    }
    if (n.sum.h == 0) {
      return;
    }
    const ScoreRule rule = finder_.score_rule(id, c);
    Sums l = missing_left ? bins.missing() : Sums{};
    for (int b = 0; b < (int)score.size(); b++) {
      l = l + bins.at(b);
      score[b] = score[b] + node_part(n, l, bins.code(b), rule);
    }
  }
  double node_part(const Node& n, Sums l, int code, const ScoreRule& rule) const {
    const Sums r = n.sum - l;
    return l.h == 0 || r.h == 0              ? n.score
           : admits(l, r, finder_.penalty()) ? score_split(l, r, code, rule)
                                             : -INF;
  }

  // -inf where a side that holds rows of a node holds too few. count (bins + 1): of its rows,
  // missing last
  void veto(std::span<const int64_t> count, std::vector<double>& right,
            std::vector<double>& left) const {
    int64_t total = 0;
    int64_t rows_left = 0;
    for (const int64_t x : count) {
      total += x;
    }
    auto poor = [&](int64_t l) {
      return l > 0 && total - l > 0 && finder_.too_few_rows(l, total);
    };
    const int64_t missing = count.back();
    for (size_t b = 0; b < right.size(); b++) {
      rows_left += b + 1 < count.size() ? count[b] : 0;
      if (poor(rows_left)) {
        right[b] = -INF;
      }
      if (b < left.size() && poor(rows_left + missing)) {
        left[b] = -INF;
      }
    }
  }

 private:
  double score(const std::vector<Node>& nodes, const NodeIds& level) const {  // without a split
    CosineParts parts;
    double own = 0.0;
    for (const int32_t id : level) {
      if (finder_.ranker().cosine()) {
        parts = parts + cosine_parts(nodes[id].sum, finder_.penalty());
      } else {
        own = own + nodes[id].score;
      }
    }
    return finder_.ranker().cosine() ? cosine_score(parts) : own;
  }

  // The best cut of one column. Rows are counted only where the best one might leave a side too
  // few.
  LevelSplit scan_column(const std::vector<Node>& nodes, const NodeIds& level, int c, double bar) {
    const LevelSplit best = scan_column(nodes, level, c, bar, false);
    if (!finder_.counts_rows() || best.column < 0) {
      return best;
    }
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) {
        continue;
      }
      const Sums l = finder_.histogram(n, c).prefix(best.bin, best.missing_left);
      if (l.h > 0 && l.h < n.sum.h && !finder_.count_bound_holds(l.h, n.sum.h)) {
        return scan_column(nodes, level, c, bar, true);
      }
    }
    return best;
  }
  LevelSplit scan_column(const std::vector<Node>& nodes, const NodeIds& level, int c, double bar,
                         bool count_rows) {
    const int n_bins = b_.n_bins[c];
    int64_t missing = 0;
    for (const int32_t id : level) {
      if (nodes[id].n_rows > 0) {
        missing += finder_.histogram(nodes[id], c).missing().h;
      }
    }
    const bool cosine = finder_.ranker().cosine();
    const int n_right = missing > 0 ? n_bins : n_bins - 1;
    const int n_left = missing > 0 ? n_bins - 1 : 0;
    std::vector<double> right(n_right, 0.0);
    std::vector<double> left(n_left, 0.0);
    std::vector<double> right_norm2;
    std::vector<double> left_norm2;
    if (cosine) {
      right_norm2.assign(n_right, 0.0);
      left_norm2.assign(n_left, 0.0);
    }
    std::vector<int64_t> room;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) {
        continue;
      }
      const ColumnHistogram bins = finder_.histogram(n, c);
      if (cosine) {
        k_.scan_level_cosine(bins.sums, bins.packed, n_right, bins.missing(), n.sum,
                             finder_.penalty(), false, right.data(), right_norm2.data());
        k_.scan_level_cosine(bins.sums, bins.packed, n_left, bins.missing(), n.sum,
                             finder_.penalty(), true, left.data(), left_norm2.data());
      } else {
        add_scores(n, id, c, bins, false, right);
        add_scores(n, id, c, bins, true, left);
      }
      if (count_rows) {
        veto(counts_.of(id, c, 0, room), right, left);
      }
    }
    for (size_t b = 0; b < right_norm2.size(); b++) {
      right[b] = cosine_score({right[b], right_norm2[b]});
    }
    for (size_t b = 0; b < left_norm2.size(); b++) {
      left[b] = cosine_score({left[b], left_norm2[b]});
    }
    int first = 0;
    int last = n_right - 1;
    if (in_.constraints.extra_trees) {
      std::vector<const Node*> all;
      for (const int32_t id : level) {
        all.push_back(&nodes[id]);
      }
      last = finder_.random_bin(all, level[0], c);
      first = std::max(last, 0);
    }
    return best_cut(right, left, c, bar, first, last);
  }

  // Category columns: category_split.h
  // The best set of a category column for all nodes of a level. Rows are counted only where they
  // may be too few.
  LevelSplit find_sets(const std::vector<Node>& nodes, const NodeIds& level, int c, double bar) {
    const Steps steps = finder_.level_steps(nodes, level, c);
    const LevelSplit best = score_sets(nodes, level, c, bar, steps, false);
    if (best.column < 0 || !finder_.counts_rows()) {
      return best;
    }
    const std::vector<int32_t> codes = Categories::set(steps, best.bin);
    for (const int32_t id : level) {
      const Sums l = sum_of(nodes[id], c, codes);
      if (l.h > 0 && l.h < nodes[id].sum.h && !finder_.count_bound_holds(l.h, nodes[id].sum.h)) {
        return score_sets(nodes, level, c, bar, steps, true);
      }
    }
    return best;
  }
  LevelSplit score_sets(const std::vector<Node>& nodes, const NodeIds& level, int c, double bar,
                        const Steps& steps, bool count_rows) {
    const bool cosine = finder_.ranker().cosine();
    const Penalty& p = finder_.penalty(c);
    std::vector<double> score(steps.size(), 0.0);
    std::vector<double> norm2(cosine ? steps.size() : 0, 0.0);
    std::vector<int64_t> room;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0 || n.sum.h == 0) {
        continue;
      }
      const ColumnHistogram bins = finder_.histogram(n, c);
      const ScoreRule rule = finder_.score_rule(id, c);
      const std::span<const int64_t> count =
          count_rows ? counts_.of(id, c, 0, room) : std::span<const int64_t>{};
      int64_t total = 0;
      int64_t rows = 0;
      for (const int64_t x : count) {
        total += x;
      }
      Sums l;
      for (size_t k = 0; k < steps.size(); k++) {
        if (steps[k].starts) {
          l = {};
          rows = 0;
        }
        l = l + bins.at(steps[k].code);
        rows += count_rows ? count[steps[k].code] : 0;
        const Sums r = n.sum - l;
        const bool empty = l.h == 0 || r.h == 0;
        if (!empty && (!admits(l, r, finder_.penalty()) ||
                       (count_rows && finder_.too_few_rows(rows, total)))) {
          score[k] = -INF;
        } else if (cosine) {
          const CosineParts both = empty ? cosine_parts(n.sum, finder_.penalty())
                                         : cosine_parts(l, p) + cosine_parts(r, p);
          score[k] = score[k] + both.dot;
          norm2[k] = norm2[k] + both.norm2;
        } else {
          score[k] = score[k] + (empty ? n.score : score_split(l, r, (int)k, rule));
        }
      }
    }
    for (size_t k = 0; k < norm2.size(); k++) {
      score[k] = cosine_score({score[k], norm2[k]});
    }
    LevelSplit best;
    best.score = bar;
    bool missing = false;
    for (int k = 0; k < (int)steps.size(); k++) {
      missing = (missing && !steps[k].starts) || steps[k].code == b_.n_bins[c];
      if (steps[k].is_candidate && score[k] > best.score) {
        best = {score[k], c, k, missing};
      }
    }
    return best;
  }
  Sums sum_of(const Node& n, int c, const std::vector<int32_t>& codes) const {
    Sums sum;
    if (n.n_rows > 0) {
      for (const int32_t code : codes) {
        sum = sum + finder_.histogram(n, c).at(code);
      }
    }
    return sum;
  }

  const GrowInput& in_;
  const Binned& b_ = in_.binned;
  const Limits& lim_ = in_.limits;
  const Kernels& k_ = kernels();
  SplitFinder& finder_;
  RowCounts& counts_;
  const HistogramBuilder& builder_;
  std::vector<int32_t> set_;
};

}  // namespace sapwood
