// RowCounts: rows by slot and code, for min_samples_leaf where hessians do not count rows (NUMERICS
// 5). A bound by hessians decides most candidates, so counts are taken lazily: for the node and
// column that a scan needs, together with the slots beside it. The larger child's are its parent's
// less the smaller child's, where the parent has them. Where other holders have rows too, counts
// cannot be lazy: `prepare` takes and reduces them before a search.
#pragma once
#include <mutex>
#include <span>
#include <utility>

#include "cpu/grow/histogram_builder.h"

namespace sapwood {

// What RowCounts keeps from tree to tree: the root's counts, which are the same in every tree
// without a sample.
struct RootCounts {
  Memory counts;
  std::vector<uint8_t> counted;  // (slots)
};

class RowCounts {
 public:
  RowCounts(const GrowInput& in, RootCounts& root, HistogramBuilder& builder, const NodeRows& rows,
            const std::vector<Node>& nodes, const std::vector<int>& columns)
      : in_(in), root_(root), builder_(builder), rows_(rows), nodes_(nodes), columns_(columns) {}

  // Rows of a node by code of a column, the missing code last; what they count for, where there are
  // weights. `room` may be used to hold them. The column's slot and those before `last` belong to
  // the calling worker; 0: no slot does.
  std::span<const int64_t> of(int32_t id, int c, int last, std::vector<int64_t>& room) {
    if (b_.reduce != nullptr) {
      return {entries_[id].reduced.data() + offset_[c], (size_t)builder_.n_codes(c)};
    }
    if (!weights_.given && last > 0) {
      return lazy(id, c, last);
    }
    count_codes(nodes_[id], c, room);
    return room;
  }

  // With other holders of rows: counts the rows of these nodes by all columns of the tree, and
  // reduces them at once.
  void prepare(const NodeIds& ids) {
    if (b_.reduce == nullptr) {
      return;
    }
    if (offset_.empty()) {
      offset_.resize(b_.n_columns);
      for (const int c : columns_) {
        offset_[c] = total_;
        total_ += (size_t)builder_.n_codes(c);
      }
    }
    std::vector<int64_t> all;
    std::vector<int64_t> one;
    for (const int32_t id : ids) {
      for (const int c : columns_) {
        count_codes(nodes_[id], c, one);
        all.insert(all.end(), one.begin(), one.end());
      }
    }
    reduce_sum(b_.reduce.get(), all.data(), all.size());
    if (entries_.size() < nodes_.size()) {
      entries_.resize(nodes_.size());
    }
    for (size_t k = 0; k < ids.size(); k++) {
      const auto from = all.begin() + (int64_t)(k * total_);
      entries_[ids[k]].reduced.assign(from, from + (int64_t)total_);
    }
  }

  // Before the children of a node are searched: the larger one takes over the parent's counts.
  void split(int32_t parent, int32_t small, int32_t large) {
    if (entries_.size() < nodes_.size()) {
      entries_.resize(nodes_.size());
    }
    Entry& e = entries_[large];
    std::swap(e, entries_[parent]);
    e.small = small;
    for (uint8_t& s : e.state) {
      s = s == TAKEN ? PARENT : NONE;
    }
  }
  // Once they are searched: what is still the parent's is of no use.
  void drop_parent_counts(int32_t large) {
    for (uint8_t& s : entries_[large].state) {
      if (s == PARENT) {
        s = NONE;
      }
    }
  }
  void release(int32_t id) {
    if ((size_t)id >= entries_.size()) {
      return;
    }
    builder_.release(entries_[id].hist);
    entries_[id].state.clear();
    entries_[id].reduced = {};
  }

  struct Entry {     // of a node
    Histogram hist;  // packed words without gradients
    std::vector<uint8_t> state;
    int32_t small = -1;
    // (total_) counts of all holders' rows; empty: there are no other holders
    std::vector<int64_t> reduced;
  };
  // The counts of a searched node, which gets another number.
  Entry take_entry(int32_t id) {
    return (size_t)id < entries_.size() ? std::exchange(entries_[id], {}) : Entry{};
  }
  void put_entry(int32_t id, Entry entry) {
    if (entries_.size() <= (size_t)id) {
      entries_.resize((size_t)id + 1);
    }
    entries_[id] = std::move(entry);
  }

 private:
  static constexpr int MAX_ADJACENT_SLOTS = 8;  // slots counted at once
  enum : uint8_t { NONE, PARENT, TAKEN };       // what lies in a slot's place

  std::span<const int64_t> lazy(int32_t id, int c, int last) {
    const int slot = b_.layout.members[c].slot;
    Entry& e = entry(id);
    if (e.state[slot] != TAKEN) {
      const SlotBlock& block = b_.layout.blocks[block_of(slot)];
      const int max_end = std::min({last, slot + MAX_ADJACENT_SLOTS, block.first + block.width});
      int end = slot + 1;
      while (end < max_end && e.state[end] == e.state[slot]) {
        end++;
      }
      if (e.state[slot] == PARENT) {
        subtract(e, slot, end);
      } else {
        take(id, e, slot, end);
      }
    }
    return {builder_.column(e.hist, c), (size_t)(b_.n_bins[c] + b_.has_missing[c])};
  }

  void count_codes(const Node& n, int c, std::vector<int64_t>& count) const {
    const int slot = b_.layout.members[c].slot;
    count.assign((size_t)builder_.n_codes(c), 0);
    touch(touched(n.n_rows, b_.n_rows, (int64_t)b_.layout.slots[slot].code_bytes));
    if (b_.layout.slots[slot].lists()) {
      rows_.each_row(n, [&](const Shard& shard, int64_t row) {
        count[b_.split_code(shard, c, row)] += weights_.of(shard.first + row);
      });
      return;
    }
    std::vector<int64_t> by_slot((size_t)builder_.n_slot_codes(slot), 0);
    rows_.each_row(n, [&](const Shard& shard, int64_t row) {
      by_slot[b_.slot_code(shard, slot, row)] += weights_.of(shard.first + row);
    });
    b_.layout.each_code(c, [&](uint32_t k, uint32_t code) {
      count[code] += by_slot[k];
    });
  }

  int block_of(int slot) const {
    const auto& blocks = b_.layout.blocks;
    const auto behind = [](int s, const SlotBlock& g) {
      return s < g.first;
    };
    return (int)(std::upper_bound(blocks.begin(), blocks.end(), slot, behind) - blocks.begin()) - 1;
  }

  Entry& entry(int32_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // the root's; `split` does it for others
    if (entries_.size() < nodes_.size()) {
      entries_.resize(nodes_.size());
    }
    Entry& e = entries_[id];
    if (e.state.empty()) {
      e.hist = builder_.acquire(true);
      e.state.assign(builder_.n_slots(), NONE);
    }
    if (id == 0 && all_rows_ && root_.counted.empty()) {
      root_.counts = Memory(builder_.slot_words(true) * 8);
      root_.counted.assign(builder_.n_slots(), 0);
    }
    return e;
  }

  void subtract(Entry& e, int first, int end) {
    Entry& small = entry(e.small);
    for (int s = first; s < end; s++) {
      int stop = s;
      while (stop < end && small.state[stop] != TAKEN) {
        stop++;
      }
      if (stop > s) {
        take(e.small, small, s, stop);
      }
    }
    builder_.subtract(e.hist, small.hist, e.hist, first, end);
    builder_.marginalise(e.hist, first, end);
    std::fill(e.state.begin() + first, e.state.begin() + end, TAKEN);
  }

  void take(int32_t id, Entry& e, int first, int end) {
    const Node& n = nodes_[id];
    if (id == 0 && all_rows_) {
      copy_root(e, first, end);
    } else {
      count(n, e.hist, first, end);
    }
    builder_.fill_default_bins(e.hist, {0, n.n_rows}, first, end);
    builder_.marginalise(e.hist, first, end);
    std::fill(e.state.begin() + first, e.state.begin() + end, TAKEN);
  }

  void copy_root(Entry& e, int first, int end) {
    const Histogram kept{root_.counts.as<int64_t>(), true};
    for (int s = first; s < end; s++) {
      if (!root_.counted[s]) {
        count(nodes_[0], kept, s, s + 1);
      }
      root_.counted[s] = 1;
      memcpy(builder_.slot(e.hist, s), builder_.slot(kept, s),
             (size_t)builder_.n_slot_codes(s) * 8);
    }
  }

  void count(const Node& n, const Histogram& h, int first, int end) const {
    constexpr int64_t STEP = 4096;
    static const std::vector<int32_t> ones(STEP, 1);
    int32_t live[STEP];
    for (int s = first; s < end; s++) {
      builder_.clear(h, s);
    }
    for (const Segment& s : n.segments) {
      for (int64_t at = s.begin; at < s.end; at += STEP) {
        const Segment step{s.shard, at, std::min(s.end, at + STEP)};
        const uint64_t* bits = rows_.live(n, s.shard, at);
        if (bits != nullptr) {
          for (int64_t i = 0; i < step.end - at; i++) {
            live[i] = bits[i / 64] >> (i % 64) & 1;
          }
        }
        builder_.accumulate_tile(n, step, {block_of(first), first, end - first},
                                 bits != nullptr ? live : ones.data(), h.data);
      }
    }
  }

  const GrowInput& in_;
  const Binned& b_ = in_.binned;
  const RowWeights& weights_ = in_.weights;
  const bool all_rows_ = in_.sampled_rows == nullptr;
  RootCounts& root_;
  HistogramBuilder& builder_;
  const NodeRows& rows_;
  const std::vector<Node>& nodes_;
  const std::vector<int>& columns_;
  std::vector<Entry> entries_;  // by node
  std::mutex mutex_;
  std::vector<size_t> offset_;  // (n_columns) of a column in what is reduced
  size_t total_ = 0;
};

}  // namespace sapwood
