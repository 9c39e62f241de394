// Allocations of C++ that fail on demand: loaded before the program by LD_PRELOAD.
//
// fail_new(n): the n-th operator new from now on, of any thread, throws; 0 counts only. counted(): how many there were.

#include <dlfcn.h>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

static std::atomic<long> count{0}, fatal{0};

extern "C" void fail_new(long n) {
  fatal = n;
  count = 0;
}
extern "C" long counted() { return count; }

static bool ours(void* caller) {
  Dl_info found;
  return dladdr(caller, &found) && found.dli_fname && std::strstr(found.dli_fname, "_core");
}

static void* allocate(std::size_t size, std::size_t alignment, void* caller) {
  if (ours(caller) && ++count == fatal) throw std::bad_alloc();
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  void* at = nullptr;
  if (posix_memalign(&at, alignment, size ? size : 1)) throw std::bad_alloc();
  return at;
}

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t), __builtin_return_address(0)); }
void* operator new[](std::size_t size) {
  return allocate(size, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t by) {
  return allocate(size, (std::size_t)by, __builtin_return_address(0));
}
void* operator new[](std::size_t size, std::align_val_t by) {
  return allocate(size, (std::size_t)by, __builtin_return_address(0));
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
