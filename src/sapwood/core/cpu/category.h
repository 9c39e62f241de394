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
#include <vector>

#include "../math/gain.h"
#include "trainer.h"

namespace sapwood {

class Categories {
 public:
  struct Step {
    int32_t code;
    bool fresh;  // the left side was empty before
    bool ends;   // a candidate
  };

  Categories(const Limits& limits, const Scale& scale, const Penalty& plain)
      : few_(limits.max_cat_to_onehot),
        most_(limits.max_cat_threshold),
        smooth_(limits.cat_smooth),
        group_(limits.min_data_per_group),
        rows_(limits.min_samples_leaf > 1.0 ? limits.min_samples_leaf : 0.0),
        smooth_h_(limits.cat_smooth * h_scale(scale)),
        plain_(plain),
        many_(plain) {
    many_.lambda = plain.lambda + limits.cat_l2 * h_scale(scale);
  }

  bool one_by_one(int n_bins) const { return n_bins <= few_; }
  const Penalty& penalty(int n_bins) const { return one_by_one(n_bins) ? plain_ : many_; }

  // at(code) of n_codes (the missing one last, if there is one); rows: what `total` counts for; random: a draw that picks one size.
  template <class At>
  std::vector<Step> steps(int n_bins, int n_codes, const At& at, Sums total, double rows,
                          const uint64_t* random) const {
    std::vector<Step> all;
    auto pick = [&](size_t n) { return random == nullptr ? -1 : (int)((unsigned __int128)*random * n >> 64); };
    if (one_by_one(n_bins)) {
      for (int32_t code = 0; code < n_codes; code++)
        if (at(code).h > 0) all.push_back({code, true, random == nullptr});
      if (random != nullptr && !all.empty()) all[pick(all.size())].ends = true;
      return all;
    }
    const double each = rows / (double)total.h;
    auto count = [each](Sums s) { return (int64_t)((double)s.h * each + 0.5); };
    thread_local std::vector<Live> live;  // of a column with many categories: too large to allocate for every node
    live.clear();
    for (int32_t code = 0; code < n_codes; code++) {
      const Sums s = at(code);
      if (s.h > 0 && (double)count(s) >= smooth_) live.push_back({(double)s.g / ((double)s.h + smooth_h_), code});
    }
    const int used = (int)live.size(), most = std::min(most_, (used + 1) / 2), only = pick(most);
    if (used > 2 * most) {
      std::nth_element(live.begin(), live.begin() + most, live.end());
      std::nth_element(live.begin() + most, live.end() - most, live.end());
      std::sort(live.begin(), live.begin() + most), std::sort(live.end() - most, live.end());
    } else {
      std::sort(live.begin(), live.end());
    }
    for (const bool back : {false, true}) {
      Sums l;
      int64_t left = 0, group = 0;
      for (int i = 0; i < most; i++) {
        const int32_t code = live[back ? used - 1 - i : i].code;
        const Sums s = at(code);
        l = l + s, left += count(s), group += count(s);
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

  const int few_, most_;
  const double smooth_, group_, rows_, smooth_h_;
  const Penalty& plain_;
  Penalty many_;
};

}  // namespace sapwood
