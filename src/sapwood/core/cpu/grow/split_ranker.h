// SplitRanker: how the best splits of columns are compared, where it is not by the loss alone (NUMERICS, comparing
// splits): feature weights, penalties for a column's first use, the noise of random_strength, cosine scores.
#pragma once
#include <stdint.h>

#include <vector>

#include "math/gain.h"
#include "math/hash.h"
#include "records/preference.h"

namespace sapwood {

class SplitRanker {
 public:
  // noise_scale: standard deviation of the noise, in the units of the search; gain_scale: the worth of such a unit
  SplitRanker(const SplitPreference& preference, double noise_scale, double gain_scale, uint64_t seed, uint64_t tree)
      : preference_(preference), used_{preference.used}, noise_scale_(noise_scale), seed_(seed), tree_(tree) {
    penalty_scale_ = preference.cosine ? 1.0 / __builtin_sqrt(gain_scale) : 2.0 / gain_scale;
  }

  bool cosine() const { return preference_.cosine; }
  bool adjusts() const {  // scores are compared after `adjusted_score`
    return noise_scale_ > 0.0 || !preference_.weight.empty() || !preference_.penalty.empty();
  }

  // What the best score `s` of a column is compared by, in a node or level of score `p`; -inf: not worth the penalty.
  double adjusted_score(double s, double p, int32_t id, int column) const {
    if (!preference_.weight.empty()) s = p + preference_.weight[column] * (s - p);
    if (!preference_.penalty.empty() && !used_[id][column]) s = s - preference_.penalty[column] * penalty_scale_;
    if (!(s > must_exceed(p))) return -INF;
    if (noise_scale_ == 0.0) return s;
    return (preference_.cosine ? s : __builtin_sqrt(s > 0.0 ? s : 0.0)) +
           noise_scale_ * normal(draw(key(seed_, RANDOM_STRENGTH, tree_, id), column));
  }

  // The winner among the best splits of columns; `p`: the score of the node or level. Of equals the lower column wins.
  template <class Split>
  Split best(const std::vector<Split>& found, double p, int32_t id) const {
    Split best;
    double top = -INF;
    for (const Split& s : found) {
      if (s.column < 0) continue;
      const double rank = adjusts() ? adjusted_score(s.score, p, id, s.column) : s.score;
      const bool tie = best.column >= 0 && rank == top && s.column < best.column;
      if (rank > top || tie) best = s, top = rank;
    }
    return best;
  }

  void inherit(int32_t id, int32_t left, int column) {  // to the children of a node that was split by this column
    if (preference_.penalty.empty()) return;
    used_.resize(left + 2, used_[id]);
    used_[left] = used_[id];
    used_[left][column] = 1, used_[left + 1] = used_[left];
  }

 private:
  // Marsaglia's polar method: points of the square are drawn until one lies in the circle.
  static double normal(uint64_t u) {
    for (uint64_t t = 0;; t++) {
      const uint64_t h = fold(u, t);
      const double x = (double)(int32_t)(h >> 32) * 0x1p-31, y = (double)(int32_t)(uint32_t)h * 0x1p-31,
                   s = x * x + y * y;
      if (s > 0.0 && s < 1.0) return x * __builtin_sqrt(-2.0 * log(s) / s);
    }
  }

  const SplitPreference& preference_;
  std::vector<std::vector<uint8_t>> used_;  // by node: columns used by earlier trees or on its path
  double noise_scale_, penalty_scale_;
  uint64_t seed_, tree_;
};

}  // namespace sapwood
