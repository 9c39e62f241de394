// Groups: the rows of every group, and threads over whole groups.
#pragma once
#include <algorithm>
#include <vector>

#include "host/pool.h"

namespace sapwood {

struct Groups {
  // group (n) numbers from 0; weight (n) or null: rows of weight 0 are in no group
  Groups(const int32_t* group, const double* weight, int64_t n) {
    int32_t n_groups = 0;
    for (int64_t i = 0; i < n; i++) {
      n_groups = std::max(n_groups, group[i] + 1);
    }
    begin.assign((size_t)n_groups + 1, 0);
    for (int64_t i = 0; i < n; i++) {
      if (weight == nullptr || weight[i] > 0.0) {
        begin[group[i] + 1]++;
      }
    }
    for (int32_t k = 0; k < n_groups; k++) {
      most = std::max(most, begin[k + 1]);
      begin[k + 1] += begin[k];
    }
    row.resize(begin[n_groups]);
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    for (int64_t i = 0; i < n; i++) {
      if (weight == nullptr || weight[i] > 0.0) {
        row[next[group[i]]++] = (int32_t)i;
      }
    }
    for (int32_t k = 0; k < n_groups; k++) {  // tasks of whole groups
      if (task.empty() || begin[k] - begin[task.back()] >= TASK) {
        task.push_back(k);
      }
    }
    task.push_back(n_groups);
  }
  int64_t size() const { return (int64_t)begin.size() - 1; }
  // f(group, worker) for every group; one thread has a group
  template <class F>
  void each(int n_threads, F&& f) const {
    run(threads_for((int64_t)row.size(), n_threads), (int64_t)task.size() - 1,
        [&](int64_t t, int worker) {
          for (int64_t k = task[t]; k < task[t + 1]; k++) {
            f(k, worker);
          }
        });
  }

  std::vector<int64_t> begin;  // (n_groups + 1) of each group's rows in `row`
  std::vector<int32_t> row;
  int64_t most = 0;  // rows of the largest group

 private:
  static constexpr int64_t TASK = 4096;  // rows of a task, at least
  std::vector<int64_t> task;             // first groups of the tasks
};

}  // namespace sapwood
