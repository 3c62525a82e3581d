// expect: orrery: a home function is called with \(const Index&, std::uint32_t pes\)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

orrery::placement_map<int> home([](int i) { return static_cast<std::uint32_t>(i); });
