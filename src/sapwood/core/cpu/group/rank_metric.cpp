#include "cpu/group/rank_metric.h"

namespace sapwood {
namespace {

struct List {  // a group's gains by place, in runs of equal score
  std::vector<double> gain;
  std::vector<int64_t> end;  // of each run
  std::vector<double> chance, others;
};

// A metric is a sum over places; a run of equal scores counts with its mean over all orders
// (McSherry and Najork 2008).

double dcg(const List& l, int64_t top, const Discounts& d) {
  double total = 0.0;
  int64_t from = 0;
  for (const int64_t end : l.end) {
    if (from >= top) {
      break;
    }
    double gains = 0.0;
    double discounts = 0.0;
    for (int64_t i = from; i < end; i++) {
      gains = gains + l.gain[i];
    }
    for (int64_t i = from; i < std::min(end, top); i++) {
      discounts = discounts + d[i];
    }
    total = total + gains * discounts / (double)(end - from);
    from = end;
  }
  return total;
}

double hits(const List& l, int64_t from, int64_t end) {
  double n = 0.0;
  for (int64_t i = from; i < end; i++) {
    n = n + (l.gain[i] > 0.0 ? 1.0 : 0.0);
  }
  return n;
}

double hits_at(const List& l, int64_t top) {
  double total = 0.0;
  int64_t from = 0;
  for (const int64_t end : l.end) {
    if (from >= top) {
      break;
    }
    total = total + hits(l, from, end) * (double)(std::min(end, top) - from) / (double)(end - from);
    from = end;
  }
  return total;
}

// before the division by the number of relevant rows
double average_precision(const List& l, int64_t top) {
  double total = 0.0;
  double before = 0.0;
  int64_t from = 0;
  for (const int64_t end : l.end) {
    if (from >= top) {
      break;
    }
    const double n = (double)(end - from);
    const double m = hits(l, from, end);
    for (int64_t i = from; i < std::min(end, top) && m > 0.0; i++) {
      // hits of the run above a hit
      const double above = n > 1.0 ? (double)(i - from) * (m - 1.0) / (n - 1.0) : 0.0;
      total = total + m / n * (before + above + 1.0) / (double)(i + 1);
    }
    before = before + m;
    from = end;
  }
  return total;
}

double reciprocal_rank(const List& l, int64_t top) {
  int64_t from = 0;
  for (const int64_t end : l.end) {
    const double m = hits(l, from, end);
    if (m > 0.0) {
      double none = 1.0;
      double total = 0.0;  // the chance of no hit so far
      for (int64_t i = from; i < std::min(end, top); i++) {
        const double left = (double)(end - i);
        const double hit = m / left < 1.0 ? m / left : 1.0;
        total = total + none * hit / (double)(i + 1);
        none = none * (1.0 - hit);
      }
      return total;
    }
    from = end;
  }
  return 0.0;
}

// Of a run of n rows, a row with gain v stands at offset t behind t others with chance 1/n; the
// mean product of their (1 - gain) is others[t], built up row by row.
double expected_reciprocal_rank(List& l, int64_t top) {
  double total = 0.0;
  double left = 1.0;
  int64_t from = 0;
  for (const int64_t end : l.end) {
    if (from >= top) {
      break;
    }
    const int64_t n = end - from;
    const int64_t depth = std::min(end, top) - from;
    if (n == 1) {
      total = total + left * l.gain[from] / (double)(from + 1);
      left = left * (1.0 - l.gain[from]);
      from = end;
      continue;
    }
    for (int64_t i = from; i < end;) {  // rows of one gain at a time; gains of a run rise
      int64_t same = i;
      while (same < end && l.gain[same] == l.gain[i]) {
        same++;
      }
      l.others.assign(depth + 1, 0.0);
      l.others[0] = 1.0;
      double taken = 0.0;
      for (int64_t j = from; j < end; j++) {
        if (j == i) {
          continue;
        }
        taken = taken + 1.0;
        for (int64_t t = std::min(depth - 1, (int64_t)taken); t > 0; t--) {
          const double with = l.others[t - 1] * (1.0 - l.gain[j]);
          l.others[t] = l.others[t] * ((taken - (double)t) / taken) + with * ((double)t / taken);
        }
      }
      for (int64_t t = 0; t < depth; t++) {
        total = total + left * (double)(same - i) / (double)n * l.gain[i] * l.others[t] /
                            (double)(from + t + 1);
      }
      i = same;
    }
    for (int64_t i = from; i < end; i++) {
      left = left * (1.0 - l.gain[i]);
    }
    from = end;
  }
  return total;
}

double measured(List& l, const RankMeasureArgs& a, const Discounts& d) {
  const int64_t n = (int64_t)l.gain.size();
  const double relevant = hits(l, 0, n);
  if (relevant == 0.0) {
    return NAN_;
  }
  const double top = (double)std::min(a.top, n);
  switch (a.measure) {
    case RankMeasure::ndcg: {
      const double found = dcg(l, a.top, d);
      std::sort(l.gain.begin(), l.gain.end(), std::greater<>());
      double ideal = 0.0;
      for (int64_t i = 0; i < std::min(n, a.top); i++) {
        ideal = ideal + l.gain[i] * d[i];
      }
      return found / ideal;
    }
    case RankMeasure::map:
      return average_precision(l, a.top) / std::min(relevant, top);
    case RankMeasure::mrr:
      return reciprocal_rank(l, a.top);
    case RankMeasure::err:
      return expected_reciprocal_rank(l, a.top);
    case RankMeasure::precision:
      return hits_at(l, a.top) / top;
    case RankMeasure::recall:
      return hits_at(l, a.top) / relevant;
  }
  return NAN_;
}

}  // namespace

void measure_groups(const Groups& groups, const double* gain, const double* score,
                    const RankMeasureArgs& args, int n_threads, double* value) {
  const Discounts discounts(groups.most);
  struct Work {
    List list;
    std::vector<int32_t> row;
  };
  std::vector<Work> work(n_threads);
  groups.each(n_threads, [&](int64_t k, int worker) {
    auto& [list, row] = work[worker];
    row.assign(groups.row.begin() + groups.begin[k], groups.row.begin() + groups.begin[k + 1]);
    const bool input = args.ties == TieRule::input;
    std::stable_sort(row.begin(), row.end(), [&](int32_t a, int32_t b) {
      return score[a] > score[b] || (!input && score[a] == score[b] && gain[a] < gain[b]);
    });
    list.gain.clear();
    list.end.clear();
    for (size_t i = 0; i < row.size(); i++) {
      list.gain.push_back(gain[row[i]]);
      const bool last = i + 1 == row.size() || score[row[i + 1]] != score[row[i]];
      if (last || args.ties != TieRule::average) {
        list.end.push_back((int64_t)i + 1);
      }
    }
    value[k] = measured(list, args, discounts);
  });
}

}  // namespace sapwood
