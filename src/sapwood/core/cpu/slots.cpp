#include "slots.h"

#include <algorithm>

#include "kernels.h"

namespace sapwood {
namespace {

constexpr int FUSED_CODES = 256;  // of a slot at most: a byte

uint32_t codes_of(int c, const std::vector<int>& n_bins, const std::vector<uint8_t>& missing) {
  return (uint32_t)n_bins[c] + (missing[c] ? 1 : 0);
}

// Columns with few codes into as few slots as a greedy order gives: the largest first, each into the first slot that has room.
void pack(std::vector<int> few, const std::vector<int>& n_bins, const std::vector<uint8_t>& missing,
          std::vector<Slot>& slots) {
  auto n_codes = [&](int c) { return (int)codes_of(c, n_bins, missing); };
  std::stable_sort(few.begin(), few.end(), [&](int a, int b) { return n_codes(a) > n_codes(b); });
  const size_t first = slots.size();
  for (const int c : few) {
    auto at = std::find_if(slots.begin() + first, slots.end(), [&](const Slot& s) {
      return s.n_codes * n_codes(c) <= FUSED_CODES && s.columns.size() < MOST_MEMBERS;
    });
    if (at == slots.end()) at = slots.insert(at, {{}, 1, 1});
    at->columns.push_back(c), at->n_codes *= n_codes(c);
  }
  for (auto s = slots.begin() + first; s != slots.end(); s++)
    if (!s->fused()) s->n_codes = n_bins[s->columns[0]] + 1;
}

int lowest(const Slot& s) { return *std::min_element(s.columns.begin(), s.columns.end()); }

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

bool may_fuse(int n_bins) { return n_bins <= FUSED_CODES / 2; }

Layout lay_out(const std::vector<int>& n_bins, const std::vector<uint8_t>& missing, bool fuse, bool exact) {
  Layout l;
  const int n_columns = (int)n_bins.size();
  std::vector<int> few;
  for (int c = 0; c < n_columns; c++) {
    if (fuse && !exact && may_fuse(n_bins[c])) few.push_back(c);
    else l.slots.push_back({{c}, n_bins[c] + 1, exact ? 4u : n_bins[c] <= 255 ? 1u : 2u});
  }
  pack(few, n_bins, missing, l.slots);
  std::sort(l.slots.begin(), l.slots.end(), [](const Slot& a, const Slot& b) {
    return a.code_bytes != b.code_bytes ? a.code_bytes < b.code_bytes : lowest(a) < lowest(b);
  });
  const int n_slots = (int)l.slots.size();
  int n_narrow = 0;
  for (const Slot& s : l.slots) n_narrow += s.code_bytes == 1;
  l.members.resize(n_columns), l.column_at.resize(n_columns);
  for (int s = 0; s < n_slots; s++) {
    uint32_t step = 1;
    for (auto c = l.slots[s].columns.rbegin(); c != l.slots[s].columns.rend(); c++) {
      const uint32_t n = l.slots[s].fused() ? codes_of(*c, n_bins, missing) : (uint32_t)n_bins[*c] + 1;
      l.members[*c] = {s, step, n};
      step *= n;
    }
  }

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
