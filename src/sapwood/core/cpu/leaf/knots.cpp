// Quantiles of knots, the points at which the slope of a row's loss changes: weighted radix
// selection by counts.
#include <algorithm>
#include <functional>

#include "cpu/leaf/leaf.h"
#include "host/pool.h"
#include "math/fixed.h"
#include "math/real.h"

namespace sapwood {
namespace {

double abs(double x) {
  return x < 0.0 ? -x : x;
}

struct Item {  // a row in a selection
  uint64_t key;
  int64_t mass;
  int32_t group;
};

// For each group the smallest key whose cumulated mass reaches the target, over the rows of all
// holders. The keys are found a few bits at a time from counts; items that differ from the bits
// found so far are dropped.
std::vector<uint64_t> select(std::vector<std::vector<Item>>& items, std::vector<int64_t> target,
                             int n_threads, const Reduce* reduce) {
  const size_t n = target.size();
  int bits = 11;
  while (bits > 1 && (n << bits) > (1u << 17)) {
    bits--;
  }
  std::vector<uint64_t> prefix(n, 0);
  for (int shift = 64; shift > 0;) {
    const int width = std::min(bits, shift);
    const int above = shift;
    shift -= width;
    const uint64_t mask = (1ull << width) - 1;
    std::vector<std::vector<int64_t>> count(n_threads);
    run(n_threads, (int64_t)items.size(), [&](int64_t t, int worker) {
      if (count[worker].empty()) {
        count[worker].assign(n << width, 0);
      }
      auto& mine = items[t];
      if (above < 64) {
        mine.erase(std::remove_if(mine.begin(), mine.end(),
                                  [&](const Item& x) {
                                    return x.key >> above != prefix[x.group];
                                  }),
                   mine.end());
      }
      for (const Item& x : mine) {
        count[worker][((size_t)x.group << width) + ((x.key >> shift) & mask)] += x.mass;
      }
    });
    if (reduce != nullptr) {
      count[0].resize(n << width, 0);
      for (int w = 1; w < n_threads; w++) {
        for (size_t i = 0; i < count[w].size(); i++) {
          count[0][i] += count[w][i];
        }
      }
      count.resize(1);
      reduce_sum(reduce, count[0].data(), count[0].size());
    }
    for (size_t k = 0; k < n; k++) {
      int64_t below = 0;
      for (uint64_t digit = 0;; digit++) {
        int64_t here = 0;
        for (const auto& c : count) {
          here += c.empty() ? 0 : c[(k << width) + digit];
        }
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

struct Placed {  // one row's knot in a selection
  double at, mass, level;
  int32_t group;
  bool mirrored = false;  // its level counts from the other end
};
// may move a knot, or leave it out by mass 0
using Place = std::function<void(int64_t row, Placed&)>;

// visit(row, knot) for the rows of a task.
template <class Visit>
void each_knot(const LeafRows& r, int64_t task, const Place& place, Visit&& visit) {
  double at[BLOCK];
  double mass[BLOCK];
  double level[BLOCK];
  const int64_t end = std::min(r.n, (task + 1) * TASK_ROWS);
  for (int64_t first = task * TASK_ROWS; first < end; first += BLOCK) {
    const int n = (int)std::min<int64_t>(BLOCK, end - first);
    kernels().knots(r.objective, r.field, r.score + first, r.label + first, n, at, mass, level);
    for (int i = 0; i < n; i++) {
      if (!r.takes(first + i)) {
        continue;
      }
      Placed p{at[i], mass[i] * r.weight_of(first + i), level[i], r.leaf_of(first + i)};
      place(first + i, p);
      if (p.mass > 0.0) {
        visit(first + i, p);
      }
    }
  }
}

struct alignas(64) Largest {  // mass and level of knots
  double mass = 0, level = 0;
};

Largest largest_knot(const LeafRows& r, int n_threads, const Place& place) {
  std::vector<Largest> parts(task_count(r.n));
  run(n_threads, task_count(r.n), [&](int64_t t, int) {
    each_knot(r, t, place, [&](int64_t, const Placed& p) {
      parts[t].mass = std::max(parts[t].mass, p.mass);
      if (p.level < 1.0) {
        parts[t].level = std::max(parts[t].level, p.level);
      }
    });
  });
  Largest all;
  for (const Largest& m : parts) {
    all.mass = std::max(all.mass, m.mass);
    all.level = std::max(all.level, m.level);
  }
  uint64_t bits[2] = {bits_of(all.mass), bits_of(all.level)};
  reduce_max(r.reduce, bits, 2);
  all.mass = of_bits(bits[0]);
  all.level = of_bits(bits[1]);
  return all;
}

// of a group: its rows of level 1, those of a level between 0 and 1, the mirrored ones, all
struct Mass {
  int64_t ones = 0, parts = 0, mirrored = 0, all = 0;
};
static_assert(sizeof(Mass) == 4 * sizeof(int64_t));  // reduced as integers

std::vector<double> knot_quantiles(const LeafRows& r, int n_groups, const Place& place) {
  const int n_threads = threads_for(r.n, r.n_threads);
  const Largest largest = largest_knot(r, n_threads, place);
  const double scale = power_of_two(30 - exponent_of(largest.mass));
  std::vector<std::vector<Item>> items(task_count(r.n));
  std::vector<std::vector<Mass>> local(n_threads);
  run(n_threads, task_count(r.n), [&](int64_t t, int worker) {
    if (local[worker].empty()) {
      local[worker].assign(n_groups, Mass{});
    }
    items[t].reserve(TASK_ROWS);
    each_knot(r, t, place, [&](int64_t i, const Placed& p) {
      const int64_t q = std::max<int64_t>(1, rounded(p.mass * scale)) * r.repeats(i);
      items[t].push_back({ordered(p.at), q, p.group});
      Mass& m = local[worker][p.group];
      m.all += q;
      if (p.level == (p.mirrored ? 0.0 : 1.0)) {
        m.ones += q;
      } else if (p.level > 0.0 && p.level < 1.0) {
        (p.mirrored ? m.mirrored : m.parts) += q;
      }
    });
  });
  std::vector<Mass> mass(n_groups);
  for (const auto& l : local) {
    for (size_t k = 0; k < l.size(); k++) {
      mass[k].ones += l[k].ones;
      mass[k].parts += l[k].parts;
      mass[k].mirrored += l[k].mirrored;
      mass[k].all += l[k].all;
    }
  }
  reduce_sum(r.reduce, &mass[0].ones, 4 * mass.size());
  std::vector<int64_t> target(n_groups);
  for (int k = 0; k < n_groups; k++) {
    const double reach =
        largest.level * (double)mass[k].parts + (1.0 - largest.level) * (double)mass[k].mirrored;
    const int64_t down = (int64_t)reach;
    target[k] = std::max<int64_t>(1, mass[k].ones + down + ((double)down < reach));
  }
  const std::vector<uint64_t> found = select(items, target, n_threads, r.reduce);
  std::vector<double> out(n_groups, 0.0);
  for (int k = 0; k < n_groups; k++) {
    if (mass[k].all > 0) {
      out[k] = unordered(found[k]);
    }
  }
  return out;
}

}  // namespace

std::vector<double> leaf_knots(const LeafRows& r) {
  return knot_quantiles(r, r.n_leaves, [](int64_t, Placed&) {});
}

double knot_quantile(const LeafRows& r, double level) {
  auto quantile = [&](bool zeros) {
    return knot_quantiles(r, 1, [&](int64_t, Placed& p) {
      p.at = abs(p.at);
      p.level = level;
      p.group = 0;
      if (!zeros && p.at == 0.0) {
        p.mass = 0.0;
      }
    })[0];
  };
  const double all = quantile(true);
  // where nearly every error is 0: the quantile of the other errors
  return all > 0.0 ? all : quantile(false);
}

double knot_line_search(const LeafRows& r, const std::vector<double>& value) {
  return knot_quantiles(r, 1, [&](int64_t, Placed& p) {
    const double v = value[p.group];
    p.group = 0;
    p.mass = p.mass * abs(v);
    p.at = v == 0.0 ? 0.0 : p.at / v;
    p.mirrored = v < 0.0;
  })[0];
}

}  // namespace sapwood
