// expect: the elements of shared data have to be trivially copyable
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <string>

orrery::shared_vector<std::string> f() { return orrery::shared_vector<std::string>(4); }
