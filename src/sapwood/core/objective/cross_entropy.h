// Cross-entropy of a probability: logistic loss of labels from 0 to 1.
#pragma once
#include "objective/logistic.h"

namespace sapwood::inline SAPWOOD_ISA {

struct CrossEntropy : Logistic {
  static constexpr const char *name = "cross_entropy", *labels = "a number from 0 to 1";
  static constexpr const char* doc =
      "log loss of labels that are probabilities, log(1 + e^s) - y s";
  static constexpr double path_smooth = 0.0;
};
using objective_cross_entropy = CrossEntropy;  // registers it

}  // namespace sapwood::inline SAPWOOD_ISA
