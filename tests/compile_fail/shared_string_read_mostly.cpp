// expect: need elements that are trivially
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <string>

void f(orrery::shared<std::string> s) {
  with(read_mostly(s), [](auto&) {});
}
