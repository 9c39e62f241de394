// GrowthCore: one tree while it grows: its nodes, their rows, the sets of its category splits; at the end its leaf
// values. How splits are found is the business of HistogramGrowth and ExactGrowth.
#pragma once
#include <functional>

#include "cpu/grow/leaf_sums.h"
#include "cpu/grow/level_split.h"
#include "cpu/grow/split_chooser.h"

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

  static std::vector<int> tree_columns(const GrowInput& in);
  int64_t count_of(const Node& n) const;
  void make_sets(const NodeIds& batch, bool search);
  void partition(const NodeIds& batch);
  void count_children(const NodeIds& batch);
  void inherit(int32_t id);
  int32_t set_number(int32_t set, Tree& tree);
  std::vector<double> steps(const std::vector<Sums>& sums, const std::vector<double>& count) const;

  const bool masks_ = leaves_by_masks(b_, in_.weights, lim_);  // leaf ids are found by masks
  bool one_root_ = true;                                       // nodes may be known by their path
  std::vector<Set> sets_;
  std::vector<Split> splits_;    // of the batch that is partitioned, over slot codes
  std::vector<uint64_t> fused_;  // their sets of slot codes
};

}  // namespace sapwood
