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

Layout lay_out(const std::vector<int>& n_bins, const std::vector<uint8_t>& has_missing, const std::vector<int>& usual,
               const std::vector<Share>& shares, bool exact) {
  Layout l;
  const int n_columns = (int)n_bins.size();
  l.members.resize(n_columns), l.column_at.resize(n_columns);
  auto alone = [&](int c, size_t bytes) {
    const int n = n_bins[c] + 1;
    l.members[c] = {(int)l.slots.size(), 1, (uint32_t)n};
    l.slots.push_back({{c}, n, bytes});
  };
  std::vector<uint8_t> shares_slot(n_columns, 0);
  for (const Share& share : shares)
    for (const int c : share.columns) shares_slot[c] = 1;
  auto together = [&](const Share& share, size_t bytes) {
    Slot slot{share.columns, share.lists ? 0 : 1, bytes, true};  // code 0 of a bundle: all members have their usual one
    for (const int c : share.columns) {
      const uint32_t n = (uint32_t)(n_bins[c] + has_missing[c]);
      l.members[c] = {(int)l.slots.size(), 1, n, (uint32_t)slot.n_codes, usual[c]};
      slot.n_codes += (int)n;
    }
    l.slots.push_back(std::move(slot));
  };
  auto bytes_of = [&](const Share& share) -> size_t {
    int n = 1;
    for (const int c : share.columns) n += n_bins[c] + has_missing[c];
    return share.lists ? 0 : n <= 256 ? 1 : 2;
  };
  for (int c = 0; c < n_columns; c++)
    if (!shares_slot[c] && (exact || n_bins[c] <= 255)) alone(c, exact ? 4 : 1);
  for (const Share& share : shares)
    if (bytes_of(share) == 1) together(share, 1);
  const int n_narrow = (int)l.slots.size();
  for (int c = 0; c < n_columns; c++)
    if (!shares_slot[c] && !exact && n_bins[c] > 255) alone(c, 2);
  for (const Share& share : shares)
    if (bytes_of(share) == 2) together(share, 2);
  l.first_list = (int)l.slots.size();
  for (const Share& share : shares)
    if (share.lists) together(share, 0);
  const int n_slots = (int)l.slots.size();

  l.wide = exact || n_slots > n_narrow;
  if (!exact) add_groups(l, 0, n_narrow, GROUP), add_groups(l, n_narrow, l.first_list, TILE);
  for (int s = l.first_list; s < n_slots; s++) add_groups(l, s, s + 1, 1);
  for (const Slot& s : l.slots) {
    l.slot_at.push_back(l.n_slot_sums);
    l.n_slot_sums += sums_of(s);
  }
  l.n_sums = l.n_slot_sums;
  for (int s = 0; s < n_slots; s++)
    for (const int c : l.slots[s].columns) {
      l.in_order = l.in_order && s == c;
      l.column_at[c] = l.slots[s].fused() ? l.n_sums : l.slot_at[s] + l.members[c].first;
      if (l.slots[s].fused()) l.n_sums += padded((size_t)n_bins[c] + 1);
    }
  return l;
}

}  // namespace sapwood
