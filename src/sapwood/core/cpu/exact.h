// Exact trees: every value of every column is a candidate, as in a histogram with a bin for each of them, to the last bit.
// Enters: 32-bit codes (ranks) and the rows in the order of each column. Leaves: the best split of a node, or of a level.
//
//   column 0  | r7 r2 r9 r4 r0 ...  missing |      once: rows by rising code
//   node 1    | r7 r9 ... | r2 r4 r0 ...    |      a split parts every list, stably: a node is one segment of each
//   sums      | q7+q9 | ...                        rows of equal code make one bin; codes that a node lacks make none
//
// A missing bin would repeat the sums of the one before it, and of equals the lower bin wins: so none is missed. Only what lies before a
// node's first value differs: an empty bin of code 0 stands for it.
#pragma once
#include "search.h"

namespace sapwood {

struct Ordered {
  Ordered(const Binned& b, int n_threads);
  const int32_t* column(int c) const { return rows.as<int32_t>() + (size_t)c * n_rows; }
  int64_t n_rows;
  Memory rows;                    // (columns, n_rows)
  std::vector<uint8_t> distinct;  // (columns) no two rows share a value
};

class Exact {
 public:
  Exact(const GrowInput& in, Workspace& work, const std::vector<int>& columns, Search& search)
      : in_(in),
        b_(in.binned),
        q_(in.gradients),
        w_(work),
        k_(kernels()),
        columns_(columns),
        s_(search),
        n_(in.ordered->n_rows) {
    w_.sheets.resize(std::max<size_t>(w_.sheets.size(), in.n_threads));
    for (Memory& lists : w_.ordered)
      if (lists.size() == 0) lists = Memory((size_t)b_.n_columns * n_ * 4 + 64);
    words_ = ((size_t)n_ + 63) / 64;
    if (w_.bits.size() < words_ * 8 * in.n_threads) w_.bits = Memory(words_ * 8 * in.n_threads);
  }

  // The sums of the root; its lists too, where it has only some of the rows.
  Sums plant() {
    std::vector<uint8_t> out(in_.chosen == nullptr ? 0 : n_, 1);
    for (size_t i = 0; i < out.size() && i < (*in_.chosen)[0].size(); i++) out[(*in_.chosen)[0][i]] = 0;
    if (in_.chosen != nullptr)
      run(in_.n_threads, (int64_t)columns_.size(), [&](int64_t k, int worker) {
        part_list(in_.ordered->column(columns_[k]), n_, out.data(), 1, {1, 1}, list(1, columns_[k]), worker);
      });
    const int32_t* ids = in_.chosen == nullptr ? nullptr : (*in_.chosen)[0].data();
    const int64_t n = in_.chosen == nullptr ? n_ : (int64_t)(*in_.chosen)[0].size();
    Sums sum;
    for (int64_t i = 0; i < n; i++) sum = sum + row(ids == nullptr ? i : ids[i]);
    return sum;
  }

  // A split node's list of one column, parted for its children.
  void part(const Node& n, int c, int worker) {
    const uint32_t low = (uint32_t)n.best.bin + 1,
                   end = (uint32_t)b_.n_bins[n.best.column] + (n.best.missing_left ? 0 : 1);
    const Segment s = segment(n);
    part_list(rows(n, c), s.end - s.begin, codes(n.best.column), 4, {low, end - low},
              list(n.buffer == 0 ? 1 : 0, c) + s.begin, worker);
  }

  // The best split of one column in a node, if it beats `best`.
  void scan(const Node& n, int32_t id, int c, Candidate& best, int worker) {
    const auto& columns = s_.allowed(id);
    if (!s_.can_split(n) || !std::binary_search(columns.begin(), columns.end(), c)) return;
    const Line line = compact(n, c, worker);
    if (line.bins.n <= line.lead) return;  // all missing
    s_.scan_column(n, c, line.bins, best, [&](std::vector<int64_t>& count) { count_rows(line, count); });
    if (best.column == c) best.bin = code(line, best.bin);
  }

  // One split for all nodes of a level.
  bool share_split(std::vector<Node>& nodes, const std::vector<int32_t>& level) {
    const double own = s_.level_score(nodes, level);
    s_.choose_columns(level[0], nodes[level[0]].depth);
    const std::vector<int>& columns = s_.allowed(level[0]);
    std::vector<Search::Shared> found(columns.size());
    run(in_.n_threads, (int64_t)columns.size(),
        [&](int64_t k, int worker) { found[k] = scan_shared(nodes, level, columns[k], own * WORTH, worker); });
    Search::Shared best;
    for (const Search::Shared& s : found)
      if (s.column >= 0 && (best.column < 0 || s.score > best.score)) best = s;
    if (!s_.worth(best, own)) return false;
    std::vector<Sums> left(level.size());
    Sums all_left, all, gone;
    for (size_t k = 0; k < level.size(); k++) {
      const Node& n = nodes[level[k]];
      const Sums missing = halves(n, best, left[k]);
      all_left = all_left + left[k], all = all + n.sum, gone = gone + missing;
      if (best.missing_left) left[k] = left[k] + missing;
    }
    if (gone.h == 0) best.missing_left = all_left.h >= all.h - all_left.h;
    for (size_t k = 0; k < level.size(); k++) s_.take(nodes[level[k]], best, left[k]);
    return true;
  }

 private:
  struct Line {  // one column in one node
    Bins bins;
    const int32_t* rows;    // (n_rows) by rising code, missing last
    const int32_t* last;    // (bins.n - lead) a row of each value
    const uint32_t* codes;  // by row
    int64_t n_rows;
    int lead;  // 1: bin 0 is the empty one
  };

  static Segment segment(const Node& n) { return n.segments.empty() ? Segment{0, 0, 0} : n.segments[0]; }
  const uint32_t* codes(int c) const { return (const uint32_t*)b_.column(b_.shards[0], c); }
  int32_t* list(int buffer, int c) const { return w_.ordered[buffer].as<int32_t>() + (size_t)c * n_; }
  const int32_t* rows(const Node& n, int c) const {
    if (n.buffer < 0) return in_.chosen == nullptr ? in_.ordered->column(c) : list(1, c);
    return list(n.buffer, c) + segment(n).begin;
  }
  Sums row(int64_t r) const {
    if (q_.packed != nullptr) return {q_.packed[r] >> 16, q_.packed[r] & 0xffff};
    const int64_t m = in_.weights.whole ? in_.weights.multiple[r] : 1;
    return {q_.search[r].g * m, q_.search[r].h * m};
  }
  static int code(const Line& l, int bin) { return bin < l.lead ? 0 : (int)l.codes[l.last[bin - l.lead]]; }

  void part_list(const int32_t* from, int64_t n, const void* codes, size_t code_bytes, Split split, int32_t* to,
                 int worker) {
    PartitionArgs a{};
    a.codes = codes, a.code_bytes = code_bytes, a.rows = from, a.n = n, a.split = split;
    a.bits = w_.bits.as<uint64_t>() + words_ * worker;
    a.n_right = k_.mark(a);
    a.left = to, a.right = to + n - a.n_right;
    k_.move(a);
  }

  Line compact(const Node& n, int c, int worker) {
    Workspace::Sheet& sheet = w_.sheets[worker];
    if (sheet.sums.size() == 0) sheet.sums = Memory(((size_t)n_ + 16) * 16), sheet.last = Memory((size_t)n_ * 4);
    const uint32_t *code = codes(c), gone = (uint32_t)b_.n_bins[c];
    Line l{{sheet.sums.as<int64_t>(), q_.packed != nullptr && n.n_rows <= PACKED_ROWS, 0, false},
           rows(n, c),
           sheet.last.as<int32_t>(),
           code,
           n.n_rows,
           0};
    int64_t n_values = n.n_rows;
    if (b_.has_missing[c])
      n_values = std::partition_point(l.rows, l.rows + n.n_rows, [&](int32_t r) { return code[r] != gone; }) - l.rows;
    l.bins.missing = n_values < n.n_rows;
    l.lead = n_values == 0 || code[l.rows[0]] > 0;
    CompactArgs a{};
    a.rows = l.rows, a.codes = in_.ordered->distinct[c] ? nullptr : code, a.n = n_values;
    a.packed = q_.packed, a.pairs = q_.search, a.multiple = in_.weights.whole ? in_.weights.multiple.data() : nullptr;
    a.words = l.bins.packed, a.last = sheet.last.as<int32_t>();
    if (a.codes == nullptr) l.last = l.rows;
    const int width = a.words ? 1 : 2;
    int64_t* sums = sheet.sums.as<int64_t>();
    sums[0] = sums[1] = 0;
    a.sums = sums + l.lead * width;
    l.bins.n = l.lead + (int)k_.compact(a);
    if (!l.bins.missing) return l;
    Sums m;
    for (int64_t i = n_values; i < n.n_rows; i++) m = m + row(l.rows[i]);
    if (a.words) sums[l.bins.n] = (int64_t)((uint64_t)m.g << 32) + m.h;
    else sums[2 * l.bins.n] = m.g, sums[2 * l.bins.n + 1] = m.h;
    return l;
  }

  void count_rows(const Line& l, std::vector<int64_t>& count) const {
    count.assign(l.bins.n + 1, 0);
    int64_t bin = l.lead;
    for (int64_t i = 0; i < l.n_rows; i++) {
      bin += i > 0 && l.codes[l.rows[i]] != l.codes[l.rows[i - 1]];
      count[bin] += in_.weights.of(l.rows[i]);
    }
  }

  // Sums of the values at most at a split, OUT, and of the missing ones.
  Sums halves(const Node& n, const Search::Shared& split, Sums& left) const {
    const uint32_t *code = codes(split.column), gone = (uint32_t)b_.n_bins[split.column];
    const int32_t* ids = rows(n, split.column);
    Sums missing;
    for (int64_t i = 0; i < n.n_rows; i++) {
      if (code[ids[i]] <= (uint32_t)split.bin) left = left + row(ids[i]);
      else if (code[ids[i]] == gone) missing = missing + row(ids[i]);
    }
    return missing;
  }

  // Each node's scores at its own values hold up to its next one; level scores are sums over the nodes, in order.
  Search::Shared scan_shared(const std::vector<Node>& nodes, const std::vector<int32_t>& level, int c, double bar,
                             int worker) {
    int64_t missing = 0;
    for (const int32_t id : level) missing += b_.has_missing[c] ? missing_hessian(nodes[id], c) : 0;
    const int n_bins = b_.n_bins[c];
    std::vector<double> right(missing > 0 ? n_bins : n_bins - 1, 0.0), left(missing > 0 ? n_bins - 1 : 0, 0.0);
    std::vector<double> own_right, own_left;
    std::vector<int64_t> count;
    for (const int32_t id : level) {
      const Node& n = nodes[id];
      if (n.n_rows == 0) continue;
      const Line l = compact(n, c, worker);
      own_right.assign(l.bins.n, 0.0), own_left.assign(left.empty() ? 0 : l.bins.n, 0.0);
      s_.scan_level(n, l.bins, false, own_right), s_.scan_level(n, l.bins, true, own_left);
      if (s_.counted()) {
        count_rows(l, count);
        s_.veto_few(count, own_right, own_left);
      }
      spread(l, own_right, right), spread(l, own_left, left);
    }
    return s_.best_of(right, left, c, bar);
  }

  static void spread(const Line& l, const std::vector<double>& own, std::vector<double>& score) {
    for (int k = 0; k < (int)own.size(); k++) {
      const size_t end = k + 1 < (int)own.size() ? std::min<size_t>(code(l, k + 1), score.size()) : score.size();
      for (size_t b = code(l, k); b < end; b++) score[b] = score[b] + own[k];
    }
  }

  int64_t missing_hessian(const Node& n, int c) const {
    const uint32_t *code = codes(c), gone = (uint32_t)b_.n_bins[c];
    const int32_t* ids = rows(n, c);
    int64_t h = 0;
    for (int64_t i = n.n_rows; i-- > 0 && code[ids[i]] == gone;) h += row(ids[i]).h;
    return h;
  }

  const GrowInput& in_;
  const Binned& b_;
  const Gradients& q_;
  Workspace& w_;
  const Kernels& k_;
  const std::vector<int>& columns_;
  Search& s_;
  int64_t n_;
  size_t words_;
};

}  // namespace sapwood
