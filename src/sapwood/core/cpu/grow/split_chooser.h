// SplitChooser: what the frontier loop needs of a growing tree. Who chooses its splits, and by
// what, is behind it.
//
//   GrowthCore   nodes of one tree            -> HistogramGrowth, ExactGrowth        every node has its own split
//   Lockstep     several growths, one split   -> MultiOutputGrowth, OrderedGrowth
#pragma once
#include "cpu/grow/grow_input.h"
#include "cpu/grow/node.h"

namespace sapwood {

class SplitChooser {
 public:
  virtual ~SplitChooser() = default;
  virtual bool make_root() = 0;  // false: it has too few rows for a split
  virtual int depth(int32_t id) const = 0;
  // of the node's best split in the frontier; 0: no split is worth it
  virtual double rank(int32_t id) const = 0;
  virtual void choose(int32_t id) = 0;  // finds the best split of a node
  // finds one split for all nodes; false: no split is worth it
  virtual bool choose_level(const NodeIds& level) = 0;
  // Splits these nodes; returns their children. more: these may be split; search: and get best
  // splits of their own
  virtual NodeIds split(const NodeIds& batch, bool more, bool search) = 0;
  virtual void release(int32_t id) = 0;  // the node will not be split
  // Whether nothing of the node's split can be done beside the splits of other nodes.
  virtual bool is_ready(int32_t) const { return true; }
  // Makes the children of the first node, and of as many of those that come next as fill the
  // workers, but splits none: `split` finds them made. Who comes next may still change; children
  // that are never asked for cost time only.
  virtual void make_ready(const NodeIds&) {}
  // nodes to choose again after the split of this one
  virtual NodeIds propagate_bounds(int32_t) { return {}; }
};

void grow_frontier(SplitChooser& chooser, const GrowInput& in);  // growth.cpp

}  // namespace sapwood
