// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/send.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// The handlers of the messages of arrays.
namespace orrery::detail {

class array_core;
struct broadcast_record;
struct cell_base;

/// Which message of which stream this is (order.hpp); stream 0: of none.
struct order_tag {
  std::uint64_t stream = 0;
  std::uint64_t number = 0;
};

/// The handler of a message to elements. All of them have a route; so a message in a mailbox is
/// known to have this class of handler.
struct array_handler : scheduler::handler {
  using forward_function = void (*)(array_core&, cell_base&, scheduler::message*);
  using describe_function = void (*)(wire::type_description&);
  using route_function = slot* (*)(pe&, scheduler::delivery&, const wire::envelope&, std::uint32_t);

  array_handler(std::string_view of, std::string_view method_name, std::string_view parameters,
                void (*run_it)(pe&, slot&, scheduler::delivery&), void (*move_it)(void*, void*), void (*drop_it)(void*),
                std::uint32_t payload, bool has_views, route_function r, forward_function f,
                describe_function types = nullptr) noexcept
      : handler(of, method_name, parameters, run_it, move_it, drop_it, payload, has_views, types), forward(f) {
    route = r;
  }
  /// The element that has the message in its mailbox leaves its PE or has ended: sends the message
  /// after it. Takes the message over.
  forward_function forward;
  /// For broadcasts on their way: makes the record of the arguments.
  wire::unique_ptr<broadcast_record> (*decode)(std::span<const std::byte> arguments) = nullptr;
  /// True for broadcasts in mailboxes.
  bool is_member = false;
  /// For messages whose order is kept.
  order_tag (*tag_of)(const scheduler::message&) = nullptr;
  /// For messages that are routed; null: following_kind.
  const struct routed_kind* kind = nullptr;
  /// For the last messages of streams: sends one to an index.
  void (*close)(pe& self, std::uint32_t array, std::string_view index, order_tag tag) = nullptr;
};

/// Handlers of messages that are dealt with where they arrive, by their route.
struct control_handler : array_handler {
  control_handler(std::string_view name, route_function r, describe_function types = nullptr,
                  std::string_view key = "control") noexcept
      : array_handler("(array)", name, key, &never_run, &never_relocate, &never_drop, 0, false, r, nullptr, types) {
    lost = &nobody_misses_it;
  }
  static bool nobody_misses_it(pe&, const scheduler::handler&, std::span<const std::byte>, std::uint32_t,
                               const scheduler::unknown_message*) noexcept {
    return true;
  }
  static void never_run(pe&, slot&, scheduler::delivery& d) { d.release(); }
  static void never_relocate(void*, void*) {}
  static void never_drop(void*) {}
};

/// Handlers of messages that bring an element, serialized: their route makes its process, which
/// runs them first.
struct birth_handler : array_handler {
  birth_handler(std::string_view of, std::string_view name, std::string_view parameters,
                void (*run_it)(pe&, slot&, scheduler::delivery&), route_function r, describe_function types) noexcept
      : array_handler(of, name, parameters, run_it, &control_handler::never_relocate, &control_handler::never_drop, 0,
                      false, r, &forget, types) {}
  // the element ends before it was there
  static void forget(array_core& part, cell_base&, scheduler::message* m);
};

/// A route for messages that never leave their PE.
slot* refuse_route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) noexcept;

}  // namespace orrery::detail
