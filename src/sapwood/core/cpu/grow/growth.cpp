#include "cpu/grow/growth.h"

#include <string.h>

#include <iterator>
#include <optional>

#include "cpu/grow/exact.h"
#include "cpu/grow/frontier.h"
#include "cpu/grow/multi_output.h"
#include "cpu/grow/ordered.h"
#include "cpu/grow/partition_sparse.h"

namespace sapwood {
namespace {

constexpr int64_t CHUNK = 16384;           // rows of a task, at most
constexpr int64_t MIN_SHARED_ROWS = 8192;  // rows from which workers share a partition,
constexpr int64_t SCATTERED = 1 << 18;     // or half as many, where those of a node lie far apart among so many
constexpr int MIN_LEAVE_RATIO =
    4;  // the root's rows are kept while a split takes one in so many at most, and one in so many is left

struct Job {  // after a split: the histogram of the smaller child is counted, the larger one's is what remains
  int32_t parent, small, large;
  bool count = false;  // the small child's histogram is needed, for itself or for the subtraction
  bool rest = false;   // the large child's histogram is needed
};

std::vector<int> tree_columns(const GrowInput& in) {
  std::vector<int> all(in.binned.n_columns);
  for (int c = 0; c < in.binned.n_columns; c++) all[c] = c;
  return fewer(all, in.limits.colsample_bytree, key(in.seed, TREE_COLUMNS, in.tree, 0));
}

class Growth {
 public:
  Growth(const GrowInput& in, Workspace& work)
      : in_(in),
        b_(in.binned),
        q_(in.gradients),
        lim_(in.limits),
        w_(work),
        k_(kernels()),
        columns_(tree_columns(in)),
        t_(in, work, columns_),
        counts_(in, work, t_, nodes_),
        s_(in, columns_, t_, counts_) {
    if (in.ordered != nullptr) exact_.emplace(in, work, columns_, s_);
    masks_ = leaves_by_masks(b_, in.weights, lim_);
  }

  Tree grow(const AllocateLeafIds& numbers, std::vector<double>& value) {
    make_root();
    if (in_.grower.shared_split) grow_levels();
    else grow_nodes();
    return finish(numbers, value);
  }

  double unit() const { return s_.unit(); }  // of scores

  Tree finish(const AllocateLeafIds& numbers, std::vector<double>& value) {
    leave_root();
    Tree tree = make_tree(numbers, value);
    for (int32_t id = 0; id < (int32_t)nodes_.size(); id++) release(id);
    return tree;
  }

 private:
  friend class Lockstep<Growth>;           // which chooses splits together
  friend class MultiOutputGrowth<Growth>;  // with those of other outputs,
  friend class OrderedGrowth<Growth>;      // or with those of other models

  // ------------------------------------------------------------------------------------------ rows of a node
  void make_root() {
    w_.lists.resize(b_.shards.size());
    w_.kept.on = false;
    Node root;
    for (int s = 0; s < (int)b_.shards.size(); s++) {
      const int64_t n = in_.chosen == nullptr ? b_.shards[s].n_rows : (int64_t)(*in_.chosen)[s].size();
      Workspace::Lists& lists = w_.lists[s];
      const size_t need = (size_t)b_.shards[s].n_rows * 4 + 64;
      for (Memory& rows : lists.rows)
        if (rows.size() < need) rows = Memory(need);
      const bool travel = q_.packed != nullptr && !exact_;  // gradients go along with their rows
      if (travel && lists.packed.size() < need) lists.packed = Memory(need);
      if (travel && in_.chosen != nullptr && !q_.listed) {
        if (lists.root_packed.size() < need) lists.root_packed = Memory(need);
        int32_t* out = lists.root_packed.as<int32_t>();
        const int32_t* from = q_.packed + b_.shards[s].first;
        const int32_t* rows = (*in_.chosen)[s].data();
        run(n < CHUNK ? 1 : in_.n_threads, (n + CHUNK - 1) / CHUNK, [&](int64_t task, int) {
          for (int64_t i = task * CHUNK; i < std::min(n, (task + 1) * CHUNK); i++) out[i] = from[rows[i]];
        });
      }
      if (n > 0) root.segments.push_back({s, 0, n});
      root.n_rows += n;
    }
    if (b_.any_category) root.count = count_of(root);
    nodes_.push_back(std::move(root));
  }

  // Of one shard: many roots, which have its rows up to `ends`. What is kept by path is then kept elsewhere.
  void make_root(const std::vector<int64_t>& ends) {
    make_root();
    nodes_.clear();
    paths_ = false;
    int64_t begin = 0;
    for (int64_t end : ends) {
      if (in_.chosen != nullptr) {
        const std::vector<int32_t>& rows = in_.chosen->front();
        end = std::lower_bound(rows.begin(), rows.end(), (int32_t)end) - rows.begin();
      }
      Node root;
      if (end > begin) root.segments.push_back({0, begin, end});
      root.n_rows = end - begin;
      if (b_.any_category) root.count = count_of(root);
      nodes_.push_back(std::move(root));
      begin = end;
    }
  }

  // ------------------------------------------------------------------------------------------------ frontier
  bool at_max_depth(int depth) const { return lim_.max_depth > 0 && depth >= lim_.max_depth; }

  void grow_nodes() {
    const int most = lim_.max_leaves > 0 ? lim_.max_leaves : 0x7fffffff;
    if (most < 2 || nodes_[0].n_rows < 2) return;
    root_histogram();
    search(0);
    // Intermediate bounds of a node depend on the splits before it, so levels are not split at once.
    Frontier frontier(in_.grower, in_.grower.whole_level && !in_.rules.intermediate, most);
    if (nodes_[0].rank > 0) frontier.open(nodes_[0].rank, 0);
    std::vector<int32_t> batch;
    while (frontier.next([&](int32_t id) { return nodes_[id].depth; }, batch)) {
      expand(batch, frontier.room(), true);
      for (const int32_t id : batch)
        for (int32_t c = nodes_[id].left; c < nodes_[id].left + 2; c++)
          if (nodes_[c].rank > 0) frontier.open(nodes_[c].rank, c);
      if (in_.rules.intermediate)
        for (const int32_t id : s_.tighten(nodes_, batch[0])) {
          Node& n = nodes_[id];
          if (!frontier.close(n.rank, id)) continue;
          n.best = {}, n.gain = n.rank = 0, n.score = s_.score(n.sum, id);
          search(id);
          if (n.rank > 0) frontier.open(n.rank, id);
          else release(id);
        }
      if (!in_.rules.intermediate) frontier.trim([&](int32_t id) { release(id); });
    }
  }

  void grow_levels() {
    const int most = lim_.max_leaves > 0 ? lim_.max_leaves : 0x7fffffff;
    if (most < 2 || nodes_[0].n_rows < 2) return;
    root_histogram();
    std::vector<int32_t> level{0};
    for (int depth = 0; !at_max_depth(depth) && 2 * (int64_t)level.size() <= most; depth++) {
      if (in_.rules.intermediate) {  // the splits of the level before have moved the bounds of all its nodes
        s_.settle(level);
        for (const int32_t id : level) nodes_[id].score = s_.score(nodes_[id].sum, id);
      }
      if (!(exact_ ? exact_->find_level_split(nodes_, level) : s_.find_level_split(nodes_, level))) return;
      const bool more = !at_max_depth(depth + 1) && 4 * (int64_t)level.size() <= most;
      expand(level, more, false);
      std::vector<int32_t> next;
      for (const int32_t id : level) next.insert(next.end(), {nodes_[id].left, nodes_[id].left + 1});
      level = std::move(next);
    }
  }

  void release(int32_t id) {
    t_.release(nodes_[id].hist);
    counts_.release(id);
  }

  // Splits the nodes of a batch; where `more` can follow, their children get histograms and (with `search`) best splits.
  void expand(const std::vector<int32_t>& batch, bool more, bool search) {
    if (b_.any_category) make_sets(batch, search);
    if (masks_ && (!more || at_max_depth(nodes_[batch[0]].depth + 1))) return end(batch);
    partition(batch);
    jobs_.clear();
    for (const int32_t id : batch) {
      const int32_t l = nodes_[id].left, r = l + 1;
      const bool left_small = nodes_[l].n_rows <= nodes_[r].n_rows;
      Job job{id, left_small ? l : r, left_small ? r : l};
      const bool open = more && !at_max_depth(nodes_[l].depth);
      const bool small = open && (!search || s_.can_split(nodes_[job.small])),
                 large = open && (!search || s_.can_split(nodes_[job.large]));
      job.count = small || large, job.rest = large;
      if (job.count) jobs_.push_back(job);
      else release(id);
    }
    if (b_.any_category) count_children(batch);
    if (exact_) order_children(search);
    else histograms(search);
  }

  // What the rows of new nodes count for.
  void count_children(const std::vector<int32_t>& batch) {
    for (const int32_t id : batch) {
      Node &l = nodes_[nodes_[id].left], &r = nodes_[nodes_[id].left + 1];
      l.count = count_of(l), r.count = nodes_[id].count - l.count;
    }
  }
  int64_t count_of(const Node& n) const {
    if (!in_.weights.given) return n.n_rows;
    int64_t count = 0;
    t_.each_row(n, [&](const Shard& s, int64_t row) { count += in_.weights.repeats[s.first + row]; });
    return count;
  }

  // Category splits are steps until here (category.h).
  void make_sets(const std::vector<int32_t>& batch, bool own) {
    for (const int32_t id : batch) {
      Node& n = nodes_[id];
      const int c = n.best.column;
      if (!b_.is_category[c] || n.set >= 0) continue;
      if (own || id == batch[0]) add_set(n, own ? s_.set_of(n, id) : s_.shared_set);
      n.set = (int32_t)sets_.size() - 1;
    }
  }
  void take_set(const std::vector<int32_t>& ids, int code) {  // one category goes left in all these nodes
    take_set(ids, std::vector<int32_t>(code < b_.n_bins[nodes_[ids[0]].best.column], code));
  }
  void take_set(const std::vector<int32_t>& ids, std::vector<int32_t> left) {
    add_set(nodes_[ids[0]], std::move(left));
    for (const int32_t id : ids) nodes_[id].set = (int32_t)sets_.size() - 1;
  }
  void add_set(const Node& n, std::vector<int32_t> left) {
    const int n_bins = b_.n_bins[n.best.column];
    sets_.push_back({std::move(left), {}});
    Set& s = sets_.back();
    s.right.resize(set_words((size_t)n_bins + 1));
    fill_set(s.left.data(), s.left.size(), n_bins, n.best.missing_left, s.right.data());
  }

  // The last splits of a tree: nobody will ask for their children's rows.
  void end(const std::vector<int32_t>& batch) {
    for (const int32_t id : batch) {
      release(id);
      nodes_[id].left = (int32_t)nodes_.size();
      nodes_.resize(nodes_.size() + 2);
      inherit(id);
    }
  }

  void inherit(int32_t id) {
    const Node& n = nodes_[id];
    if (paths_) s_.inherit(n, id, n.set < 0 ? nullptr : sets_[n.set].right.data());
  }

  // --------------------------------------------------------------------------------------------- partition
  struct Part {
    int32_t node;
    int segment;
    size_t split;  // of its node
    int64_t begin, n, bits, right = 0, to_left = 0, to_right = 0;
    int64_t live = n;  // of its rows
  };

  bool shared(int64_t n) const { return n >= (b_.n_rows < SCATTERED ? MIN_SHARED_ROWS : MIN_SHARED_ROWS / 2); }
  int64_t share(int64_t n) const {  // rows of a task: whole words of bits, and as many tasks for every worker
    const int64_t round = in_.n_threads * CHUNK, n_tasks = !shared(n) ? 1 : in_.n_threads * ((n + round - 1) / round);
    return ((n + n_tasks - 1) / n_tasks + 63) / 64 * 64;
  }

  // By codes of the column's slot; `bits` has room for a set of them, if it takes one.
  Split slot_split(const Node& n, uint64_t* bits) const {
    const Candidate& best = n.best;
    const uint32_t low = (uint32_t)best.bin + 1, end = (uint32_t)b_.n_bins[best.column] + (best.missing_left ? 0 : 1);
    const Split own{low, end - low, n.set < 0 ? nullptr : sets_[n.set].right.data()};
    return in_slot(b_.layout, best.column, own, bits);
  }

  void partition(const std::vector<int32_t>& batch) {
    parts_.clear(), splits_.clear();
    fused_.resize(batch.size() * SET_WORDS);
    int64_t words = 0, total = 0;
    for (const int32_t id : batch) {
      const Node& n = nodes_[id];
      const size_t split = splits_.size();
      splits_.push_back(slot_split(n, &fused_[split * SET_WORDS]));
      for (int s = 0; s < (int)n.segments.size(); s++)
        for (int64_t at = n.segments[s].begin, step = share(n.segments[s].end - at); at < n.segments[s].end;
             at += step) {
          const int64_t m = std::min(step, n.segments[s].end - at);
          parts_.push_back({id, s, split, at, m, words});
          words += (m + 63) / 64;
          total += m;
        }
    }
    if (w_.bits.size() < (size_t)words * 8) w_.bits = Memory((size_t)words * 8 + 4096);
    const int threads = !shared(total) ? 1 : in_.n_threads;
    auto args = [&](const Part& p) {
      const Node& n = nodes_[p.node];
      const Segment s{n.segments[p.segment].shard, p.begin, p.begin + p.n};
      const int slot = b_.layout.members[n.best.column].slot;
      PartitionArgs a{};
      a.codes = b_.plane(b_.shards[s.shard], slot), a.code_bytes = b_.layout.slots[slot].code_bytes;
      a.rows = t_.rows(n, s), a.packed = exact_ ? nullptr : t_.packed(n, s), a.n = p.n, a.first = (int32_t)p.begin;
      a.split = splits_[p.split];
      a.bits = w_.bits.as<uint64_t>() + p.bits;
      return a;
    };
    run(threads, (int64_t)parts_.size(), [&](int64_t k, int) {
      const Node& n = nodes_[parts_[k].node];
      const PartitionArgs a = args(parts_[k]);
      const bool listed = b_.layout.slots[b_.layout.members[n.best.column].slot].lists();
      const int shard = n.segments[parts_[k].segment].shard;
      parts_[k].right =
          listed ? mark_listed(a, b_.shards[shard].thin.of(n.best.column), (uint32_t)b_.default_code[n.best.column])
                 : k_.mark(a);
      if (n.buffer < 0 && w_.kept.on) only_live(parts_[k], shard);
    });
    size_t at = 0;
    for (const int32_t id : batch) {
      Node l, r;
      l.depth = r.depth = nodes_[id].depth + 1;
      l.buffer = r.buffer = nodes_[id].buffer < 0 ? 0 : 1 - nodes_[id].buffer;
      l.sum = nodes_[id].best.left, r.sum = nodes_[id].sum - l.sum;
      const bool kept = nodes_[id].buffer < 0 && keeps(at, id);
      if (kept) place_kept(id, at, l, r);
      for (int s = 0; s < (int)nodes_[id].segments.size() && !kept; s++) {
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
      nodes_[id].left = (int32_t)nodes_.size();
      inherit(id);
      l.score = s_.score(l.sum, nodes_[id].left), r.score = s_.score(r.sum, nodes_[id].left + 1);
      nodes_.push_back(std::move(l));
      nodes_.push_back(std::move(r));
    }
    run(threads, (int64_t)parts_.size(), [&](int64_t k, int) {
      const Part& p = parts_[k];
      PartitionArgs a = args(p);
      if (nodes_[p.node].buffer < 0 && w_.kept.on) return take_out(p, a);
      a.n_right = p.right;
      const int shard = nodes_[p.node].segments[p.segment].shard;
      const Workspace::Lists& lists = w_.lists[shard];
      const int to = nodes_[nodes_[p.node].left].buffer;
      a.left = lists.rows[to].as<int32_t>() + p.to_left, a.right = lists.rows[to].as<int32_t>() + p.to_right;
      if (a.packed != nullptr)
        a.left_packed = t_.packed_list(shard, to) + p.to_left, a.right_packed = t_.packed_list(shard, to) + p.to_right;
      k_.move(a);
    });
  }

  // ------------------------------------------------------------------------------------- the root's rows, kept
  void only_live(Part& p, int shard) {
    uint64_t* bits = w_.bits.as<uint64_t>() + p.bits;
    const uint64_t* live = w_.kept.bits(shard, p.begin);
    p.right = p.live = 0;
    for (int64_t k = 0; k < (p.n + 63) / 64; k++) {
      bits[k] &= live[k];
      p.right += __builtin_popcountll(bits[k]), p.live += __builtin_popcountll(live[k]);
    }
  }

  // Whether the root's rows, or what is left of them, stay where they are: if they have done so before, or this split takes few.
  bool keeps(size_t first, int32_t id) {
    if (exact_ || w_.kept.on || !paths_) return w_.kept.on;
    int64_t right = 0, all = 0;
    for (size_t k = first; k < parts_.size() && parts_[k].node == id; k++) right += parts_[k].right, all += parts_[k].n;
    if (std::min(right, all - right) * MIN_LEAVE_RATIO > all) return false;
    std::vector<int64_t> n(b_.shards.size(), 0);
    for (const Segment& s : nodes_[id].segments) n[s.shard] = s.end;
    w_.kept.begin(n);
    for (size_t s = 0; s < n.size() && q_.packed != nullptr && t_.root_in_place(); s++)
      if (Memory& spare = w_.lists[s].spare; spare.size() < (size_t)n[s] * 4 + 64)
        spare = Memory((size_t)n[s] * 4 + 64);
    return true;
  }

  // The smaller child's rows are copied out; the larger one's too, once they are few among those that are kept.
  void place_kept(int32_t id, size_t& at, Node& l, Node& r) {
    const size_t first = at;
    int64_t all = 0;
    for (; at < parts_.size() && parts_[at].node == id; at++) {
      r.n_rows += parts_[at].right, l.n_rows += parts_[at].live - parts_[at].right, all += parts_[at].n;
    }
    Node &small = r.n_rows < l.n_rows ? r : l, &large = r.n_rows < l.n_rows ? l : r;
    if (large.n_rows * MIN_LEAVE_RATIO > all) large.buffer = -1, large.segments = nodes_[id].segments;
    for (const Segment& whole : nodes_[id].segments) {
      int64_t n_right = 0, n_left = 0;
      for (size_t k = first; k < at; k++)
        if (nodes_[id].segments[parts_[k].segment].shard == whole.shard)
          n_right += parts_[k].right, n_left += parts_[k].live - parts_[k].right;
      int64_t& next = w_.kept.taken[whole.shard];
      for (Node* child : {&small, &large}) {
        if (child->buffer < 0) continue;
        const int64_t n = child == &r ? n_right : n_left;
        int64_t to = next;
        for (size_t k = first; k < at; k++) {
          if (nodes_[id].segments[parts_[k].segment].shard != whole.shard) continue;
          (child == &r ? parts_[k].to_right : parts_[k].to_left) = to;
          to += child == &r ? parts_[k].right : parts_[k].live - parts_[k].right;
        }
        if (n > 0) child->segments.push_back({whole.shard, next, next + n});
        next += n;
      }
    }
  }

  void take_out(const Part& p, const PartitionArgs& a) {
    const int shard = nodes_[p.node].segments[p.segment].shard;
    uint64_t* live = w_.kept.bits(shard, p.begin);
    auto out = [&](const uint64_t* bits, int64_t to) {
      compress_rows(bits, p.n, a.first, a.rows, a.packed, w_.lists[shard].rows[0].as<int32_t>() + to,
                    a.packed == nullptr ? nullptr : t_.packed_list(shard, 0) + to);
    };
    const int32_t left = nodes_[p.node].left;
    const bool left_goes = nodes_[left].buffer == 0, right_goes = nodes_[left + 1].buffer == 0;
    if (right_goes) out(a.bits, p.to_right);
    for (int64_t k = 0; k < (p.n + 63) / 64; k++) a.bits[k] = live[k] & ~a.bits[k];  // who goes left
    if (left_goes) out(a.bits, p.to_left);
    for (int64_t k = 0; k < (p.n + 63) / 64; k++) live[k] &= left_goes ? ~a.bits[k] : a.bits[k];
  }

  // At the end, the leaf that has kept rows gets a list of its own.
  void leave_root() {
    for (Node& n : nodes_) {
      if (n.buffer >= 0 || n.left != 0 || !w_.kept.on || masks_) continue;
      std::vector<Segment> own;
      for (const Segment& s : n.segments) {
        int64_t& next = w_.kept.taken[s.shard];
        const uint64_t* live = w_.kept.bits(s.shard, 0);
        int64_t count = 0;
        for (int64_t k = 0; k < (s.end + 63) / 64; k++) count += __builtin_popcountll(live[k]);
        compress_rows(live, s.end, 0, t_.rows(n, s), nullptr, w_.lists[s.shard].rows[0].as<int32_t>() + next, nullptr);
        if (count > 0) own.push_back({s.shard, next, next + count});
        next += count;
      }
      n.segments = std::move(own), n.buffer = 0;
    }
  }

  void root_histogram(int32_t id = 0) {
    Node& root = nodes_[id];
    if (exact_) {
      root.sum = exact_->make_root(), root.score = s_.score(root.sum, 0);
      return;
    }
    root.hist = t_.acquire(t_.fits_packed(root.n_rows));
    auto nothing = [](int, int, int) {};
    if (in_.root != nullptr) memcpy(root.hist.data, in_.root, t_.slot_words(root.hist.packed) * 8);
    else if (t_.count_ns(root.n_rows) < FORK_NS || in_.n_threads == 1)
      t_.build_serial(root, root.hist, 0, t_.tiles, 0, t_.tiles.size());
    else if (root.n_rows < ROW_SPLIT || t_.many_tiles(1))
      run(in_.n_threads, (int64_t)t_.slices.size(),
          [&](int64_t t, int worker) { t_.build_serial(root, root.hist, worker, t_.slices, t, t + 1); });
    else t_.build_parallel(root, root.hist, nothing);
    t_.marginalise(root.hist, 0, t_.n_slots());
    if (const int c = columns_[0]; b_.default_code[c] < 0)
      for (int b = 0; b < t_.used(c); b++) root.sum = root.sum + t_.at(root.hist, c, b);
    else root.sum = t_.total(root);
    t_.complete(root.hist, root.sum, 0, t_.n_slots());
    root.score = s_.score(root.sum, 0);
  }

  // The best split of a node that has its sums: of the root, or of any under other bounds.
  void search(int32_t id) {
    Node& n = nodes_[id];
    s_.open(n, id);
    if (!s_.can_split(n) || at_max_depth(n.depth)) return;
    found_.assign(exact_ ? columns_.size() : t_.n_spans(), Candidate{});
    auto scan = [&](int first, int last, int span) {
      found_[span].score = n.best.score;
      s_.scan_slots(n, id, first, last, last, found_[span]);
    };
    if (exact_)
      run(exact_threads(n.n_rows), (int64_t)columns_.size(), [&](int64_t k, int worker) {
        found_[k].score = n.best.score;
        exact_->scan(n, id, columns_[k], found_[k], worker);
      });
    else if (t_.n_codes < FORK_NS) scan(0, t_.n_slots(), 0);
    else t_.spans(scan);
    for (const Candidate& c : found_)
      if (better(c, n.best)) n.best = c;
    s_.close(n, id);
  }

  int exact_threads(int64_t n_rows) const {  // a row's way through one column takes about 4 ns
    return n_rows * (int64_t)columns_.size() * 4 < FORK_NS ? 1 : in_.n_threads;
  }

  // Exact trees: each list of a parent is parted and searched for both children while it is in the cache.
  void order_children(bool search) {
    int64_t rows = 0;
    for (const Job& j : jobs_) {
      rows += nodes_[j.parent].n_rows;
      for (const int32_t id : {j.small, j.large})
        for (const Segment& s : nodes_[id].segments)
          exact_->send(t_.rows(nodes_[id], s), s.end - s.begin, id != nodes_[j.parent].left);
      if (search)
        for (const int32_t id : {j.small, j.large}) s_.open(nodes_[id], id);
    }
    const size_t n_columns = columns_.size(), n = jobs_.size() * n_columns;
    found_.assign(2 * n, Candidate{});
    run(exact_threads(rows), (int64_t)n, [&](int64_t k, int worker) {
      const Job& j = jobs_[k / n_columns];
      const int c = columns_[k % n_columns];
      exact_->part(nodes_[j.parent], c, worker);
      if (!search) return;
      found_[2 * k].score = nodes_[j.small].best.score, found_[2 * k + 1].score = nodes_[j.large].best.score;
      exact_->scan(nodes_[j.small], j.small, c, found_[2 * k], worker);
      exact_->scan(nodes_[j.large], j.large, c, found_[2 * k + 1], worker);
    });
    for (size_t k = 0; k < n; k++) gather(jobs_[k / n_columns], found_[2 * k], found_[2 * k + 1]);
    for (const Job& j : jobs_) s_.close(nodes_[j.small], j.small), s_.close(nodes_[j.large], j.large);
  }

  void histograms(bool search) {
    if (jobs_.empty()) return;
    for (const Job& j : jobs_) {
      nodes_[j.small].hist = t_.acquire(t_.fits_packed(nodes_[j.small].n_rows));
      if (!j.rest) continue;
      Node &parent = nodes_[j.parent], &large = nodes_[j.large];
      large.hist = !parent.hist.packed && t_.fits_packed(large.n_rows) ? t_.acquire(true) : parent.hist;
    }
    if (jobs_.size() > 1)  // the longest first
      std::stable_sort(jobs_.begin(), jobs_.end(),
                       [&](const Job& a, const Job& b) { return nodes_[a.small].n_rows > nodes_[b.small].n_rows; });
    if (search)
      for (const Job& j : jobs_) {
        for (const int32_t id : {j.small, j.large}) s_.open(nodes_[id], id);
        counts_.split(j.parent, j.small, j.large);
      }
    int64_t work = 0;
    for (const Job& j : jobs_) work += t_.count_ns(nodes_[j.small].n_rows) + (search ? 2 * t_.n_codes : 0);
    const size_t threads = work < FORK_NS ? 1 : in_.n_threads, n_jobs = jobs_.size();
    if (threads == 1 || n_jobs >= 4 * threads) by_job(search, (int)threads);
    else if (nodes_[jobs_[0].small].n_rows < ROW_SPLIT || t_.many_tiles(n_jobs)) by_tile(0, n_jobs, search);
    else
      for (size_t k = 0; k < n_jobs; k++) {
        if (nodes_[jobs_[k].small].n_rows >= ROW_SPLIT) by_row(jobs_[k], search);
        else by_tile(k, k + 1, search);
      }
    for (const Job& j : jobs_) {
      Node &parent = nodes_[j.parent], &small = nodes_[j.small], &large = nodes_[j.large];
      if (large.hist.data == parent.hist.data) parent.hist.data = nullptr;
      t_.release(parent.hist);
      if (search) {
        s_.close(small, j.small), s_.close(large, j.large);
        counts_.settle(j.large);
        for (const int32_t id : {j.small, j.large})
          if (!(nodes_[id].rank > 0)) release(id);
      }
    }
  }

  void by_job(bool search, int threads) {
    const int64_t n = (int64_t)jobs_.size();
    run(threads, n, [&](int64_t k, int worker) {
      const Job& j =
          jobs_[2 * k < n ? 2 * k : 2 * (n - 1 - k) + 1];  // the longest at both ends: the tail is then short
      Node &small = nodes_[j.small], &large = nodes_[j.large];
      const auto lists = std::find_if(t_.tiles.begin(), t_.tiles.end(),
                                      [&](const TileSpan& t) { return t.first >= b_.layout.first_list; });
      const size_t n_others = (size_t)(lists - t_.tiles.begin());
      for (size_t t = 0, end; t < t_.tiles.size(); t = end) {  // sums are searched while they are in the cache;
        end = small.n_rows > STRIP && t < n_others ? n_others : t + 1;  // many rows stay there from tile to tile
        t_.build_serial(small, small.hist, worker, t_.tiles, t, end);
        finish(j, t_.tiles[t].first, t_.tiles[end - 1].first + t_.tiles[end - 1].width, search, small.best, large.best);
      }
    });
  }

  void by_tile(size_t first_job, size_t last_job, bool search) {
    const size_t n_tiles = t_.slices.size(), n = (last_job - first_job) * n_tiles;
    found_.assign(2 * n, Candidate{});
    run(in_.n_threads, (int64_t)n, [&](int64_t k, int worker) {
      const Job& j = jobs_[first_job + k / n_tiles];
      const TileSpan& t = t_.slices[k % n_tiles];
      t_.build_serial(nodes_[j.small], nodes_[j.small].hist, worker, t_.slices, k % n_tiles, k % n_tiles + 1);
      found_[2 * k].score = nodes_[j.small].best.score, found_[2 * k + 1].score = nodes_[j.large].best.score;
      finish(j, t.first, t.first + t.width, search, found_[2 * k], found_[2 * k + 1]);
    });
    for (size_t k = 0; k < n; k++) gather(jobs_[first_job + k / n_tiles], found_[2 * k], found_[2 * k + 1]);
  }

  void by_row(const Job& j, bool search) {
    found_.assign(2 * t_.n_spans(), Candidate{});
    t_.build_parallel(nodes_[j.small], nodes_[j.small].hist, [&](int first, int last, int span) {
      found_[2 * span].score = nodes_[j.small].best.score, found_[2 * span + 1].score = nodes_[j.large].best.score;
      finish(j, first, last, search, found_[2 * span], found_[2 * span + 1]);
    });
    for (int span = 0; span < t_.n_spans(); span++) gather(j, found_[2 * span], found_[2 * span + 1]);
  }

  void finish(const Job& j, int first, int last, bool search, Candidate& small, Candidate& large) {
    constexpr int FEW = 4;  // slots whose histograms, parent and child, stay in L1 from subtraction to search
    for (int at = first; at < last; at += FEW) {
      const int end = std::min(last, at + FEW);
      t_.complete(nodes_[j.small].hist, nodes_[j.small].sum, at, end);
      if (j.rest) t_.subtract(nodes_[j.parent].hist, nodes_[j.small].hist, nodes_[j.large].hist, at, end);
      t_.marginalise(nodes_[j.small].hist, at, end);
      if (j.rest) t_.marginalise(nodes_[j.large].hist, at, end);
      if (!search) continue;
      s_.scan_slots(nodes_[j.small], j.small, at, end, last, small);
      if (j.rest) s_.scan_slots(nodes_[j.large], j.large, at, end, last, large);
    }
  }
  void gather(const Job& j, const Candidate& small, const Candidate& large) {
    if (better(small, nodes_[j.small].best)) nodes_[j.small].best = small;
    if (better(large, nodes_[j.large].best)) nodes_[j.large].best = large;
  }

  // ------------------------------------------------------------------------------------------------ harvest
  Tree make_tree(const AllocateLeafIds& numbers, std::vector<double>& value) {
    const size_t n = nodes_.size();
    Tree t = blank(n);
    std::vector<int32_t> leaves;
    for (size_t i = 0; i < n; i++)
      if (nodes_[i].left == 0) leaves.push_back((int32_t)i);
    std::vector<Sums> sums(n);
    std::vector<int64_t> counts(n, 0);
    for (size_t i = 0; i < n; i++) {
      const Node& node = nodes_[i];
      if (node.left != 0) write(node, i, node.left, node.gain, t);
    }
    const bool number = leaves.size() <= 65536 && (in_.chosen == nullptr || masks_);
    const LeafIds leaf = number ? numbers(leaves.size()) : LeafIds{};
    if (masks_) sum_by_masks(t, sums, counts, (uint8_t*)leaf.data);
    else sum_leaves(leaves, sums, counts, leaf);
    value.assign(leaves.size(), 0.0);
    const double hs = h_scale(q_.fine_scale), unit = power_of_two(-in_.weights.shift);
    for (size_t i = n; i-- > 0;) {
      if (t.left[i] != 0) {
        sums[i] = sums[t.left[i]] + sums[t.left[i] + 1];
        counts[i] = counts[t.left[i]] + counts[t.left[i] + 1];
      }
      t.cover[i] = (double)sums[i].h / hs;
      t.count[i] = (double)counts[i] * unit;
    }
    const std::vector<double> step = steps(sums, t.count);
    s_.settle(leaves);
    for (size_t k = 0; k < leaves.size(); k++) value[k] = lim_.learning_rate * s_.within(step[leaves[k]], leaves[k]);
    s_.fill(leaves, value);
    for (size_t k = 0; k < leaves.size(); k++) t.value[leaves[k]] = value[k];
    return t;
  }

  static Tree blank(size_t n) {
    Tree t;
    t.column.assign(n, -1), t.bin.assign(n, -1), t.left.assign(n, 0), t.missing_left.assign(n, 0);
    t.threshold.assign(n, 0.0), t.value.assign(n, 0.0), t.gain.assign(n, 0.0), t.cover.assign(n, 0.0),
        t.count.assign(n, 0.0), t.set.assign(n, -1);
    return t;
  }
  void write(const Node& node, size_t i, int32_t left, double gain, Tree& t) {  // its split
    const int c = node.best.column, b = node.best.bin;
    t.column[i] = c, t.left[i] = left, t.missing_left[i] = node.best.missing_left, t.gain[i] = gain;
    if (node.set >= 0) t.set[i] = place(node.set, t);
    else t.bin[i] = b, t.threshold[i] = b < b_.n_bins[c] - 1 ? b_.cuts[c][b] : INF;
  }

  // Sets are numbered in the order of the nodes that have them first.
  int32_t place(int32_t set, Tree& t) {
    Set& s = sets_[set];
    if (s.number < 0) {
      s.number = (int32_t)t.set_offset.size() - 1;
      t.set_code.insert(t.set_code.end(), s.left.begin(), s.left.end());
      t.set_offset.push_back((int64_t)t.set_code.size());
    }
    return s.number;
  }

  // The step of every node before shrinkage: its own, drawn towards its parent's the more, the fewer its rows.
  std::vector<double> steps(const std::vector<Sums>& sums, const std::vector<double>& count) const {
    std::vector<double> step(nodes_.size()), lambda(nodes_.size(), lim_.reg_lambda);
    const double smooth = lim_.path_smooth;
    for (size_t i = 0; i < nodes_.size(); i++) {  // parents come first and leave their step with their children
      const double own = leaf_value(sums[i], q_.fine_scale, lambda[i], lim_.reg_alpha, lim_.max_delta_step),
                   above = step[i];
      step[i] = i == 0 || smooth == 0.0 ? own : (own * count[i] + above * smooth) / (count[i] + smooth);
      const int32_t left = nodes_[i].left;
      if (left == 0) continue;
      step[left] = step[left + 1] = step[i];
      const int c = nodes_[i].best.column;
      if (nodes_[i].set >= 0 && b_.n_bins[c] > lim_.max_cat_to_onehot && !in_.rules.one_by_one(c))
        lambda[left] = lambda[left + 1] = lim_.reg_lambda + lim_.cat_l2;
    }
    return step;
  }

  // Few leaves: the mask kernel numbers 512 rows at a time and the sums of the sampled ones follow in order, which beats a walk through
  // the row lists.
  void sum_by_masks(const Tree& t, std::vector<Sums>& sums, std::vector<int64_t>& counts, uint8_t* leaf) {
    const MaskTree m = mask_tree(b_, view(t));
    struct alignas(64) Local {
      int64_t sums[2 * MASK_LEAVES][4];
      std::vector<uint64_t> reach;
    };
    std::vector<Local> local(in_.n_threads);
    for (size_t shard = 0; shard < b_.shards.size(); shard++) {
      const Shard& s = b_.shards[shard];
      const auto planes = byte_planes(b_, s);
      const std::vector<int32_t>* rows = in_.chosen == nullptr ? nullptr : &(*in_.chosen)[shard];
      run(s.n_rows < CHUNK ? 1 : in_.n_threads, (s.n_rows + CHUNK - 1) / CHUNK, [&](int64_t task, int worker) {
        Local& mine = local[worker];
        if (mine.reach.empty()) {
          mine.reach.resize(m.nodes.size() * (BLOCK / 64));
          memset(mine.sums, 0, sizeof mine.sums);
        }
        const int64_t first = task * CHUNK, end = std::min(s.n_rows, first + CHUNK);
        uint8_t number[CHUNK];
        for (int64_t at = first; at < end; at += BLOCK)
          k_.find_leaves(planes.data(), (size_t)at, m.nodes.data(), (int)m.nodes.size(), m.n_bits, mine.reach.data(),
                         number + (at - first));
        memcpy(leaf + s.first + first, number, (size_t)(end - first));
        LeafSumArgs a{number,   nullptr, (int32_t)first, q_.fine_listed, q_.fine + s.first + first, (int)(end - first),
                      mine.sums};
        if (rows != nullptr) {
          const auto from = std::lower_bound(rows->begin(), rows->end(), (int32_t)first),
                     to = std::lower_bound(from, rows->end(), (int32_t)end);
          a.rows = rows->data() + (from - rows->begin()), a.n = (int)(to - from);
          if (a.gathered) a.q = q_.fine + s.first + (from - rows->begin());
        }
        k_.sum_by_leaf(a);
      });
    }
    for (const Local& l : local)
      for (size_t k = 0; k < m.leaves.size() && !l.reach.empty(); k++) {
        const int32_t u = m.leaves[k];
        for (const int64_t* x : {l.sums[k], l.sums[MASK_LEAVES + k]})
          sums[u] = sums[u] + Sums{x[0], x[1]}, counts[u] += x[2];
      }
  }

  // Wide sums and counts of every leaf, and (with `leaf`) each row's leaf number. The numbers are written by one worker, while the
  // others sum: two writers of neighbouring bytes would take the cache lines from each other (measured: 1.6 to 1.9 times slower).
  void sum_leaves(const std::vector<int32_t>& leaves, std::vector<Sums>& sums, std::vector<int64_t>& counts,
                  LeafIds leaf) {
    struct Piece {
      size_t leaf;
      Segment s;
      Sums sum;
      int64_t count = 0;
    };
    std::vector<Piece> pieces;
    for (size_t k = 0; k < leaves.size(); k++)
      for (const Segment& s : nodes_[leaves[k]].segments)
        for (int64_t at = s.begin; at < s.end; at += CHUNK)
          pieces.push_back({k, {s.shard, at, std::min(s.end, at + CHUNK)}, {}, 0});
    const int threads = nodes_[0].n_rows < CHUNK ? 1 : in_.n_threads;
    run(threads, (int64_t)pieces.size() + 1, [&](int64_t task, int) {
      if (task == 0) {
        if (leaf.data != nullptr)
          for (const Piece& p : pieces) write_leaf_ids(nodes_[leaves[p.leaf]], p.s, p.leaf, leaf);
        return;
      }
      Piece& p = pieces[task - 1];
      const int32_t* ids = t_.rows(nodes_[leaves[p.leaf]], p.s);
      const int64_t first = b_.shards[p.s.shard].first, m = p.s.end - p.s.begin;
      const Pair* q = q_.fine + first;
      if (!in_.weights.given) {
        for (int64_t i = 0; i < m; i++) {
          const Pair& x = q[ids == nullptr ? p.s.begin + i : ids[i]];
          p.sum.g += x.g, p.sum.h += x.h;
        }
        p.count = m;
      } else {
        const int32_t* times = in_.weights.repeats.data() + first;
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

  void write_leaf_ids(const Node& n, const Segment& s, size_t number, LeafIds leaf) const {
    const int64_t first = b_.shards[s.shard].first;
    if (leaf.wide) number_as((uint16_t*)leaf.data + first, (uint16_t)number, t_.rows(n, s), s);
    else number_as((uint8_t*)leaf.data + first, (uint8_t)number, t_.rows(n, s), s);
  }
  template <class Number>
  static void number_as(Number* out, Number number, const int32_t* ids, const Segment& s) {
    for (int64_t i = 0; i < s.end - s.begin; i++) out[ids == nullptr ? s.begin + i : ids[i]] = number;
  }

  const GrowInput& in_;
  const Binned& b_;
  const Gradients& q_;
  const Limits& lim_;
  Workspace& w_;
  const Kernels& k_;
  const std::vector<int> columns_;  // of this tree
  HistogramBuilder t_;
  RowCounts counts_;
  SplitFinder s_;
  std::optional<Exact> exact_;
  bool masks_ = false;
  bool paths_ = true;  // nodes come from one root, and may be known by what lies above them
  std::vector<Node> nodes_;
  std::vector<Job> jobs_;
  std::vector<Part> parts_;
  struct Set {
    std::vector<int32_t> left;    // codes, rising
    std::vector<uint64_t> right;  // a bit a code: the others
    int32_t number = -1;          // in the tree
  };
  std::vector<Set> sets_;
  std::vector<Split> splits_;    // of the batch in partition,
  std::vector<uint64_t> fused_;  // and their sets of slot codes
  std::vector<Candidate> found_;
};

}  // namespace

bool leaves_by_masks(const Binned& binned, const RowWeights& weights, const Limits& limits) {
  const bool few = (limits.max_leaves > 0 && limits.max_leaves <= MASK_LEAVES) ||
                   (limits.max_depth > 0 && limits.max_depth <= 6);  // 2^6 leaves
  return few && !binned.layout.wide && !weights.given;
}

Tree grow_tree(const GrowInput& in, Workspace& work, const AllocateLeafIds& numbers, std::vector<double>& value) {
  return Growth(in, work).grow(numbers, value);
}

std::vector<Tree> grow_multi_output(const std::vector<GrowInput>& in, Workspace* work,
                                    const std::vector<AllocateLeafIds>& numbers,
                                    std::vector<std::vector<double>>& value, int n_threads, bool apart) {
  std::vector<std::unique_ptr<Growth>> outputs;
  for (size_t k = 0; k < in.size(); k++) outputs.push_back(std::make_unique<Growth>(in[k], work[k]));
  MultiOutputGrowth<Growth>(outputs, in, n_threads, apart).grow();
  std::vector<Tree> trees(in.size());
  run(apart ? n_threads : 1, (int64_t)in.size(),
      [&](int64_t k, int) { trees[k] = outputs[k]->finish(numbers[k], value[k]); });
  return trees;
}

std::vector<Tree> grow_ordered(const std::vector<GrowInput>& in, Workspace* work, const std::vector<int64_t>& ends,
                               int n_threads) {
  std::vector<std::unique_ptr<Growth>> outputs;
  for (size_t k = 0; k < in.size(); k++) outputs.push_back(std::make_unique<Growth>(in[k], work[k]));
  return OrderedGrowth<Growth>(outputs, in, n_threads).grow(ends);
}

}  // namespace sapwood
