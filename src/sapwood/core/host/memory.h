// Memory: blocks for arrays.
#pragma once
#include <stddef.h>

namespace sapwood {

class Memory {  // aligned, not cleared, in huge pages if the system has them; returned to the system when freed
 public:
  Memory() = default;
  explicit Memory(size_t n_bytes);
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
};

}  // namespace sapwood
