// Distinct values of a column: the set that finds them, the sorted values, and each row's place
// among them.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "host/memory.h"
#include "math/hash.h"

namespace sapwood {

class KeySet {  // 64-bit keys, numbered in the order of their first occurrence; open addressing
 public:
  explicit KeySet(size_t limit) : limit_(limit) { resize(1024); }
  int32_t add(uint64_t key) {  // the number of the key; -1: there are more than `limit` keys
    size_t at = mix(key) & mask_;
    for (; slot_[at] != 0; at = (at + 1) & mask_) {
      if (slot_[at] == key) {
        return number_[at];
      }
    }
    return key == 0 && zero_ >= 0 ? zero_ : insert(key, at);
  }
  const std::vector<uint64_t>& keys() const { return keys_; }

 private:
  // out of the way of `add`: 10 % of `distinct`
  [[gnu::noinline]] int32_t insert(uint64_t key, size_t at) {
    const int32_t number = (int32_t)keys_.size();
    if (keys_.size() == limit_) {
      return -1;
    }
    keys_.push_back(key);
    if (key == 0) {
      return zero_ = number;
    }
    slot_[at] = key;
    number_[at] = number;
    if (4 * keys_.size() > mask_) {
      resize(4 * slot_.size());
    }
    return number;
  }
  void resize(size_t n) {
    slot_.assign(n, 0);
    number_.resize(n);
    mask_ = n - 1;
    for (size_t k = 0; k < keys_.size(); k++) {
      if (keys_[k] == 0) {
        continue;
      }
      size_t at = mix(keys_[k]) & mask_;
      while (slot_[at] != 0) {
        at = (at + 1) & mask_;
      }
      slot_[at] = keys_[k];
      number_[at] = (int32_t)k;
    }
  }
  size_t limit_, mask_;
  std::vector<uint64_t> slot_, keys_;  // (slots) the key that is in it, 0: none; (keys)
  std::vector<int32_t> number_;        // (slots)
  int32_t zero_ = -1;                  // the number of key 0, which has no slot
};

template <class T>
struct Distinct {
  std::vector<T> values;  // rising
  // (n) the place of each row's value, where there are at most 256 values
  std::vector<uint8_t> narrow;
  std::vector<int32_t> wide;  // (n) else
};

// Most labels have two classes, or few: every row is compared with all of them, without branches,
// in vectors.
// Nothing where the first rows do not show all values.
template <class T>
std::optional<Distinct<T>> few_values(const T* x, int64_t n) {
  constexpr size_t MAX_VALUES = 4;
  constexpr int64_t BLOCK_ROWS = 1024;
  std::vector<T> found;
  for (int64_t i = 0; i < std::min(n, BLOCK_ROWS); i++) {
    if (std::find(found.begin(), found.end(), x[i]) == found.end()) {
      if (found.size() == MAX_VALUES || x[i] != x[i]) {
        return {};
      }
      found.push_back(x[i] == T(0) ? T(0) : x[i]);
    }
  }
  if (found.empty()) {
    return {};
  }
  std::sort(found.begin(), found.end());
  T value[MAX_VALUES];
  for (size_t k = 0; k < MAX_VALUES; k++) {
    value[k] = found[std::min(k, found.size() - 1)];
  }
  std::vector<uint8_t> place(n);
  for (int64_t first = 0; first < n; first += BLOCK_ROWS) {
    int wrong = 0;
    for (int64_t i = first; i < std::min(n, first + BLOCK_ROWS); i++) {
      const T v = x[i];
      const int one = v > value[0];
      const int two = v > value[1];
      const int three = v > value[2];
      wrong |= !((v == value[0]) | (v == value[1]) | (v == value[2]) | (v == value[3]));
      place[i] = (uint8_t)(one + two + three);
    }
    if (wrong != 0) {
      return {};
    }
  }
  return {{std::move(found), std::move(place), {}}};
}

// x: n values, `stride` values apart. Nothing where there are more than `limit` distinct values, or
// a NaN.
template <class T>
std::optional<Distinct<T>> distinct(const T* x, int64_t n, int64_t stride, size_t limit) {
  if (stride == 1 && limit >= 4) {
    if (auto few = few_values(x, n)) {
      return few;
    }
  }
  KeySet set(limit);
  std::vector<T> found;
  const Memory memory((size_t)n * 4);
  int32_t* number = memory.as<int32_t>();
  int32_t last_number = -1;
  T last{};
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i * stride] == T(0) ? T(0) : x[i * stride];  // one zero
    if (v != v) {
      return {};
    }
    if (last_number < 0 || v != last) {
      uint64_t bits = 0;
      __builtin_memcpy(&bits, &v, sizeof v);
      last = v;
      last_number = set.add(bits);
      if (last_number < 0) {
        return {};
      }
      if ((size_t)last_number == found.size()) {
        found.push_back(v);
      }
    }
    number[i] = last_number;
  }
  std::vector<int32_t> order(found.size());
  std::vector<int32_t> rank(found.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t p, int32_t q) {
    return found[p] < found[q];
  });
  Distinct<T> out;
  for (size_t k = 0; k < order.size(); k++) {
    rank[order[k]] = (int32_t)k;
    out.values.push_back(found[order[k]]);
  }
  auto fill = [&](auto& places) {
    places.resize(n);
    for (int64_t i = 0; i < n; i++) {
      places[i] = (std::decay_t<decltype(places[0])>)rank[number[i]];
    }
  };
  if (rank.size() <= 256) {
    fill(out.narrow);
  } else {
    fill(out.wide);
  }
  return out;
}

}  // namespace sapwood
