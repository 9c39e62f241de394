// GrowthCore: one tree while it grows: its nodes, their rows, the sets of its category splits; at the end its leaf values.
// How splits are found is the business of HistogramGrowth and ExactGrowth.
#pragma once
#include <functional>

#include "cpu/grow/level_split.h"
#include "cpu/grow/split_chooser.h"
#include "records/tree.h"

namespace sapwood {

struct TreeBuffers {  // memory that outlives a tree
  RowBuffers rows;
  HistogramBuffers histograms;
  RootCounts root_counts;
};

// Growth calls it for a buffer of leaf ids by row, and fills that, if it can do so without an extra pass over the rows; it never
// does for more than MAX_LEAF_IDS leaves.
using AllocateLeafIds = std::function<LeafIds(size_t n_leaves)>;

class GrowthCore : public SplitChooser {
 public:
  GrowthCore(const GrowInput& in, TreeBuffers& buffers);

  // One root, or (ordered boosting) several, whose rows end at prefix_ends; with their sums.
  void make_roots(const std::vector<int64_t>& prefix_ends);
  bool make_root() override;
  int depth(int32_t id) const override { return nodes_[id].depth; }
  double rank(int32_t id) const override { return nodes_[id].rank; }
  NodeIds split(const NodeIds& batch, bool more, bool search) override;
  void release(int32_t id) override;
  NodeIds propagate_bounds(int32_t id) override { return finder_.constraints().propagate_bounds(nodes_, id); }

  std::vector<Node>& nodes() { return nodes_; }
  SplitFinder& finder() { return finder_; }
  RowCounts& counts() { return counts_; }
  int64_t total_codes() const { return builder_.total_codes; }
  void take_set(const NodeIds& ids, std::vector<int32_t> left);  // these codes go left in all these nodes

  static Tree blank_tree(size_t n_nodes);
  void write_split(const Node& node, size_t i, int32_t left, double gain, Tree& tree);
  // value OUT: by leaf id
  Tree make_tree(const AllocateLeafIds& allocate, std::vector<double>& value);

 protected:
  struct ChildHistograms {  // after a split: the smaller child's histogram is built, the larger one's is what remains
    int32_t parent, small, large;
    bool rest;  // the larger child's is needed
  };

  virtual void fill_root(int32_t id) = 0;       // its sum, score and histogram
  virtual void fill_children(bool search) = 0;  // the same for the children in jobs_; search: and their best splits
  void begin_choice(int32_t id);                // forgets a best split that was found under other bounds
  void update_level_bounds(const NodeIds& level);
  void keep_best(const ChildHistograms& job, const Candidate& small, const Candidate& large);

  const GrowInput& in_;
  const Binned& b_;
  const Limits& lim_;
  const std::vector<int> columns_;  // of this tree
  NodeRows rows_;
  HistogramBuilder builder_;
  RowCounts counts_;
  SplitFinder finder_;
  LevelSearch level_;
  std::vector<Node> nodes_;
  std::vector<ChildHistograms> jobs_;

 private:
  struct Set {                    // of a category split
    std::vector<int32_t> left;    // codes, rising
    std::vector<uint64_t> right;  // a bit a code: the others
    int32_t number = -1;          // in the tree
  };

  int64_t count_of(const Node& n) const;
  void make_sets(const NodeIds& batch, bool search);
  void partition(const NodeIds& batch);
  void count_children(const NodeIds& batch);
  void inherit(int32_t id);
  int32_t set_number(int32_t set, Tree& tree);
  std::vector<double> steps(const std::vector<Sums>& sums, const std::vector<double>& count) const;

  const bool masks_;      // leaf ids are found by masks
  bool one_root_ = true;  // nodes may be known by their path
  std::vector<Set> sets_;
  std::vector<Split> splits_;    // of the batch that is partitioned, over slot codes
  std::vector<uint64_t> fused_;  // their sets of slot codes
};

}  // namespace sapwood
