#include "records/layout.h"

#include <algorithm>
#include <set>

#include "records/sizes.h"

namespace sapwood {
namespace {

constexpr int MAX_FUSED_CODES = 256;  // maximum codes of a fused slot: a byte

// Whether a column of n codes should join a slot of p codes. It saves one update per row; it costs
// more sums in every node, and their marginals. Measured (benchmarks/slots.py) with 63 leaves: two
// columns of 16 values are faster in one slot from 14,000 rows on, eight columns of 2 values from
// 2,500. The cost of a call is taken as 16 sums.
bool pays(int p, int n, int64_t n_rows) {
  return (int64_t)(p * n - p - n + 16) * 64 <= n_rows;
}

uint32_t codes_of(int c, const std::vector<int>& n_bins, const std::vector<uint8_t>& missing) {
  return (uint32_t)n_bins[c] + (missing[c] ? 1 : 0);
}

// Greedy packing of columns with few codes: the largest first, each into the first slot that has
// room.
void pack(std::vector<int> few, const std::vector<int>& n_bins, const std::vector<uint8_t>& missing,
          int64_t n_rows, std::vector<Slot>& slots) {
  auto n_codes = [&](int c) {
    return (int)codes_of(c, n_bins, missing);
  };
  std::stable_sort(few.begin(), few.end(), [&](int a, int b) {
    return n_codes(a) > n_codes(b);
  });
  const size_t first = slots.size();
  // slots with room, by their number of codes
  std::vector<std::set<size_t>> open(MAX_FUSED_CODES + 1);
  for (const int c : few) {
    const int n = n_codes(c);
    size_t at = slots.size();
    for (int p = 1; p * n <= MAX_FUSED_CODES; p++) {
      if (!open[p].empty() && pays(p, n, n_rows)) {
        at = std::min(at, *open[p].begin());
      }
    }
    if (at == slots.size()) {
      slots.push_back({{}, 1, 1});
    } else {
      open[slots[at].n_codes].erase(at);
    }
    slots[at].columns.push_back(c);
    slots[at].n_codes *= n;
    if (slots[at].columns.size() < MAX_MEMBERS) {
      open[slots[at].n_codes].insert(at);
    }
  }
  for (auto s = slots.begin() + first; s != slots.end(); s++) {
    if (!s->fused()) {
      s->n_codes = n_bins[s->columns[0]] + 1;
    }
  }
}

int lowest(const Slot& s) {
  return *std::min_element(s.columns.begin(), s.columns.end());
}

size_t padded(size_t n) {
  return (n + 7) / 8 * 8;
}  // scans read eight sums at a time

size_t sums_of(const Slot& s) {
  if (s.code_bytes == 1) {
    return HIST_STRIDE;
  }
  const size_t n = padded((size_t)s.n_codes);
  return n * 8 % 2048 == 0 ? n + 8 : n;  // as HIST_STRIDE: avoids aliases in the L1 cache
}

void add_blocks(Layout& l, int first, int last, int max_width) {
  const int n = last - first;
  const int n_blocks = (n + max_width - 1) / max_width;
  for (int k = 0; k < n_blocks; k++) {
    const int from = first + (int)((int64_t)n * k / n_blocks);
    const int to = first + (int)((int64_t)n * (k + 1) / n_blocks);
    const size_t bytes = l.slots[from].code_bytes;
    const size_t width = (size_t)(to - from);
    // rows of bytes are copied in words
    const size_t stride = bytes == 1 ? (width + 3) / 4 * 4 : width;
    l.blocks.push_back({from, to - from, bytes, stride, l.row_bytes});
    l.row_bytes += stride * bytes;
  }
}

}  // namespace

void Layout::by_slot(std::vector<int>& columns) const {
  if (in_order) {
    return;
  }
  std::stable_sort(columns.begin(), columns.end(), [&](int a, int b) {
    return members[a].slot < members[b].slot;
  });
}

bool may_fuse(int n_bins, int64_t n_rows) {
  return n_bins <= MAX_FUSED_CODES / 2 && pays(2, n_bins, n_rows);
}

Layout lay_out(const std::vector<int>& n_bins, const std::vector<uint8_t>& missing,
               const std::vector<int>& default_code, const std::vector<BundlePlan>& plans,
               int64_t n_rows, bool exact) {
  Layout l;
  const int n_columns = (int)n_bins.size();
  std::vector<uint8_t> in_bundle(n_columns, 0);
  for (const BundlePlan& plan : plans) {
    // code 0 of a bundle: all members have their default codes
    Slot slot{plan.columns, plan.lists ? 0 : 1, 0, true};
    for (const int c : plan.columns) {
      in_bundle[c] = 1;
      slot.n_codes += (int)codes_of(c, n_bins, missing);
    }
    if (!plan.lists) {
      slot.code_bytes = slot.n_codes <= 256 ? 1 : 2;
    }
    l.slots.push_back(std::move(slot));
  }
  std::vector<int> few;
  for (int c = 0; c < n_columns; c++) {
    if (in_bundle[c]) {
      continue;
    }
    if (!exact && may_fuse(n_bins[c], n_rows)) {
      few.push_back(c);
    } else {
      l.slots.push_back({{c}, n_bins[c] + 1, exact ? 4u : n_bins[c] <= 255 ? 1u : 2u});
    }
  }
  pack(few, n_bins, missing, n_rows, l.slots);
  std::sort(l.slots.begin(), l.slots.end(), [](const Slot& a, const Slot& b) {
    const size_t wide = a.lists() ? 8 : a.code_bytes;
    const size_t other = b.lists() ? 8 : b.code_bytes;  // lists come last
    return wide != other ? wide < other : lowest(a) < lowest(b);
  });
  const int n_slots = (int)l.slots.size();
  int n_narrow = 0;
  for (const Slot& s : l.slots) {
    n_narrow += s.code_bytes == 1;
    l.first_list += !s.lists();
  }
  l.members.resize(n_columns);
  l.column_at.resize(n_columns);
  for (int s = 0; s < n_slots; s++) {
    uint32_t first = l.slots[s].lists() ? 0 : 1;
    for (const int c : l.slots[s].bundled ? l.slots[s].columns : std::vector<int>{}) {
      l.members[c] = {s, 1, codes_of(c, n_bins, missing), first, default_code[c]};
      first += l.members[c].n;
    }
    uint32_t step = 1;
    for (auto c = l.slots[s].columns.rbegin();
         !l.slots[s].bundled && c != l.slots[s].columns.rend(); c++) {
      const uint32_t n =
          l.slots[s].fused() ? codes_of(*c, n_bins, missing) : (uint32_t)n_bins[*c] + 1;
      l.members[*c] = {s, step, n};
      step *= n;
    }
  }

  l.wide = exact || n_slots > n_narrow;
  if (!exact) {
    add_blocks(l, 0, n_narrow, SLOT_BLOCK);
    add_blocks(l, n_narrow, l.first_list, TILE);
  }
  for (int s = l.first_list; s < n_slots; s++) {
    add_blocks(l, s, s + 1, 1);
  }
  for (const Slot& s : l.slots) {
    l.slot_at.push_back(l.n_slot_sums);
    l.n_slot_sums += sums_of(s);
  }
  l.n_sums = l.n_slot_sums;
  for (int s = 0; s < n_slots; s++) {
    for (const int c : l.slots[s].columns) {
      l.in_order = l.in_order && s == c;
      l.column_at[c] = l.slots[s].fused() ? l.n_sums : l.slot_at[s] + l.members[c].first;
      if (l.slots[s].fused()) {
        l.n_sums += padded((size_t)n_bins[c] + 1);
      }
    }
  }
  return l;
}

}  // namespace sapwood
