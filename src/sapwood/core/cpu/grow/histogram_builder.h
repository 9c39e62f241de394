// HistogramBuilder: histograms of nodes, built by one worker or by all, and the memory they live
// in. Enters: a node's rows. Leaves: sums of gradients per slot and code, and so per column. They
// are exact, whoever adds them up.
#pragma once
#include <string.h>

#include <algorithm>

#include "cpu/grow/node_rows.h"
#include "host/pool.h"
#include "host/resident.h"

namespace sapwood {

// bytes of stored codes that are read between two looks at resident memory
constexpr int64_t MAX_TOUCHED = 8 << 20;
// rows read at a time: their ids and gradients stay in L2 from tile to tile
constexpr int64_t STRIP = 32768;
// rows from which workers share a node's rows rather than its slots
constexpr int64_t ROW_SPLIT = 4096;
// estimated work below which a fork (about 0.5 us) does not pay
constexpr int64_t FORK_NS = 4000;

struct WorkerHistogram {  // one worker's own histogram while several share a node's rows
  Memory packed, pairs;
  int64_t rows = 0;  // in `packed` since it was last flushed
  bool used = false, flushed = false;
};

struct HistogramBuffers {  // what HistogramBuilder keeps from tree to tree
  std::vector<Memory> all;
  std::vector<int64_t*> free_packed, free_pairs;
  std::vector<WorkerHistogram> workers;
  std::vector<int64_t> sums;  // what is reduced by one call
};

struct TileSpan {  // slots whose sums are accumulated together
  int block, first, width;
};

class HistogramBuilder {
 public:
  HistogramBuilder(const GrowInput& in, HistogramBuffers& buffers, const NodeRows& rows,
                   const std::vector<int>& columns)
      : in_(in), rows_(rows), w_(buffers) {
    w_.workers.resize(std::max<size_t>(w_.workers.size(), in.n_threads));
    for (const Slot& s : l_.slots) {
      slot_codes_.push_back(s.n_codes);
    }
    std::vector<uint8_t> wanted(n_slots(), 0);
    for (const int c : columns) {
      wanted[l_.members[c].slot] = 1;
      total_codes += n_codes(c);
    }
    // else narrower tiles: some hold no column of the tree
    const bool every = (int)columns.size() == b_.n_columns;
    // a slice for every worker
    const int min_slice = std::max(4, std::min(SLOT_BLOCK, n_slots() / in.n_threads));
    for (int g = 0; g < (int)l_.blocks.size(); g++) {
      const SlotBlock& block = l_.blocks[g];
      const int max_width = q_.packed == nullptr ? TILE / 2 : every ? SLOT_BLOCK : TILE;
      const int n_tiles = (block.width + max_width - 1) / max_width;
      for (int t = 0; t < n_tiles; t++) {
        const int first = block.first + block.width * t / n_tiles;
        const int last = block.first + block.width * (t + 1) / n_tiles;
        if (std::find(wanted.begin() + first, wanted.begin() + last, 1) == wanted.begin() + last) {
          continue;
        }
        tiles.push_back({g, first, last - first});
        for (int s = first; s < last; s++) {
          active_slots_.push_back(s);
        }
        const int n_slices = std::max(1, (last - first) / min_slice);
        for (int k = 0; k < n_slices; k++) {
          const int from = first + (last - first) * k / n_slices;
          const int to = first + (last - first) * (k + 1) / n_slices;
          slices.push_back({g, from, to - from});
          tile_of_.push_back((int)tiles.size() - 1);
        }
      }
    }
  }

  std::vector<TileSpan> tiles, slices;  // slices: tiles cut up for several workers
  int64_t total_codes = 0;              // over the columns of the tree
  // some slices, as wide as can be
  std::vector<TileSpan> tiles_of(size_t first_slice, size_t last_slice) const {
    std::vector<TileSpan> wide;
    for (size_t k = first_slice; k < last_slice; k++) {
      if (k > first_slice && tile_of_[k] == tile_of_[k - 1]) {
        wide.back().width += slices[k].width;
      } else {
        wide.push_back(slices[k]);
      }
    }
    return wide;
  }

  int n_slots() const { return (int)l_.slots.size(); }
  size_t slot_words(bool packed) const { return l_.n_slot_sums * (packed ? 1 : 2); }

  Histogram acquire(bool packed) {
    auto& free = packed ? w_.free_packed : w_.free_pairs;
    if (free.empty()) {
      w_.all.emplace_back(l_.n_sums * (packed ? 8 : 16) + 64);
      free.push_back(w_.all.back().as<int64_t>());
    }
    int64_t* data = free.back();
    free.pop_back();
    return {data, packed};
  }
  void release(Histogram& h) {
    if (h.data != nullptr) {
      (h.packed ? w_.free_packed : w_.free_pairs).push_back(h.data);
    }
    h.data = nullptr;
  }
  int64_t* slot(const Histogram& h, int s) const {
    return h.data + l_.slot_at[s] * (h.packed ? 1 : 2);
  }
  int64_t* column(const Histogram& h, int c) const {
    return h.data + l_.column_at[c] * (h.packed ? 1 : 2);
  }
  ColumnHistogram column_histogram(const Histogram& h, int c) const {
    return {column(h, c), h.packed, b_.n_bins[c], b_.has_missing[c] != 0};
  }
  int64_t n_slot_codes(int s) const { return slot_codes_[s]; }
  // of a column, the missing code included
  int64_t n_codes(int c) const { return b_.n_bins[c] + 1; }

  bool fits_packed(int64_t n_rows) const { return q_.packed != nullptr && n_rows <= PACKED_ROWS; }

  template <class F>
  void each_active_slot(int first, int last, F&& f) const {
    for (auto s = std::lower_bound(active_slots_.begin(), active_slots_.end(), first);
         s != active_slots_.end() && *s < last; s++) {
      f(*s);
    }
  }

  size_t n_words(const Histogram& h, int s) const {
    return (size_t)n_slot_codes(s) * (h.packed ? 1 : 2);
  }
  void clear(const Histogram& h, int s) const { memset(slot(h, s), 0, n_words(h, s) * 8); }

  // Adds some rows of a node to a histogram, one tile: packed words where gradients are, else
  // pairs.
  void accumulate_tile(const Node& n, const Segment& s, const TileSpan& t, int64_t* hist) const {
    accumulate_tile(n, s, t, rows_.packed(n, s), hist);
  }
  void accumulate_tile(const Node& n, const Segment& s, const TileSpan& t, const int32_t* words,
                       int64_t* hist) const {
    const SlotBlock& g = l_.blocks[t.block];
    const Shard& shard = b_.shards[s.shard];
    const char* codes = (const char*)b_.block(shard, g) + (t.first - g.first) * g.code_bytes;
    const size_t* at = &l_.slot_at[t.first];
    const int32_t* ids = rows_.rows(n, s);
    const int64_t n_rows = s.end - s.begin;
    const int64_t begin = ids == nullptr ? s.begin : 0;
    if (g.code_bytes == 0) {
      return accumulate_lists(n, s, t.first, words, hist + at[0] * (words == nullptr ? 2 : 1));
    }
    codes += (size_t)begin * g.stride * g.code_bytes;
    if (resident_limited.load(std::memory_order_relaxed) && n_rows > 0) {
      const int64_t bytes = touched(n_rows, ids == nullptr ? n_rows : ids[n_rows - 1] - ids[0] + 1,
                                    (int64_t)(g.stride * g.code_bytes));
      // rows that lie far apart: look at resident memory on the way
      if (bytes > MAX_TOUCHED && n_rows > 1) {
        const Segment one{s.shard, s.begin, s.begin + n_rows / 2};
        const Segment other{s.shard, s.begin + n_rows / 2, s.end};
        accumulate_tile(n, one, t, words, hist);
        return accumulate_tile(n, other, t, words == nullptr ? nullptr : words + n_rows / 2, hist);
      }
      touch(bytes);
    }
    if (words == nullptr) {
      k_.histogram_pairs(
          codes, g.code_bytes == 2, g.stride, t.width, ids, n_rows, q_.search + shard.first + begin,
          weights_.integral ? weights_.repeats.data() + shard.first + begin : nullptr, at, hist);
    } else if (g.code_bytes == 2) {
      k_.histogram_wide((const uint16_t*)codes, g.stride, t.width, ids, n_rows, words, at, hist);
    } else {
      k_.histogram((const uint8_t*)codes, g.stride, t.width, ids, n_rows, words, hist + at[0]);
    }
  }

  void accumulate_lists(const Node& n, const Segment& s, int slot, const int32_t* words,
                        int64_t* hist) const {
    const Shard& shard = b_.shards[s.shard];
    const RowCodes& lists = shard.lists[slot - l_.first_list];
    const int32_t* ids = rows_.rows(n, s);
    const int64_t n_rows = s.end - s.begin;
    const int64_t begin = ids == nullptr ? s.begin : 0;
    const uint32_t* offset = lists.offset.as<uint32_t>() + begin;
    const uint16_t* codes = lists.codes.as<uint16_t>();
    if (words != nullptr) {
      k_.histogram_lists(offset, codes, ids, n_rows, words, hist);
    } else {
      k_.histogram_lists_pairs(
          offset, codes, ids, n_rows, q_.search + shard.first + begin,
          weights_.integral ? weights_.repeats.data() + shard.first + begin : nullptr, hist);
    }
  }

  // Sums of the default codes of sparse columns, in slots first .. last - 1: the node's sum less
  // the other codes' sums.
  void fill_default_bins(const Histogram& h, Sums total, int first, int last) const {
    each_active_slot(first, last, [&](int s) {
      if (!l_.slots[s].bundled) {
        return;
      }
      for (const int c : l_.slots[s].columns) {
        int64_t* sums = column(h, c);
        const Member& m = l_.members[c];
        if (h.packed) {
          int64_t others = 0;
          // the default code's is 0 until now
          for (uint32_t b = 0; b < m.n; b++) {
            others += sums[b];
          }
          sums[m.default_code] = pack(total) - others;
        } else {
          Sums others;
          for (uint32_t b = 0; b < m.n; b++) {
            others.g += sums[2 * b];
            others.h += sums[2 * b + 1];
          }
          sums[2 * m.default_code] = total.g - others.g;
          sums[2 * m.default_code + 1] = total.h - others.h;
        }
      }
    });
  }

  Sums total(const Node& n) const {  // of a node's rows in this process
    Sums sum;
    for (const Segment& s : n.segments) {
      const int32_t* ids = rows_.rows(n, s);
      const int32_t* words = rows_.packed(n, s);
      const int64_t first = b_.shards[s.shard].first;
      for (int64_t i = 0; i < s.end - s.begin; i++) {
        if (words != nullptr) {
          sum = sum + unpack(words[i]);
          continue;
        }
        const int64_t r = first + (ids == nullptr ? s.begin + i : ids[i]);
        const int64_t w = weights_.integral ? weights_.of(r) : 1;
        sum.g += q_.search[r].g * w;
        sum.h += q_.search[r].h * w;
      }
    }
    return sum;
  }

  // The whole histogram of a node (or of one tile of it) by one worker.
  void build_serial(const Node& n, const Histogram& h, int worker,
                    const std::vector<TileSpan>& tiles, size_t first_tile, size_t last_tile) {
    for (size_t t = first_tile; t < last_tile; t++) {
      for (int s = tiles[t].first; s < tiles[t].first + tiles[t].width; s++) {
        clear(h, s);
      }
    }
    if (!h.packed && q_.packed != nullptr) {
      return build_flushing(n, h, worker, tiles, first_tile, last_tile);
    }
    for (const Segment& s : n.segments) {
      for (int64_t at = s.begin; at < s.end; at += STRIP) {
        const Segment strip{s.shard, at, std::min(s.end, at + STRIP)};
        for (size_t t = first_tile; t < last_tile; t++) {
          accumulate_tile(n, strip, tiles[t], h.data);
        }
      }
    }
  }
  // Too many rows for packed words: count into a private packed histogram and flush it in time.
  void build_flushing(const Node& n, const Histogram& h, int worker,
                      const std::vector<TileSpan>& tiles, size_t first_tile, size_t last_tile) {
    WorkerHistogram& mine = worker_histogram(worker);
    int64_t held = 0;
    auto flush = [&] {
      for (size_t t = first_tile; t < last_tile; t++) {
        for (int s = tiles[t].first; s < tiles[t].first + tiles[t].width; s++) {
          k_.flush(mine.packed.as<int64_t>() + l_.slot_at[s], slot(h, s), n_slot_codes(s));
        }
      }
      held = 0;
    };
    for (const Segment& s : n.segments) {
      for (int64_t at = s.begin; at < s.end; at += STRIP) {
        const Segment strip{s.shard, at, std::min(s.end, at + STRIP)};
        if (held + strip.end - strip.begin > PACKED_ROWS) {
          flush();
        }
        held += strip.end - strip.begin;
        for (size_t t = first_tile; t < last_tile; t++) {
          accumulate_tile(n, strip, tiles[t], mine.packed.as<int64_t>());
        }
      }
    }
    flush();
  }

  // all zero when handed out, and handed back all zero
  WorkerHistogram& worker_histogram(int worker) {
    WorkerHistogram& mine = w_.workers[worker];
    allocate(q_.packed != nullptr ? mine.packed : mine.pairs, q_.packed != nullptr);
    return mine;
  }
  void allocate(Memory& sums, bool packed) const {  // once, all zero
    if (sums.size() > 0) {
      return;
    }
    sums = Memory(slot_words(packed) * 8);
    memset(sums.as<char>(), 0, sums.size());
  }

  // The histogram of a node by all workers: strips of rows into their own histograms, which are
  // then summed slot by slot. after(first, last, span) runs on each summed span of slots.
  template <class After>
  void build_parallel(const Node& n, const Histogram& h, After&& after) {
    strips_.clear();
    const int64_t step =
        std::max<int64_t>(512, std::min<int64_t>(STRIP, n.n_rows / (8 * n_threads_) + 1));
    for (const Segment& s : n.segments) {
      for (int64_t at = s.begin; at < s.end; at += step) {
        strips_.push_back({s.shard, at, std::min(s.end, at + step)});
      }
    }
    for (WorkerHistogram& p : w_.workers) {
      p.used = p.flushed = false;
      p.rows = 0;
    }
    const bool packs = q_.packed != nullptr;
    run(n_threads_, (int64_t)strips_.size(), [&](int64_t k, int worker) {
      WorkerHistogram& mine = worker_histogram(worker);
      const Segment& s = strips_[k];
      mine.used = true;
      if (packs && mine.rows + s.end - s.begin > PACKED_ROWS) {
        allocate(mine.pairs, false);
        for (const int c : active_slots_) {
          k_.flush(mine.packed.as<int64_t>() + l_.slot_at[c],
                   mine.pairs.as<int64_t>() + 2 * l_.slot_at[c], n_slot_codes(c));
        }
        mine.rows = 0;
        mine.flushed = true;
      }
      mine.rows += s.end - s.begin;
      for (const TileSpan& t : tiles) {
        accumulate_tile(n, s, t, (packs ? mine.packed : mine.pairs).as<int64_t>());
      }
    });
    spans([&](int first, int last, int span) {
      each_active_slot(first, last, [&](int s) {
        clear(h, s);
        for (WorkerHistogram& p : w_.workers) {
          if (!p.used) {
            continue;
          }
          int64_t* mine = packs ? p.packed.as<int64_t>() + l_.slot_at[s] : nullptr;
          int64_t* wide = !packs || p.flushed ? p.pairs.as<int64_t>() + 2 * l_.slot_at[s] : nullptr;
          if (h.packed) {
            k_.add(slot(h, s), mine, n_slot_codes(s));
          } else if (packs) {
            k_.flush(mine, slot(h, s), n_slot_codes(s));
          }
          if (wide != nullptr) {
            k_.add(slot(h, s), wide, 2 * n_slot_codes(s));
          }
          if (packs && h.packed) {
            memset(mine, 0, (size_t)n_slot_codes(s) * 8);
          }
          if (wide != nullptr) {
            memset(wide, 0, (size_t)n_slot_codes(s) * 16);
          }
        }
      });
      after(first, last, span);
    });
  }

  int n_spans() const { return (int)std::min<int64_t>(n_slots(), (int64_t)n_threads_ * 4); }
  template <class F>
  void spans(F&& f) {  // all slots, in spans, over the workers
    const int n = n_spans();
    run(n_threads_, n, [&](int64_t k, int) {
      f((int)(n_slots() * k / n), (int)(n_slots() * (k + 1) / n), (int)k);
    });
  }

  int64_t build_ns(int64_t n_rows) const {  // 0.4 ns a row and slot
    return n_rows * (int64_t)active_slots_.size() * 2 / 5;
  }
  // A split: partition, the smaller child's histogram, the search of both.
  int64_t split_ns(int64_t n_rows) const { return 2 * n_rows + build_ns(n_rows / 2) + total_codes; }
  bool many_tiles(size_t n_jobs) const {
    return n_slots() > 64 && n_jobs * slices.size() >= 4 * (size_t)n_threads_;
  }

  // parent - small = large, in the parent's memory; packed anew where the words have become narrow
  // enough.
  void subtract(const Histogram& parent, const Histogram& small, const Histogram& large, int first,
                int last) const {
    each_active_slot(first, last, [&](int s) {
      int64_t* rest = slot(parent, s);
      const int64_t* x = slot(small, s);
      if (parent.packed == small.packed) {
        k_.subtract(rest, x, n_slot_codes(s) * (parent.packed ? 1 : 2));
      } else {
        k_.subtract_packed(rest, x, n_slot_codes(s));
      }
      if (large.data != parent.data) {
        k_.pack(slot(large, s), rest, n_slot_codes(s));
      }
    });
  }

  // The sums of the columns that share slots first .. last - 1, from those of the slots.
  void marginalise(const Histogram& h, int first, int last) const {
    if (l_.n_sums == l_.n_slot_sums) {
      return;
    }
    each_active_slot(first, last, [&](int s) {
      if (!l_.slots[s].fused()) {
        return;
      }
      const int width = h.packed ? 1 : 2;
      int n[MAX_MEMBERS];
      int n_members = 0;
      int64_t* to[MAX_MEMBERS];
      for (const int c : l_.slots[s].columns) {
        const int n_codes = (int)l_.members[c].n;
        n[n_members] = n_codes;
        to[n_members++] = column(h, c);
        // none is missing
        if (n_codes == b_.n_bins[c]) {
          memset(column(h, c) + n_codes * width, 0, 8 * (size_t)width);
        }
      }
      k_.marginalise({slot(h, s), width, n_members, n, to});
    });
  }

  // Adds the sums of the other holders' rows to these histograms, and to what is `beside` them, by
  // one call for all.
  void reduce(const std::vector<Histogram>& all, std::vector<int64_t>& beside) const {
    if (b_.reduce == nullptr) {
      return;
    }
    std::vector<int64_t>& sums = w_.sums;
    sums.clear();
    for (const Histogram& h : all) {
      for (const int s : active_slots_) {
        sums.insert(sums.end(), slot(h, s), slot(h, s) + n_words(h, s));
      }
    }
    sums.insert(sums.end(), beside.begin(), beside.end());
    reduce_sum(b_.reduce.get(), sums.data(), sums.size());
    const int64_t* from = sums.data();
    for (const Histogram& h : all) {
      for (const int s : active_slots_) {
        memcpy(slot(h, s), from, n_words(h, s) * 8);
        from += n_words(h, s);
      }
    }
    std::copy_n(from, beside.size(), beside.begin());
  }

  // The same, but only for the slots that this holder owns: the first, and the one after the last.
  std::pair<int, int> reduce_owned(const std::vector<Histogram>& all) const {
    std::vector<int64_t> sums;
    std::vector<int64_t> ends;
    for (const int s : active_slots_) {
      for (const Histogram& h : all) {
        sums.insert(sums.end(), slot(h, s), slot(h, s) + n_words(h, s));
      }
      ends.push_back((int64_t)sums.size());
    }
    const auto [first, last] = b_.reduce->sum_blocks(sums.data(), ends);
    if (first >= last) {
      return {0, 0};
    }
    const int64_t* from = sums.data() + (first == 0 ? 0 : ends[first - 1]);
    for (size_t k = first; k < last; k++) {
      for (const Histogram& h : all) {
        const int s = active_slots_[k];
        memcpy(slot(h, s), from, n_words(h, s) * 8);
        from += n_words(h, s);
      }
    }
    return {active_slots_[first], active_slots_[last - 1] + 1};
  }

 private:
  const GrowInput& in_;
  const NodeRows& rows_;
  HistogramBuffers& w_;
  const Binned& b_ = in_.binned;
  const Layout& l_ = b_.layout;
  const Gradients& q_ = in_.gradients;
  const RowWeights& weights_ = in_.weights;
  const int n_threads_ = in_.n_threads;
  const Kernels& k_ = kernels();
  std::vector<int> slot_codes_;  // (slots)
  // the slots of the tree's columns, and those in the same tiles: what histograms hold
  std::vector<int> active_slots_;
  std::vector<int> tile_of_;  // (slices)
  std::vector<Segment> strips_;
};

}  // namespace sapwood
