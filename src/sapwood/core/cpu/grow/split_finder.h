// SplitFinder: the best split of a node, or of a whole level, from its histogram (NUMERICS 5, 6).
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "cpu/grow/category_split.h"
#include "cpu/grow/node_constraints.h"
#include "cpu/grow/row_counts.h"
#include "cpu/grow/split_ranker.h"
#include "math/gain.h"
#include "math/hash.h"

namespace sapwood {

// The columns with the smallest draws, in order.
inline std::vector<int> fewer(const std::vector<int>& columns, double fraction, uint64_t k) {
  if (fraction >= 1.0) return columns;
  const size_t n = std::max<size_t>(1, (size_t)(fraction * (double)columns.size() + 0.5));
  std::vector<std::pair<uint64_t, int>> order;
  for (const int c : columns) order.push_back({draw(k, c), c});
  std::sort(order.begin(), order.end());
  order.resize(std::min(n, order.size()));
  std::vector<int> kept;
  for (const auto& [_, c] : order) kept.push_back(c);
  std::sort(kept.begin(), kept.end());
  return kept;
}

class SplitFinder {
 public:
  struct LevelSplit {  // one split for all nodes of a level: the sum of their scores decides
    double score = 0;
    int column = -1, bin = -1;
    bool missing_left = false;
    bool beats(const LevelSplit& o) const {
      if (column < 0 || o.column < 0) return column >= 0;
      return score > o.score || (score == o.score && column < o.column);
    }
  };
  std::vector<int32_t> shared_set;  // the codes that the last one sends left, if it is one of categories

  SplitFinder(const GrowInput& in, const std::vector<int>& columns, const HistogramBuilder& tally, RowCounts& counts)
      : in_(in),
        b_(in.binned),
        q_(in.gradients),
        lim_(in.limits),
        k_(kernels()),
        t_(tally),
        counts_(counts),
        columns_(columns),
        by_slot_(columns),
        guard_(in.rules, in.binned, penalty_),
        ranker_(in.taste, in.deviation, h_scale(q_.scale) / (g_scale(q_.scale) * g_scale(q_.scale)), in.seed, in.tree),
        constrained_(in.rules.any()) {
    b_.layout.by_slot(by_slot_);
    const double gs = g_scale(q_.scale), hs = h_scale(q_.scale);
    penalty_.lambda = lim_.reg_lambda * hs, penalty_.alpha = lim_.reg_alpha * gs,
    penalty_.step = lim_.max_delta_step * gs / hs;
    penalty_.min_h = lim_.min_child_weight * hs;
    unit_ = hs / (gs * gs);
    min_count_ = lim_.min_samples_leaf * power_of_two(in.weights.shift);
    counts_rows_ = lim_.min_samples_leaf > 1.0;
    if (counts_rows_ && !in.weights.given) min_rows_ = 2.0 * min_count_;
    if (counts_rows_ && q_.constant_hessian) {  // then the hessian counts
      penalty_.min_h = std::max(penalty_.min_h, min_count_ * q_.max_hessian_per_count);
      counts_rows_ = false;
    }
    if (b_.any_category) categories_.emplace(lim_, in_.rules, q_.scale, penalty_);
    has_sparse_ = std::any_of(b_.default_code.begin(), b_.default_code.end(), [](int code) { return code >= 0; });
    if (has_sparse_) find_runs();
  }

  bool can_split(const Node& n) const {  // quick to refuse; the search decides
    return (double)n.n_rows >= min_rows_ && (double)n.sum.h >= 2.0 * penalty_.min_h && n.sum.h >= 2;
  }
  double score(Sums s, int32_t id) const {
    if (s.h <= 0) return 0.0;
    if (ranker_.cosine()) return SplitRanker::cosine_of(s, penalty_);
    return guard_.ordered() ? guard_.score(s, id) : node_score(s, penalty_);
  }
  double split(Sums l, Sums r, int32_t id, int c, int b) const {
    if (ranker_.cosine()) return SplitRanker::cosine_of(l, r, penalty_);
    return guard_.ordered() ? guard_.split(l, r, id, c, b) : split_score(l, r, penalty_);
  }

  // What a candidate must beat, and the columns a node may use.
  void open(Node& n, int32_t id) {
    n.best.score = worth(n.score);
    choose_columns(id, n.depth);
  }

  void inherit(const Node& n, int32_t id, const uint64_t* right) {
    ranker_.inherit(id, n.left, n.best.column);
    if (constrained_) guard_.inherit(n, id, right);
  }
  std::vector<int32_t> tighten(const std::vector<Node>& nodes, int32_t id) { return guard_.tighten(nodes, id); }
  void settle(const std::vector<int32_t>& leaves) {
    if (guard_.ordered()) guard_.settle(leaves);
  }
  void fill(const std::vector<int32_t>& leaves, std::vector<double>& value) const { guard_.fill(leaves, value); }
  double within(double value, int32_t id) const {  // a leaf's value, cut to its bounds
    if (!guard_.ordered()) return value;
    const double real = h_scale(q_.scale) / g_scale(q_.scale), low = guard_[id].low * real,
                 high = guard_[id].high * real;
    return value < low ? low : value > high ? high : value;
  }

  void choose_columns(int32_t id, int depth) {
    if (!own_columns()) return;
    if ((int)allowed_.size() <= id) allowed_.resize(id + 1);
    const auto level = fewer(columns_, lim_.colsample_bylevel, key(in_.seed, LEVEL_COLUMNS, in_.tree, depth));
    allowed_[id] = fewer(guard_.company(level, id), lim_.colsample_bynode, key(in_.seed, NODE_COLUMNS, in_.tree, id));
    b_.layout.by_slot(allowed_[id]);
  }
  const std::vector<int>& allowed(int32_t id) const { return own_columns() ? allowed_[id] : by_slot_; }
  bool own_columns() const {  // of a level or a node
    return lim_.colsample_bylevel < 1.0 || lim_.colsample_bynode < 1.0 || guard_.grouped();
  }

  ColumnHistogram bins_of(const Node& n, int c) const {
    return {t_.column(n.hist, c), n.hist.packed, b_.n_bins[c], b_.has_missing[c] != 0};
  }

  // The columns of slots first .. last - 1; up to `end` they are all this worker's.
  void scan_slots(const Node& n, int32_t id, int first, int last, int end, Candidate& best) {
    if (!can_split(n)) return;
    const auto& columns = allowed(id);
    auto slot = [&](int c) { return b_.layout.members[c].slot; };
    auto c = std::lower_bound(columns.begin(), columns.end(), first, [&](int c, int s) { return slot(c) < s; });
    if (has_sparse_) return scan_sparse(n, id, columns, c - columns.begin(), last, end, best);
    for (; c != columns.end() && slot(*c) < last; c++) scan_one(n, id, *c, end, best);
  }

  void scan_one(const Node& n, int32_t id, int c, int end, Candidate& best) {
    scan_column(n, id, c, bins_of(n, c), best, [&](std::vector<int64_t>& room) -> std::span<const int64_t> {
      if (!in_.weights.given) return counts_.column(id, c, end);
      count_codes(n, c, room);
      return room;
    });
  }

  // The same where some columns are thin: they are passed over, singly and in runs, where they cannot win.
  void scan_sparse(const Node& n, int32_t id, const std::vector<int>& columns, size_t k, int last, int end,
                   Candidate& best) {
    auto scan = [&](int c) { scan_one(n, id, c, end, best); };
    while (k < columns.size() && b_.layout.members[columns[k]].slot < last) {
      const int c = columns[k], run = own_columns() || runs_.empty() ? 0 : runs_[k];
      if (run > 1)
        for (uint64_t may = k_.may_split(t_.column(n.hist, c), n.hist.packed, run, n.sum, penalty_, best.score);
             may != 0; may &= may - 1)
          scan(columns[k + __builtin_ctzll(may)]);
      else if (!hopeless(n, c)) scan(c);
      k += std::max(run, 1);
    }
  }

  // Of a thin column: one side of every cut lies in what has not the usual code, and that is too little.
  bool hopeless(const Node& n, int c) const {
    const int default_code = b_.default_code[c];
    if (default_code < 0) return false;
    const int64_t others = n.sum.h - t_.at(n.hist, c, default_code).h;
    return others < 1 || (double)others < penalty_.min_h;
  }

  // Of columns in the order of slots: how many from each on have two bins and their sums side by side, up to 64.
  void find_runs() {
    if (!is_plain(penalty_) || constrained_ || ranker_.compares() || ranker_.cosine()) return;
    runs_.assign(by_slot_.size(), 0);
    for (size_t k = by_slot_.size(); k-- > 0;) {
      const int c = by_slot_[k];
      if (b_.default_code[c] < 0 || b_.n_bins[c] != 2 || b_.has_missing[c]) continue;
      const bool joins = k + 1 < by_slot_.size() && runs_[k + 1] > 0 && runs_[k + 1] < 64 &&
                         b_.layout.members[by_slot_[k + 1]].slot == b_.layout.members[c].slot &&
                         b_.layout.column_at[by_slot_[k + 1]] == b_.layout.column_at[c] + 2;
      runs_[k] = joins ? runs_[k + 1] + 1 : 1;
    }
    if (std::find(runs_.begin(), runs_.end(), 2) == runs_.end()) runs_.clear();
  }

  // The best split of one column, if it beats `best`; of equals the lower column does. `count_rows` gives counts by bin, where they are
  // asked for, which may be put into its argument.
  template <class CountRows>
  void scan_column(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate& best,
                   CountRows&& count_rows) const {
    const Candidate first = ranker_.compares() ? Candidate{worth(n.score), -1, -1, false, {}} : best;
    Candidate found = first;
    if (!ranker_.compares() && c < best.column) found.score = std::nextafter(best.score, -INF);
    const double bar = found.score;
    if (b_.is_category[c]) found = scan_sets(n, id, c, bins, found, {});
    else if (constrained_ || ranker_.cosine()) found = scan_constrained(n, id, c, bins, found, {});
    else k_.scan_column(bins.sums, bins.packed, 0, bins.n, bins.missing, n.sum, penalty_, c, found);
    if (found.column != c) return;
    if (counts_rows_ && !count_bound_holds(found.left.h, n.sum.h)) {
      std::vector<int64_t> room;
      const std::span<const int64_t> count = count_rows(room);
      found = first, found.score = bar;
      if (b_.is_category[c]) found = scan_sets(n, id, c, bins, found, count);
      else if (constrained_ || ranker_.cosine() || bins.gone().h > 0)
        found = scan_constrained(n, id, c, bins, found, count);
      else scan_between(n, c, bins, count, found);
      if (found.column != c) return;
    }
    if (bins.gone().h == 0) found.missing_left = found.left.h >= n.sum.h - found.left.h;  // the node saw none
    if (ranker_.compares() && found.score != INF) {
      found.score = ranker_.favour(found.score, n.score, id, c);
      if (found.score == -INF || !better(found, best)) return;
    }
    best = found;
  }

  bool counted() const { return counts_rows_; }  // rows are, besides hessians
  const Penalty& penalty() const { return penalty_; }
  double unit() const { return unit_; }  // of scores
  double h_unit() const { return h_scale(q_.scale); }

  // count >= H / (largest hessian of one row): that settles most candidates, and the rest are counted.
  bool count_bound_holds(int64_t left, int64_t total) const {
    const double need = min_count_ * q_.max_hessian_per_count;
    return (double)left >= need && (double)(total - left) >= need;
  }

  void count_codes(const Node& n, int c, std::vector<int64_t>& count) const {
    const int slot = b_.layout.members[c].slot;
    if (b_.layout.slots[slot].lists()) return count_listed(n, c, count);
    std::vector<int64_t> by_slot(t_.codes(slot), 0);
    t_.each_row(n, [&](const Shard& shard, int64_t row) {
      by_slot[b_.slot_code(shard, slot, row)] += in_.weights.of(shard.first + row);
    });
    count.assign(t_.used(c), 0);
    b_.layout.each_code(c, [&](uint32_t k, uint32_t code) { count[code] += by_slot[k]; });
  }

  void count_listed(const Node& n, int c, std::vector<int64_t>& count) const {
    count.assign(t_.used(c), 0);
    t_.each_row(n, [&](const Shard& shard, int64_t row) {
      count[b_.split_code(shard, c, row)] += in_.weights.of(shard.first + row);
    });
  }

  // Without rules and missing values the cuts with enough rows on both sides are neighbours.
  void scan_between(const Node& n, int c, const ColumnHistogram& bins, std::span<const int64_t> count,
                    Candidate& best) const {
    int first = 0, last = bins.n - 1;
    for (int64_t rows = count[0]; (double)rows < min_count_ && first < last; rows += count[first]) first++;
    for (int64_t rows = count[last]; (double)rows < min_count_ && first < last; rows += count[last]) last--;
    if (first < last) k_.scan_column(bins.sums, bins.packed, first, last + 1, false, n.sum, penalty_, c, best);
  }

  // The scan of one column that knows the rules and, where they are counted, the rows of each bin.
  Candidate scan_constrained(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate best,
                             std::span<const int64_t> count) const {
    const Forced* forced = constrained_ ? guard_.forced(id) : nullptr;
    if (forced != nullptr && forced->column == c) {  // it need not be worth it, and beats all others
      Candidate found = scan_bins(n, id, c, bins, {-INF, -1, -1, false, {}}, forced->bin, forced->bin, count);
      found.score = INF;
      if (found.column == c) return found;
    }
    int first = 0, last = bins.n - 1;
    if (in_.rules.extra) first = last = random_bin({&n}, id, c);
    return scan_bins(n, id, c, bins, best, first, last, count);
  }

  Candidate scan_bins(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate best, int first,
                      int last, std::span<const int64_t> count) const {
    int64_t total = 0, rows_left = 0;
    for (const int64_t x : count) total += x;
    const int n_bins = bins.n;
    const Sums missing = bins.gone();
    auto consider = [&](Sums l, int64_t rows, int b, bool side) {
      const Sums r = n.sum - l;
      if (!admits(l, r)) return;
      if (!count.empty() && few(rows, total)) return;
      const double s = split(l, r, id, c, bins.code(b));
      if (s > best.score) best = {s, c, b, side, l};
    };
    Sums l;
    for (int b = 0; b <= last; b++) {
      l = l + bins.at(b), rows_left += count.empty() ? 0 : count[b];
      if (b < first) continue;
      if (missing.h > 0 && b < n_bins - 1)
        consider(l + missing, rows_left + (count.empty() ? 0 : count[n_bins]), b, true);
      if (missing.h > 0 || b < n_bins - 1) consider(l, rows_left, b, false);
    }
    // Above the last value of a node of an exact tree there may be more of the column: only beyond them no order is asked.
    if (bins.codes != nullptr && missing.h > 0 && last == n_bins - 1) consider(l, rows_left, n_bins, false);
    return best;
  }

  // Category columns: sets.cpp.
  using Steps = std::vector<Categories::Step>;
  Steps steps(int32_t id, int c, const ColumnHistogram& bins, Sums total, int64_t count) const;
  Steps level_steps(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c) const;
  Candidate scan_sets(const Node& n, int32_t id, int c, const ColumnHistogram& bins, Candidate best,
                      std::span<const int64_t> count) const;
  LevelSplit find_level_sets(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c,
                             double bar) const;
  LevelSplit score_sets(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c, double bar,
                        const Steps& all, bool count_rows) const;
  void take_set(std::vector<Node>& nodes, const std::vector<int32_t>& level, const LevelSplit& best);
  std::vector<int32_t> set_of(const Node& n, int32_t id) const;
  Sums sum_of(const Node& n, int c, const std::vector<int32_t>& codes) const;
  double part(Sums l, Sums r, int32_t id, int c) const;

  bool few(int64_t left, int64_t total) const {  // rows on a side
    return (double)left < min_count_ || (double)(total - left) < min_count_;
  }
  bool admits(Sums l, Sums r) const {
    return l.h > 0 && r.h > 0 && (double)l.h >= penalty_.min_h && (double)r.h >= penalty_.min_h;
  }

  // One of the cuts between bins that hold rows of these nodes, or of values against missing ones; -1: there is none.
  int random_bin(const std::vector<const Node*>& nodes, int32_t id, int c) const {
    const int n_bins = b_.n_bins[c];
    int first = n_bins, last = -1, missing = 0;
    for (const Node* n : nodes)
      for (int b = 0; b < n_bins + b_.has_missing[c] && n->n_rows > 0; b++)
        if (t_.at(n->hist, c, b).h > 0) {
          if (b == n_bins) missing = 1;
          else first = std::min(first, b), last = std::max(last, b);
        }
    const int cuts = std::max(last - first, 0), among = last < 0 ? 0 : cuts + missing;
    if (among == 0) return -1;
    const uint64_t u = draw(key(in_.seed, RANDOM_CUT, in_.tree, id), c);
    const int k = (int)((unsigned __int128)u * among >> 64);
    return k < cuts ? first + k : n_bins - 1;
  }

  // Turns the best candidate into a gain.
  void close(Node& n, int32_t id) {
    if (n.best.column < 0) return;
    const bool forced = n.best.score == INF;
    if (forced || ranker_.compares()) n.best.score = score_of(n, id);
    n.gain = gain(n);
    if (!forced && !(n.gain > lim_.min_split_gain)) n.gain = 0;  // not worth it
    n.rank = forced ? INF : n.gain;
  }

  double level_score(const std::vector<Node>& nodes, const std::vector<int32_t>& level) const {
    if (ranker_.cosine()) {
      CosineParts all;
      for (const int32_t id : level) {
        const CosineParts one = SplitRanker::angle(nodes[id].sum, penalty_);
        all.along = all.along + one.along, all.square = all.square + one.square;
      }
      return length(all);
    }
    double own = 0.0;
    for (const int32_t id : level) own = own + nodes[id].score;
    return own;
  }
  // Whether a level's best split is kept.
  bool pays(const LevelSplit& best, double own) const {
    return best.column >= 0 && 0.5 * (best.score - own) * unit_ - lim_.min_split_gain > 0;
  }
  // A node takes its level's split; `left` is what goes there.
  void take(Node& n, int32_t id, const LevelSplit& best, Sums left) const {
    n.best = {best.score, best.column, best.bin, best.missing_left, left};
    const Sums r = n.sum - left;
    if (left.h > 0 && r.h > 0) n.best.score = score_of(n, id), n.gain = gain(n);
  }

  double score_of(const Node& n, int32_t id) const {  // of its best split
    const Sums l = n.best.left, r = n.sum - l;
    return b_.is_category[n.best.column] ? part(l, r, id, n.best.column) : split(l, r, id, n.best.column, n.best.bin);
  }

  // How far the loss falls, whatever the split was chosen by.
  double gain(const Node& n) const {
    if (!ranker_.cosine()) return 0.5 * (n.best.score - n.score) * unit_;
    const int c = n.best.column;
    const Penalty& p = b_.is_category[c] ? categories_->penalty(c, b_.n_bins[c]) : penalty_;
    return 0.5 * (split_score(n.best.left, n.sum - n.best.left, p) - node_score(n.sum, penalty_)) * unit_;
  }

  bool find_level_split(std::vector<Node>& nodes, const std::vector<int32_t>& level) {
    const double own = level_score(nodes, level);
    choose_columns(level[0], nodes[level[0]].depth);
    const std::vector<int> columns = allowed(level[0]);
    std::vector<LevelSplit> found(columns.size());
    const int64_t work = t_.n_codes * (int64_t)level.size();
    run(work < FORK_NS ? 1 : in_.n_threads, (int64_t)columns.size(), [&](int64_t k, int) {
      const int c = columns[k];
      found[k] = b_.is_category[c] ? find_level_sets(nodes, level, c, worth(own))
                                   : scan_level_column(nodes, level, c, worth(own));
    });
    const LevelSplit best = ranker_.best(found, own, level[0]);
    if (best.column < 0 || (!ranker_.cosine() && !pays(best, own))) return false;
    take_all(nodes, level, best);
    if (!ranker_.cosine() || lim_.min_split_gain == 0.0) return true;
    double gained = 0.0;
    for (const int32_t id : level) gained = gained + nodes[id].gain;
    return gained > lim_.min_split_gain;
  }

  void take_all(std::vector<Node>& nodes, const std::vector<int32_t>& level, const LevelSplit& best) {
    const int c = best.column;
    if (b_.is_category[c]) {
      take_set(nodes, level, best);
      return;
    }
    for (const int32_t id : level) {
      Sums l;
      if (nodes[id].n_rows > 0) {
        if (best.missing_left && b_.has_missing[c]) l = t_.at(nodes[id].hist, c, b_.n_bins[c]);
        for (int b = 0; b <= best.bin; b++) l = l + t_.at(nodes[id].hist, c, b);
      }
      take(nodes[id], id, best, l);
    }
  }

  // The best split of one column for all nodes of a level. Rows are counted only where the best one might leave a side too few.
  LevelSplit scan_level_column(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c, double bar) {
    const LevelSplit best = scan_level_column(nodes, level, c, bar, false);
    if (!counts_rows_ || best.column < 0) return best;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) continue;
      Sums l = best.missing_left && b_.has_missing[c] ? t_.at(n.hist, c, b_.n_bins[c]) : Sums{};
      for (int b = 0; b <= best.bin; b++) l = l + t_.at(n.hist, c, b);
      if (l.h > 0 && l.h < n.sum.h && !count_bound_holds(l.h, n.sum.h))
        return scan_level_column(nodes, level, c, bar, true);
    }
    return best;
  }

  LevelSplit scan_level_column(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c, double bar,
                               bool count_rows) {
    const int n_bins = b_.n_bins[c];
    int64_t missing = 0;
    for (const int32_t id : level)
      if (nodes[id].n_rows > 0 && b_.has_missing[c]) missing += t_.at(nodes[id].hist, c, n_bins).h;
    const int n_right = missing > 0 ? n_bins : n_bins - 1, n_left = missing > 0 ? n_bins - 1 : 0;
    std::vector<double> right(n_right, 0.0), left(n_left, 0.0), right_square, left_square;
    if (ranker_.cosine()) right_square.assign(n_right, 0.0), left_square.assign(n_left, 0.0);
    std::vector<int64_t> count;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) continue;
      const ColumnHistogram bins = bins_of(n, c);
      if (ranker_.cosine()) {
        k_.scan_level_cosine(bins.sums, bins.packed, n_right, bins.gone(), n.sum, penalty_, false, right.data(),
                             right_square.data());
        k_.scan_level_cosine(bins.sums, bins.packed, n_left, bins.gone(), n.sum, penalty_, true, left.data(),
                             left_square.data());
      } else {
        scan_level(n, id, c, bins, false, right), scan_level(n, id, c, bins, true, left);
      }
      if (!count_rows) continue;
      count_codes(n, c, count);
      veto_few(count, right, left);
    }
    for (size_t b = 0; b < right_square.size(); b++) right[b] = length({right[b], right_square[b]});
    for (size_t b = 0; b < left_square.size(); b++) left[b] = length({left[b], left_square[b]});
    int first = 0, last = n_right - 1;
    if (in_.rules.extra) {
      std::vector<const Node*> all;
      for (const int32_t id : level) all.push_back(&nodes[id]);
      last = random_bin(all, level[0], c), first = std::max(last, 0);
    }
    LevelSplit best = best_of(right, left, c, bar, first, last);
    if (best.column >= 0 && missing == 0) {
      int64_t l = 0, all = 0;
      for (const int32_t id : level) {
        all += nodes[id].sum.h;
        if (nodes[id].n_rows > 0)
          for (int b = 0; b <= best.bin; b++) l += t_.at(nodes[id].hist, c, b).h;
      }
      best.missing_left = l >= all - l;
    }
    return best;
  }

  // Of the cuts first .. last.
  static LevelSplit best_of(const std::vector<double>& right, const std::vector<double>& left, int c, double bar,
                            int first, int last) {
    LevelSplit best;
    best.score = bar;
    for (int b = first; b <= last; b++) {
      if (b < (int)left.size() && left[b] > best.score) best = {left[b], c, b, true};
      if (right[b] > best.score) best = {right[b], c, b, false};
    }
    return best;
  }

  // One node's part of the level's scores at its first cuts; -inf is a veto.
  void scan_level(const Node& n, int32_t id, int c, const ColumnHistogram& bins, bool side,
                  std::vector<double>& score) const {
    const int n_cuts = (int)score.size();
    if (!guard_.ordered())
      return k_.scan_level(bins.sums, bins.packed, n_cuts, bins.gone(), n.sum, penalty_, side, score.data());
    if (n.sum.h == 0) return;
    Sums l = side ? bins.gone() : Sums{};
    for (int b = 0; b < n_cuts; b++) {
      l = l + bins.at(b);
      score[b] = score[b] + level_part(n, l, id, c, bins.code(b));
    }
  }
  double level_part(const Node& n, Sums l, int32_t id, int c, int code) const {
    const Sums r = n.sum - l;
    return l.h == 0 || r.h == 0 ? n.score : admits(l, r) ? split(l, r, id, c, code) : -INF;
  }

  // count (bins + 1) of one node, missing last; a veto where a side that holds rows holds too few.
  void veto_few(const std::vector<int64_t>& count, std::vector<double>& right, std::vector<double>& left) const {
    int64_t total = 0, rows_left = 0;
    for (const int64_t x : count) total += x;
    auto poor = [&](int64_t l) {
      return l > 0 && total - l > 0 && ((double)l < min_count_ || (double)(total - l) < min_count_);
    };
    const int64_t gone = count.back();
    for (size_t b = 0; b < right.size(); b++) {
      rows_left += b + 1 < count.size() ? count[b] : 0;
      if (poor(rows_left)) right[b] = -INF;
      if (b < left.size() && poor(rows_left + gone)) left[b] = -INF;
    }
  }

  const GrowInput& in_;
  const Binned& b_;
  const Gradients& q_;
  const Limits& lim_;
  const Kernels& k_;
  const HistogramBuilder& t_;
  RowCounts& counts_;  // of rows without weights
  const std::vector<int>& columns_;
  std::vector<int> by_slot_;  // the same in the order of slots,
  bool has_sparse_ = false;   // some columns of the table are
  std::vector<int> runs_;     // and runs of columns of two bins among them
  Penalty penalty_;
  double unit_ = 1, min_count_ = 1;
  double min_rows_ = 2;  // of a node that can be split
  bool counts_rows_ = false;
  NodeConstraints guard_;
  SplitRanker ranker_;
  const bool constrained_;
  std::vector<std::vector<int>> allowed_;  // by node, where levels or nodes have columns of their own
  std::optional<Categories> categories_;   // where there are some
};

}  // namespace sapwood
