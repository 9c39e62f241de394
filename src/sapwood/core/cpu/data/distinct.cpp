#include "cpu/data/distinct.h"

#include <algorithm>
#include <numeric>

#include "host/memory.h"

namespace sapwood {
namespace {

// Most labels have two classes, or few: every row is compared with all of them, without branches, in vectors.
// Nothing where the first rows do not show all values.
template <class T>
std::optional<Distinct<T>> few_values(const T* x, int64_t n) {
  constexpr size_t MAX_VALUES = 4;
  constexpr int64_t BLOCK_ROWS = 1024;
  std::vector<T> found;
  for (int64_t i = 0; i < std::min(n, BLOCK_ROWS); i++)
    if (std::find(found.begin(), found.end(), x[i]) == found.end()) {
      if (found.size() == MAX_VALUES || x[i] != x[i]) return {};
      found.push_back(x[i] == T(0) ? T(0) : x[i]);
    }
  if (found.empty()) return {};
  std::sort(found.begin(), found.end());
  T value[MAX_VALUES];
  for (size_t k = 0; k < MAX_VALUES; k++) value[k] = found[std::min(k, found.size() - 1)];
  std::vector<uint8_t> place(n);
  for (int64_t first = 0; first < n; first += BLOCK_ROWS) {
    int wrong = 0;
    for (int64_t i = first; i < std::min(n, first + BLOCK_ROWS); i++) {
      const T v = x[i];
      const int one = v > value[0], two = v > value[1], three = v > value[2];
      wrong |= !((v == value[0]) | (v == value[1]) | (v == value[2]) | (v == value[3]));
      place[i] = (uint8_t)(one + two + three);
    }
    if (wrong != 0) return {};
  }
  return {{std::move(found), std::move(place), {}}};
}

}  // namespace

template <class T>
std::optional<Distinct<T>> distinct(const T* x, int64_t n, int64_t stride, size_t limit) {
  if (stride == 1 && limit >= 4)
    if (auto few = few_values(x, n)) return few;
  KeySet set(limit);
  std::vector<T> found;
  const Memory memory((size_t)n * 4);
  int32_t *number = memory.as<int32_t>(), last_number = -1;
  T last{};
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i * stride] == T(0) ? T(0) : x[i * stride];  // one zero
    if (v != v) return {};
    if (last_number < 0 || v != last) {
      uint64_t bits = 0;
      __builtin_memcpy(&bits, &v, sizeof v);
      last = v, last_number = set.add(bits);
      if (last_number < 0) return {};
      if ((size_t)last_number == found.size()) found.push_back(v);
    }
    number[i] = last_number;
  }
  std::vector<int32_t> order(found.size()), rank(found.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t p, int32_t q) { return found[p] < found[q]; });
  Distinct<T> out;
  for (size_t k = 0; k < order.size(); k++) rank[order[k]] = (int32_t)k, out.values.push_back(found[order[k]]);
  auto fill = [&](auto& places) {
    places.resize(n);
    for (int64_t i = 0; i < n; i++) places[i] = (std::decay_t<decltype(places[0])>)rank[number[i]];
  };
  if (rank.size() <= 256) fill(out.narrow);
  else fill(out.wide);
  return out;
}

#define SAPWOOD_DISTINCT(T) template std::optional<Distinct<T>> distinct(const T*, int64_t, int64_t, size_t);
SAPWOOD_DISTINCT(float)
SAPWOOD_DISTINCT(double)
SAPWOOD_DISTINCT(int8_t)
SAPWOOD_DISTINCT(int16_t)
SAPWOOD_DISTINCT(int32_t)
SAPWOOD_DISTINCT(int64_t)
SAPWOOD_DISTINCT(uint8_t)
SAPWOOD_DISTINCT(uint16_t)
SAPWOOD_DISTINCT(uint32_t)
SAPWOOD_DISTINCT(uint64_t)
#undef SAPWOOD_DISTINCT

}  // namespace sapwood
