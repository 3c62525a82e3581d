// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/service/detail/one_sided_reader.hpp>
#include <orrery/wire/error.hpp>

#include <utility>

namespace orrery::service {

bool one_sided_routes::pass_on() {
  if (detail::here_pe().simulated() != nullptr) return false;
  yield();
  return true;
}

bool one_sided_routes::is_there(const route& r) noexcept { return detail::here_pe().owner().reachable(r.pe); }

void one_sided_routes::ask(route& r, const remote<range_process>& owner) {
  if (r.answer.valid()) {
    if (!r.answer.ready()) return;
    r.settled = true;
    try {
      const exposed_place at = r.answer.get();
      if (at.id == 0) return;
      r.memory = mapped_exposure::of(at.memory);
      if (r.memory == nullptr) return;
      r.header = reinterpret_cast<const exposed_header*>(r.memory->at(at.header, sizeof(exposed_header)));
      r.id = at.id;
    } catch (const error&) {  // the next message will say so
    }
    return;
  }
  r.settled = true;
  r.pe = owner.address().pe;
  const scheduler::node& n = detail::here_pe().owner();
  if (!n.shares_memory() || n.is_local(r.pe)) return;
  const std::uint32_t there = n.node_of(r.pe);
  if (!n.reachable(r.pe) || n.world()->machine_of(there) != n.world()->machine_of(n.index())) return;
  r.answer = start(owner)->exposed();
  r.settled = false;
}

void one_sided_routes::end() noexcept {
  for (route& r : routes_) {
    if (!r.answer.valid()) continue;
    try {
      (void)r.answer.get();
    } catch (...) {  // nobody has asked for it
    }
  }
}

}  // namespace orrery::service
