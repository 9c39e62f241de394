#include "cpu/predict/shap_paths.h"

#include <algorithm>
#include <map>

#include "math/real.h"

namespace sapwood {
namespace {

// Bits of a group's pattern: more bits mean fewer groups but larger tables. With 7, 8, 9 bits 10k rows took 0.23, 0.22,
// 0.24 s of CPU time on trees of depth 6, and 1.5, 1.4, 1.3 s on trees of 63 leaves (benchmarks/explain.py).
constexpr size_t GROUP_BITS = 8;
constexpr int NEVER = 31;  // a bit that no mask has: a factor that wants it is never on the path

template <class T>
int index_of(std::vector<T>& all, const T& one) {  // its index; appends it if it is new
  const size_t at = (size_t)(std::find(all.begin(), all.end(), one) - all.begin());
  if (at == all.size()) all.push_back(one);
  return (int)at;
}

}  // namespace

Condition ModelColumns::condition(const ForestArrays& a, int64_t node) const {
  const int p = columns_.plane_of[a.column[node]];
  const uint8_t sides = a.missing_left[node];
  const bool missing_left = sides & 1;
  if (a.set[node] >= 0) return {p, 0, 0, a.set[node], missing_left, sends_unseen_left(sides)};
  const PaddedCuts& cuts = columns_.cuts[p];
  const int bin = bin_of(cuts, a.threshold[node]);
  const Split split = threshold_split((uint32_t)bin, (uint32_t)cuts.n + 1, missing_left);
  return {p, split.low, split.length, -1, missing_left, missing_left};
}

void ModelColumns::encode(const Chunk& table, int plane, int64_t first, int n, uint32_t* code) const {
  const int column = columns_.used[plane];
  const PaddedCuts& cuts = columns_.cuts[plane];
  double x[BLOCK];
  load(table.columns[column], first, n, x);
  if (columns_.code_limit[column] < 0) return kernels().rank(x, n, cuts.d.data(), cuts.n, code);
  for (int i = 0; i < n; i++)
    code[i] = (uint32_t)(x[i] >= 0.0 && x[i] < 65536.0 ? (int)x[i] : x[i] == UNSEEN ? UNSEEN : -1);
}

void ModelColumns::goes_left(const Condition& c, const uint32_t* code, int n, uint8_t* left) const {
  if (c.set < 0) return kernels().goes_left(code, c.low, c.length, n, left);
  auto in_left = [this, set = sets_.place[c.set]](int32_t x) { return sets_.has(set, x); };
  for (int i = 0; i < n; i++) left[i] = !category_goes_right((int32_t)code[i], c.missing_left, c.unseen_left, in_left);
}

namespace {

struct Shape {  // a tree, its parents and conditions
  const ForestArrays& a;
  const double* weight;
  int64_t at;
  int n;
  std::vector<int32_t> parent, condition;  // by node: parent (-1 at the root); index of its condition

  int left(int u) const { return a.left[at + u]; }
  int column(int u) const { return a.column[at + u]; }
  double weight_fraction(int u) const {  // of its parent's weight; 0.5 if the parent has none
    const int64_t l = at + left(parent[u]);
    const double both = weight[l] + weight[l + 1];
    return both > 0.0 ? weight[at + u] / both : 0.5;
  }
  std::vector<int32_t> columns_to(int u) const {  // distinct columns from the root down to u
    std::vector<int32_t> all, way;
    for (int v = parent[u]; v >= 0; v = parent[v]) way.push_back(column(v));
    for (size_t i = way.size(); i-- > 0;) index_of(all, way[i]);
    return all;
  }
};

// By node: the distinct conditions below it, cut off at one more than a group may have.
std::vector<std::vector<int32_t>> conditions_under(const Shape& tree) {
  std::vector<std::vector<int32_t>> under(tree.n);
  for (int u = tree.n - 1; u >= 0; u--) {  // children follow their parents
    if (tree.left(u) == 0) continue;
    under[u] = {tree.condition[u]};
    for (const int v : {tree.left(u), tree.left(u) + 1})
      for (const int32_t c : under[v])
        if (under[u].size() <= GROUP_BITS) index_of(under[u], c);
    for (const int v : {tree.left(u), tree.left(u) + 1})
      if (under[v].size() > GROUP_BITS) under[u] = under[v];
  }
  return under;
}

LeafGroup group_at(const Shape& tree, int u, const std::vector<int32_t>& above, const std::vector<int32_t>& under) {
  LeafGroup g;
  g.inside = under, g.columns = above;
  for (const int32_t c : above) {
    for (int v = u; tree.parent[v] >= 0; v = tree.parent[v])
      if (tree.column(tree.parent[v]) == c)
        g.literals.push_back({tree.condition[tree.parent[v]], v == tree.left(tree.parent[v])});
    g.ends.push_back((int32_t)g.literals.size());
  }
  return g;
}

// Adds a leaf with its factors. Returns the leaf's value times the fraction of the weight that reaches it.
double add_leaf(const Shape& tree, int u, const std::vector<int32_t>& group_of, LeafGroup& g) {
  const int first = (int)g.factors.size();
  for (int v = u; tree.parent[v] >= 0; v = tree.parent[v]) {
    const int p = tree.parent[v];
    const int slot = index_of(g.columns, tree.column(p));
    auto f = std::find_if(g.factors.begin() + first, g.factors.end(), [&](const Factor& x) { return x.slot == slot; });
    if (f == g.factors.end()) f = g.factors.insert(f, {slot, 0, 0, 1.0});
    f->weight_fraction = f->weight_fraction * tree.weight_fraction(v);
    const bool inside = group_of[p] == group_of[u];
    const int bit = inside ? (int)g.ends.size() + index_of(g.inside, tree.condition[p])
                           : slot;  // slots begin with the columns above
    if (bit >= NEVER) continue;     // a group of one leaf with many columns needs no bits (shap.cpp)
    const uint32_t one = 1u << bit, want = !inside || v == tree.left(p) ? one : 0;
    if (f->mask & one && (f->want & one) != want) f->want |= 1u << NEVER;  // the path contradicts itself
    f->mask |= one, f->want |= want;
  }
  std::sort(g.factors.begin() + first, g.factors.end(),
            [&](const Factor& x, const Factor& y) { return g.columns[x.slot] < g.columns[y.slot]; });
  const double value = tree.a.value[tree.at + u];
  g.leaves.push_back({value, first, (int32_t)g.factors.size()});
  double reached = value;
  for (int i = first; i < (int)g.factors.size(); i++) reached = reached * g.factors[i].weight_fraction;
  return reached;
}

}  // namespace

Paths paths_of(const ForestArrays& a, const double* weight, const ModelColumns& columns, int64_t index) {
  const int64_t at = a.offset[index], end = a.offset[index + 1];
  check(at >= 0 && end > at && end <= a.n_nodes, "tree offsets must rise");
  const int n = (int)(end - at);
  Shape tree{a, weight, at, n, std::vector<int32_t>(n, -1), std::vector<int32_t>(n, -1)};
  Paths paths{a.output[index], 0.0, {}, {}};
  std::map<Condition, int32_t> known;
  for (int u = 0; u < n; u++) {
    const int left = tree.left(u);
    if (left == 0) continue;
    check(left > u && left + 1 < n, "a child must follow its parent inside its tree");
    tree.parent[left] = tree.parent[left + 1] = u;
    const auto [place, is_new] = known.try_emplace(columns.condition(a, at + u), (int32_t)known.size());
    tree.condition[u] = place->second;
    if (is_new) paths.conditions.push_back(place->first);
  }
  const std::vector<std::vector<int32_t>> under = conditions_under(tree);
  std::vector<int32_t> group_of(n, -1);
  for (int u = 0; u < n; u++) {
    if (tree.parent[u] >= 0) group_of[u] = group_of[tree.parent[u]];
    if (group_of[u] < 0) {
      const std::vector<int32_t> above = tree.columns_to(u);
      if (tree.left(u) != 0 && under[u].size() + above.size() > GROUP_BITS) continue;
      group_of[u] = (int32_t)paths.groups.size();
      paths.groups.push_back(group_at(tree, u, above, under[u]));
    }
    if (tree.left(u) == 0) paths.expected = paths.expected + add_leaf(tree, u, group_of, paths.groups[group_of[u]]);
  }
  return paths;
}

}  // namespace sapwood
