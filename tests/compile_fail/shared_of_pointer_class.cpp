// expect: have to be trivially copyable or serializable
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

struct holder {
  int* to = nullptr;
  holder() = default;
  holder(const holder& other) : to(other.to) {}
  holder& operator=(const holder&) = default;
};

orrery::shared_vector<holder> f() { return orrery::shared_vector<holder>(4); }
