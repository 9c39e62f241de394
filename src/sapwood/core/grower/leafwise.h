// Leaf-wise growth: the node whose split gains most is split next; if gains are equal, the node
// with the lower id.
#pragma once
#include "math/types.h"

namespace sapwood {

struct Leafwise {
  static constexpr const char* name = "leafwise";
  static constexpr const char* doc = "best first: the node that gains most is split next";
  static constexpr bool whole_level = false, shared_split = false;
  static bool before(const Open& a, const Open& b) {
    return a.gain > b.gain || (a.gain == b.gain && a.id < b.id);
  }
};
using grower_leafwise = Leafwise;  // registers it

}  // namespace sapwood
