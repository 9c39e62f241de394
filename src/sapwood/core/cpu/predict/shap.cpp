#include "cpu/predict/shap.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "host/pool.h"

namespace sapwood {
namespace {

constexpr int PATTERN_BITS = 16;    // beyond, every row is its own entry
constexpr int64_t PASS = 16384;     // rows explained together, so that filling tables is a small part of the work
constexpr int64_t SPAN = 1024;      // rows whose sums one task adds up: they stay in L2, and a table in L1 for so many
constexpr int64_t BATCH = 1 << 23;  // bytes of the tables and patterns of trees that are explained together

// Gauss's rule with n points on 0..1, between whose abscissae those of n - 1 points lie.
void gauss(const std::vector<double>& fewer, std::vector<double>& at, std::vector<double>& mass) {
  const int n = (int)fewer.size() + 1;
  auto legendre = [n](double x, double& slope) {  // P_n and its derivative on -1..1
    double p = 1.0, q = 0.0;
    for (int k = 1; k <= n; k++) {
      const double next = ((2 * k - 1) * x * p - (k - 1) * q) / k;
      q = p, p = next;
    }
    slope = n * (x * p - q) / (x * x - 1.0);
    return p;
  };
  for (int i = 0; i < n; i++) {
    double low = i == 0 ? -1.0 : 2.0 * fewer[i - 1] - 1.0, high = i == n - 1 ? 1.0 : 2.0 * fewer[i] - 1.0, slope;
    const bool rises = (n - i) % 2 == 1;  // P_n is positive beyond its last root
    for (int step = 0; step < 64; step++) {
      const double middle = 0.5 * low + 0.5 * high;
      ((legendre(middle, slope) < 0.0) == rises ? low : high) = middle;
    }
    const double x = 0.5 * low + 0.5 * high;
    legendre(x, slope);
    at.push_back(0.5 + 0.5 * x);
    mass.push_back(1.0 / ((1.0 - x * x) * slope * slope));
  }
}

// p! q! / (p + q + 1)!, the integral of t^p (1 - t)^q over 0..1
double beta(int p, int q) {
  double b = 1.0 / (p + 1);
  for (int k = 1; k <= q; k++) b = b * k / (p + k + 1);
  return b;
}

// What a leaf adds to each column (to each pair) when what is not known of a row x comes from a row z of the background. The row that is
// put together reaches the leaf where it takes from x the columns that only x keeps to (there are a), and from z those that only z
// keeps to (b); none may be kept to by neither. So column i of x has v * t^(a - 1) (1 - t)^b integrated over 0..1, and one of z
// -v * t^a (1 - t)^(b - 1). Rows of the background are counted: b is the same for all that matter, and a is what they are counted by.
void against(const std::map<uint64_t, int64_t>& seen, int64_t n_seen, double value, const uint8_t* kept, int n, int d,
             bool pairs, double* const* to) {
  const uint64_t all = d == 64 ? ~0ull : ((uint64_t)1 << d) - 1;
  std::vector<int64_t> of_all(d + 1), of_one((size_t)d * (d + 1)), of_two(pairs ? (size_t)d * d * (d + 1) : 0);
  for (int lane = 0; lane < n; lane++) {
    uint64_t x = 0;
    for (int j = 0; j < d; j++) x |= (uint64_t)kept[j * LANES + lane] << j;
    const int b = d - __builtin_popcountll(x);
    std::fill(of_all.begin(), of_all.end(), 0), std::fill(of_one.begin(), of_one.end(), 0);
    std::fill(of_two.begin(), of_two.end(), 0);
    for (const auto& [z, count] : seen) {
      if ((x | z) != all) continue;
      const uint64_t alone = x & ~z;
      const int a = __builtin_popcountll(alone);
      of_all[a] += count;
      for (uint64_t i = alone; i != 0; i &= i - 1) {
        const int first = __builtin_ctzll(i);
        of_one[first * (d + 1) + a] += count;
        for (uint64_t j = pairs ? i & (i - 1) : 0; j != 0; j &= j - 1)
          of_two[(first * d + __builtin_ctzll(j)) * (d + 1) + a] += count;
      }
    }
    auto mean = [&](const int64_t* counts, int less, int q) {  // of t^(a - less) (1 - t)^q
      double sum = 0.0;
      for (int a = less; a <= d - b; a++)
        if (counts[a] != 0) sum = sum + (double)counts[a] * beta(a - less, q);
      return sum / (double)n_seen;
    };
    auto has = [&](int j) { return (x >> j & 1) != 0; };
    for (int j = 0; j < d; j++) {
      if (!pairs)
        to[j][lane] =
            to[j][lane] + value * (has(j) ? mean(&of_one[j * (d + 1)], 1, b) : -mean(of_all.data(), 0, b - 1));
      for (int k = j + 1; pairs && k < d; k++) {
        const double both = has(j) && has(k) ? mean(&of_two[(j * d + k) * (d + 1)], 2, b)
                            : has(j)         ? -mean(&of_one[j * (d + 1)], 1, b - 1)
                            : has(k)         ? -mean(&of_one[k * (d + 1)], 1, b - 1)
                                             : mean(of_all.data(), 0, b - 2);
        to[j * d + k][lane] = to[j * d + k][lane] + 0.5 * value * both;
      }
    }
  }
}

int64_t place(int i, int j, int n) { return (int64_t)std::min(i, j) * n + std::max(i, j); }

}  // namespace

struct Explainer::CodedRows {
  int64_t n;
  std::vector<uint32_t> codes;  // (n_planes, n)
};

struct Explainer::PatternRows {
  int64_t n;
  std::vector<uint16_t> pattern;  // (n), or, where a group has more bits than that,
  std::vector<uint8_t> kept;      // (columns above, n)
};

struct Explainer::Entries {
  int64_t n;                     // patterns, or rows where `at` is empty
  std::vector<uint16_t> at;      // (rows) which entry
  std::vector<int32_t> targets;  // columns, or of pairs column * n_columns + column
  std::vector<double> table;     // (targets, n)
};

Explainer::Explainer(int n_columns, int n_outputs, const ForestArrays& a, const double* weight)
    : n_columns_(n_columns), n_outputs_(n_outputs), asked_(n_columns, a) {
  for (int64_t t = 0; t < a.n_trees; t++) {
    if (a.output[t] < 0 || a.output[t] >= n_outputs)
      throw std::invalid_argument("a tree adds to an output that is not there");
    trees_.push_back(paths_of(a, weight, asked_, t));
    for (const LeafGroup& g : trees_.back().groups)
      for (const PathLeaf& leaf : g.leaves) most_factors_ = std::max(most_factors_, leaf.end - leaf.factor);
  }
  at_.resize(1), mass_.resize(1);
  for (int n = 1; n <= (most_factors_ + 1) / 2; n++) {
    at_.emplace_back(), mass_.emplace_back();
    gauss(at_[n - 1], at_[n], mass_[n]);
  }
}

Explainer::CodedRows Explainer::encode(const Chunk& table, int64_t first, int64_t n, int n_threads) const {
  CodedRows rows{n, std::vector<uint32_t>((size_t)asked_.n_planes() * n)};
  run(n_threads, (n + BLOCK - 1) / BLOCK, [&](int64_t b, int) {
    for (int p = 0; p < asked_.n_planes(); p++)
      asked_.encode(table, p, first + b * BLOCK, (int)std::min<int64_t>(BLOCK, n - b * BLOCK),
                    &rows.codes[p * n + b * BLOCK]);
  });
  return rows;
}

std::vector<Explainer::PatternRows> Explainer::meet(const Paths& paths, const CodedRows& rows) const {
  std::vector<PatternRows> met;
  for (const LeafGroup& g : paths.groups) {
    const bool few = g.n_bits() <= PATTERN_BITS;
    met.push_back(
        {rows.n, std::vector<uint16_t>(few ? rows.n : 0), std::vector<uint8_t>(few ? 0 : g.ends.size() * rows.n, 1)});
  }
  std::vector<uint8_t> left(paths.conditions.size() * BLOCK);
  for (int64_t at = 0; at < rows.n; at += BLOCK) {
    const int n = (int)std::min<int64_t>(BLOCK, rows.n - at);
    for (size_t c = 0; c < paths.conditions.size(); c++)
      asked_.goes_left(paths.conditions[c], &rows.codes[paths.conditions[c].plane * rows.n + at], n, &left[c * BLOCK]);
    for (size_t k = 0; k < met.size(); k++) {
      const LeafGroup& g = paths.groups[k];
      if (!met[k].pattern.empty()) {
        kernels().match_patterns({left.data(), n, (int)g.ends.size(), (int)g.inside.size(), g.literals.data(),
                                  g.ends.data(), g.inside.data(), &met[k].pattern[at]});
        continue;
      }
      int literal = 0;
      for (size_t c = 0; c < g.ends.size(); c++)
        for (; literal < g.ends[c]; literal++)
          for (int i = 0; i < n; i++)
            met[k].kept[c * rows.n + at + i] &=
                left[g.literals[literal].condition * BLOCK + i] == g.literals[literal].left;
    }
  }
  return met;
}

// Which patterns occur, and what they are worth.
Explainer::Entries Explainer::fill(const LeafGroup& g, PatternRows&& rows, const PatternRows* background,
                                   bool pairs) const {
  const int n_slots = (int)g.columns.size();
  Entries made{rows.n, std::move(rows.pattern), {}, {}};
  std::vector<uint16_t> patterns;
  if (!made.at.empty()) {
    const int64_t all = (int64_t)1 << g.n_bits();
    // To fill every entry is quicker than to find out which occur, as long as they are few beside the rows.
    const bool every = background == nullptr && all * (int64_t)g.leaves.size() * g.n_bits() * g.n_bits() <= 16 * rows.n;
    std::vector<int32_t> entry(all, every ? 0 : -1);
    if (!every)
      for (const uint16_t p : made.at) entry[p] = 0;
    for (int64_t p = 0; p < all; p++)
      if (entry[p] == 0) entry[p] = (int32_t)patterns.size(), patterns.push_back((uint16_t)p);
    made.n = (int64_t)patterns.size();
    if (made.n < all)
      for (uint16_t& p : made.at) p = (uint16_t)entry[p];
  }
  for (int i = 0; i < n_slots; i++) {
    if (!pairs) made.targets.push_back(g.columns[i]);
    for (int j = i + 1; pairs && j < n_slots; j++)
      made.targets.push_back((int32_t)place(g.columns[i], g.columns[j], n_columns_));
  }
  made.table.assign(made.targets.size() * made.n, 0.0);
  auto pair = [n_slots](int a, int b) {  // of slots, in the order of targets
    const int i = std::min(a, b), j = std::max(a, b);
    return i * (2 * n_slots - i - 1) / 2 + j - i - 1;
  };

  std::vector<uint8_t> kept((size_t)most_factors_ * LANES);
  std::vector<double> share(most_factors_), mass,
      scratch((size_t)most_factors_ * ((pairs ? most_factors_ : 0) + 3) * LANES);
  std::vector<double*> to((size_t)most_factors_ * most_factors_);
  for (const PathLeaf& leaf : g.leaves) {
    const Factor* f = &g.factors[leaf.factor];
    const int d = leaf.end - leaf.factor;
    if (d < (pairs ? 2 : 1)) continue;
    auto keeps = [&](const PatternRows& met, int64_t i, int j) {
      return met.pattern.empty() ? met.kept[f[j].slot * met.n + i] : (met.pattern[i] & f[j].mask) == f[j].want;
    };
    std::map<uint64_t, int64_t> seen;  // the background's patterns at this leaf, and how often each comes
    for (int64_t i = 0; background != nullptr && i < background->n; i++) {
      uint64_t z = 0;
      for (int j = 0; j < d; j++) z |= (uint64_t)keeps(*background, i, j) << j;
      seen[z]++;
    }
    const int n_points = pairs ? d / 2 : (d + 1) / 2;
    mass.clear();
    for (const double m : mass_[n_points]) mass.push_back(m * leaf.value);
    for (int j = 0; j < d; j++) share[j] = f[j].share;
    for (int64_t first = 0; first < made.n; first += LANES) {
      const int n = (int)std::min<int64_t>(LANES, made.n - first);
      for (int j = 0; j < d; j++)
        for (int i = 0; i < n; i++)
          kept[j * LANES + i] = made.at.empty() ? rows.kept[f[j].slot * rows.n + first + i]
                                                : (patterns[first + i] & f[j].mask) == f[j].want;
      for (int j = 0; j < d; j++) {
        if (!pairs) to[j] = &made.table[f[j].slot * made.n + first];
        for (int k = j + 1; pairs && k < d; k++)
          to[j * d + k] = &made.table[pair(f[j].slot, f[k].slot) * made.n + first];
      }
      if (background != nullptr) {
        against(seen, background->n, leaf.value, kept.data(), n, d, pairs, to.data());
        continue;
      }
      (pairs ? kernels().leaf_shap_interactions : kernels().leaf_shap_values)(
          {n, d, n_points, kept.data(), share.data(), at_[n_points].data(), mass.data(), to.data(), scratch.data()});
    }
  }
  return made;
}

void Explainer::explain(const Chunk& table, const Chunk* background, bool pairs, int64_t first, int64_t last,
                        double* out, int n_threads) const {
  const int64_t n_targets = pairs ? (int64_t)n_columns_ * n_columns_ : n_columns_;
  const int64_t width = n_outputs_ * n_targets;  // sums of a row
  CodedRows reference;
  if (background != nullptr) reference = encode(*background, 0, background->n_rows, n_threads);
  const int64_t pass = std::max<int64_t>(SPAN, pairs ? PASS / n_columns_ : PASS);
  for (int64_t at = 0; at < table.n_rows; at += pass) {
    const int64_t n = std::min(pass, table.n_rows - at), stride = std::min<int64_t>(n, SPAN);
    const int64_t n_blocks = (n + SPAN - 1) / SPAN;
    const CodedRows rows = encode(table, at, n, n_threads);
    std::vector<double> sums((size_t)(n_blocks * width * stride), 0.0);  // (blocks, outputs, targets, rows of a block)
    for (int64_t t = first; t < last;) {
      int64_t end = t, bytes = 0;
      for (; end < last && (end == t || bytes < BATCH); end++)
        for (const LeafGroup& g : trees_[end].groups) {
          const int64_t slots = (int64_t)g.columns.size(),
                        entries = g.n_bits() < 14 ? std::min(n, (int64_t)1 << g.n_bits()) : n;
          bytes += 2 * n + 8 * entries * (pairs ? slots * slots / 2 : slots);
        }
      std::vector<std::vector<Entries>> ready(end - t);
      run(n_threads, end - t, [&](int64_t k, int) {
        const Paths& paths = trees_[t + k];
        std::vector<PatternRows> met = meet(paths, rows), other;
        if (background != nullptr) other = meet(paths, reference);
        for (size_t g = 0; g < met.size(); g++)
          ready[k].push_back(fill(paths.groups[g], std::move(met[g]), background ? &other[g] : nullptr, pairs));
      });
      run(n_threads, n_blocks, [&](int64_t b, int) {
        const int m = (int)std::min<int64_t>(SPAN, n - b * SPAN);
        for (int64_t k = 0; k < end - t; k++) {
          double* sum = &sums[(b * n_outputs_ + trees_[t + k].output) * n_targets * stride];
          for (const Entries& e : ready[k])
            for (size_t j = 0; j < e.targets.size(); j++) {
              double* to = sum + e.targets[j] * stride;
              const double* entry = &e.table[j * e.n];
              if (!e.at.empty()) kernels().add_pattern_values(&e.at[b * SPAN], entry, m, to);
              else
                for (int i = 0; i < m; i++) to[i] = to[i] + entry[b * SPAN + i];
            }
        }
      });
      t = end;
    }
    run(n_threads, n_blocks, [&](int64_t b, int) {
      const int64_t m = std::min<int64_t>(SPAN, n - b * SPAN);
      for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < width; j++) out[(at + b * SPAN + i) * width + j] = sums[(b * width + j) * stride + i];
    });
  }
}

}  // namespace sapwood
