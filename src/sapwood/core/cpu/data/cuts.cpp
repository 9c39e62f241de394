#include "cpu/data/cuts.h"

#include <algorithm>
#include <stdexcept>

#include "cpu/data/cut_walk.h"
#include "cpu/data/distinct.h"
#include "cpu/data/transpose.h"
#include "cpu/data/weights.h"
#include "cpu/kernels/kernels.h"
#include "host/memory.h"
#include "host/pool.h"
#include "math/hash.h"
#include "math/real.h"

namespace sapwood {
namespace {

struct Place {          // a row of the sample
  int chunk;            // its chunk,
  int64_t row;          // its place in the chunk,
  int64_t process_row;  // and in the arrays by row of this process
};

// This process's rows of the sample in their order: all of positive weight, or of these the
// `max_rows` with the smallest draws over all holders. Among equal draws, lower positions come
// first.
std::vector<Place> sample_rows(const std::vector<Chunk>& chunks, const RowWeights& weights,
                               int64_t max_rows, int n_threads, const Reduce* reduce,
                               const std::vector<int64_t>& positions) {
  struct Part {  // rows begin .. end - 1 of a chunk
    int chunk;
    // the chunk's first row, in the arrays of this process and globally
    int64_t begin, end, first, position;
    std::vector<Drawn> drawn;
  };
  std::vector<Part> parts;
  int64_t n = 0;
  int64_t live = 0;
  for (int c = 0; c < (int)chunks.size(); n += chunks[c++].n_rows) {
    for (int64_t at = 0; at < chunks[c].n_rows; at += TASK_ROWS) {
      parts.push_back({c,
                       at,
                       std::min(chunks[c].n_rows, at + TASK_ROWS),
                       n,
                       positions.empty() ? n : positions[c],
                       {}});
    }
  }
  for (int64_t i = 0; i < n; i++) {
    live += weights.of(i) > 0;
  }
  std::vector<Place> places;
  places.reserve(std::min(live, max_rows));
  reduce_sum(reduce, &live, 1);
  if (live <= max_rows) {
    for (const Part& p : parts) {
      for (int64_t i = p.begin; i < p.end; i++) {
        if (weights.of(p.first + i) > 0) {
          places.push_back({p.chunk, i, p.first + i});
        }
      }
    }
    return places;
  }
  const uint64_t k = key(0, CUTS, 0, 0);
  std::vector<Drawn> near;  // of all holders: among them is the largest draw of the sample
  int64_t n_below = 0;      // rows whose draws are below them
  auto draw_up_to = [&](uint64_t floor, uint64_t ceiling) {
    run(threads_for(n, n_threads), (int64_t)parts.size(), [&](int64_t t, int) {
      Part& p = parts[t];
      p.drawn.clear();
      for (int64_t i = p.begin; i < p.end; i++) {
        if (const uint64_t d = draw(k, (uint64_t)(p.position + i));
            d <= ceiling && weights.of(p.first + i) > 0) {
          p.drawn.push_back({d, p.position + i});
        }
      }
    });
    near.clear();
    n_below = 0;
    for (const Part& p : parts) {
      for (const Drawn& d : p.drawn) {
        if (d.draw < floor) {
          n_below++;
        } else {
          near.push_back(d);
        }
      }
    }
    near = gather_all(reduce, std::move(near));
    reduce_sum(reduce, &n_below, 1);
  };
  const double guess = (double)max_rows / (double)live * 0x1p64;  // of the largest draw
  draw_up_to((uint64_t)(0.95 * guess), 1.1 * guess < 0x1p64 ? (uint64_t)(1.1 * guess) : ~0ull);
  if (n_below >= max_rows || n_below + (int64_t)near.size() < max_rows) {
    draw_up_to(0, ~0ull);
  }
  const auto last = near.begin() + (max_rows - n_below - 1);
  std::nth_element(near.begin(), last, near.end());
  for (const Part& p : parts) {
    for (const Drawn& d : p.drawn) {
      if (!(*last < d)) {
        places.push_back({p.chunk, d.position - p.position, p.first + d.position - p.position});
      }
    }
  }
  return places;
}

struct ColumnSketch {
  const std::vector<Chunk>& chunks;
  const RowWeights& weights;
  const std::vector<int64_t>& live;  // by chunk: rows of positive weight
  int max_bins;

  // The keys of all distinct values, rising; false: there are more than max_bins.
  bool few(int column, std::vector<uint64_t>& keys) const {
    KeySet seen(max_bins);
    double block[BLOCK];
    int64_t first = 0;
    uint64_t last = 0;
    auto add = [&](double x) {
      const uint64_t v = ordered(x);
      if (v == last) {
        return true;
      }
      last = v;
      return seen.add(v) >= 0;
    };
    for (size_t k = 0; k < chunks.size(); first += chunks[k++].n_rows) {
      const Chunk& chunk = chunks[k];
      if (chunk.columns[column].sparse()) {
        if (!few_stored(chunk.columns[column], first, live[k], add)) {
          return false;
        }
        continue;
      }
      int64_t row = first;
      for (int64_t at = 0; at < chunk.n_rows; at += BLOCK) {
        const int n = (int)std::min<int64_t>(BLOCK, chunk.n_rows - at);
        load(chunk.columns[column], at, n, block);
        for (int i = 0; i < n; i++, row++) {
          if (is_value(block[i]) && weights.of(row) > 0 && !add(block[i])) {
            return false;
          }
        }
      }
    }
    keys = seen.keys();
    std::sort(keys.begin(), keys.end());
    return true;
  }

  template <class Add>
  bool few_stored(const Column& column, int64_t first, int64_t n_live, Add&& add) const {
    bool fits = true;
    each_block(column, [&](const int32_t* rows, const double* x, int n) {
      for (int i = 0; i < n && fits; i++) {
        if (weights.of(first + rows[i]) == 0) {
          continue;
        }
        n_live--;
        fits = !is_value(x[i]) || add(x[i]);
      }
    });
    return fits && (n_live == 0 || !is_value(column.fill_value) || add(column.fill_value));
  }
};

bool some_sparse(const std::vector<Chunk>& chunks, int column) {
  return std::any_of(chunks.begin(), chunks.end(), [&](const Chunk& c) {
    return c.columns[column].sparse();
  });
}

bool is_single(const std::vector<Chunk>& chunks, int column) {  // float32 holds every value
  return std::all_of(chunks.begin(), chunks.end(), [&](const Chunk& chunk) {
    const DType k = chunk.columns[column].kind;
    return k == DType::f32 || k == DType::i8 || k == DType::u8 || k == DType::i16 ||
           k == DType::u16;
  });
}

// of one worker: a list of keys for each of its columns, and one more for sorting
struct Lanes {
  Memory keys, weights;  // (columns + 1, places + 1)
};

template <class Key, class Weight>
struct SampleValues {  // the values of a column in the rows of the sample, in any order
  std::vector<Key> keys;
  // of a key, which may stand for several rows; none: every key counts once
  std::vector<Weight> weights;
  int64_t n_rows = 0;
};
using StoredValues = SampleValues<uint64_t, int64_t>;

struct SampleIndex {              // the places of a sample by chunk and by row
  std::vector<uint64_t> sampled;  // a bit a row
  std::vector<size_t> begin;      // (chunks + 1) first place of each
  std::vector<int64_t> weight;    // (chunks) of its places
  SampleIndex(const std::vector<Chunk>& chunks, const RowWeights& weights,
              const std::vector<Place>& places)
      : sampled((size_t)n_rows_of(chunks) / 64 + 1, 0),
        begin(chunks.size() + 1, 0),
        weight(chunks.size(), 0) {
    for (const Place& p : places) {
      sampled[p.process_row >> 6] |= 1ull << (p.process_row & 63);
      begin[p.chunk + 1]++;
      weight[p.chunk] += weights.of(p.process_row);
    }
    for (size_t k = 0; k < chunks.size(); k++) {
      begin[k + 1] += begin[k];
    }
  }
  bool has(int64_t row) const { return sampled[row >> 6] >> (row & 63) & 1; }
};

struct Quantiles {
  const std::vector<Chunk>& chunks;
  const RowWeights& weights;
  const std::vector<Place>& places;
  BinBudget budget;
  int n_threads;

  // Sparse columns: the rows of the sample that are not stored are counted, not visited.
  void find_stored(const std::vector<int>& columns, std::vector<std::vector<double>>& cuts) const {
    if (columns.empty()) {
      return;
    }
    const SampleIndex index(chunks, weights, places);
    run(n_threads, (int64_t)columns.size(), [&](int64_t j, int) {
      StoredValues values = collect(columns[j], index);
      cuts[columns[j]] = cut_list(values);
    });
  }

  StoredValues collect(int c, const SampleIndex& index) const {
    StoredValues values;
    int64_t first = 0;
    auto add = [&](double x, int64_t w, int64_t rows) {
      if (is_value(x)) {
        values.keys.push_back(ordered(x));
        values.weights.push_back(w);
        values.n_rows += rows;
      }
    };
    for (size_t k = 0; k < chunks.size(); first += chunks[k++].n_rows) {
      const Column& column = chunks[k].columns[c];
      int64_t rows_left = (int64_t)(index.begin[k + 1] - index.begin[k]);
      int64_t weight_left = index.weight[k];
      if (column.sparse()) {
        each_block(column, [&](const int32_t* rows, const double* x, int m) {
          for (int i = 0; i < m; i++) {
            const int64_t row = first + rows[i];
            const int64_t w = weights.of(row);
            if (!index.has(row)) {
              continue;
            }
            rows_left--;
            weight_left -= w;
            add(x[i], w, 1);
          }
        });
      } else {
        for (size_t i = index.begin[k]; i < index.begin[k + 1]; i++) {
          double x;
          load(column, places[i].row, 1, &x);
          add(x, weights.of(places[i].process_row), 1);
          rows_left = 0;
        }
      }
      if (rows_left > 0) {
        add(column.fill_value, weight_left, rows_left);
      }
    }
    return values;
  }

  template <class Key, class Weight>
  std::vector<double> cut_list(SampleValues<Key, Weight>& values) const {
    const size_t n = values.keys.size();
    std::vector<Key> keys(n);
    std::vector<Weight> heavy(values.weights.size());
    const bool light = values.weights.empty();
    const Sorted<Key, Weight> mine{values.keys.data(), light ? nullptr : values.weights.data()};
    const Sorted<Key, Weight> spare{keys.data(), light ? nullptr : heavy.data()};
    return budget.cut(radix_sort(mine, spare, n), n, values.n_rows, weights.integral);
  }

  // Calls f(values from column `first` on (columns, STRIPE_ROWS), place, n) for all places, where
  // columns first .. last are side by side in float32; else returns false.
  template <class Real, class F>
  bool by_sixteen(int first, int last, F&& f) const {
    std::vector<int> at;
    for (const Chunk& chunk : chunks) {
      at.push_back(row_major_run(chunk, first, last));
    }
    if (sizeof(Real) == 8 || std::any_of(at.begin(), at.end(), [&](int a) {
          return a < 0;
        })) {
      return false;
    }
    float x[RUN * STRIPE_ROWS];
    const char* rows[STRIPE_ROWS];
    const char* next[STRIPE_ROWS];
    auto find = [&](size_t i, const char** to) {
      const int n = (int)std::min<size_t>(STRIPE_ROWS, places.size() - std::min(i, places.size()));
      for (int j = 0; j < n; j++) {
        const Place& p = places[i + j];
        const Column& head = chunks[p.chunk].columns[at[p.chunk]];
        to[j] = head.data + p.row * head.stride;
        __builtin_prefetch(to[j]);
        __builtin_prefetch(to[j] + 4 * RUN - 1);
      }
      return n;
    };
    for (size_t i = 0, n = find(0, next); n > 0; i += STRIPE_ROWS) {
      const int here = (int)n;
      std::copy(next, next + here, rows);
      n = find(i + STRIPE_ROWS, next);
      kernels().transpose16(rows, here, x, STRIPE_ROWS);
      f(x + (first - at[0]) * STRIPE_ROWS, i, here);
    }
    return true;
  }

  template <class Real, class Key>
  void find(const std::vector<int>& columns, std::vector<std::vector<double>>& cuts) const {
    each_list<Real, Key>(columns, [&](size_t k, const Sorted<Key>& list, const Sorted<Key>& spare,
                                      size_t n) {
      cuts[columns[k]] = budget.cut(radix_sort(list, spare, n), n, (int64_t)n, weights.integral);
    });
  }

  // f(k, values of the k-th column, room for as many, how many) from any worker. Columns are
  // gathered several at a time: a line of a row-major table is visited once for all of them.
  template <class Real, class Key, class F>
  void each_list(const std::vector<int>& columns, F&& f) const {
    const size_t n_columns = columns.size();
    const size_t most = 64 / sizeof(Real);
    const size_t m = places.size();
    const size_t together = std::min(most, (n_columns + n_threads - 1) / n_threads);
    if (n_columns == 0) {
      return;
    }
    std::vector<Lanes> local(n_threads);
    run(n_threads, (int64_t)((n_columns + together - 1) / together),
        [&](int64_t batch, int worker) {
          Lanes& mine = local[worker];
          if (mine.keys.size() == 0) {
            mine.keys = Memory((together + 1) * (m + 1) * sizeof(Key));
          }
          if (weights.given && mine.weights.size() == 0) {
            mine.weights = Memory((together + 1) * (m + 1) * 4);
          }
          const size_t first = batch * together;
          const size_t last = std::min(n_columns, first + together);
          auto lane = [&](size_t k) {
            const size_t at = k * (m + 1);  // one more: what is missing is written, and overwritten
            return Sorted<Key>{mine.keys.as<Key>() + at,
                               weights.given ? mine.weights.as<int32_t>() + at : nullptr};
          };
          std::vector<size_t> filled(together, 0);
          auto add = [&](size_t k, const auto* x, size_t i,
                         int n) {  // to the k-th column, of n places
            const Sorted<Key> to = lane(k);
            size_t at = filled[k];
            for (int j = 0; j < n; j++) {
              to.keys[at] = ordered((Real)x[j]);
              if (weights.given) {
                to.weights[at] = weights.repeats[places[i + j].process_row];
              }
              at += is_value(x[j]);
            }
            filled[k] = at;
          };
          if (!by_sixteen<Real>(
                  columns[first], columns[last - 1], [&](const float* x, size_t i, int n) {
                    for (size_t k = first; k < last; k++) {
                      add(k - first, x + (columns[k] - columns[first]) * STRIPE_ROWS, i, n);
                    }
                  })) {
            for (size_t i = 0; i < m; i++) {
              const Place& p = places[i];
              const Place& later = places[std::min(i + 16, m - 1)];
              for (size_t k = first; k < last; k++) {
                const Column& column = chunks[p.chunk].columns[columns[k]];
                const Column& next = chunks[later.chunk].columns[columns[k]];
                __builtin_prefetch(next.data + later.row * next.stride);
                double x;
                load(column, p.row, 1, &x);
                add(k - first, &x, i, 1);
              }
            }
          }
          for (size_t k = first; k < last; k++) {
            f(k, lane(k - first), lane(together), filled[k - first]);
          }
        });
  }
};

// Columns whose rows are dealt: each holder finds the cuts of every size-th column, from the values
// that all send to it.
class DealtQuantiles {
 public:
  DealtQuantiles(const Quantiles& quantiles, const Reduce& reduce)
      : q_(quantiles), reduce_(reduce) {}

  template <class Real, class Key>
  void find(const std::vector<int>& columns) {
    by_batch<Key, int32_t>(columns, [&](const std::vector<int>& batch, auto& values) {
      q_.each_list<Real, Key>(batch,
                              [&](size_t k, const Sorted<Key>& list, const Sorted<Key>&, size_t n) {
                                values[k].keys.assign(list.keys, list.keys + n);
                                values[k].n_rows = (int64_t)n;
                                if (list.weights != nullptr) {
                                  values[k].weights.assign(list.weights, list.weights + n);
                                }
                              });
    });
  }
  void find_stored(const std::vector<int>& columns) {
    if (columns.empty()) {
      return;
    }
    const SampleIndex index(q_.chunks, q_.weights, q_.places);
    by_batch<uint64_t, int64_t>(columns, [&](const std::vector<int>& batch, auto& values) {
      run(q_.n_threads, (int64_t)batch.size(), [&](int64_t k, int) {
        values[k] = q_.collect(batch[k], index);
      });
    });
  }
  void tell(std::vector<std::vector<double>>& cuts) {  // all holders the cuts of all columns
    for (const Found& f : gather_all(&reduce_, std::move(found_))) {
      cuts[f.column].push_back(f.cut);
    }
  }

 private:
  struct Found {
    int64_t column;
    double cut;
  };

  template <class Key, class Weight, class Fill>
  void by_batch(const std::vector<int>& columns, Fill&& fill) {
    const size_t n_holders = reduce_.size();
    const size_t step = 16 * n_holders;  // columns whose values are in memory at a time
    for (size_t at = 0; at < columns.size(); at += step) {
      const std::vector<int> batch(columns.begin() + at,
                                   columns.begin() + std::min(columns.size(), at + step));
      std::vector<SampleValues<Key, Weight>> values(batch.size());
      fill(batch, values);
      std::vector<std::string> parts(n_holders);
      for (size_t k = 0; k < batch.size(); k++) {
        append(values[k], parts[k % n_holders]);
        values[k] = {};
      }
      const std::vector<std::string> all = reduce_.exchange(parts);
      std::vector<size_t> own;
      std::vector<size_t> place(n_holders, 0);
      for (size_t k = reduce_.rank(); k < batch.size(); k += n_holders) {
        for (size_t holder = 0; holder < n_holders; holder++) {
          take(all[holder], place[holder], values[k]);
        }
        own.push_back(k);
      }
      std::vector<std::vector<double>> cuts(own.size());
      run(q_.n_threads, (int64_t)own.size(), [&](int64_t i, int) {
        cuts[i] = q_.cut_list(values[own[i]]);
      });
      for (size_t i = 0; i < own.size(); i++) {
        for (const double cut : cuts[i]) {
          found_.push_back({batch[own[i]], cut});
        }
      }
    }
  }

  // The numbers of keys, weights and rows; then the keys, and the weights.
  template <class Key, class Weight>
  static void append(const SampleValues<Key, Weight>& values, std::string& to) {
    const int64_t n[3] = {(int64_t)values.keys.size(), (int64_t)values.weights.size(),
                          values.n_rows};
    to.append((const char*)n, sizeof n);
    to.append((const char*)values.keys.data(), values.keys.size() * sizeof(Key));
    to.append((const char*)values.weights.data(), values.weights.size() * sizeof(Weight));
  }
  template <class Key, class Weight>
  static void take(const std::string& from, size_t& at, SampleValues<Key, Weight>& to) {
    int64_t n[3] = {0, 0, 0};
    read(from, at, n, 3);
    const size_t keys = to.keys.size();
    const size_t weights = to.weights.size();
    const size_t left = from.size() - at;
    if (n[0] < 0 || n[1] < 0 || (uint64_t)n[0] > left / sizeof(Key) ||
        (uint64_t)n[1] > left / sizeof(Weight)) {
      throw std::runtime_error("a holder of rows sent a list of values that is too short");
    }
    to.keys.resize(keys + (size_t)n[0]);
    to.weights.resize(weights + (size_t)n[1]);
    to.n_rows += n[2];
    read(from, at, to.keys.data() + keys, (size_t)n[0]);
    read(from, at, to.weights.data() + weights, (size_t)n[1]);
  }
  template <class T>
  static void read(const std::string& from, size_t& at, T* to, size_t n) {
    if (n * sizeof(T) > from.size() - at) {
      throw std::runtime_error("a holder of rows sent a list of values that is too short");
    }
    if (n > 0) {
      memcpy(to, from.data() + at, n * sizeof(T));
    }
    at += n * sizeof(T);
  }

  const Quantiles& q_;
  const Reduce& reduce_;
  std::vector<Found> found_;  // by this holder
};

// The keys of columns that have few distinct values become those of all holders; columns that have
// too many are marked.
void merge_keys(std::vector<std::vector<uint64_t>>& keys, std::vector<uint8_t>& many, int max_bins,
                const Reduce& reduce) {
  struct Found {
    uint64_t column, key;
  };
  std::vector<uint64_t> flags(many.begin(), many.end());
  reduce_max(&reduce, flags.data(), flags.size());
  std::vector<Found> found;
  for (size_t c = 0; c < many.size(); c++) {
    for (const uint64_t k : keys[c]) {
      if (!flags[c]) {
        found.push_back({c, k});
      }
    }
    keys[c].clear();
  }
  for (const Found& f : gather_all(&reduce, std::move(found))) {
    keys[f.column].push_back(f.key);
  }
  for (size_t c = 0; c < many.size(); c++) {
    std::sort(keys[c].begin(), keys[c].end());
    keys[c].erase(std::unique(keys[c].begin(), keys[c].end()), keys[c].end());
    many[c] = flags[c] != 0 || (int)keys[c].size() > max_bins;
  }
}

}  // namespace

std::vector<std::vector<double>> find_cuts(const std::vector<Chunk>& chunks, const double* weight,
                                           int max_bins, int min_samples_bin, int n_threads,
                                           const Reduce* reduce,
                                           const std::vector<int64_t>& positions) {
  const int64_t n = n_rows_of(chunks);
  const RowWeights weights(weight, n, reduce);
  const int n_columns = (int)chunks[0].columns.size();
  std::vector<std::vector<double>> cuts(n_columns);
  std::vector<std::vector<uint64_t>> keys(n_columns);
  std::vector<uint8_t> many(n_columns);
  // then nothing is gained by giving up on a column early
  const bool every = max_bins == EVERY_VALUE;
  std::vector<int64_t> live;
  for (int64_t first = 0; const Chunk& chunk : chunks) {
    live.push_back(chunk.n_rows);
    for (int64_t i = first; weights.given && i < first + chunk.n_rows; i++) {
      live.back() -= weights.of(i) == 0;
    }
    first += chunk.n_rows;
  }
  const ColumnSketch sketch{chunks, weights, live, max_bins};
  run(n_threads, n_columns, [&](int64_t c, int) {
    many[c] = every || !sketch.few((int)c, keys[c]);
  });
  if (reduce != nullptr) {
    merge_keys(keys, many, max_bins, *reduce);
  }
  // of the values on any holder: 0 float32, 1 float64, 2 sparse
  std::vector<uint64_t> kinds(n_columns);
  for (int c = 0; c < n_columns; c++) {
    kinds[c] = some_sparse(chunks, c) ? 2 : is_single(chunks, c) ? 0 : 1;
  }
  reduce_max(reduce, kinds.data(), kinds.size());
  std::vector<int> of_kind[3];
  for (int c = 0; c < n_columns; c++) {
    if (!many[c]) {
      cuts[c] = between(keys[c]);
    } else {
      of_kind[kinds[c]].push_back(c);
    }
  }
  const auto& [singles, doubles, stored] = of_kind;
  if (singles.empty() && doubles.empty() && stored.empty()) {
    return cuts;
  }
  const int64_t max_rows = every ? n : SAMPLE_ROWS;
  const std::vector<Place> places =
      sample_rows(chunks, weights, max_rows, n_threads, reduce, positions);
  const Quantiles quantiles{chunks, weights, places, {max_bins, min_samples_bin}, n_threads};
  if (reduce == nullptr) {
    quantiles.find<float, uint32_t>(singles, cuts);
    quantiles.find<double, uint64_t>(doubles, cuts);
    quantiles.find_stored(stored, cuts);
    return cuts;
  }
  DealtQuantiles dealt(quantiles, *reduce);
  dealt.find<float, uint32_t>(singles);
  dealt.find<double, uint64_t>(doubles);
  dealt.find_stored(stored);
  dealt.tell(cuts);
  return cuts;
}

}  // namespace sapwood
