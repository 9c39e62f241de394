// Exact trees: every value of every column is a candidate, as in a histogram with a bin for each of
// them, to the last bit. Enters: rows and their codes (ranks), sorted by each column. Leaves: the
// best split of a node, or of a level.
//
//   column 0  | r7 r2 r9 r4 r0 ...  missing |      once: rows by rising code
//   node 1    | r7 r9 ... | r2 r4 r0 ...    |      a split partitions every list, stably: a node is one segment of each
//   sums      | q7+q9 | ...                        rows of equal code make one bin; codes that a node lacks make none
//
// Values that do not occur in the node are skipped. That loses nothing: a cut there has the sums of
// the cut before it, and ties go to the lower bin. Only a cut below the node's smallest value needs
// a bin: an empty one of code 0.
#pragma once
#include "cpu/grow/growth_core.h"

namespace sapwood {

struct SortedColumns {  // of a whole table
  SortedColumns(const Binned& b, int n_threads)
      : n_rows(b.n_rows),
        rows((size_t)b.n_rows * b.n_columns * 4),
        codes((size_t)b.n_rows * b.n_columns * 4) {
    run(n_threads, b.n_columns, [&](int64_t c, int) {  // a counting sort
      const uint32_t* code = (const uint32_t*)b.plane(b.shards[0], (int)c);
      std::vector<int32_t> at(b.n_bins[c] + 2, 0);  // codes 0 .. n_bins, one place on
      for (int64_t i = 0; i < n_rows; i++) {
        at[code[i] + 1]++;
      }
      for (size_t k = 1; k < at.size(); k++) {
        at[k] += at[k - 1];
      }
      const size_t first = (size_t)c * n_rows;
      for (int64_t i = 0; i < n_rows; i++) {
        const int32_t to = at[code[i]]++;
        rows.as<int32_t>()[first + to] = (int32_t)i;
        codes.as<uint32_t>()[first + to] = code[i];
      }
    });
  }
  int64_t n_rows;
  Memory rows, codes;  // (columns, n_rows)
};

struct SortedBuffers {       // what ExactGrowth keeps from tree to tree
  Memory rows[2], codes[2];  // (columns, rows): a split reads one and writes the other
  Memory goes_right;         // a bit a row
  struct Scratch {           // of one worker
    Memory sums, values, bits;
  };
  std::vector<Scratch> scratch;
};

class ExactGrowth : public GrowthCore {
 public:
  ExactGrowth(const GrowInput& in, TreeBuffers& buffers, SortedBuffers& sorted)
      : GrowthCore(in, buffers), w_(sorted) {
    w_.scratch.resize(std::max<size_t>(w_.scratch.size(), in.n_threads));
    if (w_.goes_right.size() > 0) {
      return;
    }
    w_.goes_right = Memory(words_ * 8);
    for (Memory* lists : {w_.rows, w_.codes}) {
      for (int k = 0; k < 2; k++) {
        lists[k] = Memory((size_t)b_.n_columns * n_ * 4 + 64);
      }
    }
  }
  void choose(int32_t id) override {
    begin_choice(id);
    Node& n = nodes_[id];
    if (!finder_.can_split(n)) {
      return;
    }
    found_.assign(columns_.size(), Candidate{});
    run(threads_for_rows(n.n_rows), (int64_t)columns_.size(), [&](int64_t k, int worker) {
      found_[k].score = n.best.score;
      scan(n, id, columns_[k], found_[k], worker);
    });
    for (const Candidate& c : found_) {
      if (better(c, n.best)) {
        n.best = c;
      }
    }
    finder_.end_search(n, id);
  }
  bool choose_level(const NodeIds& level) override {
    update_level_bounds(level);
    return level_.find(
        nodes_, level, in_.n_threads,
        [&](int c, double bar, int worker) {
          return scan_level(level, c, bar, worker);
        },
        [&](const Node& n, const LevelSplit& split) -> LevelSearch::LeftSums {
          const SortedRows s = sorted(n, split.column);
          return {sum(s, 0, n_before(s, (uint32_t)split.bin + 1)),
                  sum(s, n_before(s, (uint32_t)b_.n_bins[split.column]), s.n)};
        });
  }

 private:
  struct SortedRows {  // the rows of a node in the order of one column, missing last
    const int32_t* rows;
    const uint32_t* codes;
    int64_t n;
  };
  static Segment segment(const Node& n) {
    return n.segments.empty() ? Segment{0, 0, 0} : n.segments[0];
  }
  static int64_t n_before(const SortedRows& s, uint32_t code) {  // rows of a lower code
    return std::lower_bound(s.codes, s.codes + s.n, code) - s.codes;
  }
  struct ValueSums {  // a column's values in a node, and their sums
    ColumnHistogram bins;
    int lead;  // 1: bin 0 is the empty one
  };

  // The sums of the root; its lists too, where it has only some of the rows.
  void fill_root(int32_t id) override {
    Sums sum;
    if (in_.sampled_rows == nullptr) {
      for (int64_t i = 0; i < n_; i++) {
        sum = sum + row(i);
      }
    } else {
      const std::vector<int32_t>& sampled = (*in_.sampled_rows)[0];
      memset(w_.goes_right.as<char>(), 0xff, words_ * 8);
      set_sides(sampled.data(), (int64_t)sampled.size(), false);
      run(in_.n_threads, (int64_t)columns_.size(), [&](int64_t k, int worker) {
        partition(sorted(in_.sorted->rows, in_.sorted->codes, columns_[k], 0, n_), columns_[k], 1,
                  0, worker);
      });
      for (const int32_t r : sampled) {
        sum = sum + row(r);
      }
    }
    nodes_[id].sum = sum;
    nodes_[id].score = finder_.score(sum, 0);
  }
  // Each list of a parent is partitioned, and searched for both children while it is in the cache.
  void fill_children(bool search) override {
    int64_t rows = 0;
    for (const ChildHistograms& j : jobs_) {
      rows += nodes_[j.parent].n_rows;
      for (const int32_t id : {j.small, j.large}) {
        for (const Segment& s : nodes_[id].segments) {
          set_sides(rows_.rows(nodes_[id], s), s.end - s.begin, id != nodes_[j.parent].left);
        }
        if (search) {
          finder_.begin_search(nodes_[id], id);
        }
      }
    }
    const size_t n_columns = columns_.size();
    const size_t n = jobs_.size() * n_columns;
    found_.assign(2 * n, Candidate{});
    run(threads_for_rows(rows), (int64_t)n, [&](int64_t k, int worker) {
      const ChildHistograms& j = jobs_[k / n_columns];
      const int c = columns_[k % n_columns];
      const Node& parent = nodes_[j.parent];
      partition(sorted(parent, c), c, parent.buffer == 0 ? 1 : 0, segment(parent).begin, worker);
      if (!search) {
        return;
      }
      found_[2 * k].score = nodes_[j.small].best.score;
      found_[2 * k + 1].score = nodes_[j.large].best.score;
      scan(nodes_[j.small], j.small, c, found_[2 * k], worker);
      scan(nodes_[j.large], j.large, c, found_[2 * k + 1], worker);
    });
    for (size_t k = 0; k < n; k++) {
      keep_best(jobs_[k / n_columns], found_[2 * k], found_[2 * k + 1]);
    }
    for (const ChildHistograms& j : jobs_) {
      finder_.end_search(nodes_[j.small], j.small);
      finder_.end_search(nodes_[j.large], j.large);
    }
  }
  int threads_for_rows(int64_t n_rows) const {  // a row of a column takes about 4 ns
    return n_rows * (int64_t)columns_.size() * 4 < FORK_NS ? 1 : in_.n_threads;
  }
  // Which way rows of a parent's lists go: those of a child that was just made.
  void set_sides(const int32_t* rows, int64_t n, bool right) {
    uint64_t* bits = w_.goes_right.as<uint64_t>();
    for (int64_t i = 0; i < n; i++) {
      uint64_t& word = bits[rows[i] >> 6];
      const uint64_t bit = 1ull << (rows[i] & 63);
      word = right ? word | bit : word & ~bit;
    }
  }
  void partition(const SortedRows& from, int c, int buffer, int64_t begin, int worker) {
    Memory& bits = w_.scratch[worker].bits;
    if (bits.size() == 0) {
      bits = Memory(words_ * 8);
    }
    PartitionArgs a{};
    a.codes = w_.goes_right.as<void>();
    a.code_bytes = 0;
    a.rows = from.rows;
    a.n = from.n;
    a.packed = (const int32_t*)from.codes;
    a.bits = bits.as<uint64_t>();
    a.n_right = k_.mark(a);
    const size_t left = (size_t)c * n_ + begin;
    const size_t right = left + from.n - a.n_right;
    a.left = w_.rows[buffer].as<int32_t>() + left;
    a.right = w_.rows[buffer].as<int32_t>() + right;
    a.left_packed = w_.codes[buffer].as<int32_t>() + left;
    a.right_packed = w_.codes[buffer].as<int32_t>() + right;
    k_.move(a);
  }
  // The best split of one column in a node, if it beats `best`.
  void scan(const Node& n, int32_t id, int c, Candidate& best, int worker) {
    const auto& columns = finder_.allowed_columns(id);
    if (!finder_.can_split(n) || !std::binary_search(columns.begin(), columns.end(), c)) {
      return;
    }
    const SortedRows s = sorted(n, c);
    const ValueSums x = value_sums(s, c, worker);
    if (x.bins.n <= x.lead) {
      return;  // all missing
    }
    finder_.scan_column(n, id, c, x.bins, best,
                        [&](std::vector<int64_t>& count) -> std::span<const int64_t> {
                          count_rows(s, x, count);
                          return count;
                        });
    if (best.column == c) {
      best.bin = x.bins.code(best.bin);
    }
  }
  // Each node's scores at its own values hold up to its next one; level scores are sums over the
  // nodes, in order.
  LevelSplit scan_level(const NodeIds& level, int c, double bar, int worker) {
    const int n_bins = b_.n_bins[c];
    int64_t missing = 0;
    for (const int32_t id : level) {
      const SortedRows s = sorted(nodes_[id], c);
      if (b_.has_missing[c]) {
        missing += sum(s, n_before(s, (uint32_t)n_bins), s.n).h;
      }
    }
    std::vector<double> right(missing > 0 ? n_bins : n_bins - 1, 0.0);
    std::vector<double> left(missing > 0 ? n_bins - 1 : 0, 0.0);
    std::vector<double> own_right;
    std::vector<double> own_left;
    std::vector<int64_t> count;
    for (const int32_t id : level) {
      const Node& n = nodes_[id];
      if (n.n_rows == 0) {
        continue;
      }
      const SortedRows s = sorted(n, c);
      const ValueSums x = value_sums(s, c, worker);
      own_right.assign(x.bins.n, 0.0);
      own_left.assign(left.empty() ? 0 : x.bins.n, 0.0);
      level_.add_scores(n, id, c, x.bins, false, own_right);
      level_.add_scores(n, id, c, x.bins, true, own_left);
      if (missing > 0) {  // values against missing ones, at the last code
        own_right.push_back(
            level_.node_part(n, n.sum - x.bins.missing(), n_bins - 1, finder_.score_rule(id, c)));
      }
      if (finder_.counts_rows()) {
        count_rows(s, x, count);
        level_.veto(count, own_right, own_left);
      }
      auto expand_scores = [&](const std::vector<double>& own, std::vector<double>& score) {
        for (int k = 0; k < (int)own.size(); k++) {
          const size_t end = k + 1 < (int)own.size()
                                 ? std::min<size_t>(x.bins.code(k + 1), score.size())
                                 : score.size();
          for (size_t b = x.bins.code(k); b < end; b++) {
            score[b] = score[b] + own[k];
          }
        }
      };
      expand_scores(own_right, right);
      expand_scores(own_left, left);
    }
    return best_cut(right, left, c, bar, 0, (int)right.size() - 1);
  }
  ValueSums value_sums(const SortedRows& s, int c, int worker) {
    SortedBuffers::Scratch& scratch = w_.scratch[worker];
    if (scratch.sums.size() == 0) {
      scratch.sums = Memory(((size_t)n_ + 16) * 16);
      scratch.values = Memory(((size_t)n_ + 2) * 4);
    }
    int64_t* sums = scratch.sums.as<int64_t>();
    const int64_t n_values = b_.has_missing[c] ? n_before(s, (uint32_t)b_.n_bins[c]) : s.n;
    uint32_t* codes = scratch.values.as<uint32_t>();
    ValueSums x{{sums, q_.packed != nullptr && s.n <= PACKED_ROWS, 0, n_values < s.n, codes}, 0};
    x.lead = n_values == 0 || s.codes[0] > 0;
    SortedSumsArgs a{};
    a.rows = s.rows;
    a.codes = s.codes;
    a.n = n_values;
    a.packed = q_.packed;
    a.pairs = q_.search;
    a.repeats = in_.weights.integral ? in_.weights.repeats.data() : nullptr;
    a.words = x.bins.packed;
    a.sums = sums + x.lead * (a.words ? 1 : 2);
    a.values = codes + x.lead;
    sums[0] = sums[1] = 0;
    codes[0] = 0;
    x.bins.n = x.lead + (int)k_.sorted_sums(a);
    codes[x.bins.n] = (uint32_t)b_.n_bins[c] - 1;
    const Sums missing = sum(s, n_values, s.n);
    if (a.words) {
      sums[x.bins.n] = pack(missing);
    } else {
      sums[2 * x.bins.n] = missing.g;
      sums[2 * x.bins.n + 1] = missing.h;
    }
    return x;
  }
  void count_rows(const SortedRows& s, const ValueSums& x, std::vector<int64_t>& count) const {
    count.assign(x.bins.n + 1, 0);
    int64_t bin = x.lead;
    for (int64_t i = 0; i < s.n; i++) {
      bin += i > 0 && s.codes[i] != s.codes[i - 1];
      count[bin] += in_.weights.of(s.rows[i]);
    }
  }
  SortedRows sorted(const Memory& rows, const Memory& codes, int c, int64_t begin,
                    int64_t n) const {
    const size_t at = (size_t)c * n_ + begin;
    return {rows.as<int32_t>() + at, codes.as<uint32_t>() + at, n};
  }
  SortedRows sorted(const Node& n, int c) const {
    if (n.buffer < 0 && in_.sampled_rows == nullptr) {
      return sorted(in_.sorted->rows, in_.sorted->codes, c, 0, n_);
    }
    const int buffer = n.buffer < 0 ? 1 : n.buffer;
    return sorted(w_.rows[buffer], w_.codes[buffer], c, segment(n).begin, n.n_rows);
  }
  Sums row(int64_t r) const {
    if (q_.packed != nullptr) {
      return unpack(q_.packed[r]);
    }
    const int64_t m = in_.weights.integral ? in_.weights.repeats[r] : 1;
    return {q_.search[r].g * m, q_.search[r].h * m};
  }
  Sums sum(const SortedRows& s, int64_t begin, int64_t end) const {
    Sums all;
    for (int64_t i = begin; i < end; i++) {
      all = all + row(s.rows[i]);
    }
    return all;
  }

  const Gradients& q_ = in_.gradients;
  SortedBuffers& w_;
  const Kernels& k_ = kernels();
  const int64_t n_ = in_.sorted->n_rows;         // rows of the table
  const size_t words_ = ((size_t)n_ + 63) / 64;  // of bits, one a row
  std::vector<Candidate> found_;
};

}  // namespace sapwood
