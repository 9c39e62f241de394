// Memory: blocks for arrays.
#pragma once
#include <stddef.h>

namespace sapwood {

// Aligned, not cleared, in huge pages if the system has them; returned to the system when freed.
// Large blocks are files while there is a scratch folder (resident.h).
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t n_bytes);
  // A part of an open file, to be read only; `offset` is a multiple of 65536. Throws
  // std::bad_alloc.
  static Memory of_file(int file, size_t offset, size_t n_bytes);
  ~Memory();
  Memory(Memory&& o) noexcept;
  Memory& operator=(Memory&& o) noexcept;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t size() const { return size_; }

 private:
  void *data_ = nullptr, *mapped_ = nullptr;
  size_t size_ = 0, mapped_size_ = 0;
  bool of_file_ = false;  // its pages may go at any time, and come back
};

// Returns what the heap keeps of freed blocks to the system, where it can be asked to.
void trim_heap();

}  // namespace sapwood
