#include "registry.h"

#include "shelf_growers.inc"     // made by CMake from grower/*.h
#include "shelf_objectives.inc"  // made by CMake from objective/*.h
#include "shelf_samplers.inc"    // made by CMake from sampler/*.h

namespace sapwood {
namespace {

// clang-format off
#define SAPWOOD_ROW(T)                                                                                                 \
  ObjectiveInfo{T::name, T::doc, T::link, T::metric, T::labels, T::leaf, T::pointwise, T::constant_hessian, T::hessian_is_bound, T::convex, \
                T::knots, T::adaptive, T::mean_start, T::steps, T::n_fields, T::fields, T::path_smooth, T::default_min_samples_leaf, \
                T::start},
// clang-format on
constexpr ObjectiveInfo objectives[] = {SAPWOOD_OBJECTIVES(SAPWOOD_ROW)};
#undef SAPWOOD_ROW
#define SAPWOOD_ROW(T) GrowerInfo{T::name, T::doc, T::whole_level, T::shared_split, T::before},
constexpr GrowerInfo growers[] = {SAPWOOD_GROWERS(SAPWOOD_ROW)};
#undef SAPWOOD_ROW
#define SAPWOOD_ROW(T)                                                                            \
  SamplerInfo{T::name,     T::doc,    T::threshold, T::reweights, T::takes_subsample, T::l1_norm, \
              T::n_fields, T::fields, T::max_norm,  T::prepare,   T::target},
constexpr SamplerInfo samplers[] = {SAPWOOD_SAMPLERS(SAPWOOD_ROW)};
#undef SAPWOOD_ROW

}  // namespace

int n_objectives() {
  return sizeof objectives / sizeof objectives[0];
}
int n_growers() {
  return sizeof growers / sizeof growers[0];
}
int n_samplers() {
  return sizeof samplers / sizeof samplers[0];
}
const ObjectiveInfo& objective_info(int i) {
  return objectives[i];
}
const GrowerInfo& grower_info(int i) {
  return growers[i];
}
const SamplerInfo& sampler_info(int i) {
  return samplers[i];
}

}  // namespace sapwood
