#include "cpu/predict/shap.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "host/pool.h"

namespace sapwood {
namespace {

constexpr int PATTERN_BITS = 16;  // with more bits every row has its own entry
constexpr int64_t PASS = 16384;  // rows explained in one pass: many, so that filling tables is a small part of the work
constexpr int64_t SPAN = 1024;   // rows whose sums one task adds up: they stay in L2, and a table in L1 for so many
constexpr int64_t BATCH = 1 << 23;  // bytes of the tables and patterns of trees that are explained together

// Gauss quadrature with n points on 0..1. The points of n - 1 (`fewer`) separate those of n.
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

// What a leaf of value v adds to each column (or pair) of a row x if unknown columns are taken from a background row z.
// The mixed row reaches the leaf if it takes from x the columns in which only x is on the path (a of them), and from z
// those in which only z is (b); no column may have neither. A column of the first kind gets the integral over 0..1 of
// v * t^(a - 1) (1 - t)^b, one of the second that of -v * t^a (1 - t)^(b - 1). For a given x, b is the same for all z
// that matter, so background rows are counted by a.
void interventional(const std::map<uint64_t, int64_t>& seen, int64_t n_seen, double value, const uint8_t* on_path,
                    int n, int d, bool pairs, double* const* to) {
  const uint64_t all = d == 64 ? ~0ull : ((uint64_t)1 << d) - 1;
  std::vector<int64_t> of_all(d + 1), of_one((size_t)d * (d + 1)), of_two(pairs ? (size_t)d * d * (d + 1) : 0);
  for (int lane = 0; lane < n; lane++) {
    uint64_t x = 0;
    for (int j = 0; j < d; j++) x |= (uint64_t)on_path[j * LANES + lane] << j;
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
  std::vector<uint16_t> pattern;  // (n), or empty if the group has more than PATTERN_BITS bits
  std::vector<uint8_t> on_path;   // (columns above, n), used instead
};

struct Explainer::Entries {
  int64_t n;                     // number of patterns, or of rows if `at` is empty
  std::vector<uint16_t> at;      // (rows) index of the entry
  std::vector<int32_t> targets;  // columns; with pairs column * n_columns + column
  std::vector<double> table;     // (targets, n)
};

Explainer::Explainer(int n_columns, int n_outputs, const ForestArrays& a, const double* weight)
    : n_columns_(n_columns), n_outputs_(n_outputs), columns_(n_columns, a) {
  for (int64_t t = 0; t < a.n_trees; t++) {
    if (a.output[t] < 0 || a.output[t] >= n_outputs)
      throw std::invalid_argument("a tree adds to an output that is not there");
    trees_.push_back(paths_of(a, weight, columns_, t));
    for (const LeafGroup& g : trees_.back().groups)
      for (const PathLeaf& leaf : g.leaves) max_factors_ = std::max(max_factors_, leaf.end - leaf.factor);
  }
  points_.resize(1), point_weights_.resize(1);
  for (int n = 1; n <= (max_factors_ + 1) / 2; n++) {
    points_.emplace_back(), point_weights_.emplace_back();
    gauss(points_[n - 1], points_[n], point_weights_[n]);
  }
}

Explainer::CodedRows Explainer::encode(const Chunk& table, int64_t first, int64_t n, int n_threads) const {
  CodedRows rows{n, std::vector<uint32_t>((size_t)columns_.n_planes() * n)};
  run(n_threads, (n + BLOCK - 1) / BLOCK, [&](int64_t b, int) {
    for (int p = 0; p < columns_.n_planes(); p++)
      columns_.encode(table, p, first + b * BLOCK, (int)std::min<int64_t>(BLOCK, n - b * BLOCK),
                      &rows.codes[p * n + b * BLOCK]);
  });
  return rows;
}

std::vector<Explainer::PatternRows> Explainer::match(const Paths& paths, const CodedRows& rows) const {
  std::vector<PatternRows> found;
  for (const LeafGroup& g : paths.groups) {
    const bool few = g.n_bits() <= PATTERN_BITS;
    found.push_back(
        {rows.n, std::vector<uint16_t>(few ? rows.n : 0), std::vector<uint8_t>(few ? 0 : g.ends.size() * rows.n, 1)});
  }
  std::vector<uint8_t> left(paths.conditions.size() * BLOCK);
  for (int64_t at = 0; at < rows.n; at += BLOCK) {
    const int n = (int)std::min<int64_t>(BLOCK, rows.n - at);
    for (size_t c = 0; c < paths.conditions.size(); c++)
      columns_.goes_left(paths.conditions[c], &rows.codes[paths.conditions[c].plane * rows.n + at], n,
                         &left[c * BLOCK]);
    for (size_t k = 0; k < found.size(); k++) {
      const LeafGroup& g = paths.groups[k];
      if (!found[k].pattern.empty()) {
        kernels().match_patterns({left.data(), n, (int)g.ends.size(), (int)g.inside.size(), g.literals.data(),
                                  g.ends.data(), g.inside.data(), &found[k].pattern[at]});
        continue;
      }
      int literal = 0;
      for (size_t c = 0; c < g.ends.size(); c++)
        for (; literal < g.ends[c]; literal++)
          for (int i = 0; i < n; i++)
            found[k].on_path[c * rows.n + at + i] &=
                left[g.literals[literal].condition * BLOCK + i] == g.literals[literal].left;
    }
  }
  return found;
}

// Finds the patterns that occur, and computes what the group's leaves add for each.
Explainer::Entries Explainer::fill(const LeafGroup& g, PatternRows&& rows, const PatternRows* background,
                                   bool pairs) const {
  const int n_slots = (int)g.columns.size();
  Entries made{rows.n, std::move(rows.pattern), {}, {}};
  std::vector<uint16_t> patterns;
  if (!made.at.empty()) {
    const int64_t all = (int64_t)1 << g.n_bits();
    // If there are few entries beside the rows, filling all is faster than finding out which occur.
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
  auto pair = [n_slots](int a, int b) {  // index of a pair of slots in targets
    const int i = std::min(a, b), j = std::max(a, b);
    return i * (2 * n_slots - i - 1) / 2 + j - i - 1;
  };

  std::vector<uint8_t> on_path((size_t)max_factors_ * LANES);
  std::vector<double> weight_fraction(max_factors_), mass,
      scratch((size_t)max_factors_ * ((pairs ? max_factors_ : 0) + 3) * LANES);
  std::vector<double*> to((size_t)max_factors_ * max_factors_);
  for (const PathLeaf& leaf : g.leaves) {
    const Factor* f = &g.factors[leaf.factor];
    const int d = leaf.end - leaf.factor;
    if (d < (pairs ? 2 : 1)) continue;
    auto keeps = [&](const PatternRows& found, int64_t i, int j) {
      return found.pattern.empty() ? found.on_path[f[j].slot * found.n + i]
                                   : (found.pattern[i] & f[j].mask) == f[j].want;
    };
    std::map<uint64_t, int64_t> seen;  // how many background rows have each pattern at this leaf
    for (int64_t i = 0; background != nullptr && i < background->n; i++) {
      uint64_t z = 0;
      for (int j = 0; j < d; j++) z |= (uint64_t)keeps(*background, i, j) << j;
      seen[z]++;
    }
    const int n_points = pairs ? d / 2 : (d + 1) / 2;
    mass.clear();
    for (const double m : point_weights_[n_points]) mass.push_back(m * leaf.value);
    for (int j = 0; j < d; j++) weight_fraction[j] = f[j].weight_fraction;
    for (int64_t first = 0; first < made.n; first += LANES) {
      const int n = (int)std::min<int64_t>(LANES, made.n - first);
      for (int j = 0; j < d; j++)
        for (int i = 0; i < n; i++)
          on_path[j * LANES + i] = made.at.empty() ? rows.on_path[f[j].slot * rows.n + first + i]
                                                   : (patterns[first + i] & f[j].mask) == f[j].want;
      for (int j = 0; j < d; j++) {
        if (!pairs) to[j] = &made.table[f[j].slot * made.n + first];
        for (int k = j + 1; pairs && k < d; k++)
          to[j * d + k] = &made.table[pair(f[j].slot, f[k].slot) * made.n + first];
      }
      if (background != nullptr) {
        interventional(seen, background->n, leaf.value, on_path.data(), n, d, pairs, to.data());
        continue;
      }
      (pairs ? kernels().leaf_shap_interactions
             : kernels().leaf_shap_values)({n, d, n_points, on_path.data(), weight_fraction.data(),
                                            points_[n_points].data(), mass.data(), to.data(), scratch.data()});
    }
  }
  return made;
}

void Explainer::explain(const Chunk& table, const Chunk* background, bool pairs, int64_t first, int64_t last,
                        double* out, int n_threads) const {
  const int64_t n_targets = pairs ? (int64_t)n_columns_ * n_columns_ : n_columns_;
  const int64_t width = n_outputs_ * n_targets;  // sums a row has
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
        std::vector<PatternRows> found = match(paths, rows), other;
        if (background != nullptr) other = match(paths, reference);
        for (size_t g = 0; g < found.size(); g++)
          ready[k].push_back(fill(paths.groups[g], std::move(found[g]), background ? &other[g] : nullptr, pairs));
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
