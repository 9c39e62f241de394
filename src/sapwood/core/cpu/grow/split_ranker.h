// SplitRanker: how the best splits of columns are compared, where it is not by the loss alone
// (NUMERICS, comparing splits): feature weights, penalties for a column's first use, the noise of
// random_strength, cosine scores.
#pragma once
#include <stdint.h>

#include <vector>

#include "math/rank.h"
#include "records/preference.h"

namespace sapwood {

class SplitRanker {
 public:
  // noise_scale: standard deviation of the noise, in the units of the search; gain_scale: the worth
  // of such a unit
  SplitRanker(const SplitPreference& preference, double noise_scale, double gain_scale,
              uint64_t seed, uint64_t tree)
      : used_{preference.used}, seed_(seed), tree_(tree) {
    const auto given = [](const std::vector<double>& x) {
      return x.empty() ? nullptr : x.data();
    };
    rule_ = {given(preference.weight), given(preference.penalty), noise_scale,
             penalty_scale(preference.cosine, gain_scale), preference.cosine};
  }

  bool cosine() const { return rule_.cosine; }
  // scores are compared after `adjusted_score`
  bool adjusts() const { return sapwood::adjusts(rule_); }

  // What the best score `s` of a column is compared by, in a node or level of score `p`; -inf: not
  // worth the penalty.
  double adjusted_score(double s, double p, int32_t id, int column) const {
    const bool used = rule_.penalty != nullptr && used_[id][column];
    return sapwood::adjusted_score(s, p, column, used, key(seed_, RANDOM_STRENGTH, tree_, id),
                                   rule_);
  }

  // The winner among the best splits of columns; `p`: the score of the node or level. Of equals the
  // lower column wins.
  template <class Split>
  Split best(const std::vector<Split>& found, double p, int32_t id) const {
    Split best;
    double top = -INF;
    for (const Split& s : found) {
      if (s.column < 0) {
        continue;
      }
      const double rank = adjusts() ? adjusted_score(s.score, p, id, s.column) : s.score;
      const bool tie = best.column >= 0 && rank == top && s.column < best.column;
      if (rank > top || tie) {
        best = s;
        top = rank;
      }
    }
    return best;
  }

  // to the children of a node that was split by this column
  void inherit(int32_t id, int32_t left, int column) {
    if (rule_.penalty == nullptr) {
      return;
    }
    used_.resize(left + 2, used_[id]);
    used_[left] = used_[id];
    used_[left][column] = 1;
    used_[left + 1] = used_[left];
  }

 private:
  RankRule rule_;
  std::vector<std::vector<uint8_t>> used_;  // by node: columns used by earlier trees or on its path
  uint64_t seed_, tree_;
};

}  // namespace sapwood
