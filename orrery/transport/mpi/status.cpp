// SPDX-License-Identifier: Apache-2.0
// What a world of several machines tells tools of itself.
#include <orrery/transport/mpi/world.hpp>

#include <cstdio>
#include <ctime>
#include <utility>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

// of nodes that do not answer; what they said last is told
constexpr std::int64_t answer_patience_ns = 1'000'000'000;

}  // namespace

// The program runs without tools, too: a rank that ends for want of a socket would end all others.
void mpi_world::tell_tools() {
  if (map_->at(node_).local_node != 0) return;
  auto server = status_server::start(local_->nonce(), [this](bool names) { return find_status(names); });
  if (server) {
    status_server_ = std::move(*server);
  } else if (!local_->name().empty()) {
    fmt::print(stderr, "orrery: node {} does not tell tools of other machines: {}\n", node_, server.error().message);
  }
}

// Called by the server's thread, which drives the carrier meanwhile: PEs may be in long methods,
// and the helper may nap.
cluster_status mpi_world::find_status(bool names) {
  cluster_status s;
  s.teller = node_;
  s.name = local_->name();
  s.hosts = distinct_names(hosts_);
  const std::uint64_t round = names ? carrier_->ask_for_names() : carrier_->ask_for_counters();
  const std::int64_t deadline = real_now_ns() + answer_patience_ns;
  const auto is_answered = [&] { return carrier_->counters_round() >= round; };
  while (!is_answered() && real_now_ns() < deadline) {
    constexpr timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
    if (!carrier_->drive()) ::nanosleep(&pause, nullptr);
  }
  s.is_fresh = is_answered();
  const std::int64_t first_clock = now_ns() + clock_offset();
  for (std::uint32_t n = 0; n < map_->nodes(); ++n) {
    const cluster_map::place& at = map_->at(n);
    cluster_status::node& told = s.nodes.emplace_back();
    told.machine = at.machine;
    told.state = static_cast<std::uint32_t>(members_->state(n));
    told.pid = programs_[n].pid;
    told.program = programs_[n].name;
    told.first_pe = at.first_pe;
    told.now_ns = first_clock - clock_offset_of(n);
    if (names && members_->is_there(n)) told.names = carrier_->names_of(n);
    for (std::uint32_t pe = at.first_pe; pe < at.first_pe + at.pe_count; ++pe)
      for (const auto& word : counters(pe)) told.counters.push_back(word.load(std::memory_order_relaxed));
  }
  return s;
}

}  // namespace orrery::transport
