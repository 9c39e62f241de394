// Categories: values to codes, codes to statistics of labels, several columns to one.
#include <algorithm>

#include "bind/tables.h"
#include "cpu/data/combinations.h"
#include "cpu/data/target_statistics.h"
#include "host/memory.h"
#include "math/hash.h"

namespace sapwood {
namespace {

template <class Index>
nb::object ranks_of(const int32_t* found_at, int64_t n, const std::vector<int32_t>& rank) {
  std::vector<Index> out(n);
  for (int64_t i = 0; i < n; i++) out[i] = (Index)rank[found_at[i]];
  return nb::cast(array(std::move(out)));
}

// The values of two classes, or few, as most labels have, side by side in vectors: a branch for each would be foreseen half the time.
// Sorted values and index (n), or nothing where the first rows do not show them all.
template <class T>
std::optional<std::pair<std::vector<T>, std::vector<uint8_t>>> few_of(const T* x, int64_t n) {
  constexpr size_t FEW = 4;
  constexpr int64_t FIRST = 1024;
  std::vector<T> found;
  for (int64_t i = 0; i < std::min(n, FIRST); i++)
    if (std::find(found.begin(), found.end(), x[i]) == found.end()) {
      if (found.size() == FEW || x[i] != x[i]) return {};
      found.push_back(x[i] == T(0) ? T(0) : x[i]);
    }
  if (found.empty()) return {};
  std::sort(found.begin(), found.end());
  T value[FEW];
  for (size_t k = 0; k < FEW; k++) value[k] = found[std::min(k, found.size() - 1)];
  std::vector<uint8_t> index(n);
  for (int64_t first = 0; first < n; first += FIRST) {
    int wrong = 0;
    for (int64_t i = first; i < std::min(n, first + FIRST); i++) {
      const T v = x[i];
      const int one = v > value[0], two = v > value[1], loss_gradient_hessian = v > value[2];
      wrong |= !((v == value[0]) | (v == value[1]) | (v == value[2]) | (v == value[3]));
      index[i] = (uint8_t)(one + two + loss_gradient_hessian);
    }
    if (wrong != 0) return {};
  }
  return {{std::move(found), std::move(index)}};
}

// Distinct values by a small hash table, sorted afterwards; index (n) as uint8 or int32. Gives up (None) beyond `limit` or at a NaN.
template <class T>
nb::object distinct_of(const AnyArray& a, size_t limit) {
  const int64_t n = (int64_t)a.shape(0), stride = a.stride(0);
  const T* x = static_cast<const T*>(a.data());
  if (auto few = stride == 1 && limit >= 4 ? few_of(x, n) : std::nullopt)
    return nb::make_tuple(array(std::move(few->first)), array(std::move(few->second)));
  size_t size = 64;
  while (size < 4 * limit) size *= 2;
  std::vector<int32_t> slot(size, -1);
  std::vector<T> found;
  const Memory memory((size_t)n * 4);
  int32_t* found_at = memory.as<int32_t>();
  T last{};
  int32_t last_at = -1;
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i * stride] == T(0) ? T(0) : x[i * stride];
    if (v != v) return nb::none();
    if (last_at < 0 || v != last) {
      uint64_t bits = 0;
      __builtin_memcpy(&bits, &v, sizeof v);
      size_t at = mix(bits) & (size - 1);
      while (slot[at] >= 0 && found[slot[at]] != v) at = (at + 1) & (size - 1);
      if (slot[at] < 0) {
        if (found.size() == limit) return nb::none();
        slot[at] = (int32_t)found.size();
        found.push_back(v);
      }
      last = v, last_at = slot[at];
    }
    found_at[i] = last_at;
  }
  std::vector<int32_t> order(found.size());
  for (size_t k = 0; k < order.size(); k++) order[k] = (int32_t)k;
  std::sort(order.begin(), order.end(), [&](int32_t p, int32_t q) { return found[p] < found[q]; });
  std::vector<int32_t> rank(found.size());
  std::vector<T> sorted;
  for (size_t k = 0; k < order.size(); k++) rank[order[k]] = (int32_t)k, sorted.push_back(found[order[k]]);
  const bool few = rank.size() <= 256;
  return nb::make_tuple(array(std::move(sorted)),
                        few ? ranks_of<uint8_t>(found_at, n, rank) : ranks_of<int32_t>(found_at, n, rank));
}

nb::object distinct(AnyArray values, int64_t limit) {
  if (values.ndim() != 1) refuse("values must have 1 dimension");
  if (limit < 1 || limit > 1 << 28) refuse("limit must be 1..2^28");
  switch (kind_of(values)) {
    case DType::f32:
      return distinct_of<float>(values, limit);
    case DType::f64:
      return distinct_of<double>(values, limit);
    case DType::i8:
      return distinct_of<int8_t>(values, limit);
    case DType::i16:
      return distinct_of<int16_t>(values, limit);
    case DType::i32:
      return distinct_of<int32_t>(values, limit);
    case DType::i64:
      return distinct_of<int64_t>(values, limit);
    case DType::u8:
      return distinct_of<uint8_t>(values, limit);
    case DType::u16:
      return distinct_of<uint16_t>(values, limit);
    case DType::u32:
      return distinct_of<uint32_t>(values, limit);
    case DType::u64:
      return distinct_of<uint64_t>(values, limit);
  }
  return nb::none();
}

const int32_t* counts_of(const std::optional<Ints>& count, int64_t n) {
  if (!count) return nullptr;
  if ((int64_t)count->shape(0) != n) refuse("there must be one count a row");
  for (int64_t i = 0; i < n; i++)
    if (count->data()[i] < 0) refuse("counts must not be negative");
  return count->data();
}

nb::ndarray<nb::numpy, int32_t> py_hash_order(uint64_t seed, uint64_t which, std::optional<Ints> count, int64_t n) {
  if (n < 0 || n > 0x7fffffff) refuse("an order has at most 2^31 - 1 rows");
  const int32_t* c = counts_of(count, n);
  return array(without_gil([&] { return hash_order(seed, which, c, n); }));
}

nb::ndarray<nb::numpy, double> py_encode(const std::vector<Ints>& codes, const std::vector<int32_t>& n_codes,
                                         Longs2 mass, std::optional<Ints> count, Ints order, double mass_unit,
                                         double count_unit, const std::vector<double>& priors, int n_threads) {
  const int64_t n = (int64_t)mass.shape(1), n_order = (int64_t)order.shape(0);
  if (codes.size() != n_codes.size()) refuse("there must be one number of codes a column");
  Encode e{{},        n_codes,    mass.data(), (int64_t)mass.shape(0), counts_of(count, n), order.data(), n_order, n,
           mass_unit, count_unit, priors};
  for (size_t c = 0; c < codes.size(); c++) {
    if ((int64_t)codes[c].shape(0) != n) refuse("there must be one code a row");
    for (int64_t i = 0; i < n; i++)
      if (codes[c].data()[i] < -2 || codes[c].data()[i] >= n_codes[c]) refuse("a code is -2, -1 or below n_codes");
    e.code.push_back(codes[c].data());
  }
  for (int64_t i = 0; i < n_order; i++)
    if (order.data()[i] < 0 || order.data()[i] >= n) refuse("no such row in the order");
  threads_of(n_threads);
  std::vector<double> value(codes.size() * mass.shape(0) * priors.size() * (size_t)n, 0.0);
  without_gil([&] { encode(e, value.data(), n_threads); });
  return array(std::move(value), {codes.size(), mass.shape(0), priors.size(), (size_t)n});
}

nb::ndarray<nb::numpy, int32_t> py_combine(nb::handle x, Longs offset, Ints column, Ints n_codes, Doubles threshold,
                                           Longs key_offset, Longs key, int n_threads) {
  const Chunk table = chunk_of(x);
  threads_of(n_threads);
  const size_t n = offset.shape(0) - 1, n_sources = column.shape(0);
  auto rise = [n](const Longs& o, size_t end) {
    bool fine = o.shape(0) == n + 1 && o.data()[0] == 0 && o.data()[n] == (int64_t)end;
    for (size_t i = 0; fine && i < n; i++) fine = o.data()[i] <= o.data()[i + 1];
    return fine;
  };
  if (offset.shape(0) == 0 || !rise(offset, n_sources) || !rise(key_offset, key.shape(0)))
    refuse("offsets of combinations must rise from 0 to the end");
  if (n_codes.shape(0) != n_sources || threshold.shape(0) != n_sources) refuse("every source needs all its parts");
  for (size_t j = 0; j < n_sources; j++)
    if (column.data()[j] < 0 || column.data()[j] >= (int64_t)table.columns.size() || n_codes.data()[j] < 0)
      refuse("no such source of a combination");
  std::vector<int32_t> code(n * (size_t)table.n_rows);
  const Combinations c{(int64_t)n,       offset.data(),     column.data(), n_codes.data(),
                       threshold.data(), key_offset.data(), key.data()};
  without_gil([&] { combine(c, table, code.data(), n_threads); });
  return array(std::move(code), {n, (size_t)table.n_rows});
}

}  // namespace

void bind_codes(nb::module_& m) {
  m.def("distinct", distinct, nb::arg("values"), nb::arg("limit"));
  m.def("hash_order", py_hash_order, nb::arg("seed"), nb::arg("which"), nb::arg("count").none(), nb::arg("n"));
  m.def("encode", py_encode, nb::arg("codes"), nb::arg("n_codes"), nb::arg("mass"), nb::arg("count").none(),
        nb::arg("order"), nb::arg("mass_unit"), nb::arg("count_unit"), nb::arg("priors"), nb::arg("n_threads"));
  m.def("combine", py_combine, nb::arg("table"), nb::arg("offset"), nb::arg("column"), nb::arg("n_codes"),
        nb::arg("threshold"), nb::arg("key_offset"), nb::arg("key"), nb::arg("n_threads"));
}

}  // namespace sapwood
