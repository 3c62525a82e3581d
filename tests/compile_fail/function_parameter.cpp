// expect: a raw pointer cannot be sent to another node: use std::unique_ptr
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

void work(const int*) {}

void f(const int* p) { orrery::spawn(orrery::here(), work, p); }
