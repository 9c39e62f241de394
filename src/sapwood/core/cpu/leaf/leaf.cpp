#include "cpu/leaf/leaf.h"

#include <algorithm>

#include "host/pool.h"
#include "math/gain.h"
#include "math/linear.h"
#include "math/real.h"
#include "registry.h"

namespace sapwood {
namespace {

constexpr int MAX_HALVINGS = 10;
// steps up to this are not tested: the loss is too flat there to tell
constexpr double CLOSE = 1e-7;
// the bits of infinity; those of a NaN are larger
constexpr uint64_t INFINITE = 0x7ff0000000000000u;

double abs(double x) {
  return x < 0.0 ? -x : x;
}
bool finite(double x) {
  return x - x == 0.0;
}
bool close(double a, double b) {
  return abs(a - b) <= CLOSE * std::max(1.0, abs(a));
}
double cut(double x, double limit) {
  return limit > 0.0 ? std::min(std::max(x, -limit), limit) : x;
}

// The largest weight of the rows in use, over all holders.
double max_weight(const LeafRows& r) {
  double top = 0.0;
  for (int64_t i = 0; i < r.n; i++) {
    if (r.takes(i)) {
      top = std::max(top, r.weight_of(i));
    }
  }
  uint64_t bits = bits_of(top);
  reduce_max(r.reduce, &bits, 1);
  return of_bits(bits);
}

// (n_leaves) the weight of each leaf's rows
std::vector<double> leaf_weights(const LeafRows& r) {
  std::vector<__int128> sum(r.n_leaves, 0);
  const double scale = power_of_two(62 - exponent_of(max_weight(r)));
  for (int64_t i = 0; i < r.n; i++) {
    if (r.takes(i)) {
      sum[r.leaf_of(i)] += (__int128)rounded62(r.weight_of(i) * scale) * r.repeats(i);
    }
  }
  reduce_sum(r.reduce, sum.data(), sum.size());
  std::vector<double> out(r.n_leaves);
  for (int k = 0; k < r.n_leaves; k++) {
    out[k] = (double)sum[k] / scale;
  }
  return out;
}

}  // namespace

std::vector<double> leaf_joint(const LeafRows& r, const double* score, const double* label,
                               int n_outputs, double lambda) {
  const int k = n_outputs;
  // of a leaf: its gradient, and the lower half of its hessian
  const int width = k + k * (k + 1) / 2;
  const int n_threads = threads_for(r.n, r.n_threads);
  const double scale = power_of_two(WIDE - exponent_of(max_weight(r)));
  std::vector<std::vector<int64_t>> local(n_threads);
  run(n_threads, task_count(r.n), [&](int64_t t, int worker) {
    std::vector<int64_t>& mine = local[worker];
    if (mine.empty()) {
      mine.assign((size_t)r.n_leaves * width, 0);
    }
    std::vector<double> p(k);
    for (int64_t row = t * TASK_ROWS; row < std::min(r.n, (t + 1) * TASK_ROWS); row++) {
      if (!r.takes(row)) {
        continue;
      }
      double most = score[row];
      double total = 0.0;
      for (int i = 1; i < k; i++) {
        most = std::max(most, score[i * r.n + row]);
      }
      for (int i = 0; i < k; i++) {
        p[i] = exp(score[i * r.n + row] - most);
        total = total + p[i];
      }
      for (double& x : p) {
        x = x / total;
      }
      const double w = r.weight_of(row);
      const int64_t repeats = r.repeats(row);
      int64_t* to = mine.data() + (size_t)r.leaf_of(row) * width;
      for (int i = 0; i < k; i++) {
        *to++ += rounded(w * (p[i] - (label[row] == (double)i)) * scale) * repeats;
      }
      for (int i = 0; i < k; i++) {
        for (int j = 0; j < i; j++) {
          *to++ -= rounded(w * (p[i] * p[j]) * scale) * repeats;
        }
        *to++ += rounded(w * (p[i] * (1.0 - p[i])) * scale) * repeats;
      }
    }
  });
  std::vector<int64_t> sums((size_t)r.n_leaves * width, 0);
  for (const auto& l : local) {
    for (size_t i = 0; i < l.size(); i++) {
      sums[i] += l[i];
    }
  }
  reduce_sum(r.reduce, sums.data(), sums.size());
  std::vector<double> value((size_t)k * r.n_leaves);
  std::vector<double> a((size_t)k * k);
  std::vector<double> d(k);
  std::vector<double> g(k);
  for (int leaf = 0; leaf < r.n_leaves; leaf++) {
    auto next = [&, at = (size_t)leaf * width]() mutable {
      return (double)sums[at++] / scale;
    };
    for (double& x : g) {
      x = next();
    }
    for (int i = 0; i < k; i++) {
      for (int j = 0; j <= i; j++) {
        a[i * k + j] = next() + (i == j ? lambda : 0.0);
      }
    }
    solve_ridge(a.data(), d.data(), g.data(), k);
    for (int i = 0; i < k; i++) {
      value[(size_t)i * r.n_leaves + leaf] = 0.0 - g[i];
    }
  }
  return value;
}

namespace {

enum { LOSS, GRADIENT, HESSIAN, N_SUMS };

// First pass of leaf_loss_sums: losses, gradients and hessians of all rows. top (N_SUMS) OUT, bits
// of the largest;
// lost (n_leaves) OUT, 1 where a row of the leaf is not finite. Rows that are not in use, or not
// finite, become 0.
void derive_rows(const LeafRows& r, const double* step, double* const* derived, bool losses,
                 uint64_t* top, std::vector<uint64_t>& lost) {
  const int n_threads = threads_for(r.n, r.n_threads);
  const int first = losses ? LOSS : GRADIENT;
  struct alignas(64) Top {
    uint64_t bits[N_SUMS] = {0, 0, 0};
  };
  std::vector<Top> tops(task_count(r.n));
  std::vector<std::vector<uint8_t>> lost_by(n_threads);
  run(n_threads, task_count(r.n), [&](int64_t t, int worker) {
    if (lost_by[worker].empty()) {
      lost_by[worker].assign(r.n_leaves, 0);
    }
    double score[BLOCK];
    for (int64_t at = t * TASK_ROWS; at < std::min(r.n, (t + 1) * TASK_ROWS); at += BLOCK) {
      const int n = (int)std::min<int64_t>(BLOCK, r.n - at);
      std::copy_n(r.score + at, n, score);
      if (r.leaf.data != nullptr) {
        kernels().add_leaf_values(score, r.leaf, at, step, n);
      } else {
        for (int i = 0; i < n; i++) {
          score[i] = score[i] + step[0];
        }
      }
      kernels().evaluate(
          r.objective, r.field, score, r.label + at, n,
          {losses ? derived[LOSS] + at : nullptr, derived[GRADIENT] + at, derived[HESSIAN] + at});
      for (int k = first; k < N_SUMS && r.weight != nullptr; k++) {
        for (int i = 0; i < n; i++) {
          derived[k][at + i] = derived[k][at + i] * r.weight[at + i];
        }
      }
      auto leave_out = [&](int i) {
        for (int k = first; k < N_SUMS; k++) {
          derived[k][at + i] = 0.0;
        }
      };
      for (int k = first; k < N_SUMS && !r.takes_all(); k++) {
        kernels().clear_rows(r.in_sample == nullptr ? nullptr : r.in_sample + at,
                             r.weights.given ? &r.weights.repeats[at] : nullptr, n,
                             derived[k] + at);
      }
      uint64_t most = 0;
      for (int k = first; k < N_SUMS; k++) {
        most = kernels().max_abs_bits(most, derived[k] + at, n);
      }
      for (int i = 0; i < n && most >= INFINITE; i++) {
        for (int k = first; k < N_SUMS; k++) {
          if (!finite(derived[k][at + i])) {
            lost_by[worker][r.leaf_of(at + i)] = 1;
            leave_out(i);
          }
        }
      }
      for (int k = first; k < N_SUMS; k++) {
        tops[t].bits[k] = kernels().max_abs_bits(tops[t].bits[k], derived[k] + at, n);
      }
    }
  });
  for (const Top& t : tops) {
    for (int k = 0; k < N_SUMS; k++) {
      top[k] = std::max(top[k], t.bits[k]);
    }
  }
  for (const auto& l : lost_by) {
    for (size_t k = 0; k < l.size(); k++) {
      lost[k] = std::max<uint64_t>(lost[k], l[k]);
    }
  }
  reduce_max(r.reduce, top, N_SUMS);
  reduce_max(r.reduce, lost.data(), lost.size());
}

struct LeafSum {
  __int128 of[N_SUMS] = {0, 0, 0};
};

// Second pass: fixed point and sums. (n_leaves)
std::vector<LeafSum> sum_by_leaf(const LeafRows& r, double* const* derived, bool losses,
                                 const double* scale) {
  const int n_threads = threads_for(r.n, r.n_threads);
  const int first = losses ? LOSS : GRADIENT;
  std::vector<std::vector<LeafSum>> local(n_threads);
  // rows of weight 0 are 0 already
  const bool repeated = r.weights.integral && !r.weights.zero_one;
  run(n_threads, task_count(r.n), [&](int64_t t, int worker) {
    if (local[worker].empty()) {
      local[worker].assign(r.n_leaves, LeafSum{});
    }
    int64_t q[N_SUMS][BLOCK];
    for (int64_t at = t * TASK_ROWS; at < std::min(r.n, (t + 1) * TASK_ROWS); at += BLOCK) {
      const int n = (int)std::min<int64_t>(BLOCK, r.n - at);
      for (int k = first; k < N_SUMS; k++) {
        kernels().to_fixed(derived[k] + at, scale[k], q[k], n);
      }
      // `from` is known when compiled
      auto add = [&, sum = local[worker].data()](auto leaf, auto from) {
        for (int i = 0; i < n && !repeated; i++) {
          for (int k = from; k < N_SUMS; k++) {
            sum[leaf(i)].of[k] += q[k][i];
          }
        }
        for (int i = 0; i < n && repeated; i++) {
          for (int k = from; k < N_SUMS; k++) {
            sum[leaf(i)].of[k] += (__int128)q[k][i] * r.weights.repeats[at + i];
          }
        }
      };
      auto by_leaf = [&](auto from) {
        if (r.leaf.data == nullptr) {
          add(
              [](int) {
                return 0;
              },
              from);
        } else if (r.leaf.wide) {
          add(
              [of = (const uint16_t*)r.leaf.data + at](int i) {
                return of[i];
              },
              from);
        } else {
          add(
              [of = (const uint8_t*)r.leaf.data + at](int i) {
                return of[i];
              },
              from);
        }
      };
      if (losses) {
        by_leaf(std::integral_constant<int, LOSS>{});
      } else {
        by_leaf(std::integral_constant<int, GRADIENT>{});
      }
    }
  });
  std::vector<LeafSum> sum(r.n_leaves);
  for (const auto& l : local) {
    for (size_t leaf = 0; leaf < l.size(); leaf++) {
      for (int k = 0; k < N_SUMS; k++) {
        sum[leaf].of[k] += l[leaf].of[k];
      }
    }
  }
  reduce_sum(r.reduce, sum[0].of, N_SUMS * sum.size());
  return sum;
}

}  // namespace

LeafLossSums leaf_loss_sums(const LeafRows& r, const double* step, Memory& space, bool losses) {
  if (space.size() < (size_t)r.n * 24) {
    space = Memory((size_t)r.n * 24);
  }
  double* const derived[N_SUMS] = {space.as<double>(), space.as<double>() + r.n,
                                   space.as<double>() + 2 * r.n};
  uint64_t top[N_SUMS] = {0, 0, 0};
  std::vector<uint64_t> lost(r.n_leaves, 0);
  derive_rows(r, step, derived, losses, top, lost);
  double scale[N_SUMS];
  for (int k = 0; k < N_SUMS; k++) {
    scale[k] = power_of_two(62 - exponent_of(of_bits(top[k])));
  }
  const std::vector<LeafSum> sum = sum_by_leaf(r, derived, losses, scale);
  LeafLossSums out;
  for (int leaf = 0; leaf < r.n_leaves; leaf++) {
    out.loss.push_back(lost[leaf] ? INF : (double)sum[leaf].of[LOSS] / scale[LOSS]);
    out.g.push_back((double)sum[leaf].of[GRADIENT] / scale[GRADIENT]);
    out.h.push_back((double)sum[leaf].of[HESSIAN] / scale[HESSIAN]);
  }
  return out;
}

std::vector<double> leaf_newton(const LeafRows& r, std::vector<double> d, int iterations,
                                const LeafPenalty& p, const std::vector<double>* weight) {
  const double pull = p.damps ? 0.0 : p.lambda;  // towards 0
  auto penalised = [&](double loss, double x) {
    return loss + 0.5 * pull * x * x + p.alpha * abs(x);
  };
  // Of a convex loss the slope after a step can tell that the loss fell, without its value.
  const bool slopes = p.damps && p.alpha == 0.0 && objective_info(r.objective).convex;
  const bool tests = iterations > 0;  // a step that is not tested needs no loss
  Memory own;
  Memory& space = r.space != nullptr ? *r.space : own;
  LeafLossSums now = leaf_loss_sums(r, d.data(), space, tests && !slopes);
  std::vector<uint8_t> near(r.n_leaves);
  std::vector<uint8_t> tested(r.n_leaves);
  for (int round = 0; round < std::max(iterations, 1); round++) {
    const std::vector<double>& hessian = weight != nullptr ? *weight : now.h;
    std::vector<double> to(d);
    bool all_near = true;
    bool any_tested = false;
    for (int k = 0; k < r.n_leaves; k++) {
      const double b = hessian[k] + p.lambda;
      const double t = soft(now.g[k] - (p.damps ? b : hessian[k]) * d[k], p.alpha);
      to[k] = b == 0.0 ? d[k] : cut(-t / b, p.max_step);
      near[k] = close(to[k], d[k]);
      all_near = all_near && near[k];
    }
    if (all_near || !tests) {
      return to;
    }
    LeafLossSums then = leaf_loss_sums(r, to.data(), space, !slopes);
    for (int k = 0; k < r.n_leaves; k++) {  // a convex loss is lower where it still falls
      const bool falls = slopes && then.loss[k] < INF && then.g[k] * (to[k] - d[k]) <= 0.0;
      tested[k] = !near[k] && to[k] != d[k] && !falls;
      any_tested = any_tested || tested[k];
    }
    if (slopes && any_tested) {
      now = leaf_loss_sums(r, d.data(), space);
      then = leaf_loss_sums(r, to.data(), space);
    }
    for (int half = 0; half <= MAX_HALVINGS && any_tested; half++) {
      bool again = false;
      for (int k = 0; k < r.n_leaves; k++) {
        if (tested[k] && to[k] != d[k] &&
            !(penalised(then.loss[k], to[k]) <= penalised(now.loss[k], d[k]))) {
          to[k] = half < MAX_HALVINGS ? 0.5 * (d[k] + to[k]) : d[k];
          again = true;
        }
      }
      if (!again) {
        break;
      }
      then = leaf_loss_sums(r, to.data(), space);
    }
    d = std::move(to);
    now = std::move(then);
  }
  return d;
}

double line_search(const LeafRows& r, const std::vector<double>& value) {
  const ObjectiveInfo& info = objective_info(r.objective);
  if (info.knots && info.steps == 0) {
    return knot_line_search(r, value);
  }
  struct At {
    double loss = 0, slope = 0, bend = 0;
  };
  Memory space;
  auto evaluate = [&](double rho) {
    std::vector<double> step(value);
    for (double& s : step) {
      s = rho * s;
    }
    const LeafLossSums sums = leaf_loss_sums(r, step.data(), space);
    At a;
    for (int k = 0; k < r.n_leaves; k++) {
      a.loss = a.loss + sums.loss[k];
      a.slope = a.slope + value[k] * sums.g[k];
      a.bend = a.bend + (value[k] * value[k]) * sums.h[k];
    }
    return a;
  };
  double rho = 0.0;
  At now = evaluate(rho);
  for (int round = 0; round < 100; round++) {
    double to = now.bend == 0.0 ? rho : rho - now.slope / now.bend;
    if (close(to, rho)) {
      return to;
    }
    At then = evaluate(to);
    for (int half = 0; half <= MAX_HALVINGS && !(then.loss <= now.loss) && to != rho; half++) {
      to = half < MAX_HALVINGS ? 0.5 * (rho + to) : rho;
      then = evaluate(to);
    }
    rho = to;
    now = then;
  }
  return rho;
}

std::vector<double> refit_leaves(const LeafRows& r, const LeafRule& rule) {
  const ObjectiveInfo& info = objective_info(r.objective);
  if (rule.exact && info.knots) {
    std::vector<double> value = leaf_knots(r);
    return info.steps > 0 ? leaf_newton(r, std::move(value), info.steps, {}, nullptr) : value;
  }
  const std::vector<double> weight = rule.gradient ? leaf_weights(r) : std::vector<double>{};
  LeafPenalty penalty = rule.penalty;
  penalty.damps = !rule.exact && rule.iterations > 1;
  return leaf_newton(r, std::vector<double>(r.n_leaves, 0.0),
                     rule.exact ? info.steps : rule.iterations, penalty,
                     rule.gradient ? &weight : nullptr);
}

}  // namespace sapwood
