#include "paths.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "../math/real.h"

namespace sapwood {
namespace {

// Bits of a group's pattern. More bits mean fewer groups but larger tables: 10k rows are explained fastest at 8 (benchmarks/explain.py).
constexpr size_t GROUP_BITS = 8;
constexpr int NEVER = 31;                 // a bit that is wanted but in no mask
constexpr int32_t SMALL_SET = 512;        // sets of codes below it have a byte for each, others are searched
constexpr uint32_t MISSING = 0xffffffff;  // the code of a missing category

void check(bool fine, const char* what) {
  if (!fine) throw std::invalid_argument(what);
}

template <class T>
int index_of(std::vector<T>& all, const T& one) {  // its place, a new one if need be
  const auto at = std::find(all.begin(), all.end(), one);
  if (at == all.end()) all.push_back(one);
  return (int)(std::find(all.begin(), all.end(), one) - all.begin());
}

}  // namespace

Asked::Asked(int n_columns, const ForestArrays& a)
    : plane_of_(n_columns, -1),
      set_offset_(a.set_offset, a.set_offset + a.n_sets + 1),
      set_code_(a.set_code, a.set_code + a.n_codes),
      member_(a.n_sets) {
  check(a.set_offset[0] == 0 && a.set_offset[a.n_sets] == a.n_codes, "sets do not cover their codes");
  for (int64_t s = 0; s < a.n_sets; s++) {
    const int64_t first = a.set_offset[s], end = a.set_offset[s + 1];
    check(first <= end && end <= a.n_codes, "offsets of sets must not fall");
    for (int64_t i = first; i < end; i++)
      check(a.set_code[i] > (i > first ? a.set_code[i - 1] : -1), "the codes of a set must rise");
    if (first == end || a.set_code[end - 1] >= SMALL_SET) continue;
    member_[s].resize(a.set_code[end - 1] + 1, 0);
    for (int64_t i = first; i < end; i++) member_[s][a.set_code[i]] = 1;
  }
  std::vector<std::vector<double>> thresholds(n_columns);
  std::vector<uint8_t> seen(n_columns, 0), category(n_columns, 0);
  for (int64_t u = 0; u < a.n_nodes; u++) {
    if (a.left[u] == 0) continue;
    const int c = a.column[u];
    check(c >= 0 && c < n_columns, "a split asks for a column that is not there");
    check(a.set[u] >= -1 && a.set[u] < a.n_sets, "a split asks for a set that is not there");
    check(!seen[c] || category[c] == (a.set[u] >= 0), "a column is split by thresholds and by sets");
    seen[c] = 1, category[c] = a.set[u] >= 0;
    if (a.threshold[u] != INF && !category[c]) thresholds[c].push_back(a.threshold[u]);
  }
  for (int c = 0; c < n_columns; c++) {
    if (!seen[c]) continue;
    auto& x = thresholds[c];
    std::sort(x.begin(), x.end());
    x.erase(std::unique(x.begin(), x.end()), x.end());
    plane_of_[c] = n_planes();
    columns_.push_back(c), category_.push_back(category[c]), cuts_.emplace_back(x);
  }
}

Condition Asked::condition(const ForestArrays& a, int64_t node) const {
  const int p = plane_of_[a.column[node]];
  const bool missing_left = a.missing_left[node] != 0;
  if (category_[p]) return {p, 0, 0, a.set[node], missing_left};
  const Cuts& cuts = cuts_[p];
  const double x = a.threshold[node];
  const int bin =
      x == INF ? cuts.n : (int)(std::lower_bound(cuts.d.begin(), cuts.d.begin() + cuts.n, x) - cuts.d.begin());
  const uint32_t low = (uint32_t)bin + 1, end = (uint32_t)cuts.n + 1 + !missing_left;
  return {p, low, end - low, -1, missing_left};
}

void Asked::encode(const Chunk& table, int plane, int64_t first, int n, uint32_t* code) const {
  double x[BLOCK];
  load(table.columns[columns_[plane]], first, n, x);
  if (!category_[plane]) return kernels().rank(x, n, cuts_[plane].d.data(), cuts_[plane].n, code);
  for (int i = 0; i < n; i++) code[i] = x[i] >= 0.0 && x[i] < 65536.0 ? (uint32_t)x[i] : MISSING;
}

void Asked::goes_left(const Condition& c, const uint32_t* code, int n, uint8_t* left) const {
  if (c.set < 0) return kernels().keeps_left(code, c.low, c.length, n, left);
  const int32_t *first = set_code_.data() + set_offset_[c.set], *end = set_code_.data() + set_offset_[c.set + 1];
  const std::vector<uint8_t>& member = member_[c.set];
  for (int i = 0; i < n; i++)
    left[i] = code[i] == MISSING ? c.missing_left
              : member.empty()   ? std::binary_search(first, end, (int32_t)code[i])
                                 : code[i] < member.size() && member[code[i]];
}

Paths paths_of(const ForestArrays& a, const double* weight, const Asked& asked, int64_t tree) {
  const int64_t at = a.offset[tree];
  check(at >= 0 && a.offset[tree + 1] > at && a.offset[tree + 1] <= a.n_nodes, "tree offsets must rise");
  const int n = (int)(a.offset[tree + 1] - at);
  const int32_t* left = a.left + at;
  Paths paths{a.output[tree], 0.0, {}, {}};
  std::vector<int32_t> parent(n, -1), condition(n, -1);
  std::map<Condition, int32_t> known;
  for (int u = 0; u < n; u++) {
    if (left[u] == 0) continue;
    check(left[u] > u && left[u] + 1 < n, "a child must follow its parent inside its tree");
    parent[left[u]] = parent[left[u] + 1] = u;
    const Condition c = asked.condition(a, at + u);
    condition[u] = known.try_emplace(c, (int32_t)known.size()).first->second;
    if ((int)paths.conditions.size() < (int)known.size()) paths.conditions.push_back(c);
  }
  auto share = [&](int u) {  // of its parent's weight; a parent without weight has two equal halves
    const int l = left[parent[u]];
    const double both = weight[at + l] + weight[at + l + 1];
    return both > 0.0 ? weight[at + u] / both : 0.5;
  };
  auto columns_to = [&](int u) {  // different columns on the way to a node, from the root down
    std::vector<int32_t> all, way;
    for (int v = parent[u]; v >= 0; v = parent[v]) way.push_back(a.column[at + v]);
    for (size_t i = way.size(); i-- > 0;) index_of(all, way[i]);
    return all;
  };

  // Conditions under a node, as long as they fit a group; children follow their parents, so this goes upwards.
  std::vector<std::vector<int32_t>> under(n);
  std::vector<uint8_t> fits(n, 1);
  for (int u = n - 1; u >= 0; u--) {
    if (left[u] == 0) continue;
    fits[u] = fits[left[u]] && fits[left[u] + 1];
    if (!fits[u]) continue;
    under[u] = {condition[u]};
    for (const int v : {left[u], left[u] + 1})
      for (const int32_t c : under[v]) index_of(under[u], c);
    fits[u] = under[u].size() <= GROUP_BITS;
  }

  std::vector<int32_t> group_of(n, -1);
  for (int u = 0; u < n; u++) {
    if (parent[u] >= 0) group_of[u] = group_of[parent[u]];
    if (group_of[u] < 0) {
      const std::vector<int32_t> above = columns_to(u);
      if (left[u] != 0 && (!fits[u] || under[u].size() + above.size() > GROUP_BITS)) continue;
      group_of[u] = (int32_t)paths.groups.size();
      LeafGroup g;
      g.inside = under[u], g.columns = above;
      for (const int32_t c : above) {
        for (int v = u; parent[v] >= 0; v = parent[v])
          if (a.column[at + parent[v]] == c) g.literals.push_back({condition[parent[v]], v == left[parent[v]]});
        g.ends.push_back((int32_t)g.literals.size());
      }
      paths.groups.push_back(std::move(g));
    }
    if (left[u] != 0) continue;
    LeafGroup& g = paths.groups[group_of[u]];
    const int first = (int)g.factors.size();
    for (int v = u; parent[v] >= 0; v = parent[v]) {
      const int p = parent[v];
      const int slot = index_of(g.columns, a.column[at + p]);
      auto f =
          std::find_if(g.factors.begin() + first, g.factors.end(), [&](const Factor& x) { return x.slot == slot; });
      if (f == g.factors.end()) f = g.factors.insert(f, {slot, 0, 0, 1.0});
      f->share = f->share * share(v);
      const bool inside = group_of[p] == group_of[u];
      const int bit =
          inside ? (int)g.ends.size() + index_of(g.inside, condition[p]) : slot;  // slots begin with those above
      if (bit >= NEVER) continue;  // a leaf on its own with so many columns: they are its bits (shap.cpp)
      const uint32_t one = 1u << bit, want = !inside || v == left[p] ? one : 0;
      if (f->mask & one && (f->want & one) != want) f->want |= 1u << NEVER;  // the same question, answered both ways
      f->mask |= one, f->want |= want;
    }
    std::sort(g.factors.begin() + first, g.factors.end(),
              [&](const Factor& x, const Factor& y) { return g.columns[x.slot] < g.columns[y.slot]; });
    g.leaves.push_back({a.value[at + u], first, (int32_t)g.factors.size()});
    double reached = a.value[at + u];
    for (int i = first; i < (int)g.factors.size(); i++) reached = reached * g.factors[i].share;
    paths.expected = paths.expected + reached;
  }
  return paths;
}

}  // namespace sapwood
