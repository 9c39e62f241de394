// Kernels of linear leaves.
#include "cuda/lines.h"
