// HistogramGrowth: a tree whose nodes have histograms, and split by their own best cut.
//
//   children     the smaller one's histogram is built, the larger one's is parent - small; both are searched while in the cache
//   work         by_job: a worker takes whole children; by_tile: some slots of one; by_row: all workers share one child's rows
#pragma once
#include "cpu/grow/growth_core.h"

namespace sapwood {

class HistogramGrowth : public GrowthCore {
 public:
  using GrowthCore::GrowthCore;
  void choose(int32_t id) override;
  bool choose_level(const NodeIds& level) override {
    update_level_bounds(level);
    return level_.find(nodes_, level);
  }

 private:
  void fill_root(int32_t id) override;
  void fill_children(bool search) override;
  void acquire_histograms();
  void by_job(bool search, int n_threads);
  void by_tile(size_t first_job, size_t last_job, bool search);
  void by_row(const ChildHistograms& j, bool search);
  void reduced(bool search);
  void subtract_and_search(const ChildHistograms& j, int first, int last, bool search, Candidate& small,
                           Candidate& large);

  std::vector<Candidate> found_;
};

}  // namespace sapwood
