// Categories: which sets of codes a column's split may send left (NUMERICS, categories). Enters:
// sums by code, of a node or a level. Leaves: steps, each of which adds one code to the left side.
// Some steps are candidates; a candidate's set consists of the codes up to its step.
//
//   few categories   | {0} | {1} | {2} | ...                              one against the rest
//   many             ratio g / (h + cat_smooth) rises  ->   3 7 1 | ... | 5 0 2
//                    from the front  {3} {3 7} {3 7 1}      from the back  {2} {2 0} {2 0 5}
//
// A candidate holds only its step. The winner's set is found again: the same sums give the same
// steps.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/grow/node.h"
#include "cpu/kernels/kernels.h"
#include "math/gain.h"
#include "records/constraints.h"
#include "records/limits.h"

namespace sapwood {

class Categories {
 public:
  struct Step {
    int32_t code;
    bool starts;  // the left side was empty before
    bool is_candidate;
  };

  Categories(const Limits& limits, const SplitConstraints& constraints, const Scale& scale,
             const Penalty& plain)
      : limits_(limits),
        constraints_(constraints),
        h_scale_(h_scale(scale)),
        plain_(plain),
        with_cat_l2_(plain) {
    with_cat_l2_.lambda = plain.lambda + limits.cat_l2 * h_scale_;
  }

  bool is_onehot(int c, int n_bins) const {
    return n_bins <= limits_.max_cat_to_onehot || constraints_.is_onehot(c);
  }
  const Penalty& penalty(int c, int n_bins) const {
    return is_onehot(c, n_bins) ? plain_ : with_cat_l2_;
  }

  // The steps of column c. rows: the weight of the rows in `total`; random: a draw that picks one
  // size of sets, or null
  std::vector<Step> steps(int c, const ColumnHistogram& bins, Sums total, double rows,
                          const uint64_t* random) const {
    std::vector<Step> all;
    if (total.h <= 0) {
      return all;
    }
    auto pick = [&](size_t n) {
      return random == nullptr ? -1 : (int)((unsigned __int128)*random * n >> 64);
    };
    const int32_t* codes = space(bins.n_codes());
    auto codes_in_node = [&](int64_t min_h) {
      return kernels().codes_in_node(bins.sums, bins.packed, bins.n_codes(), min_h,
                                     space(bins.n_codes()));
    };
    if (is_onehot(c, bins.n)) {
      const int used = codes_in_node(1);
      for (int k = 0; k < used; k++) {
        all.push_back({codes[k], true, random == nullptr});
      }
      if (random != nullptr && used > 0) {
        all[pick(used)].is_candidate = true;
      }
      return all;
    }
    const double each = rows / (double)total.h;
    const double min_group = limits_.min_data_per_group;
    const double min_rows = limits_.min_samples_leaf > 1.0 ? limits_.min_samples_leaf : 0.0;
    // rows, estimated from hessians
    auto count = [each](int64_t h) {
      return (int64_t)((double)h * each + 0.5);
    };
    const int used = codes_in_node(min_hessian(count, each, total.h));
    const int max_codes = std::min(limits_.max_cat_threshold, (used + 1) / 2);
    const int only = pick(max_codes);
    const std::vector<RatioCode> order = ends(bins, codes, used, max_codes);
    for (const bool back : {false, true}) {
      Sums l;
      int64_t left = 0;
      int64_t group = 0;
      for (int i = 0; i < max_codes; i++) {
        const int32_t code = back ? order[order.size() - 1 - i].code : order[i].code;
        const Sums s = bins.at(code);
        l = l + s;
        left += count(s.h);
        group += count(s.h);
        all.push_back({code, i == 0, false});
        if ((double)left < min_rows || (double)l.h < plain_.min_h) {
          continue;
        }
        const double right = rows - (double)left;
        if (right < min_rows || right < min_group || (double)(total.h - l.h) < plain_.min_h) {
          break;
        }
        if ((double)group < min_group) {
          continue;
        }
        group = 0;
        all.back().is_candidate = only < 0 || i == only;
      }
    }
    return all;
  }

  // The codes up to a step, rising; the missing code (n_bins) may be among them.
  static std::vector<int32_t> set(const std::vector<Step>& steps, int last) {
    std::vector<int32_t> codes;
    for (int k = last; k >= 0; k--) {
      codes.push_back(steps[k].code);
      if (steps[k].starts) {
        break;
      }
    }
    std::sort(codes.begin(), codes.end());
    return codes;
  }

 private:
  struct RatioCode {
    double ratio;
    int32_t code;
    bool operator<(const RatioCode& o) const {
      return ratio < o.ratio || (ratio == o.ratio && code < o.code);
    }
  };

  // Scratch for the codes of a column: there may be many, and every node needs it.
  static int32_t* space(int n) {
    thread_local std::vector<int32_t> codes;
    if (codes.size() < (size_t)n + 8) {
      codes.resize((size_t)n + 8);
    }
    return codes.data();
  }

  // The smallest hessian that is estimated as cat_smooth rows: the search starts a little below.
  template <class Count>
  int64_t min_hessian(const Count& count, double each, int64_t total) const {
    const double smooth = limits_.cat_smooth;
    if ((double)count(total) < smooth) {
      return total + 1;
    }
    int64_t h = (int64_t)std::max(1.0, (std::ceil(smooth) - 0.5) / each * (1.0 - 0x1p-40) - 2.0);
    while ((double)count(h) < smooth) {
      h++;
    }
    return h;
  }

  template <class Before>
  struct Top {  // the first `n` in the order `before` of all codes that are offered
    int n;
    Before before;
    std::vector<RatioCode> best = {};
    RatioCode bar = {};
    bool full = false;
    void offer(const RatioCode& x) {
      if (full && !before(x, bar)) {
        return;
      }
      best.push_back(x);
      if ((int)best.size() < 3 * n) {
        return;
      }
      std::nth_element(best.begin(), best.begin() + (n - 1), best.end(), before);
      best.resize(n);
      bar = best.back();
      full = true;
    }
    void finish() {
      std::sort(best.begin(), best.end(), before);
      best.resize(n);
    }
  };
  template <class Before>
  Top(int, Before) -> Top<Before>;  // clang 14 does not deduce it

  // The first and the last n codes in the order of ratios, or all codes where they are at most 4 n.
  std::vector<RatioCode> ends(const ColumnHistogram& bins, const int32_t* codes, int used,
                              int n) const {
    auto ratio_of = [&, smooth = limits_.cat_smooth * h_scale_](int32_t code) {
      const Sums s = bins.at(code);
      return RatioCode{(double)s.g / ((double)s.h + smooth), code};
    };
    if (used <= 4 * n) {
      std::vector<RatioCode> all;
      for (int k = 0; k < used; k++) {
        all.push_back(ratio_of(codes[k]));
      }
      std::sort(all.begin(), all.end());
      return all;
    }
    Top front{n, [](const RatioCode& a, const RatioCode& b) {
                return a < b;
              }};
    Top back{n, [](const RatioCode& a, const RatioCode& b) {
               return b < a;
             }};
    for (int k = 0; k < used; k++) {
      const RatioCode x = ratio_of(codes[k]);
      front.offer(x);
      back.offer(x);
    }
    front.finish();
    back.finish();
    front.best.insert(front.best.end(), back.best.rbegin(), back.best.rend());
    return front.best;
  }

  const Limits& limits_;
  const SplitConstraints& constraints_;
  const double h_scale_;
  const Penalty& plain_;
  Penalty with_cat_l2_;
};

}  // namespace sapwood
