#include "cpu/predict/shap_paths.h"

#include <algorithm>
#include <map>

#include "math/linear.h"
#include "math/real.h"

namespace sapwood {
namespace {

// Bits of a group's pattern: more bits mean fewer groups but larger tables. With 7, 8, 9 bits 10k
// rows took 0.23, 0.22, 0.24 s of CPU time on trees of depth 6, and 1.5, 1.4, 1.3 s on trees of 63
// leaves (benchmarks/explain.py).
constexpr size_t GROUP_BITS = 8;
constexpr int NEVER = 31;  // a bit that no mask has: a factor that wants it is never on the path

template <class T>
int index_of(std::vector<T>& all, const T& one) {  // its index; appends it if it is new
  const size_t at = (size_t)(std::find(all.begin(), all.end(), one) - all.begin());
  if (at == all.size()) {
    all.push_back(one);
  }
  return (int)at;
}

}  // namespace

ModelColumns::ModelColumns(int n_columns, const ForestArrays& a)
    : columns_(n_columns, a), sets_(a) {
  if (a.linear.offset == nullptr) {
    return;
  }
  std::vector<int32_t> found(a.linear.column, a.linear.column + a.linear.offset[a.n_nodes]);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (a.linear.bounds != nullptr) {
    bounds_.assign(a.linear.bounds, a.linear.bounds + 3 * (found.back() + 1));
  }
  for (const int32_t c : found) {
    if (c < 0) {
      continue;  // the constant of a line
    }
    const PaddedCuts& cuts = columns_.cuts[columns_.plane_of[c]];
    const double* b = standard() ? &bounds_[3 * c] : nullptr;
    if (b != nullptr) {
      lines_.push_back({columns_.plane_of[c], b[0], b[1], b[2]});
    } else if (cuts.n == 0) {
      lines_.push_back({columns_.plane_of[c], 0.0, 0.0, 0.0});
    } else {
      lines_.push_back({columns_.plane_of[c], cuts.d[0], cuts.d[cuts.n - 1], cuts.d[cuts.n / 2]});
    }
  }
}

int ModelColumns::line_of(int column) const {
  const int plane = columns_.plane_of[column];
  return (int)(std::find_if(lines_.begin(), lines_.end(),
                            [&](const LineColumn& x) {
                              return x.plane == plane;
                            }) -
               lines_.begin());
}

void ModelColumns::load_line(const Chunk& table, int line, int64_t first, int n, double* z,
                             uint8_t* finite) const {
  const int column = columns_.used[lines_[line].plane];
  load(table.columns[column], first, n, z);
  for (int i = 0; i < n; i++) {
    const double x = standard() ? bounded(bounds_.data(), column, z[i]) : z[i];
    finite[i] = x - x == 0.0;
    z[i] = finite[i] ? x - lines_[line].centre : 0.0;
  }
}

Condition ModelColumns::condition(const ForestArrays& a, int64_t node) const {
  const int p = columns_.plane_of[a.column[node]];
  const uint8_t sides = a.missing_left[node];
  const bool missing_left = sides & 1;
  if (a.set[node] >= 0) {
    return {p, 0, 0, a.set[node], missing_left, sends_unseen_left(sides)};
  }
  const PaddedCuts& cuts = columns_.cuts[p];
  const int bin = bin_of(cuts, a.threshold[node]);
  const Split split = threshold_split((uint32_t)bin, (uint32_t)cuts.n + 1, missing_left);
  return {p, split.low, split.length, -1, missing_left, missing_left};
}

void ModelColumns::encode(const Chunk& table, int plane, int64_t first, int n,
                          uint32_t* code) const {
  const int column = columns_.used[plane];
  const PaddedCuts& cuts = columns_.cuts[plane];
  double x[BLOCK];
  load(table.columns[column], first, n, x);
  if (columns_.code_limit[column] < 0) {
    return kernels().rank(x, n, cuts.d.data(), cuts.n, code);
  }
  for (int i = 0; i < n; i++) {
    code[i] = (uint32_t)(x[i] >= 0.0 && x[i] < 65536.0 ? (int)x[i] : x[i] == UNSEEN ? UNSEEN : -1);
  }
}

void ModelColumns::goes_left(const Condition& c, const uint32_t* code, int n, uint8_t* left) const {
  if (c.set < 0) {
    return kernels().goes_left(code, c.low, c.length, n, left);
  }
  auto in_left = [this, set = sets_.place[c.set]](int32_t x) {
    return sets_.has(set, x);
  };
  for (int i = 0; i < n; i++) {
    left[i] = !category_goes_right((int32_t)code[i], c.missing_left, c.unseen_left, in_left);
  }
}

namespace {

struct Shape {  // a tree, its parents and conditions
  const ForestArrays& a;
  const double* weight;
  int64_t at;
  int n;
  // by node: parent (-1 at the root); index of its condition
  std::vector<int32_t> parent, condition;

  int left(int u) const { return a.left[at + u]; }
  int column(int u) const { return a.column[at + u]; }
  double weight_fraction(int u) const {  // of its parent's weight; 0.5 if the parent has none
    const int64_t l = at + left(parent[u]);
    const double both = weight[l] + weight[l + 1];
    return both > 0.0 ? weight[at + u] / both : 0.5;
  }
  std::vector<int32_t> columns_to(int u) const {  // distinct columns from the root down to u
    std::vector<int32_t> all;
    std::vector<int32_t> way;
    for (int v = parent[u]; v >= 0; v = parent[v]) {
      way.push_back(column(v));
    }
    for (size_t i = way.size(); i-- > 0;) {
      index_of(all, way[i]);
    }
    return all;
  }
};

// By node: the distinct conditions below it, cut off at one more than a group may have.
std::vector<std::vector<int32_t>> conditions_under(const Shape& tree) {
  std::vector<std::vector<int32_t>> under(tree.n);
  for (int u = tree.n - 1; u >= 0; u--) {  // children follow their parents
    if (tree.left(u) == 0) {
      continue;
    }
    under[u] = {tree.condition[u]};
    for (const int v : {tree.left(u), tree.left(u) + 1}) {
      for (const int32_t c : under[v]) {
        if (under[u].size() <= GROUP_BITS) {
          index_of(under[u], c);
        }
      }
    }
    for (const int v : {tree.left(u), tree.left(u) + 1}) {
      if (under[v].size() > GROUP_BITS) {
        under[u] = under[v];
      }
    }
  }
  return under;
}

LeafGroup group_at(const Shape& tree, int u, const std::vector<int32_t>& above,
                   const std::vector<int32_t>& under) {
  LeafGroup g;
  g.inside = under;
  g.columns = above;
  for (const int32_t c : above) {
    for (int v = u; tree.parent[v] >= 0; v = tree.parent[v]) {
      if (tree.column(tree.parent[v]) == c) {
        g.literals.push_back({tree.condition[tree.parent[v]], v == tree.left(tree.parent[v])});
      }
    }
    g.ends.push_back((int32_t)g.literals.size());
  }
  return g;
}

// The values of a column that rows of leaf u can have: its bounds, and the thresholds on the way.
LineColumn box(const Shape& tree, int u, int column, LineColumn b) {
  for (int v = u; tree.parent[v] >= 0; v = tree.parent[v]) {
    const int p = tree.parent[v];
    const double cut = tree.a.threshold[tree.at + p];
    if (tree.column(p) != column || cut == INF) {
      continue;
    }
    if (v == tree.left(p)) {
      b.high = std::min(b.high, std::max(b.low, cut));
    } else {
      b.low = std::max(b.low, std::min(b.high, cut));
    }
  }
  return b;
}

// Adds the terms of a leaf. A model has what the line of a leaf is on average, the leaf's value,
// but not what each term is. Terms start at the centre of their column, or where that is nearest in
// the leaf's box. Then all go the same fraction of the way to where they are largest (smallest) in
// the box, until their sum is right.
void add_terms(const Shape& tree, int u, const ModelColumns& columns, LeafGroup& g,
               PathLeaf& leaf) {
  const LinearView& l = tree.a.linear;
  const int64_t from = l.offset[tree.at + u];
  const int64_t to = l.offset[tree.at + u + 1];
  std::vector<double> ways[2];  // by term: how far it can rise, how far fall
  double rest = leaf.value - l.coef[from];
  leaf.shift = l.coef[from] - leaf.value;
  for (int64_t t = from + 1; t < to; t++) {
    const double slope = l.coef[t];
    const int line = columns.line_of(l.column[t]);
    const LineColumn all = columns.lines()[line];
    const LineColumn b = box(tree, u, l.column[t], all);
    const double ends[] = {slope * (b.low - all.centre), slope * (b.high - all.centre)};
    const double start = slope * (std::clamp(all.centre, b.low, b.high) - all.centre);
    ways[0].push_back(std::max(ends[0], ends[1]) - start);
    ways[1].push_back(start - std::min(ends[0], ends[1]));
    leaf.shift = leaf.shift + slope * all.centre;
    rest = rest - (slope * all.centre + start);
    const auto f =
        std::find_if(g.factors.begin() + leaf.factor, g.factors.end(), [&](const Factor& x) {
          return g.columns[x.slot] == l.column[t];
        });
    g.terms.push_back(
        {(int32_t)(f - g.factors.begin()) - leaf.factor, index_of(g.lines, line), slope, start});
  }
  leaf.last = (int32_t)g.terms.size();
  const std::vector<double>& way = ways[rest < 0.0];
  double whole = 0.0;
  for (const double x : way) {
    whole = whole + x;
  }
  for (size_t k = 0; k < way.size(); k++) {
    double& mean = g.terms[leaf.term + k].mean;
    mean = mean + (whole > 0.0 ? rest * (way[k] / whole) : rest / (double)way.size());
  }
}

// Adds a leaf with its factors. Returns the leaf's value times the fraction of the weight that
// reaches it.
double add_leaf(const Shape& tree, int u, const ModelColumns& columns,
                const std::vector<int32_t>& group_of, LeafGroup& g) {
  const int first = (int)g.factors.size();
  for (int v = u; tree.parent[v] >= 0; v = tree.parent[v]) {
    const int p = tree.parent[v];
    const int slot = index_of(g.columns, tree.column(p));
    auto f = std::find_if(g.factors.begin() + first, g.factors.end(), [&](const Factor& x) {
      return x.slot == slot;
    });
    if (f == g.factors.end()) {
      f = g.factors.insert(f, {slot, 0, 0, 1.0});
    }
    f->weight_fraction = f->weight_fraction * tree.weight_fraction(v);
    const bool inside = group_of[p] == group_of[u];
    const int bit = inside ? (int)g.ends.size() + index_of(g.inside, tree.condition[p])
                           : slot;  // slots begin with the columns above
    // a group of one leaf with many columns needs no bits (shap.cpp)
    if (bit >= NEVER) {
      continue;
    }
    const uint32_t one = 1u << bit;
    const uint32_t want = !inside || v == tree.left(p) ? one : 0;
    // the path contradicts itself
    if (f->mask & one && (f->want & one) != want) {
      f->want |= 1u << NEVER;
    }
    f->mask |= one;
    f->want |= want;
  }
  const LinearView& l = tree.a.linear;
  const int64_t node = tree.at + u;
  const int64_t n_terms = l.offset == nullptr ? 0 : l.offset[node + 1] - l.offset[node];
  // a column of its line that no split above has: always on the path
  for (int64_t t = 1; t < n_terms; t++) {
    const int slot = index_of(g.columns, l.column[l.offset[node] + t]);
    auto same = [&](const Factor& x) {
      return x.slot == slot;
    };
    if (std::none_of(g.factors.begin() + first, g.factors.end(), same)) {
      g.factors.push_back({slot, 0, 0, 1.0});
    }
  }
  std::sort(g.factors.begin() + first, g.factors.end(), [&](const Factor& x, const Factor& y) {
    return g.columns[x.slot] < g.columns[y.slot];
  });
  const double value = n_terms == 1 ? l.coef[l.offset[node]] : tree.a.value[node];
  const int32_t term = (int32_t)g.terms.size();
  g.leaves.push_back({value, first, (int32_t)g.factors.size(), term, term, 0.0});
  if (n_terms > 1) {
    add_terms(tree, u, columns, g, g.leaves.back());
  }
  double reached = value;
  for (int i = first; i < (int)g.factors.size(); i++) {
    reached = reached * g.factors[i].weight_fraction;
  }
  return reached;
}

}  // namespace

Paths paths_of(const ForestArrays& a, const double* weight, const ModelColumns& columns,
               int64_t index) {
  const int64_t at = a.offset[index];
  const int64_t end = a.offset[index + 1];
  check(at >= 0 && end > at && end <= a.n_nodes, "tree offsets must rise");
  const int n = (int)(end - at);
  Shape tree{a, weight, at, n, std::vector<int32_t>(n, -1), std::vector<int32_t>(n, -1)};
  Paths paths{a.output[index], 0.0, {}, {}, {}};
  std::map<Condition, int32_t> known;
  for (int u = 0; u < n; u++) {
    const int left = tree.left(u);
    if (left == 0) {
      continue;
    }
    check(left > u && left + 1 < n, "a child must follow its parent inside its tree");
    tree.parent[left] = tree.parent[left + 1] = u;
    const auto [place, is_new] =
        known.try_emplace(columns.condition(a, at + u), (int32_t)known.size());
    tree.condition[u] = place->second;
    if (is_new) {
      paths.conditions.push_back(place->first);
      paths.condition_node.push_back(at + u);
    }
  }
  const std::vector<std::vector<int32_t>> under = conditions_under(tree);
  std::vector<int32_t> group_of(n, -1);
  for (int u = 0; u < n; u++) {
    if (tree.parent[u] >= 0) {
      group_of[u] = group_of[tree.parent[u]];
    }
    if (group_of[u] < 0) {
      const std::vector<int32_t> above = tree.columns_to(u);
      if (tree.left(u) != 0 && under[u].size() + above.size() > GROUP_BITS) {
        continue;
      }
      group_of[u] = (int32_t)paths.groups.size();
      paths.groups.push_back(group_at(tree, u, above, under[u]));
    }
    if (tree.left(u) == 0) {
      paths.expected =
          paths.expected + add_leaf(tree, u, columns, group_of, paths.groups[group_of[u]]);
    }
  }
  for (const LeafGroup& g : paths.groups) {
    check(!g.has_patterns() || g.lines.size() <= MAX_LINES,
          "a branch has lines of too many columns");
  }
  return paths;
}

FlatPaths flat(const std::vector<Paths>& trees) {
  FlatPaths out;
  for (const Paths& tree : trees) {
    out.group_at.push_back((int32_t)out.bit_at.size());
    auto add_literal = [&](const Literal& l) {
      out.literal_node.push_back((int32_t)tree.condition_node[l.condition]);
      out.literal_left.push_back(l.left);
    };
    for (const LeafGroup& g : tree.groups) {
      out.bit_at.push_back((int32_t)out.literal_at.size());
      out.leaf_at.push_back((int32_t)out.leaf_value.size());
      out.slot_at.push_back((int32_t)out.slot_column.size());
      for (size_t c = 0, at = 0; c < g.ends.size(); c++) {
        out.literal_at.push_back((int32_t)out.literal_node.size());
        for (; at < (size_t)g.ends[c]; at++) {
          add_literal(g.literals[at]);
        }
      }
      for (const int32_t condition : g.inside) {
        out.literal_at.push_back((int32_t)out.literal_node.size());
        add_literal({condition, true});
      }
      out.slot_column.insert(out.slot_column.end(), g.columns.begin(), g.columns.end());
      for (const PathLeaf& leaf : g.leaves) {
        out.leaf_value.push_back(leaf.value);
        out.factor_at.push_back((int32_t)out.factor_slot.size());
        for (int i = leaf.factor; i < leaf.end; i++) {
          const Factor& f = g.factors[i];
          out.factor_slot.push_back(f.slot);
          out.weight_fraction.push_back(f.weight_fraction);
          out.factor_mask.push_back((int32_t)f.mask);
          out.factor_want.push_back((int32_t)f.want);
        }
      }
    }
  }
  out.group_at.push_back((int32_t)out.bit_at.size());
  out.bit_at.push_back((int32_t)out.literal_at.size());
  out.leaf_at.push_back((int32_t)out.leaf_value.size());
  out.slot_at.push_back((int32_t)out.slot_column.size());
  out.literal_at.push_back((int32_t)out.literal_node.size());
  out.factor_at.push_back((int32_t)out.factor_slot.size());
  return out;
}

}  // namespace sapwood
