// Resident memory under a limit: pages of mapped files are let go when the process has come close
// to it, and are read again when they are needed. No result depends on it.
// Enters: a limit, and how much is about to be touched. Leaves: nothing; pages go.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <atomic>

namespace sapwood {

// The system maps up to this many bytes around a byte that is touched.
constexpr int64_t FAULT_BYTES = 1 << 16;

inline std::atomic<bool> resident_limited{false};
// bytes that may be touched before the next look at the process
inline std::atomic<int64_t> touch_credit{0};

void set_resident_limit(size_t n_bytes);  // 0: none
// of this process, as the system counts; 0 where it does not tell
size_t resident_bytes();
void release_pages();                      // of all mapped files
void look_at_resident(int64_t n_bytes);    // which are about to be touched
void add_pages(void* at, size_t n_bytes);  // of a mapped file
void remove_pages(void* at);
// Where large arrays are put from now on: files in this folder, whose pages can go too; null: in
// memory.
void set_scratch(const char* folder);
// null: there is no such folder; throws std::bad_alloc where the disk is full
void* scratch_pages(size_t n_bytes);

// About so many bytes of mapped memory will be touched.
inline void touch(int64_t n_bytes) {
  if (!resident_limited.load(std::memory_order_relaxed)) {
    return;
  }
  if (touch_credit.fetch_sub(n_bytes, std::memory_order_relaxed) <= n_bytes) {
    look_at_resident(n_bytes);
  }
}
// The bytes of n entries among `span`, each of so many bytes.
inline int64_t touched(int64_t n, int64_t span, int64_t bytes) {
  return std::min(n * std::max(FAULT_BYTES, bytes), span * bytes) + FAULT_BYTES;
}

}  // namespace sapwood
