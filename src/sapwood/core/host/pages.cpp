#include "host/pages.h"

#include <stdint.h>
#include <stdlib.h>

#include "host/resident.h"

#ifdef _WIN32
#define NOMINMAX
#include <io.h>
#include <windows.h>
// After windows.h
#include <psapi.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace sapwood {

#ifdef _WIN32

void* map_memory(size_t n_bytes) {
  return VirtualAlloc(nullptr, n_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}
void unmap_memory(void* at, size_t) {
  VirtualFree(at, 0, MEM_RELEASE);
}
void want_huge_pages(void*, size_t) {}

static void* map_handle(HANDLE file, uint64_t offset, size_t n_bytes, bool write) {
  const uint64_t size = write ? n_bytes : 0;  // 0: that of the file
  const HANDLE section = CreateFileMappingA(file, nullptr, write ? PAGE_READWRITE : PAGE_READONLY,
                                            (DWORD)(size >> 32), (DWORD)size, nullptr);
  if (section == nullptr) {
    return nullptr;
  }
  void* at = MapViewOfFile(section, write ? FILE_MAP_WRITE : FILE_MAP_READ, (DWORD)(offset >> 32),
                           (DWORD)offset, n_bytes);
  CloseHandle(section);  // the view keeps it
  return at;
}

void* map_file(int file, size_t offset, size_t n_bytes) {
  return map_handle((HANDLE)_get_osfhandle(file), offset, n_bytes, false);
}

void* map_scratch(const std::string& folder, size_t n_bytes) {
  char name[MAX_PATH];
  if (GetTempFileNameA(folder.c_str(), "rows", 0, name) == 0) {
    return nullptr;
  }
  const HANDLE file = CreateFileA(name, GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS,
                                  FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (file == INVALID_HANDLE_VALUE) {
    return nullptr;
  }
  void* at = map_handle(file, 0, n_bytes, true);
  CloseHandle(file);  // the file goes with its last view
  return at;
}

void unmap_file(void* at, size_t) {
  UnmapViewOfFile(at);
}
// of pages that are not locked: they leave
void let_pages_go(void* at, size_t n_bytes) {
  VirtualUnlock(at, n_bytes);
}

size_t resident_bytes() {
  PROCESS_MEMORY_COUNTERS found;
  return K32GetProcessMemoryInfo(GetCurrentProcess(), &found, sizeof found) ? found.WorkingSetSize
                                                                            : 0;
}

#else

namespace {
void* mapped(void* at) {
  return at == MAP_FAILED ? nullptr : at;
}

// blocks of the disk: a full one must not show as a fault on a later write
bool reserve(int file, size_t n_bytes) {
#ifdef __APPLE__
  fstore_t wanted = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, (off_t)n_bytes, 0};
  return fcntl(file, F_PREALLOCATE, &wanted) != -1 && ftruncate(file, (off_t)n_bytes) == 0;
#else
  return posix_fallocate(file, 0, (off_t)n_bytes) == 0;
#endif
}
}  // namespace

void* map_memory(size_t n_bytes) {
  return mapped(mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
void unmap_memory(void* at, size_t n_bytes) {
  munmap(at, n_bytes);
}
void want_huge_pages([[maybe_unused]] void* at, [[maybe_unused]] size_t n_bytes) {
#ifdef MADV_HUGEPAGE
  madvise(at, n_bytes, MADV_HUGEPAGE);
#endif
}
void* map_file(int file, size_t offset, size_t n_bytes) {
  return mapped(mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, file, (off_t)offset));
}

void* map_scratch(const std::string& folder, size_t n_bytes) {
  std::string name = folder + "/rows-XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) {
    return nullptr;
  }
  unlink(name.c_str());
  void* at = reserve(file, n_bytes)
                 ? mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                 : MAP_FAILED;
  close(file);
  return mapped(at);
}

void unmap_file(void* at, size_t n_bytes) {
  munmap(at, n_bytes);
}
void let_pages_go(void* at, size_t n_bytes) {
  madvise(at, n_bytes, MADV_DONTNEED);
}

size_t resident_bytes() {
  // opened once; there is none on macOS
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[128];
  const ssize_t n = pread(file, text, sizeof text - 1, 0);
  if (n <= 0) {
    return 0;
  }
  text[n] = 0;
  char* end;
  strtoull(text, &end, 10);
  return (size_t)strtoull(end, nullptr, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

#endif

}  // namespace sapwood
