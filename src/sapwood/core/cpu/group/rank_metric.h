// Metrics of ranked lists: a number for each group.
#pragma once
#include <vector>

#include "cpu/group/groups.h"
#include "cpu/group/ranked.h"

namespace sapwood {

enum class RankMeasure { ndcg, map, mrr, err, precision, recall };
// Rows of equal score: the mean over all their orders; the worst order (small gains first); the
// order of the rows.
enum class TieRule { average, pessimistic, input };

struct RankMeasureArgs {
  RankMeasure measure;
  TieRule ties;
  int64_t top;  // places that count
};

// gain, score (n) by row. value (n_groups) OUT: NaN where a group has no relevant row (gain > 0; of
// ndcg no ideal).
void measure_groups(const Groups& groups, const double* gain, const double* score,
                    const RankMeasureArgs& args, int n_threads, double* value);

}  // namespace sapwood
