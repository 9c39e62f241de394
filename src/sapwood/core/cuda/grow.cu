// Kernels that grow trees.
#include "cuda/histogram.h"
#include "cuda/leaves.h"
#include "cuda/search.h"
