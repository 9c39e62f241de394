#include "cpu/data/cut_sketch.h"

#include "cpu/kernels/kernels.h"
#include "host/pool.h"
#include "math/hash.h"

namespace sapwood {
namespace {
constexpr int64_t PIECE = 1 << 14;  // rows that are added together
constexpr size_t ROOM = SAMPLE_ROWS + 4 * PIECE;
}  // namespace

CutSketch::CutSketch(int n_columns, int max_bins) : max_bins_(max_bins), missing_(n_columns, 0) {
  for (int c = 0; c < n_columns; c++) {
    lanes_.emplace_back(max_bins);
  }
}

// Adds a value to those of a sample; no vector has more room than the sample ever needs.
template <class T>
static void append(std::vector<T>& values, T x) {
  if (values.size() == values.capacity()) {
    values.reserve(std::min(ROOM, std::max<size_t>(1024, 2 * values.size())));
  }
  values.push_back(x);
}

void CutSketch::Lane::push(double x) {
  if (!is_wide && x == x && (double)(float)x != x) {
    is_wide = true;
    wide.reserve(narrow.capacity());
    wide.assign(narrow.begin(), narrow.end());
    narrow = {};
  }
  if (is_wide) {
    append(wide, x);
  } else {
    append(narrow, (float)x);
  }
}

void CutSketch::Lane::keep(const std::vector<uint8_t>& kept) {
  auto only = [&](auto& values) {
    size_t to = 0;
    for (size_t i = 0; i < values.size(); i++) {
      if (kept[i]) {
        values[to++] = values[i];
      }
    }
    values.resize(to);
  };
  only(narrow);
  only(wide);
}

void CutSketch::add(const Chunk& chunk, const double* weight, int n_threads) {
  if (weight != nullptr) {
    weighted_ = true;
    facts_.add(weight, chunk.n_rows);
  }
  for (int64_t at = 0; at < chunk.n_rows; at += PIECE) {
    const int n = (int)std::min(PIECE, chunk.n_rows - at);
    add_piece(chunk, weight == nullptr ? nullptr : weight + at, at, n, n_threads);
    n_rows_ += n;
    if (drawn_.size() + PIECE > ROOM) {
      shrink(n_threads);
    }
  }
}

void CutSketch::add_piece(const Chunk& chunk, const double* weight, int64_t at, int n,
                          int n_threads) {
  const uint64_t k = key(0, CUTS, 0, 0);
  std::vector<int> chosen;
  for (int i = 0; i < n; i++) {
    const uint64_t d = draw(k, (uint64_t)(n_rows_ + i));
    if (d > ceiling_ || (weight != nullptr && !(weight[i] > 0.0))) {
      continue;
    }
    chosen.push_back(i);
    drawn_.push_back({d, n_rows_ + i});
    if (weight != nullptr) {
      weight_.push_back(weight[i]);
    }
  }
  run(n_threads, (int64_t)lanes_.size(), [&](int64_t c, int) {
    Lane& lane = lanes_[c];
    const Column& column = chunk.columns[c];
    size_t next = 0;
    for (int first = 0; first < n; first += BLOCK) {
      double x[BLOCK];
      const int m = std::min(BLOCK, n - first);
      load(column, at + first, m, x);
      int gone = 0;
      for (int i = 0; i < m; i++) {
        gone |= x[i] != x[i];
      }
      missing_[c] |= gone != 0;
      for (int i = 0; i < m && !lane.many; i++) {
        if (!is_value(x[i]) || (weight != nullptr && !(weight[first + i] > 0.0))) {
          continue;
        }
        const uint64_t v = ordered(x[i]);
        if (v != lane.last) {
          lane.many = lane.seen.add(v) < 0;
          lane.last = v;
        }
      }
      for (; next < chosen.size() && chosen[next] < first + m; next++) {
        lane.push(x[chosen[next] - first]);
      }
    }
  });
}

void CutSketch::shrink(int n_threads) {
  if (drawn_.size() <= (size_t)SAMPLE_ROWS) {
    return;
  }
  std::vector<Drawn> order = drawn_;
  const auto last = order.begin() + (SAMPLE_ROWS - 1);
  std::nth_element(order.begin(), last, order.end());
  std::vector<uint8_t> kept(drawn_.size());
  for (size_t i = 0; i < drawn_.size(); i++) {
    kept[i] = !(*last < drawn_[i]);
  }
  ceiling_ = last->draw;
  run(n_threads, (int64_t)lanes_.size(), [&](int64_t c, int) {
    lanes_[c].keep(kept);
  });
  size_t to = 0;
  for (size_t i = 0; i < kept.size(); i++) {
    if (!kept[i]) {
      continue;
    }
    drawn_[to] = drawn_[i];
    if (weighted_) {
      weight_[to] = weight_[i];
    }
    to++;
  }
  drawn_.resize(to);
  weight_.resize(weighted_ ? to : 0);
}

std::vector<std::vector<double>> CutSketch::cuts(int min_samples_bin, int n_threads) {
  shrink(n_threads);
  const bool integral = weighted_ && facts_.is_integral(nullptr);
  const int shift = weighted_ ? facts_.shift(integral) : 0;
  std::vector<int64_t> counts(weight_.size());
  for (size_t i = 0; i < counts.size(); i++) {
    counts[i] = repeats_of(weight_[i], integral, shift);
  }
  std::vector<std::vector<double>> cuts(lanes_.size());
  run(n_threads, (int64_t)lanes_.size(), [&](int64_t c, int) {
    const Lane& lane = lanes_[c];
    if (!lane.many) {
      std::vector<uint64_t> keys = lane.seen.keys();
      std::sort(keys.begin(), keys.end());
      cuts[c] = between(keys);
      return;
    }
    std::vector<uint64_t> keys;
    std::vector<uint64_t> other_keys;
    std::vector<int64_t> own;
    std::vector<int64_t> other;
    for (size_t i = 0; i < drawn_.size(); i++) {
      if (!is_value(lane.at(i))) {
        continue;
      }
      keys.push_back(ordered(lane.at(i)));
      if (weighted_) {
        own.push_back(counts[i]);
      }
    }
    other_keys.resize(keys.size());
    other.resize(own.size());
    const Sorted<uint64_t, int64_t> mine{keys.data(), weighted_ ? own.data() : nullptr};
    const Sorted<uint64_t, int64_t> spare{other_keys.data(), weighted_ ? other.data() : nullptr};
    cuts[c] = BinBudget{max_bins_, min_samples_bin}.cut(
        radix_sort(mine, spare, keys.size()), keys.size(), (int64_t)keys.size(), integral);
  });
  return cuts;
}

}  // namespace sapwood
