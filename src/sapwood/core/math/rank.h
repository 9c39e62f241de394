// How the best splits of columns are compared, where it is not by the loss alone (NUMERICS,
// comparing splits).
#pragma once
#include "math/gain.h"
#include "math/hash.h"

namespace sapwood::inline SAPWOOD_ISA {

struct RankRule {
  // (n_columns) feature weights, penalties of a first use; null: none
  const double *weight = nullptr, *penalty = nullptr;
  double noise_scale = 0;    // standard deviation of the noise, in the units of the search
  double penalty_scale = 0;  // what a penalty is worth in them
  bool cosine = false;
};
// gain_scale: what a unit of scores is worth
inline double penalty_scale(bool cosine, double gain_scale) {
  return cosine ? 1.0 / sqrt(gain_scale) : 2.0 / gain_scale;
}
inline bool adjusts(const RankRule& r) {
  return r.noise_scale > 0.0 || r.weight != nullptr || r.penalty != nullptr;
}

// Marsaglia's polar method: points of the square are drawn until one lies in the circle.
inline double normal(uint64_t u) {
  for (uint64_t t = 0;; t++) {
    const uint64_t h = fold(u, t);
    const double x = (double)(int32_t)(h >> 32) * 0x1p-31;
    const double y = (double)(int32_t)(uint32_t)h * 0x1p-31;
    const double s = x * x + y * y;
    if (s > 0.0 && s < 1.0) {
      return x * sqrt(-2.0 * log(s) / s);
    }
  }
}

// What the best score `s` of a column is compared by, in a node or level of score `p`; -inf: not
// worth the penalty.
// used: the path or earlier trees use the column; node: the key of the node's draws
inline double adjusted_score(double s, double p, int column, bool used, uint64_t node,
                             const RankRule& r) {
  if (r.weight != nullptr) {
    s = p + r.weight[column] * (s - p);
  }
  if (r.penalty != nullptr && !used) {
    s = s - r.penalty[column] * r.penalty_scale;
  }
  if (!(s > must_exceed(p))) {
    return -INF;
  }
  if (r.noise_scale == 0.0) {
    return s;
  }
  return (r.cosine ? s : sqrt(s > 0.0 ? s : 0.0)) +
         r.noise_scale * normal(draw(node, (uint64_t)column));
}

}  // namespace sapwood::inline SAPWOOD_ISA
