// Several labels of 0 or 1 per row: the sum of their logistic losses, with one score and one tree
// per label.
#pragma once
#include "objective/logistic.h"

namespace sapwood::inline SAPWOOD_ISA {

struct Multilabel : Logistic {
  static constexpr const char* name = "multilabel";
  static constexpr const char* doc =
      "log loss of several labels of 0 or 1 a row; a tree for each of them a round";
  static constexpr double path_smooth = 0.0;  // rare labels would be smoothed away
};
using objective_multilabel = Multilabel;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
