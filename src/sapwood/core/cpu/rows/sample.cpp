#include "cpu/rows/sample.h"

#include <string.h>

#include <algorithm>
#include <string>

#include "cpu/rows/quantise.h"
#include "cpu/rows/select.h"
#include "math/fixed.h"
#include "math/hash.h"

namespace sapwood {
namespace {

// The gradient norms of all rows, as 32-bit numbers.
class Norms {
 public:
  Norms(const RowState& s, const Quantised& q, RowSampler& sampler, std::vector<double>& field)
      : s_(s),
        direct_(sampler.norm_is_abs_gradient(s)),
        pairs_(q.all.leaf_pairs.as<Pair>()),
        quantum_(s.n_outputs) {
    if (sampler.norm.size() == 0 && !direct_) {
      sampler.norm = Memory((size_t)s.n * 4);
    }
    norm_ = sampler.norm.as<uint32_t>();
    int top = q.all.wide[0].g;
    for (const Scale& scale : q.all.wide) {
      top = std::max(top, scale.g);
    }
    double mean2 = 0.0;
    for (int k = 0; k < s.n_outputs; k++) {
      const int e = std::max(q.all.wide[k].g - top, -MAX_SCALE_GAP);
      quantum_[k] = power_of_two(e - WIDE);
      const double mean = (double)q.sums[k] / (double)s.n_repeats * power_of_two(e - NARROW);
      mean2 = mean2 + mean * mean;
    }
    const SamplerInfo& info = sampler.info();
    info.prepare(field.data(), power_of_two(std::max(-top, -1000)), mean2);
    args_.plane = s.n;
    args_.n_outputs = s.n_outputs;
    args_.sampler = sampler.sampler;
    args_.field = field.data();
    args_.quantum = quantum_.data();
    const double max_norm = info.max_norm(s.n_outputs, (double)s.max_repeats, field.data());
    args_.scale = power_of_two(WIDE - exponent_of(max_norm));
  }

  void compute(int64_t begin, int64_t end) const {
    for (int64_t at = begin; at < end && !direct_; at += BLOCK) {
      NormArgs a = args_;
      a.n = std::min<int64_t>(BLOCK, end - at);
      a.leaf_pairs = pairs_ + at;
      a.norm = norm_ + at;
      a.repeats = s_.repeated() ? s_.weights.repeats.data() + at : nullptr;
      kernels().gradient_norms(a);
    }
  }
  // The norms of the rows of positive weight; they may be written to `room`.
  Values live(int64_t begin, int64_t end, uint32_t* room) const {
    if (direct_) {
      kernels().abs_gradients(pairs_ + begin, end - begin, room);
    }
    const uint32_t* norm = direct_ ? room : norm_ + begin;
    if (!s_.has_zeros()) {
      return {norm, end - begin};
    }
    int64_t n = 0;
    for (int64_t i = 0; i < end - begin; i++) {
      if (s_.weights.repeats[begin + i] > 0) {
        room[n++] = norm[i];
      }
    }
    return {room, n};
  }
  // Draws for the rows of positive weight whose norm is `norm`, made from their global positions.
  Values tied(int64_t begin, int64_t end, uint32_t norm, uint64_t key, uint32_t* room) const {
    const int32_t* repeats = s_.has_zeros() ? s_.weights.repeats.data() : nullptr;
    int64_t n = 0;
    auto take = [=, &n](int64_t i, int64_t position, uint32_t own) {
      if (own == norm && (repeats == nullptr || repeats[i] > 0)) {
        room[n++] = (uint32_t)(draw(key, position) >> 32);
      }
    };
    for (const Shard& shard : s_.binned.shards) {
      const int64_t to = std::min(end, shard.first + shard.n_rows);
      const int64_t shift = shard.position - shard.first;
      for (int64_t i = std::max(begin, shard.first); i < to && direct_; i++) {
        take(i, i + shift, abs_gradient(pairs_[i]));
      }
      for (int64_t i = std::max(begin, shard.first); i < to && !direct_; i++) {
        take(i, i + shift, norm_[i]);
      }
    }
    return {room, n};
  }

 private:
  const RowState& s_;
  bool direct_;
  const Pair* pairs_;
  std::vector<double> quantum_;
  uint32_t* norm_ = nullptr;
  NormArgs args_{};
};

// The threshold of a sampler that needs one, from the norms of the rows of all holders.
SampleThreshold find_threshold(const RowState& s, const Quantised& q, RowSampler& sampler,
                               std::vector<double>& field, double subsample, uint64_t tie_key) {
  const Norms norms(s, q, sampler, field);
  const int n_threads = threads_for(s.n, s.n_threads);
  auto compute = [&](int64_t begin, int64_t end) {
    norms.compute(begin, end);
  };
  auto live = [&](int64_t begin, int64_t end, uint32_t* room) {
    return norms.live(begin, end, room);
  };
  auto select = [&](const auto& prepare, const auto& values, const auto& enough, int64_t guess) {
    return select_threshold(s.n, n_threads, s.reduce, prepare, values, enough, guess);
  };
  const int64_t target =
      (int64_t)(sampler.info().target(field.data(), subsample) * (double)s.n_live + 0.5);
  SampleThreshold out;
  if (sampler.info().threshold == Threshold::top_k) {
    if (target < 1) {
      return {INT64_MAX, 0, 1.0};
    }
    auto enough = [&](int64_t, int64_t reach, int64_t) {
      return reach >= target;
    };
    const Selected h = select(compute, live, enough, sampler.last_threshold);
    const int64_t need = target - h.above;
    out.norm = h.at;
    if (need < h.here) {  // rows of equal norm are told apart by a draw of their own
      auto tied = [&](int64_t begin, int64_t end, uint32_t* room) {
        return norms.tied(begin, end, (uint32_t)h.at, tie_key, room);
      };
      auto fill = [&](int64_t, int64_t reach, int64_t) {
        return reach >= need;
      };
      out.tie = (uint64_t)select([](int64_t, int64_t) {}, tied, fill, -1).at;
    }
  } else if (target < s.n_live) {
    const int64_t expected = std::max<int64_t>(target, 1);
    auto enough = [&](int64_t m, int64_t reach, int64_t below) {
      return reach * m + below > expected * m;  // the sum of min(1, norm / m) is more than expected
    };
    const Selected h = select(compute, live, enough, sampler.last_threshold);
    const int64_t below = h.below + h.at * h.here;
    const int64_t rest = expected - h.above;
    out.norm = h.at;
    if (below > 0 && rest > 0) {
      out.mu = (double)below / (double)rest;
    }
  }
  sampler.last_threshold = out.norm;
  return out;
}

}  // namespace

RowSampler::RowSampler() {
  while (std::string(info().name) != "uniform") {
    sampler++;
  }
}

int64_t RowSampler::draw(const RowState& s, const Quantised& q, uint64_t seed, uint64_t round,
                         std::optional<double> subsample, RowSample& out) {
  std::vector<double> own_field = field;
  SampleArgs args{};
  args.sampler = sampler;
  args.field = own_field.data();
  args.row_subsample = subsample_by_row;
  args.group = group;
  args.key = key(seed, ROWS, round, 0);
  args.tie_key = key(seed, ROWS, round, 1);
  args.subsample = subsample.value_or(1.0);
  args.all_rows = takes_all(subsample);
  args.repeats = s.has_zeros() ? s.weights.repeats.data() : nullptr;
  if (!args.all_rows && info().threshold != Threshold::none) {
    args.threshold = find_threshold(s, q, *this, own_field, args.subsample, args.tie_key);
    args.norm = norm.as<uint32_t>();
    args.leaf_pairs = norm_is_abs_gradient(s) ? q.all.leaf_pairs.as<Pair>() : nullptr;
  }
  if (out.list.size() == 0) {
    out.list = Memory((size_t)s.n * 4);
  }
  if (out.reweighted && out.sample_weight.size() == 0) {
    out.sample_weight = Memory((size_t)s.n * 8);
  }
  const std::vector<Shard>& shards = s.binned.shards;
  out.forget();
  out.tasks.clear();
  for (size_t k = 0; k < shards.size(); k++) {
    for (int64_t at = 0; at < shards[k].n_rows; at += TASK_ROWS) {
      out.tasks.push_back(
          {k, at, std::min(shards[k].n_rows, at + TASK_ROWS), shards[k].first, 0, 0});
    }
  }
  const int n_threads = threads_for(s.n, s.n_threads);
  run(n_threads, (int64_t)out.tasks.size(), [&](int64_t task, int) {
    SampleTask& t = out.tasks[task];
    SampleArgs a = args;
    a.shard = t.first;
    a.first = t.first + t.begin;
    a.n = t.end - t.begin;
    a.position = shards[t.shard].position;
    a.rows = out.list.as<int32_t>() + a.first;
    a.sample_weight = out.reweighted ? out.sample_weight.as<double>() + a.first : nullptr;
    t.count = kernels().sample_rows(a);
  });
  std::vector<int64_t> length(shards.size(), 0);
  int64_t n = 0;
  for (SampleTask& t : out.tasks) {
    t.to = length[t.shard];
    length[t.shard] += t.count;
    n += t.count;
  }
  int64_t n_sampled = n;
  reduce_sum(s.reduce, &n_sampled, 1);
  out.all_rows = n_sampled == s.n_all;
  out.rows.resize(shards.size());
  for (size_t k = 0; k < length.size(); k++) {
    out.rows[k].resize(out.all_rows ? 0 : length[k]);
  }
  if (!out.reweighted) {
    run(n_threads, (int64_t)out.tasks.size(), [&](int64_t k, int) {
      out.append(out.tasks[k]);
    });
  }
  return n;
}

void RowSample::append(const SampleTask& t) {
  if (!all_rows) {
    memcpy(rows[t.shard].data() + t.to, list.as<int32_t>() + t.first + t.begin,
           (size_t)t.count * 4);
  }
}

const uint8_t* RowSample::in_sample(const RowState& s) {
  if (all_rows) {
    return nullptr;
  }
  if (mask_.empty()) {
    mask_.assign(s.n, 0);
    for (size_t k = 0; k < rows.size(); k++) {
      for (const int32_t row : rows[k]) {
        mask_[s.binned.shards[k].first + row] = 1;
      }
    }
  }
  return mask_.data();
}

const double* RowSample::weight(const RowState& s) {
  if (!reweighted) {
    return s.weight_at();
  }
  weight_.assign(s.n, 0.0);
  for (const SampleTask& t : tasks) {
    for (int64_t j = t.first + t.begin; j < t.first + t.begin + t.count; j++) {
      const int64_t row = t.first + list.as<int32_t>()[j];
      weight_[row] = (s.weight.empty() ? 1.0 : s.weight[row]) * sample_weight.as<double>()[j];
    }
  }
  return weight_.data();
}

}  // namespace sapwood
