// K classes, each against all others: the sum of K logistic losses of [y = k]. Predictions are the
// K probabilities divided by their sum.
#pragma once
#include "objective/logistic.h"

namespace sapwood::inline SAPWOOD_ISA {

struct OneVsAll : Logistic {
  static constexpr const char *name = "one_vs_all", *link = "one_vs_all", *metric = "multi_logloss",
                              *labels = "a class index";
  static constexpr const char* doc =
      "log loss of each of K classes against the others; K trees a round";
  static constexpr double path_smooth = 0.0;  // rare classes would be smoothed away
};
using objective_one_vs_all = OneVsAll;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
