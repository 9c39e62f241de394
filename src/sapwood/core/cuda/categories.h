// Category columns on the device: the steps of cpu/grow/category_split.h, each of which adds one
// code to the left side. A block has a column of a node, or of the root of a symmetric tree, whose
// levels all have its steps; a thread has a code.
#pragma once
#include "cuda/growth.h"
#include "math/hash.h"

namespace sapwood {

struct Steps {              // of one column, in shared memory
  Sums sums[TILE_BINS];     // by code
  int64_t rows[TILE_BINS];  // by code, where rows are counted
  double ratio[TILE_BINS];  // by code
  int32_t order[TILE_BINS];
  CodeStep step[2][TILE_BINS];  // from the front and from the back
  Sums left[2][TILE_BINS];      // what goes left, up to each step
  int64_t rows_left[2][TILE_BINS];
  int n[2];   // steps from either end
  int among;  // sizes of sets that a random choice is made of
};

inline Steps& shared_steps() {
  __shared__ Steps steps;
  return steps;
}

// Steps from both ends of the order of ratios, as the CPU takes them one after the other. Thread 0
// has the front, thread 32 the back.
inline void walk_codes_in_order(const Job& j, Steps& s, int n_used, int n_codes, Sums total,
                                double rows, double each, int missing) {
  const bool back = threadIdx.x != 0;
  const double min_group = j.min_data_per_group;
  const double min_rows = growth_of(j).min_samples > 1.0 ? growth_of(j).min_samples : 0.0;
  const double min_h = growth_of(j).penalty.min_h;
  Sums l;
  int64_t left = 0;
  int64_t group = 0;
  int64_t rows_left = 0;
  bool holds_missing = false;
  int i = 0;
  for (; i < n_codes; i++) {
    const int code = s.order[back ? n_used - 1 - i : i];
    const int64_t estimate = (int64_t)((double)s.sums[code].h * each + 0.5);
    l = l + s.sums[code];
    left += estimate;
    group += estimate;
    rows_left += s.rows[code];
    holds_missing |= code == missing;
    s.step[back][i] = {(int16_t)code, 0, 0, holds_missing};
    s.left[back][i] = l;
    s.rows_left[back][i] = rows_left;
    if ((double)left < min_rows || (double)l.h < min_h) {
      continue;
    }
    const double right = rows - (double)left;
    if (right < min_rows || right < min_group || (double)(total.h - l.h) < min_h) {
      i++;
      break;
    }
    if ((double)group < min_group) {
      continue;
    }
    group = 0;
    s.step[back][i].candidate = 1;
  }
  s.n[back] = i;
}

// All threads of a block, which are as many as codes. own, rows: of this thread's code; count: the
// weight of all rows
inline void make_steps(const Job& j, int place, Sums own, int64_t own_rows, Sums total,
                       int64_t count, Steps& s) {
  const int code = threadIdx.x;
  const int missing = j.n_bins[place];
  const double rows = (double)count * power_of_two(-(int)j.weight_shift);
  const bool onehot = j.category[place] == ONE_HOT;
  const double each = rows / (double)total.h;
  const double smooth = j.cat_smooth;
  __syncthreads();  // an earlier column's steps are read
  s.sums[code] = own;
  s.rows[code] = own_rows;
  bool used = own.h >= 1;
  if (!onehot) {
    used = used && (double)(int64_t)((double)own.h * each + 0.5) >= smooth;
    s.ratio[code] =
        used ? (double)own.g / ((double)own.h + smooth * h_scale(growth_of(j).scale)) : INF;
  }
  const Scanned scanned = block_scan(used);
  const int n_used = (int)scanned.all;
  s.order[code] = used;
  __syncthreads();
  if (onehot) {
    const int k = (int)scanned.before;
    if (used) {
      s.step[0][k] = {(int16_t)code, (int16_t)k, 1, code == missing};
    }
    if (used) {
      s.left[0][k] = own;
      s.rows_left[0][k] = own_rows;
    }
    if (code == 0) {
      s.n[0] = s.among = n_used;
      s.n[1] = 0;
    }
    __syncthreads();
    return;
  }
  int rank = 0;
  for (int d = 0; d < TILE_BINS && used; d++) {
    rank += s.order[d] && (s.ratio[d] < s.ratio[code] || (s.ratio[d] == s.ratio[code] && d < code));
  }
  const int n_codes =
      (int)j.max_cat_threshold < (n_used + 1) / 2 ? (int)j.max_cat_threshold : (n_used + 1) / 2;
  __syncthreads();
  if (used) {
    s.order[rank] = code;
  }
  if (code == 0) {
    s.among = n_codes;
  }
  __syncthreads();
  if (code == 0 || code == LANES) {
    walk_codes_in_order(j, s, n_used, n_codes, total, rows, each, missing);
  }
  __syncthreads();
  if (code < s.n[1]) {
    s.step[1][code].start = (int16_t)s.n[0];
  }
  __syncthreads();
}

// Whether a step is considered: all are, or, with extra_trees, one of either end. start: the first
// step of its end
inline bool is_chosen(const Job& j, int k, int id, int column, bool onehot, int among, int step,
                      int start) {
  if (!(MAY_BIND && j.extra_trees)) {
    return true;
  }
  const uint64_t own = fold(fold(j.turn->cut_key, (uint64_t)(j.turn->tree + k)), (uint64_t)id);
  const int at = (int)multiply_high(draw(own, (uint64_t)column), (uint64_t)among);
  return (onehot ? step : step - start) == at;
}

// What the rows of a node count for, from the counts by bin of any column where rows have weights.
inline int64_t weight_of(const Job& j, const Node& n, int64_t counted) {
  return j.repeats == nullptr ? n.end - n.begin : counted;
}

// The set of a node's best split: a bit a code that goes right. All threads of a block, which are
// as many as codes.
inline void write_set(const Job& j, int id) {
  Steps& s = shared_steps();
  const Node& n = of_tree(j, j.nodes)[id];
  if (n.column < 0 || !j.category[n.place]) {
    return;
  }
  const int code = threadIdx.x;
  const int at = code * LANES + n.place % LANES;
  const int64_t tile = n.slot * j.histogram_size + n.place / LANES * TILE_SUMS;
  const Sums own = load_sums(of_tree(j, j.histograms) + tile, at, n.packed != 0);
  const bool counted = j.repeats != nullptr && growth_of(j).count_parts > 0;
  const int64_t all = counted ? block_scan(of_tree(j, j.counts)[tile + at]).all : 0;
  make_steps(j, n.place, own, 0, Sums{n.g, n.h}, weight_of(j, n, all), s);
  uint32_t* set = (uint32_t*)(of_tree(j, j.sets) + SET_WORDS * id);
  if (code < 2 * (int)SET_WORDS) {
    set[code] = ~0u;
  }
  __threadfence_block();
  __syncthreads();
  const bool back = n.bin >= s.n[0];
  const int last = back ? n.bin - s.n[0] : n.bin;
  const int first = j.category[n.place] == ONE_HOT ? last : 0;
  if (code >= first && code <= last) {
    const int left = s.step[back][code].code;
    atomicAnd(set + left / LANES, ~(1u << left % LANES));
  }
  __threadfence_block();
  __syncthreads();
  const int missing = j.n_bins[n.place];
  if (code == 0 && n.missing_left) {
    atomicAnd(set + missing / LANES, ~(1u << missing % LANES));
  }
  if (code == 0 && !n.missing_left) {
    atomicOr(set + missing / LANES, 1u << missing % LANES);
  }
}

}  // namespace sapwood
