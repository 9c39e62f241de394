// Sums of 128 bits, exact: many threads add to parts of 32 bits.
#pragma once
#include "cuda/platform.h"
#include "math/fixed.h"

namespace sapwood {

struct WideSum {  // modulo 2^128
  uint64_t low = 0, high = 0;
  void add(uint64_t x, uint64_t times) {
    const uint64_t product = x * times;
    const uint64_t before = low;
    low += product;
    high += multiply_high(x, times) + (low < before);
  }
  void add_signed(int64_t x, int64_t times) {
    add((uint64_t)x, (uint64_t)times);
    high -= (x < 0 ? (uint64_t)times : 0) + (times < 0 ? (uint64_t)x : 0);
  }
  // parts (4) IN OUT. All lanes of a warp.
  void add_to_parts(int64_t* parts) const {
    for (int i = 0; i < 4; i++) {
      const int64_t part = warp_sum((int64_t)((i < 2 ? low : high) >> 32 * (i % 2) & 0xffffffffu));
      if (threadIdx.x % LANES == 0 && part != 0) {
        add_to(parts + i, part);
      }
    }
  }
};

// A sum in four parts of 32 bits.
inline WideSum whole(const int64_t* part) {
  WideSum sum;
  uint64_t carry = 0;
  for (int i = 0; i < 4; i++) {
    const uint64_t x = (uint64_t)part[i] + carry;
    (i < 2 ? sum.low : sum.high) |= (x & 0xffffffffu) << 32 * (i % 2);
    carry = x >> 32;
  }
  return sum;
}

// The nearest float64.
inline double nearest(WideSum sum) {
  uint64_t low = sum.low;
  uint64_t high = sum.high;
  if (high == 0) {
    return (double)low;
  }
  int shift = 0;  // the first bit of the sum becomes that of `high`
  for (; !(high >> 63); shift++) {
    high = high << 1 | low >> 63;
    low <<= 1;
  }
  // the last bit stands for all that are cut off
  return (double)(high | (low != 0)) * power_of_two(64 - shift);
}
inline double nearest(const int64_t* part) {
  return nearest(whole(part));
}

// The same of a sum that may be negative.
inline double nearest_signed(const int64_t* part) {
  const WideSum sum = whole(part);
  if (!(sum.high >> 63)) {
    return nearest(sum);
  }
  return -nearest(WideSum{0 - sum.low, ~sum.high + (sum.low == 0)});
}

}  // namespace sapwood
