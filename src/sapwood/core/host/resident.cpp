#include "host/resident.h"

#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "host/pages.h"

namespace sapwood {
namespace {

constexpr int64_t MIN_ROOM = 2 << 20;  // pages go when less is left
constexpr int64_t MAX_OVERDRAFT = 4 << 20;

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

}  // namespace

void set_resident_limit(size_t n_bytes) {
  const std::lock_guard hold(looking);
  limit = (int64_t)n_bytes;
  touch_credit = 0;
  resident_limited = n_bytes > 0;
}

void release_pages() {
  const std::lock_guard hold(lock);
  for (const Pages& p : all_pages()) {
    let_pages_go(p.at, p.n_bytes);
  }
}

void look_at_resident(int64_t n_bytes) {
  std::unique_lock hold(looking, std::try_to_lock);
  if (!hold.owns_lock()) {  // another thread looks; wait for it where much was touched since
    if (touch_credit > -MAX_OVERDRAFT) {
      return;
    }
    hold.lock();
    if (touch_credit > 0) {
      return;
    }
  }
  if (!resident_limited) {
    return;
  }
  int64_t room = limit - (int64_t)resident_bytes();
  if (room < n_bytes + MIN_ROOM) {
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
  std::erase_if(all_pages(), [&](const Pages& p) {
    return p.at == at;
  });
}

void set_scratch(const char* folder) {
  const std::lock_guard hold(lock);
  scratch_folder() = folder == nullptr ? "" : folder;
}

void* scratch_pages(size_t n_bytes) {
  std::string folder;
  {
    const std::lock_guard hold(lock);
    if (scratch_folder().empty()) {
      return nullptr;
    }
    folder = scratch_folder();
  }
  void* at = map_scratch(folder, n_bytes);
  if (at == nullptr) {
    throw std::bad_alloc();
  }
  add_pages(at, n_bytes);
  return at;
}

}  // namespace sapwood
