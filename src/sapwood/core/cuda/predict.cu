// The kernels of predictions, of Shapley values, of evaluation rows, and of tables in device
// memory.
#include "cuda/binning.h"
#include "cuda/evaluate.h"
#include "cuda/explain.h"
