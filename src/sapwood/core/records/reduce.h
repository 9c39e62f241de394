// Reduce: where other holders' rows come in. Every sum, maximum and count over rows goes through
// it.
// On one machine it is the identity.
//
//   holder 0: rows 0 .. 4      sums [3, 7]
//   holder 1: rows 5 .. 9      sums [1, 2]      sum: [4, 9] for both, who then take the same decisions
//
// Integer sums and maxima do not depend on the order of the holders, so a model does not depend on
// how rows are dealt.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sapwood {

// All holders call the same methods in the same order, from the thread that runs the training,
// never from a worker of the pool.
class Reduce {
 public:
  virtual ~Reduce() = default;
  virtual void sum(int64_t* x, size_t n) const = 0;   // x (n) IN OUT
  virtual void max(uint64_t* x, size_t n) const = 0;  // x (n) IN OUT
  // The sums of some blocks only, which this holder owns: from the first to before the last that it
  // returns. x IN OUT;
  // ends: where each block ends in it. What becomes of the other blocks is not said.
  virtual std::pair<size_t, size_t> sum_blocks(int64_t* x,
                                               const std::vector<int64_t>& ends) const = 0;
  // what every holder gave, in their order
  virtual std::vector<std::string> gather(const std::string& mine) const = 0;
  // parts (holders): one for each holder. Returns what every holder gave to this one, in their
  // order
  virtual std::vector<std::string> exchange(const std::vector<std::string>& parts) const = 0;
  virtual size_t rank() const = 0;
  virtual size_t size() const = 0;
};

// A null `reduce` means: this process holds all rows.
inline void reduce_sum(const Reduce* reduce, int64_t* x, size_t n) {
  if (reduce != nullptr && n > 0) {
    reduce->sum(x, n);
  }
}
inline void reduce_max(const Reduce* reduce, uint64_t* x, size_t n) {
  if (reduce != nullptr && n > 0) {
    reduce->max(x, n);
  }
}
// 128-bit sums travel as four limbs of 32 bits, which cannot overflow below 2^31 holders.
inline void reduce_sum(const Reduce* reduce, __int128* x, size_t n) {
  if (reduce == nullptr || n == 0) {
    return;
  }
  std::vector<int64_t> limbs(4 * n);
  for (size_t i = 0; i < n; i++) {
    for (int k = 0; k < 4; k++) {
      limbs[4 * i + k] = k < 3 ? (int64_t)((x[i] >> (32 * k)) & 0xffffffff) : (int64_t)(x[i] >> 96);
    }
  }
  reduce->sum(limbs.data(), limbs.size());
  for (size_t i = 0; i < n; i++) {
    x[i] = 0;
    for (int k = 3; k >= 0; k--) {
      x[i] = x[i] * ((__int128)1 << 32) + limbs[4 * i + k];
    }
  }
}
// Maxima and sums, by one call where they are few: every holder gets those of all.
inline void reduce_max_and_sum(const Reduce* reduce, uint64_t* most, size_t n_most, int64_t* sum,
                               size_t n_sums) {
  constexpr size_t FEW = 4096;
  if (reduce == nullptr) {
    return;
  }
  if (reduce->size() * (n_most + n_sums) > FEW) {
    return reduce_max(reduce, most, n_most), reduce_sum(reduce, sum, n_sums);
  }
  std::string mine(8 * (n_most + n_sums), '\0');
  memcpy(mine.data(), most, 8 * n_most);
  memcpy(mine.data() + 8 * n_most, sum, 8 * n_sums);
  const std::vector<std::string> all = reduce->gather(mine);
  for (size_t holder = 0; holder < all.size(); holder++) {
    if (all[holder].size() != mine.size()) {
      throw std::runtime_error("a holder gave other numbers than this one.");
    }
    if (holder == reduce->rank()) {
      continue;
    }
    for (size_t i = 0; i < n_most + n_sums; i++) {
      uint64_t x;
      memcpy(&x, all[holder].data() + 8 * i, 8);
      if (i < n_most) {
        most[i] = most[i] < x ? x : most[i];
      } else {
        sum[i - n_most] = (int64_t)((uint64_t)sum[i - n_most] + x);
      }
    }
  }
}
// What every holder gave, in their order: few bytes. Few holders send them straight to each other.
inline std::vector<std::string> share(const Reduce& reduce, const std::string& mine) {
  constexpr size_t FEW_HOLDERS = 16;
  if (reduce.size() > FEW_HOLDERS) {
    return reduce.gather(mine);
  }
  return reduce.exchange(std::vector<std::string>(reduce.size(), mine));
}
// The lists of all holders, one after the other.
template <class T>
std::vector<T> gather_all(const Reduce* reduce, std::vector<T> mine) {
  if (reduce == nullptr) {
    return mine;
  }
  const auto parts = reduce->gather(
      std::string(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(T)));
  mine.clear();
  for (const std::string& part : parts) {
    const size_t at = mine.size();
    mine.resize(at + part.size() / sizeof(T));
    if (!part.empty()) {
      memcpy(mine.data() + at, part.data(), part.size());
    }
  }
  return mine;
}

}  // namespace sapwood
