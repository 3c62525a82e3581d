// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace orrery::service {

// Changes of a vector that happen as a whole or not at all, also where moves of its elements throw.
// A vector itself is left with one element twice then, or with one too many. Where moves may throw,
// they make a copy of the vector, and swap.

template <class Vector, class T = typename Vector::value_type>
inline constexpr bool changes_in_place =
    (std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>) ||
    !std::is_copy_constructible_v<T>;

/// Puts x in front of the element `at`. It needs no memory if there is room, and moves do not
/// throw.
template <class Vector>
void insert_whole(Vector& all, std::size_t at, typename Vector::value_type&& x) {
  const auto place = all.begin() + static_cast<std::ptrdiff_t>(at);
  if constexpr (changes_in_place<Vector>) {
    all.insert(place, std::move(x));
  } else {
    Vector changed;
    changed.reserve(std::max(all.capacity(), all.size() + 1));
    changed.insert(changed.end(), all.begin(), place);
    changed.push_back(std::move(x));
    changed.insert(changed.end(), place, all.end());
    all.swap(changed);
  }
}

/// Takes the element `at` out. It needs no memory if moves do not throw.
template <class Vector>
void erase_whole(Vector& all, std::size_t at) {
  const auto place = all.begin() + static_cast<std::ptrdiff_t>(at);
  if constexpr (changes_in_place<Vector>) {
    all.erase(place);
  } else {
    Vector changed;
    changed.reserve(all.capacity());
    changed.insert(changed.end(), all.begin(), place);
    changed.insert(changed.end(), place + 1, all.end());
    all.swap(changed);
  }
}

/// The next element of the vector needs no memory.
template <class Vector>
void make_room_in(Vector& all) {
  if (all.size() == all.capacity()) all.reserve(2 * all.size() + 1);
}

}  // namespace orrery::service
