// expect: send and receive<T> need a T that is a value
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string_view>

void f() { (void)orrery::receive<std::string_view>(); }
