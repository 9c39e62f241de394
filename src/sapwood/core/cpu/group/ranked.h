// A ranked list: the rows of one group by falling score, and what a swap of two places does to a
// metric.
#pragma once
#include <vector>

#include "math/real.h"

namespace sapwood {

// classic: YetiRank's own weights of neighbours
enum class RankMetric { ndcg, map, mrr, err, classic };

// 1 / log2(place + 2)
inline double discount(int64_t place) {
  return LN2 / log((double)(place + 2));
}

// 1 / log2(place + 2) by place, as many as the largest group has rows.
struct Discounts {
  explicit Discounts(int64_t n) : at(n) {
    for (int64_t i = 0; i < n; i++) {
      at[i] = discount(i);
    }
  }
  double operator[](int64_t i) const { return at[i]; }
  std::vector<double> at;
};

// What |metric| changes by if two places of a list swap their rows; by prefix sums, in a few
// operations.
struct SwapDelta {
  // gain (n) by place; relevant: gain > 0. For err, gain is the probability that a row satisfies,
  // below 1.
  void rank(RankMetric metric_, const double* gain_, int64_t n, const Discounts* discounts_,
            double inverse_ideal_) {
    metric = metric_;
    gain = gain_;
    discounts = discounts_;
    inverse_ideal = inverse_ideal_;
    first = second = n;
    relevant = 0.0;
    if (metric == RankMetric::ndcg || metric == RankMetric::classic) {
      return;
    }
    before.resize(n + 1);
    sum.resize(n + 1);
    double left = 1.0;
    before[0] = metric == RankMetric::err ? 1.0 : 0.0;
    sum[0] = 0.0;
    for (int64_t i = 0; i < n; i++) {
      const bool hit = gain[i] > 0.0;
      if (hit && first == n) {
        first = i;
      } else if (hit && second == n) {
        second = i;
      }
      relevant = relevant + (hit ? 1.0 : 0.0);
      if (metric == RankMetric::err) {  // sum of the terms so far; what is left after this place
        sum[i + 1] = sum[i] + left * gain[i] / (double)(i + 1);
        left = left * (1.0 - gain[i]);
        before[i + 1] = left;
      } else {  // hits so far; sum of 1 / place over them
        before[i + 1] = relevant;
        sum[i + 1] = sum[i] + (hit ? 1.0 / (double)(i + 1) : 0.0);
      }
    }
  }
  double operator()(int64_t i, int64_t j) const {  // places i < j
    double d = 0.0;
    const bool up = gain[i] > 0.0;
    const bool down = gain[j] > 0.0;
    const double a = (double)(i + 1);
    const double b = (double)(j + 1);
    if (metric == RankMetric::ndcg) {
      d = (gain[i] - gain[j]) * ((*discounts)[i] - (*discounts)[j]) * inverse_ideal;
    } else if (metric == RankMetric::map) {
      if (up == down) {
        return 0.0;
      }
      const double between = sum[j] - sum[i + 1];  // hits strictly between
      d = up ? before[i + 1] / a + between - before[j + 1] / b
             : (before[i] + 1.0) / a + between - before[j + 1] / b;
      d = d / relevant;
    } else if (metric == RankMetric::mrr) {
      if (up == down) {
        return 0.0;
      }
      if (up && i == first) {
        d = 1.0 / a - 1.0 / (double)((second < j ? second : j) + 1);
      }
      if (down && i < first) {
        d = 1.0 / a - 1.0 / (double)(first + 1);
      }
    } else if (metric == RankMetric::err) {
      const double ratio = (1.0 - gain[j]) / (1.0 - gain[i]);
      const double between = sum[j] - sum[i + 1];
      d = before[i] * (gain[j] - gain[i]) / a + (ratio - 1.0) * between +
          before[j] / b * (gain[i] * ratio - gain[j]);
    }
    return d < 0.0 ? -d : d;
  }

  RankMetric metric = RankMetric::ndcg;
  const double* gain = nullptr;
  const Discounts* discounts = nullptr;
  double inverse_ideal = 0.0, relevant = 0.0;
  int64_t first = 0, second = 0;    // places of the first two relevant rows
  std::vector<double> before, sum;  // (n + 1)
};

}  // namespace sapwood
