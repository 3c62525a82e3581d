// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/or_undo.hpp>
#include <orrery/process/names.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/service/root.hpp>
#include <orrery/wire/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::service {

/// The functions that handles of all services have: names, types, reports, the end.
///
/// A handle is a small value that is passed, stored and sent. Service derives from it, has a
/// constructor from a `remote<service_root>` that this class may use, and says `kind` (a text) and
/// `types()` (service::types_in_words its keys and values).
template <class Service>
class handle {
 public:
  handle() noexcept = default;

  /// The service that is published under the name. Parks. Throws name_not_found, bad_remote_cast,
  /// usage_error, stopped.
  [[nodiscard]] static Service lookup(std::string_view name) { return Service(orrery::lookup<service_root>(name)); }
  /// The same, but waits until it is published. Throws timeout_error, too.
  [[nodiscard]] static Service await_name(std::string_view name, time_limit timeout) {
    return Service(orrery::await_name<service_root>(name, timeout));
  }
  /// Gives the service a name. Parks. Throws as orrery::publish, and as statistics().
  void publish(std::string_view name) const {
    ask_checked([&](const auto& root) { orrery::publish(name, root); });
  }

  /// Whether the service was made as one of this kind with these types. Parks. Throws usage_error
  /// if the handle names no service, process_gone if it has ended, node_lost, stopped.
  [[nodiscard]] bool has_these_types() const {
    return ask([](const auto& root) { return root->is_of(Service::kind, Service::types()); });
  }
  /// The work of the service's processes so far. Not at one moment. Parks. Throws as
  /// has_these_types(), and usage_error if the service has another kind or other types.
  [[nodiscard]] std::vector<range_report> statistics() const {
    return ask_checked([](const auto& root) { return root->reports(); });
  }
  /// Ends the service with all that it holds. Requests on their way that reach their process before
  /// the end does are executed; the others fail with process_gone. Parks. Throws as statistics(); a
  /// service of another kind or other types goes on.
  void end() {
    ask_checked([](const auto& root) { root->end(); });
    destroy(root_);
    root_ = {};
  }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(root_); }
  friend bool operator==(const handle&, const handle&) = default;
  template <class A>
  void serialize(A& a) {
    a & root_;
  }

 protected:
  explicit handle(remote<service_root> root) noexcept : root_(root) {}
  /// All processes of the service. Parks. Throws usage_error if it has another kind or other types,
  /// process_gone if it has ended, node_lost, stopped.
  [[nodiscard]] std::vector<directory_entry> open_directory() const {
    std::vector<directory_entry> all = open_service(root_, Service::kind, Service::types()).directory;
    if (all.empty()) throw ended_for_a_handle(Service::kind);
    return all;
  }
  /// f() makes the service of `made`. If it throws, that ends with what is there already. Parks.
  template <class F>
  static void make_or_end(Service& made, F f) {
    orrery::detail::or_undo(f, [&] { made.end(); });
  }
  /// f(root); see ask_root.
  template <class F>
  decltype(auto) ask(F f) const {
    return ask_root(root_, Service::kind, std::move(f));
  }
  /// The same, but throws usage_error first if the service has another kind or other types: a
  /// handle that was looked up as something else does nothing to it.
  template <class F>
  decltype(auto) ask_checked(F f) const {
    return ask([&](const auto& root) -> decltype(auto) {
      root->check(Service::kind, Service::types());
      return f(root);
    });
  }
  /// The number of items, as all processes say that are there. Not at one moment. Parks. Throws as
  /// statistics().
  [[nodiscard]] std::uint64_t count_items() const {
    std::uint64_t n = 0;
    for (const range_report& r : statistics()) n += r.items;
    return n;
  }

  remote<service_root> root_;
};

}  // namespace orrery::service
