// GrowthCore: one tree while it grows: its nodes, their rows, the sets of its category splits; at the end its leaf
// values. How splits are found is the business of HistogramGrowth and ExactGrowth.
#pragma once
#include <functional>
#include <unordered_map>
#include <utility>

#include "cpu/grow/leaf_sums.h"
#include "cpu/grow/level_split.h"
#include "cpu/grow/split_chooser.h"
#include "cpu/rows/apply.h"
#include "cpu/rows/leaf_steps.h"

namespace sapwood {

struct TreeBuffers {  // memory that outlives a tree
  RowBuffers rows;
  HistogramBuffers histograms;
  RootCounts root_counts;
};

// Growth calls it for a buffer of leaf ids by row, and fills that, if it can do so without an extra pass over the rows;
// it never does for more than MAX_LEAF_IDS leaves.
using AllocateLeafIds = std::function<LeafIds(size_t n_leaves)>;

class GrowthCore : public SplitChooser {
 public:
  GrowthCore(const GrowInput& in, TreeBuffers& buffers) : in_(in), buffers_(buffers) {}

  // One root, or (ordered boosting) several, whose rows end at prefix_ends; with their sums.
  void make_roots(const std::vector<int64_t>& prefix_ends) {
    nodes_ = rows_.make_roots(prefix_ends);
    one_root_ = prefix_ends.empty();
    for (Node& root : nodes_) {
      int64_t all[2] = {root.n_rows, b_.any_category ? count_of(root) : 0};
      const bool every_row = in_.sampled_rows == nullptr && !in_.weights.given && !b_.any_category;
      if (in_.reduce() != nullptr && every_row) all[0] = b_.n_total;
      else reduce_sum(in_.reduce(), all, 2);
      root.n_rows = all[0], root.count = all[1];
    }
    for (int32_t id = 0; id < (int32_t)nodes_.size(); id++)
      if (!one_root_ || nodes_[id].n_rows > 1) fill_root(id);
  }
  bool make_root() override {
    make_roots({});
    return nodes_[0].n_rows > 1;
  }
  int depth(int32_t id) const override { return nodes_[id].depth; }
  double rank(int32_t id) const override { return nodes_[id].rank; }
  NodeIds split(const NodeIds& batch, bool more, bool search) override {
    if (const auto ready = ready_.find(batch[0]); ready != ready_.end()) return take_ready(ready);
    if (b_.any_category) make_sets(batch, search);
    jobs_.clear();
    const bool last = masks_ && !more;  // the rows of these children are not needed
    if (!last) partition(batch);
    NodeIds children;
    for (const int32_t id : batch) {
      if (last) {
        nodes_[id].left = (int32_t)nodes_.size();
        nodes_.resize(nodes_.size() + 2);
        inherit(id);
      }
      const int32_t l = nodes_[id].left, r = l + 1;
      children.insert(children.end(), {l, r});
      const bool by_hessian = counts_late();
      const bool left_small = by_hessian ? nodes_[l].sum.h <= nodes_[r].sum.h : nodes_[l].n_rows <= nodes_[r].n_rows;
      const int32_t small = left_small ? l : r, large = left_small ? r : l;
      const bool rest = more && (!search || finder_.can_split(nodes_[large]));
      if (rest || (more && (!search || finder_.can_split(nodes_[small])))) jobs_.push_back({id, small, large, rest});
      else release(id);
    }
    fill_children(search);
    return children;
  }
  void release(int32_t id) override {
    builder_.release(nodes_[id].hist);
    counts_.release(id);
    const auto ready = ready_.find(id);
    if (ready == ready_.end()) return;
    for (const int side : {0, 1})
      builder_.release(ready->second.child[side].hist), builder_.release(ready->second.counts[side].hist);
    ready_.erase(ready);
  }
  bool is_ready(int32_t id) const override { return !works_ahead_ || ready_.contains(id); }
  void make_ready(const NodeIds& upcoming) override {
    NodeIds batch;
    int64_t work = 0;
    for (const int32_t id : upcoming) {
      const Node& n = nodes_[id];  // rows that lie in place would leave it before it is split
      const bool first = id == upcoming[0];
      if (ready_.contains(id) || (!first && (n.buffer < 0 || lim_.at_max_depth(n.depth + 1)))) continue;
      batch.push_back(id);
      work += builder_.split_ns(n.n_rows);
      if (is_enough(work, batch.size())) break;
    }
    if (batch.size() < 2) return;
    split(batch, true, true);
    for (size_t k = batch.size(); k-- > 0;) {
      Ready& r = ready_[batch[k]];
      for (int side = 1; side >= 0; side--) {
        r.counts[side] = counts_.take_entry((int32_t)nodes_.size() - 1);
        r.child[side] = std::move(nodes_.back());
        nodes_.pop_back();
      }
      nodes_[batch[k]].left = 0;
    }
  }
  NodeIds propagate_bounds(int32_t id) override { return finder_.constraints().propagate_bounds(nodes_, id); }

  std::vector<Node>& nodes() { return nodes_; }
  SplitFinder& finder() { return finder_; }
  RowCounts& counts() { return counts_; }
  int64_t total_codes() const { return builder_.total_codes; }
  // These codes go left in all these nodes.
  void take_set(const NodeIds& ids, std::vector<int32_t> left) {
    const Candidate& best = nodes_[ids[0]].best;
    const int n_bins = b_.n_bins[best.column];
    sets_.push_back({std::move(left), std::vector<uint64_t>(set_words((size_t)n_bins + 1))});
    Set& s = sets_.back();
    fill_set(s.left.data(), s.left.size(), n_bins, best.missing_left, s.right.data());
    for (const int32_t id : ids) nodes_[id].set = (int32_t)sets_.size() - 1;
  }

  static Tree blank_tree(size_t n) {
    Tree t;
    t.column.assign(n, -1), t.bin.assign(n, -1), t.left.assign(n, 0), t.missing_left.assign(n, 0);
    t.threshold.assign(n, 0.0), t.value.assign(n, 0.0), t.gain.assign(n, 0.0), t.cover.assign(n, 0.0),
        t.count.assign(n, 0.0), t.set.assign(n, -1);
    return t;
  }
  void write_split(const Node& node, size_t i, int32_t left, double gain, Tree& t) {
    const int c = node.best.column, b = node.best.bin;
    t.column[i] = c, t.left[i] = left, t.missing_left[i] = node.best.missing_left, t.gain[i] = gain;
    if (node.set >= 0) t.set[i] = set_number(node.set, t);
    else t.bin[i] = b, t.threshold[i] = b < b_.n_bins[c] - 1 ? b_.cuts[c][b] : INF;
  }
  // value OUT: by leaf id
  Tree make_tree(const AllocateLeafIds& allocate, std::vector<double>& value) {
    if (!masks_) rows_.list_in_place_rows(nodes_);
    const size_t n = nodes_.size();
    Tree t = blank_tree(n);
    NodeIds leaves;
    for (size_t i = 0; i < n; i++) {
      const Node& node = nodes_[i];
      if (node.left == 0) leaves.push_back((int32_t)i);
      else write_split(node, i, node.left, node.gain, t);
    }
    const bool numbered = leaves.size() <= MAX_LEAF_IDS && (in_.sampled_rows == nullptr || masks_);
    LeafTotals total =
        sum_leaves(in_, rows_, nodes_, leaves, t, numbered ? allocate(leaves.size()) : LeafIds{}, masks_);
    const double hs = h_scale(in_.gradients.leaf_scale), unit = power_of_two(-in_.weights.shift);
    for (size_t i = n; i-- > 0;) {
      if (const int32_t left = t.left[i]; left != 0) {
        total.sums[i] = total.sums[left] + total.sums[left + 1];
        total.counts[i] = total.counts[left] + total.counts[left + 1];
      }
      t.cover[i] = (double)total.sums[i].h / hs;
      t.count[i] = (double)total.counts[i] * unit;
    }
    const std::vector<double> step =
        node_steps(t.left.data(), total.sums, t.count, in_.gradients.leaf_scale, lim_, [&](size_t i) {
          const int c = t.column[i];
          return t.set[i] >= 0 && b_.n_bins[c] > lim_.max_cat_to_onehot && !in_.constraints.is_onehot(c);
        });
    finder_.constraints().finalise_bounds(leaves);
    value.assign(leaves.size(), 0.0);
    for (size_t k = 0; k < leaves.size(); k++)
      value[k] = lim_.learning_rate * finder_.clip_to_bounds(step[leaves[k]], leaves[k]);
    finder_.constraints().fill_empty_leaves(leaves, value);
    for (size_t k = 0; k < leaves.size(); k++) t.value[leaves[k]] = value[k];
    for (int32_t id = 0; id < (int32_t)n; id++) release(id);
    return t;
  }

 protected:
  // With other holders of rows, the rows of children are reduced together with their histograms: one message less.
  // Categories need them before.
  bool counts_late() const { return in_.reduce() != nullptr && !b_.any_category; }

  struct ChildHistograms {  // after a split: the smaller child's histogram is built, the larger one's is what remains
    int32_t parent, small, large;
    bool rest;  // the larger child's is needed
  };

  virtual void fill_root(int32_t id) = 0;       // its sum, score and histogram
  virtual void fill_children(bool search) = 0;  // the same for the children in jobs_; search: and their best splits
  // Forgets a best split that was found under other bounds.
  void begin_choice(int32_t id) {
    Node& n = nodes_[id];
    n.best = {}, n.gain = n.rank = 0, n.score = finder_.score(n.sum, id);
    finder_.begin_search(n, id);
  }
  // With intermediate bounds the splits of the level before have moved the bounds of all nodes of this one.
  void update_level_bounds(const NodeIds& level) {
    if (!in_.constraints.intermediate) return;
    finder_.constraints().finalise_bounds(level);
    for (const int32_t id : level) nodes_[id].score = finder_.score(nodes_[id].sum, id);
  }
  void keep_best(const ChildHistograms& job, const Candidate& small, const Candidate& large) {
    if (better(small, nodes_[job.small].best)) nodes_[job.small].best = small;
    if (better(large, nodes_[job.large].best)) nodes_[job.large].best = large;
  }

  const GrowInput& in_;
  TreeBuffers& buffers_;
  const Binned& b_ = in_.binned;
  const Limits& lim_ = in_.limits;
  const std::vector<int> columns_ = tree_columns(in_);
  std::vector<Node> nodes_;
  NodeRows rows_{in_, buffers_.rows};
  HistogramBuilder builder_{in_, buffers_.histograms, rows_, columns_};
  RowCounts counts_{in_, buffers_.root_counts, builder_, rows_, nodes_, columns_};
  SplitFinder finder_{in_, columns_, builder_, counts_};
  LevelSearch level_{in_, finder_, counts_, builder_};
  std::vector<ChildHistograms> jobs_;

 private:
  struct Set {                    // of a category split
    std::vector<int32_t> left;    // codes, rising
    std::vector<uint64_t> right;  // a bit a code: the others
    int32_t number = -1;          // in the tree
  };

  struct Ready {  // the children of a node that is not split yet
    Node child[2];
    RowCounts::Entry counts[2];
  };

  static std::vector<int> tree_columns(const GrowInput& in) {
    std::vector<int> all(in.binned.n_columns);
    for (int c = 0; c < in.binned.n_columns; c++) all[c] = c;
    return sample_columns(all, in.limits.colsample_bytree, key(in.seed, TREE_COLUMNS, in.tree, 0));
  }
  int64_t count_of(const Node& n) const {  // in this process, before n_rows is reduced
    if (!in_.weights.given) return n.n_rows;
    int64_t count = 0;
    rows_.each_row(n, [&](const Shard& s, int64_t row) { count += in_.weights.repeats[s.first + row]; });
    return count;
  }
  // Category splits are steps until here (category_split.h). search: each node has its own split, else the level's
  void make_sets(const NodeIds& batch, bool search) {
    for (const int32_t id : batch) {
      if (!b_.is_category[nodes_[id].best.column] || nodes_[id].set >= 0) continue;
      if (!search) return take_set(batch, level_.set());
      take_set({id}, finder_.set_of(nodes_[id], id));
    }
  }
  void partition(const NodeIds& batch) {
    splits_.clear();
    fused_.resize(batch.size() * SET_WORDS);
    for (const int32_t id : batch) {
      const Candidate& best = nodes_[id].best;
      const uint32_t low = (uint32_t)best.bin + 1, end = (uint32_t)b_.n_bins[best.column] + (best.missing_left ? 0 : 1);
      const Split own{low, end - low, nodes_[id].set < 0 ? nullptr : sets_[nodes_[id].set].right.data()};
      splits_.push_back(in_slot(b_.layout, best.column, own, &fused_[splits_.size() * SET_WORDS]));
    }
    rows_.partition(batch, splits_, nodes_);
    if (b_.any_category) count_children(batch);
    for (const int32_t id : counts_late() ? batch : NodeIds{})
      for (const int32_t child : {nodes_[id].left, nodes_[id].left + 1})
        nodes_[child].own_rows = std::exchange(nodes_[child].n_rows, nodes_[id].n_rows);
    for (const int32_t id : batch) {
      inherit(id);
      const int32_t left = nodes_[id].left;
      Node &l = nodes_[left], &r = nodes_[left + 1];
      l.sum = nodes_[id].best.left, r.sum = nodes_[id].sum - l.sum;
      l.score = finder_.score(l.sum, left), r.score = finder_.score(r.sum, left + 1);
    }
  }
  // Rows of new nodes, and (where there are categories) what they count for.
  void count_children(const NodeIds& batch) {
    std::vector<int64_t> all;
    for (const int32_t id : batch) {
      const Node &l = nodes_[nodes_[id].left], &r = nodes_[nodes_[id].left + 1];
      all.insert(all.end(), {l.n_rows, r.n_rows, b_.any_category ? count_of(l) : 0});
    }
    reduce_sum(in_.reduce(), all.data(), all.size());
    for (size_t k = 0; k < batch.size(); k++) {
      Node &l = nodes_[nodes_[batch[k]].left], &r = nodes_[nodes_[batch[k]].left + 1];
      l.n_rows = all[3 * k], r.n_rows = all[3 * k + 1];
      l.count = all[3 * k + 2], r.count = nodes_[batch[k]].count - l.count;
    }
  }
  using ReadyNodes = std::unordered_map<int32_t, Ready>;
  NodeIds take_ready(ReadyNodes::iterator ready) {
    const auto first = (int32_t)nodes_.size();
    nodes_[ready->first].left = first;
    for (const int side : {0, 1}) {
      nodes_.push_back(std::move(ready->second.child[side]));
      counts_.put_entry(first + side, std::move(ready->second.counts[side]));
    }
    ready_.erase(ready);
    return {first, first + 1};
  }
  void inherit(int32_t id) {
    const Node& n = nodes_[id];
    if (one_root_) finder_.inherit(n, id, n.set < 0 ? nullptr : sets_[n.set].right.data());
  }
  int32_t set_number(int32_t set, Tree& t) {  // in the order of the first nodes that have them
    Set& s = sets_[set];
    if (s.number < 0) {
      s.number = (int32_t)t.set_offset.size() - 1;
      t.set_code.insert(t.set_code.end(), s.left.begin(), s.left.end());
      t.set_offset.push_back((int64_t)t.set_code.size());
    }
    return s.number;
  }

  // Whether more nodes would not make a batch cheaper: the workers have enough to do, or, with other holders of rows,
  // the message is long enough. What holders decide must not depend on their own rows and threads.
  bool is_enough(int64_t work, size_t n_nodes) const {
    if (in_.reduce() != nullptr) return (int64_t)(n_nodes + 1) * (int64_t)b_.layout.n_slot_sums > AHEAD_SUMS;
    return work >= in_.n_threads * AHEAD_NS || (int)(ready_.size() + n_nodes) >= MAX_AHEAD * in_.n_threads;
  }
  static constexpr int64_t AHEAD_NS = 120000;  // estimated work for each worker that makes a batch large enough,
  static constexpr int MAX_AHEAD = 2;          // and nodes for each worker that may have children ahead of time
  static constexpr int64_t AHEAD_SUMS = 1
                                        << 17;  // that travel together: a megabyte takes longer than its message waits
  // Nodes get their numbers when they are split: a search that depends on them cannot come before.
  const bool works_ahead_ =
      (in_.n_threads > 1 || in_.reduce() != nullptr) && in_.sorted == nullptr && !finder_.depends_on_id();
  ReadyNodes ready_;
  const bool masks_ = leaves_by_masks(b_, in_.weights, lim_);  // leaf ids are found by masks
  bool one_root_ = true;                                       // nodes may be known by their path
  std::vector<Set> sets_;
  std::vector<Split> splits_;    // of the batch that is partitioned, over slot codes
  std::vector<uint64_t> fused_;  // their sets of slot codes
};

}  // namespace sapwood
