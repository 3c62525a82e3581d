// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/typed_walk_gate.hpp>
#include <orrery/service/detail/walk_manager.hpp>
#include <orrery/service/detail/walk_site.hpp>

#include <chrono>
#include <cstdint>

namespace orrery::service {

/// The manager of a list with these keys and values, whose processes are of the class Node.
template <class Key, class Value, class Node>
class typed_walk_manager final : public walk_manager {
 public:
  typed_walk_manager(std::int64_t search_ns, bool shortcuts) {
    site_.search = std::chrono::nanoseconds(search_ns);
    site_.table.enable(shortcuts);
  }

 private:
  walk_settings& settings() noexcept override { return site_; }
  std::uint64_t shortcuts() noexcept override { return site_.table.size(); }
  remote<walk_process> make_process(bool is_head) override {
    site_.manager = remote<walk_manager>(this_process<walk_manager>());
    return spawn<Node>(here(), address_of_site(), is_head);
  }
  remote<walk_gate> make_gate(remote<walk_process> head, consistency order) override {
    return spawn<typed_walk_gate<Key, Value>>(here(), head, address_of_site(), order);
  }
  // The object that it names is on this PE, as are all that get it.
  std::uintptr_t address_of_site() noexcept { return reinterpret_cast<std::uintptr_t>(&site_); }

  walk_site<Key> site_;
};

}  // namespace orrery::service
