// What travels between holders of rows: integers in as few bytes as hold them, and a checksum over
// bytes.
#pragma once
#include <stddef.h>
#include <string.h>

#include "math/hash.h"

namespace sapwood {

// Four lanes of 8 bytes each, so that the processor multiplies four times at once. Every step can
// be undone, so that a change within one word of 8 bytes never stays unnoticed. It is no protection
// against those who want to deceive.
inline uint64_t checksum(const char* x, size_t n) {
  uint64_t lane[4] = {1, 2, 3, 4};
  auto add = [&](const char* block) {
    uint64_t word[4];
    memcpy(word, block, 32);
    for (int k = 0; k < 4; k++) {
      lane[k] = (lane[k] ^ word[k]) * 0x9E3779B97F4A7C15u;
      lane[k] ^= lane[k] >> 32;
    }
  };
  const size_t whole = n / 32 * 32;
  for (size_t at = 0; at < whole; at += 32) {
    add(x + at);
  }
  if (char rest[32] = {}; whole < n) {
    memcpy(rest, x + whole, n - whole);
    add(rest);
  }
  uint64_t all = n;
  for (const uint64_t one : lane) {
    all = fold(all, one);
  }
  return all;
}

// What follows the magic and the verb in the head of a message (holders/messages.py): width, call,
// length, checksum.
constexpr size_t MESSAGE_HEAD = 1 + 4 + 8 + 8;
inline void write_head(int width, uint32_t call, uint64_t length, uint64_t checksum, char* to) {
  auto little = [&](uint64_t x, int n) {
    for (int k = 0; k < n; k++) {
      *to++ = (char)(x >> (8 * k));
    }
  };
  little((uint64_t)width, 1);
  little(call, 4);
  little(length, 8);
  little(checksum, 8);
}

// 1, 2, 4 or 8: as many as hold every one of them
inline int bytes_of_each(const int64_t* x, size_t n) {
  uint64_t bits = 0;
  for (size_t i = 0; i < n; i++) {
    bits |= (uint64_t)(x[i] ^ (x[i] >> 63));
  }
  return bits < 1u << 7 ? 1 : bits < 1u << 15 ? 2 : bits < 1u << 31 ? 4 : 8;
}

inline void narrow(const int64_t* x, size_t n, int width, char* out) {  // out (n * width) OUT
  auto all = [&](auto zero) {
    for (size_t i = 0; i < n; i++) {
      const auto one = (decltype(zero))x[i];
      memcpy(out + i * sizeof zero, &one, sizeof zero);
    }
  };
  if (width == 1) {
    all((int8_t)0);
  } else if (width == 2) {
    all((int16_t)0);
  } else if (width == 4) {
    all((int32_t)0);
  } else {
    all((int64_t)0);
  }
}

// Adds n integers of `width` bytes each. x (n) IN OUT
inline void add_narrow(const char* from, int width, size_t n, int64_t* x) {
  auto all = [&](auto zero) {
    for (size_t i = 0; i < n; i++) {
      auto one = zero;
      memcpy(&one, from + i * sizeof zero, sizeof zero);
      x[i] = (int64_t)((uint64_t)x[i] + (uint64_t)(int64_t)one);
    }
  };
  if (width == 1) {
    all((int8_t)0);
  } else if (width == 2) {
    all((int16_t)0);
  } else if (width == 4) {
    all((int32_t)0);
  } else {
    all((int64_t)0);
  }
}

}  // namespace sapwood
