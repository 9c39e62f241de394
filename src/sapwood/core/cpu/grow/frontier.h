// Frontier: the nodes that could be split, in the order of a growth policy, and the number of
// leaves so far.
#pragma once
#include <iterator>
#include <set>
#include <vector>

#include "registry.h"

namespace sapwood {

class Frontier {
 public:
  Frontier(const GrowerInfo& grower, bool whole_level, int max_leaves)
      : open_(grower.before), whole_level_(whole_level), max_leaves_(max_leaves) {}

  void open(double gain, int32_t id) { open_.insert({gain, id}); }
  bool close(double gain, int32_t id) { return open_.erase({gain, id}) != 0; }
  bool room() const { return n_leaves_ < max_leaves_; }  // for one more leaf

  // batch OUT: the nodes to split next, one, or all of one depth; false: none is left. depth(id):
  // of a node
  template <class Depth>
  bool next(const Depth& depth, std::vector<int32_t>& batch) {
    batch.clear();
    while (!open_.empty() && room()) {
      const int32_t id = open_.begin()->id;
      if (!batch.empty() && !(whole_level_ && depth(id) == depth(batch[0]))) {
        break;
      }
      batch.push_back(id);
      open_.erase(open_.begin());
      n_leaves_++;
    }
    return !batch.empty();
  }

  // The node that `next` gave, and at most n - 1 that come after it as things stand.
  std::vector<int32_t> upcoming(int32_t first, int n) const {
    std::vector<int32_t> ids{first};
    for (auto open = open_.begin(); open != open_.end() && (int)ids.size() < n; open++) {
      ids.push_back(open->id);
    }
    return ids;
  }
  int n_left() const { return max_leaves_ - n_leaves_; }  // splits that may follow

  // Drops the nodes that come too late in the order for the splits that are left. release(id): of
  // such a node
  template <class Release>
  void trim(const Release& release) {
    while ((int)open_.size() > n_left()) {
      release(open_.rbegin()->id);
      open_.erase(std::prev(open_.end()));
    }
  }

 private:
  std::set<Open, bool (*)(const Open&, const Open&)> open_;
  const bool whole_level_;
  const int max_leaves_;
  int n_leaves_ = 1;
};

}  // namespace sapwood
