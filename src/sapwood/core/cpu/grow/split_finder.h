// SplitFinder: the best split of a node, from its histogram (NUMERICS 5, 6).
#pragma once
#include <cmath>
#include <optional>

#include "cpu/grow/category_split.h"
#include "cpu/grow/node_constraints.h"
#include "cpu/grow/row_counts.h"
#include "cpu/grow/split_ranker.h"
#include "math/hash.h"

namespace sapwood {

// A fraction of the columns: those with the smallest draws, in order.
inline std::vector<int> sample_columns(const std::vector<int>& columns, double fraction,
                                       uint64_t k) {
  if (fraction >= 1.0) {
    return columns;
  }
  const size_t n = std::max<size_t>(1, (size_t)(fraction * (double)columns.size() + 0.5));
  if (n >= columns.size()) {
    return columns;
  }
  std::vector<std::pair<uint64_t, int>> order(columns.size());
  std::transform(columns.begin(), columns.end(), order.begin(), [k](int c) {
    return std::pair(draw(k, c), c);
  });
  std::nth_element(order.begin(), order.begin() + n, order.end());
  std::vector<int> kept(n);
  std::transform(order.begin(), order.begin() + n, kept.begin(), [](const auto& one) {
    return one.second;
  });
  std::sort(kept.begin(), kept.end());
  return kept;
}

class SplitFinder {
 public:
  using Steps = std::vector<Categories::Step>;

  SplitFinder(const GrowInput& in, const std::vector<int>& columns, const HistogramBuilder& builder,
              RowCounts& counts)
      : in_(in), builder_(builder), counts_(counts), columns_(columns), by_slot_(columns) {
    b_.layout.by_slot(by_slot_);
    const double gs = g_scale(q_.scale);
    const double hs = h_scale(q_.scale);
    penalty_.lambda = lim_.reg_lambda * hs;
    penalty_.alpha = lim_.reg_alpha * gs;
    penalty_.step = lim_.max_delta_step * gs / hs;
    penalty_.min_h = lim_.min_child_weight * hs;
    min_count_ = lim_.min_samples_leaf * power_of_two(in.weights.shift);
    counts_rows_ = lim_.min_samples_leaf > 1.0;
    if (counts_rows_ && !in.weights.given) {
      min_rows_ = 2.0 * min_count_;
    }
    if (counts_rows_ && q_.constant_hessian) {  // then the hessian counts rows
      penalty_.min_h = std::max(penalty_.min_h, min_count_ * q_.max_hessian_per_count);
      counts_rows_ = false;
    }
    if (b_.any_category) {
      categories_.emplace(lim_, in_.constraints, q_.scale, penalty_);
    }
    has_sparse_ = std::any_of(b_.default_code.begin(), b_.default_code.end(), [](int code) {
      return code >= 0;
    });
    if (has_sparse_) {
      find_runs();
    }
  }

  NodeConstraints& constraints() { return constraints_; }
  const SplitRanker& ranker() const { return ranker_; }
  // besides hessians
  bool counts_rows() const { return counts_rows_; }
  // of a node
  bool depends_on_id() const { return samples_columns() || constrained_ || ranker_.adjusts(); }
  double gain_scale() const { return gain_scale_; }  // what a unit of scores is worth
  double hessian_scale() const { return h_scale(q_.scale); }
  const Penalty& penalty() const { return penalty_; }
  const Penalty& penalty(int c) const {
    return b_.is_category[c] ? categories_->penalty(c, b_.n_bins[c]) : penalty_;
  }
  ScoreRule score_rule(int32_t id, int c) const {  // of a column's candidates in a node
    ScoreRule rule{penalty(c), ranker_.cosine()};
    if (constraints_.monotone()) {
      constraints_.bind(id, c, rule);
    }
    return rule;
  }

  bool can_split(const Node& n) const {  // a quick test; the search decides
    return (double)n.n_rows >= min_rows_ && (double)n.sum.h >= 2.0 * penalty_.min_h && n.sum.h >= 2;
  }
  double score(Sums s, int32_t id) const {  // of a node
    if (s.h <= 0) {
      return 0.0;
    }
    if (ranker_.cosine()) {
      return cosine_score(cosine_parts(s, penalty_));
    }
    return constraints_.monotone() ? constraints_.score(s, id) : node_score(s, penalty_);
  }
  double clip_to_bounds(double value, int32_t id) const {  // of a leaf
    if (!constraints_.monotone()) {
      return value;
    }
    const double real = h_scale(q_.scale) / g_scale(q_.scale);
    const double low = constraints_[id].low * real;
    const double high = constraints_[id].high * real;
    return value < low ? low : value > high ? high : value;
  }
  // to the children of a node that was just split
  void inherit(const Node& n, int32_t id, const uint64_t* right) {
    ranker_.inherit(id, n.left, n.best.column);
    if (constrained_) {
      constraints_.inherit(n, id, right);
    }
  }

  // What a candidate of this node must beat, and the columns that it may use.
  void begin_search(Node& n, int32_t id) {
    n.best.score = must_exceed(n.score);
    choose_columns(id, n.depth);
  }
  // Turns the best candidate into a gain.
  void end_search(Node& n, int32_t id) const {
    if (n.best.column < 0) {
      return;
    }
    const bool forced = n.best.score == INF;
    if (forced || ranker_.adjusts()) {
      n.best.score = score_of_best(n, id);
    }
    n.gain = gain(n);
    if (!forced && !(n.gain > lim_.min_split_gain)) {
      n.gain = 0;  // not worth it
    }
    n.rank = forced ? INF : n.gain;
  }
  double score_of_best(const Node& n, int32_t id) const {
    return score_split(n.best.left, n.sum - n.best.left, n.best.bin, score_rule(id, n.best.column));
  }
  double gain(const Node& n) const {  // how far the loss falls, whatever the split was chosen by
    if (!ranker_.cosine()) {
      return 0.5 * (n.best.score - n.score) * gain_scale_;
    }
    return 0.5 *
           (split_score(n.best.left, n.sum - n.best.left, penalty(n.best.column)) -
            node_score(n.sum, penalty_)) *
           gain_scale_;
  }

  void choose_columns(int32_t id, int depth) {
    if (!samples_columns()) {
      return;
    }
    if ((int)allowed_.size() <= id) {
      allowed_.resize(id + 1);
    }
    const auto level = sample_columns(columns_, lim_.colsample_bylevel,
                                      key(in_.seed, LEVEL_COLUMNS, in_.tree, depth));
    allowed_[id] = sample_columns(constraints_.allowed_columns(level, id), lim_.colsample_bynode,
                                  key(in_.seed, NODE_COLUMNS, in_.tree, id));
    b_.layout.by_slot(allowed_[id]);
  }
  const std::vector<int>& allowed_columns(int32_t id) const {
    return samples_columns() ? allowed_[id] : by_slot_;
  }

  // Before a search of these nodes: takes what cannot be taken inside it.
  void prepare_counts(const NodeIds& ids) {
    if (counts_rows_) {
      counts_.prepare(ids);
    }
  }

  ColumnHistogram histogram(const Node& n, int c) const {
    return builder_.column_histogram(n.hist, c);
  }

  // The columns of slots first .. last - 1; the slots before `end` belong to this worker.
  void scan_slots(const Node& n, int32_t id, int first, int last, int end, Candidate& best) {
    if (!can_split(n)) {
      return;
    }
    const auto& columns = allowed_columns(id);
    auto slot = [&](int c) {
      return b_.layout.members[c].slot;
    };
    auto c = std::lower_bound(columns.begin(), columns.end(), first, [&](int c, int s) {
      return slot(c) < s;
    });
    if (has_sparse_) {
      return scan_sparse(n, id, columns, c - columns.begin(), last, end, best);
    }
    for (; c != columns.end() && slot(*c) < last; c++) {
      scan_one(n, id, *c, end, best);
    }
  }

  // The best split of one column, if it beats `best`; of equals the lower column wins.
  // count_rows(room) -> rows by bin, which it may put into `room`; called only where they decide
  template <class CountRows>
  void scan_column(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate& best,
                   CountRows&& count_rows) const {
    const Candidate first =
        ranker_.adjusts() ? Candidate{must_exceed(n.score), -1, -1, false, {}} : best;
    Candidate found = first;
    if (!ranker_.adjusts() && c < best.column) {
      found.score = std::nextafter(best.score, -INF);
    }
    const double bar = found.score;
    if (b_.is_category[c]) {
      found = scan_sets(n, id, c, bins, found, {});
    } else if (constrained_ || ranker_.cosine()) {
      found = scan_constrained(n, id, c, bins, found, {});
    } else {
      k_.scan_column(bins.sums, bins.packed, 0, bins.n, bins.has_missing, n.sum, penalty_, c,
                     found);
    }
    if (found.column != c) {
      return;
    }
    if (counts_rows_ && !count_bound_holds(found.left.h, n.sum.h)) {
      std::vector<int64_t> room;
      const std::span<const int64_t> count = count_rows(room);
      found = first;
      found.score = bar;
      if (b_.is_category[c]) {
        found = scan_sets(n, id, c, bins, found, count);
      } else if (constrained_ || ranker_.cosine() || bins.missing().h > 0) {
        found = scan_constrained(n, id, c, bins, found, count);
      } else {
        scan_between(n, c, bins, count, found);
      }
      if (found.column != c) {
        return;
      }
    }
    // the node saw none
    if (bins.missing().h == 0) {
      found.missing_left = found.left.h >= n.sum.h - found.left.h;
    }
    if (ranker_.adjusts() && found.score != INF) {
      found.score = ranker_.adjusted_score(found.score, n.score, id, c);
      if (found.score == -INF || !better(found, best)) {
        return;
      }
    }
    best = found;
  }

  // count >= H / (largest hessian of one row): where this holds, rows need not be counted.
  bool count_bound_holds(int64_t left, int64_t total) const {
    const double need = min_count_ * q_.max_hessian_per_count;
    return (double)left >= need && (double)(total - left) >= need;
  }
  bool too_few_rows(int64_t left, int64_t total) const {  // on a side
    return (double)left < min_count_ || (double)(total - left) < min_count_;
  }

  // extra_trees: a random cut between bins that hold rows of these nodes, or of values against
  // missing ones; -1: none.
  int random_bin(const std::vector<const Node*>& nodes, int32_t id, int c) const {
    const int n_bins = b_.n_bins[c];
    int first = n_bins;
    int last = -1;
    int missing = 0;
    for (const Node* n : nodes) {
      for (int b = 0; b < n_bins + b_.has_missing[c] && n->n_rows > 0; b++) {
        if (histogram(*n, c).at(b).h > 0) {
          if (b == n_bins) {
            missing = 1;
          } else {
            first = std::min(first, b);
            last = std::max(last, b);
          }
        }
      }
    }
    const int cuts = std::max(last - first, 0);
    const int among = last < 0 ? 0 : cuts + missing;
    if (among == 0) {
      return -1;
    }
    const uint64_t u = draw(key(in_.seed, RANDOM_CUT, in_.tree, id), c);
    const int k = (int)((unsigned __int128)u * among >> 64);
    return k < cuts ? first + k : n_bins - 1;
  }

  // Category columns: category_split.h
  // With extra_trees a draw for each column of a node or a level picks the one candidate that is
  // considered.
  Steps steps(int32_t id, int c, const ColumnHistogram& bins, Sums total, int64_t count) const {
    const double rows = (double)count * power_of_two(-in_.weights.shift);
    const bool extra = in_.constraints.extra_trees;
    const uint64_t random = extra ? draw(key(in_.seed, RANDOM_CUT, in_.tree, id), c) : 0;
    return categories_->steps(c, bins, total, rows, extra ? &random : nullptr);
  }
  // The steps of a level: those of the sums over its nodes.
  Steps level_steps(const std::vector<Node>& nodes, const NodeIds& level, int c) const {
    std::vector<int64_t> pairs(2 * (size_t)builder_.n_codes(c), 0);
    Sums total;
    int64_t count = 0;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) {
        continue;
      }
      const ColumnHistogram bins = histogram(n, c);
      for (int code = 0; code < bins.n_codes(); code++) {
        const Sums s = bins.at(code);
        pairs[2 * code] += s.g;
        pairs[2 * code + 1] += s.h;
      }
      total = total + n.sum;
      count += n.count;
    }
    return steps(level[0], c, {pairs.data(), false, b_.n_bins[c], b_.has_missing[c] != 0}, total,
                 count);
  }
  // The codes that a node's best split sends left, if it is one of categories; without the missing
  // code.
  std::vector<int32_t> set_of(const Node& n, int32_t id) const {
    const int c = n.best.column;
    std::vector<int32_t> codes =
        Categories::set(steps(id, c, histogram(n, c), n.sum, n.count), n.best.bin);
    if (!codes.empty() && codes.back() == b_.n_bins[c]) {
      codes.pop_back();
    }
    return codes;
  }

 private:
  bool samples_columns() const {  // levels or nodes have columns of their own
    return lim_.colsample_bylevel < 1.0 || lim_.colsample_bynode < 1.0 || constraints_.grouped();
  }

  void scan_one(const Node& n, int32_t id, int c, int end, Candidate& best) {
    scan_column(n, id, c, histogram(n, c), best, [&](std::vector<int64_t>& room) {
      return counts_.of(id, c, end, room);
    });
  }

  // The same where some columns are sparse: those that cannot win are skipped, singly and in runs.
  void scan_sparse(const Node& n, int32_t id, const std::vector<int>& columns, size_t k, int last,
                   int end, Candidate& best) {
    while (k < columns.size() && b_.layout.members[columns[k]].slot < last) {
      const int c = columns[k];
      const int run = samples_columns() || runs_.empty() ? 0 : runs_[k];
      if (run > 1) {
        for (uint64_t may = k_.may_split(builder_.column(n.hist, c), n.hist.packed, run, n.sum,
                                         penalty_, best.score);
             may != 0; may &= may - 1) {
          scan_one(n, id, columns[k + __builtin_ctzll(may)], end, best);
        }
      } else if (!cannot_split(n, c)) {
        scan_one(n, id, c, end, best);
      }
      k += std::max(run, 1);
    }
  }

  // A sparse column whose codes other than the default have too little hessian: one side of every
  // cut has no more.
  bool cannot_split(const Node& n, int c) const {
    const int default_code = b_.default_code[c];
    if (default_code < 0) {
      return false;
    }
    const int64_t others = n.sum.h - histogram(n, c).at(default_code).h;
    return others < 1 || (double)others < penalty_.min_h;
  }

  // By column in the order of slots: how many from there on have two bins and their sums side by
  // side, up to 64.
  void find_runs() {
    if (!is_plain(penalty_) || constrained_ || ranker_.adjusts() || ranker_.cosine()) {
      return;
    }
    runs_.assign(by_slot_.size(), 0);
    for (size_t k = by_slot_.size(); k-- > 0;) {
      const int c = by_slot_[k];
      if (b_.default_code[c] < 0 || b_.n_bins[c] != 2 || b_.has_missing[c]) {
        continue;
      }
      const bool joins = k + 1 < by_slot_.size() && runs_[k + 1] > 0 && runs_[k + 1] < 64 &&
                         b_.layout.members[by_slot_[k + 1]].slot == b_.layout.members[c].slot &&
                         b_.layout.column_at[by_slot_[k + 1]] == b_.layout.column_at[c] + 2;
      runs_[k] = joins ? runs_[k + 1] + 1 : 1;
    }
    if (std::find(runs_.begin(), runs_.end(), 2) == runs_.end()) {
      runs_.clear();
    }
  }

  // Without constraints and missing values the cuts with enough rows on both sides are neighbours.
  void scan_between(const Node& n, int c, const ColumnHistogram& bins,
                    std::span<const int64_t> count, Candidate& best) const {
    int first = 0;
    int last = bins.n - 1;
    for (int64_t rows = count[0]; (double)rows < min_count_ && first < last; rows += count[first]) {
      first++;
    }
    for (int64_t rows = count[last]; (double)rows < min_count_ && first < last;
         rows += count[last]) {
      last--;
    }
    if (first < last) {
      k_.scan_column(bins.sums, bins.packed, first, last + 1, false, n.sum, penalty_, c, best);
    }
  }

  // The scan of one column under constraints. count: rows by bin; empty: they are not counted
  Candidate scan_constrained(const Node& n, int32_t id, int c, const ColumnHistogram& bins,
                             Candidate best, std::span<const int64_t> count) const {
    const ScoreRule rule = score_rule(id, c);
    const Forced* forced = constrained_ ? constraints_.forced(id) : nullptr;
    // it need not be worth it, and beats all others
    if (forced != nullptr && forced->column == c) {
      Candidate found =
          scan_bins(n, c, bins, rule, {-INF, -1, -1, false, {}}, forced->bin, forced->bin, count);
      found.score = INF;
      if (found.column == c) {
        return found;
      }
    }
    int first = 0;
    int last = bins.n - 1;
    if (in_.constraints.extra_trees) {
      first = last = random_bin({&n}, id, c);
    }
    return scan_bins(n, c, bins, rule, best, first, last, count);
  }

  Candidate scan_bins(const Node& n, int c, const ColumnHistogram& bins, const ScoreRule& rule,
                      Candidate best, int first, int last, std::span<const int64_t> count) const {
    int64_t total = 0;
    int64_t rows_left = 0;
    for (const int64_t x : count) {
      total += x;
    }
    const Sums missing = bins.missing();
    int next = 0;  // the rows of the bins before it are in rows_left
    auto consider = [&](Sums l, int b, bool missing_left) {
      const Sums r = n.sum - l;
      for (; !count.empty() && next <= std::min(b, bins.n - 1); next++) {
        rows_left += count[next];
      }
      if (!admits(l, r, penalty_)) {
        return;
      }
      if (!count.empty() && too_few_rows(rows_left + (missing_left ? count[bins.n] : 0), total)) {
        return;
      }
      const double s = score_split(l, r, bins.code(b), rule);
      if (s > best.score) {
        best = {s, c, b, missing_left, l};
      }
    };
    for_each_candidate(
        first, last, bins.n, missing,
        [&](int b) {
          return bins.at(b);
        },
        consider);
    // Exact trees: the column may have values above the node's last one; only a cut beyond them has
    // no direction.
    if (bins.codes != nullptr && missing.h > 0 && last == bins.n - 1) {
      consider(n.sum - missing, bins.n, false);
    }
    return best;
  }

  // The best set of a category column, as a step. count: rows by code; empty: they are not counted
  Candidate scan_sets(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate best,
                      std::span<const int64_t> count) const {
    const Steps all = steps(id, c, bins, n.sum, n.count);
    const ScoreRule rule = score_rule(id, c);
    int64_t total = 0;
    int64_t rows = 0;
    for (const int64_t x : count) {
      total += x;
    }
    Sums l;
    bool missing = false;
    for (int k = 0; k < (int)all.size(); k++) {
      if (all[k].starts) {
        l = {};
        rows = 0;
        missing = false;
      }
      l = l + bins.at(all[k].code);
      rows += count.empty() ? 0 : count[all[k].code];
      missing |= all[k].code == bins.n;
      const Sums r = n.sum - l;
      if (!all[k].is_candidate || !admits(l, r, penalty_) ||
          (!count.empty() && too_few_rows(rows, total))) {
        continue;
      }
      const double s = score_split(l, r, k, rule);
      if (s > best.score) {
        best = {s, c, k, missing, l};
      }
    }
    return best;
  }

  const GrowInput& in_;
  const Binned& b_ = in_.binned;
  const Gradients& q_ = in_.gradients;
  const Limits& lim_ = in_.limits;
  const Kernels& k_ = kernels();
  const HistogramBuilder& builder_;
  RowCounts& counts_;
  const std::vector<int>& columns_;
  std::vector<int> by_slot_;  // the columns in the order of their slots
  bool has_sparse_ = false;   // some columns of the table are sparse
  std::vector<int> runs_;     // by place in by_slot_: find_runs
  Penalty penalty_;
  const double gain_scale_ = h_scale(q_.scale) / (g_scale(q_.scale) * g_scale(q_.scale));
  double min_count_ = 1;
  double min_rows_ = 2;  // of a node that can be split
  bool counts_rows_ = false;
  NodeConstraints constraints_{in_.constraints, b_, penalty_};
  SplitRanker ranker_{in_.preference, in_.noise_scale, gain_scale_, in_.seed, in_.tree};
  const bool constrained_ = in_.constraints.any();
  // by node, where levels or nodes have columns of their own
  std::vector<std::vector<int>> allowed_;
  std::optional<Categories> categories_;
};

}  // namespace sapwood
