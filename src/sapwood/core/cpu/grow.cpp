#include "grow.h"

#include <string.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "../math/gain.h"
#include "../math/hash.h"
#include "pool.h"

namespace sapwood {
namespace {

constexpr int64_t CHUNK = 16384;    // rows of a partition task
constexpr int64_t STRIP = 8192;     // rows of a histogram task: a strip of a group stays in L2 from tile to tile
constexpr int64_t FORK_NS = 4000;   // estimated work below which a fork (about 0.5 us) does not pay
constexpr int64_t ROW_SPLIT = 16384;  // rows from which workers share a node's rows rather than its columns: then the sum over workers pays

struct Segment {  // places begin .. end - 1 of a shard's row list
  int shard;
  int64_t begin, end;
};

struct Node {
  std::vector<Segment> segments;
  int buffer = -1;       // which row list; -1: the root's rows
  int depth = 0;
  int32_t left = 0;      // first child, once split
  int64_t n_rows = 0;
  Sums sum;
  double score = 0, gain = 0;
  Candidate best;
  Hist hist;
};

struct TileSpan {  // columns histogrammed together
  int group, first, width;
};

struct Job {  // after a split: the histogram of the smaller child is counted, the larger one's is what remains
  int32_t parent, small, large;
  bool count = false;       // the small child's histogram is needed, for itself or for the subtraction
  bool rest = false;        // the large child's histogram is needed
};

bool better(const Candidate& a, const Candidate& b) {  // across columns; within a column the scan has chosen
  if (a.column < 0) return false;
  return b.column < 0 || a.score > b.score || (a.score == b.score && a.column < b.column);
}

std::vector<int> fewer(const std::vector<int>& columns, double fraction, uint64_t k) {
  if (fraction >= 1.0) return columns;
  const size_t n = std::max<size_t>(1, (size_t)(fraction * (double)columns.size() + 0.5));
  std::vector<std::pair<uint64_t, int>> order;
  for (const int c : columns) order.push_back({draw(k, c), c});
  std::sort(order.begin(), order.end());
  order.resize(std::min(n, order.size()));
  std::vector<int> kept;
  for (const auto& [_, c] : order) kept.push_back(c);
  std::sort(kept.begin(), kept.end());
  return kept;
}

class Growth {
 public:
  Growth(const GrowInput& in, Workspace& work) : in_(in), b_(in.binned), q_(in.gradients), lim_(in.limits), w_(work), k_(kernels()) {
    const double gs = g_scale(q_.scale), hs = h_scale(q_.scale);
    penalty_.lambda = lim_.reg_lambda * hs, penalty_.alpha = lim_.reg_alpha * gs, penalty_.step = lim_.max_delta_step * gs / hs;
    penalty_.min_h = lim_.min_child_weight * hs;
    unit_ = hs / (gs * gs);
    least_count_ = lim_.min_samples_leaf * power_of_two(in.weights.shift);
    counted_ = lim_.min_samples_leaf > 1.0;
    if (counted_ && q_.constant_hessian) {  // then the hessian counts
      penalty_.min_h = std::max(penalty_.min_h, least_count_ * q_.most_per_count);
      counted_ = false;
    }
    hs_ = b_.hist_stride;
    for (int c = 0; c < b_.n_columns; c++) columns_.push_back(c);
    columns_ = fewer(columns_, lim_.colsample_bytree, key(in.seed, TREE_COLUMNS, in.tree, 0));
    const int narrowest = std::max(4, std::min(TILE, b_.n_columns / (2 * in.n_threads)));  // slices enough for every worker
    for (int g = 0; g < (int)b_.groups.size(); g++) {
      const Group& group = b_.groups[g];
      const int widest = q_.packed != nullptr && !b_.wide ? TILE : TILE / 2, n_tiles = (group.width + widest - 1) / widest;
      for (int t = 0; t < n_tiles; t++) {
        const int first = group.first + group.width * t / n_tiles, last = group.first + group.width * (t + 1) / n_tiles;
        const auto at = std::lower_bound(columns_.begin(), columns_.end(), first);
        if (at == columns_.end() || *at >= last) continue;
        tiles_.push_back({g, first, last - first});
        for (int c = first; c < last; c++) touched_.push_back(c);
        const int n_slices = std::max(1, (last - first) / narrowest);
        for (int k = 0; k < n_slices; k++) {
          const int from = first + (last - first) * k / n_slices, to = first + (last - first) * (k + 1) / n_slices;
          slices_.push_back({g, from, to - from});
        }
      }
    }
  }

  Tree grow(uint16_t* leaf, std::vector<double>& value) {
    for (const int c : columns_) n_codes_ += used(c);
    plant();
    if (in_.grower.shared_split) grow_levels();
    else grow_nodes();
    Tree tree = harvest(leaf, value);
    for (Node& n : nodes_) release(n.hist);
    return tree;
  }

 private:
  // ------------------------------------------------------------------------------------------ rows of a node
  const int32_t* rows(const Node& n, const Segment& s) const {
    if (n.buffer >= 0) return w_.lists[s.shard].rows[n.buffer].as<int32_t>() + s.begin;
    return in_.chosen == nullptr ? nullptr : (*in_.chosen)[s.shard].data() + s.begin;
  }
  const int32_t* packed(const Node& n, const Segment& s) const {
    if (q_.packed == nullptr) return nullptr;
    if (n.buffer >= 0) return w_.lists[s.shard].packed[n.buffer].as<int32_t>() + s.begin;
    return (in_.chosen == nullptr ? q_.packed + b_.shards[s.shard].first : w_.lists[s.shard].root_packed.as<int32_t>()) + s.begin;
  }

  void plant() {
    w_.lists.resize(b_.shards.size());
    Node root;
    for (int s = 0; s < (int)b_.shards.size(); s++) {
      const int64_t n = in_.chosen == nullptr ? b_.shards[s].n_rows : (int64_t)(*in_.chosen)[s].size();
      Workspace::Lists& lists = w_.lists[s];
      const size_t need = (size_t)b_.shards[s].n_rows * 4 + 64;
      for (int k = 0; k < 2; k++) {
        if (lists.rows[k].size() < need) lists.rows[k] = Memory(need);
        if (q_.packed != nullptr && lists.packed[k].size() < need) lists.packed[k] = Memory(need);
      }
      if (in_.chosen != nullptr && q_.packed != nullptr) {
        if (lists.root_packed.size() < need) lists.root_packed = Memory(need);
        int32_t* out = lists.root_packed.as<int32_t>();
        const int32_t* from = q_.packed + b_.shards[s].first;
        for (int64_t i = 0; i < n; i++) out[i] = from[(*in_.chosen)[s][i]];
      }
      if (n > 0) root.segments.push_back({s, 0, n});
      root.n_rows += n;
    }
    nodes_.push_back(std::move(root));
  }

  // ------------------------------------------------------------------------------------------------ frontier
  bool deep_enough(int depth) const { return lim_.max_depth > 0 && depth >= lim_.max_depth; }

  void grow_nodes() {
    const int most = lim_.max_leaves > 0 ? lim_.max_leaves : 0x7fffffff;
    if (most < 2 || nodes_[0].n_rows < 2) return;
    root_histogram();
    scan_root();
    std::set<Open, bool (*)(const Open&, const Open&)> frontier(in_.grower.before);
    if (nodes_[0].gain > 0) frontier.insert({nodes_[0].gain, 0});
    int n_leaves = 1;
    std::vector<int32_t> batch;
    while (!frontier.empty() && n_leaves < most) {
      batch.clear();
      const int depth = nodes_[frontier.begin()->id].depth;
      while (!frontier.empty() && n_leaves < most) {
        const int32_t next = frontier.begin()->id;
        if (!batch.empty() && !(in_.grower.whole_level && nodes_[next].depth == depth)) break;
        batch.push_back(next);
        frontier.erase(frontier.begin());
        n_leaves++;
      }
      expand(batch, n_leaves < most, true);
      for (const int32_t id : batch)
        for (int32_t c = nodes_[id].left; c < nodes_[id].left + 2; c++)
          if (nodes_[c].gain > 0) frontier.insert({nodes_[c].gain, c});
      while ((int)frontier.size() > most - n_leaves) {  // so many splits are left: the last in order will never have its turn
        release(nodes_[frontier.rbegin()->id].hist);
        frontier.erase(std::prev(frontier.end()));
      }
    }
  }

  void grow_levels() {
    const int most = lim_.max_leaves > 0 ? lim_.max_leaves : 0x7fffffff;
    if (most < 2 || nodes_[0].n_rows < 2) return;
    root_histogram();
    std::vector<int32_t> level{0};
    for (int depth = 0; !deep_enough(depth) && 2 * (int64_t)level.size() <= most; depth++) {
      if (!share_split(level)) return;
      const bool more = !deep_enough(depth + 1) && 4 * (int64_t)level.size() <= most;
      expand(level, more, false);
      std::vector<int32_t> next;
      for (const int32_t id : level) next.insert(next.end(), {nodes_[id].left, nodes_[id].left + 1});
      level = std::move(next);
    }
  }

  // Splits the nodes of a batch; where `more` can follow, their children get histograms and (with `search`) best splits.
  void expand(const std::vector<int32_t>& batch, bool more, bool search) {
    partition(batch);
    jobs_.clear();
    for (const int32_t id : batch) {
      const int32_t l = nodes_[id].left, r = l + 1;
      const bool left_small = nodes_[l].n_rows <= nodes_[r].n_rows;
      Job job{id, left_small ? l : r, left_small ? r : l};
      const bool open = more && !deep_enough(nodes_[l].depth);
      const bool small = open && (!search || can_split(nodes_[job.small])), large = open && (!search || can_split(nodes_[job.large]));
      job.count = small || large, job.rest = large;
      if (job.count) jobs_.push_back(job);
      else release(nodes_[id].hist);
    }
    histograms(search);
  }

  bool can_split(const Node& n) const {  // quick to refuse; the search decides
    return n.n_rows >= 2 && (double)n.sum.h >= 2.0 * penalty_.min_h && n.sum.h >= 2;
  }

  // --------------------------------------------------------------------------------------------- partition
  struct Part {
    int32_t node;
    int segment;
    int64_t begin, n, bits, right = 0, to_left = 0, to_right = 0;
  };

  void partition(const std::vector<int32_t>& batch) {
    parts_.clear();
    int64_t words = 0, total = 0;
    for (const int32_t id : batch) {
      const Node& n = nodes_[id];
      for (int s = 0; s < (int)n.segments.size(); s++)
        for (int64_t at = n.segments[s].begin; at < n.segments[s].end; at += CHUNK) {
          const int64_t m = std::min(CHUNK, n.segments[s].end - at);
          parts_.push_back({id, s, at, m, words});
          words += (m + 63) / 64;
          total += m;
        }
    }
    if (w_.bits.size() < (size_t)words * 8) w_.bits = Memory((size_t)words * 8 + 4096);
    const int threads = total < 2 * CHUNK ? 1 : in_.n_threads;
    auto args = [&](const Part& p) {
      const Node& n = nodes_[p.node];
      const Segment s{n.segments[p.segment].shard, p.begin, p.begin + p.n};
      const uint32_t low = (uint32_t)n.best.bin + 1, end = (uint32_t)b_.n_bins[n.best.column] + (n.best.missing_left ? 0 : 1);
      PartitionArgs a{};
      a.codes = b_.column(b_.shards[s.shard], n.best.column), a.wide_codes = b_.wide;
      a.rows = rows(n, s), a.packed = packed(n, s), a.n = p.n, a.first = (int32_t)p.begin;
      a.split = {low, end - low};
      a.bits = w_.bits.as<uint64_t>() + p.bits;
      return a;
    };
    run(threads, (int64_t)parts_.size(), [&](int64_t k, int) { parts_[k].right = k_.mark(args(parts_[k])); });
    size_t at = 0;
    for (const int32_t id : batch) {
      Node l, r;
      l.depth = r.depth = nodes_[id].depth + 1;
      l.buffer = r.buffer = nodes_[id].buffer < 0 ? 0 : 1 - nodes_[id].buffer;
      l.sum = nodes_[id].best.left, r.sum = nodes_[id].sum - l.sum;
      for (int s = 0; s < (int)nodes_[id].segments.size(); s++) {
        const Segment whole = nodes_[id].segments[s];
        const size_t first = at;
        int64_t right = 0;
        for (; at < parts_.size() && parts_[at].node == id && parts_[at].segment == s; at++) right += parts_[at].right;
        const int64_t middle = whole.end - right;
        int64_t to_left = whole.begin, to_right = middle;
        for (size_t k = first; k < at; k++) {
          parts_[k].to_left = to_left, parts_[k].to_right = to_right;
          to_left += parts_[k].n - parts_[k].right, to_right += parts_[k].right;
        }
        if (middle > whole.begin) l.segments.push_back({whole.shard, whole.begin, middle});
        if (whole.end > middle) r.segments.push_back({whole.shard, middle, whole.end});
        l.n_rows += middle - whole.begin, r.n_rows += whole.end - middle;
      }
      for (Node* n : {&l, &r}) n->score = n->sum.h > 0 ? node_score(n->sum, penalty_) : 0.0;
      nodes_[id].left = (int32_t)nodes_.size();
      nodes_.push_back(std::move(l));
      nodes_.push_back(std::move(r));
    }
    run(threads, (int64_t)parts_.size(), [&](int64_t k, int) {
      const Part& p = parts_[k];
      PartitionArgs a = args(p);
      Workspace::Lists& lists = w_.lists[nodes_[p.node].segments[p.segment].shard];
      const int to = nodes_[nodes_[p.node].left].buffer;
      a.left = lists.rows[to].as<int32_t>() + p.to_left, a.right = lists.rows[to].as<int32_t>() + p.to_right;
      if (a.packed != nullptr)
        a.left_packed = lists.packed[to].as<int32_t>() + p.to_left, a.right_packed = lists.packed[to].as<int32_t>() + p.to_right;
      k_.move(a);
    });
  }

  // -------------------------------------------------------------------------------------------- histograms
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
    for (auto c = std::lower_bound(touched_.begin(), touched_.end(), first); c != touched_.end() && *c < last; c++) f(*c);
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
      k_.histogram_pairs(codes, b_.wide, g.stride, t.width, ids, s.end - s.begin, q_.search + shard.first + (ids == nullptr ? s.begin : 0),
                         in_.weights.whole ? in_.weights.multiple.data() + shard.first + (ids == nullptr ? s.begin : 0) : nullptr, hs_, pairs);
  }
  void count_unpacked(const Node& n, const Segment& s, const TileSpan& t, const char* codes, const int32_t* ids, int64_t* pairs) const {
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
  void count_alone(const Node& n, const Hist& h, int worker, const std::vector<TileSpan>& tiles, size_t first_tile, size_t last_tile) {
    for (size_t t = first_tile; t < last_tile; t++)
      for (int c = tiles[t].first; c < tiles[t].first + tiles[t].width; c++) clear(h, c);
    if (!h.packed && q_.packed != nullptr && !b_.wide) return count_flushing(n, h, worker, tiles, first_tile, last_tile);
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
  void count_flushing(const Node& n, const Hist& h, int worker, const std::vector<TileSpan>& tiles, size_t first_tile, size_t last_tile) {
    Private& mine = own(worker);
    int64_t held = 0;
    auto flush = [&] {
      for (size_t t = first_tile; t < last_tile; t++)
        for (int c = tiles[t].first; c < tiles[t].first + tiles[t].width; c++) k_.flush(mine.packed.as<int64_t>() + c * hs_, column(h, c), used(c));
      held = 0;
    };
    for (const Segment& s : n.segments)
      for (int64_t at = s.begin; at < s.end; at += STRIP) {
        const Segment strip{s.shard, at, std::min(s.end, at + STRIP)};
        if (held + strip.end - strip.begin > PACKED_ROWS) flush();
        held += strip.end - strip.begin;
        for (size_t t = first_tile; t < last_tile; t++) count_tile(n, strip, tiles[t], mine.packed.as<int64_t>() + tiles[t].first * hs_, nullptr);
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
    const int64_t step = std::max<int64_t>(512, std::min<int64_t>(STRIP, n.n_rows / (4 * in_.n_threads) + 1));
    for (const Segment& s : n.segments)
      for (int64_t at = s.begin; at < s.end; at += step) strips_.push_back({s.shard, at, std::min(s.end, at + step)});
    for (Private& p : w_.privates) p.used = p.flushed = false, p.rows = 0;
    const bool packs = q_.packed != nullptr && !b_.wide;
    run(in_.n_threads, (int64_t)strips_.size(), [&](int64_t k, int worker) {
      Private& mine = own(worker);
      const Segment& s = strips_[k];
      mine.used = true;
      if (packs && mine.rows + s.end - s.begin > PACKED_ROWS) {
        if (mine.pairs.size() == 0) zero_pairs(mine);
        for (const int c : touched_) k_.flush(mine.packed.as<int64_t>() + c * hs_, mine.pairs.as<int64_t>() + 2 * c * hs_, used(c));
        mine.rows = 0, mine.flushed = true;
      }
      mine.rows += s.end - s.begin;
      for (const TileSpan& t : tiles_)
        count_tile(n, s, t, packs ? mine.packed.as<int64_t>() + t.first * hs_ : nullptr, packs ? nullptr : mine.pairs.as<int64_t>() + 2 * t.first * hs_);
    });
    spans([&](int first, int last, int span) {
      touched(first, last, [&](int c) {
        clear(h, c);
        for (Private& p : w_.privates) {
          if (!p.used) continue;
          int64_t *mine = packs ? p.packed.as<int64_t>() + c * hs_ : nullptr, *wide = !packs || p.flushed ? p.pairs.as<int64_t>() + 2 * c * hs_ : nullptr;
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

  int n_spans() const { return (int)std::min<int64_t>(b_.n_columns, (int64_t)in_.n_threads * 4); }
  template <class F>
  void spans(F&& f) {  // all columns, in spans, over the workers
    const int n = n_spans();
    run(in_.n_threads, n, [&](int64_t k, int) { f((int)(b_.n_columns * k / n), (int)(b_.n_columns * (k + 1) / n), (int)k); });
  }

  void root_histogram() {
    Node& root = nodes_[0];
    root.hist = acquire(fits_packed(root.n_rows));
    w_.privates.resize(std::max<size_t>(w_.privates.size(), in_.n_threads));
    auto nothing = [](int, int, int) {};
    if (count_ns(root.n_rows) < FORK_NS || in_.n_threads == 1) count_alone(root, root.hist, 0, tiles_, 0, tiles_.size());
    else if (root.n_rows < ROW_SPLIT || many_tiles(1))
      run(in_.n_threads, (int64_t)slices_.size(), [&](int64_t t, int worker) { count_alone(root, root.hist, worker, slices_, t, t + 1); });
    else count_together(root, root.hist, nothing);
    const int c = columns_[0];
    for (int b = 0; b < used(c); b++) root.sum = root.sum + at(root.hist, c, b);
    root.score = root.sum.h > 0 ? node_score(root.sum, penalty_) : 0.0;
  }

  Sums at(const Hist& h, int c, int b) const {
    const int64_t* x = column(h, c);
    return h.packed ? Sums{x[b] >> 32, x[b] & 0xffffffff} : Sums{x[2 * b], x[2 * b + 1]};
  }

  bool many_tiles(size_t n_jobs) const { return b_.n_columns > 64 && n_jobs * slices_.size() >= 4 * (size_t)in_.n_threads; }

  // parent - small = large, in the parent's memory; packed anew where the words have become narrow enough.
  void subtract(const Job& j, int first, int last) {
    Node &parent = nodes_[j.parent], &small = nodes_[j.small], &large = nodes_[j.large];
    touched(first, last, [&](int c) {
      int64_t* rest = column(parent.hist, c);
      const int64_t* x = column(small.hist, c);
      if (parent.hist.packed == small.hist.packed) k_.subtract(rest, x, used(c) * (parent.hist.packed ? 1 : 2));
      else k_.subtract_packed(rest, x, used(c));
      if (large.hist.data != parent.hist.data) k_.pack(column(large.hist, c), rest, used(c));
    });
  }

  void histograms(bool search) {
    if (jobs_.empty()) return;
    for (const Job& j : jobs_) {
      nodes_[j.small].hist = acquire(fits_packed(nodes_[j.small].n_rows));
      if (!j.rest) continue;
      Node &parent = nodes_[j.parent], &large = nodes_[j.large];
      large.hist = !parent.hist.packed && fits_packed(large.n_rows) ? acquire(true) : parent.hist;
    }
    if (jobs_.size() > 1)  // the longest first: the tail of a parallel run is then short
      std::stable_sort(jobs_.begin(), jobs_.end(), [&](const Job& a, const Job& b) { return nodes_[a.small].n_rows > nodes_[b.small].n_rows; });
    if (search) open(jobs_);
    int64_t work = 0;
    for (const Job& j : jobs_) work += count_ns(nodes_[j.small].n_rows) + (search ? 2 * n_codes_ : 0);
    const size_t threads = work < FORK_NS ? 1 : in_.n_threads, n_jobs = jobs_.size();
    if (threads == 1 || n_jobs >= 4 * threads) by_job(search, (int)threads);
    else if (nodes_[jobs_[0].small].n_rows < ROW_SPLIT || many_tiles(n_jobs)) by_tile(0, n_jobs, search);
    else
      for (size_t k = 0; k < n_jobs; k++) {
        if (nodes_[jobs_[k].small].n_rows >= ROW_SPLIT) by_row(jobs_[k], search);
        else by_tile(k, k + 1, search);
      }
    for (const Job& j : jobs_) {
      Node &parent = nodes_[j.parent], &small = nodes_[j.small], &large = nodes_[j.large];
      if (large.hist.data == parent.hist.data) parent.hist.data = nullptr;
      release(parent.hist);
      if (search) {
        close(small), close(large);
        for (Node* n : {&small, &large})
          if (!(n->gain > 0)) release(n->hist);
      }
    }
  }

  int64_t count_ns(int64_t n_rows) const { return n_rows * (int64_t)touched_.size() * 2 / 5; }  // 0.4 ns a row and column

  void by_job(bool search, int threads) {
    run(threads, (int64_t)jobs_.size(), [&](int64_t k, int worker) {
      const Job& j = jobs_[k];
      count_alone(nodes_[j.small], nodes_[j.small].hist, worker, tiles_, 0, tiles_.size());
      finish(j, 0, b_.n_columns, search, nodes_[j.small].best, nodes_[j.large].best);
    });
  }

  void by_tile(size_t first_job, size_t last_job, bool search) {
    const size_t n_tiles = slices_.size(), n = (last_job - first_job) * n_tiles;
    found_.assign(2 * n, Candidate{});
    run(in_.n_threads, (int64_t)n, [&](int64_t k, int worker) {
      const Job& j = jobs_[first_job + k / n_tiles];
      const TileSpan& t = slices_[k % n_tiles];
      count_alone(nodes_[j.small], nodes_[j.small].hist, worker, slices_, k % n_tiles, k % n_tiles + 1);
      found_[2 * k].score = nodes_[j.small].best.score, found_[2 * k + 1].score = nodes_[j.large].best.score;
      finish(j, t.first, t.first + t.width, search, found_[2 * k], found_[2 * k + 1]);
    });
    for (size_t k = 0; k < n; k++) gather(jobs_[first_job + k / n_tiles], found_[2 * k], found_[2 * k + 1]);
  }

  void by_row(const Job& j, bool search) {
    found_.assign(2 * n_spans(), Candidate{});
    count_together(nodes_[j.small], nodes_[j.small].hist, [&](int first, int last, int span) {
      found_[2 * span].score = nodes_[j.small].best.score, found_[2 * span + 1].score = nodes_[j.large].best.score;
      finish(j, first, last, search, found_[2 * span], found_[2 * span + 1]);
    });
    for (int span = 0; span < n_spans(); span++) gather(j, found_[2 * span], found_[2 * span + 1]);
  }

  void finish(const Job& j, int first, int last, bool search, Candidate& small, Candidate& large) {
    if (j.rest) subtract(j, first, last);
    if (!search) return;
    scan_columns(nodes_[j.small], j.small, first, last, small);
    if (j.rest) scan_columns(nodes_[j.large], j.large, first, last, large);
  }
  void gather(const Job& j, const Candidate& small, const Candidate& large) {
    if (better(small, nodes_[j.small].best)) nodes_[j.small].best = small;
    if (better(large, nodes_[j.large].best)) nodes_[j.large].best = large;
  }

  // ------------------------------------------------------------------------------------------ split search
  void open(const std::vector<Job>& jobs) {  // what a candidate must beat, and the columns a node may use
    for (const Job& j : jobs)
      for (const int32_t id : {j.small, j.large}) {
        nodes_[id].best.score = nodes_[id].score * WORTH;
        choose_columns(id);
      }
  }

  void choose_columns(int32_t id) {
    if (lim_.colsample_bylevel >= 1.0 && lim_.colsample_bynode >= 1.0) return;
    allowed_.resize(nodes_.size());
    const auto level = fewer(columns_, lim_.colsample_bylevel, key(in_.seed, LEVEL_COLUMNS, in_.tree, nodes_[id].depth));
    allowed_[id] = fewer(level, lim_.colsample_bynode, key(in_.seed, NODE_COLUMNS, in_.tree, id));
  }
  const std::vector<int>& allowed(int32_t id) const {
    return lim_.colsample_bylevel >= 1.0 && lim_.colsample_bynode >= 1.0 ? columns_ : allowed_[id];
  }

  void scan_root() {
    Node& root = nodes_[0];
    root.best.score = root.score * WORTH;
    choose_columns(0);
    if (!can_split(root) || deep_enough(0)) return;
    found_.assign(n_spans(), Candidate{});
    auto scan = [&](int first, int last, int span) {
      found_[span].score = root.best.score;
      scan_columns(root, 0, first, last, found_[span]);
    };
    if (n_codes_ < FORK_NS) scan(0, b_.n_columns, 0);
    else spans(scan);
    for (const Candidate& c : found_)
      if (better(c, root.best)) root.best = c;
    close(root);
  }

  void scan_columns(const Node& n, int32_t id, int first, int last, Candidate& best) {
    if (!can_split(n)) return;
    const auto& columns = allowed(id);
    for (auto c = std::lower_bound(columns.begin(), columns.end(), first); c != columns.end() && *c < last; c++) {
      Candidate found = best;
      k_.scan(column(n.hist, *c), n.hist.packed, b_.n_bins[*c], b_.has_missing[*c], n.sum, penalty_, *c, found);
      if (found.column != *c) continue;
      if (counted_ && !surely_enough(found.left.h, n.sum.h)) found = counted_scan(n, *c, best);
      best = found;
    }
  }

  // count >= H / (largest hessian of one row): that settles most candidates, and the rest are counted.
  bool surely_enough(int64_t left, int64_t total) const {
    const double need = least_count_ * q_.most_per_count;
    return (double)left >= need && (double)(total - left) >= need;
  }

  void count_codes(const Node& n, int c, std::vector<int64_t>& count) const {
    count.assign(used(c), 0);
    for (const Segment& s : n.segments) {
      const Shard& shard = b_.shards[s.shard];
      const void* codes = b_.column(shard, c);
      const int32_t* ids = rows(n, s);
      for (int64_t i = 0; i < s.end - s.begin; i++) {
        const int64_t r = ids == nullptr ? s.begin + i : ids[i];
        count[b_.wide ? ((const uint16_t*)codes)[r] : ((const uint8_t*)codes)[r]] += in_.weights.of(shard.first + r);
      }
    }
  }

  Candidate counted_scan(const Node& n, int c, Candidate best) const {
    std::vector<int64_t> count;
    count_codes(n, c, count);
    int64_t total = 0;
    for (const int64_t x : count) total += x;
    const int n_bins = b_.n_bins[c];
    const Sums missing = b_.has_missing[c] ? at(n.hist, c, n_bins) : Sums{};
    auto consider = [&](Sums l, int64_t rows_left, int b, bool side) {
      const Sums r = n.sum - l;
      if (l.h <= 0 || r.h <= 0 || (double)l.h < penalty_.min_h || (double)r.h < penalty_.min_h) return;
      if ((double)rows_left < least_count_ || (double)(total - rows_left) < least_count_) return;
      const double s = split_score(l, r, penalty_);
      if (s > best.score) best = {s, c, b, side, l};
    };
    Sums l;
    int64_t rows_left = 0;
    for (int b = 0; b < n_bins; b++) {
      l = l + at(n.hist, c, b), rows_left += count[b];
      if (missing.h > 0 && b < n_bins - 1) consider(l + missing, rows_left + count[n_bins], b, true);
      if (missing.h > 0 || b < n_bins - 1) consider(l, rows_left, b, false);
    }
    return best;
  }

  // Turns the best candidate into a gain, and gives missing values a side where the node saw none.
  void close(Node& n) {
    if (n.best.column < 0) return;
    n.gain = 0.5 * (n.best.score - n.score) * unit_ - lim_.min_split_gain;
    const int c = n.best.column;
    if (!b_.has_missing[c] || at(n.hist, c, b_.n_bins[c]).h == 0) n.best.missing_left = n.best.left.h >= n.sum.h - n.best.left.h;
  }

  // One split for all nodes of a level: the sum of their scores decides.
  struct Shared {
    double score = 0;
    int column = -1, bin = -1;
    bool missing_left = false;
  };

  bool share_split(const std::vector<int32_t>& level) {
    double own = 0.0;
    for (const int32_t id : level) own = own + nodes_[id].score;
    const bool sampled = lim_.colsample_bylevel < 1.0 || lim_.colsample_bynode < 1.0;
    if (sampled) choose_columns(level[0]);
    const std::vector<int> columns = allowed(level[0]);
    std::vector<Shared> found(columns.size());
    const int64_t work = n_codes_ * (int64_t)level.size();
    run(work < FORK_NS ? 1 : in_.n_threads, (int64_t)columns.size(), [&](int64_t k, int) { found[k] = scan_shared(level, columns[k], own * WORTH); });
    Shared best;
    for (const Shared& s : found)
      if (s.column >= 0 && (best.column < 0 || s.score > best.score)) best = s;
    if (best.column < 0 || !(0.5 * (best.score - own) * unit_ - lim_.min_split_gain > 0)) return false;
    for (const int32_t id : level) {
      Node& n = nodes_[id];
      const int c = best.column, gone = b_.n_bins[c];
      n.best = {best.score, c, best.bin, best.missing_left, {}};
      if (n.n_rows == 0) continue;
      if (best.missing_left && b_.has_missing[c]) n.best.left = at(n.hist, c, gone);
      for (int b = 0; b <= best.bin; b++) n.best.left = n.best.left + at(n.hist, c, b);
      const Sums r = n.sum - n.best.left;
      if (n.best.left.h > 0 && r.h > 0) n.gain = 0.5 * (split_score(n.best.left, r, penalty_) - n.score) * unit_;
    }
    return true;
  }

  Shared scan_shared(const std::vector<int32_t>& level, int c, double bar) {
    const int n_bins = b_.n_bins[c];
    int64_t missing = 0;
    for (const int32_t id : level)
      if (nodes_[id].n_rows > 0 && b_.has_missing[c]) missing += at(nodes_[id].hist, c, n_bins).h;
    const int n_right = missing > 0 ? n_bins : n_bins - 1, n_left = missing > 0 ? n_bins - 1 : 0;
    std::vector<double> right(n_right, 0.0), left(n_left, 0.0);
    std::vector<int64_t> count;
    for (const int32_t id : level) {
      const Node& n = nodes_[id];
      if (n.n_rows == 0) continue;
      const Sums m = b_.has_missing[c] ? at(n.hist, c, n_bins) : Sums{};
      k_.scan_level(column(n.hist, c), n.hist.packed, n_right, m, n.sum, penalty_, false, right.data());
      if (n_left > 0) k_.scan_level(column(n.hist, c), n.hist.packed, n_left, m, n.sum, penalty_, true, left.data());
      if (counted_) veto_few(n, c, count, right, left);
    }
    Shared best;
    best.score = bar;
    for (int b = 0; b < n_right; b++) {
      if (b < n_left && left[b] > best.score) best = {left[b], c, b, true};
      if (right[b] > best.score) best = {right[b], c, b, false};
    }
    if (best.column >= 0 && missing == 0) {
      int64_t l = 0, all = 0;
      for (const int32_t id : level) {
        all += nodes_[id].sum.h;
        if (nodes_[id].n_rows > 0)
          for (int b = 0; b <= best.bin; b++) l += at(nodes_[id].hist, c, b).h;
      }
      best.missing_left = l >= all - l;
    }
    return best;
  }

  void veto_few(const Node& n, int c, std::vector<int64_t>& count, std::vector<double>& right, std::vector<double>& left) const {
    count_codes(n, c, count);
    int64_t total = 0, rows_left = 0;
    for (const int64_t x : count) total += x;
    auto poor = [&](int64_t l) { return l > 0 && total - l > 0 && ((double)l < least_count_ || (double)(total - l) < least_count_); };
    const int64_t gone = count[b_.n_bins[c]];
    for (size_t b = 0; b < right.size(); b++) {
      rows_left += count[b];
      if (poor(rows_left)) right[b] = -INF;
      if (b < left.size() && poor(rows_left + gone)) left[b] = -INF;
    }
  }

  // ------------------------------------------------------------------------------------------------ harvest
  Tree harvest(uint16_t* leaf, std::vector<double>& value) {
    const size_t n = nodes_.size();
    Tree t;
    t.column.assign(n, -1), t.bin.assign(n, -1), t.left.assign(n, 0), t.missing_left.assign(n, 0);
    t.threshold.assign(n, 0.0), t.value.assign(n, 0.0), t.gain.assign(n, 0.0), t.cover.assign(n, 0.0), t.count.assign(n, 0.0);
    std::vector<int32_t> leaves;
    for (size_t i = 0; i < n; i++)
      if (nodes_[i].left == 0) leaves.push_back((int32_t)i);
    std::vector<Sums> sums(n);
    std::vector<int64_t> counts(n, 0);
    sum_leaves(leaves, sums, counts, leaves.size() <= 65536 && in_.chosen == nullptr ? leaf : nullptr);
    value.assign(leaves.size(), 0.0);
    const double hs = h_scale(q_.fine_scale), unit = power_of_two(-in_.weights.shift);
    for (size_t i = n; i-- > 0;) {
      const Node& node = nodes_[i];
      if (node.left != 0) {
        sums[i] = sums[node.left] + sums[node.left + 1];
        counts[i] = counts[node.left] + counts[node.left + 1];
        const int c = node.best.column, b = node.best.bin;
        t.column[i] = c, t.bin[i] = b, t.left[i] = node.left, t.missing_left[i] = node.best.missing_left, t.gain[i] = node.gain;
        t.threshold[i] = b < b_.n_bins[c] - 1 ? b_.cuts[c][b] : INF;
      }
      t.cover[i] = (double)sums[i].h / hs;
      t.count[i] = (double)counts[i] * unit;
    }
    for (size_t k = 0; k < leaves.size(); k++) {
      const double v = leaf_value(sums[leaves[k]], q_.fine_scale, lim_.reg_lambda, lim_.reg_alpha, lim_.max_delta_step);
      value[k] = t.value[leaves[k]] = lim_.learning_rate * v;
    }
    return t;
  }

  // Wide sums and counts of every leaf, and (with `leaf`) each row's leaf number. The numbers are written by one worker, while the
  // others sum: two writers of neighbouring bytes would take the cache lines from each other (measured: 1.6 to 1.9 times slower).
  void sum_leaves(const std::vector<int32_t>& leaves, std::vector<Sums>& sums, std::vector<int64_t>& counts, uint16_t* leaf) {
    struct Piece {
      size_t leaf;
      Segment s;
      Sums sum;
      int64_t count = 0;
    };
    std::vector<Piece> pieces;
    for (size_t k = 0; k < leaves.size(); k++)
      for (const Segment& s : nodes_[leaves[k]].segments)
        for (int64_t at = s.begin; at < s.end; at += CHUNK) pieces.push_back({k, {s.shard, at, std::min(s.end, at + CHUNK)}, {}, 0});
    const int threads = nodes_[0].n_rows < CHUNK ? 1 : in_.n_threads;
    run(threads, (int64_t)pieces.size() + 1, [&](int64_t task, int) {
      if (task == 0) {
        if (leaf != nullptr)
          for (const Piece& p : pieces) number_rows(nodes_[leaves[p.leaf]], p.s, (uint16_t)p.leaf, leaf);
        return;
      }
      Piece& p = pieces[task - 1];
      const int32_t* ids = rows(nodes_[leaves[p.leaf]], p.s);
      const int64_t first = b_.shards[p.s.shard].first, m = p.s.end - p.s.begin;
      const Pair* q = q_.fine + first;
      if (!in_.weights.given) {
        for (int64_t i = 0; i < m; i++) {
          const Pair& x = q[ids == nullptr ? p.s.begin + i : ids[i]];
          p.sum.g += x.g, p.sum.h += x.h;
        }
        p.count = m;
      } else {
        const int32_t* times = in_.weights.multiple.data() + first;
        for (int64_t i = 0; i < m; i++) {
          const int64_t r = ids == nullptr ? p.s.begin + i : ids[i], w = in_.weights.whole ? times[r] : 1;
          p.sum.g += q[r].g * w, p.sum.h += q[r].h * w;
          p.count += times[r];
        }
      }
    });
    for (const Piece& p : pieces) {
      sums[leaves[p.leaf]] = sums[leaves[p.leaf]] + p.sum;
      counts[leaves[p.leaf]] += p.count;
    }
  }

  void number_rows(const Node& n, const Segment& s, uint16_t number, uint16_t* leaf) const {
    uint16_t* out = leaf + b_.shards[s.shard].first;
    const int32_t* ids = rows(n, s);
    for (int64_t i = 0; i < s.end - s.begin; i++) out[ids == nullptr ? s.begin + i : ids[i]] = number;
  }

  const GrowInput& in_;
  const Binned& b_;
  const Gradients& q_;
  const Limits& lim_;
  Workspace& w_;
  const Kernels& k_;
  Penalty penalty_;
  double unit_ = 1, least_count_ = 1;
  bool counted_ = false;
  size_t hs_ = 0;
  std::vector<int> columns_;   // of this tree
  std::vector<int> touched_;   // those and their tile mates: what histograms hold
  std::vector<std::vector<int>> allowed_;
  std::vector<TileSpan> tiles_, slices_;  // slices: tiles cut up for several workers
  int64_t n_codes_ = 0;
  std::vector<Node> nodes_;
  std::vector<Job> jobs_;
  std::vector<Part> parts_;
  std::vector<Segment> strips_;
  std::vector<Candidate> found_;
};

}  // namespace

Tree grow_tree(const GrowInput& in, Workspace& work, uint16_t* leaf, std::vector<double>& value) { return Growth(in, work).grow(leaf, value); }

}  // namespace sapwood
