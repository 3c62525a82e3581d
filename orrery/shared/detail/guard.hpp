// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/memory.hpp>

#include <memory>
#include <source_location>
#include <string>
#include <string_view>

namespace orrery::detail {

struct shared_object;

/// A place in the source that writes elements without a scope of its own on this machine.
class write_site {
 public:
  /// `what`: "copy".
  write_site(const char* what, const std::source_location& where) noexcept : what_(what), where_(where) {}
  /// The text of one of another PE; must outlive it.
  explicit write_site(std::string_view told) noexcept : told_(told) {}
  /// "copy at mm2.cpp:12", for errors and for who is asked to write.
  [[nodiscard]] std::string text() const;

 private:
  const char* what_ = "";
  std::source_location where_;
  std::string_view told_;
};

/// Keeps who writes out of what others view: counts of open scopes of each kind in the memory of
/// the object, one for each node that has some, and one of all nodes that find no place.
///
/// Problem: a read view promises that nobody writes meanwhile, and shows memory itself, not a copy.
/// So a write scope does not open while a view is open, nor the other way round. Access by default,
/// and raw pointers, are not seen.
///
/// A scope of a part is listed with its rectangle, so that scopes of other elements do not mind.
/// The list is short: where it is full, a part counts as all.
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
  /// Elements of a part, by rows.
  struct rectangle {
    std::uint64_t row;
    std::uint64_t rows;
    std::uint64_t column;
    std::uint64_t columns;
  };
  /// For all elements. Throws usage_error that names both places.
  void begin(std::shared_ptr<const shared_object> o, kind k, const std::source_location& where);
  /// For some.
  void begin(std::shared_ptr<const shared_object> o, kind k, const std::source_location& where, const rectangle& part);
  void end() noexcept;

  // A write that opens no scope here: of a message, for a scope that is open elsewhere, and of a
  // transfer. `writer`: what it is and where, such as "release at mm2.cpp:12". The others throw
  // usage_error that names the view's place and the writer's.
  /// Somebody views some of what lies on this machine: only then the others need be asked.
  [[nodiscard]] static bool is_viewed(const shared_object& o);
  /// Nobody views any of it.
  static void require_no_view(const shared_object& o, std::string_view writer);
  /// Nobody views these elements of a part of the layout.
  static void require_not_viewed(const shared_object& o, std::uint32_t part, std::uint64_t first, std::uint64_t count,
                                 std::string_view writer);
  static void require_not_viewed(const shared_object& o, const rectangle& r, std::string_view writer);
  static void require_not_viewed(const shared_object& o, const rectangle& r, const write_site& writer);

 private:
  std::shared_ptr<const shared_object> object_;
  kind kind_ = kind::view;
  // The place of the count among those of nodes; their number: the one of all; behind: in the list
  // of parts.
  std::size_t place_ = 0;
};

}  // namespace orrery::detail
