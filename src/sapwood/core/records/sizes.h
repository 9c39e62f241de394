// Sizes that the layout of codes and the kernels which read them have in common.
#pragma once

namespace sapwood {

// Histogram of byte codes: 264 words a slot. A stride of 2048 bytes would alias in the L1 cache: 6
// to 9 times slower on skewed columns.
constexpr int HIST_STRIDE = 264;
static_assert(HIST_STRIDE * 8 % 2048 != 0);
constexpr int TILE = 16;  // slots histogrammed together: their bins stay in L1
// slots stored side by side: a row of a block is half a cache line
constexpr int SLOT_BLOCK = 2 * TILE;

// leaves of a tree whose rows can have leaf ids of 16 bits
constexpr unsigned long MAX_LEAF_IDS = 65536;

}  // namespace sapwood
