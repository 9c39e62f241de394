// Every worker has a share of the tasks: neighbours, at the same place among all of them in every
// run. So it finds rows that it wrote in its own cache. (Measured with two workers: if both claim
// from the front, the moves of a partition take 2.5 times as long.) A worker whose share is done
// takes tasks from the ends of the others'. The caller waits until all tasks are done, not until
// all threads arrive, so a worker that the operating system has suspended delays nothing unless it
// holds a task.
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
// Waking a parked worker takes 2 to 26 us, a spinning one 0.1 us. Measured while two other
// processes keep the two cores
// busy: 5 us of spinning is 2.9 times as slow as 20 us; 50 and 100 us are sometimes 1.8 times as
// slow. On a machine without other work all of them are equal.
constexpr auto SPIN = std::chrono::microseconds(20);
constexpr auto POLL_EVERY = std::chrono::milliseconds(50);
constexpr int64_t MAX_TASKS = (1 << 18) - 1;
// that a task is taken to touch of the arrays by row
constexpr int64_t TASK_BYTES = TASK_ROWS * 64;
constexpr int MAX_THREADS = (1 << 10) - 1;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// in a task: a nested run stays on this thread and does not check for Ctrl-C
thread_local bool inside = false;

struct alignas(64) Share {
  std::atomic<uint64_t> left{0};  // | run 28 | end 18 | next 18 |
};

struct Pool {
  alignas(64) std::atomic<uint64_t> ticket{0};  // | run 54 | threads 10 |: a run is known by it
  alignas(64) std::atomic<uint32_t> done{0};
  alignas(64) std::atomic<uint32_t> wake{0};
  alignas(64) std::atomic<int> parked{0};
  std::atomic<bool> joining{false};  // the caller sleeps until `done` changes
  // the run was interrupted or failed: claim tasks, do not run them
  std::atomic<bool> stop{false};
  std::mutex busy;  // one run at a time; a second caller does its tasks alone
  std::exception_ptr error;
  std::mutex error_lock;
  Task task = nullptr;  // of the run, as the next two: they stay until its last task is done
  void* body = nullptr;
  uint32_t n_tasks = 0;
  int n_workers = 0;
  Share shares[MAX_THREADS];

  static constexpr uint64_t NEXT = 1, END = 1ull << 18;
  static uint32_t next(uint64_t left) { return (uint32_t)(left & MAX_TASKS); }
  static uint32_t end(uint64_t left) { return (uint32_t)(left >> 18 & MAX_TASKS); }
  static uint64_t run_of(uint64_t left) { return left >> 36; }
  static int threads_of(uint64_t t) { return (int)(t & MAX_THREADS); }
  // of the run, in its shares
  static uint64_t tag(uint64_t t) { return t >> 10 & ((1ull << 28) - 1); }

  void begin(int n_threads, int64_t n) {
    const uint64_t t =
        ((ticket.load(std::memory_order_relaxed) >> 10) + 1) << 10 | (uint64_t)n_threads;
    n_tasks = (uint32_t)n;
    for (int worker = 0; worker < n_threads; worker++) {
      const auto first = (uint64_t)first_of_share(worker, n, n_threads);
      const auto last = (uint64_t)first_of_share(worker + 1, n, n_threads);
      shares[worker].left.store(tag(t) << 36 | last << 18 | first, std::memory_order_relaxed);
    }
    done.store(0, std::memory_order_relaxed);
    ticket.store(t, std::memory_order_seq_cst);
  }

  void execute(uint32_t k, int worker) {
    if (stop.load(std::memory_order_relaxed)) {
      return;
    }
    try {
      touch(TASK_BYTES);
      task(body, k, worker);
    } catch (...) {
      const std::lock_guard hold(error_lock);
      if (!error) {
        error = std::current_exception();
      }
      stop.store(true, std::memory_order_relaxed);
    }
  }

  // Does tasks of run t until none is left: first those of the worker's share, then those of the
  // others, from their ends.
  template <class Between>
  void drain(uint64_t t, int worker, Between&& between) {
    const int n = threads_of(t);
    for (int turn = 0; turn < n && worker < n && ticket.load(std::memory_order_relaxed) == t;
         turn++) {
      std::atomic<uint64_t>& share =
          shares[worker + turn < n ? worker + turn : worker + turn - n].left;
      uint64_t left = share.load(std::memory_order_acquire);
      // of a newer run, a late worker claims nothing
      while (run_of(left) == tag(t) && next(left) < end(left)) {
        const uint64_t claimed = turn == 0 ? left + NEXT : left - END;
        if (!share.compare_exchange_weak(left, claimed, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
          continue;
        }
        const uint32_t all = n_tasks;  // before this task is done
        execute(turn == 0 ? next(left) : end(left) - 1, worker);
        if (done.fetch_add(1) + 1 == all && joining.load()) {
          done.notify_all();
        }
        between();
        left = share.load(std::memory_order_acquire);
      }
    }
  }

  void work(int worker) {
    inside = true;
    uint64_t seen = 0;  // the last run, of which nothing is left
    for (;;) {
      const auto since = Clock::now();
      bool found = false;
      for (int spins = 0; !found; spins++) {
        const uint64_t t = ticket.load(std::memory_order_acquire);
        found = t != seen && worker < threads_of(t);
        seen = t;
        if (found) {
          drain(t, worker, [] {});
        } else if ((spins & 63) == 63 && Clock::now() - since > SPIN) {
          break;
        } else {
          pause();
        }
      }
      if (found) {
        continue;
      }
      const uint32_t woken = wake.load();
      parked.fetch_add(1);
      if (ticket.load() == seen) {
        wake.wait(woken);
      }
      parked.fetch_sub(1);
    }
  }

  // workers live as long as the process; if no thread can be started, fewer do the work
  void hire(int n) {
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
std::atomic<int> n_beside{0};  // trainings beside each other

Pool& pool() {
  Pool* p = the_pool.load(std::memory_order_acquire);
  if (p != nullptr) {
    return *p;
  }
  Pool* fresh = new Pool;
  if (the_pool.compare_exchange_strong(p, fresh)) {
    return *fresh;
  }
  delete fresh;
  return *p;
}

#ifndef _WIN32
// The child of a fork has no pool threads. It starts a new pool and leaves the old one alone: its
// locks may be held.
void after_fork() {
  the_pool.store(nullptr);
  n_beside.store(0);
  inside = false;
}
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);
#endif

struct Poller {
  Clock::time_point last = Clock::now();
  bool operator()() {
    const Poll poll = the_poll.load(std::memory_order_relaxed);
    if (poll == nullptr) {
      return false;
    }
    const auto now = Clock::now();
    if (now - last < POLL_EVERY) {
      return false;
    }
    last = now;
    return poll();
  }
};

void run_alone(int64_t n_tasks, Task task, void* body) {
  static thread_local Poller poll;  // kept between runs, so that Ctrl-C also stops many short runs
  for (int64_t k = 0; k < n_tasks; k++) {
    touch(TASK_BYTES);
    task(body, k, 0);
    if (!inside && poll()) {
      throw Interrupted{};
    }
  }
}

}  // namespace

int pool_workers() {
  const Pool* p = the_pool.load();
  return p == nullptr ? 0 : p->n_workers;
}

int share_threads(int change) {
  return n_beside.fetch_add(change) + change;
}

void set_poll(Poll poll) {
  the_poll.store(poll);
}

void run_tasks(int n_threads, int64_t n_tasks, Task task, void* body) {
  if (n_tasks <= 0) {
    return;
  }
  n_threads /= std::max(1, n_beside.load(std::memory_order_relaxed));
  if (n_threads <= 1 || n_tasks == 1 || inside) {
    return run_alone(n_tasks, task, body);
  }
  if (n_tasks > MAX_TASKS) {  // several tasks at a time
    const int64_t step = (n_tasks + MAX_TASKS - 1) / MAX_TASKS;
    return run(n_threads, (n_tasks + step - 1) / step, [&](int64_t k, int worker) {
      for (int64_t i = k * step; i < std::min(n_tasks, (k + 1) * step); i++) {
        task(body, i, worker);
      }
    });
  }
  Pool& p = pool();
  std::unique_lock hold(p.busy, std::try_to_lock);
  if (!hold.owns_lock()) {
    return run_alone(n_tasks, task, body);
  }
  n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
  p.hire(n_threads - 1);
  p.task = task;
  p.body = body;
  p.stop.store(false, std::memory_order_relaxed);
  p.begin(n_threads, n_tasks);
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
  p.drain(p.ticket.load(std::memory_order_relaxed), 0, look);
  inside = false;
  const auto since = Clock::now();
  for (int spins = 0;; spins++) {
    uint32_t d = p.done.load(std::memory_order_acquire);
    if (d == (uint32_t)n_tasks) {
      break;
    }
    if ((spins & 63) != 63 || Clock::now() - since < SPIN) {
      pause();
      continue;
    }
    p.joining.store(true);
    while ((d = p.done.load()) != (uint32_t)n_tasks) {
      p.done.wait(d);
    }
    p.joining.store(false);
    break;
  }
  std::exception_ptr error;
  std::swap(error, p.error);
  hold.unlock();
  if (interrupted) {
    throw Interrupted{};
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace sapwood
