// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>
#include <orrery/process/names.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/list_session.hpp>
#include <orrery/service/root.hpp>
#include <orrery/service/walk_node.hpp>

#include <cstdint>
#include <vector>

namespace orrery {

/// How a walking list is made.
struct walking_options {
  std::vector<std::uint32_t> pes = {};  ///< where its processes live; empty: all PEs that are there
  std::uint32_t processes = 1000;  ///< list processes of each PE (P)
  std::uint32_t granularity = 1;  ///< items of a process (G)
  std::uint32_t forwards = 64;  ///< requests that a process passes on before it waits for an acknowledgement (K)
};

namespace service {

template <class Key, class Value>
std::vector<remote<walk_process>> make_walk_nodes(std::uint32_t count, const walk_setup& setup) {
  std::vector<remote<walk_process>> all;
  all.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(spawn<walk_node<Key, Value>>(here(), setup, false));
  return all;
}

}  // namespace service

/// An ordered list of the kind that Alam, Kamal and Wagner describe: a chain of processes, along which requests
/// walk from the head to where their keys are. Clients use it through the sessions of ordered_list.
///
/// It is for the study of such lists: a request costs a message for each process that it passes. All requests
/// of all clients take effect in one order, that of their arrival at the head (total order), whatever the session's level says. It can hold P x G
/// items for each PE at most; a request that finds no free process fails with usage_error: the list is full.
/// There are no shortcuts, and no scans or snapshots. The loss of a node of the list ends it.
///
///     auto list = orrery::walking_list<int, int>::make({.processes = 100, .granularity = 8});
///     auto s = list.open({.window = 32});
template <class Key, class Value>
class walking_list {
 public:
  walking_list() noexcept = default;

  /// Makes an empty list and its free processes. Parks. Throws usage_error, node_lost, stopped.
  [[nodiscard]] static walking_list make(walking_options options = {}) {
    if (options.pes.empty()) options.pes = reachable_pes();
    if (options.granularity == 0)
      throw usage_error(errc::bad_argument, "walking_options::granularity must be 1 or more");
    walking_list list;
    const auto n = static_cast<std::uint32_t>(options.pes.size());
    for (const std::uint32_t p : options.pes) list.managers_.push_back(spawn<service::walk_manager>(pe(p)));
    service::walk_setup setup{{}, n, options.granularity, options.forwards};
    for (std::uint32_t i = 0; i < n; ++i) {
      setup.manager = list.managers_[i];
      list.managers_[i]->join(list.managers_[(i + 1) % n]);
      list.managers_[i]->adopt(
          call<&service::make_walk_nodes<Key, Value>>(pe(options.pes[i]), options.processes, setup));
    }
    setup.manager = list.managers_[0];
    list.head_ = spawn<service::walk_node<Key, Value>>(pe(options.pes[0]), setup, true);
    for (const std::uint32_t p : options.pes)
      list.gates_.push_back(spawn<service::typed_walk_gate<Key, Value>>(pe(p), list.head_));
    return list;
  }

  /// A session for the calling process. Does not park. Throws usage_error if the options make no sense.
  [[nodiscard]] list_session<Key, Value> open(const session_options& o = {}) const {
    remote<service::walk_gate> gate = gates_.at(0);
    for (const auto& g : gates_)
      if (g.address().pe == this_pe()) gate = g;
    return list_session<Key, Value>(remote<service::range_process>(gate), o);
  }
  /// G and K from now on; what processes hold stays there. Parks while they are full.
  void tune(std::uint32_t granularity, std::uint32_t forwards) const {
    for (const auto& m : managers_) m->tune(granularity, forwards);
    post(head_)->tune(granularity, forwards);
  }
  /// Processes that are free. Not at one moment. Parks.
  [[nodiscard]] std::uint64_t free_processes() const {
    std::uint64_t n = 0;
    for (const auto& m : managers_) n += m->free();
    return n;
  }
  /// Ends the list. No request may be outstanding. Parks.
  void end() {
    for (const auto& g : gates_) destroy(g);
    destroy(head_);
    for (const auto& m : managers_) {
      m->end();
      destroy(m);
    }
    *this = {};
  }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(head_); }
  template <class A>
  void serialize(A& a) {
    a & managers_ & gates_ & head_;
  }

 private:
  std::vector<remote<service::walk_manager>> managers_;
  std::vector<remote<service::walk_gate>> gates_;
  remote<service::walk_process> head_;
};

}  // namespace orrery
