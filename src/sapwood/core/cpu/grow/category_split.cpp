// The best split of a category column, in a node or for a whole level (NUMERICS, categories).
// Enters: sums by code and the steps they give (category_split.h). Leaves: candidates, and the codes of those that won.
#include "cpu/grow/category_split.h"

#include "cpu/grow/level_split.h"

namespace sapwood {

// With extra_trees a draw for each column of a node or a level picks the one candidate that is considered.
SplitFinder::Steps SplitFinder::steps(int32_t id, int c, const ColumnHistogram& bins, Sums total, int64_t count) const {
  const double rows = (double)count * power_of_two(-in_.weights.shift);
  const bool extra = in_.constraints.extra_trees;
  const uint64_t random = extra ? draw(key(in_.seed, RANDOM_CUT, in_.tree, id), c) : 0;
  return categories_->steps(c, bins, total, rows, extra ? &random : nullptr);
}

// The steps of a level: those of the sums over its nodes.
SplitFinder::Steps SplitFinder::level_steps(const std::vector<Node>& nodes, const NodeIds& level, int c) const {
  std::vector<int64_t> pairs(2 * (size_t)builder_.n_codes(c), 0);
  Sums total;
  int64_t count = 0;
  for (const int32_t id : level) {
    const Node& n = nodes[id];
    if (n.n_rows == 0) continue;
    const ColumnHistogram bins = histogram(n, c);
    for (int code = 0; code < bins.n_codes(); code++) {
      const Sums s = bins.at(code);
      pairs[2 * code] += s.g, pairs[2 * code + 1] += s.h;
    }
    total = total + n.sum, count += n.count;
  }
  return steps(level[0], c, {pairs.data(), false, b_.n_bins[c], b_.has_missing[c] != 0}, total, count);
}

// The best set of a category column, as a step. count: rows by code; empty: they are not counted
Candidate SplitFinder::scan_sets(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate best,
                                 std::span<const int64_t> count) const {
  const Steps all = steps(id, c, bins, n.sum, n.count);
  const ScoreRule rule = score_rule(id, c);
  int64_t total = 0, rows = 0;
  for (const int64_t x : count) total += x;
  Sums l;
  bool missing = false;
  for (int k = 0; k < (int)all.size(); k++) {
    if (all[k].starts) l = {}, rows = 0, missing = false;
    l = l + bins.at(all[k].code), rows += count.empty() ? 0 : count[all[k].code], missing |= all[k].code == bins.n;
    const Sums r = n.sum - l;
    if (!all[k].is_candidate || !admits(l, r, penalty_) || (!count.empty() && too_few_rows(rows, total))) continue;
    const double s = score_split(l, r, k, rule);
    if (s > best.score) best = {s, c, k, missing, l};
  }
  return best;
}

// The codes that a node's best split sends left, if it is one of categories; without the missing code.
std::vector<int32_t> SplitFinder::set_of(const Node& n, int32_t id) const {
  const int c = n.best.column;
  std::vector<int32_t> codes = Categories::set(steps(id, c, histogram(n, c), n.sum, n.count), n.best.bin);
  if (!codes.empty() && codes.back() == b_.n_bins[c]) codes.pop_back();
  return codes;
}

// The best set of a category column for all nodes of a level. Rows are counted only where they may be too few.
LevelSplit LevelSearch::find_sets(const std::vector<Node>& nodes, const NodeIds& level, int c, double bar) {
  const Steps steps = finder_.level_steps(nodes, level, c);
  const LevelSplit best = score_sets(nodes, level, c, bar, steps, false);
  if (best.column < 0 || !finder_.counts_rows()) return best;
  const std::vector<int32_t> codes = Categories::set(steps, best.bin);
  for (const int32_t id : level) {
    const Sums l = sum_of(nodes[id], c, codes);
    if (l.h > 0 && l.h < nodes[id].sum.h && !finder_.count_bound_holds(l.h, nodes[id].sum.h))
      return score_sets(nodes, level, c, bar, steps, true);
  }
  return best;
}

LevelSplit LevelSearch::score_sets(const std::vector<Node>& nodes, const NodeIds& level, int c, double bar,
                                   const Steps& steps, bool count_rows) {
  const bool cosine = finder_.ranker().cosine();
  const Penalty& p = finder_.penalty(c);
  std::vector<double> score(steps.size(), 0.0), norm2(cosine ? steps.size() : 0, 0.0);
  std::vector<int64_t> room;
  for (const int32_t id : level) {
    const Node& n = nodes[id];
    if (n.n_rows == 0 || n.sum.h == 0) continue;
    const ColumnHistogram bins = finder_.histogram(n, c);
    const ScoreRule rule = finder_.score_rule(id, c);
    const std::span<const int64_t> count = count_rows ? counts_.of(id, c, 0, room) : std::span<const int64_t>{};
    int64_t total = 0, rows = 0;
    for (const int64_t x : count) total += x;
    Sums l;
    for (size_t k = 0; k < steps.size(); k++) {
      if (steps[k].starts) l = {}, rows = 0;
      l = l + bins.at(steps[k].code), rows += count_rows ? count[steps[k].code] : 0;
      const Sums r = n.sum - l;
      const bool empty = l.h == 0 || r.h == 0;
      if (!empty && (!admits(l, r, finder_.penalty()) || (count_rows && finder_.too_few_rows(rows, total)))) {
        score[k] = -INF;
      } else if (cosine) {
        const CosineParts both =
            empty ? cosine_parts(n.sum, finder_.penalty()) : cosine_parts(l, p) + cosine_parts(r, p);
        score[k] = score[k] + both.dot, norm2[k] = norm2[k] + both.norm2;
      } else {
        score[k] = score[k] + (empty ? n.score : score_split(l, r, (int)k, rule));
      }
    }
  }
  for (size_t k = 0; k < norm2.size(); k++) score[k] = cosine_score({score[k], norm2[k]});
  LevelSplit best;
  best.score = bar;
  bool missing = false;
  for (int k = 0; k < (int)steps.size(); k++) {
    missing = (missing && !steps[k].starts) || steps[k].code == b_.n_bins[c];
    if (steps[k].is_candidate && score[k] > best.score) best = {score[k], c, k, missing};
  }
  return best;
}

Sums LevelSearch::sum_of(const Node& n, int c, const std::vector<int32_t>& codes) const {
  Sums sum;
  if (n.n_rows > 0)
    for (const int32_t code : codes) sum = sum + finder_.histogram(n, c).at(code);
  return sum;
}

}  // namespace sapwood
