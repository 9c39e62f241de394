// Which kernels run: the best path of this machine, unless SAPWOOD_ISA or set_isa() names another.
#include <string.h>

#include <atomic>

#include "cpu/kernels/kernels.h"

namespace sapwood {
namespace {

const Kernels* find(const char* name) {
  const bool any = strcmp(name, "auto") == 0;
#ifdef SAPWOOD_X86
  __builtin_cpu_init();
  if ((any || strcmp(name, "avx512") == 0) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
    return kernels_avx512();
  }
  if ((any || strcmp(name, "avx2") == 0) && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("bmi2")) {
    return kernels_avx2();
  }
#endif
  return any || strcmp(name, "portable") == 0 ? kernels_portable() : nullptr;
}

std::atomic<const Kernels*> chosen{nullptr};

}  // namespace

const Kernels& kernels() {
  const Kernels* k = chosen.load(std::memory_order_relaxed);
  if (k == nullptr) {
    chosen.store(k = find("auto"), std::memory_order_relaxed);
  }
  return *k;
}

const char* choose_kernels(const char* name) {
  const Kernels* k = find(name);
  if (k == nullptr) {
    return nullptr;
  }
  chosen.store(k, std::memory_order_relaxed);
  return k->name;
}

}  // namespace sapwood
