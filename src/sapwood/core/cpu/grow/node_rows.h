// NodeRows: the rows of every node, and the gradients that travel with them.
// Enters: the root's rows, then splits. Leaves: the rows of the children. A split reads one list and writes the other.
//
//   root     | 0 1 2 3 4 5 6 7 |        the table's own order, or the sample
//   list 0   | 1 4 6 | 0 2 3 5 7 |      mark: a bit a row says who goes right; move: both sides keep their order
//   list 1   | 4 | 1 6 | ...            a node is one segment of a shard's list
#pragma once
#include "cpu/grow/grow_input.h"
#include "cpu/grow/in_place_rows.h"
#include "cpu/grow/node.h"

namespace sapwood {

struct RowBuffers {  // what NodeRows keeps from tree to tree
  struct Lists {     // of one shard
    Memory rows[2];
    Memory packed;  // the gradients beside list 0; those beside list 1 overwrite the root's, which are used up by then
    Memory root_packed;  // the root's, where it is a sample
    Memory spare;        // those beside list 1, while the root's rows stay in place
  };
  std::vector<Lists> lists;  // by shard
  InPlaceRows in_place;
  Memory bits;  // which rows go right
};

class NodeRows {
 public:
  NodeRows(const GrowInput& in, RowBuffers& buffers) : in_(in), w_(buffers) {}

  // The root; or several: root k has the rows before prefix_ends[k] that the roots before it have not (one shard only).
  std::vector<Node> make_roots(const std::vector<int64_t>& prefix_ends);
  // Appends the children of the batch's nodes, with their rows, to `nodes`. splits (batch): over the codes of slots
  void partition(const NodeIds& batch, const std::vector<Split>& splits, std::vector<Node>& nodes);
  void list_in_place_rows(std::vector<Node>& nodes);  // gives the leaf whose rows lie in place a list of its own

  const int32_t* rows(const Node& n, const Segment& s) const {  // null: s.begin, s.begin + 1, ...
    if (n.buffer >= 0) return w_.lists[s.shard].rows[n.buffer].as<int32_t>() + s.begin;
    return sampled_ == nullptr ? nullptr : (*sampled_)[s.shard].data() + s.begin;
  }
  const int32_t* packed(const Node& n, const Segment& s) const {  // their gradients; null: none travel
    if (!travel_) return nullptr;
    if (n.buffer >= 0) return packed_list(s.shard, n.buffer) + s.begin;
    return (root_in_place() ? q_.packed + b_.shards[s.shard].first : w_.lists[s.shard].root_packed.as<int32_t>()) +
           s.begin;
  }
  // Which of a shard's places hold rows of the node, from `place` (a multiple of 64) on; null: all of its segments do.
  const uint64_t* live(const Node& n, int shard, int64_t place) const {
    return n.buffer < 0 && w_.in_place.active ? w_.in_place.bits(shard, place) : nullptr;
  }
  template <class F>
  void each_row(const Node& n, F&& f) const {  // f(shard, row)
    const bool some = n.buffer < 0 && w_.in_place.active;
    for (const Segment& s : n.segments) {
      const int32_t* ids = rows(n, s);
      for (int64_t i = s.begin; i < s.end; i++)
        if (!some || w_.in_place.live(s.shard, i)) f(b_.shards[s.shard], ids == nullptr ? i : ids[i - s.begin]);
    }
  }

 private:
  struct PartitionTask {  // some rows of a node
    int32_t node;
    int segment;
    size_t split;  // place in the batch
    int64_t begin, n, bits, right = 0, to_left = 0, to_right = 0;
    int64_t live = n;  // of its rows
  };

  // Whether the root's gradients are read where the rounds keep them: list 1 must not overwrite them too early.
  bool root_in_place() const { return sampled_ == nullptr || q_.gathered; }
  int32_t* packed_list(int shard, int buffer) const {
    const RowBuffers::Lists& lists = w_.lists[shard];
    if (buffer == 1 && w_.in_place.active && root_in_place()) return lists.spare.as<int32_t>();
    return buffer == 0 ? lists.packed.as<int32_t>() : q_.packed + b_.shards[shard].first;
  }
  bool is_parallel(int64_t n) const;
  int64_t rows_per_task(int64_t n) const;
  int64_t plan(const NodeIds& batch, const std::vector<Node>& nodes);
  PartitionArgs args(const PartitionTask& task, const Node& n, const std::vector<Split>& splits) const;
  void mark(PartitionTask& task, const Node& n, const std::vector<Split>& splits) const;
  void place(const Node& n, int32_t id, size_t& at, Node& l, Node& r);
  bool stays_in_place(const Node& n, int32_t id, size_t first);
  void place_in_place(const Node& n, int32_t id, size_t& at, Node& l, Node& r);
  void move(const PartitionTask& task, const std::vector<Node>& nodes, PartitionArgs a) const;
  void take_out(const PartitionTask& task, const std::vector<Node>& nodes, const PartitionArgs& a) const;

  const GrowInput& in_;
  RowBuffers& w_;
  const Binned& b_ = in_.binned;
  const Gradients& q_ = in_.gradients;
  const std::vector<std::vector<int32_t>>* sampled_ = in_.sampled_rows;
  const Kernels& k_ = kernels();
  const bool travel_ = q_.packed != nullptr && in_.sorted == nullptr;  // gradients do, with their rows
  // The root's rows may stay in place; not where other holders decide which child is the smaller one.
  bool may_stay_ = in_.sorted == nullptr && in_.reduce() == nullptr;
  std::vector<PartitionTask> tasks_;
};

}  // namespace sapwood
