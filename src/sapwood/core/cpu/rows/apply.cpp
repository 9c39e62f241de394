#include "cpu/rows/apply.h"

#include <string.h>

#include <algorithm>
#include <map>

#include "host/pool.h"
#include "host/resident.h"

namespace sapwood {

Split in_slot(const Layout& layout, int column, const Split& split, uint64_t* bits) {
  const Slot& slot = layout.slot_of(column);
  if (slot.bundled && !slot.lists()) {
    // Columns of a bundle have no missing values beside their default code: the codes on one side
    // are a range.
    const Member& m = layout.members[column];
    if (goes_right(split, (uint32_t)m.default_code)) {
      return {m.first + split.low, (uint32_t)-split.low};  // all codes but the left ones
    }
    return {m.first + split.low, std::min(split.low + split.length, m.n) - split.low};
  }
  if (!slot.fused()) {
    return split;
  }
  std::fill_n(bits, SET_WORDS, 0);
  layout.each_code(column, [&](uint32_t k, uint32_t code) {
    bits[k >> 6] |= (uint64_t)goes_right(split, code) << (k & 63);
  });
  return {0, 0, bits};
}

Splits::Splits(const Binned& b, const TreeView& t) : of(t.n_nodes) {
  std::map<std::pair<int32_t, bool>, size_t> places;  // (set, missing left) -> index into `bits`
  for (int u = 0; u < t.n_nodes; u++) {
    if (t.left[u] == 0) {
      continue;
    }
    const int n_bins = b.n_bins[t.column[u]];
    const bool side = (t.missing_left[u] & 1) != 0;
    if (t.set[u] < 0) {
      of[u] = threshold_split((uint32_t)t.bin[u], (uint32_t)n_bins, side);
    } else if (places.try_emplace({t.set[u], side}, bits.size()).second) {
      const int64_t first = t.set_offset[t.set[u]];
      const int64_t last = t.set_offset[t.set[u] + 1];
      bits.resize(bits.size() + set_words((size_t)n_bins + 1));
      fill_set(t.set_code + first, (size_t)(last - first), n_bins, side,
               &bits[places[{t.set[u], side}]]);
    }
  }
  for (int u = 0; u < t.n_nodes && !places.empty(); u++) {
    if (t.left[u] != 0 && t.set[u] >= 0) {
      of[u].set = &bits[places[{t.set[u], (t.missing_left[u] & 1) != 0}]];
    }
  }
  auto is_joint = [&](int u) {
    return t.left[u] != 0 && b.layout.slot_of(t.column[u]).columns.size() > 1;
  };
  size_t n_fused = 0;
  for (int u = 0; u < t.n_nodes; u++) {
    n_fused += is_joint(u);
  }
  fused.resize(n_fused * SET_WORDS);
  for (int u = 0, k = 0; u < t.n_nodes && n_fused > 0; u++) {
    if (is_joint(u)) {
      of[u] = in_slot(b.layout, t.column[u], of[u], &fused[SET_WORDS * k++]);
    }
  }
}

MaskTree mask_tree(const Binned& b, const TreeView& t) {
  MaskTree m{
      Splits(b, t), std::vector<MaskNode>(t.n_nodes), std::vector<int32_t>(t.n_nodes), {}, 0};
  auto same = [&](int u, int v) {
    return t.column[u] == t.column[v] && t.bin[u] == t.bin[v] && t.set[u] == t.set[v] &&
           t.missing_left[u] == t.missing_left[v];
  };
  auto make = [&](int u) {
    const int slot = b.layout.members[t.column[u]].slot;
    if (b.layout.slots[slot].code_bytes == 1) {
      return mask_node(slot, t.left[u], m.splits.of[u]);
    }
    // a level of a symmetric tree has one
    if (m.marked.empty() || !same(u, m.marked.back())) {
      m.marked.push_back(u);
    }
    return mask_node((int)(b.layout.slots.size() + m.marked.size()) - 1, t.left[u], {1, 255});
  };
  m.leaves.resize(pack_mask_tree(t.left, t.n_nodes, make, m.nodes.data(), m.leaves.data()));
  m.n_bits = bits_for((int)m.leaves.size());
  return m;
}

std::vector<const uint8_t*> byte_planes(const Binned& b, const Shard& s) {
  std::vector<const uint8_t*> planes(b.layout.slots.size());
  for (size_t k = 0; k < planes.size(); k++) {
    planes[k] = (const uint8_t*)b.plane(s, (int)k);
  }
  return planes;
}

namespace {
template <class Number>
std::vector<Number> leaf_numbers(const TreeView& t) {  // leaf number by node
  std::vector<Number> number(t.n_nodes, 0);
  for (int i = 0, k = 0; i < t.n_nodes; i++) {
    if (t.left[i] == 0) {
      number[i] = (Number)k++;
    }
  }
  return number;
}

// right (n) OUT: 255 where a row from `at` on goes right, else 0.
template <class Code>
void mark_right(const Code* code, const Split& split, int n, uint8_t* right) {
  if (split.set == nullptr) {
    for (int i = 0; i < n; i++) {
      right[i] = (uint8_t)-((uint32_t)code[i] - split.low < split.length);
    }
  } else {
    for (int i = 0; i < n; i++) {
      right[i] = (uint8_t)-goes_right(split, code[i]);
    }
  }
}
// The same in a slot without byte codes.
void mark_right(const Binned& b, const Shard& s, int column, const Split& split, int64_t at, int n,
                uint8_t* right) {
  const int slot = b.layout.members[column].slot;
  const void* plane = b.plane(s, slot);
  if (b.layout.slots[slot].lists()) {
    const Entries e = s.sparse.of(column);
    memset(right, -goes_right(split, (uint32_t)b.default_code[column]), (size_t)n);
    for (const int32_t* r = std::lower_bound(e.rows, e.rows + e.n, at);
         r < e.rows + e.n && *r < at + n; r++) {
      right[*r - at] = (uint8_t)-goes_right(split, e.codes[r - e.rows]);
    }
    return;
  }
  if (b.layout.slots[slot].code_bytes == 2) {
    mark_right((const uint16_t*)plane + at, split, n, right);
  } else {
    mark_right((const uint32_t*)plane + at, split, n, right);
  }
}

// leaf (n) OUT: name[node] of every row's leaf.
template <class Name>
void apply_as(const Binned& b, const TreeView& t, const std::vector<Name>& name, Name* leaf,
              int n_threads) {
  const MaskTree m = mask_tree(b, t);
  const bool few = m.leaves.size() <= 256;
  for (const Shard& s : b.shards) {
    const auto planes = byte_planes(b, s);
    run(threads_for(s.n_rows, n_threads), task_count(s.n_rows), [&](int64_t task, int) {
      touch((int64_t)planes.size() * FAULT_BYTES);
      std::vector<uint64_t> reach(few ? (size_t)t.n_nodes * BLOCK / 64 : 0);
      std::vector<uint8_t> right(few ? m.marked.size() * BLOCK : 0);
      std::vector<const uint8_t*> codes = planes;  // from row `at` on; then those of marked nodes
      for (size_t k = 0; k < right.size(); k += BLOCK) {
        codes.push_back(&right[k]);
      }
      for (int64_t at = task * TASK_ROWS; at < std::min(s.n_rows, (task + 1) * TASK_ROWS);
           at += BLOCK) {
        const int n = (int)std::min<int64_t>(BLOCK, s.n_rows - at);
        Name* out = leaf + s.first + at;
        if (few) {
          uint8_t number[BLOCK];
          for (size_t k = 0; k < planes.size(); k++) {
            codes[k] = planes[k] == nullptr ? nullptr : planes[k] + at;
          }
          for (size_t k = 0; k < m.marked.size(); k++) {
            mark_right(b, s, t.column[m.marked[k]], m.splits.of[m.marked[k]], at, n,
                       &right[k * BLOCK]);
          }
          kernels().find_leaves(codes.data(), 0, m.nodes.data(), t.n_nodes, m.n_bits, reach.data(),
                                number);
          for (int i = 0; i < n; i++) {
            out[i] = name[m.leaves[number[i]]];
          }
          continue;
        }
        for (int i = 0; i < n; i++) {
          int u = 0;
          while (t.left[u] != 0) {
            const uint32_t code = b.split_code(s, t.column[u], at + i);
            u = t.left[u] + goes_right(m.splits.of[u], code);
          }
          out[i] = name[u];
        }
      }
    });
  }
}

}  // namespace

void apply(const Binned& b, const TreeView& t, const LeafIds& leaf, int n_threads) {
  if (leaf.wide) {
    apply_as(b, t, leaf_numbers<uint16_t>(t), (uint16_t*)leaf.data, n_threads);
  } else {
    apply_as(b, t, leaf_numbers<uint8_t>(t), (uint8_t*)leaf.data, n_threads);
  }
}

void apply(const Binned& b, const TreeView& t, int32_t* leaf, int n_threads) {
  std::vector<int32_t> node(t.n_nodes);
  for (int u = 0; u < t.n_nodes; u++) {
    node[u] = u;
  }
  apply_as(b, t, node, leaf, n_threads);
}

}  // namespace sapwood
