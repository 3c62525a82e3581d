// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/tracing.hpp>
#include <orrery/transport/mpi/world.hpp>
#include <orrery/transport/shm/world.hpp>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <span>

#include <fmt/format.h>

namespace orrery {
namespace {

void report(const options& o, const scheduler::trace_summary& s) {
  if (o.quiet && s.problem.empty()) return;
  std::fputs(fmt::format("orrery: {}\n", to_string(s)).c_str(), stderr);
}

// On the first node: what comes from other machines lies beside the parts of this one.
auto write_parts_beside(const std::string& path) {
  return [path, files = std::make_shared<std::map<std::uint32_t, std::ofstream>>()](std::uint32_t node,
                                                                                    std::span<const std::byte> bytes) {
    const auto [it, is_new] = files->try_emplace(node);
    if (is_new) it->second.open(scheduler::trace_part(path, node), std::ios::binary | std::ios::trunc);
    it->second.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
}

}  // namespace

tracing::tracing(const options& o, scheduler::node& n, const std::string& program, transport::mpi_world* machines)
    : options_(o), alone_(n.world() == nullptr), machines_(machines) {
  if (o.trace.empty()) return;
  scheduler::trace_settings settings;
  settings.path = o.trace;
  settings.bytes_per_pe = o.trace_memory;
  settings.program = program;
  settings.alone = alone_;
  settings.node = n.index();
  if (machines != nullptr) {
    settings.world = machines->number();
    settings.host = machines->host_of(machines->machine_of(n.index()));
    settings.clock_offset = machines->clock_offset();
    settings.is_carried = machines->is_far_from_first();
    if (machines->is_first()) machines->take_parts(write_parts_beside(o.trace));
  } else if (!alone_) {
    settings.world = n.world()->shared()->nonce();
  }
  tracer_.emplace(std::move(settings));
  for (std::uint32_t i = 0; i < n.pe_count(); ++i)
    n.local(n.first_pe() + i).trace_to(tracer_->add_pe(n.first_pe() + i));
}

void tracing::write() {
  if (!tracer_) return;
  const scheduler::trace_summary s = tracer_->finish();
  if (alone_ || !s.problem.empty()) report(options_, s);
  if (std::shared_ptr<std::FILE> part = tracer_->take_part())
    machines_->bring_part(
        [part](std::span<std::byte> into) { return std::fread(into.data(), 1, into.size(), part.get()); });
}

void tracing::merge(const options& o, std::uint64_t world, std::uint32_t nodes) {
  if (!o.trace.empty()) report(o, scheduler::merge_traces(o.trace, world, nodes));
}

}  // namespace orrery
