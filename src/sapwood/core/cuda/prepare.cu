// Kernels over the gradients of all rows, before trees grow on them.
#include "cuda/noise.h"
#include "cuda/sketch.h"
