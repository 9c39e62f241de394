#include "host/memory.h"

#include <stdint.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <new>
#include <utility>

#include "host/pages.h"
#include "host/resident.h"

namespace sapwood {

namespace {
constexpr size_t HUGE_PAGE = size_t(2) << 20, LARGE = size_t(256) << 10;
constexpr std::align_val_t LINE{64};
}  // namespace

// Large blocks are mapped and unmapped one by one. The heap would not return them to the system or
// use huge pages.
Memory::Memory(size_t n_bytes) : size_(n_bytes) {
  if (n_bytes == 0) {
    return;
  }
  if (n_bytes < LARGE) {
    data_ = ::operator new(n_bytes, LINE);
    return;
  }
  if (n_bytes >= HUGE_PAGE && (mapped_ = scratch_pages(n_bytes)) != nullptr) {
    data_ = mapped_;
    mapped_size_ = n_bytes;
    of_file_ = true;
    return;
  }
  const size_t spare = n_bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
  void* at = map_memory(n_bytes + spare);
  if (at == nullptr) {
    throw std::bad_alloc();
  }
  mapped_ = at;
  mapped_size_ = n_bytes + spare;
  data_ = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(at) + spare) &
                                  ~(uintptr_t)(spare == 0 ? 0 : HUGE_PAGE - 1));
  if (spare != 0) {
    want_huge_pages(data_, n_bytes);
  }
}
Memory Memory::of_file(int file, size_t offset, size_t n_bytes) {
  Memory m;
  void* at = map_file(file, offset, n_bytes);
  if (at == nullptr) {
    throw std::bad_alloc();
  }
  m.data_ = m.mapped_ = at;
  m.size_ = m.mapped_size_ = n_bytes;
  m.of_file_ = true;
  add_pages(at, n_bytes);
  return m;
}
Memory::~Memory() {
  if (of_file_) {
    remove_pages(mapped_);
    unmap_file(mapped_, mapped_size_);
  } else if (mapped_ != nullptr) {
    unmap_memory(mapped_, mapped_size_);
  } else if (data_ != nullptr) {
    ::operator delete(data_, LINE);
  }
}
Memory::Memory(Memory&& o) noexcept {
  *this = std::move(o);
}
Memory& Memory::operator=(Memory&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  std::swap(mapped_, o.mapped_);
  std::swap(mapped_size_, o.mapped_size_);
  std::swap(of_file_, o.of_file_);
  return *this;
}

void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace sapwood
