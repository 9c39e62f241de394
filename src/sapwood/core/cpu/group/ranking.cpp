#include "cpu/group/ranking.h"

#include "cpu/kernels/kernels.h"
#include "math/hash.h"

namespace sapwood {

// nats below the best score of a group at which e^x no longer falls
constexpr double MAX_SPAN = 600.0;
constexpr int64_t PLACES = 64;  // of a larger tie so many places stand for all, evenly spaced
// rows of a group up to which places are counted, without a sort
constexpr int64_t SHORT = 512;

// of one thread; arrays by block of rows with equal score and label, best score first
struct RankLoss::Work {
  std::vector<int32_t> row;                        // rows of the group, ranked
  std::vector<int64_t> start, tie_start, tie_end;  // places of the block and of its score
  std::vector<double> score, gain, e, count, mean, g, h, weight;
  std::vector<double> place_score, place_gain;  // by place
  // by row: rows of larger score; by place: rows of this place so far
  std::vector<int64_t> place, taken;
  SwapDelta delta;

  void resize(int64_t n) {  // for n rows
    for (auto* v : {&start, &tie_start, &tie_end, &place, &taken}) {
      v->resize(n + PAIR_LANES);
    }
    for (auto* v : {&score, &gain, &e, &count, &mean, &g, &h, &weight, &place_score}) {
      v->resize(n + PAIR_LANES);
    }
    row.resize(n);
    place_gain.resize(n);
  }
};

RankLoss::RankLoss(const int32_t* group, const double* label, const double* gain,
                   const double* weight, const uint64_t* key, int64_t n,
                   const RankSettings& settings)
    : settings_(settings),
      groups_(group, weight, n),
      label_(label, label + n),
      gain_(gain, gain + n),
      inverse_ideal_(groups_.size()),
      discounts_(groups_.most) {
  if (weight != nullptr) {
    weight_.assign(weight, weight + n);
  }
  if (key != nullptr) {
    key_.assign(key, key + n);
    group_key_.assign(groups_.size(), 0);
    for (int64_t k = 0; k < groups_.size(); k++) {
      for (int64_t i = groups_.begin[k]; i < groups_.begin[k + 1]; i++) {
        group_key_[k] += mix(key_[groups_.row[i]]);
      }
    }
  }
  std::vector<double> best;
  for (int64_t k = 0; k < groups_.size(); k++) {
    best.clear();
    for (int64_t i = groups_.begin[k]; i < groups_.begin[k + 1]; i++) {
      best.push_back(gain_[groups_.row[i]]);
    }
    std::sort(best.begin(), best.end(), std::greater<>());
    double ideal = 0.0;
    for (int64_t i = 0; i < (int64_t)best.size() && i < settings_.truncation; i++) {
      ideal = ideal + best[i] * discounts_[i];
    }
    inverse_ideal_[k] = ideal > 0.0 ? 1.0 / ideal : 0.0;
    mixed_.push_back(!best.empty() && best.front() != best.back());
  }
}

// Fills w.row: by falling score, then rising label; and w.place_score, the scores by place.
void RankLoss::sort_rows(int64_t group, const double* score, Work& w) const {
  const int64_t n = groups_.begin[group + 1] - groups_.begin[group];
  const int32_t* rows = groups_.row.data() + groups_.begin[group];
  w.resize(n);
  if (n > SHORT) {
    std::copy(rows, rows + n, w.row.begin());
    std::sort(w.row.begin(), w.row.end(), [&](int32_t a, int32_t b) {
      return score[a] > score[b] || (score[a] == score[b] && label_[a] < label_[b]);
    });
    for (int64_t i = 0; i < n; i++) {
      w.place_score[i] = score[w.row[i]] + 0.0;
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    w.score[i] = score[rows[i]];
  }
  kernels().places(w.score.data(), n, w.place.data());
  std::fill_n(w.taken.begin(), n, 0);
  bool ties = false;
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = w.place[i];
    const int64_t same = w.taken[at]++;
    w.row[at + same] = rows[i];
    w.place_score[at + same] = w.score[i] + 0.0;
    ties |= same > 0;
  }
  for (int64_t i = 0; ties && i < n; i += w.taken[i]) {
    std::sort(w.row.begin() + i, w.row.begin() + i + w.taken[i], [&](int32_t a, int32_t b) {
      return label_[a] < label_[b];
    });
  }
}

// Ranks a group, fills the blocks and returns their number.
int64_t RankLoss::rank_blocks(int64_t group, const double* score, Work& w) const {
  sort_rows(group, score, w);
  const int64_t n = (int64_t)w.row.size();
  int64_t n_blocks = 0;
  int64_t tie = 0;
  int64_t tie_block = 0;
  for (int64_t i = 0; i < n; i++) {
    const int32_t row = w.row[i];
    const bool same = i > 0 && w.place_score[i] == w.place_score[i - 1];
    if (!same) {
      for (; tie_block < n_blocks; tie_block++) {
        w.tie_end[tie_block] = i;
      }
      tie = i;
    }
    w.place_gain[i] = gain_[row];
    if (same && label_[row] == label_[w.row[i - 1]]) {
      w.count[n_blocks - 1] += 1.0;
    } else {
      w.start[n_blocks] = i;
      w.tie_start[n_blocks] = tie;
      w.score[n_blocks] = w.place_score[i];
      w.gain[n_blocks] = gain_[row];
      w.count[n_blocks++] = 1.0;
    }
  }
  for (; tie_block < n_blocks; tie_block++) {
    w.tie_end[tie_block] = n;
  }
  kernels().list_exp(w.score.data(), w.score[0], settings_.sigma, -MAX_SPAN, n_blocks, w.e.data());
  std::fill_n(w.g.begin(), n_blocks + PAIR_LANES, 0.0);
  std::fill_n(w.h.begin(), n_blocks + PAIR_LANES, 0.0);
  // what a kernel reads and does not use
  for (int64_t b = n_blocks; b < n_blocks + PAIR_LANES; b++) {
    w.score[b] = w.score[n_blocks - 1];
    w.gain[b] = w.count[b] = w.mean[b] = w.weight[b] = 0.0;
    w.e[b] = 1.0;
  }
  return n_blocks;
}

// The mean of what swaps of a row of block a with one of block b change.
double RankLoss::swap_weight(const Work& w, int64_t a, int64_t b) const {
  const int64_t na = (int64_t)w.count[a];
  const int64_t nb = (int64_t)w.count[b];
  const int64_t ka = na < PLACES ? na : PLACES;
  const int64_t kb = nb < PLACES ? nb : PLACES;
  double total = 0.0;
  for (int64_t i = 0; i < ka; i++) {
    for (int64_t j = 0; j < kb; j++) {
      total = total + w.delta(w.start[a] + i * na / ka, w.start[b] + j * nb / kb);
    }
  }
  return total / ((double)ka * (double)kb);
}

// lambdarank and pair_logit: every pair of which one row stands above the truncation.
void RankLoss::list_pairs(int64_t group, const double* score, Work& w, double* g, double* h) const {
  const int64_t n_blocks = rank_blocks(group, score, w);
  const bool ndcg =
      settings_.kind == RankLossKind::lambdarank && settings_.metric == RankMetric::ndcg;
  const bool unit = settings_.kind == RankLossKind::pair_logit;
  if (ndcg && inverse_ideal_[group] == 0.0) {
    return;
  }
  if (ndcg) {  // the mean discount of each tie
    for (int64_t b = 0; b < n_blocks; b++) {
      const int64_t from = w.tie_start[b];
      const int64_t end = w.tie_end[b];
      double sum = 0.0;
      if (b > 0 && w.tie_start[b - 1] == from) {
        w.mean[b] = w.mean[b - 1];
      } else if (end - from == 1) {
        w.mean[b] = discounts_[from];
      } else {
        for (int64_t i = from; i < end; i++) {
          sum = sum + discounts_[i];
        }
        w.mean[b] = sum / (double)(end - from);
      }
    }
  } else if (!unit) {
    w.delta.rank(settings_.metric, w.place_gain.data(), (int64_t)w.row.size(), &discounts_, 1.0);
  }
  std::fill_n(w.weight.begin(), n_blocks, 1.0);
  PairArgs p{};
  p.norm = settings_.score_norm && !unit && w.score[0] != w.score[n_blocks - 1];
  p.sigma = settings_.sigma;
  p.factor = ndcg ? inverse_ideal_[group] : 1.0;
  double size = 0.0;
  for (int64_t a = 0; a < n_blocks && w.tie_start[a] < settings_.truncation; a++) {
    p.own_score = w.score[a];
    p.own_gain = w.gain[a];
    p.own_e = w.e[a];
    p.own_count = w.count[a];
    auto against = [&](int64_t from, int64_t end, PairWeight kind, const double* weight) {
      if (from >= end) {
        return;
      }
      p.kind = kind;
      p.n = end - from;
      p.weight = weight + from;
      p.score = w.score.data() + from;
      p.gain = w.gain.data() + from;
      p.e = w.e.data() + from;
      p.count = w.count.data() + from;
      p.g = w.g.data() + from;
      p.h = w.h.data() + from;
      kernels().pairs(p);
      w.g[a] = w.g[a] - p.sum_g;
      w.h[a] = w.h[a] + p.sum_h;
      size = size + 2.0 * p.own_count * p.sum_size;
    };
    if (ndcg) {
      int64_t tied = a + 1;  // the blocks of the same score
      while (tied < n_blocks && w.tie_start[tied] == w.tie_start[a]) {
        tied++;
      }
      const int64_t from = w.tie_start[a];
      const int64_t length = w.tie_end[a] - from;
      double within = 0.0;  // the mean difference of the discounts of two of its places
      if (tied > a + 1) {
        for (int64_t t = 0; t < length; t++) {
          within = within + discounts_[from + t] * (double)(length - 1 - 2 * t);
        }
        within = 2.0 * within / ((double)length * (double)(length - 1));
      }
      p.own_discount = within;
      against(a + 1, tied, PairWeight::within, w.mean.data());
      p.own_discount = w.mean[a];
      against(tied, n_blocks, PairWeight::discounts, w.mean.data());
    } else {
      if (!unit) {
        for (int64_t b = a + 1; b < n_blocks; b++) {
          w.weight[b] = w.gain[a] == w.gain[b] ? 0.0 : swap_weight(w, a, b);
        }
      }
      against(a + 1, n_blocks, PairWeight::given, w.weight.data());
    }
  }
  const double factor = settings_.norm && !unit && size > 0.0 ? log1p(size) / (LN2 * size) : 1.0;
  for (int64_t b = 0; b < n_blocks; b++) {
    for (int64_t i = w.start[b]; i < w.start[b] + (int64_t)w.count[b]; i++) {
      g[w.row[i]] = w.g[b] * factor;
      h[w.row[i]] = w.h[b] * factor;
    }
  }
}

// rank_xendcg: cross-entropy between the softmax of the scores and shares of 2^label - 1/2.
void RankLoss::softmax(int64_t group, const double* score, Work& w, double* g, double* h) const {
  const int64_t n_blocks = rank_blocks(group, score, w);
  double all = 0.0;
  double wanted = 0.0;
  for (int64_t b = 0; b < n_blocks; b++) {
    all = all + w.count[b] * w.e[b];
    wanted = wanted + w.count[b] * (w.gain[b] + 0.5);
  }
  for (int64_t b = 0; b < n_blocks; b++) {
    const double p = w.e[b] / all;
    const double t = (w.gain[b] + 0.5) / wanted;
    for (int64_t i = w.start[b]; i < w.start[b] + (int64_t)w.count[b]; i++) {
      g[w.row[i]] = p - t;
      h[w.row[i]] = p * (1.0 - p);
    }
  }
}

// query_rmse: squared error of residuals less their mean in the group.
void RankLoss::centred(int64_t group, const double* score, Work& w, double* g, double* h) const {
  const int32_t* from = groups_.row.data() + groups_.begin[group];
  const int32_t* end = groups_.row.data() + groups_.begin[group + 1];
  auto residual = [&](int32_t row) {
    return score[row] - label_[row];
  };
  auto weight = [&](int32_t row) {
    return weight_.empty() ? 1.0 : weight_[row];
  };
  w.row.assign(from, end);
  std::sort(w.row.begin(), w.row.end(), [&](int32_t a, int32_t b) {
    return residual(a) < residual(b) || (residual(a) == residual(b) && weight(a) < weight(b));
  });
  double sum = 0.0;
  double total = 0.0;
  for (const int32_t row : w.row) {
    sum = sum + weight(row) * residual(row);
    total = total + weight(row);
  }
  for (const int32_t row : w.row) {
    g[row] = residual(row) - sum / total;
    h[row] = 1.0;
  }
}

// yetirank: neighbours in noisy orders of the list; the gradient is that of the scores without
// noise.
void RankLoss::noisy(int64_t group, const double* score, uint64_t round, Work& w, double* g,
                     double* h) const {
  const int64_t n = groups_.begin[group + 1] - groups_.begin[group];
  const int32_t* rows = groups_.row.data() + groups_.begin[group];
  if (settings_.metric == RankMetric::ndcg && inverse_ideal_[group] == 0.0) {
    return;
  }
  struct Ranked {
    double score;
    uint64_t key;
    int32_t row;
  };
  std::vector<Ranked> order(n);
  double top = score[rows[0]];
  for (int64_t i = 0; i < n; i++) {
    top = score[rows[i]] > top ? score[rows[i]] : top;
  }
  w.place_gain.resize(n);
  w.e.resize(n);
  for (int m = 0; m < settings_.permutations; m++) {
    const uint64_t noise = fold(key(settings_.seed, RANKS, round, (uint64_t)m), group_key_[group]);
    for (int64_t i = 0; i < n; i++) {
      const double u = ((double)(draw(noise, key_[rows[i]]) >> 11) + 0.5) * 0x1p-53;
      order[i] = {score[rows[i]] + (log(u) - log1p(-u)), key_[rows[i]], rows[i]};
    }
    std::sort(order.begin(), order.end(), [](const Ranked& a, const Ranked& b) {
      return a.score > b.score || (a.score == b.score && a.key < b.key);
    });
    for (int64_t i = 0; i < n; i++) {
      w.place_gain[i] = gain_[order[i].row];
      const double x = settings_.sigma * (score[order[i].row] - top);
      w.e[i] = exp(x < -MAX_SPAN ? -MAX_SPAN : x);
    }
    w.delta.rank(settings_.metric, w.place_gain.data(), n, &discounts_, inverse_ideal_[group]);
    double fade = 0.15;
    for (int64_t i = 0; i + 1 < n; i++, fade = fade * settings_.decay) {
      for (int64_t j = i + 1; j < n && j <= i + settings_.neighbours; j++) {
        const double diff = w.place_gain[i] - w.place_gain[j];
        const double size = diff < 0.0 ? -diff : diff;
        if (diff == 0.0) {
          continue;
        }
        const double weight =
            (settings_.metric == RankMetric::classic ? fade * size : w.delta(i, j));
        const double p = (diff > 0.0 ? w.e[j] : w.e[i]) / (w.e[i] + w.e[j]);
        const double lambda = settings_.sigma * (weight / settings_.permutations) * p;
        const double bend = settings_.sigma * lambda * (1.0 - p);
        const int32_t high = order[diff > 0.0 ? i : j].row;
        const int32_t low = order[diff > 0.0 ? j : i].row;
        g[high] = g[high] - lambda;
        g[low] = g[low] + lambda;
        h[high] = h[high] + bend;
        h[low] = h[low] + bend;
      }
    }
  }
}

// pair_logit with a user's pairs: each row adds its own, in the order in which they were given.
void RankLoss::given_pairs(const double* score, int n_threads, double* g, double* h) const {
  const int64_t n = n_rows();
  run(threads_for(n, n_threads), task_count(n), [&](int64_t t, int) {
    for (int64_t i = t * TASK_ROWS; i < std::min(n, (t + 1) * TASK_ROWS); i++) {
      for (int64_t at = pairs_.begin[i]; at < pairs_.begin[i + 1]; at++) {
        const double weight = pairs_.weight[at];
        const double size = weight < 0.0 ? -weight : weight;
        const double ahead = settings_.sigma * (score[i] - score[pairs_.other[at]]);
        const double p = sigmoid(weight > 0.0 ? -ahead : ahead);
        const double lambda = settings_.sigma * size * p;
        g[i] = weight > 0.0 ? g[i] - lambda : g[i] + lambda;
        h[i] = h[i] + settings_.sigma * lambda * (1.0 - p);
      }
    }
  });
}

void RankLoss::gradients(const double* score, uint64_t round, int n_threads, double* g,
                         double* h) const {
  std::fill_n(g, n_rows(), 0.0);
  std::fill_n(h, n_rows(), 0.0);
  if (!pairs_.begin.empty()) {
    return given_pairs(score, n_threads, g, h);
  }
  std::vector<Work> work(n_threads);
  groups_.each(n_threads, [&](int64_t group, int worker) {
    const bool by_pairs =
        settings_.kind != RankLossKind::xendcg && settings_.kind != RankLossKind::query_rmse;
    if (groups_.begin[group + 1] - groups_.begin[group] < 2 || (by_pairs && !mixed_[group])) {
      return;
    }
    Work& w = work[worker];
    switch (settings_.kind) {
      case RankLossKind::lambdarank:
      case RankLossKind::pair_logit:
        return list_pairs(group, score, w, g, h);
      case RankLossKind::xendcg:
        return softmax(group, score, w, g, h);
      case RankLossKind::query_rmse:
        return centred(group, score, w, g, h);
      case RankLossKind::yetirank:
        return noisy(group, score, round, w, g, h);
    }
  });
}

}  // namespace sapwood
