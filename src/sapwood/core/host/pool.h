// The thread pool: run(n_threads, n_tasks, f) calls f(task, worker) for every task; the caller
// works too.
// Threads start when first needed, park after a short spin, and are started again in a forked
// child. A run never waits for a thread that does not hold a task.
#pragma once
#include <stdint.h>

#include <algorithm>
#include <type_traits>

namespace sapwood {

using Task = void (*)(void* f, int64_t task, int worker);
using Poll = bool (*)();  // called from time to time on the calling thread; true = stop

void run_tasks(int n_threads, int64_t n_tasks, Task task, void* f);
int pool_workers();  // threads started in this process, without the callers
// A training beside others begins (1) or ends (-1): each of them takes its part of the threads that
// it may use. Returns how many there are.
int share_threads(int change);
void set_poll(Poll poll);  // how a run notices that the user pressed Ctrl-C

// rows per task, if tasks are runs of rows: 20,000 rows are parted evenly
constexpr int64_t TASK_ROWS = 4096;
// The same where a row takes `work` times as long: 20,000 rows of many outputs are parted evenly,
// too.
inline int64_t task_rows(int64_t work) {
  return std::max<int64_t>(512, TASK_ROWS / work / 512 * 512);
}
inline int64_t task_count(int64_t n, int64_t rows = TASK_ROWS) {
  return (n + rows - 1) / rows;
}
// Few rows are done by the calling thread alone. n: rows, times what is done with each of them.
inline int threads_for(int64_t n, int n_threads) {
  return n < 2 * TASK_ROWS ? 1 : n_threads;
}

// The first task of a worker's share. Shares differ by one task at most.
inline int64_t first_of_share(int64_t worker, int64_t n_tasks, int64_t n_threads) {
  return worker * (n_tasks / n_threads) + std::min(worker, n_tasks % n_threads);
}
// Tasks that are sorted, the longest first, dealt to the shares in turn: which of them is task k.
inline int64_t dealt(int64_t k, int64_t n_tasks, int64_t n_threads) {
  const int64_t each = n_tasks / n_threads;
  const int64_t longer = n_tasks % n_threads;
  const int64_t split = longer * (each + 1);
  if (k < split) {
    return k % (each + 1) * n_threads + k / (each + 1);
  }
  return (k - split) % each * n_threads + longer + (k - split) / each;
}

struct Interrupted {};  // thrown by run() on the calling thread once all its tasks have stopped

template <class F>
void run(int n_threads, int64_t n_tasks, F&& f) {
  using Body = std::remove_reference_t<F>;
  run_tasks(
      n_threads, n_tasks,
      [](void* body, int64_t task, int worker) {
        (*static_cast<Body*>(body))(task, worker);
      },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace sapwood
