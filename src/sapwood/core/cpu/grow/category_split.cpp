// Sets: the best split of a category column, in a node or for a whole level (NUMERICS, categories).
// Enters: sums by code and the steps they give (category.h). Leaves: candidates, and the codes of those that won.
#include "cpu/grow/split_finder.h"

namespace sapwood {

// A draw for each column of a node or a level, where only one random candidate is looked at.
SplitFinder::Steps SplitFinder::steps(int32_t id, int c, const ColumnHistogram& bins, Sums total, int64_t count) const {
  const double rows = (double)count * power_of_two(-in_.weights.shift);
  const uint64_t random = in_.rules.extra ? draw(key(in_.seed, RANDOM_CUT, in_.tree, id), c) : 0;
  return categories_->steps(c, bins, total, rows, in_.rules.extra ? &random : nullptr);
}

// The steps of a level: those of its nodes' sums.
SplitFinder::Steps SplitFinder::level_steps(const std::vector<Node>& nodes, const std::vector<int32_t>& level,
                                            int c) const {
  std::vector<int64_t> pairs(2 * t_.used(c), 0);
  Sums total;
  int64_t count = 0;
  for (const int32_t id : level) {
    const Node& n = nodes[id];
    if (n.n_rows == 0) continue;
    const ColumnHistogram bins = bins_of(n, c);
    for (int code = 0; code < bins.n_codes(); code++) {
      const Sums s = bins.at(code);
      pairs[2 * code] += s.g, pairs[2 * code + 1] += s.h;
    }
    total = total + n.sum, count += n.count;
  }
  return steps(level[0], c, {pairs.data(), false, b_.n_bins[c], b_.has_missing[c] != 0}, total, count);
}

double SplitFinder::part(Sums l, Sums r, int32_t id, int c) const {
  const Penalty& p = categories_->penalty(c, b_.n_bins[c]);
  if (ranker_.cosine()) return SplitRanker::cosine_of(l, r, p);
  return guard_.ordered() ? guard_.part(l, r, id, p) : split_score(l, r, p);
}

// The best set of a category column, as a step; `count` as in careful_scan.
Candidate SplitFinder::scan_sets(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate best,
                                 std::span<const int64_t> count) const {
  const Steps all = steps(id, c, bins, n.sum, n.count);
  int64_t total = 0, rows = 0;
  for (const int64_t x : count) total += x;
  Sums l;
  bool missing = false;
  for (int k = 0; k < (int)all.size(); k++) {
    if (all[k].fresh) l = {}, rows = 0, missing = false;
    l = l + bins.at(all[k].code), rows += count.empty() ? 0 : count[all[k].code], missing |= all[k].code == bins.n;
    if (!all[k].ends || !admits(l, n.sum - l) || (!count.empty() && few(rows, total))) continue;
    const double s = part(l, n.sum - l, id, c);
    if (s > best.score) best = {s, c, k, missing, l};
  }
  return best;
}

// The best set of a category column for all nodes of a level.
SplitFinder::LevelSplit SplitFinder::find_level_sets(const std::vector<Node>& nodes, const std::vector<int32_t>& level,
                                                     int c, double bar) const {
  const Steps all = level_steps(nodes, level, c);
  LevelSplit best = score_sets(nodes, level, c, bar, all, false);
  if (best.column < 0 || !counts_rows_) return best;
  const std::vector<int32_t> codes = Categories::set(all, best.bin);
  for (const int32_t id : level) {
    const Sums l = sum_of(nodes[id], c, codes);
    if (l.h > 0 && l.h < nodes[id].sum.h && !count_bound_holds(l.h, nodes[id].sum.h))
      return score_sets(nodes, level, c, bar, all, true);
  }
  return best;
}

SplitFinder::LevelSplit SplitFinder::score_sets(const std::vector<Node>& nodes, const std::vector<int32_t>& level,
                                                int c, double bar, const Steps& all, bool count_rows) const {
  std::vector<double> score(all.size(), 0.0), square(ranker_.cosine() ? all.size() : 0, 0.0);
  const Penalty& p = categories_->penalty(c, b_.n_bins[c]);
  auto turn = [&](CosineParts a, size_t k) { score[k] = score[k] + a.along, square[k] = square[k] + a.square; };
  auto angle = [&](Sums l, Sums r) -> CosineParts {
    const CosineParts a = SplitRanker::angle(l, p), b = SplitRanker::angle(r, p);
    return {a.along + b.along, a.square + b.square};
  };
  std::vector<int64_t> count, left(all.size(), 0);
  int64_t missing = 0, whole = 0;
  for (const int32_t id : level) {
    const Node& n = nodes[id];
    if (n.n_rows == 0 || n.sum.h == 0) continue;
    const ColumnHistogram bins = bins_of(n, c);
    missing += bins.gone().h, whole += n.sum.h;
    int64_t total = 0, rows = 0;
    if (count_rows) count_codes(n, c, count);
    for (const int64_t x : count) total += x;
    Sums l;
    for (size_t k = 0; k < all.size(); k++) {
      if (all[k].fresh) l = {}, rows = 0;
      l = l + bins.at(all[k].code), rows += count_rows ? count[all[k].code] : 0;
      const Sums r = n.sum - l;
      const bool empty = l.h == 0 || r.h == 0;
      left[k] += l.h;
      if (!empty && (!admits(l, r) || (count_rows && few(rows, total)))) score[k] = -INF;
      else if (ranker_.cosine()) turn(empty ? SplitRanker::angle(n.sum, penalty_) : angle(l, r), k);
      else score[k] = score[k] + (empty ? n.score : part(l, r, id, c));
    }
  }
  for (size_t k = 0; k < square.size(); k++) score[k] = length({score[k], square[k]});
  LevelSplit best;
  best.score = bar;
  bool side = false;
  for (int k = 0; k < (int)all.size(); k++) {
    side = (side && !all[k].fresh) || all[k].code == b_.n_bins[c];
    if (all[k].ends && score[k] > best.score) best = {score[k], c, k, side};
  }
  if (best.column >= 0 && missing == 0) best.missing_left = left[best.bin] >= whole - left[best.bin];
  return best;
}

Sums SplitFinder::sum_of(const Node& n, int c, const std::vector<int32_t>& codes) const {
  Sums sum;
  if (n.n_rows > 0)
    for (const int32_t code : codes) sum = sum + t_.at(n.hist, c, code);
  return sum;
}

namespace {
std::vector<int32_t> without(int32_t missing, std::vector<int32_t> codes) {  // which is the last, if it is there
  if (!codes.empty() && codes.back() == missing) codes.pop_back();
  return codes;
}
}  // namespace

// A level takes its split.
void SplitFinder::take_set(std::vector<Node>& nodes, const std::vector<int32_t>& level, const LevelSplit& best) {
  const int c = best.column;
  const std::vector<int32_t> codes = Categories::set(level_steps(nodes, level, c), best.bin);
  for (const int32_t id : level) take(nodes[id], id, best, sum_of(nodes[id], c, codes));
  shared_set = without(b_.n_bins[c], codes);
}

// The codes that a node's best split sends left, if it is one of categories.
std::vector<int32_t> SplitFinder::set_of(const Node& n, int32_t id) const {
  const int c = n.best.column;
  return without(b_.n_bins[c], Categories::set(steps(id, c, bins_of(n, c), n.sum, n.count), n.best.bin));
}

}  // namespace sapwood
