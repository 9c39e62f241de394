#include "slots.h"

#include <algorithm>

#include "kernels.h"

namespace sapwood {
namespace {

size_t padded(size_t n) { return (n + 7) / 8 * 8; }  // scans read eight sums at a time

size_t sums_of(const Slot& s) {
  if (s.code_bytes == 1) return HIST_STRIDE;
  const size_t n = padded((size_t)s.n_codes);
  return n * 8 % 2048 == 0 ? n + 8 : n;  // as HIST_STRIDE: no aliases in the L1 cache
}

void add_groups(Layout& l, int first, int last, int most) {
  const int n = last - first, n_groups = (n + most - 1) / most;
  for (int k = 0; k < n_groups; k++) {
    const int from = first + (int)((int64_t)n * k / n_groups), to = first + (int)((int64_t)n * (k + 1) / n_groups);
    const size_t bytes = l.slots[from].code_bytes, width = (size_t)(to - from),
                 stride = bytes == 1 ? (width + 3) / 4 * 4 : width;  // rows of bytes are copied in words
    l.groups.push_back({from, to - from, bytes, stride, l.row_bytes});
    l.row_bytes += stride * bytes;
  }
}

}  // namespace

void Layout::by_slot(std::vector<int>& columns) const {
  if (in_order) return;
  std::stable_sort(columns.begin(), columns.end(), [&](int a, int b) { return members[a].slot < members[b].slot; });
}

Layout lay_out(const std::vector<int>& n_bins, bool exact) {
  Layout l;
  const int n_columns = (int)n_bins.size();
  l.members.resize(n_columns), l.column_at.resize(n_columns);
  auto alone = [&](int c, size_t bytes) {
    const int n = n_bins[c] + 1;
    l.members[c] = {(int)l.slots.size(), 1, (uint32_t)n};
    l.slots.push_back({{c}, n, bytes});
  };
  for (int c = 0; c < n_columns; c++)
    if (exact || n_bins[c] <= 255) alone(c, exact ? 4 : 1);
  const int n_narrow = (int)l.slots.size();
  for (int c = 0; c < n_columns; c++)
    if (!exact && n_bins[c] > 255) alone(c, 2);
  const int n_slots = (int)l.slots.size();

  l.wide = exact || n_slots > n_narrow;
  if (!exact) add_groups(l, 0, n_narrow, GROUP), add_groups(l, n_narrow, n_slots, TILE);
  for (const Slot& s : l.slots) {
    l.slot_at.push_back(l.n_slot_sums);
    l.n_slot_sums += sums_of(s);
  }
  l.n_sums = l.n_slot_sums;
  for (int s = 0; s < n_slots; s++)
    for (const int c : l.slots[s].columns) {
      l.in_order = l.in_order && s == c;
      l.column_at[c] = l.slots[s].fused() ? l.n_sums : l.slot_at[s];
      if (l.slots[s].fused()) l.n_sums += padded((size_t)n_bins[c] + 1);
    }
  return l;
}

}  // namespace sapwood
