// Quantised: the gradients of all outputs in fixed point, in the layouts of their readers (NUMERICS
// 4).
//
//   scores --row_pass--> all: leaf_pairs, search_pairs                   by row
//                        search_packed (or search_pairs_narrow)          by row
//   all --requantise--> reweighted: leaf_pairs, search_pairs             by row, or gathered: in the sample's order
//                       search_packed (or search_pairs_narrow)           overwritten
//
// Growth overwrites search_packed.
#pragma once
#include <string>
#include <vector>

#include "cpu/rows/sample.h"
#include "records/gradients.h"

namespace sapwood {

// an output whose gradients are 2^900 times smaller than another's adds nothing
constexpr int MAX_SCALE_GAP = 900;

struct WidePairs {    // wide gradients and the scales of both precisions
  Memory leaf_pairs;  // (n_outputs, n) Pair, for the leaf values
  // (n_outputs, n) Pair, only where the split search has hessians of its own
  Memory search_pairs;
  std::vector<Scale> narrow, wide;  // (n_outputs) of the split search, of the leaf values
};

struct GradientRequest {
  // narrow, wide, or chosen from the gradients
  std::string precision = "auto";
  // hessians of 1 in the split search, in the leaf values
  bool unit_search = false, unit_leaf = false;
  // (n_outputs, n) instead of the objective's, or null
  const double *given_g = nullptr, *given_h = nullptr;
};

struct Quantised {
  explicit Quantised(const RowState& s);
  Memory search_packed;        // (n_outputs, n) int32, narrow g << 16 | h
  Memory search_pairs_narrow;  // (n_outputs, n) Pair, used instead of the words where rows repeat
  WidePairs all, reweighted;   // of all rows; of the sampled rows under their sampling weights
  Memory scattered;            // (n_outputs, n) Pair, gathered leaf pairs written back by row
  // (2, n) double, of coupled scores: the largest one, and the sum of e^(score - largest)
  Memory softmax;
  std::string precision;
  std::vector<uint8_t> is_narrow;  // (n_outputs) precision of the split search
  // Statistics of the last row pass, over the rows of all holders:
  // (3, n_outputs) bits of the largest |g|, hessian, search hessian
  std::vector<uint64_t> max_bits;
  // (2, n_outputs) sums of repeats * |narrow g| and of repeats * narrow h
  std::vector<int64_t> sums;
  bool unit_search = false, unit_leaf = false, constant_hessian = false;
  bool has_words = true;  // the last row pass wrote the narrow words

  bool own_search_hessians() const { return unit_search && !unit_leaf; }
  const WidePairs& of(const RowSample& sample) const {
    return sample.reweighted ? reweighted : all;
  }
};

// Whether the split search takes narrow numbers: rows of them, with the sums of |narrow g| and
// narrow h.
inline bool narrow_enough(const std::string& precision, int64_t sum_g, int64_t sum_h,
                          int64_t rows) {
  return precision == "narrow" || (precision == "auto" && sum_g >= 64 * rows && sum_h >= 64 * rows);
}

// Adds pending leaf values to the scores, then computes and quantises the gradients; the maxima
// decide the scales.
// A sampler that reads gradients and reweights rows makes words of its own: pass needs_words =
// false then.
void row_pass(RowState& s, std::vector<LeafState>& leaves, const GradientRequest& request,
              bool needs_words, Quantised& q);
// the words that such a pass left out
void add_words(RowState& s, std::vector<LeafState>& leaves, Quantised& q);
// Fixed point of an output's sampled rows, under scales of their own.
void requantise(const RowState& s, RowSample& sample, int output, Quantised& q);
// fills q.scattered
void scatter(const RowState& s, const RowSample& sample, int output, Quantised& q);

// What the growth of one output's tree reads. leaf_gathered: it can read leaf pairs in the sample's
// order.
Gradients search_gradients(const RowState& s, const RowSample& sample, const Quantised& q,
                           int output, bool leaf_gathered, double min_samples_leaf);
// Leaf pairs of the sample by row; after scatter where they are gathered.
const Pair* leaf_pairs_by_row(const RowState& s, const RowSample& sample, const Quantised& q,
                              int output);
// sqrt(sum of g^2 / sum of h) in the wide numbers of all rows of positive weight: by how much
// scores differ by chance.
double noise_scale(const RowState& s, const Quantised& q, int output);

}  // namespace sapwood
