// RowSample: the rows of a round and their sampling weights (NUMERICS 10). Enters: gradients.
// Leaves: row ids by shard.
#pragma once
#include <optional>
#include <vector>

#include "cpu/rows/scores.h"

namespace sapwood {

struct Quantised;

struct SampleTask {  // rows [begin, end) of a shard, sampled by one task
  size_t shard;
  int64_t begin, end;
  int64_t first;  // place of the shard's first row in arrays by row
  int64_t count;  // sampled rows; they are listed from place first + begin on
  int64_t to;     // how many rows of the shard were sampled before these
};

struct RowSample {
  bool all_rows = true;     // every row of every holder
  bool reweighted = false;  // sampled rows have weights other than 1
  // gradients are stored in the order of the sampled rows; exact trees need them by row
  bool gathered = false;
  std::vector<std::vector<int32_t>> rows;  // by shard: row ids; empty where all rows are sampled
  std::vector<SampleTask> tasks;
  Memory list;           // (n) int32, sampled rows, task by task
  Memory sample_weight;  // (n) double, their weights, where reweighted

  // copies the rows of a task behind those of the tasks before it
  void append(const SampleTask& task);
  const uint8_t* in_sample(const RowState& s);  // (n) 1: sampled; null: all rows are
  // (n) real weight times sampling weight; null: all 1
  const double* weight(const RowState& s);
  void forget() { mask_.clear(); }  // call when rows change

 private:
  std::vector<uint8_t> mask_;
  std::vector<double> weight_;
};

struct RowSampler {
  RowSampler();  // uniform
  int sampler = 0;
  std::vector<double> field;
  const double* subsample_by_row = nullptr;  // (n), or null: one subsample for all rows
  // (n) whole groups are in the sample or not; null: single rows
  const int32_t* group = nullptr;
  // of the round before: this round's is usually close to it
  int64_t last_threshold = -1;
  Memory norm;  // (n) uint32, gradient norms

  const SamplerInfo& info() const { return sampler_info(sampler); }
  // Whether norms are |g| of the wide gradients as they are, so that no pass has to compute them.
  bool norm_is_abs_gradient(const RowState& s) const {
    return info().l1_norm && s.n_outputs == 1 && !s.repeated();
  }
  bool takes_all(std::optional<double> subsample) const {
    return !subsample || (!info().reweights && subsample_by_row == nullptr && *subsample >= 1.0);
  }
  // Samples the rows of a round; returns how many of this process. Reweighted rows are listed, but
  // not yet appended.
  int64_t draw(const RowState& s, const Quantised& q, uint64_t seed, uint64_t round,
               std::optional<double> subsample, RowSample& out);
};

}  // namespace sapwood
