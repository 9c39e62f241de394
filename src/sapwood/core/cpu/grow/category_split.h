// Categories: which sets of codes a column's split may send left (NUMERICS, categories). Enters: sums by code, of a node or a level.
// Leaves: steps, each with one code more on the left side; a candidate is a step, and its set the codes up to there.
//
//   few categories   | {0} | {1} | {2} | ...                              one against the rest
//   many             ratio g / (h + cat_smooth) rises  ->   3 7 1 | ... | 5 0 2
//                    from the front  {3} {3 7} {3 7 1}      from the back  {2} {2 0} {2 0 5}
//
// Nothing of this is kept with a candidate: once it has won, the same sums give the same steps again.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/grow/histogram_builder.h"
#include "math/gain.h"
#include "records/constraints.h"

namespace sapwood {

class Categories {
 public:
  struct Step {
    int32_t code;
    bool fresh;  // the left side was empty before
    bool ends;   // a candidate
  };

  Categories(const Limits& limits, const SplitConstraints& rules, const Scale& scale, const Penalty& plain)
      : rules_(rules),
        few_(limits.max_cat_to_onehot),
        most_(limits.max_cat_threshold),
        smooth_(limits.cat_smooth),
        group_(limits.min_data_per_group),
        rows_(limits.min_samples_leaf > 1.0 ? limits.min_samples_leaf : 0.0),
        smooth_h_(limits.cat_smooth * h_scale(scale)),
        plain_(plain),
        many_(plain) {
    many_.lambda = plain.lambda + limits.cat_l2 * h_scale(scale);
  }

  bool one_by_one(int c, int n_bins) const { return n_bins <= few_ || rules_.one_by_one(c); }
  const Penalty& penalty(int c, int n_bins) const { return one_by_one(c, n_bins) ? plain_ : many_; }

  // Of column c. rows: what `total` counts for; random: a draw that picks one size of sets.
  std::vector<Step> steps(int c, const ColumnHistogram& bins, Sums total, double rows, const uint64_t* random) const {
    std::vector<Step> all;
    if (total.h <= 0) return all;
    auto pick = [&](size_t n) { return random == nullptr ? -1 : (int)((unsigned __int128)*random * n >> 64); };
    const int32_t* codes = space(bins.n_codes());
    auto live = [&](int64_t least) {
      return kernels().codes_in_node(bins.sums, bins.packed, bins.n_codes(), least, space(bins.n_codes()));
    };
    if (one_by_one(c, bins.n)) {
      const int used = live(1);
      for (int k = 0; k < used; k++) all.push_back({codes[k], true, random == nullptr});
      if (random != nullptr && used > 0) all[pick(used)].ends = true;
      return all;
    }
    const double each = rows / (double)total.h;
    auto count = [each](int64_t h) { return (int64_t)((double)h * each + 0.5); };  // rows, as far as hessians tell
    const int used = live(least(count, each, total.h)), most = std::min(most_, (used + 1) / 2), only = pick(most);
    const std::vector<Live> order = ends(bins, codes, used, most);
    for (const bool back : {false, true}) {
      Sums l;
      int64_t left = 0, group = 0;
      for (int i = 0; i < most; i++) {
        const int32_t code = back ? order[order.size() - 1 - i].code : order[i].code;
        const Sums s = bins.at(code);
        l = l + s, left += count(s.h), group += count(s.h);
        all.push_back({code, i == 0, false});
        if ((double)left < rows_ || (double)l.h < plain_.min_h) continue;
        const double right = rows - (double)left;
        if (right < rows_ || right < group_ || (double)(total.h - l.h) < plain_.min_h) break;
        if ((double)group < group_) continue;
        group = 0;
        all.back().ends = only < 0 || i == only;
      }
    }
    return all;
  }

  // The codes up to a step, rising; the missing one (n_bins) may be among them.
  static std::vector<int32_t> set(const std::vector<Step>& steps, int last) {
    std::vector<int32_t> codes;
    for (int k = last; k >= 0; k--) {
      codes.push_back(steps[k].code);
      if (steps[k].fresh) break;
    }
    std::sort(codes.begin(), codes.end());
    return codes;
  }

 private:
  struct Live {
    double ratio;
    int32_t code;
    bool operator<(const Live& o) const { return ratio < o.ratio || (ratio == o.ratio && code < o.code); }
  };

  // Room for the codes of a column: they may be many, and are asked for in every node.
  static int32_t* space(int n) {
    thread_local std::vector<int32_t> codes;
    if (codes.size() < (size_t)n + 8) codes.resize((size_t)n + 8);
    return codes.data();
  }

  // The smallest hessian that counts for cat_smooth rows: from a little below, upwards.
  template <class Count>
  int64_t least(const Count& count, double each, int64_t total) const {
    if ((double)count(total) < smooth_) return total + 1;
    int64_t h = (int64_t)std::max(1.0, (std::ceil(smooth_) - 0.5) / each * (1.0 - 0x1p-40) - 2.0);
    while ((double)count(h) < smooth_) h++;
    return h;
  }

  template <class Before>
  struct Top {  // the first `most` of all that are offered; few of many are among the first of those before them
    int most;
    Before before;
    std::vector<Live> best = {};
    Live bar = {};
    bool full = false;
    void offer(const Live& x) {
      if (full && !before(x, bar)) return;
      best.push_back(x);
      if ((int)best.size() < 3 * most) return;
      std::nth_element(best.begin(), best.begin() + (most - 1), best.end(), before);
      best.resize(most);
      bar = best.back(), full = true;
    }
    void finish() {
      std::sort(best.begin(), best.end(), before);
      best.resize(most);
    }
  };
  template <class Before>
  Top(int, Before) -> Top<Before>;  // clang 14 does not deduce it

  // `most` codes from either end of the order of ratios, or all of them where they are few.
  std::vector<Live> ends(const ColumnHistogram& bins, const int32_t* codes, int used, int most) const {
    auto live = [&](int32_t code) {
      const Sums s = bins.at(code);
      return Live{(double)s.g / ((double)s.h + smooth_h_), code};
    };
    if (used <= 4 * most) {
      std::vector<Live> all;
      for (int k = 0; k < used; k++) all.push_back(live(codes[k]));
      std::sort(all.begin(), all.end());
      return all;
    }
    Top front{most, [](const Live& a, const Live& b) { return a < b; }};
    Top back{most, [](const Live& a, const Live& b) { return b < a; }};
    for (int k = 0; k < used; k++) {
      const Live x = live(codes[k]);
      front.offer(x), back.offer(x);
    }
    front.finish(), back.finish();
    front.best.insert(front.best.end(), back.best.rbegin(), back.best.rend());
    return front.best;
  }

  const SplitConstraints& rules_;
  const int few_, most_;
  const double smooth_, group_, rows_, smooth_h_;
  const Penalty& plain_;
  Penalty many_;
};

}  // namespace sapwood
