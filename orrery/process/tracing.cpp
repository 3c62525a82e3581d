// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/tracing.hpp>
#include <orrery/transport/shm/world.hpp>

#include <cstdio>

#include <fmt/format.h>

namespace orrery {
namespace {

void report(const options& o, const scheduler::trace_summary& s) {
  if (o.quiet && s.problem.empty()) return;
  std::fputs(fmt::format("orrery: {}\n", to_string(s)).c_str(), stderr);
}

}  // namespace

tracing::tracing(const options& o, scheduler::node& n, const std::string& program)
    : options_(o), alone_(n.world() == nullptr) {
  if (o.trace.empty()) return;
  tracer_.emplace(scheduler::trace_settings{
      .path = o.trace,
      .bytes_per_pe = o.trace_memory,
      .program = program,
      .alone = alone_,
      .node = n.index(),
      .world = alone_ ? 0 : n.world()->shared()->nonce(),
  });
  for (std::uint32_t i = 0; i < n.pe_count(); ++i)
    n.local(n.first_pe() + i).trace_to(tracer_->add_pe(n.first_pe() + i));
}

void tracing::write() {
  if (!tracer_) return;
  const scheduler::trace_summary s = tracer_->finish();
  if (alone_ || !s.problem.empty()) report(options_, s);
}

void tracing::merge(const options& o, const transport::shm_world& world) {
  if (o.trace.empty() || !world.is_first()) return;
  report(o, scheduler::merge_traces(o.trace, world.nonce(), world.node_limit()));
}

}  // namespace orrery
