// SPDX-License-Identifier: Apache-2.0
// What most tests of services include, precompiled for them as common.hpp is for all others. No test leans on it.
#pragma once

#include "common.hpp"

#include <orrery/process/remote_cast.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <fmt/format.h>

namespace orrery::testing {

// Most tests use a list of numbers, so that its code is made with the precompiled header, once.
template <class List>
int use_common_list() {
  const List list = List::make();
  auto session = list.open();
  session.insert(1, 2);
  session.erase(2);
  return session.find(1).value_or(0);
}
template int use_common_list<ordered_list<int, int>>();
template int use_common_list<walking_list<int, int>>();

}  // namespace orrery::testing
