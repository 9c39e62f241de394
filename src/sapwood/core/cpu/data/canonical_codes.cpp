#include "cpu/data/canonical_codes.h"

#include <algorithm>

#include "host/pool.h"
#include "host/resident.h"
#include "math/hash.h"

namespace sapwood {
namespace {

// rows that decide whether a column is listed: where one code has 7 of 8 of them
constexpr int64_t SAMPLE = 256;

class Lister {
 public:
  Lister(const Binned& binned, int n_threads)
      : b_(binned), l_(binned.layout), n_threads_(n_threads) {
    n_sample_ = std::min(SAMPLE, b_.n_total);
    const uint64_t k = key(0, LISTED, 0, 0);
    for (int64_t i = 0; i < n_sample_; i++) {
      const int64_t row =
          n_sample_ < SAMPLE ? i : (int64_t)(draw(k, (uint64_t)i) % (uint64_t)b_.n_total);
      for (const Shard& s : b_.shards) {
        if (row >= s.position && row < s.position + s.n_rows) {
          sample_.push_back({&s, row - s.position});
        }
      }
    }
  }

  Listing list() {
    const std::vector<int> default_code = default_codes();
    Listing out;
    for (int c = 0; c < b_.n_columns; c++) {
      if (default_code[c] >= 0) {
        out.column.push_back(c);
        out.default_code.push_back((uint16_t)default_code[c]);
      }
    }
    at_.assign(b_.n_columns, 0);
    auto list_all = [&] {
      run(n_threads_, (int64_t)l_.slots.size(), [&](int64_t s, int) {
        list_slot((int)s, default_code);
      });
    };
    list_all();  // counts
    for (const int32_t c : out.column) {
      out.offset.push_back(out.offset.back() + at_[c]);
    }
    out.row.resize((size_t)out.offset.back());
    out.code.resize((size_t)out.offset.back());
    for (size_t k = 0; k < out.column.size(); k++) {
      at_[out.column[k]] = out.offset[k];
    }
    to_ = &out;
    list_all();
    return out;
  }

  // (columns) the code that 7 of 8 rows of the sample have, or -1
  std::vector<int> default_codes() const {
    std::vector<int> default_code(b_.n_columns, -1);
    if (b_.exact || b_.n_total > 0xffffffff) {
      return default_code;
    }
    const int64_t least = (n_sample_ * 7 + 7) / 8;
    // of sparse columns: rows of the sample that are listed
    std::vector<int64_t> hits(b_.n_columns, 0);
    for (int s = 0; s < (int)l_.slots.size(); s++) {
      if (l_.slots[s].bundled) {
        for (const Place& p : sample_) {
          each_unusual(s, p, [&](int c, uint32_t) {
            hits[c]++;
          });
        }
      }
    }
    std::vector<int> others;
    for (int c = 0; c < b_.n_columns; c++) {
      if (b_.is_category[c]) {
        continue;
      }
      const bool sparse = l_.slot_of(c).bundled && (int64_t)sample_.size() - hits[c] >= least;
      if (sparse) {
        default_code[c] = b_.default_code[c];
      } else {
        others.push_back(c);
      }
    }
    std::vector<uint32_t> codes;  // (rows of the sample, others)
    for (const Place& p : sample_) {
      for (const int c : others) {
        touch(FAULT_BYTES);  // of another plane each
        codes.push_back(b_.code(*p.shard, c, p.row));
      }
    }
    codes = gather_all(b_.reduce.get(), std::move(codes));
    std::vector<uint32_t> own((size_t)n_sample_);
    for (size_t k = 0; k < others.size(); k++) {
      for (size_t i = 0; i < own.size(); i++) {
        own[i] = codes[i * others.size() + k];
      }
      default_code[others[k]] = majority(own, least);
    }
    return default_code;
  }

 private:
  struct Place {
    const Shard* shard;
    int64_t row;
  };
  // The first time rows are counted, the second time they are written: lists that grow would take
  // up to three times the memory.
  void add(int c, int64_t row, uint32_t code) {
    if (to_ != nullptr) {
      to_->row[at_[c]] = (uint32_t)row;
      to_->code[at_[c]] = (uint16_t)code;
    }
    at_[c]++;
  }

  static int majority(std::vector<uint32_t>& codes, int64_t least) {
    std::sort(codes.begin(), codes.end());
    const uint32_t middle = codes[codes.size() / 2];  // no other can have as many
    return std::count(codes.begin(), codes.end(), middle) >= least ? (int)middle : -1;
  }

  // f(column, code) for every column of a bundled slot that has another than its usual code in a
  // row.
  template <class F>
  void each_unusual(int s, const Place& p, F&& f) const {
    const Slot& slot = l_.slots[s];
    auto one = [&](uint32_t code) {
      const auto after =
          std::upper_bound(slot.columns.begin(), slot.columns.end(), code, [&](uint32_t x, int c) {
            return x < l_.members[c].first;
          });
      const int c = *(after - 1);
      f(c, code - l_.members[c].first);
    };
    if (!slot.lists()) {
      if (const uint32_t code = b_.slot_code(*p.shard, s, p.row)) {
        one(code);
      }
      return;
    }
    const RowCodes& lists = p.shard->lists[s - l_.first_list];
    const uint32_t* offset = lists.offset.as<uint32_t>();
    for (uint32_t i = offset[p.row]; i < offset[p.row + 1]; i++) {
      one(lists.codes.as<uint16_t>()[i]);
    }
  }

  void list_slot(int s, const std::vector<int>& default_code) {
    const Slot& slot = l_.slots[s];
    auto by_layout = [&](int c) {
      return slot.bundled && default_code[c] == b_.default_code[c];
    };
    std::vector<int> of;  // by code of a bundle: whose it is, or -1
    for (const int c : slot.columns) {
      if (default_code[c] < 0) {
        continue;
      }
      if (!by_layout(c)) {
        list_codes_of(c, default_code[c]);
      } else if (slot.lists()) {
        for (const Shard& shard : b_.shards) {
          const Entries e = shard.sparse.of(c);
          for (int64_t i = 0; i < e.n; i++) {
            add(c, shard.position + e.rows[i], e.codes[i]);
          }
        }
      } else {
        of.resize(slot.n_codes, -1);
        std::fill_n(of.begin() + l_.members[c].first, l_.members[c].n, c);
      }
    }
    for (const Shard& shard : b_.shards) {
      for (int64_t i = 0; i < shard.n_rows && !of.empty(); i++) {
        const uint32_t code = b_.slot_code(shard, s, i);
        if (const int c = of[code]; c >= 0) {
          add(c, shard.position + i, code - l_.members[c].first);
        }
      }
    }
  }

  void list_codes_of(int c, int default_code) {
    std::vector<uint16_t> codes(b_.n_rows);
    b_.codes(c, 0, b_.n_rows, codes.data());
    for (const Shard& shard : b_.shards) {
      for (int64_t i = 0; i < shard.n_rows; i++) {
        if (const uint16_t code = codes[shard.first + i]; code != default_code) {
          add(c, shard.position + i, code);
        }
      }
    }
  }

  const Binned& b_;
  const Layout& l_;
  int n_threads_;
  int64_t n_sample_;           // rows of the sample
  std::vector<Place> sample_;  // those that this process holds
  std::vector<int64_t> at_;    // (columns) rows so far, or the place of the next one
  Listing* to_ = nullptr;      // null while rows are counted
};

}  // namespace

Listing list_codes(const Binned& binned, int n_threads) {
  return Lister(binned, n_threads).list();
}
std::vector<int> listed_defaults(const Binned& binned) {
  return Lister(binned, 1).default_codes();
}

}  // namespace sapwood
