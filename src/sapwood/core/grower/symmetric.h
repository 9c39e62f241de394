// Symmetric growth: all nodes of a level take one split, so a tree is a table of 2^depth values.
#pragma once
#include "math/types.h"

namespace sapwood {

struct Symmetric {
  static constexpr const char* name = "symmetric";
  static constexpr const char* doc = "one split a level, shared by all its nodes";
  static constexpr bool whole_level = true, shared_split = true;
  static bool before(const Open& a, const Open& b) { return a.id < b.id; }
};
using grower_symmetric = Symmetric;  // registers it

}  // namespace sapwood
