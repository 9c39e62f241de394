// NodeConstraints: what the user's constraints mean for each node: the bounds of its value
// (monotone constraints), the columns it may use (interaction constraints), its forced split.
// Enters: one split after the other. Leaves: bounds of leaf values (NUMERICS, constraints).
#pragma once
#include <algorithm>
#include <iterator>

#include "cpu/data/binned.h"
#include "cpu/grow/node.h"
#include "math/gain.h"
#include "records/constraints.h"

namespace sapwood {

class NodeConstraints {
 public:
  struct Range {  // codes of one column: low .. high, and perhaps the missing one
    int32_t column, low, high;
    bool missing;
    std::vector<uint64_t> codes;  // of categories instead: a bit a code, the missing one last
  };
  struct NodeBounds {  // values are in the units of the search
    // bounds of the node's value, and its value as long as it is a leaf
    double low = -INF, high = INF, out = 0;
    // interaction groups that hold the whole path; empty at the root: all
    std::vector<int32_t> groups;
    // by rising column: where its rows lie; only columns of the path
    std::vector<Range> box;
    int32_t forced = -1;  // place in SplitConstraints::forced
    bool empty = false;   // without rows, as nodes of symmetric trees may be
  };

  NodeConstraints(const SplitConstraints& given, const Binned& binned, const Penalty& penalty)
      : given_(given), b_(binned), penalty_(penalty), bounds_(1) {
    if (!given.forced.empty()) {
      bounds_[0].forced = 0;
    }
  }

  bool monotone() const { return !given_.monotone.empty(); }
  bool grouped() const { return !given_.groups.empty(); }
  const NodeBounds& operator[](int32_t id) const { return bounds_[id]; }
  const Forced* forced(int32_t id) const {
    return bounds_[id].forced < 0 ? nullptr : &given_.forced[bounds_[id].forced];
  }

  double score(Sums s, int32_t id) const { return score_at(s, penalty_, weight(s, id)); }
  // sets what monotone constraints demand of a scan
  void bind(int32_t id, int column, ScoreRule& rule) const {
    rule.bounded = true;
    rule.low = bounds_[id].low;
    rule.high = bounds_[id].high;
    if (!b_.is_category[column]) {
      rule.direction = given_.monotone[column];
      rule.free_bin = b_.n_bins[column] - 1;
    }
  }

  // Those of these columns that share an interaction group with the node's whole path.
  std::vector<int> allowed_columns(const std::vector<int>& columns, int32_t id) const {
    if (!grouped() || bounds_[id].groups.empty()) {
      return columns;
    }
    std::vector<uint8_t> may(b_.n_columns, 0);
    for (const int32_t g : bounds_[id].groups) {
      for (const int32_t c : given_.groups[g]) {
        may[c] = 1;
      }
    }
    std::vector<int> kept;
    for (const int c : columns) {
      if (may[c]) {
        kept.push_back(c);
      }
    }
    return kept;
  }

  // Bounds of the children of a node that was just split. right: the codes that a category split
  // sends there, or null
  void inherit(const Node& n, int32_t id, const uint64_t* right) {
    bounds_.resize(n.left + 2);
    NodeBounds l = bounds_[id];
    NodeBounds r = l;
    const int c = n.best.column;
    const Forced* f = n.rank == INF ? forced(id) : nullptr;
    l.forced = f != nullptr ? f->left : -1;
    r.forced = f != nullptr ? f->right : -1;
    if (grouped()) {
      l.groups = r.groups = intersect(l.groups, given_.groups_of[c]);
    }
    if (monotone()) {
      bound(n, id, l, r);
    }
    if (given_.intermediate) {
      box(n, right, l, r);
    }
    bounds_[n.left] = std::move(l);
    bounds_[n.left + 1] = std::move(r);
  }

  // Intermediate bounds: the values of a node's new children bound other leaves. Returns leaves
  // with new bounds.
  NodeIds propagate_bounds(const std::vector<Node>& nodes, int32_t id) {
    NodeIds changed;
    for (int32_t m = 0; m < (int32_t)nodes.size(); m++) {
      if (nodes[m].left != 0) {
        continue;
      }
      NodeBounds& other = bounds_[m];
      const double low = other.low;
      const double high = other.high;
      for (const int32_t child : {nodes[id].left, nodes[id].left + 1}) {
        const int o = order(bounds_[child], other);
        if (o < 0) {
          other.low = std::max(other.low, bounds_[child].out);
        }
        if (o > 0) {
          other.high = std::min(other.high, bounds_[child].out);
        }
      }
      if (other.low != low || other.high != high) {
        changed.push_back(m);
      }
    }
    return changed;
  }

  // Bounds by midpoints, for leaves at the end and for the nodes of a level: values within them are
  // in the right order.
  void finalise_bounds(const std::vector<int32_t>& leaves) {
    if (!given_.intermediate) {
      return;  // they are midpoints already
    }
    std::vector<int32_t> full;
    for (const int32_t i : leaves) {
      bounds_[i].low = -INF;
      bounds_[i].high = INF;
      if (!bounds_[i].empty) {
        full.push_back(i);
      }
    }
    for (const int32_t i : full) {
      for (const int32_t j : full) {
        if (order(bounds_[i], bounds_[j]) < 0) {
          const double middle = 0.5 * (bounds_[i].out + bounds_[j].out);
          bounds_[i].high = std::min(bounds_[i].high, middle);
          bounds_[j].low = std::max(bounds_[j].low, middle);
        }
      }
    }
  }

  // Leaves without rows get values between the bounds that other leaves set: 0 where it lies there.
  void fill_empty_leaves(const std::vector<int32_t>& leaves, std::vector<double>& value) const {
    if (!given_.intermediate) {
      return;
    }
    for (size_t k = 0; k < leaves.size(); k++) {
      if (!bounds_[leaves[k]].empty) {
        continue;
      }
      double low = -INF;
      double high = INF;
      for (size_t j = 0; j < leaves.size(); j++) {
        const int o = bounds_[leaves[j]].empty ? 0 : order(bounds_[leaves[j]], bounds_[leaves[k]]);
        if (o < 0) {
          low = std::max(low, value[j]);
        }
        if (o > 0) {
          high = std::min(high, value[j]);
        }
      }
      value[k] = low > 0 ? low : high < 0 ? high : 0.0;
    }
  }

 private:
  // The cut that parts values from missing ones has no direction.
  int direction(int column, int bin) const {
    return bin == b_.n_bins[column] - 1 ? 0 : given_.monotone[column];
  }

  double weight(Sums s, int32_t id) const {
    return bounded_weight(s, penalty_, bounds_[id].low, bounds_[id].high);
  }

  void bound(const Node& n, int32_t id, NodeBounds& l, NodeBounds& r) const {
    const Sums left = n.best.left;
    const Sums right = n.sum - left;
    if (left.h == 0) {
      l.empty = true;
    } else {
      l.out = weight(left, id);
    }
    if (right.h == 0) {
      r.empty = true;
    } else {
      r.out = weight(right, id);
    }
    const int d = direction(n.best.column, n.best.bin);
    if (d == 0 || l.empty || r.empty) {
      return;  // a side without rows bounds no node
    }
    NodeBounds& below = d > 0 ? l : r;
    NodeBounds& above = d > 0 ? r : l;
    const double middle = 0.5 * (l.out + r.out);
    below.high = given_.intermediate ? above.out : middle;
    above.low = given_.intermediate ? below.out : middle;
  }

  void box(const Node& n, const uint64_t* right, NodeBounds& l, NodeBounds& r) const {
    const int c = n.best.column;
    auto at = std::lower_bound(l.box.begin(), l.box.end(), c, [](const Range& x, int c) {
      return x.column < c;
    });
    const size_t k = at - l.box.begin();
    if (at == l.box.end() || at->column != c) {
      for (NodeBounds* m : {&l, &r}) {
        m->box.insert(m->box.begin() + k, whole(c));
      }
    }
    Range& a = l.box[k];
    Range& b = r.box[k];
    for (size_t w = 0; w < a.codes.size(); w++) {
      a.codes[w] &= ~right[w];
      b.codes[w] &= right[w];
    }
    if (!a.codes.empty()) {
      return;
    }
    a.high = std::min(a.high, n.best.bin);
    b.low = std::max(b.low, n.best.bin + 1);
    (n.best.missing_left ? b : a).missing = false;
  }

  Range whole(int c) const {
    Range all{c, 0, b_.n_bins[c] - 1, true, {}};
    if (!b_.is_category[c]) {
      return all;
    }
    all.codes.resize(set_words((size_t)b_.n_bins[c] + 1));
    for (int code = 0; code <= b_.n_bins[c]; code++) {
      all.codes[code >> 6] |= 1ull << (code & 63);
    }
    return all;
  }

  static bool overlap(const Range& x, const Range& y) {
    for (size_t w = 0; w < x.codes.size(); w++) {
      if (x.codes[w] & y.codes[w]) {
        return true;
      }
    }
    return x.codes.empty() &&
           (std::max(x.low, y.low) <= std::min(x.high, y.high) || (x.missing && y.missing));
  }

  static std::vector<int32_t> intersect(const std::vector<int32_t>& path,
                                        const std::vector<int32_t>& column) {
    if (path.empty()) {
      return column;
    }
    std::vector<int32_t> both;
    std::set_intersection(path.begin(), path.end(), column.begin(), column.end(),
                          std::back_inserter(both));
    return both;
  }

  // -1: monotonicity demands value(a) <= value(b). The two boxes overlap in every unconstrained
  // column, and in each constrained column where they do not overlap, a lies on the lower side. 1:
  // the reverse. 0: no demand.
  int order(const NodeBounds& a, const NodeBounds& b) const {
    int found = 0;
    for (auto x = a.box.begin(), y = b.box.begin(); x != a.box.end() && y != b.box.end();) {
      if (x->column != y->column) {
        x->column < y->column ? x++ : y++;
        continue;
      }
      if (!overlap(*x, *y)) {
        const bool values = x->low <= x->high && y->low <= y->high;
        const int o = values ? given_.monotone[x->column] * (x->high < y->low ? -1 : 1) : 0;
        if (o == 0 || o == -found) {
          return 0;
        }
        found = o;
      }
      x++;
      y++;
    }
    return found;
  }

  const SplitConstraints& given_;
  const Binned& b_;
  const Penalty& penalty_;
  std::vector<NodeBounds> bounds_;  // by node
};

}  // namespace sapwood
