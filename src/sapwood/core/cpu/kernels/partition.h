// Partition: a node's rows, split by one column's codes; row ids and their packed gradients move
// together.
//
//   rows      | r0 r1 r2 r3 r4 r5 ... |       mark: one bit a row (1 = right), and how many
//   bits      |  0  1  0  1  1  0 ... |       the driver turns the counts of all chunks into places
//   left  <-  r0 r2 r5 ...                    move: each chunk writes its two runs there
//   right <-  r1 r3 r4 ...
#pragma once
#include "cpu/kernels/kernels.h"
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sapwood::inline SAPWOOD_ISA {

// 64 byte codes against a split: bit i = codes[i] goes right.
static inline uint64_t compare64(const uint8_t* codes, uint8_t low, uint8_t length) {
#if defined(__AVX512BW__)
  return _mm512_cmplt_epu8_mask(
      _mm512_sub_epi8(_mm512_loadu_si512(codes), _mm512_set1_epi8((char)low)),
      _mm512_set1_epi8((char)length));
#elif defined(__AVX2__)
  const __m256i lo = _mm256_set1_epi8((char)low);
  const __m256i last = _mm256_set1_epi8((char)(length - 1));  // x < length: min(x, length - 1) == x
  auto half = [&](const uint8_t* at) {
    const __m256i x = _mm256_sub_epi8(_mm256_loadu_si256((const __m256i*)at), lo);
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(x, last), x));
  };
  return half(codes) | half(codes + 32) << 32;
#elif defined(__SSE2__)
  const __m128i lo = _mm_set1_epi8((char)low);
  const __m128i last = _mm_set1_epi8((char)(length - 1));
  auto quarter = [&](const uint8_t* at) {
    const __m128i x = _mm_sub_epi8(_mm_loadu_si128((const __m128i*)at), lo);
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(x, last), x));
  };
  return quarter(codes) | quarter(codes + 16) << 16 | quarter(codes + 32) << 32 |
         quarter(codes + 48) << 48;
#else
  uint64_t m = 0;
  for (int i = 0; i < 64; i++) {
    m |= (uint64_t)((uint8_t)(codes[i] - low) < length) << i;
  }
  return m;
#endif
}

// 64 byte codes against a set of 256 bits, of which a code finds its byte (code / 8) and its bit
// there (code % 8).
static inline uint64_t in_set64(const uint8_t* codes, const uint64_t* set) {
#if defined(__AVX512BW__)
  const __m512i low = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)set));
  const __m512i high = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)set + 1));
  const __m512i powers = _mm512_set1_epi64((int64_t)0x8040201008040201);
  const __m512i x = _mm512_loadu_si512(codes);
  const __m512i at = _mm512_and_si512(_mm512_srli_epi16(x, 3), _mm512_set1_epi8(15));
  // from 128 on
  const __m512i byte =
      _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(low, at), _mm512_movepi8_mask(x), high, at);
  return _mm512_test_epi8_mask(
      byte, _mm512_shuffle_epi8(powers, _mm512_and_si512(x, _mm512_set1_epi8(7))));
#elif defined(__AVX2__)
  const __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)set));
  const __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)set + 1));
  const __m256i powers = _mm256_set1_epi64x((int64_t)0x8040201008040201);
  auto half = [&](const uint8_t* from) {
    const __m256i x = _mm256_loadu_si256((const __m256i*)from);
    const __m256i at = _mm256_and_si256(_mm256_srli_epi16(x, 3), _mm256_set1_epi8(15));
    const __m256i byte =
        _mm256_blendv_epi8(_mm256_shuffle_epi8(low, at), _mm256_shuffle_epi8(high, at), x);
    const __m256i bit = _mm256_shuffle_epi8(powers, _mm256_and_si256(x, _mm256_set1_epi8(7)));
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(
        _mm256_cmpeq_epi8(_mm256_and_si256(byte, bit), bit));
  };
  return half(codes) | half(codes + 32) << 32;
#else
  uint64_t m = 0;
  for (int i = 0; i < 64; i++) {
    m |= (set[codes[i] >> 6] >> (codes[i] & 63) & 1) << i;
  }
  return m;
#endif
}

// `test` answers for 64 codes at once.
template <class Test>
static int64_t mark_bytes(const PartitionArgs& a, const uint8_t* codes, Test test) {
  int64_t right = 0;
  // two, so that a compare does not wait for the bytes just stored
  alignas(64) uint8_t gathered[2][64];
  for (int64_t i = 0; i < a.n; i += 64) {
    const int m = (int)(a.n - i < 64 ? a.n - i : 64);
    uint64_t bits;
    if (a.rows == nullptr) {
      bits = test(codes + a.first + i);  // columns are padded, so reading past the end is safe
    } else {
      uint8_t* buffer = gathered[(i >> 6) & 1];
      if (m == 64) {
#pragma GCC unroll 16
        for (int j = 0; j < 64; j++) {
          buffer[j] = codes[a.rows[i + j]];
        }
      } else {
        for (int j = 0; j < m; j++) {
          buffer[j] = codes[a.rows[i + j]];
        }
      }
      bits = test(buffer);
    }
    if (m < 64) {
      bits &= (1ull << m) - 1;
    }
    a.bits[i >> 6] = bits;
    right += __builtin_popcountll(bits);
  }
  return right;
}

template <class Code, class Test>
static int64_t mark_words(const PartitionArgs& a, const Code* codes, Test test) {
  int64_t right = 0;
  for (int64_t i = 0; i < a.n; i += 64) {
    uint64_t bits = 0;
    for (int j = 0; j < 64 && i + j < a.n; j++) {
      const int32_t r = a.rows == nullptr ? a.first + (int32_t)(i + j) : a.rows[i + j];
      bits |= (uint64_t)test(codes[r]) << j;
    }
    a.bits[i >> 6] = bits;
    right += __builtin_popcountll(bits);
  }
  return right;
}

// Bits by row: those of 100,000 rows stay in L1.
static int64_t mark_bits(const PartitionArgs& a, const uint32_t* words) {
  int64_t right = 0;
  for (int64_t i = 0; i < a.n; i += 64) {
    uint64_t bits = 0;
#if defined(__AVX512BW__)
    for (int j = 0; j < 64 && i + j < a.n; j += 16) {
      const __mmask16 live = a.n - i - j >= 16 ? 0xffff : (__mmask16)((1u << (a.n - i - j)) - 1);
      const __m512i r = _mm512_maskz_loadu_epi32(live, a.rows + i + j);
      const __m512i word = _mm512_i32gather_epi32(_mm512_srli_epi32(r, 5), words, 4);
      const __m512i bit =
          _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(r, _mm512_set1_epi32(31)));
      bits |= (uint64_t)_mm512_mask_test_epi32_mask(live, word, bit) << j;
    }
#else
    for (int j = 0; j < 64 && i + j < a.n; j++) {
      const uint32_t r = (uint32_t)a.rows[i + j];
      bits |= (uint64_t)(words[r >> 5] >> (r & 31) & 1) << j;
    }
#endif
    a.bits[i >> 6] = bits;
    right += __builtin_popcountll(bits);
  }
  return right;
}

static int64_t mark(const PartitionArgs& a) {
  if (a.code_bytes == 0) {
    return mark_bits(a, (const uint32_t*)a.codes);
  }
  const Split s = a.split;
  auto within = [s](uint32_t code) {
    return code - s.low < s.length;
  };
  auto among = [s](uint32_t code) {
    return s.set[code >> 6] >> (code & 63) & 1;
  };
  if (a.code_bytes == 4) {
    return mark_words(a, (const uint32_t*)a.codes, within);
  }
  if (a.code_bytes == 2) {
    return s.set != nullptr ? mark_words(a, (const uint16_t*)a.codes, among)
                            : mark_words(a, (const uint16_t*)a.codes, within);
  }
  const uint8_t* codes = (const uint8_t*)a.codes;
  if (s.set != nullptr) {
    return mark_bytes(a, codes, [s](const uint8_t* at) {
      return in_set64(at, s.set);
    });
  }
  const uint8_t low = (uint8_t)s.low;
  const uint8_t length = (uint8_t)s.length;
  return mark_bytes(a, codes, [=](const uint8_t* at) {
    return compare64(at, low, length);
  });
}

#if defined(__AVX2__) && !defined(__AVX512BW__)
struct Compress {  // by mask of 8 lanes: the lanes that are set, in order, first
  uint8_t lane[256][8] = {};
  constexpr Compress() {
    for (int mask = 0; mask < 256; mask++) {
      for (int k = 0, n = 0; k < 8; k++) {
        if (mask >> k & 1) {
          lane[mask][n++] = (uint8_t)k;
        }
      }
    }
  }
  __m256i lanes_of(uint8_t mask) const {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)lane[mask]));
  }
};
static constexpr Compress COMPRESS;
#endif

// Lines that will be written soon. The core that wrote them last may be another: without this, two
// workers take up to five times as long as one over the rows of small nodes.
[[maybe_unused]] static inline void claim_ahead(const int32_t* a, const int32_t* b) {
  constexpr int FAR = 128;  // words
  __builtin_prefetch(a + FAR, 1);
  __builtin_prefetch(b + FAR, 1);
}

static void move(const PartitionArgs& a) {
  int32_t* left = a.left;
  int32_t* right = a.right;
  int32_t* lp = a.left_packed;
  int32_t* rp = a.right_packed;
#ifdef __AVX512BW__
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  int64_t i = 0;
  int64_t room_left = a.n - a.n_right;
  int64_t room_right = a.n_right;
  // While both runs have room for 16 more, whole vectors are stored and the next ones overwrite
  // what was too much.
  for (; room_left >= 16 && room_right >= 16; i += 16) {
    const __mmask16 r = (__mmask16)(a.bits[i >> 6] >> (i & 63));
    const __mmask16 l = (__mmask16)~r;
    const int nr = __builtin_popcount(r);
    const int nl = 16 - nr;
    claim_ahead(left, right);
    const __m512i id = a.rows == nullptr
                           ? _mm512_add_epi32(_mm512_set1_epi32(a.first + (int32_t)i), lanes)
                           : _mm512_loadu_si512(a.rows + i);
    _mm512_storeu_si512(left, _mm512_maskz_compress_epi32(l, id));
    _mm512_storeu_si512(right, _mm512_maskz_compress_epi32(r, id));
    if (a.packed != nullptr) {
      claim_ahead(lp, rp);
      const __m512i q = _mm512_loadu_si512(a.packed + i);
      _mm512_storeu_si512(lp, _mm512_maskz_compress_epi32(l, q));
      _mm512_storeu_si512(rp, _mm512_maskz_compress_epi32(r, q));
      lp += nl;
      rp += nr;
    }
    left += nl;
    right += nr;
    room_left -= nl;
    room_right -= nr;
  }
  for (; i < a.n; i += 16) {  // then only its own places: another chunk's follow
    const __mmask16 all = a.n - i >= 16 ? 0xffff : (__mmask16)((1u << (a.n - i)) - 1);
    const __mmask16 r = (__mmask16)(a.bits[i >> 6] >> (i & 63));
    const __mmask16 l = all & ~r;
    const int nr = __builtin_popcount(r);
    const int nl = __builtin_popcount(l);
    const __mmask16 mr = (__mmask16)((1u << nr) - 1);
    const __mmask16 ml = (__mmask16)((1u << nl) - 1);
    const __m512i id = a.rows == nullptr
                           ? _mm512_add_epi32(_mm512_set1_epi32(a.first + (int32_t)i), lanes)
                           : _mm512_maskz_loadu_epi32(all, a.rows + i);
    _mm512_mask_storeu_epi32(left, ml, _mm512_maskz_compress_epi32(l, id));
    _mm512_mask_storeu_epi32(right, mr, _mm512_maskz_compress_epi32(r, id));
    if (a.packed != nullptr) {
      const __m512i q = _mm512_maskz_loadu_epi32(all, a.packed + i);
      _mm512_mask_storeu_epi32(lp, ml, _mm512_maskz_compress_epi32(l, q));
      _mm512_mask_storeu_epi32(rp, mr, _mm512_maskz_compress_epi32(r, q));
      lp += nl;
      rp += nr;
    }
    left += nl;
    right += nr;
  }
#else
  int64_t i = 0;
  int64_t room_left = a.n - a.n_right;
  int64_t room_right = a.n_right;
#ifdef __AVX2__
  const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  // while both runs have room for 8 more, as above
  for (; room_left >= 8 && room_right >= 8; i += 8) {
    const uint8_t r = (uint8_t)(a.bits[i >> 6] >> (i & 63));
    const __m256i to_left = COMPRESS.lanes_of((uint8_t)~r);
    const __m256i to_right = COMPRESS.lanes_of(r);
    const int nr = __builtin_popcount(r);
    const int nl = 8 - nr;
    claim_ahead(left, right);
    const __m256i id = a.rows == nullptr
                           ? _mm256_add_epi32(_mm256_set1_epi32(a.first + (int32_t)i), lanes)
                           : _mm256_loadu_si256((const __m256i*)(a.rows + i));
    _mm256_storeu_si256((__m256i*)left, _mm256_permutevar8x32_epi32(id, to_left));
    _mm256_storeu_si256((__m256i*)right, _mm256_permutevar8x32_epi32(id, to_right));
    if (a.packed != nullptr) {
      claim_ahead(lp, rp);
      const __m256i q = _mm256_loadu_si256((const __m256i*)(a.packed + i));
      _mm256_storeu_si256((__m256i*)lp, _mm256_permutevar8x32_epi32(q, to_left));
      _mm256_storeu_si256((__m256i*)rp, _mm256_permutevar8x32_epi32(q, to_right));
      lp += nl;
      rp += nr;
    }
    left += nl;
    right += nr;
    room_left -= nl;
    room_right -= nr;
  }
#endif
  auto id = [&](int64_t k) {
    return a.rows == nullptr ? a.first + (int32_t)k : a.rows[k];
  };
  // on both sides, no branch: the next overwrites what was wrong
  for (; room_left > 0 && room_right > 0; i++) {
    const int64_t bit = a.bits[i >> 6] >> (i & 63) & 1;
    *left = *right = id(i);
    left += 1 - bit;
    right += bit;
    room_left -= 1 - bit;
    room_right -= bit;
    if (a.packed != nullptr) {
      *lp = *rp = a.packed[i];
      lp += 1 - bit;
      rp += bit;
    }
  }
  int32_t* rest = room_left > 0 ? left : right;
  int32_t* rest_packed = room_left > 0 ? lp : rp;
  for (int64_t k = i; k < a.n; k++) {
    rest[k - i] = id(k);
  }
  for (int64_t k = i; k < a.n && a.packed != nullptr; k++) {
    rest_packed[k - i] = a.packed[k];
  }
#endif
}

}  // namespace sapwood::inline SAPWOOD_ISA
