#include "cpu/leaf/leaf.h"

#include <algorithm>
#include <functional>

#include "host/pool.h"
#include "math/gain.h"
#include "math/linear.h"
#include "math/real.h"
#include "registry.h"

namespace sapwood {
namespace {

constexpr int HALVINGS = 10;
constexpr double CLOSE = 1e-7;  // steps up to this are not tested: the loss is too flat there to tell

double size(double x) { return x < 0.0 ? -x : x; }
bool finite(double x) { return x - x == 0.0; }

int leaf_of(const LeafRows& r, int64_t i) {
  return r.leaf.data == nullptr ? 0
         : r.leaf.wide          ? ((const uint16_t*)r.leaf.data)[i]
                                : ((const uint8_t*)r.leaf.data)[i];
}
bool in_use(const LeafRows& r, int64_t i) {
  return (r.used == nullptr || r.used[i]) && (!r.weights.given || r.weights.repeats[i] > 0);
}
bool every_row(const LeafRows& r) { return r.used == nullptr && !r.weights.given; }
int64_t repeat(const LeafRows& r, int64_t i) { return r.weights.whole && r.weights.given ? r.weights.repeats[i] : 1; }

struct alignas(64) Most {
  double mass = 0, level = 0;
};

struct Item {  // a row in a selection
  uint64_t key;
  int64_t mass;
  int32_t group;
};

// Of each group the smallest key whose cumulated mass reaches the target: radix selection by counts, a few bits at a time.
std::vector<uint64_t> select(std::vector<std::vector<Item>>& items, std::vector<int64_t> target, int n_threads) {
  const size_t n = target.size();
  int bits = 11;
  while (bits > 1 && (n << bits) > (1u << 17)) bits--;
  std::vector<uint64_t> prefix(n, 0);
  for (int shift = 64; shift > 0;) {
    const int width = std::min(bits, shift), above = shift;
    shift -= width;
    const uint64_t mask = (1ull << width) - 1;
    std::vector<std::vector<int64_t>> count(n_threads);
    run(n_threads, (int64_t)items.size(), [&](int64_t t, int worker) {
      if (count[worker].empty()) count[worker].assign(n << width, 0);
      auto& mine = items[t];
      if (above < 64)  // those that differ from the prefix of their group are out
        mine.erase(
            std::remove_if(mine.begin(), mine.end(), [&](const Item& x) { return x.key >> above != prefix[x.group]; }),
            mine.end());
      for (const Item& x : mine) count[worker][((size_t)x.group << width) + ((x.key >> shift) & mask)] += x.mass;
    });
    for (size_t k = 0; k < n; k++) {
      int64_t below = 0;
      for (uint64_t digit = 0;; digit++) {
        int64_t here = 0;
        for (const auto& c : count) here += c.empty() ? 0 : c[(k << width) + digit];
        if (below + here >= target[k] || digit == mask) {
          prefix[k] = prefix[k] << width | digit;
          target[k] -= below;
          break;
        }
        below += here;
      }
    }
  }
  return prefix;
}

// One knot as a row of a selection: its place and mass, and where it belongs.
struct Placed {
  double at, mass, level;
  int32_t group;
  bool mirrored = false;  // its level counts from the other end
};

// The quantiles of knots (NUMERICS 8). `place(row, knot, group)` may move a knot or leave it out (mass 0).
std::vector<double> knot_quantiles(const LeafRows& r, int n_groups,
                                   const std::function<void(int64_t, Placed&)>& place) {
  const int n_threads = threads_for(r.n, r.n_threads);
  const int64_t n_pieces = task_count(r.n);
  std::vector<Most> most(n_pieces);
  auto each = [&](int64_t piece, auto&& visit) {
    double at[BLOCK], mass[BLOCK], level[BLOCK];
    for (int64_t first = piece * TASK_ROWS; first < std::min(r.n, (piece + 1) * TASK_ROWS); first += BLOCK) {
      const int n = (int)std::min<int64_t>(BLOCK, std::min(r.n, (piece + 1) * TASK_ROWS) - first);
      kernels().knots(r.objective, r.field, r.score + first, r.label + first, n, at, mass, level);
      for (int i = 0; i < n; i++) {
        if (!in_use(r, first + i)) continue;
        Placed p{at[i], mass[i] * (r.factor == nullptr ? 1.0 : r.factor[first + i]), level[i], leaf_of(r, first + i)};
        place(first + i, p);
        if (p.mass > 0.0) visit(first + i, p);
      }
    }
  };
  run(n_threads, n_pieces, [&](int64_t t, int) {
    each(t, [&](int64_t, const Placed& p) {
      most[t].mass = std::max(most[t].mass, p.mass);
      if (p.level < 1.0) most[t].level = std::max(most[t].level, p.level);
    });
  });
  Most all;
  for (const Most& m : most) all.mass = std::max(all.mass, m.mass), all.level = std::max(all.level, m.level);
  const double scale = power_of_two(30 - exponent_of(all.mass));
  struct Mass {  // of a group: of the rows of level 1, of those of a level between 0 and 1, of all
    int64_t ones = 0, parts = 0, mirrored = 0, all = 0;
  };
  std::vector<std::vector<Item>> items(n_pieces);
  std::vector<std::vector<Mass>> local(n_threads);
  run(n_threads, n_pieces, [&](int64_t t, int worker) {
    if (local[worker].empty()) local[worker].assign(n_groups, Mass{});
    items[t].reserve(TASK_ROWS);
    each(t, [&](int64_t i, const Placed& p) {
      const int64_t q = std::max<int64_t>(1, rounded(p.mass * scale)) * repeat(r, i);
      items[t].push_back({ordered(p.at), q, p.group});
      Mass& m = local[worker][p.group];
      m.all += q;
      if (p.level == (p.mirrored ? 0.0 : 1.0)) m.ones += q;
      else if (p.level > 0.0 && p.level < 1.0) (p.mirrored ? m.mirrored : m.parts) += q;
    });
  });
  std::vector<Mass> mass(n_groups);
  std::vector<int64_t> target(n_groups);
  for (int k = 0; k < n_groups; k++) {
    for (const auto& l : local)
      if (!l.empty())
        mass[k].ones += l[k].ones, mass[k].parts += l[k].parts, mass[k].mirrored += l[k].mirrored,
            mass[k].all += l[k].all;
    const double share = all.level * (double)mass[k].parts + (1.0 - all.level) * (double)mass[k].mirrored;
    const int64_t down = (int64_t)share;
    target[k] = std::max<int64_t>(1, mass[k].ones + down + ((double)down < share));
  }
  const std::vector<uint64_t> found = select(items, target, n_threads);
  std::vector<double> out(n_groups, 0.0);
  for (int k = 0; k < n_groups; k++)
    if (mass[k].all > 0) out[k] = unordered(found[k]);
  return out;
}

bool close(double a, double b) { return size(a - b) <= CLOSE * std::max(1.0, size(a)); }
double cut(double x, double limit) { return limit > 0.0 ? std::min(std::max(x, -limit), limit) : x; }

}  // namespace

std::vector<double> leaf_weights(const LeafRows& r) {
  std::vector<__int128> sum(r.n_leaves, 0);
  double top = 0.0;
  for (int64_t i = 0; i < r.n; i++)
    if (in_use(r, i)) top = std::max(top, r.factor == nullptr ? 1.0 : r.factor[i]);
  const double scale = power_of_two(62 - exponent_of(top));
  for (int64_t i = 0; i < r.n; i++)
    if (in_use(r, i))
      sum[leaf_of(r, i)] += (__int128)rounded62((r.factor == nullptr ? 1.0 : r.factor[i]) * scale) * repeat(r, i);
  std::vector<double> out(r.n_leaves);
  for (int k = 0; k < r.n_leaves; k++) out[k] = (double)sum[k] / scale;
  return out;
}

std::vector<double> leaf_joint(const LeafRows& r, const double* score, const double* label, int n_outputs,
                               double lambda) {
  const int k = n_outputs, width = k + k * (k + 1) / 2;  // of a leaf: its gradient, and the lower half of its hessian
  const int n_threads = threads_for(r.n, r.n_threads);
  auto weight = [&](int64_t i) { return r.factor == nullptr ? 1.0 : r.factor[i]; };
  double top = 0.0;
  for (int64_t i = 0; i < r.n; i++)
    if (in_use(r, i)) top = std::max(top, weight(i));
  const double scale = power_of_two(WIDE - exponent_of(top));
  std::vector<std::vector<int64_t>> local(n_threads);
  run(n_threads, task_count(r.n), [&](int64_t t, int worker) {
    std::vector<int64_t>& mine = local[worker];
    if (mine.empty()) mine.assign((size_t)r.n_leaves * width, 0);
    std::vector<double> p(k);
    for (int64_t row = t * TASK_ROWS; row < std::min(r.n, (t + 1) * TASK_ROWS); row++) {
      if (!in_use(r, row)) continue;
      double most = score[row], total = 0.0;
      for (int i = 1; i < k; i++) most = std::max(most, score[i * r.n + row]);
      for (int i = 0; i < k; i++) p[i] = exp(score[i * r.n + row] - most), total = total + p[i];
      for (double& x : p) x = x / total;
      const double w = weight(row);
      const int64_t times = repeat(r, row);
      int64_t* to = mine.data() + (size_t)leaf_of(r, row) * width;
      for (int i = 0; i < k; i++) *to++ += rounded(w * (p[i] - (label[row] == (double)i)) * scale) * times;
      for (int i = 0; i < k; i++) {
        for (int j = 0; j < i; j++) *to++ -= rounded(w * (p[i] * p[j]) * scale) * times;
        *to++ += rounded(w * (p[i] * (1.0 - p[i])) * scale) * times;
      }
    }
  });
  std::vector<double> value((size_t)k * r.n_leaves), a((size_t)k * k), d(k), g(k);
  for (int leaf = 0; leaf < r.n_leaves; leaf++) {
    size_t at = (size_t)leaf * width;
    auto next = [&] {
      int64_t sum = 0;
      for (const auto& l : local) sum += l.empty() ? 0 : l[at];
      at++;
      return (double)sum / scale;
    };
    for (double& x : g) x = next();
    for (int i = 0; i < k; i++)
      for (int j = 0; j <= i; j++) a[i * k + j] = next() + (i == j ? lambda : 0.0);
    solve_ridge(a.data(), d.data(), g.data(), k);
    for (int i = 0; i < k; i++) value[(size_t)i * r.n_leaves + leaf] = 0.0 - g[i];
  }
  return value;
}

// Two passes: derivatives of all rows and their maxima, then fixed point and sums.
LeafSums leaf_sums(const LeafRows& r, const double* step, Memory& space, bool losses) {
  constexpr uint64_t INFINITE = 0x7ff0000000000000u;
  const int n_threads = threads_for(r.n, r.n_threads), first = losses ? 0 : 1;  // of loss, gradient, hessian
  const int64_t n_pieces = task_count(r.n);
  if (space.size() < (size_t)r.n * 24) space = Memory((size_t)r.n * 24);
  double* const derived[3] = {space.as<double>(), space.as<double>() + r.n, space.as<double>() + 2 * r.n};
  struct alignas(64) Top {
    uint64_t bits[3] = {0, 0, 0};
  };
  std::vector<Top> top(n_pieces);
  std::vector<std::vector<uint8_t>> lost(n_threads);  // by worker and leaf: some row is not finite
  run(n_threads, n_pieces, [&](int64_t t, int worker) {
    if (lost[worker].empty()) lost[worker].assign(r.n_leaves, 0);
    double score[BLOCK];
    for (int64_t at = t * TASK_ROWS; at < std::min(r.n, (t + 1) * TASK_ROWS); at += BLOCK) {
      const int n = (int)std::min<int64_t>(BLOCK, r.n - at);
      std::copy_n(r.score + at, n, score);
      if (r.leaf.data != nullptr) kernels().add_leaf_values(score, r.leaf, at, step, n);
      else
        for (int i = 0; i < n; i++) score[i] = score[i] + step[0];
      kernels().evaluate(r.objective, r.field, score, r.label + at, n,
                         {losses ? derived[0] + at : nullptr, derived[1] + at, derived[2] + at});
      for (int k = first; k < 3 && r.factor != nullptr; k++)
        for (int i = 0; i < n; i++) derived[k][at + i] = derived[k][at + i] * r.factor[at + i];
      auto leave_out = [&](int i) {
        for (int k = first; k < 3; k++) derived[k][at + i] = 0.0;
      };
      for (int i = 0; i < n && !every_row(r); i++)
        if (!in_use(r, at + i)) leave_out(i);
      uint64_t most = 0;
      for (int k = first; k < 3; k++) most = kernels().max_abs_bits(most, derived[k] + at, n);
      for (int i = 0; i < n && most >= INFINITE; i++)
        for (int k = first; k < 3; k++)
          if (!finite(derived[k][at + i])) lost[worker][leaf_of(r, at + i)] = 1, leave_out(i);
      for (int k = first; k < 3; k++) top[t].bits[k] = kernels().max_abs_bits(top[t].bits[k], derived[k] + at, n);
    }
  });
  double scale[3];
  for (int k = 0; k < 3; k++) {
    uint64_t most = 0;
    for (const Top& t : top) most = std::max(most, t.bits[k]);
    scale[k] = power_of_two(62 - exponent_of(of_bits(most)));
  }
  struct Sum {
    __int128 of[3] = {0, 0, 0};
  };
  std::vector<std::vector<Sum>> local(n_threads);
  const bool repeated = r.weights.whole && r.weights.given;
  run(n_threads, n_pieces, [&](int64_t t, int worker) {
    if (local[worker].empty()) local[worker].assign(r.n_leaves, Sum{});
    int64_t q[3][BLOCK];
    for (int64_t at = t * TASK_ROWS; at < std::min(r.n, (t + 1) * TASK_ROWS); at += BLOCK) {
      const int n = (int)std::min<int64_t>(BLOCK, r.n - at);
      for (int k = first; k < 3; k++) kernels().to_fixed(derived[k] + at, scale[k], q[k], n);
      auto add = [&, sum = local[worker].data()](auto leaf, auto from) {  // known when compiled
        for (int i = 0; i < n && !repeated; i++)
          for (int k = from; k < 3; k++) sum[leaf(i)].of[k] += q[k][i];
        for (int i = 0; i < n && repeated; i++)
          for (int k = from; k < 3; k++) sum[leaf(i)].of[k] += (__int128)q[k][i] * r.weights.repeats[at + i];
      };
      auto by_leaf = [&](auto from) {
        if (r.leaf.data == nullptr) add([](int) { return 0; }, from);
        else if (r.leaf.wide) add([of = (const uint16_t*)r.leaf.data + at](int i) { return of[i]; }, from);
        else add([of = (const uint8_t*)r.leaf.data + at](int i) { return of[i]; }, from);
      };
      if (losses) by_leaf(std::integral_constant<int, 0>{});
      else by_leaf(std::integral_constant<int, 1>{});
    }
  });
  LeafSums out;
  for (int leaf = 0; leaf < r.n_leaves; leaf++) {
    Sum s;
    bool gone = false;
    for (int w = 0; w < n_threads; w++) {
      for (int k = 0; k < 3 && !local[w].empty(); k++) s.of[k] += local[w][leaf].of[k];
      gone = gone || (!lost[w].empty() && lost[w][leaf]);
    }
    out.loss.push_back(gone ? INF : (double)s.of[0] / scale[0]);
    out.g.push_back((double)s.of[1] / scale[1]), out.h.push_back((double)s.of[2] / scale[2]);
  }
  return out;
}

std::vector<double> leaf_newton(const LeafRows& r, std::vector<double> d, int iterations, const LeafPenalty& p,
                                const std::vector<double>* weight) {
  const double draw = p.damps ? 0.0 : p.lambda;  // towards 0
  auto worth = [&](double loss, double x) { return loss + 0.5 * draw * x * x + p.alpha * size(x); };
  const bool slopes = p.damps && p.alpha == 0.0 && objective_info(r.objective).convex;  // may speak for a step
  Memory space;
  LeafSums now = leaf_sums(r, d.data(), space, !slopes);
  std::vector<uint8_t> near(r.n_leaves), tested(r.n_leaves);
  for (int round = 0; round < std::max(iterations, 1); round++) {
    const std::vector<double>& hessian = weight != nullptr ? *weight : now.h;
    std::vector<double> to(d);
    bool all_near = true, any_tested = false;
    for (int k = 0; k < r.n_leaves; k++) {
      const double b = hessian[k] + p.lambda, t = soft(now.g[k] - (p.damps ? b : hessian[k]) * d[k], p.alpha);
      to[k] = b == 0.0 ? d[k] : cut(-t / b, p.max_step);
      near[k] = close(to[k], d[k]);
      all_near = all_near && near[k];
    }
    if (all_near || iterations == 0) return to;
    LeafSums then = leaf_sums(r, to.data(), space, !slopes);
    for (int k = 0; k < r.n_leaves; k++) {  // convex: the loss is lower wherever it still falls
      const bool falls = slopes && then.loss[k] < INF && then.g[k] * (to[k] - d[k]) <= 0.0;
      tested[k] = !near[k] && to[k] != d[k] && !falls;
      any_tested = any_tested || tested[k];
    }
    if (slopes && any_tested) now = leaf_sums(r, d.data(), space), then = leaf_sums(r, to.data(), space);
    for (int half = 0; half <= HALVINGS && any_tested; half++) {
      bool again = false;
      for (int k = 0; k < r.n_leaves; k++)
        if (tested[k] && to[k] != d[k] && !(worth(then.loss[k], to[k]) <= worth(now.loss[k], d[k]))) {
          to[k] = half < HALVINGS ? 0.5 * (d[k] + to[k]) : d[k];
          again = true;
        }
      if (!again) break;
      then = leaf_sums(r, to.data(), space);
    }
    d = std::move(to), now = std::move(then);
  }
  return d;
}

std::vector<double> leaf_knots(const LeafRows& r) {
  return knot_quantiles(r, r.n_leaves, [](int64_t, Placed&) {});
}

double knot_spread(const LeafRows& r, double level) {
  auto spread = [&](bool zeros) {
    return knot_quantiles(r, 1, [&](int64_t, Placed& p) {
      p.at = size(p.at), p.level = level, p.group = 0;
      if (!zeros && p.at == 0.0) p.mass = 0.0;
    })[0];
  };
  const double all = spread(true);
  return all > 0.0 ? all : spread(false);  // where nearly every error is 0, that of the others
}

double line_search(const LeafRows& r, const std::vector<double>& value) {
  const ObjectiveInfo& info = objective_info(r.objective);
  if (info.knots && info.steps == 0)
    return knot_quantiles(r, 1, [&](int64_t, Placed& p) {
      const double v = value[p.group];
      p.group = 0;
      p.mass = p.mass * size(v);
      p.at = v == 0.0 ? 0.0 : p.at / v;
      p.mirrored = v < 0.0;
    })[0];
  struct At {
    double loss = 0, slope = 0, bend = 0;
  };
  Memory space;
  auto look = [&](double rho) {
    std::vector<double> step(value);
    for (double& s : step) s = rho * s;
    const LeafSums sums = leaf_sums(r, step.data(), space);
    At a;
    for (int k = 0; k < r.n_leaves; k++)
      a.loss = a.loss + sums.loss[k], a.slope = a.slope + value[k] * sums.g[k],
      a.bend = a.bend + (value[k] * value[k]) * sums.h[k];
    return a;
  };
  double rho = 0.0;
  At now = look(rho);
  for (int round = 0; round < 100; round++) {
    double to = now.bend == 0.0 ? rho : rho - now.slope / now.bend;
    if (close(to, rho)) return to;
    At then = look(to);
    for (int half = 0; half <= HALVINGS && !(then.loss <= now.loss) && to != rho; half++) {
      to = half < HALVINGS ? 0.5 * (rho + to) : rho;
      then = look(to);
    }
    rho = to, now = then;
  }
  return rho;
}

}  // namespace sapwood
