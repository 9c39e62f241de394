// Categories: values to codes, codes to statistics of labels, several columns to one. Crosses of
// columns.
#include <string.h>

#include "bind/tables.h"
#include "cpu/data/combinations.h"
#include "cpu/data/crosses.h"
#include "cpu/data/distinct.h"
#include "cpu/data/target_statistics.h"

namespace sapwood {
namespace {

nb::object py_distinct(AnyArray values, int64_t limit) {
  if (values.ndim() != 1) {
    refuse("values must have 1 dimension");
  }
  if (limit < 1 || limit > 1 << 28) {
    refuse("limit must be 1..2^28");
  }
  const int64_t n = (int64_t)values.shape(0);
  const int64_t stride = values.stride(0);
  return by_type(kind_of(values), [&](auto zero) -> nb::object {
    const auto* x = static_cast<const decltype(zero)*>(values.data());
    auto found = without_gil([&] {
      return distinct(x, n, stride, (size_t)limit);
    });
    if (!found) {
      return nb::none();
    }
    nb::object place = found->values.size() <= 256 ? nb::cast(array(std::move(found->narrow)))
                                                   : nb::cast(array(std::move(found->wide)));
    return nb::make_tuple(array(std::move(found->values)), place);
  });
}

const int32_t* counts_of(const std::optional<Ints>& count, int64_t n) {
  if (!count) {
    return nullptr;
  }
  if ((int64_t)count->shape(0) != n) {
    refuse("there must be one count a row");
  }
  for (int64_t i = 0; i < n; i++) {
    if (count->data()[i] < 0) {
      refuse("counts must not be negative");
    }
  }
  return count->data();
}

nb::ndarray<nb::numpy, int32_t> py_hash_order(uint64_t seed, uint64_t which,
                                              std::optional<Ints> count, int64_t n) {
  if (n < 0 || n > 0x7fffffff) {
    refuse("an order has at most 2^31 - 1 rows");
  }
  const int32_t* c = counts_of(count, n);
  return array(without_gil([&] {
    return hash_order(seed, which, c, n);
  }));
}

void check_codes(const Ints& code, int64_t n, int32_t n_codes) {
  if ((int64_t)code.shape(0) != n) {
    refuse("there must be one code a row");
  }
  for (int64_t i = 0; i < n; i++) {
    if (code.data()[i] < UNSEEN || code.data()[i] >= n_codes) {
      refuse("a code is -2, -1 or below n_codes");
    }
  }
}

// cuts: of every value; none: the values themselves are asked for.
nb::object py_encode(nb::sequence code_list, nb::sequence n_code_list, Longs2 mass,
                     std::optional<Ints> count, Ints order, double mass_unit, double count_unit,
                     nb::sequence prior_list, int n_threads, std::optional<nb::sequence> cut_list) {
  const std::vector<Ints> codes = list_of<Ints>(code_list);
  const std::vector<int32_t> n_codes = list_of<int32_t>(n_code_list);
  const std::vector<double> priors = list_of<double>(prior_list);
  const int64_t n = (int64_t)mass.shape(1);
  const int64_t n_order = (int64_t)order.shape(0);
  if (codes.size() != n_codes.size()) {
    refuse("there must be one number of codes a column");
  }
  Encode e{{},
           n_codes,
           mass.data(),
           (int64_t)mass.shape(0),
           counts_of(count, n),
           order.data(),
           n_order,
           n,
           mass_unit,
           count_unit,
           priors};
  for (size_t c = 0; c < codes.size(); c++) {
    check_codes(codes[c], n, n_codes[c]);
    e.code.push_back(codes[c].data());
  }
  for (int64_t i = 0; i < n_order; i++) {
    if (order.data()[i] < 0 || order.data()[i] >= n) {
      refuse("no such row in the order");
    }
  }
  threads_of(n_threads);
  const size_t n_values = codes.size() * mass.shape(0) * priors.size();
  const std::vector<size_t> shape{codes.size(), mass.shape(0), priors.size(), (size_t)n};
  auto zeros = [&](size_t size) {
    auto memory = std::make_unique<Memory>(n_values * (size_t)n * size);
    if (memory->size() > 0) {
      memset(memory->as<void>(), 0, memory->size());
    }
    return memory;
  };
  if (!cut_list) {
    auto value = zeros(sizeof(double));
    without_gil([&] {
      encode(e, value->as<double>(), n_threads);
    });
    return nb::cast(array_of<double>(std::move(value), shape));
  }
  const std::vector<std::vector<double>> given = cuts_of(*cut_list, false);
  if (given.size() != n_values) {
    refuse("there must be one list of cuts a value");
  }
  for (const auto& own : given) {
    if (own.size() > 254) {
      refuse("codes in bytes have at most 254 cuts");
    }
  }
  const std::vector<PaddedCuts> cuts(given.begin(), given.end());
  auto bins = zeros(1);
  without_gil([&] {
    encode(e, cuts, bins->as<uint8_t>(), n_threads);
  });
  return nb::cast(array_of<uint8_t>(std::move(bins), shape));
}

nb::ndarray<nb::numpy, int64_t> py_sum_by_code(Ints code, int32_t n_codes, Longs2 mass,
                                               std::optional<Ints> count) {
  const int64_t n = (int64_t)mass.shape(1);
  const int64_t n_masses = (int64_t)mass.shape(0);
  if (n_codes < 0) {
    refuse("n_codes must not be negative");
  }
  check_codes(code, n, n_codes);
  const int32_t* counts = counts_of(count, n);
  std::vector<int64_t> sum((size_t)(n_masses + 1) * ((size_t)n_codes + 1), 0);
  without_gil([&] {
    sum_by_code(code.data(), n_codes, mass.data(), n_masses, counts, n, sum.data());
  });
  return array(std::move(sum), {(size_t)n_masses + 1, (size_t)n_codes + 1});
}

nb::ndarray<nb::numpy, int32_t> py_combine(nb::handle x, Longs offset, Ints column, Ints n_codes,
                                           Doubles threshold, Longs key_offset, Longs key,
                                           int n_threads) {
  const Chunk table = chunk_of(x);
  threads_of(n_threads);
  const size_t n = offset.shape(0) - 1;
  const size_t n_sources = column.shape(0);
  auto rise = [n](const Longs& o, size_t end) {
    bool fine = o.shape(0) == n + 1 && o.data()[0] == 0 && o.data()[n] == (int64_t)end;
    for (size_t i = 0; fine && i < n; i++) {
      fine = o.data()[i] <= o.data()[i + 1];
    }
    return fine;
  };
  if (offset.shape(0) == 0 || !rise(offset, n_sources) || !rise(key_offset, key.shape(0))) {
    refuse("offsets of combinations must rise from 0 to the end");
  }
  if (n_codes.shape(0) != n_sources || threshold.shape(0) != n_sources) {
    refuse("every source needs all its parts");
  }
  for (size_t j = 0; j < n_sources; j++) {
    if (column.data()[j] < 0 || column.data()[j] >= (int64_t)table.columns.size() ||
        n_codes.data()[j] < 0) {
      refuse("no such source of a combination");
    }
  }
  std::vector<int32_t> code(n * (size_t)table.n_rows);
  const Combinations c{(int64_t)n,       offset.data(),     column.data(), n_codes.data(),
                       threshold.data(), key_offset.data(), key.data()};
  without_gil([&] {
    combine(c, table, code.data(), n_threads);
  });
  return array(std::move(code), {n, (size_t)table.n_rows});
}

nb::ndarray<nb::numpy, float> py_cross(nb::handle x, Bytes kind, Ints left, Ints right,
                                       Longs offset, Doubles mean, int n_threads) {
  const Chunk table = chunk_of(x);
  threads_of(n_threads);
  const size_t n = kind.shape(0);
  if (left.shape(0) != n || right.shape(0) != n || offset.shape(0) != n + 1) {
    refuse("every cross needs all its parts");
  }
  if (offset.data()[0] != 0 || offset.data()[n] != (int64_t)mean.shape(0)) {
    refuse("means go from 0 to the end");
  }
  const int64_t n_columns = (int64_t)table.columns.size();
  for (size_t i = 0; i < n; i++) {
    const int64_t a = left.data()[i];
    const int64_t b = right.data()[i];
    const int64_t n_means = offset.data()[i + 1] - offset.data()[i];
    if (a < 0 || a >= n_columns || b < 0 || b >= n_columns) {
      refuse("no such source of a cross");
    }
    if (kind.data()[i] >= N_CROSS_KINDS || n_means < (kind.data()[i] == CENTRED ? 2 : 0)) {
      refuse("no such cross");
    }
  }
  std::vector<float> value(n * (size_t)table.n_rows);
  const Crosses c{(int64_t)n, kind.data(), left.data(), right.data(), offset.data(), mean.data()};
  without_gil([&] {
    cross(c, table, value.data(), n_threads);
  });
  return array(std::move(value), {n, (size_t)table.n_rows});
}

}  // namespace

void bind_codes(nb::module_& m) {
  m.def("distinct", py_distinct, "values"_a, "limit"_a);
  m.def("hash_order", py_hash_order, "seed"_a, "which"_a, "count"_a.none(), "n"_a);
  m.def("trim_heap", [] {
    without_gil([] {
      trim_heap();
    });
  });
  m.def("encode", py_encode, "codes"_a, "n_codes"_a, "mass"_a, "count"_a.none(), "order"_a,
        "mass_unit"_a, "count_unit"_a, "priors"_a, "n_threads"_a, "cuts"_a.none() = nb::none());
  m.def("sum_by_code", py_sum_by_code, "codes"_a, "n_codes"_a, "mass"_a, "count"_a.none());
  m.def("combine", py_combine, "table"_a, "offset"_a, "column"_a, "n_codes"_a, "threshold"_a,
        "key_offset"_a, "key"_a, "n_threads"_a);
  m.def("cross", py_cross, "table"_a, "kind"_a, "left"_a, "right"_a, "offset"_a, "mean"_a,
        "n_threads"_a);
}

}  // namespace sapwood
