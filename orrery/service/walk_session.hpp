// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/walk_manager.hpp>
#include <orrery/service/list_session.hpp>
#include <orrery/service/presence.hpp>

namespace orrery {
namespace service {

/// The resources of a session of a walking list: its gate ends when it does, in whatever way, and
/// when its streams have ended.
class own_gate {
 public:
  /// Parks.
  own_gate(remote<walk_manager> manager, consistency order) : gate_(manager->open(presence_.get(), order)) {}

 protected:
  own_presence presence_;
  remote<walk_gate> gate_;
};

}  // namespace service

/// A session of a walking list: that of an ordered list. Its scans, snapshots and streams have all
/// processes up to the end of the interval stand still while they are collected; a stream keeps a
/// copy at the gate, and may outlive the session.
///
/// The gate at which its requests are answered is on the client's PE, if the list is there. Then it
/// finds the shortcuts of that PE.
template <class Key, class Value>
class walk_session : service::own_gate, public list_session<Key, Value> {
 public:
  walk_session(remote<service::walk_manager> manager, const session_options& o)
      : own_gate(manager, service::checked(o).order),
        list_session<Key, Value>(remote<service::range_process>(gate_), o) {}

 private:
  [[nodiscard]] std::string_view loss() const noexcept override {
    return "a walking list does not survive the loss of a node: make another one";
  }
  // In front of what ends the answers each has its own (8 bytes).
  [[nodiscard]] std::uint64_t version_of(const service::served_at& first, std::size_t i, std::size_t count,
                                         std::span<const std::byte> answer) const override {
    const std::size_t behind = sizeof(first) + (count - i) * sizeof(std::uint64_t);
    return service::unpacker(answer.last(behind)).template take<std::uint64_t>();
  }
};

}  // namespace orrery
