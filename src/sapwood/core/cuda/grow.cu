// Kernels that grow trees.
#include "cuda/columns.h"
#include "cuda/histogram.h"
#include "cuda/leaves.h"
#include "cuda/level.h"
