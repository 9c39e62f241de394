#include "cpu/data/binned.h"

#include <string.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "cpu/data/transpose.h"
#include "host/pool.h"
#include "host/resident.h"
#include "math/real.h"

namespace sapwood {
namespace {

bool any_missing(const Column& column, int64_t first, int n, bool category) {
  // absent may be NaN
  const bool real = column.kind == DType::f32 || column.kind == DType::f64 || column.sparse();
  if (!real && !category) {
    return false;
  }
  bool any = false;
  if (category) {
    int32_t x[BLOCK];
    load_as<int32_t>(column, first, n, x);
    for (int i = 0; i < n; i++) {
      any |= x[i] < 0;
    }
  } else if (column.kind == DType::f32 && !column.sparse()) {
    float x[BLOCK];
    load_as<float>(column, first, n, x);
    for (int i = 0; i < n; i++) {
      any |= x[i] != x[i];
    }
  } else {
    double x[BLOCK];
    load(column, first, n, x);
    for (int i = 0; i < n; i++) {
      any |= x[i] != x[i];
    }
  }
  return any;
}
}  // namespace

PaddedCuts::PaddedCuts(const std::vector<double>& cuts) : n((int)cuts.size()) {
  size_t padded = 1;
  while (padded < cuts.size() + 1) {
    padded *= 2;
  }
  d = cuts;
  d.resize(std::max<size_t>(padded, 16), INF);
  f.resize(std::max<size_t>(padded, 272), (float)INF);
  for (size_t i = 0; i < cuts.size(); i++) {
    float down = (float)cuts[i];
    if ((double)down > cuts[i]) {
      down = std::nextafterf(down, -(float)INF);
    }
    f[i] = down;
  }
}

template <class Bin32, class Bin64, class Code>
static void encode_by(const Column& column, int64_t first, int n, const PaddedCuts& cuts,
                      Bin32 bin32, Bin64 bin64, Code* code) {
  if (column.kind == DType::f32 && !column.sparse()) {
    float x[BLOCK];
    load_as<float>(column, first, n, x);
    bin32(x, n, cuts.f.data(), cuts.n, code);
  } else {
    double x[BLOCK];
    load(column, first, n, x);
    bin64(x, n, cuts.d.data(), cuts.n, code);
  }
}

void encode(const Column& column, int64_t first, int n, const PaddedCuts& cuts, uint16_t* code) {
  encode_by(column, first, n, cuts, kernels().bin32, kernels().bin64, code);
}

void encode(const Column& column, int64_t first, int n, const PaddedCuts& cuts, uint8_t* code) {
  encode_by(column, first, n, cuts, kernels().bin32_byte, kernels().bin64_byte, code);
}

// Category codes are bin codes as they are; missing ones become the last code.
template <class Code>
static void encode_categories(const Column& column, int64_t first, int n, int n_categories,
                              Code* code) {
  int32_t x[BLOCK];
  load_as<int32_t>(column, first, n, x);
  bool fine = true;
  for (int i = 0; i < n; i++) {
    fine &= x[i] < n_categories;
    code[i] = (Code)(x[i] < 0 ? n_categories : x[i]);
  }
  if (!fine) {
    throw std::invalid_argument(
        "a category's code must be below the number of its column's categories");
  }
}

Binned::Binned(const std::vector<Chunk>& chunks, std::vector<std::vector<double>> cuts_,
               const std::vector<int>& n_categories, bool exact_, std::optional<bool> fuse,
               int n_threads, std::shared_ptr<const Reduce> reduce_,
               const std::vector<int64_t>& positions)
    : reduce(std::move(reduce_)), exact(exact_), cuts(std::move(cuts_)) {
  set_columns(n_categories);
  std::vector<PaddedCuts> ready(cuts.begin(), cuts.end());
  if (exact) {
    layout = lay_out(n_bins, has_missing, default_code, {}, 0, true);
    rank_chunks(chunks, ready, n_threads);
    n_total = n_rows;
    return;
  }
  std::vector<SparseColumns> sparse = encode_sparse(chunks, ready, fuse, n_threads);
  for (size_t k = 0; k < chunks.size(); k++) {
    encode_shard(chunks[k], std::move(sparse[k]), ready, n_threads);
  }
  for (size_t k = 0; k < shards.size(); k++) {
    shards[k].position = positions.empty() ? shards[k].first : positions[k];
  }
  std::vector<uint64_t> missing(has_missing.begin(), has_missing.end());
  reduce_max(reduce.get(), missing.data(), missing.size());
  has_missing.assign(missing.begin(), missing.end());
  n_total = n_rows;
  reduce_sum(reduce.get(), &n_total, 1);
}

Binned::Binned(Plan plan, int64_t held, std::optional<Codes> stored) : cuts(std::move(plan.cuts)) {
  set_columns(plan.n_categories);
  has_missing = std::move(plan.missing);
  layout = lay_out(n_bins, has_missing, default_code, {}, plan.n_rows, false);
  const bool fresh = !stored;
  Shard shard = new_shard(held, std::move(stored), plan.grows);
  if (fresh) {
    memset(shard.planes.as<char>(), 0, shard.planes.size());
  }
  shards.push_back(std::move(shard));
  n_total = n_rows;
}

void Binned::set_columns(const std::vector<int>& n_categories) {
  n_columns = (int)cuts.size();
  for (int c = 0; c < n_columns; c++) {
    is_category.push_back(n_categories[c] > 0);
    any_category |= n_categories[c] > 0;
    n_bins.push_back(is_category[c] ? n_categories[c] : (int)cuts[c].size() + 1);
  }
  has_missing.assign(n_columns, 0);
  default_code.assign(n_columns, -1);
}

template <class Code>
void Binned::add_codes(int column, const Code* codes) {
  const Member& m = layout.members[column];
  const Slot& slot = layout.slots[m.slot];
  const uint32_t step = slot.fused() ? m.step : 1;
  auto add = [&](auto* to) {
    for (int64_t i = 0; i < n_rows; i++) {
      to[i] = (std::remove_pointer_t<decltype(to)>)(to[i] + step * codes[i]);
    }
  };
  if (slot.code_bytes == 1) {
    add((uint8_t*)plane(shards[0], m.slot));
  } else {
    add((uint16_t*)plane(shards[0], m.slot));
  }
}
template void Binned::add_codes(int, const uint8_t*);
template void Binned::add_codes(int, const uint16_t*);

void Binned::finish(int n_threads) {
  if (shards[0].blocks.size() == 0) {
    return;
  }
  run(n_threads, (n_rows + BLOCK - 1) / BLOCK, [&](int64_t block, int) {
    const int64_t end = std::min(n_rows, (block + 1) * BLOCK);
    for (int64_t at = block * BLOCK; at < end; at += STRIPE_ROWS) {
      for (const SlotBlock& b : layout.blocks) {
        if (b.code_bytes != 0) {
          fill_block(shards[0], b, at, (int)std::min<int64_t>(STRIPE_ROWS, end - at));
        }
      }
    }
  });
}

// Copies the codes of some rows from planes to a block.
void Binned::fill_block(const Shard& shard, const SlotBlock& b, int64_t at, int n) const {
  char* rows = (char*)block(shard, b) + (size_t)at * b.stride * b.code_bytes;
  const uint8_t* bytes[SLOT_BLOCK];
  for (int k = 0; k < b.width; k++) {
    const char* own = (const char*)plane(shard, b.first + k) + (size_t)at * b.code_bytes;
    bytes[k] = (const uint8_t*)own;
    for (int i = 0; i < n && b.code_bytes == 2; i++) {
      ((uint16_t*)rows)[i * b.stride + k] = ((const uint16_t*)own)[i];
    }
  }
  if (b.code_bytes == 1) {
    kernels().interleave(bytes, b.width, n, (uint8_t*)rows, b.stride);
  }
  // The padding is never read as a code, but it is written, so that bytes are defined.
  for (int i = 0; i < n && b.stride > (size_t)b.width; i++) {
    memset(rows + (i * b.stride + b.width) * b.code_bytes, 0, (b.stride - b.width) * b.code_bytes);
  }
}

// Encodes the sparse columns and lays out all of them. The layout of dealt rows must be the same
// for all holders, so it does not depend on the rows then: every column has a slot of its own.
std::vector<SparseColumns> Binned::encode_sparse(const std::vector<Chunk>& chunks,
                                                 const std::vector<PaddedCuts>& ready,
                                                 std::optional<bool> fuse, int n_threads) {
  if (reduce == nullptr) {
    default_code = default_codes(chunks, ready);
  }
  for (int c = 0; c < n_columns; c++) {
    if (is_category[c]) {
      default_code[c] = -1;
    }
  }
  std::vector<SparseColumns> sparse;
  std::vector<int64_t> first;
  int64_t n = 0;
  for (const Chunk& chunk : chunks) {
    sparse.emplace_back(chunk, default_code, ready, n_threads);
    first.push_back(n);
    n += chunk.n_rows;
  }
  for (int c = 0; c < n_columns; c++) {
    for (size_t k = 0; k < sparse.size() && default_code[c] >= 0; k++) {
      const Entries e = sparse[k].of(c);
      has_missing[c] |= default_code[c] == n_bins[c] ||
                        std::find(e.codes, e.codes + e.n, n_bins[c]) != e.codes + e.n;
    }
  }
  const std::vector<BundlePlan> plans =
      bundle_columns(sparse, first, n, default_code, n_bins, has_missing);
  const int64_t rows = reduce != nullptr ? 0 : !fuse ? n : *fuse ? INT64_MAX : 0;
  find_missing(chunks, rows, n_threads);
  layout = lay_out(n_bins, has_missing, default_code, plans, rows, false);
  return sparse;
}

// A fused slot has a code for missing values only where a column has some. So the columns that may
// be fused are searched for them before the layout is made.
void Binned::find_missing(const std::vector<Chunk>& chunks, int64_t rows, int n_threads) {
  std::vector<int> columns;
  for (int c = 0; c < n_columns; c++) {
    if (may_fuse(n_bins[c], rows) && default_code[c] < 0) {
      columns.push_back(c);
    }
  }
  if (columns.empty()) {
    return;
  }
  std::vector<std::vector<uint8_t>> found(n_threads, std::vector<uint8_t>(n_columns, 0));
  for (const Chunk& chunk : chunks) {
    run(n_threads, (chunk.n_rows + BLOCK - 1) / BLOCK, [&](int64_t b, int worker) {
      const int64_t at = b * BLOCK;
      const int n = (int)std::min<int64_t>(BLOCK, chunk.n_rows - at);
      for (const int c : columns) {
        uint8_t& mine = found[worker][c];
        if (!mine && any_missing(chunk.columns[c], at, n, is_category[c])) {
          mine = 1;
        }
      }
    });
  }
  for (const auto& f : found) {
    for (int c = 0; c < n_columns; c++) {
      has_missing[c] |= f[c];
    }
  }
}

// `single` (n): the values of the column, if they were read with those of others; else null.
template <class Code>
void Binned::encode_column(const Chunk& chunk, int c, int64_t at, int n, const PaddedCuts& ready,
                           const float* single, Code* code) const {
  if (is_category[c]) {
    return encode_categories(chunk.columns[c], at, n, n_bins[c], code);
  }
  if (single == nullptr) {
    return encode(chunk.columns[c], at, n, ready, code);
  }
  if constexpr (sizeof(Code) == 1) {
    kernels().bin32_byte(single, n, ready.f.data(), ready.n, code);
  } else {
    kernels().bin32(single, n, ready.f.data(), ready.n, code);
  }
}

Shard Binned::new_shard(int64_t rows, std::optional<Codes> stored, bool grows) {
  Shard shard;
  shard.n_rows = rows;
  shard.first = n_rows;
  n_rows += rows;
  if (stored) {
    shard.blocks = std::move(stored->blocks);
  } else if (grows) {
    shard.blocks = Memory((size_t)rows * layout.row_bytes + 64);
  }
  size_t at = 0;
  for (const Slot& s : layout.slots) {
    shard.plane_at.push_back(at);
    at += plane_bytes(rows, s);
  }
  shard.planes = stored ? std::move(stored->planes) : Memory(at);
  return shard;
}

// Clears what lies between planes, which is read but not used. It is done last, so that the pages
// are first touched by the workers that fill them.
void Binned::add_shard(Shard shard) {
  for (size_t k = 0; k < layout.slots.size(); k++) {
    const size_t end = shard.plane_at[k] + (size_t)shard.n_rows * layout.slots[k].code_bytes;
    memset(shard.planes.as<char>() + end, 0,
           (k + 1 < layout.slots.size() ? shard.plane_at[k + 1] : shard.planes.size()) - end);
  }
  shards.push_back(std::move(shard));
}

// gone (columns) OUT: 1 where a column has missing values
template <class Code, class TransposedStripe>
void Binned::encode_slot(const Chunk& chunk, int s, int64_t at, int n,
                         const std::vector<PaddedCuts>& ready, TransposedStripe& stripe, Code* code,
                         std::vector<uint8_t>& gone) const {
  const Slot& slot = layout.slots[s];
  if (!slot.fused()) {
    const int c = slot.columns[0];
    encode_column(chunk, c, at, n, ready[c], stripe.of(c), code);
    if (std::find(code, code + n, (Code)n_bins[c]) != code + n) {
      gone[c] = 1;
    }
    return;
  }
  Code part[STRIPE_ROWS];
  memset(code, 0, n * sizeof(Code));
  for (const int c : slot.columns) {
    encode_column(chunk, c, at, n, ready[c], stripe.of(c), part);
    const uint32_t step = layout.members[c].step;
    for (int i = 0; i < n; i++) {
      code[i] = (Code)(code[i] + step * part[i]);
    }
  }
}

void Binned::encode_shard(const Chunk& chunk, SparseColumns sparse,
                          const std::vector<PaddedCuts>& ready, int n_threads) {
  Shard shard = new_shard(chunk.n_rows);
  encode_bundles(shard, std::move(sparse), n_threads);
  encode_rows(chunk, 0, chunk.n_rows, shard, 0, ready, n_threads, has_missing);
  add_shard(std::move(shard));
}

void Binned::encode_rows(const Chunk& chunk, int64_t from, int64_t n_rows, Shard& shard, int64_t to,
                         const std::vector<PaddedCuts>& ready, int n_threads,
                         std::vector<uint8_t>& found) const {
  std::vector<std::vector<uint8_t>> missing(n_threads, std::vector<uint8_t>(n_columns, 0));
  const std::vector<int> near = row_major_runs(chunk, std::vector<uint8_t>(n_columns, 1));
  auto encode_stripe = [&](int64_t at, int n, TransposedStripe<STRIPE_ROWS>& stripe,
                           std::vector<uint8_t>& gone) {
    stripe.go(at, n);
    for (const SlotBlock& b : layout.blocks) {
      if (b.code_bytes == 0) {
        continue;
      }
      for (int s = b.first; s < b.first + b.width; s++) {
        if (layout.slots[s].bundled) {
          continue;
        }
        void* own = (char*)plane(shard, s) + (size_t)(at - from + to) * b.code_bytes;
        if (b.code_bytes == 1) {
          encode_slot(chunk, s, at, n, ready, stripe, (uint8_t*)own, gone);
        } else {
          encode_slot(chunk, s, at, n, ready, stripe, (uint16_t*)own, gone);
        }
      }
      fill_block(shard, b, at - from + to, n);
    }
  };
  run(n_threads, (n_rows + BLOCK - 1) / BLOCK, [&](int64_t b, int worker) {
    TransposedStripe<STRIPE_ROWS> stripe(chunk, near);
    const int64_t end = from + std::min(n_rows, (b + 1) * BLOCK);
    for (int64_t at = from + b * BLOCK; at < end; at += STRIPE_ROWS) {
      encode_stripe(at, (int)std::min<int64_t>(STRIPE_ROWS, end - at), stripe, missing[worker]);
    }
  });
  for (const auto& m : missing) {
    for (int c = 0; c < n_columns; c++) {
      found[c] |= m[c];
    }
  }
}

bool Binned::fill(const Chunk& chunk, int64_t from, int64_t n, int64_t to, int n_threads) {
  std::vector<uint8_t> found(n_columns, 0);
  for (int c = 0; c < n_columns; c++) {  // a fused slot has no code for them
    for (int64_t at = from; at < from + n && !has_missing[c] && layout.slot_of(c).fused();
         at += BLOCK) {
      found[c] |= any_missing(chunk.columns[c], at, (int)std::min<int64_t>(BLOCK, from + n - at),
                              is_category[c]);
    }
  }
  auto fits = [&] {
    for (int c = 0; c < n_columns; c++) {
      if (found[c] && !has_missing[c]) {
        return false;
      }
    }
    return true;
  };
  if (!fits()) {
    return false;
  }
  const std::vector<PaddedCuts> ready(cuts.begin(), cuts.end());
  encode_rows(chunk, from, n, shards[0], to, ready, n_threads, found);
  return fits();
}

bool Binned::codes_fit(int n_threads) const {
  std::atomic<bool> fit = true;
  for (const Shard& s : shards) {
    for (const SlotBlock& b : layout.blocks) {
      run(threads_for(s.n_rows, n_threads), task_count(s.n_rows), [&](int64_t task, int) {
        const int64_t first = task * TASK_ROWS;
        const int64_t end = std::min(s.n_rows, first + TASK_ROWS);
        touch((int64_t)(b.width * 2) * FAULT_BYTES);
        auto look = [&](auto zero) {
          using Code = decltype(zero);
          const Code* rows = (const Code*)block(s, b);
          int wrong = 0;
          for (int k = 0; k < b.width; k++) {
            const Code* own = (const Code*)plane(s, b.first + k);
            const int n_codes = layout.slots[b.first + k].n_codes;
            for (int64_t i = first; i < end; i++) {
              wrong |= own[i] >= n_codes;
              wrong |= own[i] != rows[i * b.stride + k];
            }
          }
          if (wrong != 0) {
            fit = false;
          }
        };
        if (b.code_bytes == 1) {
          look(uint8_t());
        } else {
          look(uint16_t());
        }
      });
    }
  }
  return fit;
}

// Fills the planes of bundles, and the lists.
void Binned::encode_bundles(Shard& shard, SparseColumns sparse, int n_threads) {
  const int n_slots = (int)layout.slots.size();
  const int n_lists = n_slots - layout.first_list;
  run(n_threads, layout.first_list, [&](int64_t s, int) {
    const Slot& slot = layout.slots[s];
    if (!slot.bundled) {
      return;
    }
    void* codes = plane(shard, (int)s);
    memset(codes, 0, (size_t)shard.n_rows * slot.code_bytes);
    for (const int c : slot.columns) {
      const Entries e = sparse.of(c);
      const uint32_t first = layout.members[c].first;
      if (slot.code_bytes == 1) {
        for (int64_t i = 0; i < e.n; i++) {
          ((uint8_t*)codes)[e.rows[i]] = (uint8_t)(first + e.codes[i]);
        }
      } else {
        for (int64_t i = 0; i < e.n; i++) {
          ((uint16_t*)codes)[e.rows[i]] = (uint16_t)(first + e.codes[i]);
        }
      }
    }
  });
  std::vector<std::optional<RowCodes>> lists(n_lists);
  run(n_threads, n_lists, [&](int64_t k, int) {
    lists[k].emplace(sparse, layout, layout.slots[layout.first_list + k], shard.n_rows);
  });
  for (auto& one : lists) {
    shard.lists.push_back(std::move(*one));
  }
  std::vector<uint8_t> wanted(n_columns, 0);
  for (int s = layout.first_list; s < n_slots; s++) {
    for (const int c : layout.slots[s].columns) {
      wanted[c] = 1;
    }
  }
  sparse.keep(wanted);
  shard.sparse = std::move(sparse);
}

uint32_t Binned::listed_code(const Shard& s, int column, int64_t row) const {
  const Entries e = s.sparse.of(column);
  const int32_t* at = std::lower_bound(e.rows, e.rows + e.n, row);
  return at < e.rows + e.n && *at == row ? e.codes[at - e.rows] : (uint32_t)default_code[column];
}

uint32_t Binned::code(const Shard& s, int column, int64_t row) const {
  const Member& m = layout.members[column];
  const Slot& slot = layout.slots[m.slot];
  if (slot.lists()) {
    return listed_code(s, column, row);
  }
  const uint32_t code = slot_code(s, m.slot, row);
  if (slot.bundled) {
    return code - m.first < m.n ? code - m.first : (uint32_t)m.default_code;
  }
  return slot.fused() ? code / m.step % m.n : code;
}

template <class Code>
void Binned::codes(int column, int64_t from, int64_t n, Code* out) const {
  const int at = layout.members[column].slot;
  const Slot& slot = layout.slots[at];
  // by code of the slot
  std::vector<Code> own(slot.columns.size() > 1 && !slot.lists() ? slot.n_codes : 0);
  if (!own.empty()) {
    layout.each_code(column, [&](uint32_t k, uint32_t code) {
      own[k] = (Code)code;
    });
  }
  for (const Shard& s : shards) {
    const int64_t first = std::max<int64_t>(0, from - s.first);
    const int64_t end = std::min(s.n_rows, from + n - s.first);
    if (first >= end) {
      continue;
    }
    Code* to = out + (s.first + first - from);
    touch((end - first) * (int64_t)slot.code_bytes);
    if (slot.lists()) {
      std::fill(to, to + (end - first), (Code)default_code[column]);
      const Entries e = s.sparse.of(column);
      for (int64_t i = 0; i < e.n; i++) {
        if (e.rows[i] >= first && e.rows[i] < end) {
          to[e.rows[i] - first] = (Code)e.codes[i];
        }
      }
    } else if (own.empty() && slot.code_bytes == sizeof(Code)) {
      memcpy(to, (const Code*)plane(s, at) + first, (size_t)(end - first) * sizeof(Code));
    } else if (!own.empty() && slot.code_bytes == 1) {
      const uint8_t* code = (const uint8_t*)plane(s, at) + first;
      for (int64_t i = 0; i < end - first; i++) {
        to[i] = own[code[i]];
      }
    } else {
      for (int64_t i = first; i < end; i++) {
        const uint32_t code = slot_code(s, at, i);
        to[i - first] = own.empty() ? (Code)code : own[code];
      }
    }
  }
}
template void Binned::codes(int, int64_t, int64_t, uint8_t*) const;
template void Binned::codes(int, int64_t, int64_t, uint16_t*) const;
template void Binned::codes(int, int64_t, int64_t, uint32_t*) const;

// Exact trees sort the rows of all chunks together, so these become one shard.
void Binned::rank_chunks(const std::vector<Chunk>& chunks, const std::vector<PaddedCuts>& ready,
                         int n_threads) {
  Shard shard = new_shard(n_rows_of(chunks));
  run(n_threads, n_columns, [&](int64_t c, int) {
    uint32_t* code = (uint32_t*)plane(shard, (int)c);
    double x[BLOCK];
    for (const Chunk& chunk : chunks) {
      for (int64_t at = 0; at < chunk.n_rows; at += BLOCK) {
        const int n = (int)std::min<int64_t>(BLOCK, chunk.n_rows - at);
        load(chunk.columns[c], at, n, x);
        kernels().rank(x, n, ready[c].d.data(), ready[c].n, code);
        for (int i = 0; i < n; i++) {
          has_missing[c] |= x[i] != x[i];
        }
        code += n;
      }
    }
  });
  add_shard(std::move(shard));
}

size_t Binned::n_bytes() const {
  size_t n = 0;
  for (const Shard& s : shards) {
    n += s.blocks.size() + s.planes.size() + s.sparse.n_bytes();
    for (const RowCodes& lists : s.lists) {
      n += lists.offset.size() + lists.codes.size();
    }
  }
  return n;
}

}  // namespace sapwood
