// The shelves as tables: every plug-in that CMake finds in objective/, grower/ and sampler/, by
// name.
#pragma once
#include "math/types.h"

namespace sapwood {

struct ObjectiveInfo {  // math/loss.h explains each member
  const char *name, *doc, *link, *metric, *labels, *leaf;
  bool pointwise, constant_hessian, hessian_is_bound, convex, knots, adaptive, mean_start;
  int steps, n_fields;
  const Field* fields;
  double path_smooth;
  double (*default_min_samples_leaf)(const double* field);
  double (*start)(double mean, const double* field);
};

struct GrowerInfo {
  const char *name, *doc;
  bool whole_level, shared_split;  // splits all nodes of a level at once; gives them one split
  bool (*before)(const Open&, const Open&);
};

struct SamplerInfo {  // math/sample.h explains each member
  const char *name, *doc;
  Threshold threshold;
  bool reweights, takes_subsample, l1_norm;
  int n_fields;
  const char* const* fields;
  double (*max_norm)(int n_outputs, double times, const double* field);
  void (*prepare)(double* field, double unit, double mean2);
  double (*target)(const double* field, double subsample);
};

int n_objectives();
int n_growers();
int n_samplers();
const ObjectiveInfo& objective_info(int i);
const GrowerInfo& grower_info(int i);
const SamplerInfo& sampler_info(int i);

}  // namespace sapwood
