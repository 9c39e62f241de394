// HistogramGrowth: a tree whose nodes have histograms, and split by their own best cut.
//
//   children   the smaller one's histogram is built, the larger one's is parent - small; both are searched in the cache
//   work       by_part: a worker takes a child, or some slots of one; by_row: all workers share one's rows
#pragma once
#include "cpu/grow/growth_core.h"

namespace sapwood {

class HistogramGrowth : public GrowthCore {
 public:
  using GrowthCore::GrowthCore;
  void choose(int32_t id) override {
    begin_choice(id);
    Node& n = nodes_[id];
    if (!finder_.can_split(n)) {
      return;
    }
    finder_.prepare_counts({id});
    found_.assign(builder_.n_spans(), Candidate{});
    auto scan = [&](int first, int last, int span) {
      found_[span].score = n.best.score;
      finder_.scan_slots(n, id, first, last, last, found_[span]);
    };
    if (builder_.total_codes < FORK_NS) {
      scan(0, builder_.n_slots(), 0);
    } else {
      builder_.spans(scan);
    }
    for (const Candidate& c : found_) {
      if (better(c, n.best)) {
        n.best = c;
      }
    }
    finder_.end_search(n, id);
  }
  bool choose_level(const NodeIds& level) override {
    update_level_bounds(level);
    return level_.find(nodes_, level);
  }

 private:
  void fill_root(int32_t id) override {
    Node& root = nodes_[id];
    root.hist = builder_.acquire(builder_.fits_packed(root.n_rows));
    if (in_.root != nullptr) {
      memcpy(root.hist.data, in_.root, builder_.slot_words(root.hist.packed) * 8);
    } else if (builder_.build_ns(root.n_rows) < FORK_NS || in_.n_threads == 1) {
      builder_.build_serial(root, root.hist, 0, builder_.tiles, 0, builder_.tiles.size());
    } else if (root.n_rows < ROW_SPLIT || builder_.many_tiles(1)) {
      run(in_.n_threads, (int64_t)builder_.slices.size(), [&](int64_t t, int worker) {
        builder_.build_serial(root, root.hist, worker, builder_.slices, t, t + 1);
      });
    } else {
      builder_.build_parallel(root, root.hist, [](int, int, int) {});
    }
    std::vector<int64_t> none;
    builder_.reduce({root.hist}, none);
    builder_.marginalise(root.hist, 0, builder_.n_slots());
    if (const int c = columns_[0]; b_.default_code[c] < 0) {
      root.sum = finder_.histogram(root, c).prefix(b_.n_bins[c] - 1, true);
    } else {
      const Sums own = builder_.total(root);
      int64_t all[2] = {own.g, own.h};
      reduce_sum(in_.reduce(), all, 2);
      root.sum = {all[0], all[1]};
    }
    builder_.fill_default_bins(root.hist, root.sum, 0, builder_.n_slots());
    root.score = finder_.score(root.sum, 0);
  }

  void acquire_histograms() {
    for (const ChildHistograms& j : jobs_) {
      nodes_[j.small].hist = builder_.acquire(builder_.fits_packed(nodes_[j.small].n_rows));
      if (!j.rest) {
        continue;
      }
      Node& parent = nodes_[j.parent];
      Node& large = nodes_[j.large];
      large.hist = !parent.hist.packed && builder_.fits_packed(large.n_rows)
                       ? builder_.acquire(true)
                       : parent.hist;
    }
  }

  void fill_children(bool search) override {
    if (jobs_.empty()) {
      return;
    }
    acquire_histograms();
    if (jobs_.size() > 1) {  // the longest first
      std::stable_sort(jobs_.begin(), jobs_.end(),
                       [&](const ChildHistograms& a, const ChildHistograms& b) {
                         return nodes_[a.small].n_rows > nodes_[b.small].n_rows;
                       });
    }
    if (search) {
      for (const ChildHistograms& j : jobs_) {
        for (const int32_t id : {j.small, j.large}) {
          finder_.begin_search(nodes_[id], id);
        }
        counts_.split(j.parent, j.small, j.large);
      }
    }
    work_.clear();
    int64_t work = 0;
    for (const ChildHistograms& j : jobs_) {
      work_.push_back(builder_.build_ns(nodes_[j.small].n_rows) +
                      (search ? 2 * builder_.total_codes : 0));
      work += work_.back();
    }
    if (in_.reduce() != nullptr) {
      reduced(search);
    } else {
      const int64_t threads = work < FORK_NS ? 1 : in_.n_threads;
      const int64_t share = work / (3 * threads) + 1;
      size_t k = 0;  // the longest jobs: those whose slots are too few to share
      while (threads > 1 && k < jobs_.size() &&
             work_[k] / (int64_t)builder_.slices.size() > share &&
             nodes_[jobs_[k].small].n_rows >= ROW_SPLIT && !builder_.many_tiles(jobs_.size())) {
        by_row(jobs_[k++], search);
      }
      by_part(k, threads == 1 ? work + 1 : share, (int)threads, search);
    }
    for (const ChildHistograms& j : jobs_) {
      Node& parent = nodes_[j.parent];
      Node& small = nodes_[j.small];
      Node& large = nodes_[j.large];
      if (large.hist.data == parent.hist.data) {
        parent.hist.data = nullptr;
      }
      builder_.release(parent.hist);
      if (!search) {
        continue;
      }
      finder_.end_search(small, j.small);
      finder_.end_search(large, j.large);
      counts_.drop_parent_counts(j.large);
      for (const int32_t id : {j.small, j.large}) {
        if (!(nodes_[id].rank > 0)) {
          release(id);
        }
      }
    }
  }

  // One worker takes a child, or, where its work is more than a share, some slots of one.
  void by_part(size_t first_job, int64_t share, int n_threads, bool search) {
    struct Part {
      size_t job, first, last;  // slices
    };
    std::vector<Part> parts;
    const size_t n_slices = builder_.slices.size();
    for (size_t job = first_job; job < jobs_.size(); job++) {
      // there may be no rows
      const size_t n = std::clamp<size_t>((work_[job] + share - 1) / share, 1, n_slices);
      for (size_t k = 0; k < n; k++) {
        parts.push_back({job, n_slices * k / n, n_slices * (k + 1) / n});
      }
    }
    const auto n = (int64_t)parts.size();
    found_.assign(2 * parts.size(), Candidate{});
    run(n_threads, n, [&](int64_t k, int worker) {
      const auto at = (size_t)dealt(k, n, n_threads);  // every worker has long and short ones
      const Part& p = parts[at];
      const ChildHistograms& j = jobs_[p.job];
      found_[2 * at].score = nodes_[j.small].best.score;
      found_[2 * at + 1].score = nodes_[j.large].best.score;
      const bool whole = p.last - p.first == n_slices;
      build_and_search(j, whole ? builder_.tiles : builder_.tiles_of(p.first, p.last), worker,
                       search, found_[2 * at], found_[2 * at + 1]);
    });
    for (size_t k = 0; k < parts.size(); k++) {
      keep_best(jobs_[parts[k].job], found_[2 * k], found_[2 * k + 1]);
    }
  }
  void build_and_search(const ChildHistograms& j, const std::vector<TileSpan>& tiles, int worker,
                        bool search, Candidate& small_best, Candidate& large_best) {
    const Node& small = nodes_[j.small];
    const auto lists = std::find_if(tiles.begin(), tiles.end(), [&](const TileSpan& t) {
      return t.first >= b_.layout.first_list;
    });
    const auto n_others = (size_t)(lists - tiles.begin());
    // sums are searched while they are in the cache;
    for (size_t t = 0, end; t < tiles.size(); t = end) {
      // many rows stay there from tile to tile
      end = small.n_rows > STRIP && t < n_others ? n_others : t + 1;
      builder_.build_serial(small, small.hist, worker, tiles, t, end);
      subtract_and_search(j, tiles[t].first, tiles[end - 1].first + tiles[end - 1].width, search,
                          small_best, large_best);
    }
  }

  void by_row(const ChildHistograms& j, bool search) {
    found_.assign(2 * builder_.n_spans(), Candidate{});
    builder_.build_parallel(
        nodes_[j.small], nodes_[j.small].hist, [&](int first, int last, int span) {
          found_[2 * span].score = nodes_[j.small].best.score;
          found_[2 * span + 1].score = nodes_[j.large].best.score;
          subtract_and_search(j, first, last, search, found_[2 * span], found_[2 * span + 1]);
        });
    for (int span = 0; span < builder_.n_spans(); span++) {
      keep_best(j, found_[2 * span], found_[2 * span + 1]);
    }
  }

  // With other holders of rows: the histograms of the whole batch are built and reduced by one
  // call, then searched.
  void reduced(bool search) {
    std::vector<Histogram> small;
    NodeIds children;
    for (const ChildHistograms& j : jobs_) {
      small.push_back(nodes_[j.small].hist);
      children.insert(children.end(), {j.small, j.large});
    }
    const std::vector<TileSpan>& parts = in_.n_threads == 1 ? builder_.tiles : builder_.slices;
    const int64_t each = in_.n_threads == 1 ? 1 : (int64_t)parts.size();  // tasks of a job
    run(in_.n_threads, (int64_t)jobs_.size() * each, [&](int64_t k, int worker) {
      const size_t first = (size_t)(k % each);
      const size_t end = each == 1 ? parts.size() : first + 1;
      builder_.build_serial(nodes_[jobs_[k / each].small], small[k / each], worker, parts, first,
                            end);
    });
    if (search && searched_by_owners_) {
      return search_owned(small, children);
    }
    std::vector<int64_t> rows;
    for (const int32_t id : counts_late() ? children : NodeIds{}) {
      rows.push_back(nodes_[id].own_rows);
    }
    builder_.reduce(small, rows);
    for (size_t k = 0; k < rows.size(); k++) {
      nodes_[children[k]].n_rows = rows[k];
    }
    if (search) {
      finder_.prepare_counts(children);
    }
    run(in_.n_threads, (int64_t)jobs_.size(), [&](int64_t k, int) {
      const ChildHistograms& j = jobs_[k];
      subtract_and_search(j, 0, builder_.n_slots(), search, nodes_[j.small].best,
                          nodes_[j.large].best);
    });
  }

  // Wide data: each holder adds up and searches the slots that it owns, and keeps no others. The
  // best splits of all are compared; they are bits of integers and of scores, which are functions
  // of integers.
  void search_owned(const std::vector<Histogram>& small, const NodeIds& children) {
    struct Found {
      int64_t rows;  // of this holder
      Candidate best;
    };
    const auto [first, last] = builder_.reduce_owned(small);
    run(in_.n_threads, (int64_t)jobs_.size(), [&, first = first, last = last](int64_t k, int) {
      const ChildHistograms& j = jobs_[k];
      subtract_and_search(j, first, last, true, nodes_[j.small].best, nodes_[j.large].best);
    });
    std::string mine(children.size() * sizeof(Found), '\0');
    for (size_t k = 0; k < children.size(); k++) {
      const Found found{nodes_[children[k]].own_rows, nodes_[children[k]].best};
      memcpy(mine.data() + k * sizeof found, &found, sizeof found);
    }
    for (const int32_t id : children) {
      nodes_[id].n_rows = 0;
      nodes_[id].best.column = -1;
    }
    for (const std::string& of : share(*in_.reduce(), mine)) {
      if (of.size() != mine.size()) {
        throw std::runtime_error("a holder has found splits of other nodes.");
      }
      for (size_t k = 0; k < children.size(); k++) {
        Found found;
        memcpy(&found, of.data() + k * sizeof found, sizeof found);
        Node& n = nodes_[children[k]];
        n.n_rows += found.rows;
        if (better(found.best, n.best)) {
          n.best = found.best;
        }
      }
    }
  }

  void subtract_and_search(const ChildHistograms& j, int first, int last, bool search,
                           Candidate& small_best, Candidate& large_best) {
    // slots whose histograms, parent and child, stay in L1 from subtraction to search
    constexpr int SLOTS = 4;
    const Node& small = nodes_[j.small];
    const Node& large = nodes_[j.large];
    for (int at = first; at < last; at += SLOTS) {
      const int end = std::min(last, at + SLOTS);
      builder_.fill_default_bins(small.hist, small.sum, at, end);
      if (j.rest) {
        builder_.subtract(nodes_[j.parent].hist, small.hist, large.hist, at, end);
      }
      builder_.marginalise(small.hist, at, end);
      if (j.rest) {
        builder_.marginalise(large.hist, at, end);
      }
      if (!search) {
        continue;
      }
      finder_.scan_slots(small, j.small, at, end, last, small_best);
      if (j.rest) {
        finder_.scan_slots(large, j.large, at, end, last, large_best);
      }
    }
  }

  // Sums of a histogram from which on its slots have owners; and for each holder, who sends its
  // best splits to all.
  static constexpr size_t OWNED_SUMS = 1 << 14, OWNED_SUMS_BY_HOLDER = 32;
  bool has_owners() const {
    if (in_.reduce() == nullptr || !counts_late() || finder_.counts_rows() ||
        finder_.depends_on_id()) {
      return false;
    }
    const size_t n_holders = in_.reduce()->size();
    return n_holders > 2 &&
           b_.layout.n_slot_sums >= std::max(OWNED_SUMS, OWNED_SUMS_BY_HOLDER * n_holders);
  }
  const bool searched_by_owners_ = has_owners();
  std::vector<Candidate> found_;
  std::vector<int64_t> work_;  // (jobs) estimated nanoseconds
};

}  // namespace sapwood
