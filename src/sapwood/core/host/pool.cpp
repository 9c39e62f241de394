// One 64-bit ticket holds the whole state of a run: | limit 10 | total 18 | back 18 | front 18 |.
// Even workers claim the first task that is left, odd workers the last. So a worker gets the same end of the rows in
// every run and finds them in its cache. (Measured with two workers: if both claim from the front, the moves of a
// partition take 2.5 times as long.) The caller waits until all tasks are done, not until all threads arrive, so a
// worker that the operating system has suspended delays nothing unless it holds a task.
#include "host/pool.h"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "host/resident.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sapwood {
namespace {

using Clock = std::chrono::steady_clock;
// Waking a parked worker takes 2 to 26 us, a spinning one 0.1 us. Measured while two other processes keep the two cores
// busy: 5 us of spinning is 2.9 times as slow as 20 us; 50 and 100 us are sometimes 1.8 times as slow. On a machine
// without other work all of them are equal.
constexpr auto SPIN = std::chrono::microseconds(20);
constexpr auto POLL_EVERY = std::chrono::milliseconds(50);
constexpr int64_t MAX_TASKS = (1 << 18) - 1;
constexpr int64_t TASK_BYTES = TASK_ROWS * 64;  // that a task is taken to touch of the arrays by row
constexpr int MAX_THREADS = (1 << 10) - 1;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

thread_local bool inside = false;  // in a task: a nested run stays on this thread and does not check for Ctrl-C

struct Pool {
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<uint32_t> done{0};
  alignas(64) std::atomic<uint32_t> wake{0};
  alignas(64) std::atomic<int> parked{0};
  std::atomic<bool> joining{false};  // the caller sleeps until `done` changes
  std::atomic<bool> stop{false};     // the run was interrupted or failed: claim tasks, do not run them
  std::mutex busy;                   // one run at a time; a second caller does its tasks alone
  std::exception_ptr error;
  std::mutex error_lock;
  Task task = nullptr;
  void* body = nullptr;
  int n_workers = 0;

  static constexpr uint64_t FRONT = 1, BACK = 1ull << 18;
  static uint32_t front(uint64_t t) { return (uint32_t)(t & MAX_TASKS); }
  static uint32_t back(uint64_t t) { return (uint32_t)(t >> 18 & MAX_TASKS); }
  static uint32_t total(uint64_t t) { return (uint32_t)(t >> 36 & MAX_TASKS); }
  static int limit(uint64_t t) { return (int)(t >> 54); }
  static bool has_work(uint64_t t, int worker) { return front(t) + back(t) < total(t) && worker < limit(t); }
  static uint64_t fresh(int n_threads, int64_t n_tasks) { return (uint64_t)n_threads << 54 | (uint64_t)n_tasks << 36; }

  void execute(uint32_t k, int worker) {
    if (stop.load(std::memory_order_relaxed)) return;
    try {
      touch(TASK_BYTES);
      task(body, k, worker);
    } catch (...) {
      const std::lock_guard hold(error_lock);
      if (!error) error = std::current_exception();
      stop.store(true, std::memory_order_relaxed);
    }
  }

  template <class Between>
  void drain(int worker, Between&& between) {
    const bool last = worker % 2 == 1;
    uint64_t t = ticket.load(std::memory_order_acquire);
    while (has_work(t, worker)) {
      // A compare-exchange, not an add: a late worker must not claim a task of a newer run with fewer threads.
      const uint64_t claimed = t + (last ? BACK : FRONT);
      if (!ticket.compare_exchange_weak(t, claimed, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      execute(last ? total(t) - 1 - back(t) : front(t), worker);
      if (done.fetch_add(1) + 1 == total(t) && joining.load()) done.notify_all();
      between();
      t = ticket.load(std::memory_order_acquire);
    }
  }

  void work(int worker) {
    inside = true;
    for (;;) {
      drain(worker, [] {});
      auto since = Clock::now();
      bool found = false;
      for (int spins = 0; !found; spins++) {
        if (has_work(ticket.load(std::memory_order_acquire), worker)) found = true;
        else if ((spins & 63) == 63 && Clock::now() - since > SPIN) break;
        else pause();
      }
      if (found) continue;
      const uint32_t seen = wake.load();
      parked.fetch_add(1);
      if (!has_work(ticket.load(), worker)) wake.wait(seen);
      parked.fetch_sub(1);
    }
  }

  void hire(int n) {  // workers live as long as the process; if no thread can be started, fewer do the work
    while (n_workers < n) {
      try {
        std::thread(&Pool::work, this, n_workers + 1).detach();
      } catch (const std::system_error&) {
        return;
      }
      n_workers++;
    }
  }
};

std::atomic<Pool*> the_pool{nullptr};
std::atomic<Poll> the_poll{nullptr};

Pool& pool() {
  Pool* p = the_pool.load(std::memory_order_acquire);
  if (p != nullptr) return *p;
  Pool* fresh = new Pool;
  if (the_pool.compare_exchange_strong(p, fresh)) return *fresh;
  delete fresh;
  return *p;
}

#ifndef _WIN32
// The child of a fork has no pool threads. It starts a new pool and leaves the old one alone: its locks may be held.
void after_fork() {
  the_pool.store(nullptr);
  inside = false;
}
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);
#endif

struct Poller {
  Clock::time_point last = Clock::now();
  bool operator()() {
    const Poll poll = the_poll.load(std::memory_order_relaxed);
    if (poll == nullptr) return false;
    const auto now = Clock::now();
    if (now - last < POLL_EVERY) return false;
    last = now;
    return poll();
  }
};

void run_alone(int64_t n_tasks, Task task, void* body) {
  static thread_local Poller poll;  // kept between runs, so that Ctrl-C also stops many short runs
  for (int64_t k = 0; k < n_tasks; k++) {
    touch(TASK_BYTES);
    task(body, k, 0);
    if (!inside && poll()) throw Interrupted{};
  }
}

}  // namespace

int pool_workers() {
  const Pool* p = the_pool.load();
  return p == nullptr ? 0 : p->n_workers;
}

void set_poll(Poll poll) { the_poll.store(poll); }

void run_tasks(int n_threads, int64_t n_tasks, Task task, void* body) {
  if (n_tasks <= 0) return;
  if (n_threads <= 1 || n_tasks == 1 || inside) return run_alone(n_tasks, task, body);
  if (n_tasks > MAX_TASKS) {  // several tasks at a time
    const int64_t step = (n_tasks + MAX_TASKS - 1) / MAX_TASKS;
    return run(n_threads, (n_tasks + step - 1) / step, [&](int64_t k, int worker) {
      for (int64_t i = k * step; i < std::min(n_tasks, (k + 1) * step); i++) task(body, i, worker);
    });
  }
  Pool& p = pool();
  std::unique_lock hold(p.busy, std::try_to_lock);
  if (!hold.owns_lock()) return run_alone(n_tasks, task, body);
  n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
  p.hire(n_threads - 1);
  p.task = task, p.body = body;
  p.stop.store(false, std::memory_order_relaxed);
  p.done.store(0, std::memory_order_relaxed);
  p.ticket.store(Pool::fresh(n_threads, n_tasks), std::memory_order_seq_cst);
  if (p.parked.load() > 0) {
    p.wake.fetch_add(1);
    p.wake.notify_all();
  }
  static thread_local Poller poll;
  bool interrupted = false;
  auto look = [&] {
    if (!interrupted && poll()) {
      interrupted = true;
      p.stop.store(true, std::memory_order_relaxed);
    }
  };
  inside = true;
  p.drain(0, look);
  inside = false;
  const auto since = Clock::now();
  for (int spins = 0;; spins++) {
    uint32_t d = p.done.load(std::memory_order_acquire);
    if (d == (uint32_t)n_tasks) break;
    if ((spins & 63) != 63 || Clock::now() - since < SPIN) {
      pause();
      continue;
    }
    p.joining.store(true);
    while ((d = p.done.load()) != (uint32_t)n_tasks) p.done.wait(d);
    p.joining.store(false);
    break;
  }
  std::exception_ptr error;
  std::swap(error, p.error);
  hold.unlock();
  if (interrupted) throw Interrupted{};
  if (error) std::rethrow_exception(error);
}

}  // namespace sapwood
