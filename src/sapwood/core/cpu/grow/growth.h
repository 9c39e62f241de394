// Growing trees: a frontier of nodes, and for each that is split: partition -> histogram -> reduce
// -> split search.
#pragma once
#include "cpu/grow/exact.h"

namespace sapwood {

struct Workspace : TreeBuffers {  // memory that outlives a tree
  SortedBuffers sorted;
};

// value OUT: each leaf's value, by its id
Tree grow_tree(const GrowInput& in, Workspace& work, const AllocateLeafIds& allocate,
               std::vector<double>& value);

// The trees of several outputs, all with the same splits; every argument is by output.
// worker_per_output: an output is grown by one worker, else by all of them
std::vector<Tree> grow_multi_output(const std::vector<GrowInput>& in, Workspace* work,
                                    const std::vector<AllocateLeafIds>& allocate,
                                    std::vector<std::vector<double>>& value, int n_threads,
                                    bool worker_per_output);

// Ordered boosting: prefix_ends says where each body and each tail ends in the row list. The trees,
// which have the same splits for all outputs, have no leaf values.
std::vector<Tree> grow_ordered(const std::vector<GrowInput>& in, Workspace* work,
                               const std::vector<int64_t>& prefix_ends, int n_threads);

}  // namespace sapwood
