// Releasing the GIL and taking it again: during a long call other Python threads run, and Ctrl-C
// ends it.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "host/pool.h"

namespace sapwood {
namespace nb = nanobind;
using namespace nb::literals;  // "name"_a

// While Python shuts down, a daemon thread that takes the GIL is ended by an exception through our
// frames, which aborts the process. So such a thread waits for the end of the process instead, and
// Python shuts down only when none of our threads is about to take the GIL.
struct Gate {
  std::atomic<bool> closed{false};
  std::atomic<int> entering{0};
  std::thread::id leaver;

  void enter() {
    entering.fetch_add(1);
    if (!closed || std::this_thread::get_id() == leaver) {
      return;
    }
    entering.fetch_sub(1);
    for (;;) {
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
  void entered() { entering.fetch_sub(1); }
  void close() {
    leaver = std::this_thread::get_id();
    closed = true;
    // Lets threads that are about to take the GIL have it; for a second at most, in case a fork
    // left the count wrong.
    const nb::gil_scoped_release release;
    for (int ms = 0; entering > 0 && ms < 1000; ms++) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};
inline Gate gate;

struct Release {
  PyThreadState* state = PyEval_SaveThread();
  ~Release() {
    gate.enter();
    PyEval_RestoreThread(state);
    gate.entered();
  }
};

// Runs `f` without the GIL; Ctrl-C meanwhile raises KeyboardInterrupt.
template <class F>
auto without_gil(F&& f) {
  try {
    const Release release;
    return f();
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

}  // namespace sapwood
