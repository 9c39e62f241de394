// NodeConstraints: what the rules make of every node: bounds of its value, groups its path may still use, the split it is told.
// Enters: one split after the other. Leaves: the bounds of leaf values (NUMERICS, rules).
#pragma once
#include <algorithm>
#include <iterator>

#include "cpu/grow/histogram_builder.h"
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
  struct NodeBounds {                        // of a node; values in the units of the search
    double low = -INF, high = INF, out = 0;  // bounds of its value, and the value it has as long as it is a leaf
    std::vector<int32_t> groups;             // those that hold the whole path; the root's empty list is all
    std::vector<Range> box;                  // by rising column: where its rows lie; only columns of the path
    int32_t forced = -1;
    bool empty = false;  // without rows, as nodes of symmetric trees may be
  };

  NodeConstraints(const SplitConstraints& rules, const Binned& binned, const Penalty& penalty)
      : rules_(rules), b_(binned), penalty_(penalty), marks_(1) {
    if (!rules.forced.empty()) marks_[0].forced = 0;
  }

  bool ordered() const { return !rules_.direction.empty(); }
  bool grouped() const { return !rules_.groups.empty(); }
  const NodeBounds& operator[](int32_t id) const { return marks_[id]; }
  const Forced* forced(int32_t id) const { return marks_[id].forced < 0 ? nullptr : &rules_.forced[marks_[id].forced]; }

  double score(Sums s, int32_t id) const { return score_at(s, penalty_, weight(s, id)); }

  // The score of a split, or -inf where its sides would be in the wrong order.
  double split(Sums l, Sums r, int32_t id, int column, int bin) const {
    const double wl = weight(l, id), wr = weight(r, id);
    const int d = direction(column, bin);
    if ((d > 0 && wl > wr) || (d < 0 && wl < wr)) return -INF;
    return score_at(l, penalty_, wl) + score_at(r, penalty_, wr);
  }
  // Of a category split, which has a penalty of its own and no order.
  double part(Sums l, Sums r, int32_t id, const Penalty& p) const {
    auto side = [&](Sums s) { return score_at(s, p, bounded_weight(s, p, marks_[id].low, marks_[id].high)); };
    return side(l) + side(r);
  }

  // Of these columns, those that share a group with the whole path.
  std::vector<int> company(const std::vector<int>& columns, int32_t id) const {
    if (!grouped() || marks_[id].groups.empty()) return columns;
    std::vector<uint8_t> may(b_.n_columns, 0);
    for (const int32_t g : marks_[id].groups)
      for (const int32_t c : rules_.groups[g]) may[c] = 1;
    std::vector<int> kept;
    for (const int c : columns)
      if (may[c]) kept.push_back(c);
    return kept;
  }

  // What the children of a node that was just split take over. `right`: the codes that a split by categories sends there, or null
  void inherit(const Node& n, int32_t id, const uint64_t* right) {
    marks_.resize(n.left + 2);
    NodeBounds l = marks_[id], r = l;
    const int c = n.best.column;
    const Forced* f = n.rank == INF ? forced(id) : nullptr;
    l.forced = f != nullptr ? f->left : -1, r.forced = f != nullptr ? f->right : -1;
    if (grouped()) l.groups = r.groups = joined(l.groups, rules_.groups_of[c]);
    if (ordered()) bound(n, id, l, r);
    if (rules_.intermediate) box(n, right, l, r);
    marks_[n.left] = std::move(l), marks_[n.left + 1] = std::move(r);
  }

  // Intermediate bounds: the outputs of a node's new children bound the other leaves; which ones got tighter.
  std::vector<int32_t> tighten(const std::vector<Node>& nodes, int32_t id) {
    std::vector<int32_t> changed;
    for (int32_t m = 0; m < (int32_t)nodes.size(); m++) {
      if (nodes[m].left != 0) continue;
      NodeBounds& other = marks_[m];
      const double low = other.low, high = other.high;
      for (const int32_t child : {nodes[id].left, nodes[id].left + 1}) {
        const int o = order(marks_[child], other);
        if (o < 0) other.low = std::max(other.low, marks_[child].out);
        if (o > 0) other.high = std::min(other.high, marks_[child].out);
      }
      if (other.low != low || other.high != high) changed.push_back(m);
    }
    return changed;
  }

  // Bounds by midpoints, the last ones of leaves and those of all nodes of a level: whatever is cut to them, no two leaves
  // come out in the wrong order.
  void settle(const std::vector<int32_t>& leaves) {
    if (!rules_.intermediate) return;  // midpoints already
    std::vector<int32_t> full;
    for (const int32_t i : leaves) {
      marks_[i].low = -INF, marks_[i].high = INF;
      if (!marks_[i].empty) full.push_back(i);
    }
    for (const int32_t i : full)
      for (const int32_t j : full)
        if (order(marks_[i], marks_[j]) < 0) {
          const double middle = 0.5 * (marks_[i].out + marks_[j].out);
          marks_[i].high = std::min(marks_[i].high, middle), marks_[j].low = std::max(marks_[j].low, middle);
        }
  }

  // Leaves without rows get values between those of the others: 0 where that lies there.
  void fill(const std::vector<int32_t>& leaves, std::vector<double>& value) const {
    if (!rules_.intermediate) return;
    for (size_t k = 0; k < leaves.size(); k++) {
      if (!marks_[leaves[k]].empty) continue;
      double low = -INF, high = INF;
      for (size_t j = 0; j < leaves.size(); j++) {
        const int o = marks_[leaves[j]].empty ? 0 : order(marks_[leaves[j]], marks_[leaves[k]]);
        if (o < 0) low = std::max(low, value[j]);
        if (o > 0) high = std::min(high, value[j]);
      }
      value[k] = low > 0 ? low : high < 0 ? high : 0.0;
    }
  }

 private:
  // Values against missing ones have no order.
  int direction(int column, int bin) const { return bin == b_.n_bins[column] - 1 ? 0 : rules_.direction[column]; }

  double weight(Sums s, int32_t id) const { return bounded_weight(s, penalty_, marks_[id].low, marks_[id].high); }

  void bound(const Node& n, int32_t id, NodeBounds& l, NodeBounds& r) const {
    const Sums left = n.best.left, right = n.sum - left;
    if (left.h == 0) l.empty = true;
    else l.out = weight(left, id);
    if (right.h == 0) r.empty = true;
    else r.out = weight(right, id);
    const int d = direction(n.best.column, n.best.bin);
    if (d == 0 || l.empty || r.empty) return;  // a side without rows bounds nobody
    NodeBounds &below = d > 0 ? l : r, &above = d > 0 ? r : l;
    const double middle = 0.5 * (l.out + r.out);
    below.high = rules_.intermediate ? above.out : middle;
    above.low = rules_.intermediate ? below.out : middle;
  }

  void box(const Node& n, const uint64_t* right, NodeBounds& l, NodeBounds& r) const {
    const int c = n.best.column;
    auto at = std::lower_bound(l.box.begin(), l.box.end(), c, [](const Range& x, int c) { return x.column < c; });
    const size_t k = at - l.box.begin();
    if (at == l.box.end() || at->column != c)
      for (NodeBounds* m : {&l, &r}) m->box.insert(m->box.begin() + k, whole(c));
    Range &a = l.box[k], &b = r.box[k];
    for (size_t w = 0; w < a.codes.size(); w++) a.codes[w] &= ~right[w], b.codes[w] &= right[w];
    if (!a.codes.empty()) return;
    a.high = std::min(a.high, n.best.bin), b.low = std::max(b.low, n.best.bin + 1);
    (n.best.missing_left ? b : a).missing = false;
  }

  Range whole(int c) const {
    Range all{c, 0, b_.n_bins[c] - 1, true, {}};
    if (!b_.is_category[c]) return all;
    all.codes.resize(set_words((size_t)b_.n_bins[c] + 1));
    for (int code = 0; code <= b_.n_bins[c]; code++) all.codes[code >> 6] |= 1ull << (code & 63);
    return all;
  }

  static bool meet(const Range& x, const Range& y) {
    for (size_t w = 0; w < x.codes.size(); w++)
      if (x.codes[w] & y.codes[w]) return true;
    return x.codes.empty() && (std::max(x.low, y.low) <= std::min(x.high, y.high) || (x.missing && y.missing));
  }

  static std::vector<int32_t> joined(const std::vector<int32_t>& path, const std::vector<int32_t>& column) {
    if (path.empty()) return column;
    std::vector<int32_t> both;
    std::set_intersection(path.begin(), path.end(), column.begin(), column.end(), std::back_inserter(both));
    return both;
  }

  // -1: a's value must not exceed b's, since there are two points, one in each, that differ in constrained columns only, in all of
  // them the way that values rise; 1: the other way round; 0: neither. Two leaves are apart in the column that parted them, at least.
  int order(const NodeBounds& a, const NodeBounds& b) const {
    int found = 0;
    for (auto x = a.box.begin(), y = b.box.begin(); x != a.box.end() && y != b.box.end();) {
      if (x->column != y->column) {
        x->column < y->column ? x++ : y++;
        continue;
      }
      if (!meet(*x, *y)) {
        const bool values = x->low <= x->high && y->low <= y->high;
        const int o = values ? rules_.direction[x->column] * (x->high < y->low ? -1 : 1) : 0;
        if (o == 0 || o == -found) return 0;
        found = o;
      }
      x++, y++;
    }
    return found;
  }

  const SplitConstraints& rules_;
  const Binned& b_;
  const Penalty& penalty_;
  std::vector<NodeBounds> marks_;  // by node
};

}  // namespace sapwood
