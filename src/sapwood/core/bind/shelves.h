// What the core has by name, and the fields that go with it.
#pragma once
#include "bind/arrays.h"
#include "cpu/leaf/leaf.h"
#include "registry.h"

namespace sapwood {

template <class Info>
int index_of(int n, const Info& (*at)(int), const std::string& name, const char* what) {
  for (int i = 0; i < n; i++) {
    if (name == at(i).name) {
      return i;
    }
  }
  refuse(std::string("no ") + what + " named " + name);
}

// A field is a number, or a list of one for each output.
std::vector<double> fields_of(const ObjectiveInfo& o, nb::dict given, int output = 0,
                              int n_outputs = 1);
Link link_of(const std::string& name);
nb::tuple loss_gradient_hessian(LeafLossSums sums);  // loss, gradient and hessian

}  // namespace sapwood
