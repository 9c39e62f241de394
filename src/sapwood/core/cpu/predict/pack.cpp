#include "cpu/predict/pack.h"

#include <string.h>

#include <map>

#include "math/real.h"

namespace sapwood {
namespace {

constexpr uint64_t NO_CODES[SET_WORDS] = {};
// sets of smaller codes get bits; others only if the bits take no more words than codes
constexpr int SMALL_SET = 512;

void check_trees(int n_columns, int n_outputs, const ForestArrays& a) {
  check(n_columns >= 1 && n_outputs >= 1, "a forest needs columns and base scores");
  check(a.offset[0] == 0 && a.offset[a.n_trees] == a.n_nodes,
        "tree offsets do not cover the nodes");
  for (int64_t t = 0; t < a.n_trees; t++) {
    const int64_t at = a.offset[t];
    const int64_t n = a.offset[t + 1] - at;
    check(n >= 1 && n < 0x1fffffff && at >= 0 && at + n <= a.n_nodes, "tree offsets must rise");
    check(a.output[t] >= 0 && a.output[t] < n_outputs,
          "a tree adds to an output that does not exist");
    check(2 * std::count(a.left + at, a.left + at + n, 0) == n + 1,
          "a tree must have one leaf more than splits");
    for (int64_t u = 0; u < n; u++) {
      const int32_t left = a.left[at + u];
      if (left == 0) {
        continue;
      }
      check(left > u && left + 1 < n, "a child must follow its parent inside its tree");
      const double x = a.threshold[at + u];
      check(x == x && x != -INF && (x != INF || !a.missing_left[at + u]),
            "a split has an impossible threshold");
    }
  }
}

void check_sets(const ForestArrays& a) {
  check(a.n_sets >= 0 && a.set_offset[0] == 0 && a.set_offset[a.n_sets] == a.n_codes,
        "sets do not cover their codes");
  for (int64_t s = 0; s < a.n_sets; s++) {
    const int64_t first = a.set_offset[s];
    const int64_t last = a.set_offset[s + 1];
    check(first <= last && last <= a.n_codes, "offsets of sets must not fall");
    for (int64_t i = first; i < last; i++) {
      check(a.set_code[i] < MAX_CODES && a.set_code[i] > (i > first ? a.set_code[i - 1] : -1),
            "the codes of a set must rise");
    }
  }
}

// One more than the largest code of a set; 0 for the empty set, which sends only missing values
// left.
int32_t end_of_set(const ForestArrays& a, int64_t s) {
  return a.set_offset[s] < a.set_offset[s + 1] ? a.set_code[a.set_offset[s + 1] - 1] + 1 : 0;
}

// The depth of a tree that has one split a level and is laid out level by level, else -1.
int symmetric_depth(const ForestArrays& a, int64_t at, int64_t n) {
  int depth = 0;
  while (((int64_t)2 << depth) - 1 < n) {
    depth++;
  }
  if (((int64_t)2 << depth) - 1 != n || depth < 1 || depth > 8) {
    return -1;
  }
  for (int64_t u = 0; u < n; u++) {
    const bool leaf = u >= ((int64_t)1 << depth) - 1;
    if (a.left[at + u] != (leaf ? 0 : (int32_t)(2 * u + 1))) {
      return -1;
    }
    if (leaf) {
      continue;
    }
    int level = 0;
    while (((int64_t)2 << level) - 1 <= u) {
      level++;
    }
    const int64_t first = at + ((int64_t)1 << level) - 1;
    if (a.column[at + u] != a.column[first] || a.threshold[at + u] != a.threshold[first] ||
        a.missing_left[at + u] != a.missing_left[first] || a.set[at + u] != a.set[first]) {
      return -1;
    }
  }
  return depth;
}

// Whether tree t has the splits of the tree before it, as the trees of a round with vector leaves
// have.
bool same_splits(const ForestArrays& a, int64_t t) {
  if (t == 0) {
    return false;
  }
  const int64_t at = a.offset[t];
  const int64_t before = a.offset[t - 1];
  const int64_t n = a.offset[t + 1] - at;
  auto same = [&](const auto* x) {
    return memcmp(x + at, x + before, n * sizeof *x) == 0;
  };
  return at - before == n && same(a.left) && same(a.column) && same(a.threshold) &&
         same(a.missing_left) && same(a.set);
}

}  // namespace

struct PackedForest::SplitNumbers {
  std::map<std::array<int32_t, 5>, int32_t> of;  // by plane, low, length, set and sides
};

UsedColumns::UsedColumns(int n_columns, const ForestArrays& a)
    : plane_of(n_columns, -1), code_limit(n_columns, -1) {
  check_sets(a);
  std::vector<std::vector<double>> thresholds(n_columns);
  for (int64_t u = 0; u < a.n_nodes; u++) {
    if (a.left[u] == 0) {
      continue;
    }
    const int c = a.column[u];
    check(c >= 0 && c < n_columns, "a split reads a column that does not exist");
    check(a.set[u] >= -1 && a.set[u] < a.n_sets, "a split reads a set that does not exist");
    plane_of[c] = 0;
    if (a.set[u] >= 0) {
      code_limit[c] = std::max(code_limit[c], end_of_set(a, a.set[u]));
    } else if (a.threshold[u] != INF) {
      thresholds[c].push_back(a.threshold[u]);
    }
  }
  for (int64_t u = 0; u < a.n_nodes; u++) {
    check(a.left[u] == 0 || (a.set[u] >= 0) == (code_limit[a.column[u]] >= 0),
          "a column is split by sets and by thresholds");
  }
  for (int64_t j = 0; a.linear.offset != nullptr && j < a.linear.offset[a.n_nodes]; j++) {
    if (a.linear.column[j] >= 0) {
      plane_of[a.linear.column[j]] = 0;
    }
  }
  for (int c = 0; c < n_columns; c++) {
    if (plane_of[c] < 0) {
      continue;
    }
    auto& x = thresholds[c];
    std::sort(x.begin(), x.end());
    x.erase(std::unique(x.begin(), x.end()), x.end());
    plane_of[c] = (int)used.size();
    used.push_back(c);
    cuts.emplace_back(x);
  }
}

CategorySets::CategorySets(const ForestArrays& a) {
  for (int64_t s = 0; s < a.n_sets; s++) {
    const int64_t first = a.set_offset[s];
    const int64_t last = a.set_offset[s + 1];
    const int end = end_of_set(a, s);
    const int words = (end + 63) / 64;
    const bool in_bits = end <= SMALL_SET || words <= last - first;
    place.push_back(in_bits ? (int64_t)bits.size() : ~s);
    if (!in_bits) {
      continue;
    }
    bits.push_back((uint64_t)end);
    bits.resize(bits.size() + words, 0);
    for (int64_t i = first; i < last; i++) {
      bits[place[s] + 1 + a.set_code[i] / 64] |= 1ull << (a.set_code[i] % 64);
    }
  }
  offset.assign(a.set_offset, a.set_offset + a.n_sets + 1);
  code.assign(a.set_code, a.set_code + a.n_codes);
}

RowNode PackedForest::row_node(const ForestArrays& a, int64_t at, int u) const {
  const int64_t node = at + u;
  if (a.left[node] == 0) {
    return {{INF}, -1, u * 4 + 1};
  }
  const uint8_t sides = a.missing_left[node];
  const int plane = plane_of[a.column[node]];
  RowNode r{
      {a.threshold[node]}, plane, a.left[node] * 4 + sends_unseen_left(sides) * 2 + (sides & 1)};
  if (a.set[node] >= 0) {
    r.set = sets.place[a.set[node]];
    r.plane = -2 - plane;
  }
  return r;
}

MaskNode PackedForest::mask(const ForestArrays& a, int64_t node, PackedTree& tree) {
  const int c = a.column[node];
  const int p = plane_of[c];
  const int limit = code_limit[c];
  const int left = a.left[node];
  const uint8_t sides = a.missing_left[node];
  const bool missing_left = sides & 1;
  const bool unseen_left = sends_unseen_left(sides);
  if (limit < 0) {
    const int bin = bin_of(cuts[p], a.threshold[node]);
    return mask_node(p, left,
                     threshold_split((uint32_t)bin, (uint32_t)cuts[p].n + 1, missing_left));
  }
  const int32_t s = a.set[node];
  if (limit > MAX_BYTE_LIMIT) {
    const auto column =
        std::lower_bound(wide_columns.begin(), wide_columns.end(), c) - wide_columns.begin();
    wide.push_back({(int)column, sets.place[s], missing_left, unseen_left});
    return mask_node((int)used.size() + tree.n_wide++, left, {1, 1});
  }
  // code_of: limit + 1 is the code of missing values
  uint64_t* right = mask_sets.emplace_back().data();
  fill_set(a.set_code + a.set_offset[s], a.set_offset[s + 1] - a.set_offset[s], limit + 1,
           missing_left, right);
  if (unseen_left) {
    right[(limit + 2) / 64] &= ~(1ull << ((limit + 2) % 64));
  }
  return mask_node(p, left, {0, 0, right});
}

// The splits of a tree as numbers of different splits: many trees have the same, which blocks then
// answer once. That missing values go left is an exception to the split which sends them right, so
// that one of the two is enough.
void PackedForest::pack_shared(const ForestArrays& a, PackedTree& tree, SplitNumbers& numbers) {
  const MaskNode* node = &masks[tree.first_mask];
  int n_places = root_place((tree.n_nodes + 1) / 2);
  std::vector<uint16_t> place(tree.n_nodes);
  for (int u = 0; u < tree.n_nodes; u++) {
    place[u] = node[u].left == 0 ? node[u].leaf : (uint16_t)n_places++;
  }
  auto number = [&](const MaskNode& split, int32_t set, int32_t sides) {
    const auto [found, is_new] = numbers.of.try_emplace(
        {split.plane, split.low, split.length, set, sides}, (int32_t)splits.size());
    if (is_new) {
      splits.push_back(split);
    }
    return found->second;
  };
  for (int u = 0; u < tree.n_nodes; u++) {
    MaskNode split = node[u];
    MaskNode except{0, 0, 0, 0, 0, NO_CODES};
    if (split.left == 0) {
      continue;
    }
    const uint8_t sides = a.missing_left[tree.first_node + u];
    const bool by_set = split.set != nullptr;
    if (!by_set && (sides & 1)) {
      split.length++;
      except = mask_node(split.plane, 0, {(uint32_t)cuts[split.plane].n + 1, 1});
    }
    shared.push_back({number(split, by_set ? a.set[tree.first_node + u] : -1, by_set ? sides : 0),
                      number(except, except.set == NO_CODES ? -2 : -1, 0), place[u],
                      place[split.left], place[split.left + 1]});
  }
  tree.is_shared = true;
}

void PackedForest::pack_masks(const ForestArrays& a, PackedTree& tree, SplitNumbers& numbers) {
  const int64_t at = tree.first_node;
  auto make = [&](int u) {
    return mask(a, at + u, tree);
  };
  const int n_leaves = (tree.n_nodes + 1) / 2;
  std::vector<int32_t> leaf(n_leaves);
  if (tree.symmetric_depth < 0) {
    masks.resize(masks.size() + tree.n_nodes);
    pack_mask_tree(a.left + at, tree.n_nodes, make, &masks[tree.first_mask], leaf.data());
  } else {
    for (int d = 0; d < tree.symmetric_depth; d++) {
      masks.push_back(make((1 << d) - 1));
    }
    for (int k = 0; k < n_leaves; k++) {
      leaf[k] = n_leaves - 1 + k;  // the last level
    }
  }
  leaf_value.resize(leaf_value.size() + LEAF_VALUES, 0.0);
  if (has_linear()) {
    leaf_node.resize(leaf_value.size(), at);
  }
  for (int k = 0; k < n_leaves; k++) {
    leaf_value[tree.first_value + k] = a.value[at + leaf[k]];
    if (has_linear()) {
      leaf_node[tree.first_value + k] = at + leaf[k];
    }
  }
  if (tree.symmetric_depth < 0 && tree.n_wide == 0) {
    pack_shared(a, tree, numbers);
  }
  max_nodes = std::max(max_nodes, tree.n_nodes);
  max_wide = std::max(max_wide, tree.n_wide);
}

// Adds the columns of the lines of a tree to `planes`; false if a sum might be infinite.
bool PackedForest::line_columns(const PackedTree& tree, std::vector<int32_t>& planes) const {
  const int64_t* node = &leaf_node[tree.first_value];
  for (int k = 0; k < (tree.n_nodes + 1) / 2; k++) {
    double largest = 0.0;
    for (int64_t j = linear.offset[node[k]]; j < linear.offset[node[k] + 1]; j++) {
      const int32_t p = linear.column[j];
      if (p >= 0) {
        planes.push_back(p);
      }
      const double* b = p < 0 ? nullptr : &bounds[3 * (size_t)p];
      largest =
          largest + std::abs(linear.coef[j]) * (b ? std::max(std::abs(b[0]), std::abs(b[1])) : 1.0);
    }
    if (!(largest < 1e300)) {
      return false;
    }
  }
  std::sort(planes.begin(), planes.end());
  planes.erase(std::unique(planes.begin(), planes.end()), planes.end());
  return true;
}

// Tables of the lines of a tree: a slope for each leaf and each column of any line, 0 where a line
// has not the column. Adding 0 * z leaves a sum as it is. A tree keeps its terms if there are many
// columns, or sums that might be infinite.
void PackedForest::pack_lines(PackedTree& tree) {
  const int n_leaves = (tree.n_nodes + 1) / 2;
  const int64_t* node = &leaf_node[tree.first_value];
  std::vector<int32_t> planes;
  if (!line_columns(tree, planes) || planes.size() > MAX_TABLES) {
    return;
  }
  const size_t stride = (size_t)1 << std::max(5, tree.n_bits);
  tree.n_lines = (int)planes.size();
  tree.first_line = (int64_t)line_planes.size();
  tree.first_slope = (int64_t)slopes.size();
  slopes.resize(slopes.size() + planes.size() * stride, 0.0);
  for (int k = 0; k < n_leaves; k++) {
    for (int64_t j = linear.offset[node[k]]; j < linear.offset[node[k] + 1]; j++) {
      const auto at =
          std::lower_bound(planes.begin(), planes.end(), linear.column[j]) - planes.begin();
      (linear.column[j] < 0 ? leaf_value[tree.first_value + k]
                            : slopes[tree.first_slope + at * stride + k]) = linear.coef[j];
    }
  }
  line_planes.insert(line_planes.end(), planes.begin(), planes.end());
}

// The same for k trees with the same splits, one for each output, which then have no tables of
// their own.
bool PackedForest::pack_group(int64_t first, int k) {
  PackedTree& head = trees[first];
  std::vector<int32_t> planes;
  for (int j = 0; j < k; j++) {
    if (!trees[first + j].masked || !line_columns(trees[first + j], planes)) {
      return false;
    }
  }
  if (planes.size() > MAX_TABLES) {
    return false;
  }
  const size_t n_leaves = (head.n_nodes + 1) / 2;
  const size_t size = 1 + planes.size();
  const size_t n_parts = (k - 1) / GROUP_LANES + 1;
  head.n_group = k;
  head.n_group_lines = (int)planes.size();
  head.first_line = (int64_t)line_planes.size();
  head.first_slope = (int64_t)groups.size();
  groups.resize(groups.size() + n_parts * n_leaves * size * GROUP_LANES, 0.0);
  for (int j = 0; j < k; j++) {
    for (size_t leaf = 0; leaf < n_leaves; leaf++) {
      double* to =
          &groups[head.first_slope + (j / GROUP_LANES * n_leaves + leaf) * size * GROUP_LANES] +
          j % GROUP_LANES;
      const int64_t node = leaf_node[trees[first + j].first_value + leaf];
      to[0] = value[node];
      for (int64_t term = linear.offset[node]; term < linear.offset[node + 1]; term++) {
        const auto at =
            std::lower_bound(planes.begin(), planes.end(), linear.column[term]) - planes.begin();
        to[linear.column[term] < 0 ? 0 : (1 + at) * GROUP_LANES] = linear.coef[term];
      }
    }
  }
  line_planes.insert(line_planes.end(), planes.begin(), planes.end());
  return true;
}

void PackedForest::pack_linear(const ForestArrays& a) {
  const int64_t n_terms = a.linear.offset == nullptr ? 0 : a.linear.offset[a.n_nodes];
  if (n_terms == 0) {
    return;
  }
  linear.offset.assign(a.linear.offset, a.linear.offset + a.n_nodes + 1);
  linear.coef.assign(a.linear.coef, a.linear.coef + n_terms);
  for (int64_t j = 0; j < n_terms; j++) {
    linear.column.push_back(a.linear.column[j] < 0 ? -1 : plane_of[a.linear.column[j]]);
  }
  in_lines.resize(used.size(), 0);
  for (const int32_t p : linear.column) {
    if (p >= 0) {
      in_lines[p] = 1;
    }
  }
  if (a.linear.bounds == nullptr) {
    return;
  }
  bounds.resize(3 * used.size(), 0.0);
  for (int64_t j = 0; j < n_terms; j++) {
    if (const int c = a.linear.column[j]; c >= 0) {
      std::copy_n(a.linear.bounds + 3 * (size_t)c, 3, &bounds[3 * (size_t)plane_of[c]]);
    }
  }
}

// A group needs a tree for each output, in their order, all with the same splits.
void PackedForest::pack_tables(int n_outputs) {
  auto is_group = [&](int64_t t) {
    if (n_outputs < MIN_GROUP || t + n_outputs > (int64_t)trees.size()) {
      return false;
    }
    for (int j = 0; j < n_outputs; j++) {
      if (trees[t + j].output != j || (j > 0 && !trees[t + j].same_leaves)) {
        return false;
      }
    }
    return true;
  };
  for (int64_t t = 0; t < (int64_t)trees.size(); t++) {
    if (is_group(t) && pack_group(t, n_outputs)) {
      t += n_outputs - 1;
    } else if (trees[t].masked) {
      pack_lines(trees[t]);
    }
  }
}

PackedForest::PackedForest(int n_columns, int n_outputs, const ForestArrays& a)
    : UsedColumns((check_trees(n_columns, n_outputs, a), n_columns), a),
      sets(a),
      value(a.value, a.value + a.n_nodes) {
  pack_linear(a);
  for (const int c : used) {
    if (code_limit[c] > MAX_BYTE_LIMIT) {
      wide_columns.push_back(c);
    }
  }
  const bool bytes = std::all_of(cuts.begin(), cuts.end(), [](const PaddedCuts& x) {
    return x.n <= 254;
  });
  // masks point into it
  mask_sets.reserve(std::count_if(a.set, a.set + a.n_nodes, [](int32_t s) {
    return s >= 0;
  }));
  SplitNumbers numbers;
  for (int64_t t = 0; t < a.n_trees; t++) {
    const int64_t at = a.offset[t];
    const int n = (int)(a.offset[t + 1] - at);
    for (int u = 0; u < n; u++) {
      nodes.push_back(row_node(a, at, u));
    }
    PackedTree tree{};
    tree.first_node = at;
    tree.n_nodes = n;
    tree.output = a.output[t];
    tree.symmetric_depth = symmetric_depth(a, at, n);
    tree.first_mask = (int64_t)masks.size();
    tree.first_value = (int64_t)leaf_value.size();
    tree.n_lines = -1;
    tree.n_bits = bits_for((n + 1) / 2);
    tree.masked = bytes && n <= 511;
    tree.first_wide = (int)wide.size();
    tree.first_shared = (int64_t)shared.size();
    tree.same_leaves = same_splits(a, t);
    if (tree.masked) {
      pack_masks(a, tree, numbers);
    }
    trees.push_back(tree);
  }
  if (!bounds.empty()) {
    pack_tables(n_outputs);
  }
}

}  // namespace sapwood
