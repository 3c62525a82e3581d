// expect: a char pointer cannot be sent to another node: use std::string
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

void f(orrery::remote<orrery::function> to) { orrery::send(to, "text"); }
