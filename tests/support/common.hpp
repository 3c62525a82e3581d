// SPDX-License-Identifier: Apache-2.0
// What most tests include, precompiled for all of them where the compiler is Clang (tests/CMakeLists.txt says how).
// No test leans on it: each includes what it uses, as other compilers read it alone.
#pragma once

#include <orrery/array/array.hpp>
#include <orrery/array/balance.hpp>
#include <orrery/array/section.hpp>
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::testing {

// Half of what a test of arrays makes the compiler write does not depend on the test's classes: it is what the array of
// any class needs. This one has it made with the precompiled header, once.
struct common_element : element<int> {
  int get(int k) { return n_ + k; }
  void put(const std::vector<double>& v) { n_ = static_cast<int>(v.size()); }
  void name(const std::string& s) { n_ = static_cast<int>(s.size()); }
  template <class A>
  void serialize(A& a) {
    a & n_;
  }
  int n_ = 0;
};
ORRERY_PROCESS(common_element, get, put, name);

inline int use_common_element() {
  const auto all = create_array<common_element>(range<int>{3});
  post(all[1])->put(std::vector<double>{1.0});
  post(all)->name(std::string{"a"});
  return start(all[1])->get(4).get() + all[0]->get(3);
}

}  // namespace orrery::testing
