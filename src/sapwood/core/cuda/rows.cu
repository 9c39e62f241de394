// Kernels over all rows that know the objective and the sampler, by the names of their headers.
#include "cuda/sampling.h"
#include SAPWOOD_OBJECTIVE_HEADER
#include SAPWOOD_SAMPLER_HEADER

namespace sapwood {

SAPWOOD_BOUNDED(256, 4) void gradient_pass(SAPWOOD_JOB, int pass, int pending) {
  const Job& j = job;
  pass_rows<SAPWOOD_OBJECTIVE>(j, pass, pending != 0);
}

// place: of the tree among those of all copies of the round
SAPWOOD_KERNEL void add_values(SAPWOOD_JOB, int k, int place) {
  const Job& j = job;
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t row = first; row < j.n; row += step) {
    double& score = j.score[k * j.n + row];
    score = score + j.node_value[place * j.max_nodes + j.leaf[place * j.n + row]];
  }
}

// Gradients that no tree has used. kept: their scales hold from now on
SAPWOOD_KERNEL void forget_gradients(SAPWOOD_JOB, int kept, int) {
  for (int k = 0; k < job.n_outputs; k++) {
    if (!kept) {
      job.output[k].n_passes = 0;
    }
    fix_scales(job, job.output[k]);
  }
}

SAPWOOD_KERNEL void forget_sample(SAPWOOD_JOB, int, int) {
  for (int copy = 0; copy < job.n_copies; copy++) {
    job.growth[copy].n_rows = 0;
  }
  for (int k = 0; k < job.n_outputs && job.n_copies > 1; k++) {
    fix_scales(job, job.output[k]);
  }
  if (job.sampling == nullptr || !job.draws) {
    return;
  }
  begin_sample<SAPWOOD_SAMPLER>(job);
  clear_reweighted(job);
}
SAPWOOD_KERNEL void count_norms(SAPWOOD_JOB, int digit, int ties) {
  count_digits<SAPWOOD_SAMPLER>(job, digit, ties != 0);
}
SAPWOOD_KERNEL void choose_norm(SAPWOOD_JOB, int digit, int ties) {
  choose_digit<SAPWOOD_SAMPLER>(job, digit, ties != 0);
}
SAPWOOD_KERNEL void draw_rows(SAPWOOD_JOB, int, int) {
  sample_rows<SAPWOOD_SAMPLER>(job);
}
SAPWOOD_KERNEL void reweigh(SAPWOOD_JOB, int pass, int) {
  reweigh_rows(job, pass);
}
SAPWOOD_KERNEL void end_reweigh(SAPWOOD_JOB, int, int) {
  end_reweighted(job);
}

}  // namespace sapwood
