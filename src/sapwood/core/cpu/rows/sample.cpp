// Who is asked: the rows of a round, and their gradients times how often they count (NUMERICS 10).
#include <string.h>

#include <algorithm>

#include "cpu/rows/select.h"
#include "cpu/trainer.h"
#include "host/pool.h"
#include "math/fixed.h"
#include "math/hash.h"

namespace sapwood {
namespace {

constexpr int STEEPEST = 900;  // an output whose gradients are 2^900 times smaller than another's adds nothing

}  // namespace

void Trainer::set_sampler(int sampler, std::vector<double> field, const double* share, const int32_t* unit) {
  sampler_ = sampler, sampler_field_ = std::move(field), share_ = share, unit_ = unit;
}

// Sizes of all rows, and how high the bar lies.
SampleThreshold Trainer::find_threshold(const SamplerInfo& info, std::vector<double>& field, double subsample,
                                        uint64_t tie_key) {
  const bool direct = by_gradient();
  if (size_.size() == 0 && !direct) size_ = Memory((size_t)n_ * 4);
  int top = wide_[0].g;
  for (const Scale& s : wide_) top = std::max(top, s.g);
  std::vector<double> unit(n_outputs_);
  double mean2 = 0.0;
  for (int k = 0; k < n_outputs_; k++) {
    const int e = std::max(wide_[k].g - top, -STEEPEST);
    unit[k] = power_of_two(e - WIDE);
    const double mean = (double)sum_g_[k] / (double)n_repeats_ * power_of_two(e - NARROW);
    mean2 = mean2 + mean * mean;
  }
  info.prepare(field.data(), power_of_two(std::max(-top, -1000)), mean2);
  int32_t times = 1;
  if (multiplied())
    for (const int32_t m : weights_.repeats) times = std::max(times, m);
  const double scale = power_of_two(WIDE - exponent_of(info.max_norm(n_outputs_, (double)times, field.data())));
  uint32_t* size = size_.as<uint32_t>();
  const Pair* fine = fine_.as<Pair>();
  auto size_at = [=](int64_t i) { return direct ? abs_gradient(fine[i]) : size[i]; };
  const int n_threads = threads_for(n_, n_threads_);
  auto measure = [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end && !direct; at += BLOCK) {
      NormArgs a{};
      a.n = std::min<int64_t>(BLOCK, end - at), a.plane = n_, a.n_outputs = n_outputs_, a.sampler = sampler_;
      a.field = field.data(), a.leaf_pairs = fine_.as<Pair>() + at, a.quantum = unit.data();
      a.repeats = multiplied() ? weights_.repeats.data() + at : nullptr;
      a.scale = scale, a.norm = size + at;
      kernels().gradient_norms(a);
    }
  };
  const int32_t* repeats = zeros_ ? weights_.repeats.data() : nullptr;
  auto pick = [=](int64_t begin, int64_t end, uint32_t* room, auto&& number) {  // of rows that are alive
    int64_t n = 0;
    for (int64_t i = begin; i < end; i++)
      if (repeats == nullptr || repeats[i] > 0) n += number(i, room[n]);
    return Values{room, n};
  };
  auto sized = [=](int64_t begin, int64_t end, uint32_t* room) {
    if (repeats != nullptr) return pick(begin, end, room, [=](int64_t i, uint32_t& x) { return x = size_at(i), true; });
    if (direct) kernels().abs_gradients(fine + begin, end - begin, room);
    return Values{direct ? room : size + begin, end - begin};
  };
  const int64_t target = (int64_t)(info.target(field.data(), subsample) * (double)n_live_ + 0.5);
  SampleThreshold bar;
  if (info.threshold == Threshold::top_k) {
    if (target < 1) return {INT64_MAX, 0, 1.0};
    auto enough = [&](int64_t, int64_t reach, int64_t) { return reach >= target; };
    const Selected h = select_threshold(n_, n_threads, measure, sized, enough, last_threshold_);
    const int64_t need = target - h.above;
    bar.norm = h.at;
    if (need < h.here) {  // equals are told apart by a draw of their own
      auto tied = [=](int64_t begin, int64_t end, uint32_t* room) {
        return pick(begin, end, room, [=](int64_t i, uint32_t& x) {
          if (size_at(i) != h.at) return false;
          x = (uint32_t)(draw(tie_key, (uint64_t)i) >> 32);
          return true;
        });
      };
      auto fill = [&](int64_t, int64_t reach, int64_t) { return reach >= need; };
      bar.tie = select_threshold(n_, n_threads, [](int64_t, int64_t) {}, tied, fill, -1).at;
    }
  } else if (target < n_live_) {
    const int64_t expected = std::max<int64_t>(target, 1);
    auto enough = [&](int64_t m, int64_t reach, int64_t below) {
      return reach * m + below > expected * m;  // min(1, size / m) adds up to more than expected
    };
    const Selected h = select_threshold(n_, n_threads, measure, sized, enough, last_threshold_);
    const int64_t below = h.below + h.at * h.here, rest = expected - h.above;
    bar.norm = h.at;
    if (below > 0 && rest > 0) bar.mu = (double)below / (double)rest;
  }
  last_threshold_ = bar.norm;
  return bar;
}

int64_t Trainer::sample(uint64_t seed, uint64_t round, std::optional<double> subsample) {
  const SamplerInfo& info = sampler_info(sampler_);
  const bool every = !subsample || (!info.reweights && share_ == nullptr && *subsample >= 1.0);
  all_rows_ = every && !zeros_, reweighted_ = !every && info.reweights;
  if (!words_ && !(reweighted_ && by_gradient())) {  // it is not as the last one was
    words_ = true, pass(false);
    find_precision();
  }
  if (all_rows_) return n_;
  std::vector<double> field = sampler_field_;
  SampleArgs args{};
  args.sampler = sampler_, args.field = field.data(), args.row_subsample = share_, args.group = unit_;
  args.key = key(seed, ROWS, round, 0), args.tie_key = key(seed, ROWS, round, 1);
  args.subsample = subsample.value_or(1.0), args.all_rows = every;
  args.repeats = zeros_ ? weights_.repeats.data() : nullptr;
  if (!every && info.threshold != Threshold::none)
    args.threshold = find_threshold(info, field, args.subsample, args.tie_key), args.norm = size_.as<uint32_t>(),
    args.leaf_pairs = by_gradient() ? fine_.as<Pair>() : nullptr;
  used_.clear();
  if (list_.size() == 0) list_ = Memory((size_t)n_ * 4);
  if (reweighted_ && times_.size() == 0) times_ = Memory((size_t)n_ * 8);
  pieces_.clear();
  for (size_t s = 0; s < binned_.shards.size(); s++)
    for (int64_t at = 0; at < binned_.shards[s].n_rows; at += TASK_ROWS)
      pieces_.push_back({s, at, std::min(binned_.shards[s].n_rows, at + TASK_ROWS), binned_.shards[s].first, 0, 0});
  const int n_threads = threads_for(n_, n_threads_);
  run(n_threads, (int64_t)pieces_.size(), [&](int64_t task, int) {
    Piece& p = pieces_[task];
    SampleArgs a = args;
    a.shard = p.first, a.first = p.first + p.begin, a.n = p.end - p.begin;
    a.rows = list_.as<int32_t>() + a.first;
    a.sample_weight = reweighted_ ? times_.as<double>() + a.first : nullptr;
    p.count = kernels().sample_rows(a);
  });
  std::vector<int64_t> length(binned_.shards.size(), 0);
  int64_t n = 0;
  for (Piece& p : pieces_) p.to = length[p.shard], length[p.shard] += p.count, n += p.count;
  all_rows_ = n == n_;
  for (size_t s = 0; s < length.size(); s++) chosen_[s].resize(all_rows_ ? 0 : length[s]);
  if (!reweighted_) run(n_threads, (int64_t)pieces_.size(), [&](int64_t k, int) { choose(pieces_[k]); });
  for (int k = 0; k < n_outputs_ && reweighted_; k++) requantise(k);
  return n;
}

void Trainer::choose(const Piece& p) {
  if (!all_rows_) memcpy(chosen_[p.shard].data() + p.to, list_.as<int32_t>() + p.first + p.begin, (size_t)p.count * 4);
}

// (n) who was asked; null: all
const uint8_t* Trainer::used() {
  if (all_rows_) return nullptr;
  if (used_.empty()) {
    used_.assign(n_, 0);
    for (size_t s = 0; s < chosen_.size(); s++)
      for (const int32_t row : chosen_[s]) used_[binned_.shards[s].first + row] = 1;
  }
  return used_.data();
}

// (n) real weights times how often a row counts.
const double* Trainer::reweighted_factor() {
  if (!reweighted_) return factor_at_;
  reweighted_factor_.assign(n_, 0.0);
  for (const Piece& p : pieces_)
    for (int64_t j = p.first + p.begin; j < p.first + p.begin + p.count; j++) {
      const int64_t row = p.first + list_.as<int32_t>()[j];
      reweighted_factor_[row] = (factor_at_ == nullptr ? 1.0 : factor_at_[row]) * times_.as<double>()[j];
    }
  return reweighted_factor_.data();
}

// Puts the listed pairs of an output at their rows.
void Trainer::spread(int output) {
  if (spread_fine_.size() == 0) spread_fine_ = Memory((size_t)n_ * n_outputs_ * sizeof(Pair));
  run(threads_for(n_, n_threads_), (int64_t)pieces_.size(), [&](int64_t task, int) {
    const Piece& p = pieces_[task];
    const int64_t first = output * n_ + p.first;
    const int32_t* rows = list_.as<int32_t>() + p.first + p.begin;
    const Pair* from = reweighted_fine_.as<Pair>() + first + p.to;
    Pair* to = spread_fine_.as<Pair>() + first;
    for (int64_t i = 0; i < p.count; i++) to[rows[i]] = from[i];
  });
}

// Fixed point once more, of the sampled rows: wide gradients times how often they count, under scales of their own.
void Trainer::requantise(int output) {
  const bool apart = unit_search_ && !unit_leaf_;
  const size_t n_bytes = (size_t)n_ * n_outputs_ * sizeof(Pair);
  if (reweighted_fine_.size() == 0) reweighted_fine_ = Memory(n_bytes);
  if (apart && reweighted_apart_.size() == 0) reweighted_apart_ = Memory(n_bytes);
  auto all_pieces = [&](const Scale& narrow, const Scale& wide) {
    std::vector<RequantiseArgs> parts(pieces_.size());
    run(threads_for(n_, n_threads_), (int64_t)pieces_.size(), [&](int64_t task, int) {
      const Piece& p = pieces_[task];
      if (output == 0) choose(p);
      const int64_t first = output * n_ + p.first, out = first + (listed() ? p.to : 0);
      RequantiseArgs a{};
      a.gathered = listed();
      a.rows = list_.as<int32_t>() + p.first + p.begin, a.sample_weight = times_.as<double>() + p.first + p.begin;
      a.n = p.count, a.leaf_pairs = fine_.as<Pair>() + first,
      a.reweighted_leaf_pairs = reweighted_fine_.as<Pair>() + out;
      if (apart)
        a.search_pairs_wide = apart_.as<Pair>() + first,
        a.reweighted_search_pairs = reweighted_apart_.as<Pair>() + first;
      a.narrow = &narrow, a.wide = &wide, a.packed = packed_.as<int32_t>() + out;
      if (multiplied())
        a.repeats = weights_.repeats.data() + p.first, a.search_pairs_narrow = coarse_.as<Pair>() + first;
      kernels().requantise(a);
      parts[task] = a;
    });
    RequantiseArgs sum{};
    for (const RequantiseArgs& a : parts) {
      for (int i = 0; i < 3; i++) sum.max_bits[i] = std::max(sum.max_bits[i], a.max_bits[i]);
      sum.sum_g += a.sum_g, sum.sum_h += a.sum_h, sum.count += a.count;
    }
    return sum;
  };
  // Of the wide numbers a unit is 2^(e - WIDE): from exponents of gradients to those over the numbers, and back.
  const int unit[3] = {wide_[output].g - WIDE, wide_[output].h - WIDE, narrow_[output].h - WIDE};
  auto over = [&](int e, int i) { return std::clamp(e - unit[i], -STEEPEST, STEEPEST); };
  Scale &narrow = reweighted_narrow_[output], &wide = reweighted_wide_[output];
  for (bool right = false; !right;) {  // with the scales of last time, which nearly always are right
    const Scale low{NARROW, over(wide.g, 0), over(narrow.h, 2)}, high{WIDE, over(wide.g, 0), over(wide.h, 1)};
    const RequantiseArgs sum = all_pieces(low, high);
    int e[3];
    for (int i = 0; i < 3; i++) {
      const double top = of_bits(sum.max_bits[i]);
      e[i] = top == 0.0 ? 0 : std::max(-960, exponent_of(top) + unit[i]);
    }
    right = e[0] == wide.g && e[1] == wide.h && e[2] == narrow.h;
    narrow = {NARROW, e[0], e[2]}, wide = {WIDE, e[0], e[1]};
    is_narrow_[output] = narrow_enough(sum.sum_g, sum.sum_h, sum.count);
  }
}

}  // namespace sapwood
