// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/sim/settings.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace orrery::transport {

/// When simulated messages arrive: LogGP between machines and inside of them, with one network
/// interface for each machine, and random delays that follow from the seed.
class network {
 public:
  explicit network(const sim_settings& settings)
      : settings_(settings), interfaces_(settings.machines), slow_(settings.all_nodes(), 1.0), random_(~settings.seed) {
    for (const auto& s : settings.slow)
      if (s.node < slow_.size()) slow_[s.node] = s.factor;
  }

  /// One way between two nodes, as it is when nothing else is under way.
  [[nodiscard]] const link_cost& between(std::uint32_t node_a, std::uint32_t node_b) const noexcept {
    return machine(node_a) == machine(node_b) ? settings_.local : settings_.net;
  }
  /// Time that a node's processor needs for what an ordinary one does in `ns`.
  [[nodiscard]] std::int64_t on(std::uint32_t node, double ns) const noexcept {
    constexpr double longest = 1e18;  // so that some of them do not wrap
    return static_cast<std::int64_t>(std::min(ns * slow_[node], longest) + 0.5);
  }

  /// When a message that a PE of node `from` hands over at `now_ns` arrives at a PE of node `to`.
  [[nodiscard]] std::int64_t arrival(std::int64_t now_ns, std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    const link_cost& c = between(from, to);
    const double copying = static_cast<double>(bytes) * c.byte;
    auto leaves = static_cast<double>(now_ns);
    if (&c == &settings_.net) leaves += interfaces_[machine(from)].wait(now_ns, c.gap + copying);
    return static_cast<std::int64_t>(leaves + c.latency + copying) + delay();
  }

 private:
  // Messages of a machine go out one after the other. PEs of a machine may hand over a little out
  // of order, as each works ahead until others can reach it: who comes late waits as long as who
  // came last, not until that one's time.
  struct interface {
    std::int64_t since = 0;
    double backlog = 0;  // ns that it was busy for at that time
    double wait(std::int64_t now_ns, double takes) noexcept {
      if (now_ns > since) {
        backlog = std::max(0.0, backlog - static_cast<double>(now_ns - since));
        since = now_ns;
      }
      const double before = backlog;
      backlog += takes;
      return before;
    }
  };

  [[nodiscard]] std::uint32_t machine(std::uint32_t node) const noexcept { return node / settings_.nodes; }
  [[nodiscard]] std::int64_t delay() {
    if (settings_.jitter_ns == 0) return 0;
    return static_cast<std::int64_t>(random_() % (static_cast<std::uint64_t>(settings_.jitter_ns) + 1));
  }

  const sim_settings& settings_;
  std::vector<interface> interfaces_;  // of the machines
  std::vector<double> slow_;
  std::mt19937_64 random_;
};

}  // namespace orrery::transport
