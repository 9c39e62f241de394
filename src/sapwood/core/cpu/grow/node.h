// Node: a node of the tree that is growing, and its histogram.
#pragma once
#include <vector>

#include "math/split.h"

namespace sapwood {

using NodeIds = std::vector<int32_t>;

struct Segment {  // places begin .. end - 1 of a shard's row list
  int shard;
  int64_t begin, end;
};

struct Histogram {  // sums per slot and code, in the places of a Layout: packed words, or pairs
  int64_t* data = nullptr;
  bool packed = false;
};

struct Node {
  std::vector<Segment> segments;  // its rows in this process
  int buffer = -1;                // which row list they are in; -1: the root's
  int depth = 0;
  int32_t left = 0;  // first child, once split
  // of all holders; until its histogram is there, at most so many (counts_late)
  int64_t n_rows = 0;
  int64_t own_rows = 0;  // of this process, until then
  // sum of its rows' weights in fixed point, of all holders; only where there are categories
  int64_t count = 0;
  int32_t set = -1;  // of its category split
  Sums sum;
  double score = 0, gain = 0;
  double rank = 0;  // its gain, or infinity where the split is forced; 0: no split is worth it
  Candidate best;
  Histogram hist;
};

struct ColumnHistogram {  // one column of a node's histogram: what a scan reads
  const int64_t* sums;
  bool packed;  // words, else pairs
  int n;        // bins of values; the bin of missing ones follows, where there are some
  bool has_missing;
  // (n + 1) exact trees: code by bin, then the column's last; null: the bin itself
  const uint32_t* codes = nullptr;

  int code(int b) const { return codes == nullptr ? b : (int)codes[b]; }
  Sums at(int b) const { return packed ? unpack(sums[b]) : Sums{sums[2 * b], sums[2 * b + 1]}; }
  Sums missing() const { return has_missing ? at(n) : Sums{}; }
  int n_codes() const { return n + has_missing; }
  Sums prefix(int bin, bool missing_left) const {  // what a cut after `bin` sends left
    Sums left = missing_left ? missing() : Sums{};
    for (int b = 0; b <= bin; b++) {
      left = left + at(b);
    }
    return left;
  }
};

}  // namespace sapwood
