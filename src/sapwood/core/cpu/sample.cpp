// Who is asked: the rows of a round, and their gradients times how often they count (NUMERICS 10).
#include <string.h>

#include <algorithm>

#include "../math/fixed.h"
#include "../math/hash.h"
#include "highest.h"
#include "pool.h"
#include "trainer.h"

namespace sapwood {
namespace {

constexpr int64_t PIECE = 16384;  // rows of a task
constexpr int STEEPEST = 900;     // an output whose gradients are 2^900 times smaller than another's adds nothing

struct Piece {  // of a shard, or of its list of rows; `first`: global position of its first row
  size_t shard;
  int64_t begin, end, first, count = 0;
};

template <class Length>
std::vector<Piece> pieces_of(const Binned& b, Length&& length) {
  std::vector<Piece> pieces;
  for (size_t s = 0; s < b.shards.size(); s++)
    for (int64_t at = 0, n = length(s); at < n; at += PIECE)
      pieces.push_back({s, at, std::min(n, at + PIECE), b.shards[s].first});
  return pieces;
}

}  // namespace

void Trainer::set_sampler(int sampler, std::vector<double> field, const double* share, const int32_t* unit) {
  sampler_ = sampler, sampler_field_ = std::move(field), share_ = share, unit_ = unit;
}

// Sizes of all rows, and how high the bar lies.
Bar Trainer::raise_bar(const SamplerInfo& info, std::vector<double>& field, double subsample, uint64_t tie_key) {
  if (size_.size() == 0) size_ = Memory((size_t)n_ * 4);
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
    for (const int32_t m : weights_.multiple) times = std::max(times, m);
  const double scale = power_of_two(WIDE - exponent_of(info.most(n_outputs_, (double)times, field.data())));
  uint32_t* size = size_.as<uint32_t>();
  const int n_threads = n_ < PIECE ? 1 : n_threads_;
  run(n_threads, (n_ + PIECE - 1) / PIECE, [&](int64_t task, int) {
    for (int64_t at = task * PIECE; at < std::min(n_, (task + 1) * PIECE); at += BLOCK) {
      SizeArgs a{};
      a.n = std::min<int64_t>(BLOCK, n_ - at), a.plane = n_, a.n_outputs = n_outputs_, a.sampler = sampler_;
      a.field = field.data(), a.fine = fine_.as<Pair>() + at, a.unit = unit.data();
      a.multiple = multiplied() ? weights_.multiple.data() + at : nullptr;
      a.scale = scale, a.size = size + at;
      kernels().sizes(a);
    }
  });
  auto lives = [&](int64_t i) { return !zeros_ || weights_.multiple[i] > 0; };
  auto sized = [&](int64_t i, uint32_t& x) { return x = size[i], lives(i); };
  const int64_t target = (int64_t)(info.target(field.data(), subsample) * (double)n_live_ + 0.5);
  Bar bar;
  if (info.counted == Counted::rank) {
    if (target < 1) return {INT64_MAX, 0, 1.0};
    const Highest h = highest(n_, n_threads, sized, [&](int64_t, int64_t reach, int64_t) { return reach >= target; });
    const int64_t need = target - h.above;
    bar.size = h.at;
    if (need < h.here) {  // equals are told apart by a draw of their own
      auto tied = [&](int64_t i, uint32_t& x) {
        if (size[i] != h.at || !lives(i)) return false;
        x = (uint32_t)(draw(tie_key, i) >> 32);
        return true;
      };
      bar.tie = highest(n_, n_threads, tied, [&](int64_t, int64_t reach, int64_t) { return reach >= need; }).at;
    }
  } else if (target < n_live_) {
    const int64_t expected = std::max<int64_t>(target, 1);
    const Highest h = highest(n_, n_threads, sized, [&](int64_t m, int64_t reach, int64_t below) {
      return reach * m + below > expected * m;  // min(1, size / m) adds up to more than expected
    });
    const int64_t below = h.below + h.at * h.here, rest = expected - h.above;
    bar.size = h.at;
    if (below > 0 && rest > 0) bar.mu = (double)below / (double)rest;
  }
  return bar;
}

int64_t Trainer::sample(uint64_t seed, uint64_t round, std::optional<double> subsample) {
  const SamplerInfo& info = sampler_info(sampler_);
  const bool every = !subsample || (!info.weighs && share_ == nullptr && *subsample >= 1.0);
  all_rows_ = every && !zeros_, weighed_ = !every && info.weighs;
  used_.clear();
  if (all_rows_) return n_;
  std::vector<double> field = sampler_field_;
  AskArgs args{};
  args.sampler = sampler_, args.field = field.data(), args.share = share_, args.unit = unit_;
  args.key = key(seed, ROWS, round, 0), args.tie_key = key(seed, ROWS, round, 1);
  args.subsample = subsample.value_or(1.0);
  if (!every && info.counted != Counted::nothing)
    args.bar = raise_bar(info, field, args.subsample, args.tie_key), args.size = size_.as<uint32_t>();
  used_.resize(n_);
  if (list_.size() == 0) list_ = Memory((size_t)n_ * 4);
  if (weighed_ && times_.size() == 0) times_ = Memory((size_t)n_ * 8);
  // Every piece lists its rows where they stand; then the lists move together.
  std::vector<Piece> pieces = pieces_of(binned_, [&](size_t s) { return binned_.shards[s].n_rows; });
  const int n_threads = n_ < PIECE ? 1 : n_threads_;
  run(n_threads, (int64_t)pieces.size(), [&](int64_t task, int) {
    Piece& p = pieces[task];
    int32_t* out = list_.as<int32_t>() + p.first + p.begin;
    double scratch[BLOCK];
    for (int64_t at = p.begin; at < p.end; at += BLOCK) {
      const int64_t row = p.first + at, n = std::min<int64_t>(BLOCK, p.end - at);
      double* factor = weighed_ ? times_.as<double>() + row : scratch;
      if (every) {
        std::fill_n(factor, n, 1.0);
      } else {
        AskArgs a = args;
        a.n = n, a.first = row, a.factor = factor;
        if (a.size != nullptr) a.size += row;
        if (a.share != nullptr) a.share += row;
        if (a.unit != nullptr) a.unit += row;
        kernels().ask(a);
      }
      for (int64_t i = 0; i < n; i++) {
        const bool in = factor[i] > 0.0 && (!zeros_ || weights_.multiple[row + i] > 0);
        used_[row + i] = in;
        out[p.count] = (int32_t)(at + i);
        p.count += in;
      }
    }
  });
  std::vector<int64_t> length(binned_.shards.size(), 0), to(pieces.size());
  int64_t n = 0;
  for (size_t k = 0; k < pieces.size(); k++)
    to[k] = length[pieces[k].shard], length[pieces[k].shard] += pieces[k].count, n += pieces[k].count;
  all_rows_ = n == n_;
  if (all_rows_) {
    used_.clear();
  } else {
    for (size_t s = 0; s < length.size(); s++) chosen_[s].resize(length[s]);
    run(n_threads, (int64_t)pieces.size(), [&](int64_t k, int) {
      const Piece& p = pieces[k];
      memcpy(chosen_[p.shard].data() + to[k], list_.as<int32_t>() + p.first + p.begin, (size_t)p.count * 4);
    });
  }
  if (weighed_)
    for (int k = 0; k < n_outputs_; k++) weigh(k);
  return n;
}

// Fixed point once more, of the sampled rows: wide gradients times how often they count, under scales of their own.
void Trainer::weigh(int output) {
  struct alignas(64) Top {
    double g = 0, h = 0, search = 0;
    int64_t sum_g = 0, sum_h = 0, rows = 0;
  };
  const bool apart = unit_search_ && !unit_leaf_;
  const int64_t plane = output * n_;
  std::vector<Piece> pieces = pieces_of(binned_, [&](size_t s) {
    return all_rows_ ? binned_.shards[s].n_rows : (int64_t)chosen_[s].size();
  });
  std::vector<Top> tops(pieces.size());
  const int n_threads = n_ < PIECE ? 1 : n_threads_;
  const double* times = times_.as<double>();
  auto each = [&](auto&& visit) {  // visit(row, its g, h and hessian of the search, Top)
    run(n_threads, (int64_t)pieces.size(), [&](int64_t task, int) {
      const Piece& p = pieces[task];
      Top top;
      for (int64_t j = p.begin; j < p.end; j++) {
        const int64_t row = p.first + (all_rows_ ? j : chosen_[p.shard][j]);
        const Pair q = fine_.as<Pair>()[plane + row];
        const double f = times[row], h = q.h * f;
        visit(row, q.g * f, h, apart ? apart_.as<Pair>()[plane + row].h * f : h, top);
      }
      tops[task] = top;
    });
  };
  each([](int64_t, double g, double h, double search, Top& top) {
    top.g = std::max(top.g, g < 0.0 ? -g : g), top.h = std::max(top.h, h), top.search = std::max(top.search, search);
  });
  Top top;
  for (const Top& t : tops)
    top.g = std::max(top.g, t.g), top.h = std::max(top.h, t.h), top.search = std::max(top.search, t.search);
  // From exponents of the wide numbers, of which a unit is 2^(e - WIDE), to those of the gradients themselves.
  auto exponent = [](double m, int e) { return m == 0.0 ? 0 : std::max(-960, exponent_of(m) + e - WIDE); };
  const Scale from = wide_[output];
  const int e_search = narrow_[output].h, g_to = exponent(top.g, from.g), h_to = exponent(top.h, from.h),
            search_to = exponent(top.search, e_search);
  auto scale = [](int bits, int to, int e) { return power_of_two(bits - to + e - WIDE); };
  const double gs = scale(WIDE, g_to, from.g), hs = scale(WIDE, h_to, from.h), ss = scale(WIDE, search_to, e_search),
               ngs = scale(NARROW, g_to, from.g), nss = scale(NARROW, search_to, e_search);
  each([&](int64_t row, double g, double h, double search, Top& sum) {
    const int32_t wide_g = quantise_g(g, gs), qg = quantise_g(g, ngs), qh = quantise_h(search, nss);
    fine_.as<Pair>()[plane + row] = {wide_g, quantise_h(h, hs)};
    if (apart) apart_.as<Pair>()[plane + row] = {wide_g, quantise_h(search, ss)};
    const int64_t w = multiplied() ? weights_.multiple[row] : 1;
    if (multiplied()) coarse_.as<Pair>()[plane + row] = {qg, qh};
    else packed_.as<int32_t>()[plane + row] = (int32_t)(((uint32_t)qg << 16) + (uint32_t)qh);
    sum.sum_g += w * (qg < 0 ? -qg : qg), sum.sum_h += w * qh, sum.rows += w;
  });
  Top sum;
  for (const Top& t : tops) sum.sum_g += t.sum_g, sum.sum_h += t.sum_h, sum.rows += t.rows;
  weighed_narrow_[output] = {NARROW, g_to, search_to}, weighed_wide_[output] = {WIDE, g_to, h_to};
  is_narrow_[output] = narrow_enough(sum.sum_g, sum.sum_h, sum.rows);
}

}  // namespace sapwood
