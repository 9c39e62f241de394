// Distinct values of a column: the set that finds them, and the values sorted, with the place of every row's value among them.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <optional>
#include <vector>

#include "math/hash.h"

namespace sapwood {

class KeySet {  // 64-bit keys, numbered in the order of their first occurrence; open addressing
 public:
  explicit KeySet(size_t limit) : limit_(limit), slots_(64) {}
  int32_t add(uint64_t key) {  // the number of the key; -1: there are more than `limit` keys
    size_t at = mix(key) & (slots_.size() - 1);
    while (slots_[at].number >= 0) {
      if (slots_[at].key == key) return slots_[at].number;
      at = (at + 1) & (slots_.size() - 1);
    }
    if (keys_.size() == limit_) return -1;
    slots_[at] = {key, (int32_t)keys_.size()};
    keys_.push_back(key);
    if (4 * keys_.size() > slots_.size()) grow();
    return (int32_t)keys_.size() - 1;
  }
  const std::vector<uint64_t>& keys() const { return keys_; }

 private:
  struct Slot {
    uint64_t key = 0;
    int32_t number = -1;
  };
  void grow() {
    slots_.assign(4 * slots_.size(), {});
    for (size_t k = 0; k < keys_.size(); k++) {
      size_t at = mix(keys_[k]) & (slots_.size() - 1);
      while (slots_[at].number >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {keys_[k], (int32_t)k};
    }
  }
  size_t limit_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> keys_;
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
