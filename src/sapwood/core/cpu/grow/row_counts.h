// RowCounts: rows by slot and code, of nodes whose best cuts might leave a side too few of them (NUMERICS 5). Hessians settle most cuts.
// Enters: a node and a column that a scan asks for. Leaves: its counts, taken with its neighbours' and, of a larger child, by what
// the smaller one leaves of the parent's, where those have been asked for.
#pragma once
#include <mutex>
#include <span>

#include "cpu/grow/histogram_builder.h"

namespace sapwood {

class RowCounts {
 public:
  RowCounts(const GrowInput& in, Workspace& work, HistogramBuilder& tally, const std::vector<Node>& nodes)
      : b_(in.binned), all_rows_(in.chosen == nullptr), w_(work), t_(tally), nodes_(nodes) {}

  // By code of a column; its slot and those before `last` are the asking worker's.
  std::span<const int64_t> column(int32_t id, int c, int last) {
    const int slot = b_.layout.members[c].slot;
    Entry& e = entry(id);
    if (e.state[slot] != TAKEN) {
      const Group& group = b_.layout.groups[group_of(slot)];
      const int most = std::min({last, slot + MAX_ADJACENT_SLOTS, group.first + group.width});
      int end = slot + 1;
      while (end < most && e.state[end] == e.state[slot]) end++;
      if (e.state[slot] == PARENT) subtract(e, slot, end);
      else take(id, e, slot, end);
    }
    return {t_.column(e.hist, c), (size_t)(b_.n_bins[c] + b_.has_missing[c])};
  }

  // Before the children of a node are searched: the larger one has the parent's counts, until it asks for its own.
  void split(int32_t parent, int32_t small, int32_t large) {
    if (entries_.size() < nodes_.size()) entries_.resize(nodes_.size());
    Entry& e = entries_[large];
    std::swap(e, entries_[parent]);
    e.small = small;
    for (uint8_t& s : e.state) s = s == TAKEN ? PARENT : NONE;
  }
  // Once they are.
  void settle(int32_t large) {
    for (uint8_t& s : entries_[large].state)
      if (s == PARENT) s = NONE;
  }
  void release(int32_t id) {
    if ((size_t)id >= entries_.size()) return;
    t_.release(entries_[id].hist);
    entries_[id].state.clear();
  }

 private:
  static constexpr int MAX_ADJACENT_SLOTS = 8;  // slots counted at once
  enum : uint8_t { NONE, PARENT, TAKEN };       // what lies in a slot's place
  struct Entry {
    Histogram hist;  // packed words without gradients
    std::vector<uint8_t> state;
    int32_t small = -1;
  };

  int group_of(int slot) const {
    const auto& groups = b_.layout.groups;
    const auto behind = [](int s, const Group& g) { return s < g.first; };
    return (int)(std::upper_bound(groups.begin(), groups.end(), slot, behind) - groups.begin()) - 1;
  }

  Entry& entry(int32_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.size() < nodes_.size()) entries_.resize(nodes_.size());  // of the root; others have been split off
    Entry& e = entries_[id];
    if (e.state.empty()) e.hist = t_.acquire(true), e.state.assign(t_.n_slots(), NONE);
    if (id == 0 && all_rows_ && w_.root_counted.empty())
      w_.root_counts = Memory(t_.slot_words(true) * 8), w_.root_counted.assign(t_.n_slots(), 0);
    return e;
  }

  void subtract(Entry& e, int first, int end) {
    Entry& small = entry(e.small);
    for (int s = first; s < end; s++) {
      int stop = s;
      while (stop < end && small.state[stop] != TAKEN) stop++;
      if (stop > s) take(e.small, small, s, stop);
    }
    t_.subtract(e.hist, small.hist, e.hist, first, end);
    t_.marginalise(e.hist, first, end);
    std::fill(e.state.begin() + first, e.state.begin() + end, TAKEN);
  }

  void take(int32_t id, Entry& e, int first, int end) {
    const Node& n = nodes_[id];
    if (id == 0 && all_rows_) copy_root(e, first, end);
    else count(n, e.hist, first, end);
    t_.complete(e.hist, {0, n.n_rows}, first, end);
    t_.marginalise(e.hist, first, end);
    std::fill(e.state.begin() + first, e.state.begin() + end, TAKEN);
  }

  void copy_root(Entry& e, int first, int end) {
    const Histogram kept{w_.root_counts.as<int64_t>(), true};
    for (int s = first; s < end; s++) {
      if (!w_.root_counted[s]) count(nodes_[0], kept, s, s + 1);
      w_.root_counted[s] = 1;
      memcpy(t_.slot(e.hist, s), t_.slot(kept, s), (size_t)t_.codes(s) * 8);
    }
  }

  void count(const Node& n, const Histogram& h, int first, int end) const {
    constexpr int64_t STEP = 4096;
    static const std::vector<int32_t> ones(STEP, 1);
    const bool some = n.buffer < 0 && w_.kept.on;
    int32_t live[STEP];
    for (int s = first; s < end; s++) t_.clear(h, s);
    for (const Segment& s : n.segments)
      for (int64_t at = s.begin; at < s.end; at += STEP) {
        const Segment step{s.shard, at, std::min(s.end, at + STEP)};
        if (const uint64_t* bits = some ? w_.kept.bits(s.shard, at) : nullptr; some)
          for (int64_t i = 0; i < step.end - at; i++) live[i] = bits[i / 64] >> (i % 64) & 1;
        t_.accumulate_tile(n, step, {group_of(first), first, end - first}, some ? live : ones.data(), h.data);
      }
  }

  const Binned& b_;
  const bool all_rows_;
  Workspace& w_;
  HistogramBuilder& t_;
  const std::vector<Node>& nodes_;
  std::vector<Entry> entries_;  // by node
  std::mutex mutex_;
};

}  // namespace sapwood
