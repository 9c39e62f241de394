// Lockstep: several growths that take one split together (multi_output.h, ordered.h).
// Enters: the growths of all outputs. Leaves: the same, grown in step.
//
//   node        of the tree; its members are nodes of each growth
//   batch       nodes that are split at once; a level of a symmetric tree takes one split
#pragma once
#include <memory>
#include <optional>

#include "cpu/grow/histogram_growth.h"

namespace sapwood {

// The scores of an output are in units of its own, powers of two: they are added as parts of the
// largest.
struct OutputScales {
  double gain_scale = 0, noise_scale = 0;  // of all outputs together
  std::vector<double> scale;               // by output, at most 1
  OutputScales(const std::vector<std::unique_ptr<HistogramGrowth>>& outputs,
               const std::vector<GrowInput>& in) {
    for (const auto& g : outputs) {
      gain_scale = std::max(gain_scale, g->finder().gain_scale());
    }
    double square = 0.0;
    for (size_t k = 0; k < in.size(); k++) {
      scale.push_back(outputs[k]->finder().gain_scale() / gain_scale);
      square = square + scale[k] * (in[k].noise_scale * in[k].noise_scale);
    }
    noise_scale = __builtin_sqrt(square);
  }
};

class Lockstep : public SplitChooser {
 public:
  double rank(int32_t id) const override { return (size_t)id < rank_.size() ? rank_[id] : 0.0; }
  void choose(int32_t id) override {
    const std::optional<double> gain = choose_batch({id});
    if ((size_t)id >= rank_.size()) {
      rank_.resize((size_t)id + 1, 0.0);
    }
    rank_[id] = gain && *gain > lim_.min_split_gain ? *gain : 0.0;
    if (rank_[id] == 0.0) {
      release(id);
    }
  }
  bool choose_level(const NodeIds& level) override {
    const std::optional<double> gain = choose_batch(level);
    return gain && (any_gain() || *gain > lim_.min_split_gain);
  }
  NodeIds split(const NodeIds& batch, bool more, bool search) override {
    const NodeIds children = expand(batch, more);
    for (const int32_t child : children) {
      if (more && search) {
        choose(child);
      }
    }
    return children;
  }
  void release(int32_t id) override {
    for (auto& g : g_) {
      for (const int32_t member : members({id})) {
        g->release(member);
      }
    }
  }

 protected:
  using Outputs = std::vector<std::unique_ptr<HistogramGrowth>>;
  using Steps = SplitFinder::Steps;

  Lockstep(Outputs& outputs, const std::vector<GrowInput>& in, int n_threads)
      : g_(outputs), in_(in[0]), n_threads_(n_threads), scales_(outputs, in) {}

  virtual NodeIds members(const NodeIds& batch) const = 0;
  virtual NodeIds expand(const NodeIds& batch, bool more) = 0;  // splits them; the children
  // a level may take a split whatever it gains
  virtual bool any_gain() const { return false; }
  virtual double score_of(const NodeIds& batch) = 0;  // without a split
  virtual LevelSplit best_of(const NodeIds& batch, int c, double bar, bool limited) = 0;
  // as far as hessians tell
  virtual bool within_limits(const NodeIds& batch, const LevelSplit& split) = 0;
  virtual double take(const NodeIds& batch, LevelSplit split) = 0;  // what it gains

  size_t n_outputs() const { return g_.size(); }
  std::vector<Node>& nodes(size_t k) const { return g_[k]->nodes(); }
  SplitFinder& finder(size_t k) const { return g_[k]->finder(); }
  ColumnHistogram histogram(size_t k, int32_t id, int c) const {
    return finder(k).histogram(nodes(k)[id], c);
  }

  // Gives these nodes their best split, in all outputs, if there is one; what it gains.
  std::optional<double> choose_batch(const NodeIds& batch) {
    const NodeIds all = members(batch);
    const int64_t n_codes = g_[0]->total_codes() * (int64_t)(all.size() * n_outputs());
    finder(0).prepare_counts(all);
    finder(0).choose_columns(batch[0], depth(batch[0]));
    const std::vector<int>& columns = finder(0).allowed_columns(batch[0]);
    const double own = score_of(batch);
    std::vector<LevelSplit> found(columns.size());
    auto scan = [&](bool limited) {
      run(n_codes < FORK_NS ? 1 : n_threads_, (int64_t)columns.size(), [&](int64_t k, int) {
        if (limited && (found[k].column < 0 || within_limits(batch, found[k]))) {
          return;
        }
        found[k] = best_of(batch, columns[k], must_exceed(own), limited);
      });
      return ranker_.best(found, own, batch[0]);
    };
    LevelSplit best = scan(false);
    // limits only lower scores
    if (best.column >= 0 && !within_limits(batch, best)) {
      best = scan(true);
    }
    if (best.column < 0) {
      return {};
    }
    return take(batch, best);
  }

  bool any_missing(const NodeIds& batch, int c) const {
    if (!b_.has_missing[c]) {
      return false;
    }
    for (size_t k = 0; k < n_outputs(); k++) {
      for (const int32_t id : members(batch)) {
        if (nodes(k)[id].n_rows > 0 && histogram(k, id, c).missing().h > 0) {
          return true;
        }
      }
    }
    return false;
  }

  // -----------------------------------------------------------------------------------------------
  // limits
  // left, right: hessians, means over outputs; too_few: rows on a side. An empty side violates
  // nothing.
  bool violates_limits(double left, double right, bool too_few) const {
    if (!(left > 0.0 && right > 0.0)) {
      return false;
    }
    return too_few || left < lim_.min_child_weight || right < lim_.min_child_weight;
  }

  // right, left IN OUT: scores of the first cuts, by the side of missing values, or of the steps
  // (right);
  // -inf where a node that consists of these members would have too little on a side.
  void veto(const NodeIds& ids, int c, const Steps* steps, std::vector<double>& right,
            std::vector<double>& left) {
    const std::vector<int64_t> count = count_rows(ids, c);
    veto(ids, c, steps, count, false, right);
    veto(ids, c, steps, count, true, left);
  }
  void veto(const NodeIds& ids, int c, const Steps* steps, const std::vector<int64_t>& count,
            bool missing_left, std::vector<double>& score) {
    const size_t n = score.size();
    auto code = [&](size_t i) {
      return steps != nullptr ? (*steps)[i].code : (int)i;
    };
    auto starts = [&](size_t i) {
      return steps != nullptr && (*steps)[i].starts;
    };
    std::vector<double> left(n, 0.0);
    std::vector<double> right(n, 0.0);
    std::vector<int64_t> below(n);
    for (size_t k = 0; k < n_outputs(); k++) {
      std::fill(below.begin(), below.end(), 0);
      int64_t all = 0;
      for (const int32_t id : ids) {
        if (nodes(k)[id].n_rows == 0) {
          continue;
        }
        const ColumnHistogram bins = histogram(k, id, c);
        int64_t h = missing_left ? bins.missing().h : 0;
        for (size_t i = 0; i < n; i++) {
          h = (starts(i) ? 0 : h) + bins.at(code(i)).h;
          below[i] += h;
        }
        all += nodes(k)[id].sum.h;
      }
      const double one = 1.0 / finder(k).hessian_scale();  // exact: a power of two
      for (size_t i = 0; i < n; i++) {
        left[i] = left[i] + (double)below[i] * one;
        right[i] = right[i] + (double)(all - below[i]) * one;
      }
    }
    int64_t total = 0;
    int64_t rows = missing_left ? count.back() : 0;
    for (const int64_t x : count) {
      total += x;
    }
    const double outputs = (double)n_outputs();
    for (size_t i = 0; i < n; i++) {
      rows = (starts(i) ? 0 : rows) + count[code(i)];
      const bool too_few = counts_rows_ && finder(0).too_few_rows(rows, total);
      if (violates_limits(left[i] / outputs, right[i] / outputs, too_few)) {
        score[i] = -INF;
      }
    }
  }

  // (bins + 1) rows of nodes by code, missing last; 0 where they do not matter.
  std::vector<int64_t> count_rows(const NodeIds& ids, int c) {
    const Gradients& q = in_.gradients;
    std::vector<int64_t> count((size_t)b_.n_bins[c] + 1, 0);
    std::vector<int64_t> room;
    for (const int32_t id : ids) {
      if (!counts_rows_ || nodes(0)[id].n_rows == 0) {
        continue;
      }
      if (!q.constant_hessian) {
        const std::span<const int64_t> more = g_[0]->counts().of(id, c, 0, room);
        for (size_t code = 0; code < more.size(); code++) {
          count[code] += more[code];
        }
        continue;
      }
      const ColumnHistogram bins = histogram(0, id, c);
      for (int code = 0; code < bins.n_codes(); code++) {
        count[code] += bins.at(code).h / (int64_t)q.max_hessian_per_count;
      }
    }
    return count;
  }

  Outputs& g_;
  const GrowInput& in_;
  const Binned& b_ = in_.binned;
  const Limits& lim_ = in_.limits;
  const int n_threads_;
  const OutputScales scales_;
  SplitRanker ranker_{in_.preference, scales_.noise_scale, scales_.gain_scale, in_.seed, in_.tree};
  const bool counts_rows_ = lim_.min_samples_leaf > 1.0;

 private:
  std::vector<double> rank_;  // by node
};

}  // namespace sapwood
