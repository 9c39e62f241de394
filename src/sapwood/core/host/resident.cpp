#include "host/resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace sapwood {
namespace {

constexpr int64_t MIN_ROOM = 2 << 20;  // pages go when less is left

struct Pages {
  void* at;
  size_t n_bytes;
};

std::mutex lock, looking;
std::vector<Pages>& all_pages() {
  static auto* pages = new std::vector<Pages>;  // lives as long as the process
  return *pages;
}
std::string& scratch_folder() {
  static auto* folder = new std::string;
  return *folder;
}
int64_t limit = 0;

int statm() {  // opened once
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  return file;
}

}  // namespace

size_t resident_bytes() {
  char text[128];
  const ssize_t n = pread(statm(), text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  char* end;
  strtoull(text, &end, 10);
  return (size_t)strtoull(end, nullptr, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

void set_resident_limit(size_t n_bytes) {
  const std::lock_guard hold(looking);
  limit = (int64_t)n_bytes;
  touch_credit = 0;
  resident_limited = n_bytes > 0;
}

void release_pages() {
  const std::lock_guard hold(lock);
  for (const Pages& p : all_pages()) madvise(p.at, p.n_bytes, MADV_DONTNEED);
}

void look_at_resident() {
  const std::unique_lock hold(looking, std::try_to_lock);
  if (!hold.owns_lock() || !resident_limited) return;  // another thread looks
  int64_t room = limit - (int64_t)resident_bytes();
  if (room < MIN_ROOM) {
    release_pages();
    room = limit - (int64_t)resident_bytes();
  }
  touch_credit = std::max(room / 2, MIN_ROOM / 2);
}

void add_pages(void* at, size_t n_bytes) {
  const std::lock_guard hold(lock);
  all_pages().push_back({at, n_bytes});
}

void remove_pages(void* at) {
  const std::lock_guard hold(lock);
  std::erase_if(all_pages(), [&](const Pages& p) { return p.at == at; });
}

void set_scratch(const char* folder) {
  const std::lock_guard hold(lock);
  scratch_folder() = folder == nullptr ? "" : folder;
}

void* scratch_pages(size_t n_bytes) {
  std::string name;
  {
    const std::lock_guard hold(lock);
    if (scratch_folder().empty()) return nullptr;
    name = scratch_folder() + "/rows-XXXXXX";
  }
  const int file = mkstemp(name.data());
  if (file < 0) throw std::bad_alloc();
  unlink(name.c_str());
  // Blocks of the disk are reserved at once: a full disk must not show as a fault on a later write.
  void* at = posix_fallocate(file, 0, (off_t)n_bytes) == 0
                 ? mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                 : MAP_FAILED;
  close(file);
  if (at == MAP_FAILED) throw std::bad_alloc();
  add_pages(at, n_bytes);
  return at;
}

}  // namespace sapwood
