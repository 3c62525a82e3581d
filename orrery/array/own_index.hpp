// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array.hpp>
#include <orrery/array/detail/index_types.hpp>

// Arrays whose indices are of a type of the program's own, or of any other than int, std::int64_t,
// index<2>, index<3>, std::string and bit_path: what depends on that type is compiled in the
// program. It takes the compiler some three seconds for each type, and six with -O2, which is why
// array.hpp does not include it.
namespace orrery::detail {

template <class Index>
struct own_index {};

}  // namespace orrery::detail
