#include "cpu/predict/shap.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "cpu/kernels/lookup_add.h"
#include "host/pool.h"

namespace sapwood {
namespace {

// rows explained in one pass: many, so that filling tables is a small part of the work
constexpr int64_t PASS = 16384;
// rows whose sums one task adds up: they stay in L2, and a table in L1 for so many
constexpr int64_t SPAN = 1024;
// bytes of the tables and patterns of trees that are explained together
constexpr int64_t BATCH = 1 << 23;
// of the tables of one tree: fewer rows a pass if they would take more
constexpr int64_t MAX_PASS_BYTES = 1 << 29;
constexpr int64_t MAX_ROW_BYTES = 1 << 30;  // of the tables of one tree for one row
// Columns on a path. Time grows with its square for each row, and with its cube before the first
// one.
constexpr int MAX_FACTORS = 512;

// Gauss quadrature with n points on 0..1. The points of n - 1 (`fewer`) separate those of n.
void gauss(const std::vector<double>& fewer, std::vector<double>& at, std::vector<double>& mass) {
  const int n = (int)fewer.size() + 1;
  auto legendre = [n](double x, double& slope) {  // P_n and its derivative on -1..1
    double p = 1.0;
    double q = 0.0;
    for (int k = 1; k <= n; k++) {
      const double next = ((2 * k - 1) * x * p - (k - 1) * q) / k;
      q = p;
      p = next;
    }
    slope = n * (x * p - q) / (x * x - 1.0);
    return p;
  };
  for (int i = 0; i < n; i++) {
    double low = i == 0 ? -1.0 : 2.0 * fewer[i - 1] - 1.0;
    double high = i == n - 1 ? 1.0 : 2.0 * fewer[i] - 1.0;
    double slope;
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
  for (int k = 1; k <= q; k++) {
    b = b * k / (p + k + 1);
  }
  return b;
}

// What a leaf of value v adds to each column (or pair) of a row x if unknown columns are taken from
// a background row z. The mixed row reaches the leaf if it takes from x the columns in which only x
// is on the path (a of them), and from z those in which only z is (b); no column may have neither.
// A column of the first kind gets the integral over 0..1 of
// v * t^(a - 1) (1 - t)^b, one of the second that of -v * t^a (1 - t)^(b - 1). For a given x, b is
// the same for all z that matter, so background rows are counted by a. Counts are whole numbers in
// float64; with `seen` of other weights the leaf's value is v times the weight of z.
// by pattern of background rows: their number, or the sum of their weights
using Seen = std::map<uint64_t, double>;
void interventional(const Seen& seen, int64_t n_seen, double value, const uint8_t* on_path, int n,
                    int d, bool pairs, double* const* to) {
  const uint64_t all = d == 64 ? ~0ull : ((uint64_t)1 << d) - 1;
  std::vector<double> of_all(d + 1);
  std::vector<double> of_one((size_t)d * (d + 1));
  std::vector<double> of_two(pairs ? (size_t)d * d * (d + 1) : 0);
  for (int lane = 0; lane < n; lane++) {
    uint64_t x = 0;
    for (int j = 0; j < d; j++) {
      x |= (uint64_t)on_path[j * LANES + lane] << j;
    }
    const int b = d - __builtin_popcountll(x);
    std::fill(of_all.begin(), of_all.end(), 0.0);
    std::fill(of_one.begin(), of_one.end(), 0.0);
    std::fill(of_two.begin(), of_two.end(), 0.0);
    for (const auto& [z, count] : seen) {
      if ((x | z) != all) {
        continue;
      }
      const uint64_t alone = x & ~z;
      const int a = __builtin_popcountll(alone);
      of_all[a] += count;
      for (uint64_t i = alone; i != 0; i &= i - 1) {
        const int first = __builtin_ctzll(i);
        of_one[first * (d + 1) + a] += count;
        for (uint64_t j = pairs ? i & (i - 1) : 0; j != 0; j &= j - 1) {
          of_two[(first * d + __builtin_ctzll(j)) * (d + 1) + a] += count;
        }
      }
    }
    auto mean = [&](const double* counts, int less, int q) {  // of t^(a - less) (1 - t)^q
      double sum = 0.0;
      for (int a = less; a <= d - b; a++) {
        if (counts[a] != 0.0) {
          sum = sum + counts[a] * beta(a - less, q);
        }
      }
      return sum / (double)n_seen;
    };
    auto has = [&](int j) {
      return (x >> j & 1) != 0;
    };
    for (int j = 0; j < d; j++) {
      if (!pairs) {
        to[j][lane] = to[j][lane] + value * (has(j) ? mean(&of_one[j * (d + 1)], 1, b)
                                                    : -mean(of_all.data(), 0, b - 1));
      }
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

int64_t row_bytes(const Paths& paths, bool pairs) {  // of the tables of a tree, for each row
  int64_t bytes = 0;
  for (const LeafGroup& g : paths.groups) {
    const int64_t slots = (int64_t)g.columns.size();
    bytes += g.n_bits() < 14
                 ? 2
                 : 8 * (pairs ? slots * slots / 2 : slots) * (1 + (int64_t)g.lines.size()) + slots;
  }
  return bytes;
}

int64_t place(int i, int j, int n) {
  return (int64_t)std::min(i, j) * n + std::max(i, j);
}

}  // namespace

struct Explainer::CodedRows {
  int64_t n;
  std::vector<uint32_t> codes;  // (n_planes, n)
  // (lines, n) values as they enter lines, less the centre of their column
  std::vector<double> z;
  std::vector<uint8_t> finite;  // (lines, n); empty if all are
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
  std::vector<int32_t> lines;    // columns of lines
  // (lines, targets, n) what a value of the column in CodedRows::z adds
  std::vector<double> slopes;
};

Explainer::Explainer(int n_columns, int n_outputs, const ForestArrays& a, const double* weight)
    : n_columns_(n_columns), n_outputs_(n_outputs), columns_(n_columns, a) {
  for (int64_t t = 0; t < a.n_trees; t++) {
    if (a.output[t] < 0 || a.output[t] >= n_outputs) {
      throw std::invalid_argument("a tree adds to an output that is not there");
    }
    trees_.push_back(paths_of(a, weight, columns_, t));
    for (const LeafGroup& g : trees_.back().groups) {
      for (const PathLeaf& leaf : g.leaves) {
        max_factors_ = std::max(max_factors_, leaf.end - leaf.factor);
      }
    }
  }
  if (max_factors_ > MAX_FACTORS) {
    throw std::invalid_argument("a path of the model has " + std::to_string(max_factors_) +
                                " different columns; models of up to " +
                                std::to_string(MAX_FACTORS) + " are explained");
  }
  points_.resize(1);
  point_weights_.resize(1);
  for (int n = 1; n <= (max_factors_ + 1) / 2; n++) {
    points_.emplace_back();
    point_weights_.emplace_back();
    gauss(points_[n - 1], points_[n], point_weights_[n]);
  }
}

Explainer::CodedRows Explainer::encode(const Chunk& table, int64_t first, int64_t n,
                                       int n_threads) const {
  const int n_lines = (int)columns_.lines().size();
  CodedRows rows{n, std::vector<uint32_t>((size_t)columns_.n_planes() * n),
                 std::vector<double>((size_t)n_lines * n),
                 std::vector<uint8_t>((size_t)n_lines * n)};
  run(n_threads, (n + BLOCK - 1) / BLOCK, [&](int64_t b, int) {
    const int64_t at = b * BLOCK;
    const int m = (int)std::min<int64_t>(BLOCK, n - at);
    for (int p = 0; p < columns_.n_planes(); p++) {
      columns_.encode(table, p, first + at, m, &rows.codes[p * n + at]);
    }
    for (int l = 0; l < n_lines; l++) {
      columns_.load_line(table, l, first + at, m, &rows.z[l * n + at], &rows.finite[l * n + at]);
    }
  });
  if (std::find(rows.finite.begin(), rows.finite.end(), 0) == rows.finite.end()) {
    rows.finite.clear();
  }
  return rows;
}

std::vector<Explainer::PatternRows> Explainer::match(const Paths& paths,
                                                     const CodedRows& rows) const {
  std::vector<PatternRows> found;
  for (const LeafGroup& g : paths.groups) {
    const bool few = g.has_patterns();
    found.push_back({rows.n, std::vector<uint16_t>(few ? rows.n : 0),
                     std::vector<uint8_t>(few ? 0 : g.ends.size() * rows.n, 1)});
  }
  std::vector<uint8_t> left(paths.conditions.size() * BLOCK);
  for (int64_t at = 0; at < rows.n; at += BLOCK) {
    const int n = (int)std::min<int64_t>(BLOCK, rows.n - at);
    for (size_t c = 0; c < paths.conditions.size(); c++) {
      columns_.goes_left(paths.conditions[c], &rows.codes[paths.conditions[c].plane * rows.n + at],
                         n, &left[c * BLOCK]);
    }
    for (size_t k = 0; k < found.size(); k++) {
      const LeafGroup& g = paths.groups[k];
      if (!found[k].pattern.empty()) {
        kernels().match_patterns({left.data(), n, (int)g.ends.size(), (int)g.inside.size(),
                                  g.literals.data(), g.ends.data(), g.inside.data(),
                                  &found[k].pattern[at]});
        continue;
      }
      int literal = 0;
      for (size_t c = 0; c < g.ends.size(); c++) {
        for (; literal < g.ends[c]; literal++) {
          for (int i = 0; i < n; i++) {
            found[k].on_path[c * rows.n + at + i] &=
                left[g.literals[literal].condition * BLOCK + i] == g.literals[literal].left;
          }
        }
      }
    }
  }
  return found;
}

namespace {

// The entries of a group: the patterns that occur, each with the columns of lines whose values are
// missing or infinite.
struct Keys {
  std::vector<uint16_t> pattern;
  std::vector<uint64_t> missing;  // a bit for each of LeafGroup::lines
};

struct Lanes {  // some entries of a group at one of its leaves
  int n, d;
  // (d, LANES) on_line: and the column's value, if it is in the line, is finite
  std::vector<uint8_t> on_path, on_line;
  explicit Lanes(int max_d) : on_path((size_t)max_d * LANES), on_line((size_t)max_d * LANES) {}
};

struct LeafSeen {  // the background rows at a leaf, bits of Seen: its factors
  int64_t n = 0;
  Seen on_path, on_line;
  std::vector<Seen> without,
      valued;  // by term: as if its column were off the path; weighted by the values of its column
};

}  // namespace

class Explainer::Filler {
 public:
  Filler(const Explainer& e, const LeafGroup& g, const CodedRows& coded, PatternRows&& rows,
         const CodedRows* other, const PatternRows* background, bool pairs)
      : e_(e),
        g_(g),
        coded_(coded),
        rows_(std::move(rows)),
        other_(other),
        background_(background),
        pairs_(pairs),
        lanes_(e.max_factors_),
        weight_fraction_(e.max_factors_),
        scratch_((size_t)e.max_factors_ * ((pairs ? e.max_factors_ : 0) + 3) * LANES),
        unit_(g.terms.empty() ? 0 : (size_t)e.max_factors_ * (pairs ? e.max_factors_ : 1) * LANES) {
  }

  Entries run() {
    find_entries();
    const int n_slots = (int)g_.columns.size();
    for (int i = 0; i < n_slots; i++) {
      if (!pairs_) {
        made_.targets.push_back(g_.columns[i]);
      }
      for (int j = i + 1; pairs_ && j < n_slots; j++) {
        made_.targets.push_back((int32_t)place(g_.columns[i], g_.columns[j], e_.n_columns_));
      }
    }
    made_.lines = g_.lines;
    made_.table.assign(made_.targets.size() * made_.n, 0.0);
    made_.slopes.assign(made_.lines.size() * made_.table.size(), 0.0);
    for (const PathLeaf& leaf : g_.leaves) {
      if (leaf.end - leaf.factor >= (pairs_ ? 2 : 1)) {
        add_leaf(leaf);
      }
    }
    return std::move(made_);
  }

 private:
  void find_entries() {
    made_.n = rows_.n;
    made_.at = std::move(rows_.pattern);
    if (made_.at.empty()) {
      return;
    }
    const std::vector<uint64_t> missing = missing_lines();
    if (!missing.empty()) {
      std::map<std::pair<uint64_t, uint16_t>, uint16_t> known;
      for (int64_t i = 0; i < rows_.n; i++) {
        known[{missing[i], made_.at[i]}] = 0;
      }
      for (auto& [key, index] : known) {
        index = (uint16_t)keys_.pattern.size();
        keys_.missing.push_back(key.first);
        keys_.pattern.push_back(key.second);
      }
      for (int64_t i = 0; i < rows_.n; i++) {
        made_.at[i] = known[{missing[i], made_.at[i]}];
      }
    } else {
      const int64_t all = (int64_t)1 << g_.n_bits();
      const int64_t leaves = (int64_t)g_.leaves.size();
      // If there are few entries beside the rows, filling all is faster than finding out which
      // occur.
      const bool every =
          background_ == nullptr && all * leaves * g_.n_bits() * g_.n_bits() <= 16 * rows_.n;
      std::vector<int32_t> entry(all, every ? 0 : -1);
      if (!every) {
        for (const uint16_t p : made_.at) {
          entry[p] = 0;
        }
      }
      for (int64_t p = 0; p < all; p++) {
        if (entry[p] == 0) {
          entry[p] = (int32_t)keys_.pattern.size();
          keys_.pattern.push_back((uint16_t)p);
        }
      }
      if ((int64_t)keys_.pattern.size() < all) {
        for (uint16_t& p : made_.at) {
          p = (uint16_t)entry[p];
        }
      }
    }
    made_.n = (int64_t)keys_.pattern.size();
  }

  // (rows), or empty if no row of the group misses a value
  std::vector<uint64_t> missing_lines() const {
    std::vector<uint64_t> found(coded_.finite.empty() ? 0 : rows_.n, 0);
    bool some = false;
    for (size_t l = 0; !found.empty() && l < g_.lines.size(); l++) {
      const uint8_t* finite = &coded_.finite[g_.lines[l] * coded_.n];
      for (int64_t i = 0; i < rows_.n; i++) {
        found[i] |= (uint64_t)!finite[i] << l;
        some |= !finite[i];
      }
    }
    if (!some) {
      found.clear();
    }
    return found;
  }

  bool is_finite(const CodedRows& coded, int64_t i, const LineTerm& t) const {
    return coded.finite.empty() || coded.finite[g_.lines[t.line] * coded.n + i];
  }

  // a row to the path of a factor's column
  bool keeps(const PatternRows& found, int64_t i, const Factor& f) const {
    if (!found.pattern.empty()) {
      return (found.pattern[i] & f.mask) == f.want;
    }
    return f.slot >= (int)g_.ends.size() || found.on_path[f.slot * found.n + i];
  }

  LeafSeen see(const PathLeaf& leaf) const {
    LeafSeen seen;
    const LineTerm* term = g_.terms.data() + leaf.term;
    const LineTerm* last = g_.terms.data() + leaf.last;
    seen.without.resize(last - term);
    seen.valued.resize(last - term);
    for (int64_t i = 0; background_ != nullptr && i < background_->n; i++) {
      uint64_t z = 0;
      for (int j = leaf.factor; j < leaf.end; j++) {
        z |= (uint64_t)keeps(*background_, i, g_.factors[j]) << (j - leaf.factor);
      }
      seen.n++;
      seen.on_path[z] += 1.0;
      for (const LineTerm* t = term; t < last; t++) {
        if (!is_finite(*other_, i, *t)) {
          z &= ~(1ull << t->factor);
        }
      }
      if (term < last) {
        seen.on_line[z] += 1.0;
      }
      for (const LineTerm* t = term; t < last; t++) {
        seen.without[t - term][z & ~(1ull << t->factor)] += 1.0;
        seen.valued[t - term][z] += other_->z[g_.lines[t->line] * other_->n + i];
      }
    }
    return seen;
  }

  void set_lanes(const PathLeaf& leaf, int64_t first) {
    lanes_.n = (int)std::min<int64_t>(LANES, made_.n - first);
    lanes_.d = leaf.end - leaf.factor;
    for (int j = 0; j < lanes_.d; j++) {
      const Factor& f = g_.factors[leaf.factor + j];
      for (int i = 0; i < lanes_.n; i++) {
        lanes_.on_path[j * LANES + i] = made_.at.empty()
                                            ? keeps(rows_, first + i, f)
                                            : (keys_.pattern[first + i] & f.mask) == f.want;
      }
    }
    if (leaf.term == leaf.last) {
      return;
    }
    lanes_.on_line = lanes_.on_path;
    for (int t = leaf.term; t < leaf.last; t++) {
      const LineTerm& term = g_.terms[t];
      for (int i = 0; i < lanes_.n; i++) {
        lanes_.on_line[term.factor * LANES + i] &=
            made_.at.empty()
                ? is_finite(coded_, first + i, term)
                : keys_.missing.empty() || !(keys_.missing[first + i] >> term.line & 1);
      }
    }
  }

  void add_leaf(const PathLeaf& leaf) {
    const int d = leaf.end - leaf.factor;
    const LeafSeen seen = see(leaf);
    for (int j = 0; j < d; j++) {
      weight_fraction_[j] = g_.factors[leaf.factor + j].weight_fraction;
    }
    for (int64_t first = 0; first < made_.n; first += LANES) {
      set_lanes(leaf, first);
      if (background_ == nullptr) {
        path_kernel(leaf.value, lanes_.on_path, targets_at(leaf, made_.table.data() + first));
      } else {
        background_kernel(seen.on_path, seen.n, leaf.value, lanes_.on_path, leaf,
                          made_.table.data() + first);
      }
      if (leaf.term == leaf.last) {
        continue;
      }
      if (background_ == nullptr) {
        add_line(leaf, first);
      } else {
        add_line_against(leaf, seen, first);
      }
    }
  }

  // Path-dependent: a term is slope * (z - mean) if its column is known and 0 if not, so its column
  // has to stay on the path by being known: the fraction of the weight that stays otherwise is 0.
  void add_line(const PathLeaf& leaf, int64_t first) {
    for (int t = leaf.term; t < leaf.last; t++) {
      const LineTerm& term = g_.terms[t];
      const double kept = std::exchange(weight_fraction_[term.factor], 0.0);
      std::fill(unit_.begin(), unit_.end(), 0.0);
      std::vector<double*> to = targets_at(leaf, nullptr, unit_.data());
      path_kernel(1.0, lanes_.on_line, to);
      weight_fraction_[term.factor] = kept;
      const std::vector<double*> table = targets_at(leaf, made_.table.data() + first);
      const std::vector<double*> slopes = targets_at(leaf, slopes_of(term) + first);
      for (size_t k = 0; k < to.size(); k++) {
        for (int i = 0; to[k] != nullptr && i < lanes_.n; i++) {
          table[k][i] = table[k][i] - term.mean * to[k][i];
          slopes[k][i] = slopes[k][i] + term.slope * to[k][i];
        }
      }
    }
  }

  // Against a background: a term is slope * z of the row if its column is known, and that of the
  // background row if not.
  void add_line_against(const PathLeaf& leaf, const LeafSeen& seen, int64_t first) {
    double* table = made_.table.data() + first;
    background_kernel(seen.on_line, seen.n, leaf.shift, lanes_.on_line, leaf, table);
    for (int t = leaf.term; t < leaf.last; t++) {
      const LineTerm& term = g_.terms[t];
      background_kernel(seen.without[t - leaf.term], seen.n, term.slope, lanes_.on_line, leaf,
                        slopes_of(term) + first);
      std::vector<uint8_t> unknown = lanes_.on_line;
      std::fill_n(unknown.begin() + term.factor * LANES, LANES, 0);
      background_kernel(seen.valued[t - leaf.term], seen.n, term.slope, unknown, leaf, table);
    }
  }

  double* slopes_of(const LineTerm& t) { return &made_.slopes[t.line * made_.table.size()]; }

  // (d) or (d, d) where the first lane of each factor, or pair of factors, lies in a table
  // (targets, n), or if `unit` is given in (d, LANES), (d, d, LANES).
  std::vector<double*> targets_at(const PathLeaf& leaf, double* table,
                                  double* unit = nullptr) const {
    const int d = leaf.end - leaf.factor;
    const int n_slots = (int)g_.columns.size();
    const Factor* f = &g_.factors[leaf.factor];
    std::vector<double*> to((size_t)d * (pairs_ ? d : 1), nullptr);
    for (int j = 0; j < d; j++) {
      if (!pairs_) {
        to[j] = unit ? unit + j * LANES : table + f[j].slot * made_.n;
      }
      for (int k = j + 1; pairs_ && k < d; k++) {
        const int low = std::min(f[j].slot, f[k].slot);
        const int high = std::max(f[j].slot, f[k].slot);
        const int target = low * (2 * n_slots - low - 1) / 2 + high - low - 1;
        to[j * d + k] = unit ? unit + (j * d + k) * LANES : table + target * made_.n;
      }
    }
    return to;
  }

  void path_kernel(double value, const std::vector<uint8_t>& on_path,
                   const std::vector<double*>& to) {
    const int n_points = pairs_ ? lanes_.d / 2 : (lanes_.d + 1) / 2;
    mass_.clear();
    for (const double m : e_.point_weights_[n_points]) {
      mass_.push_back(m * value);
    }
    (pairs_ ? kernels().leaf_shap_interactions : kernels().leaf_shap_values)(
        {lanes_.n, lanes_.d, n_points, on_path.data(), weight_fraction_.data(),
         e_.points_[n_points].data(), mass_.data(), to.data(), scratch_.data()});
  }

  void background_kernel(const Seen& seen, int64_t n_seen, double value,
                         const std::vector<uint8_t>& on_path, const PathLeaf& leaf, double* table) {
    interventional(seen, n_seen, value, on_path.data(), lanes_.n, lanes_.d, pairs_,
                   targets_at(leaf, table).data());
  }

  const Explainer& e_;
  const LeafGroup& g_;
  const CodedRows& coded_;
  PatternRows rows_;
  const CodedRows* other_;
  const PatternRows* background_;
  bool pairs_;
  Lanes lanes_;
  std::vector<double> weight_fraction_, scratch_, unit_, mass_;
  Keys keys_;
  Entries made_;
};

void Explainer::explain(const Chunk& table, const Chunk* background, bool pairs, int64_t first,
                        int64_t last, double* out, int n_threads) const {
  const int64_t n_targets = pairs ? (int64_t)n_columns_ * n_columns_ : n_columns_;
  const int64_t width = n_outputs_ * n_targets;  // sums a row has
  CodedRows reference;
  if (background != nullptr) {
    reference = encode(*background, 0, background->n_rows, n_threads);
  }
  int64_t worst = 1;
  for (int64_t t = first; t < last; t++) {
    worst = std::max(worst, row_bytes(trees_[t], pairs));
  }
  if (worst > MAX_ROW_BYTES) {
    throw std::invalid_argument("a row needs " + std::to_string(worst >> 30) + " GB or more");
  }
  const int64_t pass = std::min(std::max<int64_t>(SPAN, pairs ? PASS / n_columns_ : PASS),
                                std::max<int64_t>(1, MAX_PASS_BYTES / worst));
  for (int64_t at = 0; at < table.n_rows; at += pass) {
    const int64_t n = std::min(pass, table.n_rows - at);
    const int64_t stride = std::min<int64_t>(n, SPAN);
    const int64_t n_blocks = (n + SPAN - 1) / SPAN;
    const CodedRows rows = encode(table, at, n, n_threads);
    // (blocks, outputs, targets, rows of a block)
    std::vector<double> sums((size_t)(n_blocks * width * stride), 0.0);
    for (int64_t t = first; t < last;) {
      int64_t end = t;
      int64_t bytes = 0;
      for (; end < last && (end == t || bytes < BATCH); end++) {
        for (const LeafGroup& g : trees_[end].groups) {
          const int64_t slots = (int64_t)g.columns.size();
          const int64_t entries = g.n_bits() < 14 ? std::min(n, (int64_t)1 << g.n_bits()) : n;
          bytes += 2 * n + 8 * entries * (pairs ? slots * slots / 2 : slots) *
                               (1 + (int64_t)g.lines.size());
        }
      }
      std::vector<std::vector<Entries>> ready(end - t);
      run(n_threads, end - t, [&](int64_t k, int) {
        const Paths& paths = trees_[t + k];
        std::vector<PatternRows> found = match(paths, rows);
        std::vector<PatternRows> other;
        if (background != nullptr) {
          other = match(paths, reference);
        }
        for (size_t g = 0; g < found.size(); g++) {
          ready[k].push_back(Filler(*this, paths.groups[g], rows, std::move(found[g]), &reference,
                                    background ? &other[g] : nullptr, pairs)
                                 .run());
        }
      });
      run(n_threads, n_blocks, [&](int64_t b, int) {
        const int m = (int)std::min<int64_t>(SPAN, n - b * SPAN);
        for (int64_t k = 0; k < end - t; k++) {
          double* sum = &sums[(b * n_outputs_ + trees_[t + k].output) * n_targets * stride];
          for (const Entries& e : ready[k]) {
            for (size_t j = 0; j < e.targets.size(); j++) {
              double* to = sum + e.targets[j] * stride;
              const double* entry = &e.table[j * e.n];
              if (!e.at.empty()) {
                kernels().add_pattern_values(&e.at[b * SPAN], entry, m, to);
              } else {
                for (int i = 0; i < m; i++) {
                  to[i] = to[i] + entry[b * SPAN + i];
                }
              }
              for (size_t l = 0; l < e.lines.size(); l++) {
                const double* slope = &e.slopes[(l * e.targets.size() + j) * e.n];
                const double* z = &rows.z[e.lines[l] * n + b * SPAN];
                if (!e.at.empty()) {
                  lookup_multiply_add(to, &e.at[b * SPAN], slope, z, m);
                } else {
                  for (int i = 0; i < m; i++) {
                    to[i] = to[i] + slope[b * SPAN + i] * z[i];
                  }
                }
              }
            }
          }
        }
      });
      t = end;
    }
    run(n_threads, n_blocks, [&](int64_t b, int) {
      const int64_t m = std::min<int64_t>(SPAN, n - b * SPAN);
      for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < width; j++) {
          out[(at + b * SPAN + i) * width + j] = sums[(b * width + j) * stride + i];
        }
      }
    });
  }
}

}  // namespace sapwood
