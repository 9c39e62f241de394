// The Python module `_core`: argument checks and the release of the GIL, no arithmetic.
#include <stdlib.h>

#include "bind/arrays.h"
#include "cpu/kernels/kernels.h"

namespace sapwood {

void bind_data(nb::module_& m);
void bind_store(nb::module_& m);
void bind_codes(nb::module_& m);
void bind_shelves(nb::module_& m);
void bind_trainer(nb::module_& m);
void bind_model(nb::module_& m);
void bind_math(nb::module_& m);
void bind_group(nb::module_& m);

namespace {

bool interrupted() {
  gate.enter();
  const nb::gil_scoped_acquire acquire;
  gate.entered();
  return PyErr_CheckSignals() != 0;
}

void set_isa(const std::string& name) {
  if (choose_kernels(name.c_str()) == nullptr) {
    refuse("this machine has no path named " + name + "; try auto, portable, avx2 or avx512");
  }
}

}  // namespace
}  // namespace sapwood

using namespace sapwood;

NB_MODULE(_core, m) {
  set_poll(interrupted);
  // Ctrl-C in a call that keeps the GIL: KeyboardInterrupt is set already.
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Interrupted&) {
    }
  });
  nb::set_leak_warnings(false);  // a daemon thread may hold objects when the process ends
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    gate.close();
  }));
  if (const char* isa = getenv("SAPWOOD_ISA"); isa != nullptr && *isa != 0) {
    set_isa(isa);
  }
  bind_data(m);
  bind_store(m);
  bind_codes(m);
  bind_shelves(m);
  bind_trainer(m);
  bind_model(m);
  bind_math(m);
  bind_group(m);
  m.attr("UNSEEN") = UNSEEN;
  m.def("isa", [] {
    return kernels().name;
  });
  m.def("set_isa", set_isa, "name"_a);
  m.def("n_workers", pool_workers);
  m.def("share_threads", share_threads, "change"_a);
}
