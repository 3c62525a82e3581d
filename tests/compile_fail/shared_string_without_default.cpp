// expect: need a default constructor
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <string>

struct named {
  explicit named(std::string n) : name(std::move(n)) {}
  std::string name;
  template <class A>
  void serialize(A& a) {
    a & name;
  }
};

orrery::shared_vector<named> f() { return orrery::shared_vector<named>(4); }
