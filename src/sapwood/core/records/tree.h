// Tree: one grown tree as flat arrays over its nodes, and a view of such arrays.
#pragma once
#include <stdint.h>

#include <vector>

namespace sapwood {

struct Tree {  // flat arrays over nodes
  std::vector<int32_t> column, bin, left;
  std::vector<double> threshold, value, gain, cover, count;
  std::vector<uint8_t> missing_left;
  // category split: index of the set of codes that go left; else -1
  std::vector<int32_t> set;
  std::vector<int64_t> set_offset = {0};  // (n_sets + 1) into set_code
  std::vector<int32_t> set_code;          // rising within a set
};

struct TreeView {  // a tree whose splits are over codes
  const int32_t *column, *bin;
  const uint8_t* missing_left;
  const int32_t* left;
  int n_nodes;
  const int32_t* set;
  const int64_t* set_offset;
  const int32_t* set_code;

  int n_leaves() const { return (n_nodes + 1) / 2; }
};
inline TreeView view(const Tree& t) {
  return {t.column.data(),    t.bin.data(), t.missing_left.data(), t.left.data(),
          (int)t.left.size(), t.set.data(), t.set_offset.data(),   t.set_code.data()};
}

}  // namespace sapwood
