// Split search: from a column's histogram to its best cut (NUMERICS 5), or one node's part of a
// level's scores (symmetric trees).
//
//   bins    0    1    2   ...  n-1 | missing          prefix sums give (GL, HL) of every cut;
//   cuts      0    1    2  ...  (n-1: values against missing)
//
// The division is skipped wherever num < den * best says that a candidate cannot win (a margin of
// 1e-12 covers rounding).
#pragma once
#include "cpu/kernels/kernels.h"
#include "math/gain.h"
#include "math/split.h"
#ifdef __AVX512DQ__
#include <immintrin.h>
#endif

namespace sapwood::inline SAPWOOD_ISA {

constexpr double MARGIN = 1.0 - 1e-12;

static Sums bin_sums(const int64_t* hist, bool packed, int b) {
  return packed ? unpack(hist[b]) : Sums{hist[2 * b], hist[2 * b + 1]};
}

static void scan_plain(const int64_t* hist, bool packed, int first, int n_bins, Sums missing,
                       Sums total, const Penalty& p, int32_t column, Candidate& best) {
  for_each_candidate(
      first, n_bins - 1, n_bins, missing,
      [&](int b) {
        return bin_sums(hist, packed, b);
      },
      [&](Sums l, int b, bool missing_left) {
        const Sums r = total - l;
        if (!admits(l, r, p)) {
          return;
        }
        if (is_plain(p) && !may_beat(l, r, p, best.score * MARGIN)) {
          return;
        }
        const double s = split_score(l, r, p);
        if (s > best.score) {
          best = {s, column, b, missing_left, l};
        }
      });
}

#ifdef __AVX512DQ__
struct Prefix {  // eight cumulative words at a time
  __m512i carry_g = _mm512_setzero_si512(), carry_h = _mm512_setzero_si512();

  static __m512i sweep(__m512i x) {
    const __m512i zero = _mm512_setzero_si512();
    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 7));
    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 6));
    return _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 4));
  }
  static __m512i running(__m512i x, __m512i& carry) {
    x = _mm512_add_epi64(sweep(x), carry);
    carry = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), x);
    return x;
  }
  void skip(const int64_t* hist, bool packed, int n) {
    int64_t words = 0;
    int64_t seconds = 0;
    for (int b = 0; b < n; b++) {
      words += hist[packed ? b : 2 * b];
      seconds += packed ? 0 : hist[2 * b + 1];
    }
    carry_g = _mm512_set1_epi64(words);
    carry_h = _mm512_set1_epi64(seconds);
  }
  void next(const int64_t* hist, bool packed, int b, __m512i& g, __m512i& h) {
    if (packed) {
      const __m512i x = running(_mm512_loadu_si512(hist + b), carry_g);
      g = _mm512_srai_epi64(x, 32);
      h = _mm512_and_si512(x, _mm512_set1_epi64(0xffffffff));
      return;
    }
    const __m512i x = _mm512_loadu_si512(hist + 2 * b);
    const __m512i y = _mm512_loadu_si512(hist + 2 * b + 8);
    g = running(_mm512_permutex2var_epi64(x, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), y),
                carry_g);
    h = running(_mm512_permutex2var_epi64(x, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1), y),
                carry_h);
  }
};

struct Fraction {  // numerator and denominator of the split score of eight candidates
  __m512d num, den, hl, hr;
  Fraction(__m512i gl, __m512i hl_, Sums total, __m512d lambda) {
    const __m512d l = _mm512_cvtepi64_pd(gl);
    const __m512d r = _mm512_cvtepi64_pd(_mm512_sub_epi64(_mm512_set1_epi64(total.g), gl));
    hl = _mm512_cvtepi64_pd(hl_);
    hr = _mm512_cvtepi64_pd(_mm512_sub_epi64(_mm512_set1_epi64(total.h), hl_));
    const __m512d bl = _mm512_add_pd(hl, lambda);
    const __m512d br = _mm512_add_pd(hr, lambda);
    num = _mm512_add_pd(_mm512_mul_pd(_mm512_mul_pd(l, l), br),
                        _mm512_mul_pd(_mm512_mul_pd(r, r), bl));
    den = _mm512_mul_pd(bl, br);
  }
};

static void scan_vector(const int64_t* hist, bool packed, int first, int n_bins, Sums missing,
                        Sums total, const Penalty& p, int32_t column, Candidate& best) {
  const bool any_missing = missing.h > 0;
  const int n = any_missing ? n_bins : n_bins - 1;
  const __m512d lambda = _mm512_set1_pd(p.lambda);
  const __m512d min_h = _mm512_set1_pd(p.min_h > 1.0 ? p.min_h : 1.0);
  const __m512i mg = _mm512_set1_epi64(missing.g);
  const __m512i mh = _mm512_set1_epi64(missing.h);
  // a candidate's order: 2 * bin + (missing right)
  const __m512i lanes = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
  __m512d top = _mm512_set1_pd(best.score);
  __m512d bar = _mm512_set1_pd(best.score * MARGIN);
  __m512i where = _mm512_set1_epi64(-1);
  bool found = false;
  auto consider = [&](__m512i gl, __m512i hl, int b, int side, __mmask8 live) {
    const Fraction f(gl, hl, total, lambda);
    live = _mm512_mask_cmp_pd_mask(live, f.hl, min_h, _CMP_GE_OQ);
    live = _mm512_mask_cmp_pd_mask(live, f.hr, min_h, _CMP_GE_OQ);
    live = _mm512_mask_cmp_pd_mask(live, f.num, _mm512_mul_pd(f.den, bar), _CMP_GE_OQ);
    if (__builtin_expect(live, 0)) {
      const __m512d s = _mm512_div_pd(f.num, f.den);
      live = _mm512_mask_cmp_pd_mask(live, s, top, _CMP_GT_OQ);
      if (live == 0) {
        return;
      }
      top = _mm512_mask_mov_pd(top, live, s);
      where = _mm512_mask_add_epi64(where, live, _mm512_set1_epi64(2 * b + side), lanes);
      bar = _mm512_set1_pd(_mm512_reduce_max_pd(top) * MARGIN);
      found = true;
    }
  };
  Prefix prefix;
  prefix.skip(hist, packed, first);
  for (int b = first; b < n; b += 8) {
    const __mmask8 live = n - b >= 8 ? 0xff : (__mmask8)((1u << (n - b)) - 1);
    __m512i g;
    __m512i h;
    prefix.next(hist, packed, b, g, h);
    if (any_missing) {
      consider(_mm512_add_epi64(g, mg), _mm512_add_epi64(h, mh), b, 0, live);
    }
    consider(g, h, b, 1, live);
  }
  if (!found) {
    return;
  }
  alignas(64) double score[8];
  alignas(64) int64_t order[8];
  _mm512_store_pd(score, top);
  _mm512_store_si512(order, where);
  int64_t winner = -1;
  for (int k = 0; k < 8; k++) {
    if (order[k] >= 0 &&
        (score[k] > best.score || (score[k] == best.score && winner >= 0 && order[k] < winner))) {
      best.score = score[k];
      winner = order[k];
    }
  }
  if (winner < 0) {
    return;
  }
  best.column = column;
  best.bin = (int32_t)(winner >> 1);
  best.missing_left = any_missing && (winner & 1) == 0;
  best.left = best.missing_left ? missing : Sums{};
  for (int b = 0; b <= best.bin; b++) {
    best.left = best.left + bin_sums(hist, packed, b);
  }
}
#endif

static void scan_column(const int64_t* hist, bool packed, int first, int n_bins, bool has_missing,
                        Sums total, const Penalty& p, int32_t column, Candidate& best) {
  const Sums missing = has_missing ? bin_sums(hist, packed, n_bins) : Sums{};
#ifdef __AVX512DQ__
  if (is_plain(p)) {
    return scan_vector(hist, packed, first, n_bins, missing, total, p, column, best);
  }
#endif
  scan_plain(hist, packed, first, n_bins, missing, total, p, column, best);
}

// sums left and right of some cuts: they follow each other, the divisions after them do not
struct Sides {
  static constexpr int CUTS = 64;
  alignas(64) double gl[CUTS], hl[CUTS], gr[CUTS], hr[CUTS];
  Sums l;  // left of the first cut
#ifdef __AVX512DQ__
  Prefix prefix;
#endif
  explicit Sides(Sums joined) : l(joined) {}

  // Of the next m cuts, from `at` on.
  void next(const int64_t* hist, bool packed, int at, int m, Sums total) {
#ifdef __AVX512DQ__
    const __m512i jg = _mm512_set1_epi64(l.g);
    const __m512i jh = _mm512_set1_epi64(l.h);
    const __m512i all_g = _mm512_set1_epi64(total.g);
    const __m512i all_h = _mm512_set1_epi64(total.h);
    for (int i = 0; i < m; i += 8) {
      __m512i g;
      __m512i h;
      prefix.next(hist, packed, at + i, g, h);
      g = _mm512_add_epi64(g, jg);
      h = _mm512_add_epi64(h, jh);
      _mm512_store_pd(gl + i, _mm512_cvtepi64_pd(g));
      _mm512_store_pd(hl + i, _mm512_cvtepi64_pd(h));
      _mm512_store_pd(gr + i, _mm512_cvtepi64_pd(_mm512_sub_epi64(all_g, g)));
      _mm512_store_pd(hr + i, _mm512_cvtepi64_pd(_mm512_sub_epi64(all_h, h)));
    }
#else
    for (int i = 0; i < m; i++) {
      l = l + bin_sums(hist, packed, at + i);
      gl[i] = (double)l.g;
      hl[i] = (double)l.h;
      gr[i] = (double)(total.g - l.g);
      hr[i] = (double)(total.h - l.h);
    }
#endif
  }
};

// The same for cosine scores, whose parts are summed apart: dot, norm2 (n) +=; an infinite `dot` is
// a veto.
static void scan_level_cosine(const int64_t* hist, bool packed, int n, Sums missing, Sums total,
                              const Penalty& given, bool side, double* __restrict dot,
                              double* __restrict norm2) {
  if (total.h == 0) {
    return;
  }
  // an own copy: stores cannot change it, so that the second loop below becomes vector code
  const Penalty p = given;
  const CosineParts own = cosine_parts((double)total.g, (double)total.h, p);
  Sides s(side ? missing : Sums{});
  for (int at = 0; at < n; at += Sides::CUTS) {
    const int m = n - at < Sides::CUTS ? n - at : Sides::CUTS;
    s.next(hist, packed, at, m, total);
    for (int i = 0; i < m; i++) {
      const CosineParts both =
          cosine_parts(s.gl[i], s.hl[i], p) + cosine_parts(s.gr[i], s.hr[i], p);
      const bool empty = (s.hl[i] == 0.0) | (s.hr[i] == 0.0);
      const bool low = (s.hl[i] < p.min_h) | (s.hr[i] < p.min_h);
      dot[at + i] = dot[at + i] + (empty ? own.dot : low ? -INF : both.dot);
      norm2[at + i] = norm2[at + i] + (empty ? own.norm2 : both.norm2);
    }
  }
}

// One model of ordered boosting: how well values from a node's body fit its tail.
static void scan_tails(const TailArgs& t, int n, const Penalty& given, double* __restrict dot,
                       double* __restrict norm2) {
  const Penalty p = given;
  Sides body(t.body_joined);
  Sides tail(t.tail_joined);
  for (int at = 0; at < n; at += Sides::CUTS) {
    const int m = n - at < Sides::CUTS ? n - at : Sides::CUTS;
    body.next(t.body, t.body_packed, at, m, t.body_total);
    tail.next(t.tail, t.tail_packed, at, m, t.tail_total);
    for (int i = 0; i < m; i++) {
      const CosineParts a = tail_fit(body.gl[i], body.hl[i], tail.gl[i], tail.hl[i], p);
      const CosineParts b = tail_fit(body.gr[i], body.hr[i], tail.gr[i], tail.hr[i], p);
      dot[at + i] = dot[at + i] + (a.dot + b.dot);
      norm2[at + i] = norm2[at + i] + (a.norm2 + b.norm2);
    }
  }
}

static int codes_in_node(const int64_t* hist, bool packed, int n, int64_t min_h, int32_t* codes) {
  int k = 0;
#ifdef __AVX512DQ__
  const __m512i bar = _mm512_set1_epi64(min_h);
  const __m512i low = _mm512_set1_epi64(0xffffffff);
  const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  for (int b = 0; b < n; b += 8) {
    const __mmask8 all = n - b >= 8 ? 0xff : (__mmask8)((1u << (n - b)) - 1);
    __m512i h;
    if (packed) {
      h = _mm512_and_si512(_mm512_maskz_loadu_epi64(all, hist + b), low);
    } else {
      const __mmask16 both = (__mmask16)((1u << 2 * __builtin_popcount(all)) - 1);
      h = _mm512_permutex2var_epi64(
          _mm512_maskz_loadu_epi64((__mmask8)both, hist + 2 * b),
          _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1),
          _mm512_maskz_loadu_epi64((__mmask8)(both >> 8), hist + 2 * b + 8));
    }
    const __mmask8 in = _mm512_mask_cmpge_epi64_mask(all, h, bar);
    if (in == 0) {
      continue;  // a deep node holds few of many categories
    }
    _mm256_storeu_si256(
        (__m256i*)(codes + k),
        _mm256_maskz_compress_epi32(in, _mm256_add_epi32(_mm256_set1_epi32(b), lanes)));
    k += __builtin_popcount(in);
  }
#else
  for (int b = 0; b < n; b++) {
    codes[k] = b;
    k += bin_sums(hist, packed, b).h >= min_h;
  }
#endif
  return k;
}

// For columns of two bins a call costs more than the cut: eight columns at a time are tested. Plain
// penalties only.
static uint64_t may_split(const int64_t* hist, bool packed, int n, Sums total, const Penalty& p,
                          double bar) {
  uint64_t found = 0;
  const double low = bar * MARGIN;
#ifdef __AVX512DQ__
  const __m512d lambda = _mm512_set1_pd(p.lambda);
  const __m512d min_h = _mm512_set1_pd(p.min_h > 1.0 ? p.min_h : 1.0);
  const __m512i firsts = _mm512_set_epi64(28, 24, 20, 16, 12, 8, 4, 0);  // of pairs
  for (int k = 0; k < n; k += 8) {
    const __mmask8 live = n - k >= 8 ? 0xff : (__mmask8)((1u << (n - k)) - 1);
    __m512i g;
    __m512i h;
    if (packed) {
      const __m512i x = _mm512_loadu_si512(hist + 2 * k);
      const __m512i y = n - k > 4 ? _mm512_loadu_si512(hist + 2 * k + 8) : x;
      const __m512i left =
          _mm512_permutex2var_epi64(x, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), y);
      g = _mm512_srai_epi64(left, 32);
      h = _mm512_and_si512(left, _mm512_set1_epi64(0xffffffff));
    } else {
      const __m512i zero = _mm512_setzero_si512();
      g = _mm512_mask_i64gather_epi64(zero, live, firsts, hist + 4 * k, 8);
      h = _mm512_mask_i64gather_epi64(zero, live, firsts, hist + 4 * k + 1, 8);
    }
    const Fraction f(g, h, total, lambda);
    __mmask8 may = _mm512_mask_cmp_pd_mask(live, f.hl, min_h, _CMP_GE_OQ);
    may = _mm512_mask_cmp_pd_mask(may, f.hr, min_h, _CMP_GE_OQ);
    may =
        _mm512_mask_cmp_pd_mask(may, f.num, _mm512_mul_pd(f.den, _mm512_set1_pd(low)), _CMP_GE_OQ);
    found |= (uint64_t)may << k;
  }
#else
  for (int k = 0; k < n; k++) {
    const Sums l = bin_sums(hist, packed, 2 * k);
    const Sums r = total - l;
    found |= (uint64_t)(admits(l, r, p) && may_beat(l, r, p, low)) << k;
  }
#endif
  return found;
}

// score (n) +=: this node's part for the cuts 0 .. n - 1; -inf where a side has too little hessian
static void scan_level(const int64_t* hist, bool packed, int n, Sums missing, Sums total,
                       const Penalty& p, bool side, double* score) {
  if (total.h == 0) {
    return;
  }
  const double own = node_score(total, p);
  const Sums joined = side ? missing : Sums{};
#ifdef __AVX512DQ__
  if (is_plain(p)) {
    const __m512d lambda = _mm512_set1_pd(p.lambda);
    const __m512d min_h = _mm512_set1_pd(p.min_h);
    const __m512d zero = _mm512_setzero_pd();
    const __m512i jg = _mm512_set1_epi64(joined.g);
    const __m512i jh = _mm512_set1_epi64(joined.h);
    Prefix prefix;
    for (int b = 0; b < n; b += 8) {
      const __mmask8 live = n - b >= 8 ? 0xff : (__mmask8)((1u << (n - b)) - 1);
      __m512i g;
      __m512i h;
      prefix.next(hist, packed, b, g, h);
      const Fraction f(_mm512_add_epi64(g, jg), _mm512_add_epi64(h, jh), total, lambda);
      __m512d s = _mm512_div_pd(f.num, f.den);
      const __mmask8 low =
          _mm512_cmp_pd_mask(f.hl, min_h, _CMP_LT_OQ) | _mm512_cmp_pd_mask(f.hr, min_h, _CMP_LT_OQ);
      s = _mm512_mask_mov_pd(s, low, _mm512_set1_pd(-INF));
      const __mmask8 empty =
          _mm512_cmp_pd_mask(f.hl, zero, _CMP_EQ_OQ) | _mm512_cmp_pd_mask(f.hr, zero, _CMP_EQ_OQ);
      s = _mm512_mask_mov_pd(s, empty, _mm512_set1_pd(own));
      _mm512_mask_storeu_pd(score + b, live,
                            _mm512_add_pd(_mm512_maskz_loadu_pd(live, score + b), s));
    }
    return;
  }
#endif
  Sums l = joined;
  for (int b = 0; b < n; b++) {
    l = l + bin_sums(hist, packed, b);
    const Sums r = total - l;
    const double s = l.h == 0 || r.h == 0 ? own : admits(l, r, p) ? split_score(l, r, p) : -INF;
    score[b] = score[b] + s;
  }
}

}  // namespace sapwood::inline SAPWOOD_ISA
