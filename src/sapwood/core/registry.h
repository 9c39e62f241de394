// The shelves as tables: every plug-in that CMake found in objective/ and grower/, by name.
#pragma once
#include "math/types.h"

namespace sapwood {

struct ObjectiveInfo {  // math/loss.h says what each means
  const char *name, *doc, *link, *metric, *labels, *leaf;
  bool pointwise, constant_hessian, bound, knots, adaptive, mean_start;
  int steps, n_fields;
  const Field* fields;
  double path_smooth;
  double (*least_rows)(const double* field);
  double (*start)(double mean, const double* field);
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
