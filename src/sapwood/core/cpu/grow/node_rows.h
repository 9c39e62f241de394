// NodeRows: the rows of every node, and the gradients that travel with them.
// Enters: the root's rows, then splits. Leaves: the rows of the children. A split reads one list
// and writes the other.
//
//   root     | 0 1 2 3 4 5 6 7 |        the table's own order, or the sample
//   list 0   | 1 4 6 | 0 2 3 5 7 |      mark: a bit a row says who goes right; move: both sides keep their order
//   list 1   | 4 | 1 6 | ...            a node is one segment of a shard's list
#pragma once
#include <algorithm>

#include "cpu/grow/grow_input.h"
#include "cpu/grow/in_place_rows.h"
#include "cpu/grow/node.h"
#include "cpu/grow/partition_sparse.h"
#include "host/pool.h"
#include "host/resident.h"

namespace sapwood {

struct RowBuffers {  // what NodeRows keeps from tree to tree
  struct Lists {     // of one shard
    Memory rows[2];
    // the gradients beside list 0; those beside list 1 overwrite the root's, which are used up by
    // then
    Memory packed;
    Memory root_packed;  // the root's, where it is a sample
    Memory spare;        // those beside list 1, while the root's rows stay in place
  };
  std::vector<Lists> lists;  // by shard
  InPlaceRows in_place;
  Memory bits;  // which rows go right
};

class NodeRows {
 public:
  // may_stay: the root's rows may stay in place
  NodeRows(const GrowInput& in, RowBuffers& buffers, bool may_stay)
      : in_(in), w_(buffers), may_stay_(may_stay) {}

  // The root; or several: root k has the rows before prefix_ends[k] that the roots before it have
  // not (one shard only).
  std::vector<Node> make_roots(const std::vector<int64_t>& prefix_ends) {
    w_.lists.resize(b_.shards.size());
    w_.in_place.active = false;
    Node root;
    for (int s = 0; s < (int)b_.shards.size(); s++) {
      const int64_t n = sampled_ == nullptr ? b_.shards[s].n_rows : (int64_t)(*sampled_)[s].size();
      RowBuffers::Lists& lists = w_.lists[s];
      const size_t need = (size_t)b_.shards[s].n_rows * 4 + 64;
      for (Memory& rows : lists.rows) {
        if (rows.size() < need) {
          rows = Memory(need);
        }
      }
      if (travel_ && lists.packed.size() < need) {
        lists.packed = Memory(need);
      }
      if (travel_ && !root_in_place()) {
        if (lists.root_packed.size() < need) {
          lists.root_packed = Memory(need);
        }
        int32_t* out = lists.root_packed.as<int32_t>();
        const int32_t* from = q_.packed + b_.shards[s].first;
        const int32_t* rows = (*sampled_)[s].data();
        run(threads_for(n, in_.n_threads), task_count(n), [&](int64_t task, int) {
          for (int64_t i = task * TASK_ROWS; i < std::min(n, (task + 1) * TASK_ROWS); i++) {
            out[i] = from[rows[i]];
          }
        });
      }
      if (n > 0) {
        root.segments.push_back({s, 0, n});
      }
      root.n_rows += n;
    }
    if (prefix_ends.empty()) {
      return {root};
    }
    may_stay_ = false;
    std::vector<Node> roots;
    int64_t begin = 0;
    for (int64_t end : prefix_ends) {
      if (sampled_ != nullptr) {
        const std::vector<int32_t>& rows = sampled_->front();
        end = std::lower_bound(rows.begin(), rows.end(), (int32_t)end) - rows.begin();
      }
      roots.emplace_back();
      if (end > begin) {
        roots.back().segments.push_back({0, begin, end});
      }
      roots.back().n_rows = end - begin;
      begin = end;
    }
    return roots;
  }
  // Appends the children of the batch's nodes, with their rows, to `nodes`. splits (batch): over
  // the codes of slots
  void partition(const NodeIds& batch, const std::vector<Split>& splits, std::vector<Node>& nodes) {
    const int threads = is_parallel(plan(batch, nodes)) ? in_.n_threads : 1;
    run(threads, (int64_t)tasks_.size(), [&](int64_t k, int) {
      mark(tasks_[k], nodes[tasks_[k].node], splits);
    });
    size_t at = 0;
    for (const int32_t id : batch) {
      Node l;
      Node r;
      l.depth = r.depth = nodes[id].depth + 1;
      l.buffer = r.buffer = nodes[id].buffer < 0 ? 0 : 1 - nodes[id].buffer;
      const Sides sides = nodes[id].buffer < 0 ? sides_of(nodes[id], id, at, nodes[0]) : Sides{};
      if (nodes[id].buffer < 0 && stays_in_place(nodes[id], sides)) {
        place_in_place(nodes[id], id, at, sides, l, r);
      } else {
        place(nodes[id], id, at, l, r);
      }
      nodes[id].left = (int32_t)nodes.size();
      nodes.push_back(std::move(l));
      nodes.push_back(std::move(r));
    }
    run(threads, (int64_t)tasks_.size(), [&](int64_t k, int) {
      const PartitionTask& t = tasks_[k];
      move(t, nodes, args(t, nodes[t.node], splits));
    });
  }
  // Gives the leaf whose rows lie in place a list of its own.
  void list_in_place_rows(std::vector<Node>& nodes) {
    for (Node& n : nodes) {
      if (n.buffer >= 0 || n.left != 0 || !w_.in_place.active) {
        continue;
      }
      std::vector<Segment> own;
      for (const Segment& s : n.segments) {
        int64_t& next = w_.in_place.n_moved[s.shard];
        const uint64_t* live_rows = w_.in_place.bits(s.shard, 0);
        int64_t count = 0;
        for (int64_t k = 0; k < (s.end + 63) / 64; k++) {
          count += __builtin_popcountll(live_rows[k]);
        }
        compress_rows(live_rows, s.end, 0, rows(n, s), nullptr,
                      w_.lists[s.shard].rows[0].as<int32_t>() + next, nullptr);
        if (count > 0) {
          own.push_back({s.shard, next, next + count});
        }
        next += count;
      }
      n.segments = std::move(own);
      n.buffer = 0;
    }
  }

  const int32_t* rows(const Node& n, const Segment& s) const {  // null: s.begin, s.begin + 1, ...
    if (n.buffer >= 0) {
      return w_.lists[s.shard].rows[n.buffer].as<int32_t>() + s.begin;
    }
    return sampled_ == nullptr ? nullptr : (*sampled_)[s.shard].data() + s.begin;
  }
  // their gradients; null: none travel
  const int32_t* packed(const Node& n, const Segment& s) const {
    if (!travel_) {
      return nullptr;
    }
    if (n.buffer >= 0) {
      return packed_list(s.shard, n.buffer) + s.begin;
    }
    return (root_in_place() ? q_.packed + b_.shards[s.shard].first
                            : w_.lists[s.shard].root_packed.as<int32_t>()) +
           s.begin;
  }
  // Which of a shard's places hold rows of the node, from `place` (a multiple of 64) on; null: all
  // of its segments do.
  const uint64_t* live(const Node& n, int shard, int64_t place) const {
    return n.buffer < 0 && w_.in_place.active ? w_.in_place.bits(shard, place) : nullptr;
  }
  template <class F>
  void each_row(const Node& n, F&& f) const {  // f(shard, row)
    const bool some = n.buffer < 0 && w_.in_place.active;
    for (const Segment& s : n.segments) {
      const int32_t* ids = rows(n, s);
      for (int64_t i = s.begin; i < s.end; i++) {
        if (!some || w_.in_place.live(s.shard, i)) {
          f(b_.shards[s.shard], ids == nullptr ? i : ids[i - s.begin]);
        }
      }
    }
  }

 private:
  static constexpr int64_t PARTITION_ROWS = 16384;  // rows per task
  static constexpr int64_t MIN_SHARED_ROWS = 8192;  // rows from which workers share a partition,
  // or half as many, where a node's rows lie far apart among so many
  static constexpr int64_t SCATTERED = 1 << 18;
  // Rows stay in place while a split moves at most 1/4 of them, and 1/4 of the root's is left.
  static constexpr int MIN_LEAVE_RATIO = 4;

  struct PartitionTask {  // some rows of a node
    int32_t node;
    int segment;
    size_t split;  // place in the batch
    int64_t begin, n, bits, right = 0, to_left = 0, to_right = 0;
    int64_t live = n;  // of its rows
  };

  // Whether the root's gradients are read where the rounds keep them: list 1 must not overwrite
  // them too early.
  bool root_in_place() const { return sampled_ == nullptr || q_.gathered; }
  int32_t* packed_list(int shard, int buffer) const {
    const RowBuffers::Lists& lists = w_.lists[shard];
    if (buffer == 1 && w_.in_place.active && root_in_place()) {
      return lists.spare.as<int32_t>();
    }
    return buffer == 0 ? lists.packed.as<int32_t>() : q_.packed + b_.shards[shard].first;
  }
  bool is_parallel(int64_t n) const {
    return n >= (b_.n_rows < SCATTERED ? MIN_SHARED_ROWS : MIN_SHARED_ROWS / 2);
  }
  // Whole words of bits, and as many tasks for every worker; twice as many where they end with many
  // nodes' rows.
  int64_t rows_per_task(int64_t n, size_t n_nodes) const {
    const int64_t workers = in_.n_threads * (n_nodes > 1 ? 2 : 1);
    const int64_t round = workers * PARTITION_ROWS;
    const int64_t n_tasks = !is_parallel(n) ? 1 : workers * ((n + round - 1) / round);
    return ((n + n_tasks - 1) / n_tasks + 63) / 64 * 64;
  }
  // The tasks of a batch, and room for their bits; how many rows they have.
  int64_t plan(const NodeIds& batch, const std::vector<Node>& nodes) {
    tasks_.clear();
    int64_t words = 0;
    int64_t total = 0;
    for (const int32_t id : batch) {
      for (const Segment& s : nodes[id].segments) {
        total += s.end - s.begin;
      }
    }
    const int64_t step = rows_per_task(total, batch.size());
    for (size_t split = 0; split < batch.size(); split++) {
      const std::vector<Segment>& segments = nodes[batch[split]].segments;
      for (int s = 0; s < (int)segments.size(); s++) {
        for (int64_t at = segments[s].begin; at < segments[s].end; at += step) {
          const int64_t m = std::min(step, segments[s].end - at);
          tasks_.push_back({batch[split], s, split, at, m, words});
          words += (m + 63) / 64;
        }
      }
    }
    if (w_.bits.size() < (size_t)words * 8) {
      w_.bits = Memory((size_t)words * 8 + 4096);
    }
    return total;
  }
  PartitionArgs args(const PartitionTask& t, const Node& n,
                     const std::vector<Split>& splits) const {
    const Segment s{n.segments[t.segment].shard, t.begin, t.begin + t.n};
    const int slot = b_.layout.members[n.best.column].slot;
    PartitionArgs a{};
    a.codes = b_.plane(b_.shards[s.shard], slot);
    a.code_bytes = b_.layout.slots[slot].code_bytes;
    a.rows = rows(n, s);
    a.packed = packed(n, s);
    a.n = t.n;
    a.first = (int32_t)t.begin;
    a.split = splits[t.split];
    a.bits = w_.bits.as<uint64_t>() + t.bits;
    return a;
  }
  void mark(PartitionTask& t, const Node& n, const std::vector<Split>& splits) const {
    const PartitionArgs a = args(t, n, splits);
    const int c = n.best.column;
    const int shard = n.segments[t.segment].shard;
    const bool sparse = b_.layout.slot_of(c).lists();
    if (t.n > 0) {
      touch(touched(t.n, a.rows == nullptr ? t.n : a.rows[t.n - 1] - a.rows[0] + 1,
                    (int64_t)a.code_bytes));
    }
    t.right = sparse ? mark_sparse(a, b_.shards[shard].sparse.of(c), (uint32_t)b_.default_code[c])
                     : k_.mark(a);
    const uint64_t* live_rows = live(n, shard, t.begin);
    if (live_rows == nullptr) {
      return;
    }
    t.right = t.live = 0;
    for (int64_t k = 0; k < (t.n + 63) / 64; k++) {
      a.bits[k] &= live_rows[k];
      t.right += __builtin_popcountll(a.bits[k]);
      t.live += __builtin_popcountll(live_rows[k]);
    }
  }
  // Where the rows of a node's children go: each segment's left ones first.
  void place(const Node& n, int32_t id, size_t& at, Node& l, Node& r) {
    for (int s = 0; s < (int)n.segments.size(); s++) {
      const Segment whole = n.segments[s];
      const size_t first = at;
      int64_t right = 0;
      for (; at < tasks_.size() && tasks_[at].node == id && tasks_[at].segment == s; at++) {
        right += tasks_[at].right;
      }
      const int64_t middle = whole.end - right;
      int64_t to_left = whole.begin;
      int64_t to_right = middle;
      for (size_t k = first; k < at; k++) {
        tasks_[k].to_left = to_left;
        tasks_[k].to_right = to_right;
        to_left += tasks_[k].n - tasks_[k].right;
        to_right += tasks_[k].right;
      }
      if (middle > whole.begin) {
        l.segments.push_back({whole.shard, whole.begin, middle});
      }
      if (whole.end > middle) {
        r.segments.push_back({whole.shard, middle, whole.end});
      }
      l.n_rows += middle - whole.begin;
      r.n_rows += whole.end - middle;
    }
  }
  // How much goes to each side of a node that has the root's list, and the root's: rows, or
  // hessians where other holders have rows too, so that all of them move the same child's.
  struct Sides {
    int64_t left = 0, right = 0, root = 0;
  };
  Sides sides_of(const Node& n, int32_t id, size_t first, const Node& root) const {
    if (in_.reduce() != nullptr) {
      return {n.best.left.h, n.sum.h - n.best.left.h, root.sum.h};
    }
    Sides rows;
    for (size_t k = first; k < tasks_.size() && tasks_[k].node == id; k++) {
      rows.left += tasks_[k].live - tasks_[k].right;
      rows.right += tasks_[k].right;
      rows.root += tasks_[k].n;
    }
    return rows;
  }
  // Whether the rows of a node that has the root's list stay there: where they did so before, or
  // this split moves few.
  bool stays_in_place(const Node& n, const Sides& sides) {
    if (w_.in_place.active || !may_stay_) {
      return w_.in_place.active;
    }
    if (std::min(sides.left, sides.right) > sides.root / MIN_LEAVE_RATIO) {
      return false;
    }
    std::vector<int64_t> n_rows(b_.shards.size(), 0);
    for (const Segment& s : n.segments) {
      n_rows[s.shard] = s.end;
    }
    w_.in_place.begin(n_rows);
    for (size_t s = 0; s < n_rows.size() && travel_ && root_in_place(); s++) {
      if (Memory& spare = w_.lists[s].spare; spare.size() < (size_t)n_rows[s] * 4 + 64) {
        spare = Memory((size_t)n_rows[s] * 4 + 64);
      }
    }
    return true;
  }
  // The smaller child's rows are copied out; the larger one's too, once few rows are left in place.
  void place_in_place(const Node& n, int32_t id, size_t& at, const Sides& sides, Node& l, Node& r) {
    const size_t first = at;
    for (; at < tasks_.size() && tasks_[at].node == id; at++) {
      r.n_rows += tasks_[at].right;
      l.n_rows += tasks_[at].live - tasks_[at].right;
    }
    const bool right_small = sides.right < sides.left;
    Node& small = right_small ? r : l;
    Node& large = right_small ? l : r;
    if (std::max(sides.left, sides.right) > sides.root / MIN_LEAVE_RATIO) {
      large.buffer = -1;
      large.segments = n.segments;
    }
    for (const Segment& whole : n.segments) {
      int64_t& next = w_.in_place.n_moved[whole.shard];
      for (Node* child : {&small, &large}) {
        if (child->buffer < 0) {
          continue;
        }
        const int64_t begin = next;
        for (size_t k = first; k < at; k++) {
          PartitionTask& t = tasks_[k];
          if (n.segments[t.segment].shard != whole.shard) {
            continue;
          }
          (child == &r ? t.to_right : t.to_left) = next;
          next += child == &r ? t.right : t.live - t.right;
        }
        if (next > begin) {
          child->segments.push_back({whole.shard, begin, next});
        }
      }
    }
  }
  void move(const PartitionTask& t, const std::vector<Node>& nodes, PartitionArgs a) const {
    const Node& n = nodes[t.node];
    if (n.buffer < 0 && w_.in_place.active) {
      return take_out(t, nodes, a);
    }
    const int shard = n.segments[t.segment].shard;
    const int to = nodes[n.left].buffer;
    const RowBuffers::Lists& lists = w_.lists[shard];
    a.n_right = t.right;
    a.left = lists.rows[to].as<int32_t>() + t.to_left;
    a.right = lists.rows[to].as<int32_t>() + t.to_right;
    if (a.packed != nullptr) {
      a.left_packed = packed_list(shard, to) + t.to_left;
      a.right_packed = packed_list(shard, to) + t.to_right;
    }
    k_.move(a);
  }
  void take_out(const PartitionTask& t, const std::vector<Node>& nodes,
                const PartitionArgs& a) const {
    const int shard = nodes[t.node].segments[t.segment].shard;
    uint64_t* live_rows = w_.in_place.bits(shard, t.begin);
    auto out = [&](const uint64_t* bits, int64_t to) {
      compress_rows(bits, t.n, a.first, a.rows, a.packed,
                    w_.lists[shard].rows[0].as<int32_t>() + to,
                    a.packed == nullptr ? nullptr : packed_list(shard, 0) + to);
    };
    const int32_t left = nodes[t.node].left;
    const bool left_goes = nodes[left].buffer == 0;
    const bool right_goes = nodes[left + 1].buffer == 0;
    if (right_goes) {
      out(a.bits, t.to_right);
    }
    // the rows that go left
    for (int64_t k = 0; k < (t.n + 63) / 64; k++) {
      a.bits[k] = live_rows[k] & ~a.bits[k];
    }
    if (left_goes) {
      out(a.bits, t.to_left);
    }
    for (int64_t k = 0; k < (t.n + 63) / 64; k++) {
      live_rows[k] &= left_goes ? ~a.bits[k] : a.bits[k];
    }
  }

  const GrowInput& in_;
  RowBuffers& w_;
  const Binned& b_ = in_.binned;
  const Gradients& q_ = in_.gradients;
  const std::vector<std::vector<int32_t>>* sampled_ = in_.sampled_rows;
  const Kernels& k_ = kernels();
  // gradients do, with their rows
  const bool travel_ = q_.packed != nullptr && in_.sorted == nullptr;
  bool may_stay_;  // the root's rows, in place
  std::vector<PartitionTask> tasks_;
};

}  // namespace sapwood
