// What the kernels need of CUDA beyond the language: NVRTC has it built in, the emulation on the
// host defines it.
#pragma once
#ifdef SAPWOOD_EMULATED
#include SAPWOOD_EMULATED  // the header of the emulation
#else
#define SAPWOOD_KERNEL extern "C" __global__
#define SAPWOOD_BOUNDED(threads, blocks) extern "C" __global__ __launch_bounds__(threads, blocks)
#define SAPWOOD_ARGUMENTS(T) const __grid_constant__ T job
#define SAPWOOD_JOB SAPWOOD_ARGUMENTS(Job)
#define SAPWOOD_APART __noinline__
#define SAPWOOD_INLINE __forceinline__
#define DYNAMIC_SHARED(T, name)                                  \
  extern __shared__ __align__(16) unsigned char dynamic_bytes[]; \
  T* name = (T*)dynamic_bytes
#endif
#include <stdint.h>

namespace sapwood {

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int LANES = 32;

// One byte of the result for each nibble of `select`: bytes 0 .. 3 are those of a, 4 .. 7 those of
// b; with 8 added, the sign of that byte fills the result's byte.
inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t select) {
#ifdef SAPWOOD_EMULATED
  return emulated_prmt(a, b, select);
#else
  uint32_t out;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(select));
  return out;
#endif
}

// A read that starts here, however long the compiler would rather wait: its result is needed later.
inline uint4 read_ahead(const uint4* at) {
#ifdef SAPWOOD_EMULATED
  return *at;
#else
  uint4 w;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(at)
               : "memory");
  return w;
#endif
}

inline int first_lane(unsigned votes) {  // there is one
#ifdef SAPWOOD_EMULATED
  return __builtin_ctz(votes);
#else
  return __ffs((int)votes) - 1;
#endif
}

inline uint64_t multiply_high(uint64_t a, uint64_t b) {
#ifdef SAPWOOD_EMULATED
  return (uint64_t)((unsigned __int128)a * b >> 64);
#else
  return __umul64hi(a, b);
#endif
}

inline void add_to(int64_t* sum, int64_t x) {
  atomicAdd((unsigned long long*)sum, (unsigned long long)x);
}
inline void raise_to(uint64_t* most, uint64_t x) {
  atomicMax((unsigned long long*)most, (unsigned long long)x);
}

// Whether this block is the last of its grid to come here; then all that the others wrote before is
// visible to it.
inline bool last_block(uint32_t* arrived, unsigned n_blocks) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(arrived, 1u) == n_blocks - 1;
    if (last) {
      *arrived = 0;
    }
  }
  __syncthreads();
  if (last) {
    __threadfence();
  }
  return last != 0;
}

// Sums and maxima over a warp; every lane gets them.
inline int64_t warp_sum(int64_t x) {
  for (int step = LANES / 2; step > 0; step /= 2) {
    x += __shfl_xor_sync(ALL_LANES, (long long)x, step);
  }
  return x;
}
inline uint32_t warp_max(uint32_t x) {
#if !defined(SAPWOOD_EMULATED) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(ALL_LANES, x);
#else
  for (int step = LANES / 2; step > 0; step /= 2) {
    const uint32_t other = __shfl_xor_sync(ALL_LANES, x, step);
    x = other > x ? other : x;
  }
  return x;
#endif
}
inline uint64_t warp_max(uint64_t x) {
  for (int step = LANES / 2; step > 0; step /= 2) {
    const uint64_t other = __shfl_xor_sync(ALL_LANES, (unsigned long long)x, step);
    x = other > x ? other : x;
  }
  return x;
}

}  // namespace sapwood
