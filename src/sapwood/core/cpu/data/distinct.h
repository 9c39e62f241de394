// Distinct values of a column: the set that finds them, the sorted values, and each row's place among them.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <optional>
#include <vector>

#include "math/hash.h"

namespace sapwood {

class KeySet {  // 64-bit keys, numbered in the order of their first occurrence; open addressing
 public:
  explicit KeySet(size_t limit) : limit_(limit) { resize(1024); }
  int32_t add(uint64_t key) {  // the number of the key; -1: there are more than `limit` keys
    size_t at = mix(key) & mask_;
    for (; slot_[at] != 0; at = (at + 1) & mask_)
      if (slot_[at] == key) return number_[at];
    return key == 0 && zero_ >= 0 ? zero_ : insert(key, at);
  }
  const std::vector<uint64_t>& keys() const { return keys_; }

 private:
  [[gnu::noinline]] int32_t insert(uint64_t key, size_t at) {  // out of the way of `add`: 10 % of `distinct`
    const int32_t number = (int32_t)keys_.size();
    if (keys_.size() == limit_) return -1;
    keys_.push_back(key);
    if (key == 0) return zero_ = number;
    slot_[at] = key, number_[at] = number;
    if (4 * keys_.size() > mask_) resize(4 * slot_.size());
    return number;
  }
  void resize(size_t n) {
    slot_.assign(n, 0), number_.resize(n), mask_ = n - 1;
    for (size_t k = 0; k < keys_.size(); k++) {
      if (keys_[k] == 0) continue;
      size_t at = mix(keys_[k]) & mask_;
      while (slot_[at] != 0) at = (at + 1) & mask_;
      slot_[at] = keys_[k], number_[at] = (int32_t)k;
    }
  }
  size_t limit_, mask_;
  std::vector<uint64_t> slot_, keys_;  // (slots) the key that is in it, 0: none; (keys)
  std::vector<int32_t> number_;        // (slots)
  int32_t zero_ = -1;                  // the number of key 0, which has no slot
};

template <class T>
struct Distinct {
  std::vector<T> values;        // rising
  std::vector<uint8_t> narrow;  // (n) the place of each row's value, where there are at most 256 values
  std::vector<int32_t> wide;    // (n) else
};

// x: n values, `stride` values apart. Nothing where there are more than `limit` distinct values, or a NaN.
template <class T>
std::optional<Distinct<T>> distinct(const T* x, int64_t n, int64_t stride, size_t limit);

}  // namespace sapwood
