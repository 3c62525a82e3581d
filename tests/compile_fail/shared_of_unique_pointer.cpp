// expect: have to be copyable
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <memory>

orrery::shared_vector<std::unique_ptr<int>> f() { return orrery::shared_vector<std::unique_ptr<int>>(4); }
