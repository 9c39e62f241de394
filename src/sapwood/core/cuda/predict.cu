// The kernels of predictions, and of tables in device memory.
#include "cuda/binning.h"
