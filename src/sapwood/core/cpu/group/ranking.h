// RankLoss: gradients of losses over whole groups (NUMERICS, ranking). A group is summed by one
// thread, in an order that depends on scores and labels only, so shuffling the rows of a group
// leaves every bit as it is.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cpu/group/groups.h"
#include "cpu/group/ranked.h"

namespace sapwood {

enum class RankLossKind { lambdarank, xendcg, query_rmse, pair_logit, yetirank };

struct RankSettings {
  RankLossKind kind = RankLossKind::lambdarank;
  RankMetric metric = RankMetric::ndcg;
  int64_t truncation = 30;  // a pair needs a row above this place
  double sigma = 1.0;
  // a group's gradients are multiplied by log2(1 + S) / S, S their sum of sizes
  bool norm = true;
  // a pair's weight is divided by 0.01 + the difference of scores
  bool score_norm = true;
  int permutations = 10, neighbours = 1;  // of yetirank
  double decay = 0.85;
  uint64_t seed = 0;
};

struct RankPairs {             // pairs of a user: winner beats loser
  std::vector<int64_t> begin;  // (n_rows + 1) of each row's pairs
  std::vector<int32_t> other;  // the row it is compared with
  std::vector<double> weight;  // > 0: this row wins; < 0: it loses
};

class RankLoss {
 public:
  // label, gain (n): the gain of a label, or for err the probability that it satisfies. weight (n)
  // or null.
  // key (n) or null: a number of each row's content, for draws. Arrays are copied.
  RankLoss(const int32_t* group, const double* label, const double* gain, const double* weight,
           const uint64_t* key, int64_t n, const RankSettings& settings);
  void set_pairs(RankPairs pairs) { pairs_ = std::move(pairs); }
  // score (n) IN; g, h (n) OUT: before weights
  void gradients(const double* score, uint64_t round, int n_threads, double* g, double* h) const;
  int64_t n_rows() const { return (int64_t)label_.size(); }

 private:
  struct Work;
  void list_pairs(int64_t group, const double* score, Work& w, double* g, double* h) const;
  void softmax(int64_t group, const double* score, Work& w, double* g, double* h) const;
  void centred(int64_t group, const double* score, Work& w, double* g, double* h) const;
  void noisy(int64_t group, const double* score, uint64_t round, Work& w, double* g,
             double* h) const;
  void given_pairs(const double* score, int n_threads, double* g, double* h) const;
  void sort_rows(int64_t group, const double* score, Work& w) const;
  int64_t rank_blocks(int64_t group, const double* score, Work& w) const;
  double swap_weight(const Work& w, int64_t a, int64_t b) const;

  RankSettings settings_;
  Groups groups_;
  std::vector<double> label_, gain_, weight_;
  std::vector<uint64_t> key_, group_key_;
  // (n_groups) 1 / the best DCG up to the truncation; 0 where it is 0
  std::vector<double> inverse_ideal_;
  std::vector<uint8_t> mixed_;  // (n_groups) whether gains differ
  Discounts discounts_;
  RankPairs pairs_;
};

}  // namespace sapwood
