// SplitRanker: what splits are compared by, where it is not the fall of the loss alone (NUMERICS, judging splits).
// Enters: the scores of columns' best splits. Leaves: what they are worth to the user, and some luck.
#pragma once
#include <stdint.h>

#include <vector>

#include "math/gain.h"
#include "math/hash.h"
#include "records/preference.h"

namespace sapwood {

class SplitRanker {
 public:
  // deviation: of the luck, in the units of the search; unit: of its scores, squared in gradients
  SplitRanker(const SplitPreference& taste, double deviation, double unit, uint64_t seed, uint64_t tree)
      : preference_(taste), used_{taste.used}, deviation_(deviation), seed_(seed), tree_(tree) {
    price_ = taste.cosine ? 1.0 / __builtin_sqrt(unit) : 2.0 / unit;
  }

  bool cosine() const { return preference_.cosine; }
  bool compares() const { return deviation_ > 0.0 || !preference_.weight.empty() || !preference_.penalty.empty(); }

  static CosineParts angle(Sums s, const Penalty& p) {
    return s.h > 0 ? cosine_parts((double)s.g, (double)s.h, p) : CosineParts{};
  }
  static double cosine_of(Sums s, const Penalty& p) { return length(angle(s, p)); }
  static double cosine_of(Sums l, Sums r, const Penalty& p) {
    const CosineParts a = angle(l, p), b = angle(r, p);
    return length({a.along + b.along, a.square + b.square});
  }

  // Of a column's best score `s`, in a node (or a level) that scores `p`; -inf: it is not worth its price.
  double favour(double s, double p, int32_t id, int column) const {
    if (!preference_.weight.empty()) s = p + preference_.weight[column] * (s - p);
    if (!preference_.penalty.empty() && !used_[id][column]) s = s - preference_.penalty[column] * price_;
    if (!(s > worth(p))) return -INF;
    if (deviation_ == 0.0) return s;
    return (preference_.cosine ? s : __builtin_sqrt(s > 0.0 ? s : 0.0)) +
           deviation_ * normal(draw(key(seed_, RANDOM_STRENGTH, tree_, id), column));
  }

  // Of the columns' best splits, in any order.
  template <class Split>
  Split best(const std::vector<Split>& found, double p, int32_t id) const {
    Split best;
    double top = -INF;
    for (const Split& s : found) {
      if (s.column < 0) continue;
      const double rank = compares() ? favour(s.score, p, id, s.column) : s.score;
      const bool tie = best.column >= 0 && rank == top && s.column < best.column;
      if (rank > top || tie) best = s, top = rank;
    }
    return best;
  }

  // The children of a node come after a split by its column.
  void inherit(int32_t id, int32_t left, int column) {
    if (preference_.penalty.empty()) return;
    used_.resize(left + 2, used_[id]);
    used_[left] = used_[id];
    used_[left][column] = 1, used_[left + 1] = used_[left];
  }

 private:
  // Marsaglia's polar method: a point of the square, drawn until it lies in the circle.
  static double normal(uint64_t u) {
    for (uint64_t t = 0;; t++) {
      const uint64_t h = fold(u, t);
      const double x = (double)(int32_t)(h >> 32) * 0x1p-31, y = (double)(int32_t)(uint32_t)h * 0x1p-31,
                   s = x * x + y * y;
      if (s > 0.0 && s < 1.0) return x * __builtin_sqrt(-2.0 * log(s) / s);
    }
  }

  const SplitPreference& preference_;
  std::vector<std::vector<uint8_t>> used_;  // by node: columns of those trees, and of its path
  double deviation_, price_;
  uint64_t seed_, tree_;
};

}  // namespace sapwood
