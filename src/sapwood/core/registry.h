// The shelves as tables: every plug-in that CMake found in objective/ and grower/, by name.
#pragma once
#include "math/types.h"

namespace sapwood {

struct ObjectiveInfo {
  const char *name, *doc, *link, *metric;
  bool pointwise, constant_hessian;
  double path_smooth;            // what path_smooth="auto" means for it
  double (*start)(double mean);  // the best constant for a mean label (pointwise) or a class prior
};

struct GrowerInfo {
  const char *name, *doc;
  bool whole_level, shared_split;
  bool (*before)(const Open&, const Open&);
};

int n_objectives();
int n_growers();
const ObjectiveInfo& objective_info(int i);
const GrowerInfo& grower_info(int i);

}  // namespace sapwood
