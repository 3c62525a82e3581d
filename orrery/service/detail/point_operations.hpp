// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/sorted_leaves.hpp>

#include <type_traits>
#include <utility>

namespace orrery::service {

/// Whether it concerns one key only.
[[nodiscard]] constexpr bool is_point(list_operation o) noexcept { return o < list_operation::after; }

/// Frees the memory that the parts of a refused request hold elsewhere: ranges keep their requests
/// until others come in their place.
template <class... Part>
void let_go(Part&... of) noexcept {
  const auto one = []<class T>(T& x) {
    if constexpr (!std::is_trivially_destructible_v<T> && std::is_nothrow_default_constructible_v<T> &&
                  std::is_nothrow_swappable_v<T>) {
      T nothing{};
      using std::swap;
      swap(x, nothing);
    }
  };
  (one(of), ...);
}

/// Where values have no `==` the session does not compile such a request.
template <class Key, class Value>
bool compare_and_update_at(sorted_leaves<Key, Value>& items, list_request<Key, Value>& r) {
  if constexpr (requires(const Value& v) { v == v; }) {
    const Value* const v = items.find_in(r.leaf, r.key, r.hint);
    if (v == nullptr || !(*v == r.expected)) return false;
    *items.change_in(r.leaf, r.key, r.hint) = std::move(r.value);
    return true;
  } else {
    return false;
  }
}

/// Executes a point operation on the items of the range that owns its key, and appends the answer.
/// `r.leaf` and `r.hint` say where the key is. Throws std::bad_alloc.
template <class Key, class Value>
void execute_at(sorted_leaves<Key, Value>& items, list_request<Key, Value>& r, packer& answer) {
  const auto yes_if = [](bool b) { return b ? list_answer::yes : list_answer::no; };
  switch (r.operation) {
    case list_operation::find:
      if (const Value* v = items.find_in(r.leaf, r.key, r.hint)) {
        pack(answer, list_answer::value);
        pack(answer, *v);
      } else {
        pack(answer, list_answer::no);
      }
      return;
    case list_operation::insert:
      if (items.insert_in(r.leaf, std::move(r.key), std::move(r.value), r.hint)) {
        pack(answer, list_answer::yes);
      } else {
        pack(answer, list_answer::no);
        let_go(r.value);
      }
      return;
    case list_operation::erase:
      pack(answer, yes_if(items.erase_in(r.leaf, r.key, r.hint)));
      return;
    case list_operation::update:
      if (Value* v = items.change_in(r.leaf, r.key, r.hint)) {
        *v = std::move(r.value);
        pack(answer, list_answer::yes);
      } else {
        pack(answer, list_answer::no);
        let_go(r.value);
      }
      return;
    case list_operation::insert_or_update:
      if (Value* v = items.change_in(r.leaf, r.key, r.hint)) {
        *v = std::move(r.value);
        pack(answer, list_answer::no);
      } else {
        pack(answer, yes_if(items.insert_in(r.leaf, std::move(r.key), std::move(r.value), r.hint)));
      }
      return;
    case list_operation::compare_and_update:
      if (compare_and_update_at(items, r)) {
        pack(answer, list_answer::yes);
      } else {
        pack(answer, list_answer::no);
        let_go(r.value, r.expected);
      }
      return;
    default:
      return;  // not a point operation
  }
}

}  // namespace orrery::service
