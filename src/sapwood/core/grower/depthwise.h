// Depth-wise growth: all nodes of a level are split before those of the next level, in the order of
// their ids.
#pragma once
#include "math/types.h"

namespace sapwood {

struct Depthwise {
  static constexpr const char* name = "depthwise";
  static constexpr const char* doc = "level by level, every node its own split";
  static constexpr bool whole_level = true, shared_split = false;
  static bool before(const Open& a, const Open& b) { return a.id < b.id; }
};
using grower_depthwise = Depthwise;  // registers it

}  // namespace sapwood
