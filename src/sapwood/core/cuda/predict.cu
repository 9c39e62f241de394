// The kernel of predictions.
#include "cuda/predict.h"
