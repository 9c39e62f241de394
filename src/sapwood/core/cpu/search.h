// Search: the best split of a node, or of a whole level, from its histogram (NUMERICS 5, 6).
#pragma once
#include <algorithm>

#include "../math/gain.h"
#include "../math/hash.h"
#include "guard.h"

namespace sapwood {

inline bool better(const Candidate& a, const Candidate& b) {  // across columns; within a column the scan has chosen
  if (a.column < 0) return false;
  return b.column < 0 || a.score > b.score || (a.score == b.score && a.column < b.column);
}

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

class Search {
 public:
  Search(const GrowInput& in, const std::vector<int>& columns, const Tally& tally)
      : in_(in),
        b_(in.binned),
        q_(in.gradients),
        lim_(in.limits),
        k_(kernels()),
        t_(tally),
        columns_(columns),
        guard_(in.rules, in.binned, penalty_),
        ruled_(in.rules.any()) {
    const double gs = g_scale(q_.scale), hs = h_scale(q_.scale);
    penalty_.lambda = lim_.reg_lambda * hs, penalty_.alpha = lim_.reg_alpha * gs,
    penalty_.step = lim_.max_delta_step * gs / hs;
    penalty_.min_h = lim_.min_child_weight * hs;
    unit_ = hs / (gs * gs);
    least_count_ = lim_.min_samples_leaf * power_of_two(in.weights.shift);
    counted_ = lim_.min_samples_leaf > 1.0;
    if (counted_ && q_.constant_hessian) {  // then the hessian counts
      penalty_.min_h = std::max(penalty_.min_h, least_count_ * q_.most_per_count);
      counted_ = false;
    }
  }

  bool can_split(const Node& n) const {  // quick to refuse; the search decides
    return n.n_rows >= 2 && (double)n.sum.h >= 2.0 * penalty_.min_h && n.sum.h >= 2;
  }
  double score(Sums s, int32_t id) const {
    if (s.h <= 0) return 0.0;
    return guard_.ordered() ? guard_.score(s, id) : node_score(s, penalty_);
  }
  double split(Sums l, Sums r, int32_t id, int c, int b) const {
    return guard_.ordered() ? guard_.split(l, r, id, c, b) : split_score(l, r, penalty_);
  }

  // What a candidate must beat, and the columns a node may use.
  void open(Node& n, int32_t id) {
    n.best.score = worth(n.score);
    choose_columns(id, n.depth);
  }

  void inherit(const Node& n, int32_t id) {
    if (ruled_) guard_.inherit(n, id);
  }
  std::vector<int32_t> tighten(const std::vector<Node>& nodes, int32_t id) { return guard_.tighten(nodes, id); }
  void search_again(Node& n, int32_t id) {  // under other bounds
    n.best = {}, n.gain = n.rank = 0;
    n.score = score(n.sum, id);
    open(n, id);
    scan_columns(n, id, 0, b_.n_columns, n.best);
    close(n, id);
  }
  void settle(const std::vector<int32_t>& leaves) {
    if (guard_.ordered()) guard_.settle(leaves);
  }
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
  }
  const std::vector<int>& allowed(int32_t id) const { return own_columns() ? allowed_[id] : columns_; }
  bool own_columns() const {  // of a level or a node
    return lim_.colsample_bylevel < 1.0 || lim_.colsample_bynode < 1.0 || guard_.grouped();
  }

  void scan_columns(const Node& n, int32_t id, int first, int last, Candidate& best) {
    if (!can_split(n)) return;
    const auto& columns = allowed(id);
    for (auto c = std::lower_bound(columns.begin(), columns.end(), first); c != columns.end() && *c < last; c++) {
      Candidate found = best;
      if (ruled_) found = careful_scan(n, id, *c, best, false);
      else k_.scan(t_.column(n.hist, *c), n.hist.packed, b_.n_bins[*c], b_.has_missing[*c], n.sum, penalty_, *c, found);
      if (found.column != *c) continue;
      if (counted_ && !surely_enough(found.left.h, n.sum.h)) found = careful_scan(n, id, *c, best, true);
      best = found;
    }
  }

  // count >= H / (largest hessian of one row): that settles most candidates, and the rest are counted.
  bool surely_enough(int64_t left, int64_t total) const {
    const double need = least_count_ * q_.most_per_count;
    return (double)left >= need && (double)(total - left) >= need;
  }

  void count_codes(const Node& n, int c, std::vector<int64_t>& count) const {
    count.assign(t_.used(c), 0);
    for (const Segment& s : n.segments) {
      const Shard& shard = b_.shards[s.shard];
      const void* codes = b_.column(shard, c);
      const int32_t* ids = t_.rows(n, s);
      for (int64_t i = 0; i < s.end - s.begin; i++) {
        const int64_t r = ids == nullptr ? s.begin + i : ids[i];
        count[b_.wide ? ((const uint16_t*)codes)[r] : ((const uint8_t*)codes)[r]] += in_.weights.of(shard.first + r);
      }
    }
  }

  // The scan of one column that knows the rules and, where asked, counts rows.
  Candidate careful_scan(const Node& n, int32_t id, int c, Candidate best, bool count_rows) const {
    std::vector<int64_t> count;
    if (count_rows) count_codes(n, c, count);
    const Forced* forced = ruled_ ? guard_.forced(id) : nullptr;
    if (forced != nullptr && forced->column == c) {  // it need not be worth it, and beats all others
      Candidate found = scan_bins(n, id, c, {-INF, -1, -1, false, {}}, forced->bin, forced->bin, count);
      found.score = INF;
      if (found.column == c) return found;
    }
    int first = 0, last = b_.n_bins[c] - 1;
    if (in_.rules.extra) first = last = random_bin({&n}, id, c);
    return scan_bins(n, id, c, best, first, last, count);
  }

  Candidate scan_bins(const Node& n, int32_t id, int c, Candidate best, int first, int last,
                      const std::vector<int64_t>& count) const {
    int64_t total = 0, rows_left = 0;
    for (const int64_t x : count) total += x;
    const int n_bins = b_.n_bins[c];
    const Sums missing = b_.has_missing[c] ? t_.at(n.hist, c, n_bins) : Sums{};
    auto consider = [&](Sums l, int64_t rows, int b, bool side) {
      const Sums r = n.sum - l;
      if (!admits(l, r)) return;
      if (!count.empty() && ((double)rows < least_count_ || (double)(total - rows) < least_count_)) return;
      const double s = split(l, r, id, c, b);
      if (s > best.score) best = {s, c, b, side, l};
    };
    Sums l;
    for (int b = 0; b <= last; b++) {
      l = l + t_.at(n.hist, c, b), rows_left += count.empty() ? 0 : count[b];
      if (b < first) continue;
      if (missing.h > 0 && b < n_bins - 1)
        consider(l + missing, rows_left + (count.empty() ? 0 : count[n_bins]), b, true);
      if (missing.h > 0 || b < n_bins - 1) consider(l, rows_left, b, false);
    }
    return best;
  }

  bool admits(Sums l, Sums r) const {
    return l.h > 0 && r.h > 0 && (double)l.h >= penalty_.min_h && (double)r.h >= penalty_.min_h;
  }

  // One of the cuts between bins that hold rows of these nodes, or of values against missing ones; -1: there is none.
  int random_bin(const std::vector<const Node*>& nodes, int32_t id, int c) const {
    const int n_bins = b_.n_bins[c];
    int first = n_bins, last = -1, missing = 0;
    for (const Node* n : nodes)
      for (int b = 0; b < t_.used(c) && n->n_rows > 0; b++)
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

  // Turns the best candidate into a gain, and gives missing values a side where the node saw none.
  void close(Node& n, int32_t id) {
    if (n.best.column < 0) return;
    const int c = n.best.column;
    const bool forced = n.best.score == INF;
    if (forced) n.best.score = split(n.best.left, n.sum - n.best.left, id, c, n.best.bin);
    n.gain = 0.5 * (n.best.score - n.score) * unit_;
    if (!forced && !(n.gain > lim_.min_split_gain)) n.gain = 0;  // not worth it
    n.rank = forced ? INF : n.gain;
    if (!b_.has_missing[c] || t_.at(n.hist, c, b_.n_bins[c]).h == 0)
      n.best.missing_left = n.best.left.h >= n.sum.h - n.best.left.h;
  }

  // One split for all nodes of a level: the sum of their scores decides.
  struct Shared {
    double score = 0;
    int column = -1, bin = -1;
    bool missing_left = false;
  };

  bool share_split(std::vector<Node>& nodes, const std::vector<int32_t>& level) {
    double own = 0.0;
    for (const int32_t id : level) own = own + nodes[id].score;
    choose_columns(level[0], nodes[level[0]].depth);
    const std::vector<int> columns = allowed(level[0]);
    std::vector<Shared> found(columns.size());
    const int64_t work = t_.n_codes * (int64_t)level.size();
    run(work < FORK_NS ? 1 : in_.n_threads, (int64_t)columns.size(),
        [&](int64_t k, int) { found[k] = scan_shared(nodes, level, columns[k], worth(own)); });
    Shared best;
    for (const Shared& s : found)
      if (s.column >= 0 && (best.column < 0 || s.score > best.score)) best = s;
    if (best.column < 0 || !(0.5 * (best.score - own) * unit_ - lim_.min_split_gain > 0)) return false;
    for (const int32_t id : level) {
      Node& n = nodes[id];
      const int c = best.column, gone = b_.n_bins[c];
      n.best = {best.score, c, best.bin, best.missing_left, {}};
      if (n.n_rows == 0) continue;
      if (best.missing_left && b_.has_missing[c]) n.best.left = t_.at(n.hist, c, gone);
      for (int b = 0; b <= best.bin; b++) n.best.left = n.best.left + t_.at(n.hist, c, b);
      const Sums r = n.sum - n.best.left;
      if (n.best.left.h > 0 && r.h > 0) n.gain = 0.5 * (split(n.best.left, r, id, c, best.bin) - n.score) * unit_;
    }
    return true;
  }

  // The best split of one column for all nodes of a level. Rows are counted only where the best one might leave a side too few.
  Shared scan_shared(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c, double bar) {
    const Shared best = scan_shared(nodes, level, c, bar, false);
    if (!counted_ || best.column < 0) return best;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) continue;
      Sums l = best.missing_left && b_.has_missing[c] ? t_.at(n.hist, c, b_.n_bins[c]) : Sums{};
      for (int b = 0; b <= best.bin; b++) l = l + t_.at(n.hist, c, b);
      if (l.h > 0 && l.h < n.sum.h && !surely_enough(l.h, n.sum.h)) return scan_shared(nodes, level, c, bar, true);
    }
    return best;
  }

  Shared scan_shared(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c, double bar,
                     bool count_rows) {
    const int n_bins = b_.n_bins[c];
    int64_t missing = 0;
    for (const int32_t id : level)
      if (nodes[id].n_rows > 0 && b_.has_missing[c]) missing += t_.at(nodes[id].hist, c, n_bins).h;
    const int n_right = missing > 0 ? n_bins : n_bins - 1, n_left = missing > 0 ? n_bins - 1 : 0;
    std::vector<double> right(n_right, 0.0), left(n_left, 0.0);
    std::vector<int64_t> count;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) continue;
      const Sums m = b_.has_missing[c] ? t_.at(n.hist, c, n_bins) : Sums{};
      scan_level(n, id, c, n_right, m, false, right.data());
      if (n_left > 0) scan_level(n, id, c, n_left, m, true, left.data());
      if (count_rows) veto_few(n, c, count, right, left);
    }
    Shared best;
    best.score = bar;
    int first = 0, last = n_right - 1;
    if (in_.rules.extra) {
      std::vector<const Node*> all;
      for (const int32_t id : level) all.push_back(&nodes[id]);
      last = random_bin(all, level[0], c), first = std::max(last, 0);
    }
    for (int b = first; b <= last; b++) {
      if (b < n_left && left[b] > best.score) best = {left[b], c, b, true};
      if (right[b] > best.score) best = {right[b], c, b, false};
    }
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

  // One node's part of the level's scores at cuts 0 .. n_cuts - 1; -inf is a veto.
  void scan_level(const Node& n, int32_t id, int c, int n_cuts, Sums missing, bool side, double* score) const {
    if (!guard_.ordered())
      return k_.scan_level(t_.column(n.hist, c), n.hist.packed, n_cuts, missing, n.sum, penalty_, side, score);
    if (n.sum.h == 0) return;
    Sums l = side ? missing : Sums{};
    for (int b = 0; b < n_cuts; b++) {
      l = l + t_.at(n.hist, c, b);
      const Sums r = n.sum - l;
      const double s = l.h == 0 || r.h == 0 ? n.score : admits(l, r) ? split(l, r, id, c, b) : -INF;
      score[b] = score[b] + s;
    }
  }

  void veto_few(const Node& n, int c, std::vector<int64_t>& count, std::vector<double>& right,
                std::vector<double>& left) const {
    count_codes(n, c, count);
    int64_t total = 0, rows_left = 0;
    for (const int64_t x : count) total += x;
    auto poor = [&](int64_t l) {
      return l > 0 && total - l > 0 && ((double)l < least_count_ || (double)(total - l) < least_count_);
    };
    const int64_t gone = count[b_.n_bins[c]];
    for (size_t b = 0; b < right.size(); b++) {
      rows_left += count[b];
      if (poor(rows_left)) right[b] = -INF;
      if (b < left.size() && poor(rows_left + gone)) left[b] = -INF;
    }
  }

  const GrowInput& in_;
  const Binned& b_;
  const Gradients& q_;
  const Limits& lim_;
  const Kernels& k_;
  const Tally& t_;
  const std::vector<int>& columns_;
  Penalty penalty_;
  double unit_ = 1, least_count_ = 1;
  bool counted_ = false;
  Guard guard_;
  const bool ruled_;
  std::vector<std::vector<int>> allowed_;  // by node, where levels or nodes have columns of their own
};

}  // namespace sapwood
