// Tally: histograms of nodes, counted by one worker or by all, and the memory they live in.
// Enters: a node's rows. Leaves: sums of gradients per column and code; exact, whoever counted.
#pragma once
#include <string.h>

#include <algorithm>

#include "grow.h"
#include "pool.h"

namespace sapwood {

constexpr int64_t STRIP = 32768;  // rows counted at a time: their ids and gradients stay in L2 from tile to tile
constexpr int64_t ROW_SPLIT =
    4096;  // rows from which workers share a node's rows rather than its columns: then the sum over workers pays
constexpr int64_t FORK_NS = 4000;  // estimated work below which a fork (about 0.5 us) does not pay

struct Segment {  // places begin .. end - 1 of a shard's row list
  int shard;
  int64_t begin, end;
};

struct Node {
  std::vector<Segment> segments;
  int buffer = -1;  // which row list; -1: the root's rows
  int depth = 0;
  int32_t left = 0;  // first child, once split
  int64_t n_rows = 0;
  Sums sum;
  double score = 0, gain = 0;
  double rank = 0;  // its gain, or infinity where the split is forced; above 0: worth splitting
  Candidate best;
  Hist hist;
};

struct TileSpan {  // columns counted together
  int group, first, width;
};

class Tally {
 public:
  Tally(const GrowInput& in, Workspace& work, const std::vector<int>& columns)
      : b_(in.binned),
        q_(in.gradients),
        weights_(in.weights),
        chosen_(in.chosen),
        n_threads_(in.n_threads),
        w_(work),
        k_(kernels()),
        hs_(in.binned.hist_stride) {
    w_.privates.resize(std::max<size_t>(w_.privates.size(), in.n_threads));
    for (const int c : columns) n_codes += used(c);
    const int n_threads = in.n_threads;
    const int narrowest = std::max(4, std::min(GROUP, b_.n_columns / n_threads));  // a slice for every worker
    for (int g = 0; g < (int)b_.groups.size(); g++) {
      const Group& group = b_.groups[g];
      const bool every = (int)columns.size() == b_.n_columns;  // else more narrow ones, so that some are not wanted
      const int widest = q_.packed == nullptr || b_.wide ? TILE / 2
                         : every                         ? GROUP
                                                         : TILE,
                n_tiles = (group.width + widest - 1) / widest;
      for (int t = 0; t < n_tiles; t++) {
        const int first = group.first + group.width * t / n_tiles, last = group.first + group.width * (t + 1) / n_tiles;
        const auto at = std::lower_bound(columns.begin(), columns.end(), first);
        if (at == columns.end() || *at >= last) continue;
        tiles.push_back({g, first, last - first});
        for (int c = first; c < last; c++) touched_.push_back(c);
        const int n_slices = std::max(1, (last - first) / narrowest);
        for (int k = 0; k < n_slices; k++) {
          const int from = first + (last - first) * k / n_slices, to = first + (last - first) * (k + 1) / n_slices;
          slices.push_back({g, from, to - from});
        }
      }
    }
  }

  std::vector<TileSpan> tiles, slices;  // slices: tiles cut up for several workers
  int64_t n_codes = 0;                  // over the columns of the tree

  const int32_t* rows(const Node& n, const Segment& s) const {
    if (n.buffer >= 0) return w_.lists[s.shard].rows[n.buffer].as<int32_t>() + s.begin;
    return chosen_ == nullptr ? nullptr : (*chosen_)[s.shard].data() + s.begin;
  }
  int32_t* packed_list(int shard, int buffer) const {
    return buffer == 0 ? w_.lists[shard].packed.as<int32_t>() : q_.packed + b_.shards[shard].first;
  }
  const int32_t* packed(const Node& n, const Segment& s) const {
    if (q_.packed == nullptr) return nullptr;
    if (n.buffer >= 0) return packed_list(s.shard, n.buffer) + s.begin;
    const bool in_place = chosen_ == nullptr || q_.listed;
    return (in_place ? q_.packed + b_.shards[s.shard].first : w_.lists[s.shard].root_packed.as<int32_t>()) + s.begin;
  }

  size_t words(bool packed) const { return (size_t)b_.n_columns * hs_ * (packed ? 1 : 2); }

  Hist acquire(bool packed) {
    auto& free = packed ? w_.free_packed : w_.free_pairs;
    if (free.empty()) {
      w_.slots.emplace_back(words(packed) * 8 + 64);
      free.push_back(w_.slots.back().as<int64_t>());
    }
    int64_t* data = free.back();
    free.pop_back();
    return {data, packed};
  }
  void release(Hist& h) {
    if (h.data != nullptr) (h.packed ? w_.free_packed : w_.free_pairs).push_back(h.data);
    h.data = nullptr;
  }
  int64_t* column(const Hist& h, int c) const { return h.data + (size_t)c * hs_ * (h.packed ? 1 : 2); }
  int64_t used(int c) const { return b_.n_bins[c] + 1; }  // codes of a column

  bool fits_packed(int64_t n_rows) const { return q_.packed != nullptr && !b_.wide && n_rows <= PACKED_ROWS; }

  template <class F>
  void touched(int first, int last, F&& f) const {
    for (auto c = std::lower_bound(touched_.begin(), touched_.end(), first); c != touched_.end() && *c < last; c++)
      f(*c);
  }

  void clear(const Hist& h, int c) const { memset(column(h, c), 0, (size_t)used(c) * (h.packed ? 8 : 16)); }

  // Adds some rows of a node to a histogram, one tile: packed words, or pairs.
  void count_tile(const Node& n, const Segment& s, const TileSpan& t, int64_t* packed_words, int64_t* pairs) const {
    const Group& g = b_.groups[t.group];
    const Shard& shard = b_.shards[s.shard];
    const char* codes = (const char*)b_.group(shard, g) + (t.first - g.first) * b_.code_bytes();
    const int32_t* ids = rows(n, s);
    if (ids == nullptr) codes += (size_t)s.begin * g.stride * b_.code_bytes();
    if (packed_words != nullptr)
      k_.histogram((const uint8_t*)codes, g.stride, t.width, ids, s.end - s.begin, packed(n, s), packed_words);
    else if (q_.packed != nullptr && b_.wide)  // narrow words over 16-bit codes: read as pairs
      count_unpacked(n, s, t, codes, ids, pairs);
    else
      k_.histogram_pairs(
          codes, b_.wide, g.stride, t.width, ids, s.end - s.begin,
          q_.search + shard.first + (ids == nullptr ? s.begin : 0),
          weights_.whole ? weights_.multiple.data() + shard.first + (ids == nullptr ? s.begin : 0) : nullptr, hs_,
          pairs);
  }
  void count_unpacked(const Node& n, const Segment& s, const TileSpan& t, const char* codes, const int32_t* ids,
                      int64_t* pairs) const {
    const int32_t* q = packed(n, s);
    const size_t stride = b_.groups[t.group].stride;
    for (int64_t i = 0; i < s.end - s.begin; i++) {
      const uint16_t* row = (const uint16_t*)codes + (ids == nullptr ? i : ids[i]) * stride;
      for (int c = 0; c < t.width; c++) {
        int64_t* word = pairs + 2 * (c * hs_ + row[c]);
        word[0] += q[i] >> 16, word[1] += q[i] & 0xffff;
      }
    }
  }

  // The whole histogram of a node (or of one tile of it) by one worker.
  void count_alone(const Node& n, const Hist& h, int worker, const std::vector<TileSpan>& tiles, size_t first_tile,
                   size_t last_tile) {
    for (size_t t = first_tile; t < last_tile; t++)
      for (int c = tiles[t].first; c < tiles[t].first + tiles[t].width; c++) clear(h, c);
    if (!h.packed && q_.packed != nullptr && !b_.wide)
      return count_flushing(n, h, worker, tiles, first_tile, last_tile);
    for (const Segment& s : n.segments)
      for (int64_t at = s.begin; at < s.end; at += STRIP) {
        const Segment strip{s.shard, at, std::min(s.end, at + STRIP)};
        for (size_t t = first_tile; t < last_tile; t++) {
          int64_t* to = column(h, tiles[t].first);
          count_tile(n, strip, tiles[t], h.packed ? to : nullptr, h.packed ? nullptr : to);
        }
      }
  }
  // Too many rows for packed words: count into a private packed histogram and flush it in time.
  void count_flushing(const Node& n, const Hist& h, int worker, const std::vector<TileSpan>& tiles, size_t first_tile,
                      size_t last_tile) {
    Private& mine = own(worker);
    int64_t held = 0;
    auto flush = [&] {
      for (size_t t = first_tile; t < last_tile; t++)
        for (int c = tiles[t].first; c < tiles[t].first + tiles[t].width; c++)
          k_.flush(mine.packed.as<int64_t>() + c * hs_, column(h, c), used(c));
      held = 0;
    };
    for (const Segment& s : n.segments)
      for (int64_t at = s.begin; at < s.end; at += STRIP) {
        const Segment strip{s.shard, at, std::min(s.end, at + STRIP)};
        if (held + strip.end - strip.begin > PACKED_ROWS) flush();
        held += strip.end - strip.begin;
        for (size_t t = first_tile; t < last_tile; t++)
          count_tile(n, strip, tiles[t], mine.packed.as<int64_t>() + tiles[t].first * hs_, nullptr);
      }
    flush();
  }

  Private& own(int worker) {  // all zero when handed out, and handed back all zero
    Private& mine = w_.privates[worker];
    const bool packs = q_.packed != nullptr && !b_.wide;
    if (packs && mine.packed.size() == 0) {
      mine.packed = Memory(words(true) * 8);
      memset(mine.packed.as<char>(), 0, mine.packed.size());
    }
    if (!packs && mine.pairs.size() == 0) zero_pairs(mine);
    return mine;
  }
  void zero_pairs(Private& mine) const {
    mine.pairs = Memory(words(false) * 8);
    memset(mine.pairs.as<char>(), 0, mine.pairs.size());
  }

  // The histogram of a node by all workers: strips of rows into private histograms, then columns summed over the workers.
  // This sum is the [reduce] seam: other holders of rows would add their integers here. `after` runs on each summed span of columns.
  template <class After>
  void count_together(const Node& n, const Hist& h, After&& after) {
    strips_.clear();
    const int64_t step = std::max<int64_t>(512, std::min<int64_t>(STRIP, n.n_rows / (4 * n_threads_) + 1));
    for (const Segment& s : n.segments)
      for (int64_t at = s.begin; at < s.end; at += step) strips_.push_back({s.shard, at, std::min(s.end, at + step)});
    for (Private& p : w_.privates) p.used = p.flushed = false, p.rows = 0;
    const bool packs = q_.packed != nullptr && !b_.wide;
    run(n_threads_, (int64_t)strips_.size(), [&](int64_t k, int worker) {
      Private& mine = own(worker);
      const Segment& s = strips_[k];
      mine.used = true;
      if (packs && mine.rows + s.end - s.begin > PACKED_ROWS) {
        if (mine.pairs.size() == 0) zero_pairs(mine);
        for (const int c : touched_)
          k_.flush(mine.packed.as<int64_t>() + c * hs_, mine.pairs.as<int64_t>() + 2 * c * hs_, used(c));
        mine.rows = 0, mine.flushed = true;
      }
      mine.rows += s.end - s.begin;
      for (const TileSpan& t : tiles)
        count_tile(n, s, t, packs ? mine.packed.as<int64_t>() + t.first * hs_ : nullptr,
                   packs ? nullptr : mine.pairs.as<int64_t>() + 2 * t.first * hs_);
    });
    spans([&](int first, int last, int span) {
      touched(first, last, [&](int c) {
        clear(h, c);
        for (Private& p : w_.privates) {
          if (!p.used) continue;
          int64_t *mine = packs ? p.packed.as<int64_t>() + c * hs_ : nullptr,
                  *wide = !packs || p.flushed ? p.pairs.as<int64_t>() + 2 * c * hs_ : nullptr;
          if (h.packed) k_.add(column(h, c), mine, used(c));
          else if (packs) k_.flush(mine, column(h, c), used(c));
          if (wide != nullptr) k_.add(column(h, c), wide, 2 * used(c));
          if (packs && h.packed) memset(mine, 0, (size_t)used(c) * 8);
          if (wide != nullptr) memset(wide, 0, (size_t)used(c) * 16);
        }
      });
      after(first, last, span);
    });
  }

  int n_spans() const { return (int)std::min<int64_t>(b_.n_columns, (int64_t)n_threads_ * 4); }
  template <class F>
  void spans(F&& f) {  // all columns, in spans, over the workers
    const int n = n_spans();
    run(n_threads_, n,
        [&](int64_t k, int) { f((int)(b_.n_columns * k / n), (int)(b_.n_columns * (k + 1) / n), (int)k); });
  }

  int64_t count_ns(int64_t n_rows) const {
    return n_rows * (int64_t)touched_.size() * 2 / 5;
  }  // 0.4 ns a row and column
  bool many_tiles(size_t n_jobs) const { return b_.n_columns > 64 && n_jobs * slices.size() >= 4 * (size_t)n_threads_; }

  // parent - small = large, in the parent's memory; packed anew where the words have become narrow enough.
  void subtract(const Hist& parent, const Hist& small, const Hist& large, int first, int last) const {
    touched(first, last, [&](int c) {
      int64_t* rest = column(parent, c);
      const int64_t* x = column(small, c);
      if (parent.packed == small.packed) k_.subtract(rest, x, used(c) * (parent.packed ? 1 : 2));
      else k_.subtract_packed(rest, x, used(c));
      if (large.data != parent.data) k_.pack(column(large, c), rest, used(c));
    });
  }

  Sums at(const Hist& h, int c, int b) const {
    const int64_t* x = column(h, c);
    return h.packed ? Sums{x[b] >> 32, x[b] & 0xffffffff} : Sums{x[2 * b], x[2 * b + 1]};
  }

 private:
  const Binned& b_;
  const Gradients& q_;
  const Weights& weights_;
  const std::vector<std::vector<int32_t>>* chosen_;
  int n_threads_;
  Workspace& w_;
  const Kernels& k_;
  size_t hs_;
  std::vector<int> touched_;  // the columns of the tree and their tile mates: what histograms hold
  std::vector<Segment> strips_;
};

}  // namespace sapwood
