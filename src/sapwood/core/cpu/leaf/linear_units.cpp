#include "cpu/leaf/linear_units.h"

#include <algorithm>

#include "host/pool.h"
#include "math/linear.h"

namespace sapwood {
namespace {

// a bound is the mean of the fewest outer bins that have 1 row of so many
constexpr int64_t OUTER = 512;

bool finite(double x) {
  return x - x == 0.0;
}

class Measure {
 public:
  Measure(const RawTable& t, const Binned& b, const RowWeights& w, int n_threads)
      : t_(t), b_(b), w_(w), n_threads_(threads_for(b.n_rows, n_threads)) {}

  // bounds (n_columns, 3) OUT: the first two
  void find_bounds(double* bounds) {
    std::vector<int64_t> first(t_.n_columns + 1, 0);  // where the counts of a column begin
    for (int c = 0; c < t_.n_columns; c++) {
      first[c + 1] = first[c] + (b_.is_category[c] ? 0 : b_.n_bins[c] + 1);
    }
    std::vector<int64_t> count(first.back(), 0);
    each_code([&](int c, int64_t row, uint32_t code) {  // infinite values lie in the outermost bins
      const bool outermost = code == 0 || (int)code == b_.n_bins[c] - 1;
      if (!outermost || finite(value(row, c))) {
        count[first[c] + code] += w_.of(row);
      }
    });
    reduce_sum(b_.reduce.get(), count.data(), count.size());
    std::vector<Outer> outer;
    for (int c = 0; c < t_.n_columns; c++) {
      outer.emplace_back(&count[first[c]], b_.is_category[c] ? 0 : (int64_t)b_.n_bins[c]);
    }
    auto each_outer = [&](auto&& visit) {  // the finite values in outer bins
      each_code([&](int c, int64_t row, uint32_t code) {
        const bool low = (int64_t)code <= outer[c].last;
        const bool high = (int64_t)code >= outer[c].first;
        if ((!low && !high) || (int)code == b_.n_bins[c] || w_.of(row) == 0) {
          return;
        }
        const double x = value(row, c);
        if (low && finite(x)) {
          visit(2 * c, x, w_.of(row));
        }
        if (high && finite(x)) {
          visit(2 * c + 1, x, w_.of(row));
        }
      });
    };
    std::vector<uint64_t> top(2 * t_.n_columns, 0);  // bits of the largest |x|
    each_outer([&](int side, double x, int64_t) {
      top[side] = std::max(top[side], bits_of(x < 0.0 ? -x : x));
    });
    reduce_max(b_.reduce.get(), top.data(), top.size());
    std::vector<__int128> sum(4 * t_.n_columns, 0);  // of values and of counts
    each_outer([&](int side, double x, int64_t n) {
      sum[2 * side] +=
          (__int128)rounded62(x * power_of_two(62 - exponent_of(of_bits(top[side])))) * n;
      sum[2 * side + 1] += n;
    });
    reduce_sum(b_.reduce.get(), sum.data(), sum.size());
    for (int side = 0; side < 2 * t_.n_columns; side++) {
      const double n = (double)sum[2 * side + 1];
      const double scale = power_of_two(exponent_of(of_bits(top[side])) - 62);
      bounds[side / 2 * 3 + side % 2] = n > 0.0 ? (double)sum[2 * side] / n * scale : 0.0;
      if (n == 0.0) {
        outer[side / 2].n = 0;
      }
    }
    for (int c = 0; c < t_.n_columns; c++) {
      if (outer[c].n == 0) {
        bounds[3 * c] = bounds[3 * c + 1] = 0.0;
      }
    }
  }

  // The mean (the third of bounds, where it is not `given`) and the standard deviation of the
  // values between bounds.
  void find_units(double* bounds, bool given, std::vector<double>& unit) {
    std::vector<double> centre(t_.n_columns, 0.0);
    std::vector<double> scale(t_.n_columns, 0.0);
    std::vector<int> exponent(t_.n_columns, 0);
    for (int c = 0; c < t_.n_columns; c++) {
      const double low = bounds[3 * c];
      const double high = bounds[3 * c + 1];
      centre[c] = 0.5 * low + 0.5 * high;
      exponent[c] = exponent_of(std::max(high - centre[c], centre[c] - low));
      scale[c] = low < high ? power_of_two(LINEAR - exponent[c]) : 0.0;
    }
    const int64_t n_tasks = task_count(b_.n_rows);
    const int64_t n_sums = 3 * t_.n_columns;
    std::vector<std::vector<__int128>> parts(n_tasks);
    run(n_threads_, n_tasks, [&](int64_t t, int) {
      std::vector<__int128>& sum = parts[t];
      sum.assign(n_sums, 0);
      for (int64_t i = t * TASK_ROWS; i < std::min(b_.n_rows, (t + 1) * TASK_ROWS); i++) {
        const int64_t count = w_.of(i);
        for (int c = 0; c < t_.n_columns && count > 0; c++) {
          const double x = value(i, c);
          if (x != x || scale[c] == 0.0) {
            continue;
          }
          const int64_t q = rounded((bounded(bounds, c, x) - centre[c]) * scale[c]);
          sum[3 * c] += count;
          sum[3 * c + 1] += (__int128)q * count;
          sum[3 * c + 2] += (__int128)(q * q) * count;
        }
      }
    });
    std::vector<__int128> sums(n_sums, 0);
    for (const auto& part : parts) {
      for (int64_t k = 0; k < n_sums; k++) {
        sums[k] += part[k];
      }
    }
    reduce_sum(b_.reduce.get(), sums.data(), sums.size());
    for (int c = 0; c < t_.n_columns; c++) {
      double* b = bounds + 3 * c;
      const double n = (double)sums[3 * c];
      const double quantum = power_of_two(exponent[c] - LINEAR);
      unit[c] = 0.0;
      if (n > 0.0) {
        const double mean = (double)sums[3 * c + 1] / n;
        const double variance = (double)sums[3 * c + 2] / n - mean * mean;
        if (!given) {
          b[2] = std::min(std::max(centre[c] + mean * quantum, b[0]), b[1]);
        }
        if (variance > 0.0) {
          unit[c] = sqrt(variance) * quantum;
        }
      }
      if (unit[c] == 0.0 && !given) {
        b[0] = b[1] = b[2] = 0.0;
      }
    }
  }

 private:
  struct Outer {  // the bins up to `last`, and from `first` on
    int64_t last = -1, first, n = 0;
    Outer(const int64_t* count, int64_t n_bins) : first(n_bins) {
      for (int64_t k = 0; k < n_bins; k++) {
        n += count[k];
      }
      for (int64_t low = 0; low * OUTER < n;) {
        low += count[++last];
      }
      for (int64_t high = 0; high * OUTER < n;) {
        high += count[--first];
      }
    }
  };

  double value(int64_t row, int c) const {
    const int64_t at = row * t_.n_columns + c;
    return t_.wide ? ((const double*)t_.data)[at] : (double)((const float*)t_.data)[at];
  }
  // of the columns of numbers; one thread sees all rows of a column
  template <class Visit>
  void each_code(Visit&& visit) {
    run(n_threads_, t_.n_columns, [&](int64_t c, int) {
      if (b_.is_category[c]) {
        return;
      }
      std::vector<uint32_t> codes(b_.n_rows);
      b_.codes((int)c, 0, b_.n_rows, codes.data());
      for (int64_t i = 0; i < b_.n_rows; i++) {
        visit((int)c, i, codes[i]);
      }
    });
  }

  const RawTable& t_;
  const Binned& b_;
  const RowWeights& w_;
  int n_threads_;
};

}  // namespace

LinearUnits::LinearUnits(const RawTable& table, const Binned& binned, const RowWeights& weights,
                         const double* given, int n_threads)
    : bounds(3 * (size_t)table.n_columns, 0.0), unit(table.n_columns, 0.0) {
  Measure measure(table, binned, weights, n_threads);
  if (given != nullptr) {
    bounds.assign(given, given + bounds.size());
  } else {
    measure.find_bounds(bounds.data());
  }
  measure.find_units(bounds.data(), given != nullptr, unit);
  std::vector<double> scale;
  for (int c = 0; c < table.n_columns; c++) {
    const double* b = &bounds[3 * c];
    const double far = std::max(b[1] - b[2], b[2] - b[0]);
    if (!finite(far)) {
      unit[c] = 0.0;
    }
    exponent.push_back(exponent_of(unit[c] > 0.0 ? far : 0.0));
    scale.push_back(power_of_two(STANDARD - exponent[c]));
  }
  values = Memory((size_t)binned.n_rows * table.n_columns * sizeof(int16_t));
  run(threads_for(binned.n_rows, n_threads), task_count(binned.n_rows), [&](int64_t t, int) {
    for (int64_t i = t * TASK_ROWS; i < std::min(binned.n_rows, (t + 1) * TASK_ROWS); i++) {
      for (int c = 0; c < table.n_columns; c++) {
        const int64_t at = i * table.n_columns + c;
        const double x =
            table.wide ? ((const double*)table.data)[at] : (double)((const float*)table.data)[at];
        const double q = (bounded(bounds.data(), c, x) - bounds[3 * c + 2]) * scale[c];
        values.as<int16_t>()[at] = unit[c] > 0.0 ? (int16_t)rounded(q) : (int16_t)0;
      }
    }
  });
}

}  // namespace sapwood
