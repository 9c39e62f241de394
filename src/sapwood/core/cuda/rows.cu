// Kernels over all rows that know the objective; OBJECTIVE is the name of its header.
#include "cuda/gradient_pass.h"
#include "sampler/uniform.h"
#include SAPWOOD_OBJECTIVE_HEADER

namespace sapwood {

SAPWOOD_BOUNDED(256, 4) void gradient_pass(SAPWOOD_JOB, int pass, int pending) {
  const Job& j = job;
  pass_rows<SAPWOOD_OBJECTIVE>(j, pass, pending != 0);
}

SAPWOOD_KERNEL void add_values(SAPWOOD_JOB, int k, int) {
  const Job& j = job;
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t row = first; row < j.n; row += step) {
    double& score = j.score[k * j.n + row];
    score = score + j.node_value[k * j.max_nodes + j.leaf[k * j.n + row]];
  }
}

SAPWOOD_KERNEL void forget_sample(SAPWOOD_JOB, int, int) { job.growth->n_rows = 0; }
SAPWOOD_KERNEL void draw_rows(SAPWOOD_JOB, int, int) {
  const Job& j = job;
  sample_rows<sampler_uniform>(j);
}

}  // namespace sapwood
