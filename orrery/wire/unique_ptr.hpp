// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/move/make_unique.hpp>
#include <boost/move/unique_ptr.hpp>

namespace orrery::wire {

/// The owner of an object, as std::unique_ptr, in what users' programs read.
///
/// Problem: with libstdc++ 12 each type that a std::unique_ptr owns costs the compiler 4 MB (some
/// 25 ms), as it lies in a std::tuple; and its header reads all streams. Boost's, of the same
/// meaning, costs 1 MB, and reads nothing. Interfaces that users see have std::unique_ptr.
using boost::movelib::make_unique;
using boost::movelib::make_unique_definit;  // std::make_unique_for_overwrite
using boost::movelib::unique_ptr;

}  // namespace orrery::wire
