// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/memory.hpp>

#include <memory>
#include <source_location>

namespace orrery::detail {

struct shared_object;

/// Keeps who writes out of what others view: counts of open scopes of each kind in the memory of
/// the object, one for each node that has some, and one of all nodes that find no place.
///
/// Problem: a read view promises that nobody writes meanwhile, and shows memory itself, not a copy.
/// So a write scope does not open while a view is open, nor the other way round. Access by default,
/// and raw pointers, are not seen.
///
/// Owned by a scope; ends with it at the latest. The scopes of a node that is lost do not count any
/// more, and its place is free for another one; only what was counted for all stays.
class scope_guard {
 public:
  enum class kind : bool { view, write };
  scope_guard() = default;
  scope_guard(const scope_guard&) = delete;
  scope_guard& operator=(const scope_guard&) = delete;
  ~scope_guard() { end(); }
  /// Throws usage_error that names both places.
  void begin(std::shared_ptr<const shared_object> o, kind k, const std::source_location& where);
  void end() noexcept;

  /// What a message writes, for a scope that is open elsewhere. Throws usage_error.
  static void require_no_view(const shared_object& o);

 private:
  std::shared_ptr<const shared_object> object_;
  kind kind_ = kind::view;
  std::size_t place_ = 0;  // of the count among those of nodes; their number: the one of all
};

}  // namespace orrery::detail
