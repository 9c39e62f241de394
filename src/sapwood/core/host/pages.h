// Pages: what the operating system does with memory; the one place in the core that knows which
// system it is.
// Enters: sizes, files, folders. Leaves: mapped memory, or null where the system has none.
#pragma once
#include <stddef.h>

#include <string>

namespace sapwood {

// not cleared by us; the system's pages are zero
void* map_memory(size_t n_bytes);
void unmap_memory(void* at, size_t n_bytes);     // of map_memory
void want_huge_pages(void* at, size_t n_bytes);  // where the system has them
// to be read only; offset: a multiple of 65536
void* map_file(int file, size_t offset, size_t n_bytes);
// a new file without a name, its blocks reserved
void* map_scratch(const std::string& folder, size_t n_bytes);
void unmap_file(void* at, size_t n_bytes);  // of map_file and map_scratch
// of a file: they are read again when they are needed
void let_pages_go(void* at, size_t n_bytes);

}  // namespace sapwood
