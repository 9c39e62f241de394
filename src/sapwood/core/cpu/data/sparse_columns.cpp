#include "cpu/data/sparse_columns.h"

#include <string.h>

#include "cpu/kernels/kernels.h"
#include "host/pool.h"

namespace sapwood {
namespace {

// a column stays sparse if at most one row in so many is stored
constexpr int64_t MIN_SPARSITY = 4;
// a bundle that fills fewer than one row in so many is not worth a plane
constexpr int64_t LOOSE = 8;
constexpr int MAX_CODES = 4096;      // of a bundle: its sums stay in L1
constexpr int LIST_CODES = 65536;    // of lists: codes of 16 bits, sums that stay in L2
constexpr size_t OPEN_BUNDLES = 64;  // that a column may join, those that last got one first

uint16_t code_of(double x, const PaddedCuts& cuts) {
  uint16_t code;
  kernels().bin64(&x, 1, cuts.d.data(), cuts.n, &code);
  return code;
}

struct Bundle {
  BundlePlan plan;
  int n_codes = 1;  // 0: all members have their default codes
  int64_t n_rows = 0;
  std::vector<uint64_t> taken;  // a bit a row
};

}  // namespace

std::vector<int> default_codes(const std::vector<Chunk>& chunks,
                               const std::vector<PaddedCuts>& cuts) {
  std::vector<int> default_code(cuts.size(), -1);
  for (size_t c = 0; c < cuts.size(); c++) {
    int64_t n_rows = 0;
    int64_t n_stored = 0;
    bool sparse = true;
    for (const Chunk& chunk : chunks) {
      const Column& column = chunk.columns[c];
      sparse =
          sparse && column.sparse() &&
          code_of(column.fill_value, cuts[c]) == code_of(chunks[0].columns[c].fill_value, cuts[c]);
      n_rows += chunk.n_rows;
      n_stored += column.n_stored;
    }
    if (sparse && n_stored * MIN_SPARSITY <= n_rows) {
      default_code[c] = code_of(chunks[0].columns[c].fill_value, cuts[c]);
    }
  }
  return default_code;
}

SparseColumns::SparseColumns(const Chunk& chunk, const std::vector<int>& default_code,
                             const std::vector<PaddedCuts>& cuts, int n_threads)
    : begin_(default_code.size(), 0),
      count_(default_code.size(), 0),
      rows_of_(default_code.size(), nullptr),
      filtered_(default_code.size()) {
  int64_t at = 0;
  for (size_t c = 0; c < default_code.size(); c++) {
    begin_[c] = at;
    if (default_code[c] >= 0) {
      at += chunk.columns[c].n_stored;
    }
  }
  codes_ = Memory((size_t)at * 2);
  run(n_threads, (int64_t)default_code.size(), [&](int64_t c, int) {
    if (default_code[c] < 0) {
      return;
    }
    const Column& column = chunk.columns[c];
    uint16_t* codes = codes_.as<uint16_t>() + begin_[c];
    for (int64_t first = 0; first < column.n_stored; first += BLOCK) {
      encode(column.stored(), first, (int)std::min<int64_t>(BLOCK, column.n_stored - first),
             cuts[c], codes + first);
    }
    const int64_t n_default = std::count(codes, codes + column.n_stored, (uint16_t)default_code[c]);
    count_[c] = column.n_stored - n_default;
    rows_of_[c] = column.rows;
    if (n_default == 0) {
      return;
    }
    std::vector<int32_t> rows(column.n_stored);
    int64_t n = 0;
    // a stored zero is overwritten by the next entry
    for (int64_t i = 0; i < column.n_stored; i++) {
      rows[n] = column.rows[i];
      codes[n] = codes[i];
      n += codes[i] != default_code[c];
    }
    filtered_[c] = std::move(rows);
    rows_of_[c] = filtered_[c].data();
  });
}

void SparseColumns::keep(const std::vector<uint8_t>& wanted) {
  int64_t n = 0;
  for (size_t c = 0; c < wanted.size(); c++) {
    n += wanted[c] ? count_[c] : 0;
  }
  Memory rows((size_t)n * 4);
  Memory codes((size_t)n * 2);
  int64_t at = 0;
  for (size_t c = 0; c < wanted.size(); c++) {
    if (!wanted[c]) {
      count_[c] = 0;
    }
    if (count_[c] > 0) {
      memcpy(rows.as<int32_t>() + at, of((int)c).rows, (size_t)count_[c] * 4);
      memcpy(codes.as<uint16_t>() + at, of((int)c).codes, (size_t)count_[c] * 2);
    }
    begin_[c] = at;
    rows_of_[c] = rows.as<int32_t>() + at;
    at += count_[c];
  }
  rows_ = std::move(rows);
  codes_ = std::move(codes);
  filtered_ = {};
}

RowCodes::RowCodes(const SparseColumns& sparse, const Layout& layout, const Slot& slot,
                   int64_t n_rows)
    : offset((size_t)(n_rows + 1) * 4) {
  uint32_t* at = offset.as<uint32_t>();
  memset(at, 0, (size_t)(n_rows + 1) * 4);
  for (const int c : slot.columns) {
    const Entries e = sparse.of(c);
    for (int64_t i = 0; i < e.n; i++) {
      at[e.rows[i] + 1]++;
    }
  }
  for (int64_t r = 0; r < n_rows; r++) {
    at[r + 1] += at[r];
  }
  codes = Memory((size_t)at[n_rows] * 2 + 64);
  for (const int c : slot.columns) {  // at[r] moves on to where row r + 1 began
    const Entries e = sparse.of(c);
    const uint32_t first = layout.members[c].first;
    for (int64_t i = 0; i < e.n; i++) {
      codes.as<uint16_t>()[at[e.rows[i]]++] = (uint16_t)(first + e.codes[i]);
    }
  }
  memmove(at + 1, at, (size_t)n_rows * 4);
  at[0] = 0;
}

// Greedy, columns with many entries first: large columns that fit together are bundled before small
// ones fill the gaps. The choice does not depend on threads or chunks, and no choice changes a sum.
std::vector<BundlePlan> bundle_columns(const std::vector<SparseColumns>& shards,
                                       const std::vector<int64_t>& first, int64_t n_rows,
                                       const std::vector<int>& default_code,
                                       const std::vector<int>& n_bins,
                                       const std::vector<uint8_t>& has_missing) {
  std::vector<Bundle> open;
  std::vector<Bundle> done;
  std::vector<int> listed;
  auto each_row = [&](int c, auto&& f) {  // until f says no
    for (size_t s = 0; s < shards.size(); s++) {
      const Entries e = shards[s].of(c);
      for (int64_t i = 0; i < e.n; i++) {
        if (!f(first[s] + e.rows[i])) {
          return false;
        }
      }
    }
    return true;
  };
  auto put = [&](int c, Bundle& b) {
    b.plan.columns.push_back(c);
    b.n_codes += n_bins[c] + has_missing[c];
    each_row(c, [&](int64_t r) {
      return b.taken[r >> 6] |= 1ull << (r & 63), ++b.n_rows > 0;
    });
  };
  auto fits = [&](int c, const Bundle& b) {
    return b.n_codes + n_bins[c] + has_missing[c] <= MAX_CODES && each_row(c, [&](int64_t r) {
             return (b.taken[r >> 6] >> (r & 63) & 1) == 0;
           });
  };
  std::vector<std::pair<int64_t, int>> order;  // less entries, column
  for (int c = 0; c < (int)default_code.size(); c++) {
    int64_t n = 0;
    for (const SparseColumns& shard : shards) {
      n -= shard.of(c).n;
    }
    if (default_code[c] >= 0) {
      order.push_back({n, c});
    }
  }
  std::sort(order.begin(), order.end());
  for (const auto& [_, c] : order) {
    // A bundle's codes that go right are one range, unless a column has missing values beside its
    // default code.
    if ((has_missing[c] && default_code[c] != n_bins[c]) || n_bins[c] >= MAX_CODES) {
      listed.push_back(c);
      continue;
    }
    size_t k = open.size();
    while (k > 0 && !fits(c, open[k - 1])) {
      k--;
    }
    if (k == 0) {
      if (open.size() == OPEN_BUNDLES) {
        done.push_back(std::move(open[0]));
        open.erase(open.begin());
      }
      open.push_back({});
      open.back().taken.assign((size_t)n_rows / 64 + 1, 0);
    } else {
      std::rotate(open.begin() + k - 1, open.begin() + k, open.end());
    }
    put(c, open.back());
  }
  std::vector<BundlePlan> plans;
  for (auto* some : {&done, &open}) {
    for (Bundle& b : *some) {
      std::sort(b.plan.columns.begin(), b.plan.columns.end());
      if (b.n_rows * LOOSE >= n_rows && b.plan.columns.size() > 1) {
        plans.push_back(std::move(b.plan));
      } else if (b.n_rows * LOOSE < n_rows) {
        listed.insert(listed.end(), b.plan.columns.begin(), b.plan.columns.end());
      }
    }  // what is neither is a column alone, and has a slot of its own
  }
  std::sort(plans.begin(), plans.end(), [](const BundlePlan& a, const BundlePlan& b) {
    return a.columns[0] < b.columns[0];
  });
  std::sort(listed.begin(), listed.end());
  int room = 0;
  for (const int c : listed) {
    const int n = n_bins[c] + has_missing[c];
    if (room < n) {
      plans.push_back({{}, true});
      room = LIST_CODES;
    }
    plans.back().columns.push_back(c);
    room -= n;
  }
  return plans;
}

}  // namespace sapwood
