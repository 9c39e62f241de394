// CUDA on the host, for tests: one block at a time, each of its threads a fibre that runs until a barrier or a shuffle.
// Threads take turns forwards and backwards, so that code that relies on an order of threads fails.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <type_traits>
#include <vector>

struct dim3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;
#define __shared__ static
#define SAPWOOD_KERNEL extern "C"
#define SAPWOOD_BOUNDED(threads, blocks) extern "C"
#define SAPWOOD_ARGUMENTS(T) const T& job
#define SAPWOOD_JOB SAPWOOD_ARGUMENTS(Job)
#define SAPWOOD_APART inline
#define SAPWOOD_INLINE inline
inline unsigned char* dynamic_bytes;
#define DYNAMIC_SHARED(T, name) T* name = (T*)dynamic_bytes

// A switch of stacks: a few instructions where they are known, else that of the system, which calls the kernel.
#if defined(__x86_64__)
asm(R"(
.text
.local switch_stacks
switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
using Context = void*;
extern "C" void switch_stacks(Context* from, Context* to);
inline void begin_context(Context& c, std::vector<char>& stack, void (*run)()) {
  uint64_t* top = (uint64_t*)((uintptr_t)(stack.data() + stack.size()) & ~(uintptr_t)15);
  *--top = 0, *--top = (uint64_t)run;
  for (int i = 0; i < 6; i++) *--top = 0;
  c = top;
}
#else
#include <ucontext.h>
using Context = ucontext_t;
inline void switch_stacks(Context* from, Context* to) { swapcontext(from, to); }
inline void begin_context(Context& c, std::vector<char>& stack, void (*run)()) {
  getcontext(&c);
  c.uc_stack.ss_sp = stack.data(), c.uc_stack.ss_size = stack.size(), c.uc_link = nullptr;
  makecontext(&c, run, 0);
}
#endif

namespace emulation {

struct Barrier {
  int waiting = 0, turn = 0, alive = 0;
};
struct Fibre {
  Context context;
  bool done;
  std::vector<char> stack;
};
inline std::vector<Fibre> fibres;
inline Context scheduler;
inline unsigned current;
inline Barrier block_barrier, warp_barrier[32];
inline uint64_t slots[32][32];
using Kernel = void (*)(const void*, int, int);
inline Kernel kernel;
inline const void* job;
inline int first, second;

inline void release(Barrier& b) {
  if (b.alive > 0 && b.waiting == b.alive) b.waiting = 0, b.turn++;
}
inline void wait(Barrier& b) {
  const int turn = b.turn;
  b.waiting++;
  release(b);
  while (b.turn == turn) switch_stacks(&fibres[current].context, &scheduler);
}
inline void run_fibre() {
  kernel(job, first, second);
  fibres[current].done = true;
  block_barrier.alive--, release(block_barrier);
  Barrier& own = warp_barrier[current / 32];
  own.alive--, release(own);
  switch_stacks(&fibres[current].context, &scheduler);
}
template <class T>
inline T exchange(T value, int from) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  slots[warp][lane] = bits;
  wait(warp_barrier[warp]);
  if (from >= 0 && from < 32) memcpy(&value, &slots[warp][from], sizeof(T));
  wait(warp_barrier[warp]);
  return value;
}

inline void run_block(unsigned n_threads, bool backwards) {
  block_barrier = {0, 0, (int)n_threads};
  for (unsigned w = 0; w < 32; w++) warp_barrier[w] = {0, 0, std::max(0, std::min(32, (int)n_threads - 32 * (int)w))};
  for (unsigned t = 0; t < n_threads; t++) {
    Fibre& f = fibres[t];
    f.done = false;
    begin_context(f.context, f.stack, run_fibre);
  }
  for (bool any = true; any; backwards = !backwards) {
    any = false;
    for (unsigned k = 0; k < n_threads; k++) {
      const unsigned t = backwards ? n_threads - 1 - k : k;
      if (fibres[t].done) continue;
      any = true, current = t, threadIdx = {t, 0, 0};
      switch_stacks(&scheduler, &fibres[t].context);
    }
  }
}

}  // namespace emulation

inline void __syncthreads() { emulation::wait(emulation::block_barrier); }
inline void __syncwarp(unsigned) { emulation::wait(emulation::warp_barrier[threadIdx.x / 32]); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline int __syncthreads_or(int x) {
  static int any[2], turn;
  const int mine = turn;
  any[mine] |= x;
  __syncthreads();
  const int found = any[mine];
  turn = 1 - mine;
  __syncthreads();
  any[mine] = 0;
  return found;
}
template <class T>
inline T __shfl_up_sync(unsigned, T x, int by) {
  return emulation::exchange(x, (int)(threadIdx.x % 32) - by);
}
template <class T>
inline T __shfl_xor_sync(unsigned, T x, int with) {
  return emulation::exchange(x, (int)(threadIdx.x % 32) ^ with);
}
template <class T>
inline T __shfl_sync(unsigned, T x, int from) {
  return emulation::exchange(x, from);
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  unsigned all = 0;
  const unsigned warp = threadIdx.x / 32;
  emulation::slots[warp][threadIdx.x % 32] = vote;
  emulation::wait(emulation::warp_barrier[warp]);
  for (int i = 0; i < 32; i++) all |= (unsigned)(emulation::slots[warp][i] & 1) << i;
  emulation::wait(emulation::warp_barrier[warp]);
  return all;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
template <class T>
inline T atomicAdd(T* at, std::type_identity_t<T> x) {
  using U = std::make_unsigned_t<T>;
  const T old = *at;
  *at = (T)((U)old + (U)x);
  return old;
}
template <class T>
inline T atomicMax(T* at, std::type_identity_t<T> x) {
  const T old = *at;
  *at = x > old ? x : old;
  return old;
}
inline unsigned atomicOr(unsigned* at, unsigned x) {
  const unsigned old = *at;
  *at = old | x;
  return old;
}
inline unsigned atomicAnd(unsigned* at, unsigned x) {
  const unsigned old = *at;
  *at = old & x;
  return old;
}
inline uint32_t emulated_prmt(uint32_t a, uint32_t b, uint32_t select) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t nibble = select >> (4 * i) & 15, byte = (uint32_t)(bytes >> (8 * (nibble & 7))) & 255;
    out |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * i);
  }
  return out;
}

extern "C" void emulate(emulation::Kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned n_threads,
                        uint64_t shared_bytes, const void* job, int first, int second) {
  static bool backwards = false;
  emulation::kernel = kernel, emulation::job = job, emulation::first = first, emulation::second = second;
  while (emulation::fibres.size() < n_threads) {
    emulation::fibres.emplace_back();
    emulation::fibres.back().stack.resize(64 * 1024);
  }
  gridDim = {grid_x, grid_y, grid_z}, blockDim = {n_threads, 1, 1};
  std::vector<uint64_t> bytes(shared_bytes / 8 + 2);
  dynamic_bytes = (unsigned char*)(((uintptr_t)bytes.data() + 15) & ~(uintptr_t)15);
  for (uint64_t at = 0; at < (uint64_t)grid_x * grid_y * grid_z; at++) {
    std::fill(bytes.begin(), bytes.end(), 0xa5a5a5a5a5a5a5a5u);  // shared memory starts with anything
    blockIdx = {(unsigned)(at % grid_x), (unsigned)(at / grid_x % grid_y), (unsigned)(at / grid_x / grid_y)};
    emulation::run_block(n_threads, backwards = !backwards);
  }
}
