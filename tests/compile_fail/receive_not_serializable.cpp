// expect: a char pointer cannot be sent to another node: use std::string
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Page {
  const char* data = nullptr;
};

void f() { (void)orrery::receive<Page>(); }
