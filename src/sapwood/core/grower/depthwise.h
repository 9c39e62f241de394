// Depth-wise growth: all nodes of a level are split before those of the next level, in the order of their ids.
#pragma once
#include "math/types.h"

namespace sapwood {

struct Depthwise {
  static constexpr const char* name = "depthwise";
  static constexpr const char* doc = "level by level, every node its own split";
  static constexpr bool whole_level = true;    // expand a level at once
  static constexpr bool shared_split = false;  // one split for a whole level
  static bool before(const Open& a, const Open& b) { return a.id < b.id; }
};
using grower_depthwise = Depthwise;  // registers it

}  // namespace sapwood
