// Exact trees: every value of every column is a candidate, as in a histogram with a bin for each of them, to the last bit.
// Enters: rows and their codes (ranks) in the order of each column. Leaves: the best split of a node, or of a level.
//
//   column 0  | r7 r2 r9 r4 r0 ...  missing |      once: rows by rising code
//   node 1    | r7 r9 ... | r2 r4 r0 ...    |      a split parts every list, stably: a node is one segment of each
//   sums      | q7+q9 | ...                        rows of equal code make one bin; codes that a node lacks make none
//
// A bin that is left out would repeat the sums of the one before, and of equals the lower bin wins: so none is missed. What lies before
// a node's first value has no bin before it: an empty one of code 0 stands for that.
#pragma once
#include "cpu/grow/split_finder.h"

namespace sapwood {

struct SortedColumns {
  SortedColumns(const Binned& b, int n_threads);
  int64_t n_rows;
  Memory rows, codes;  // (columns, n_rows)
};

class Exact {
 public:
  Exact(const GrowInput& in, Workspace& work, const std::vector<int>& columns, SplitFinder& search)
      : in_(in),
        b_(in.binned),
        q_(in.gradients),
        w_(work),
        k_(kernels()),
        columns_(columns),
        s_(search),
        n_(in.ordered->n_rows),
        words_(((size_t)n_ + 63) / 64) {
    w_.sheets.resize(std::max<size_t>(w_.sheets.size(), in.n_threads));
    if (w_.bits.size() < words_ * 8 * in.n_threads) w_.bits = Memory(words_ * 8 * in.n_threads);
    if (w_.goes_right.size() > 0) return;
    w_.goes_right = Memory(words_ * 8);
    for (Memory* lists : {w_.ordered, w_.ordered_codes})
      for (int k = 0; k < 2; k++) lists[k] = Memory((size_t)b_.n_columns * n_ * 4 + 64);
  }

  // The sums of the root; its lists too, where it has only some of the rows.
  Sums make_root() {
    Sums sum;
    if (in_.chosen == nullptr) {
      for (int64_t i = 0; i < n_; i++) sum = sum + row(i);
      return sum;
    }
    const std::vector<int32_t>& chosen = (*in_.chosen)[0];
    memset(w_.goes_right.as<char>(), 0xff, words_ * 8);
    send(chosen.data(), (int64_t)chosen.size(), false);
    run(in_.n_threads, (int64_t)columns_.size(), [&](int64_t k, int worker) {
      part_list(line(in_.ordered->rows, in_.ordered->codes, columns_[k], 0, n_), columns_[k], 1, 0, worker);
    });
    for (const int32_t r : chosen) sum = sum + row(r);
    return sum;
  }

  // Rows of a node just made: which way its parent's lists will part.
  void send(const int32_t* ids, int64_t n, bool right) {
    uint64_t* bits = w_.goes_right.as<uint64_t>();
    for (int64_t i = 0; i < n; i++) {
      uint64_t& word = bits[ids[i] >> 6];
      const uint64_t bit = 1ull << (ids[i] & 63);
      word = right ? word | bit : word & ~bit;
    }
  }

  // A split node's list of one column, parted for its children.
  void part(const Node& n, int c, int worker) {
    part_list(line(n, c), c, n.buffer == 0 ? 1 : 0, segment(n).begin, worker);
  }

  // The best split of one column in a node, if it beats `best`.
  void scan(const Node& n, int32_t id, int c, Candidate& best, int worker) {
    const auto& columns = s_.allowed(id);
    if (!s_.can_split(n) || !std::binary_search(columns.begin(), columns.end(), c)) return;
    const Line l = line(n, c);
    const Compact x = sorted_sums(l, c, worker);
    if (x.bins.n <= x.lead) return;  // all missing
    s_.scan_column(n, id, c, x.bins, best, [&](std::vector<int64_t>& count) -> std::span<const int64_t> {
      count_rows(l, x, count);
      return count;
    });
    if (best.column == c) best.bin = x.bins.code(best.bin);
  }

  // One split for all nodes of a level.
  bool find_level_split(std::vector<Node>& nodes, const std::vector<int32_t>& level) {
    const double own = s_.level_score(nodes, level);
    s_.choose_columns(level[0], nodes[level[0]].depth);
    const std::vector<int>& columns = s_.allowed(level[0]);
    std::vector<SplitFinder::LevelSplit> found(columns.size());
    run(in_.n_threads, (int64_t)columns.size(),
        [&](int64_t k, int worker) { found[k] = scan_level_column(nodes, level, columns[k], worth(own), worker); });
    SplitFinder::LevelSplit best;
    for (const SplitFinder::LevelSplit& s : found)
      if (s.beats(best)) best = s;
    if (!s_.pays(best, own)) return false;
    std::vector<Sums> left(level.size());
    Sums all_left, all, all_gone;
    for (size_t k = 0; k < level.size(); k++) {
      const Line l = line(nodes[level[k]], best.column);
      const int64_t n_left = before(l, (uint32_t)best.bin + 1), n_values = before(l, (uint32_t)b_.n_bins[best.column]);
      const Sums gone = sum(l, n_values, l.n);
      left[k] = sum(l, 0, n_left);
      all_left = all_left + left[k], all = all + nodes[level[k]].sum, all_gone = all_gone + gone;
      if (best.missing_left) left[k] = left[k] + gone;
    }
    if (all_gone.h == 0) best.missing_left = all_left.h >= all.h - all_left.h;
    for (size_t k = 0; k < level.size(); k++) s_.take(nodes[level[k]], level[k], best, left[k]);
    return true;
  }

 private:
  struct Line {  // the rows of a node in the order of one column, missing last
    const int32_t* rows;
    const uint32_t* codes;
    int64_t n;
  };

  struct Compact {  // its values and their sums
    ColumnHistogram bins;
    int lead;  // 1: bin 0 is the empty one
  };

  static Segment segment(const Node& n) { return n.segments.empty() ? Segment{0, 0, 0} : n.segments[0]; }

  Line line(const Memory& rows, const Memory& codes, int c, int64_t begin, int64_t n) const {
    const size_t at = (size_t)c * n_ + begin;
    return {rows.as<int32_t>() + at, codes.as<uint32_t>() + at, n};
  }
  Line line(const Node& n, int c) const {
    if (n.buffer < 0 && in_.chosen == nullptr) return line(in_.ordered->rows, in_.ordered->codes, c, 0, n_);
    const int buffer = n.buffer < 0 ? 1 : n.buffer;
    return line(w_.ordered[buffer], w_.ordered_codes[buffer], c, segment(n).begin, n.n_rows);
  }

  Sums row(int64_t r) const {
    if (q_.packed != nullptr) return {q_.packed[r] >> 16, q_.packed[r] & 0xffff};
    const int64_t m = in_.weights.whole ? in_.weights.repeats[r] : 1;
    return {q_.search[r].g * m, q_.search[r].h * m};
  }
  Sums sum(const Line& l, int64_t begin, int64_t end) const {
    Sums s;
    for (int64_t i = begin; i < end; i++) s = s + row(l.rows[i]);
    return s;
  }
  static int64_t before(const Line& l, uint32_t code) {
    return std::lower_bound(l.codes, l.codes + l.n, code) - l.codes;
  }

  void part_list(const Line& from, int c, int buffer, int64_t begin, int worker) {
    PartitionArgs a{};
    a.codes = w_.goes_right.as<void>(), a.code_bytes = 0, a.rows = from.rows, a.n = from.n;
    a.packed = (const int32_t*)from.codes;
    a.bits = w_.bits.as<uint64_t>() + words_ * worker;
    a.n_right = k_.mark(a);
    const size_t left = (size_t)c * n_ + begin, right = left + from.n - a.n_right;
    a.left = w_.ordered[buffer].as<int32_t>() + left, a.right = w_.ordered[buffer].as<int32_t>() + right;
    a.left_packed = w_.ordered_codes[buffer].as<int32_t>() + left;
    a.right_packed = w_.ordered_codes[buffer].as<int32_t>() + right;
    k_.move(a);
  }

  Compact sorted_sums(const Line& l, int c, int worker) {
    Workspace::ExactScratch& sheet = w_.sheets[worker];
    if (sheet.sums.size() == 0)
      sheet.sums = Memory(((size_t)n_ + 16) * 16), sheet.values = Memory(((size_t)n_ + 2) * 4);
    int64_t* sums = sheet.sums.as<int64_t>();
    const int64_t n_values = b_.has_missing[c] ? before(l, (uint32_t)b_.n_bins[c]) : l.n;
    uint32_t* codes = sheet.values.as<uint32_t>();
    Compact x{{sums, q_.packed != nullptr && l.n <= PACKED_ROWS, 0, n_values < l.n, codes}, 0};
    x.lead = n_values == 0 || l.codes[0] > 0;
    SortedSumsArgs a{};
    a.rows = l.rows, a.codes = l.codes, a.n = n_values;
    a.packed = q_.packed, a.pairs = q_.search, a.repeats = in_.weights.whole ? in_.weights.repeats.data() : nullptr;
    a.words = x.bins.packed, a.sums = sums + x.lead * (a.words ? 1 : 2), a.values = codes + x.lead;
    sums[0] = sums[1] = 0, codes[0] = 0;
    x.bins.n = x.lead + (int)k_.sorted_sums(a);
    codes[x.bins.n] = (uint32_t)b_.n_bins[c] - 1;
    const Sums gone = sum(l, n_values, l.n);
    if (a.words) sums[x.bins.n] = (int64_t)((uint64_t)gone.g << 32) + gone.h;
    else sums[2 * x.bins.n] = gone.g, sums[2 * x.bins.n + 1] = gone.h;
    return x;
  }

  void count_rows(const Line& l, const Compact& x, std::vector<int64_t>& count) const {
    count.assign(x.bins.n + 1, 0);
    int64_t bin = x.lead;
    for (int64_t i = 0; i < l.n; i++) {
      bin += i > 0 && l.codes[i] != l.codes[i - 1];
      count[bin] += in_.weights.of(l.rows[i]);
    }
  }

  // Each node's scores at its own values hold up to its next one; level scores are sums over the nodes, in order.
  SplitFinder::LevelSplit scan_level_column(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c,
                                            double bar, int worker) {
    int64_t missing = 0;
    for (const int32_t id : level) {
      const Line l = line(nodes[id], c);
      if (b_.has_missing[c]) missing += sum(l, before(l, (uint32_t)b_.n_bins[c]), l.n).h;
    }
    const int n_bins = b_.n_bins[c];
    std::vector<double> right(missing > 0 ? n_bins : n_bins - 1, 0.0), left(missing > 0 ? n_bins - 1 : 0, 0.0);
    std::vector<double> own_right, own_left;
    std::vector<int64_t> count;
    for (const int32_t id : level) {
      if (nodes[id].n_rows == 0) continue;
      const Line l = line(nodes[id], c);
      const Compact x = sorted_sums(l, c, worker);
      own_right.assign(x.bins.n, 0.0), own_left.assign(left.empty() ? 0 : x.bins.n, 0.0);
      s_.scan_level(nodes[id], id, c, x.bins, false, own_right),
          s_.scan_level(nodes[id], id, c, x.bins, true, own_left);
      if (missing > 0)  // values against missing ones, at the last code
        own_right.push_back(s_.level_part(nodes[id], nodes[id].sum - x.bins.gone(), id, c, n_bins - 1));
      if (s_.counted()) {
        count_rows(l, x, count);
        s_.veto_few(count, own_right, own_left);
      }
      spread(x, own_right, right), spread(x, own_left, left);
    }
    return s_.best_of(right, left, c, bar, 0, (int)right.size() - 1);
  }

  static void spread(const Compact& x, const std::vector<double>& own, std::vector<double>& score) {
    for (int k = 0; k < (int)own.size(); k++) {
      const size_t end = k + 1 < (int)own.size() ? std::min<size_t>(x.bins.code(k + 1), score.size()) : score.size();
      for (size_t b = x.bins.code(k); b < end; b++) score[b] = score[b] + own[k];
    }
  }

  const GrowInput& in_;
  const Binned& b_;
  const Gradients& q_;
  Workspace& w_;
  const Kernels& k_;
  const std::vector<int>& columns_;
  SplitFinder& s_;
  const int64_t n_;
  const size_t words_;  // of bits, one a row
};

}  // namespace sapwood
