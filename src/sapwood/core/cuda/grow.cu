// Kernels that grow trees, compiled for what a training needs, or for all.
#include "cuda/columns.h"
#include "cuda/histogram.h"
#include "cuda/leaves.h"
#if !defined(SAPWOOD_POLICY) || SAPWOOD_JOINT
#include "cuda/joint.h"
#endif
#if !defined(SAPWOOD_POLICY) || (SAPWOOD_POLICY == 1 && !SAPWOOD_JOINT)
#include "cuda/level.h"
#endif
#if !defined(SAPWOOD_POLICY) || (SAPWOOD_POLICY != 1 && !SAPWOOD_JOINT)
#include "cuda/search.h"
#endif
