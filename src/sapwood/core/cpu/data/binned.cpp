#include "cpu/data/binned.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>

#include "cpu/data/transpose.h"
#include "host/pool.h"
#include "math/fixed.h"
#include "math/hash.h"

namespace sapwood {

// ------------------------------------------------------------------------------------------------- memory
namespace {
constexpr size_t HUGE_PAGE = size_t(2) << 20, LARGE = size_t(256) << 10;
constexpr std::align_val_t LINE{64};
}  // namespace

// Large blocks are mapped and unmapped one by one: the heap would keep them for itself, and they would not lie in huge pages.
Memory::Memory(size_t n_bytes) : size_(n_bytes) {
  if (n_bytes == 0) return;
  if (n_bytes < LARGE) {
    data_ = ::operator new(n_bytes, LINE);
    return;
  }
  const size_t spare = n_bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
  void* at = mmap(nullptr, n_bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  mapped_ = at, mapped_size_ = n_bytes + spare;
  data_ =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(at) + spare) & ~(uintptr_t)(spare == 0 ? 0 : HUGE_PAGE - 1));
#ifdef MADV_HUGEPAGE
  if (spare != 0) madvise(data_, n_bytes, MADV_HUGEPAGE);
#endif
}
Memory::~Memory() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_size_);
  else if (data_ != nullptr) ::operator delete(data_, LINE);
}
Memory::Memory(Memory&& o) noexcept { *this = std::move(o); }
Memory& Memory::operator=(Memory&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  std::swap(mapped_, o.mapped_);
  std::swap(mapped_size_, o.mapped_size_);
  return *this;
}

// ------------------------------------------------------------------------------------------------ weights
RowWeights::RowWeights(const double* w, int64_t n) {
  if (w == nullptr) return;
  given = true, whole = true;
  double top = 0.0, sum = 0.0;  // `sum` only decides whether integers are small enough; it is exact while it matters
  for (int64_t i = 0; i < n; i++) {
    whole = whole && w[i] == std::floor(w[i]);
    top = w[i] > top ? w[i] : top;
    sum += w[i];
  }
  whole = whole && top <= 0x1p20 && sum <= 0x1p31;
  unit = whole && top <= 1.0;
  multiple.resize(n);
  shift = whole ? 0 : 30 - exponent_of(top);
  const double scale = whole ? 1.0 : power_of_two(shift);
  for (int64_t i = 0; i < n; i++) {
    const int32_t m = (int32_t)rounded(w[i] * scale);
    multiple[i] = m == 0 && w[i] > 0.0 ? 1 : m;
  }
  if (!whole) real = w;
}

// --------------------------------------------------------------------------------------------------- cuts
namespace {

constexpr int64_t SAMPLE = 200000;

struct Distinct {  // a small open-addressing set that gives up beyond `limit` values
  std::vector<uint64_t> slot;
  std::vector<uint64_t> found;
  size_t mask, limit;
  explicit Distinct(size_t limit_) : limit(limit_) {
    size_t n = 64;
    while (n < 4 * limit) n *= 2;
    slot.assign(n, 0);  // 0 is `ordered` of no finite number
    mask = n - 1;
  }
  bool add(uint64_t v) {  // false: too many
    size_t at = mix(v) & mask;
    while (slot[at] != 0) {
      if (slot[at] == v) return true;
      at = (at + 1) & mask;
    }
    if (found.size() == limit) return false;
    slot[at] = v;
    found.push_back(v);
    return true;
  }
};

double middle(double a, double b) {
  const double m = 0.5 * a + 0.5 * b;
  return m >= a && m < b ? m : a;
}

template <class Key>
std::vector<double> between(const std::vector<Key>& sorted) {
  std::vector<double> cuts;
  for (size_t j = 0; j + 1 < sorted.size(); j++) cuts.push_back(middle(unordered(sorted[j]), unordered(sorted[j + 1])));
  return cuts;
}

// Least significant digit first, 11 bits a pass; digits in which all keys agree are skipped. Sorted into `keys` or `space`: returned.
template <class Key, class Weight = int32_t>
struct Sorted {
  Key* keys;
  Weight* weights;  // null where rows count alike
};
template <class Key, class Weight>
Sorted<Key, Weight> radix_sort(Sorted<Key, Weight> from, Sorted<Key, Weight> space, size_t n) {
  constexpr int DIGITS = sizeof(Key) == 4 ? 3 : 6;
  std::vector<uint32_t> counts(DIGITS * 2048, 0);
  for (size_t i = 0; i < n; i++)
    for (int d = 0; d < DIGITS; d++) counts[d * 2048 + (from.keys[i] >> (11 * d) & 2047)]++;
  for (int d = 0; d < DIGITS; d++) {
    uint32_t* count = &counts[d * 2048];
    uint32_t at = 0;
    bool agree = false;
    for (int j = 0; j < 2048; j++) {
      agree = agree || count[j] == n;
      const uint32_t c = count[j];
      count[j] = at;
      at += c;
    }
    if (agree) continue;
    for (size_t i = 0; i < n; i++) {
      const uint32_t to = count[from.keys[i] >> (11 * d) & 2047]++;
      space.keys[to] = from.keys[i];
      if (from.weights != nullptr) space.weights[to] = from.weights[i];
    }
    std::swap(from, space);
  }
  return from;
}

struct Place {
  int chunk;
  int64_t row, global;
};

// The rows of the sample, in order: all of positive weight, or the `most` with the smallest draws among them; equal draws: lower row.
std::vector<Place> sample_rows(const std::vector<Chunk>& chunks, const RowWeights& weights, int64_t most,
                               int n_threads) {
  int64_t n = 0, live = 0, first = 0;
  for (const Chunk& c : chunks) n += c.n_rows;
  for (int64_t i = 0; i < n; i++) live += weights.of(i) > 0;
  std::vector<Place> places;
  places.reserve(std::min(live, most));
  auto take = [&, chunk = 0](int64_t row) mutable {
    while (row >= first + chunks[chunk].n_rows) first += chunks[chunk++].n_rows;
    places.push_back({chunk, row - first, row});
  };
  if (live <= most) {
    for (int64_t i = 0; i < n; i++)
      if (weights.of(i) > 0) take(i);
    return places;
  }
  struct Drawn {
    uint64_t draw;
    int64_t row;
  };
  const uint64_t k = key(0, CUTS, 0, 0);
  std::vector<std::vector<Drawn>> parts(task_count(n));
  std::vector<uint64_t> draws;
  int64_t sure = 0;  // smaller draws than `draws` has
  auto draw_up_to = [&](uint64_t floor, uint64_t ceiling) {
    run(threads_for(n, n_threads), task_count(n), [&](int64_t t, int) {
      parts[t].clear();
      for (int64_t i = t * TASK_ROWS; i < std::min(n, (t + 1) * TASK_ROWS); i++)
        if (const uint64_t d = draw(k, i); d <= ceiling && weights.of(i) > 0) parts[t].push_back({d, i});
    });
    draws.clear(), sure = 0;
    for (const auto& part : parts)
      for (const Drawn& d : part)
        if (d.draw < floor) sure++;
        else draws.push_back(d.draw);
  };
  const double guess = (double)most / (double)live * 0x1p64;  // of where the most-th smallest draw lies
  draw_up_to((uint64_t)(0.95 * guess), 1.1 * guess < 0x1p64 ? (uint64_t)(1.1 * guess) : ~0ull);
  if (sure >= most || sure + (int64_t)draws.size() < most) draw_up_to(0, ~0ull);
  const auto last = draws.begin() + (most - sure - 1);
  std::nth_element(draws.begin(), last, draws.end());
  const uint64_t limit = *last;
  int64_t at_limit = std::count(draws.begin(), last + 1, limit);  // of equal draws, so many
  for (const auto& part : parts)
    for (const Drawn& d : part)
      if (d.draw < limit || (d.draw == limit && at_limit-- > 0)) take(d.row);
  return places;
}

struct Run {  // equal keys at begin .. end - 1 of a sorted list, and what they weigh
  size_t begin, end;
  int64_t weight;
};
template <class Key, class Weight>
Run run_at(const Sorted<Key, Weight>& s, size_t n, size_t begin) {
  Run r{begin, begin, 0};
  for (; r.end < n && s.keys[r.end] == s.keys[begin]; r.end++) r.weight += s.weights == nullptr ? 1 : s.weights[r.end];
  return r;
}

// ColumnHistogram of about equal weight; a heavy value takes one bin and leaves the others to the rest (NUMERICS 3).
template <class Key, class Weight>
std::vector<double> walk(const Sorted<Key, Weight>& s, size_t n, int bins) {
  int64_t rest = 0, acc = 0;
  for (size_t i = 0; i < n; i++) rest += s.weights == nullptr ? 1 : s.weights[i];
  std::vector<double> cuts;
  int64_t share = (rest + bins - 1) / bins;
  for (Run r = run_at(s, n, 0); r.end < n && bins > 1;) {
    const Run next = run_at(s, n, r.end);
    acc += r.weight;
    if (acc >= share || next.weight >= share) {
      cuts.push_back(middle(unordered(s.keys[r.begin]), unordered(s.keys[next.begin])));
      rest -= acc, acc = 0, bins--;
      share = (rest + bins - 1) / bins;
    }
    r = next;
  }
  return cuts;
}

bool is_finite(double x) { return x - x == 0.0; }  // neither NaN nor infinity

struct ColumnSketch {
  const std::vector<Chunk>& chunks;
  const RowWeights& weights;
  const std::vector<int64_t>& live;  // by chunk: rows of positive weight
  int max_bins;

  // Every distinct value, if there are few.
  bool few(int column, std::vector<double>& cuts) const {
    Distinct seen(max_bins);
    double block[BLOCK];
    int64_t first = 0;
    uint64_t last = 0;
    auto add = [&](double x) {
      const uint64_t v = ordered(x);
      if (v == last) return true;
      last = v;
      return seen.add(v);
    };
    for (size_t k = 0; k < chunks.size(); first += chunks[k++].n_rows) {
      const Chunk& chunk = chunks[k];
      if (chunk.columns[column].sparse()) {
        if (!few_stored(chunk.columns[column], first, live[k], add)) return false;
        continue;
      }
      int64_t global = first;
      for (int64_t at = 0; at < chunk.n_rows; at += BLOCK) {
        const int n = (int)std::min<int64_t>(BLOCK, chunk.n_rows - at);
        load(chunk.columns[column], at, n, block);
        for (int i = 0; i < n; i++, global++)
          if (is_finite(block[i]) && weights.of(global) > 0 && !add(block[i])) return false;
      }
    }
    std::sort(seen.found.begin(), seen.found.end());
    cuts = between(seen.found);
    return true;
  }

  template <class Add>
  bool few_stored(const Column& column, int64_t first, int64_t n_live, Add&& add) const {
    bool fits = true;
    each_block(column, [&](const int32_t* rows, const double* x, int n) {
      for (int i = 0; i < n && fits; i++) {
        if (weights.of(first + rows[i]) == 0) continue;
        n_live--;
        fits = !is_finite(x[i]) || add(x[i]);
      }
    });
    return fits && (n_live == 0 || !is_finite(column.fill_value) || add(column.fill_value));
  }
};

bool some_sparse(const std::vector<Chunk>& chunks, int column) {
  return std::any_of(chunks.begin(), chunks.end(), [&](const Chunk& c) { return c.columns[column].sparse(); });
}

bool is_single(const std::vector<Chunk>& chunks, int column) {  // float32 holds every value
  return std::all_of(chunks.begin(), chunks.end(), [&](const Chunk& chunk) {
    const DType k = chunk.columns[column].kind;
    return k == DType::f32 || k == DType::i8 || k == DType::u8 || k == DType::i16 || k == DType::u16;
  });
}

constexpr int STRIPE = 128;  // rows read together, sixteen columns of them: they stay in L1

struct Lanes {           // of one worker: a list of keys for each of its columns, and one more for sorting
  Memory keys, weights;  // (columns + 1, places + 1)
};

struct Quantiles {
  const std::vector<Chunk>& chunks;
  const RowWeights& weights;
  const std::vector<Place>& places;
  int max_bins, min_samples_bin, n_threads;

  // Of columns of which only some values are stored: the other rows of the sample are counted, not visited.
  void find_stored(const std::vector<int>& columns, std::vector<std::vector<double>>& cuts) const {
    if (columns.empty()) return;
    int64_t n = 0;
    for (const Chunk& chunk : chunks) n += chunk.n_rows;
    std::vector<uint64_t> sampled((size_t)n / 64 + 1, 0);
    std::vector<size_t> begin(chunks.size() + 1, 0);  // by chunk: its first place
    std::vector<int64_t> weight(chunks.size(), 0);    // of its places
    for (const Place& p : places) {
      sampled[p.global >> 6] |= 1ull << (p.global & 63);
      begin[p.chunk + 1]++, weight[p.chunk] += weights.of(p.global);
    }
    for (size_t k = 0; k < chunks.size(); k++) begin[k + 1] += begin[k];
    run(n_threads, (int64_t)columns.size(), [&](int64_t j, int) {
      std::vector<uint64_t> keys;
      std::vector<int64_t> heavy;
      int64_t first = 0, unseen = 0;  // rows of the sample without an entry of their own
      auto add = [&](double x, int64_t w) {
        if (is_finite(x)) keys.push_back(ordered(x)), heavy.push_back(w);
      };
      for (size_t k = 0; k < chunks.size(); first += chunks[k++].n_rows) {
        const Column& column = chunks[k].columns[columns[j]];
        int64_t rows_left = (int64_t)(begin[k + 1] - begin[k]), weight_left = weight[k];
        if (column.sparse())
          each_block(column, [&](const int32_t* rows, const double* x, int m) {
            for (int i = 0; i < m; i++) {
              const int64_t row = first + rows[i], w = weights.of(row);
              if ((sampled[row >> 6] >> (row & 63) & 1) == 0) continue;
              rows_left--, weight_left -= w;
              add(x[i], w);
            }
          });
        else
          for (size_t i = begin[k]; i < begin[k + 1]; i++) {
            double x;
            load(column, places[i].row, 1, &x);
            add(x, weights.of(places[i].global));
            rows_left = 0;
          }
        if (rows_left == 0) continue;
        add(column.fill_value, weight_left);
        if (is_finite(column.fill_value)) unseen += rows_left - 1;
      }
      std::vector<uint64_t> other(keys.size());
      std::vector<int64_t> other_heavy(keys.size());
      const Sorted<uint64_t, int64_t> mine{keys.data(), heavy.data()}, spare{other.data(), other_heavy.data()};
      cuts[columns[j]] = cut(radix_sort(mine, spare, keys.size()), keys.size(), unseen);
    });
  }

  // Of columns side by side, f(values from `first` on (columns, STRIPE), place, how many) for all places; or false: they are not.
  template <class Real, class F>
  bool by_sixteen(int first, int last, F&& f) const {
    std::vector<int> at;
    for (const Chunk& chunk : chunks) at.push_back(row_major_run(chunk, first, last));
    if (sizeof(Real) == 8 || std::any_of(at.begin(), at.end(), [&](int a) { return a < 0; })) return false;
    float x[RUN * STRIPE];
    const char *rows[STRIPE], *next[STRIPE];
    auto find = [&](size_t i, const char** to) {
      const int n = (int)std::min<size_t>(STRIPE, places.size() - std::min(i, places.size()));
      for (int j = 0; j < n; j++) {
        const Place& p = places[i + j];
        const Column& head = chunks[p.chunk].columns[at[p.chunk]];
        to[j] = head.data + p.row * head.stride;
        __builtin_prefetch(to[j]), __builtin_prefetch(to[j] + 4 * RUN - 1);
      }
      return n;
    };
    for (size_t i = 0, n = find(0, next); n > 0; i += STRIPE) {
      const int here = (int)n;
      std::copy(next, next + here, rows);
      n = find(i + STRIPE, next);
      kernels().turn(rows, here, x, STRIPE);
      f(x + (first - at[0]) * STRIPE, i, here);
    }
    return true;
  }

  // Columns are gathered several at a time: a line of a row-major table is visited once for all of them.
  template <class Real, class Key>
  void find(const std::vector<int>& columns, std::vector<std::vector<double>>& cuts) const {
    const size_t n_columns = columns.size(), most = 64 / sizeof(Real), m = places.size(),
                 together = std::min(most, (n_columns + n_threads - 1) / n_threads);
    if (n_columns == 0) return;
    std::vector<Lanes> local(n_threads);
    run(n_threads, (int64_t)((n_columns + together - 1) / together), [&](int64_t batch, int worker) {
      Lanes& mine = local[worker];
      if (mine.keys.size() == 0) mine.keys = Memory((together + 1) * (m + 1) * sizeof(Key));
      if (weights.given && mine.weights.size() == 0) mine.weights = Memory((together + 1) * (m + 1) * 4);
      const size_t first = batch * together, last = std::min(n_columns, first + together);
      auto lane = [&](size_t k) {
        const size_t at = k * (m + 1);  // one more: what is not finite is written, and overwritten
        return Sorted<Key>{mine.keys.as<Key>() + at, weights.given ? mine.weights.as<int32_t>() + at : nullptr};
      };
      std::vector<size_t> filled(together, 0);
      auto add = [&](size_t k, const auto* x, size_t i, int n) {  // to the k-th column, of n places
        const Sorted<Key> to = lane(k);
        size_t at = filled[k];
        for (int j = 0; j < n; j++) {
          to.keys[at] = ordered((Real)x[j]);
          if (weights.given) to.weights[at] = weights.multiple[places[i + j].global];
          at += is_finite(x[j]);
        }
        filled[k] = at;
      };
      if (!by_sixteen<Real>(columns[first], columns[last - 1], [&](const float* x, size_t i, int n) {
            for (size_t k = first; k < last; k++) add(k - first, x + (columns[k] - columns[first]) * STRIPE, i, n);
          }))
        for (size_t i = 0; i < m; i++) {
          const Place &p = places[i], &later = places[std::min(i + 16, m - 1)];
          for (size_t k = first; k < last; k++) {
            const Column &column = chunks[p.chunk].columns[columns[k]], &next = chunks[later.chunk].columns[columns[k]];
            __builtin_prefetch(next.data + later.row * next.stride);
            double x;
            load(column, p.row, 1, &x);
            add(k - first, &x, i, 1);
          }
        }
      for (size_t k = first; k < last; k++)
        cuts[columns[k]] = cut(radix_sort(lane(k - first), lane(together), filled[k - first]), filled[k - first]);
    });
  }

  // unseen: rows that share a key with others
  template <class Key, class Weight>
  std::vector<double> cut(const Sorted<Key, Weight>& sorted, size_t n, int64_t unseen = 0) const {
    std::vector<Key> values;
    for (size_t i = 0; i < n && (int)values.size() <= max_bins; i++)
      if (values.empty() || sorted.keys[i] != values.back()) values.push_back(sorted.keys[i]);
    if ((int)values.size() <= max_bins) return between(values);
    int64_t rows = weights.whole ? 0 : (int64_t)n + unseen;
    for (size_t i = 0; weights.whole && i < n; i++) rows += sorted.weights[i];
    // A bin of fewer rows only follows their noise.
    return walk(sorted, n, (int)std::min<int64_t>(max_bins, std::max<int64_t>(128, rows / min_samples_bin)));
  }
};

}  // namespace

std::vector<std::vector<double>> find_cuts(const std::vector<Chunk>& chunks, const double* weight, int max_bins,
                                           int min_samples_bin, int n_threads) {
  int64_t n = 0;
  for (const Chunk& c : chunks) n += c.n_rows;
  const RowWeights weights(weight, n);
  const int n_columns = (int)chunks[0].columns.size();
  std::vector<std::vector<double>> cuts(n_columns);
  std::vector<uint8_t> many(n_columns);
  const bool every = max_bins == EVERY_VALUE;  // then nothing is gained by giving up on a column early
  std::vector<int64_t> live;
  for (int64_t first = 0; const Chunk& chunk : chunks) {
    live.push_back(chunk.n_rows);
    for (int64_t i = first; weights.given && i < first + chunk.n_rows; i++) live.back() -= weights.of(i) == 0;
    first += chunk.n_rows;
  }
  const ColumnSketch sketch{chunks, weights, live, max_bins};
  run(n_threads, n_columns, [&](int64_t c, int) { many[c] = every || !sketch.few((int)c, cuts[c]); });
  std::vector<int> singles, doubles, stored;
  for (int c = 0; c < n_columns; c++)
    if (many[c]) (some_sparse(chunks, c) ? stored : is_single(chunks, c) ? singles : doubles).push_back(c);
  if (singles.empty() && doubles.empty() && stored.empty()) return cuts;
  const std::vector<Place> places = sample_rows(chunks, weights, every ? n : SAMPLE, n_threads);
  const Quantiles quantiles{chunks, weights, places, max_bins, min_samples_bin, n_threads};
  quantiles.find<float, uint32_t>(singles, cuts);
  quantiles.find<double, uint64_t>(doubles, cuts);
  quantiles.find_stored(stored, cuts);
  return cuts;
}

// -------------------------------------------------------------------------------------------------- codes
namespace {

bool any_missing(const Column& column, int64_t first, int n, bool category) {
  if (column.kind != DType::f32 && column.kind != DType::f64 && !category) return false;
  bool any = false;
  if (category) {
    int32_t x[BLOCK];
    load_as<int32_t>(column, first, n, x);
    for (int i = 0; i < n; i++) any |= x[i] < 0;
  } else if (column.kind == DType::f32) {
    float x[BLOCK];
    load_as<float>(column, first, n, x);
    for (int i = 0; i < n; i++) any |= x[i] != x[i];
  } else {
    double x[BLOCK];
    load(column, first, n, x);
    for (int i = 0; i < n; i++) any |= x[i] != x[i];
  }
  return any;
}
}  // namespace

PaddedCuts::PaddedCuts(const std::vector<double>& cuts) : n((int)cuts.size()) {
  size_t padded = 1;
  while (padded < cuts.size() + 1) padded *= 2;
  d = cuts;
  d.resize(std::max<size_t>(padded, 16), INF);
  f.resize(std::max<size_t>(padded, 272), (float)INF);
  for (size_t i = 0; i < cuts.size(); i++) {
    float down = (float)cuts[i];
    if ((double)down > cuts[i]) down = std::nextafterf(down, -(float)INF);
    f[i] = down;
  }
}

template <class Bin32, class Bin64, class Code>
static void encode_by(const Column& column, int64_t first, int n, const PaddedCuts& cuts, Bin32 bin32, Bin64 bin64,
                      Code* code) {
  if (column.kind == DType::f32 && !column.sparse()) {
    float x[BLOCK];
    load_as<float>(column, first, n, x);
    bin32(x, n, cuts.f.data(), cuts.n, code);
  } else {
    double x[BLOCK];
    load(column, first, n, x);
    bin64(x, n, cuts.d.data(), cuts.n, code);
  }
}

void encode(const Column& column, int64_t first, int n, const PaddedCuts& cuts, uint16_t* code) {
  encode_by(column, first, n, cuts, kernels().bin32, kernels().bin64, code);
}

void encode(const Column& column, int64_t first, int n, const PaddedCuts& cuts, uint8_t* code) {
  encode_by(column, first, n, cuts, kernels().bin32_byte, kernels().bin64_byte, code);
}

// Codes as they come, checked; the missing ones are the last.
template <class Code>
static void encode_categories(const Column& column, int64_t first, int n, int n_categories, Code* code) {
  int32_t x[BLOCK];
  load_as<int32_t>(column, first, n, x);
  bool fine = true;
  for (int i = 0; i < n; i++) fine &= x[i] < n_categories, code[i] = (Code)(x[i] < 0 ? n_categories : x[i]);
  if (!fine) throw std::invalid_argument("a category's code must be below the number of its column's categories");
}

Binned::Binned(const std::vector<Chunk>& chunks, std::vector<std::vector<double>> cuts_,
               const std::vector<int>& n_categories, bool exact_, std::optional<bool> fuse, int n_threads,
               std::shared_ptr<const Reduce> reduce_, const std::vector<int64_t>& positions)
    : reduce(std::move(reduce_)), exact(exact_), cuts(std::move(cuts_)) {
  n_columns = (int)cuts.size();
  for (int c = 0; c < n_columns; c++) {
    is_category.push_back(n_categories[c] > 0), any_category |= n_categories[c] > 0;
    n_bins.push_back(is_category[c] ? n_categories[c] : (int)cuts[c].size() + 1);
  }
  has_missing.assign(n_columns, 0), default_code.assign(n_columns, -1);
  std::vector<PaddedCuts> ready(cuts.begin(), cuts.end());
  if (exact) {
    layout = lay_out(n_bins, has_missing, default_code, {}, 0, true);
    rank_chunks(chunks, ready, n_threads);
    return;
  }
  std::vector<SparseColumns> thin = encode_sparse(chunks, ready, fuse, n_threads);
  for (size_t k = 0; k < chunks.size(); k++) encode_shard(chunks[k], std::move(thin[k]), ready, n_threads);
  for (size_t k = 0; k < shards.size(); k++) shards[k].position = positions.empty() ? shards[k].first : positions[k];
}

// Encodes the thin columns and lays out all of them.
std::vector<SparseColumns> Binned::encode_sparse(const std::vector<Chunk>& chunks, const std::vector<PaddedCuts>& ready,
                                                 std::optional<bool> fuse, int n_threads) {
  default_code = default_codes(chunks, ready);
  for (int c = 0; c < n_columns; c++)
    if (is_category[c]) default_code[c] = -1;
  std::vector<SparseColumns> thin;
  std::vector<int64_t> first;
  int64_t n = 0;
  for (const Chunk& chunk : chunks) {
    thin.emplace_back(chunk, default_code, ready, n_threads);
    first.push_back(n);
    n += chunk.n_rows;
  }
  for (int c = 0; c < n_columns; c++)
    for (size_t k = 0; k < thin.size() && default_code[c] >= 0; k++) {
      const Entries e = thin[k].of(c);
      has_missing[c] |= default_code[c] == n_bins[c] || std::find(e.codes, e.codes + e.n, n_bins[c]) != e.codes + e.n;
    }
  const std::vector<BundlePlan> shares = bundle_columns(thin, first, n, default_code, n_bins, has_missing);
  const int64_t rows = !fuse ? n : *fuse ? INT64_MAX : 0;
  find_missing(chunks, rows, n_threads);
  layout = lay_out(n_bins, has_missing, default_code, shares, rows, false);
  return thin;
}

// Of the columns that may share a slot: there a code for missing values takes room, so it is known beforehand whether there are some.
void Binned::find_missing(const std::vector<Chunk>& chunks, int64_t rows, int n_threads) {
  std::vector<int> columns;
  for (int c = 0; c < n_columns; c++)
    if (may_fuse(n_bins[c], rows) && default_code[c] < 0) columns.push_back(c);
  if (columns.empty()) return;
  std::vector<std::vector<uint8_t>> found(n_threads, std::vector<uint8_t>(n_columns, 0));
  for (const Chunk& chunk : chunks)
    run(n_threads, (chunk.n_rows + BLOCK - 1) / BLOCK, [&](int64_t b, int worker) {
      const int64_t at = b * BLOCK;
      const int n = (int)std::min<int64_t>(BLOCK, chunk.n_rows - at);
      for (const int c : columns) {
        uint8_t& mine = found[worker][c];
        if (!mine && any_missing(chunk.columns[c], at, n, is_category[c])) mine = 1;
      }
    });
  for (const auto& f : found)
    for (int c = 0; c < n_columns; c++) has_missing[c] |= f[c];
}

// `single` (n): its values, if they were read with others.
template <class Code>
void Binned::encode_column(const Chunk& chunk, int c, int64_t at, int n, const PaddedCuts& ready, const float* single,
                           Code* code) const {
  if (is_category[c]) return encode_categories(chunk.columns[c], at, n, n_bins[c], code);
  if (single == nullptr) return encode(chunk.columns[c], at, n, ready, code);
  if constexpr (sizeof(Code) == 1) kernels().bin32_byte(single, n, ready.f.data(), ready.n, code);
  else kernels().bin32(single, n, ready.f.data(), ready.n, code);
}

Shard Binned::new_shard(int64_t rows) {
  Shard shard;
  shard.n_rows = rows, shard.first = n_rows;
  n_rows += rows;
  shard.groups = Memory((size_t)rows * layout.row_bytes + 64);
  size_t at = 0;
  for (const Slot& s : layout.slots) {
    shard.plane_at.push_back(at);
    at += ((size_t)rows * s.code_bytes + BLOCK + 63) / 64 * 64;  // readable a block past the end
  }
  shard.planes = Memory(at);
  return shard;
}

// What lies between planes is read, though not used. Written last: workers, not the caller alone, then wait for the pages.
void Binned::add_shard(Shard shard) {
  for (size_t k = 0; k < layout.slots.size(); k++) {
    const size_t end = shard.plane_at[k] + (size_t)shard.n_rows * layout.slots[k].code_bytes;
    memset(shard.planes.as<char>() + end, 0,
           (k + 1 < layout.slots.size() ? shard.plane_at[k + 1] : shard.planes.size()) - end);
  }
  shards.push_back(std::move(shard));
}

// gone (columns) OUT: 1 where a code is that of missing values
template <class Code, class TransposedStripe>
void Binned::encode_slot(const Chunk& chunk, int s, int64_t at, int n, const std::vector<PaddedCuts>& ready,
                         TransposedStripe& turned, Code* code, std::vector<uint8_t>& gone) const {
  const Slot& slot = layout.slots[s];
  if (!slot.fused()) {
    const int c = slot.columns[0];
    encode_column(chunk, c, at, n, ready[c], turned.of(c), code);
    if (std::find(code, code + n, (Code)n_bins[c]) != code + n) gone[c] = 1;
    return;
  }
  Code part[STRIPE];
  memset(code, 0, n * sizeof(Code));
  for (const int c : slot.columns) {
    encode_column(chunk, c, at, n, ready[c], turned.of(c), part);
    const uint32_t step = layout.members[c].step;
    for (int i = 0; i < n; i++) code[i] = (Code)(code[i] + step * part[i]);
  }
}

void Binned::encode_shard(const Chunk& chunk, SparseColumns thin, const std::vector<PaddedCuts>& ready, int n_threads) {
  Shard shard = new_shard(chunk.n_rows);
  encode_shares(shard, std::move(thin), n_threads);
  std::vector<std::vector<uint8_t>> missing(n_threads, std::vector<uint8_t>(n_columns, 0));
  const std::vector<int> near = row_major_runs(chunk, std::vector<uint8_t>(n_columns, 1));
  auto encode_stripe = [&](int64_t at, int n, TransposedStripe<STRIPE>& turned, std::vector<uint8_t>& gone) {
    turned.go(at, n);
    for (const Group& g : layout.groups) {
      if (g.code_bytes == 0) continue;
      char* rows = (char*)group(shard, g) + (size_t)at * g.stride * g.code_bytes;
      const uint8_t* bytes[GROUP];
      for (int k = 0; k < g.width; k++) {
        const int s = g.first + k;
        void* own = (char*)plane(shard, s) + (size_t)at * g.code_bytes;
        if (g.code_bytes == 1) {
          if (!layout.slots[s].shared) encode_slot(chunk, s, at, n, ready, turned, (uint8_t*)own, gone);
          bytes[k] = (const uint8_t*)own;
          continue;
        }
        if (!layout.slots[s].shared) encode_slot(chunk, s, at, n, ready, turned, (uint16_t*)own, gone);
        for (int i = 0; i < n; i++) ((uint16_t*)rows)[i * g.stride + k] = ((const uint16_t*)own)[i];
      }
      if (g.code_bytes == 1) kernels().interleave(bytes, g.width, n, (uint8_t*)rows, g.stride);
      // The padding is never read as a code, but it is written, so that bytes are defined.
      for (int i = 0; i < n && g.stride > (size_t)g.width; i++)
        memset(rows + (i * g.stride + g.width) * g.code_bytes, 0, (g.stride - g.width) * g.code_bytes);
    }
  };
  run(n_threads, (chunk.n_rows + BLOCK - 1) / BLOCK, [&](int64_t b, int worker) {
    TransposedStripe<STRIPE> turned(chunk, near);
    const int64_t end = std::min(chunk.n_rows, (b + 1) * BLOCK);
    for (int64_t at = b * BLOCK; at < end; at += STRIPE)
      encode_stripe(at, (int)std::min<int64_t>(STRIPE, end - at), turned, missing[worker]);
  });
  for (const auto& m : missing)
    for (int c = 0; c < n_columns; c++) has_missing[c] |= m[c];
  add_shard(std::move(shard));
}

// The planes of bundles, and lists.
void Binned::encode_shares(Shard& shard, SparseColumns thin, int n_threads) {
  const int n_slots = (int)layout.slots.size(), n_lists = n_slots - layout.first_list;
  run(n_threads, layout.first_list, [&](int64_t s, int) {
    const Slot& slot = layout.slots[s];
    if (!slot.shared) return;
    void* codes = plane(shard, (int)s);
    memset(codes, 0, (size_t)shard.n_rows * slot.code_bytes);
    for (const int c : slot.columns) {
      const Entries e = thin.of(c);
      const uint32_t first = layout.members[c].first;
      if (slot.code_bytes == 1)
        for (int64_t i = 0; i < e.n; i++) ((uint8_t*)codes)[e.rows[i]] = (uint8_t)(first + e.codes[i]);
      else
        for (int64_t i = 0; i < e.n; i++) ((uint16_t*)codes)[e.rows[i]] = (uint16_t)(first + e.codes[i]);
    }
  });
  std::vector<std::optional<RowCodes>> lists(n_lists);
  run(n_threads, n_lists,
      [&](int64_t k, int) { lists[k].emplace(thin, layout, layout.slots[layout.first_list + k], shard.n_rows); });
  for (auto& one : lists) shard.lists.push_back(std::move(*one));
  std::vector<uint8_t> wanted(n_columns, 0);
  for (int s = layout.first_list; s < n_slots; s++)
    for (const int c : layout.slots[s].columns) wanted[c] = 1;
  thin.keep(wanted);
  shard.thin = std::move(thin);
}

uint32_t Binned::listed_code(const Shard& s, int column, int64_t row) const {
  const Entries e = s.thin.of(column);
  const int32_t* at = std::lower_bound(e.rows, e.rows + e.n, row);
  return at < e.rows + e.n && *at == row ? e.codes[at - e.rows] : (uint32_t)default_code[column];
}

uint32_t Binned::code(const Shard& s, int column, int64_t row) const {
  const Member& m = layout.members[column];
  const Slot& slot = layout.slots[m.slot];
  if (slot.lists()) return listed_code(s, column, row);
  const uint32_t code = slot_code(s, m.slot, row);
  if (slot.shared) return code - m.first < m.n ? code - m.first : (uint32_t)m.default_code;
  return slot.fused() ? code / m.step % m.n : code;
}

template <class Code>
void Binned::codes(int column, Code* out) const {
  const int at = layout.members[column].slot;
  const Slot& slot = layout.slots[at];
  std::vector<Code> own(slot.columns.size() > 1 && !slot.lists() ? slot.n_codes : 0);  // by code of the slot
  if (!own.empty()) layout.each_code(column, [&](uint32_t k, uint32_t code) { own[k] = (Code)code; });
  for (const Shard& s : shards) {
    Code* to = out + s.first;
    if (slot.lists()) {
      std::fill(to, to + s.n_rows, (Code)default_code[column]);
      const Entries e = s.thin.of(column);
      for (int64_t i = 0; i < e.n; i++) to[e.rows[i]] = (Code)e.codes[i];
    } else if (own.empty() && slot.code_bytes == sizeof(Code)) {
      memcpy(to, plane(s, at), (size_t)s.n_rows * sizeof(Code));
    } else {
      for (int64_t i = 0; i < s.n_rows; i++) {
        const uint32_t code = slot_code(s, at, i);
        to[i] = own.empty() ? (Code)code : own[code];
      }
    }
  }
}
template void Binned::codes(int, uint8_t*) const;
template void Binned::codes(int, uint16_t*) const;
template void Binned::codes(int, uint32_t*) const;

// The order of values runs through all chunks, and so do row ids: one shard.
void Binned::rank_chunks(const std::vector<Chunk>& chunks, const std::vector<PaddedCuts>& ready, int n_threads) {
  int64_t rows = 0;
  for (const Chunk& chunk : chunks) rows += chunk.n_rows;
  Shard shard = new_shard(rows);
  run(n_threads, n_columns, [&](int64_t c, int) {
    uint32_t* code = (uint32_t*)plane(shard, (int)c);
    double x[BLOCK];
    for (const Chunk& chunk : chunks)
      for (int64_t at = 0; at < chunk.n_rows; at += BLOCK) {
        const int n = (int)std::min<int64_t>(BLOCK, chunk.n_rows - at);
        load(chunk.columns[c], at, n, x);
        kernels().rank(x, n, ready[c].d.data(), ready[c].n, code);
        for (int i = 0; i < n; i++) has_missing[c] |= x[i] != x[i];
        code += n;
      }
  });
  add_shard(std::move(shard));
}

size_t Binned::n_bytes() const {
  size_t n = 0;
  for (const Shard& s : shards) {
    n += s.groups.size() + s.planes.size() + s.thin.n_bytes();
    for (const RowCodes& lists : s.lists) n += lists.offset.size() + lists.codes.size();
  }
  return n;
}

}  // namespace sapwood
