// SPDX-License-Identifier: Apache-2.0
// The part of the simulator that stands between PEs and the carriers of their nodes.
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <utility>

namespace orrery::scheduler {

void simulator::make_carriers() {
  far_.resize(universe_.settings().all_nodes());
  universe_.carriers = wire::make_unique<transport::sim_carriers>(
      universe_.settings(), network_, [this] { return time_of_carriers(); },
      [this](std::uint32_t node, std::int64_t time) { drive_at(node, time); },
      [this](std::uint32_t node) {
        const std::int64_t now = time_of_carriers();
        add_fault({now, node, false});
        add_fault({now + universe_.settings().detect_ns, node, true});
      });
}

std::int64_t simulator::time_of_carriers() const noexcept {
  return running_ != nullptr ? std::max(now_, running_->sim_->clock) : now_;
}

// The receiver has its end when the first frame has come.
wire::unique_ptr<outbound> simulator::connect_far(pe& from, std::uint32_t to) {
  node& owner = from.owner();
  wire::unique_ptr<outbound> c = owner.connect_remote(from, to);
  links_.push_back(wire::make_unique<simulated_link>(simulated_link{c.get(), nullptr, from.id(), to, 0, true}));
  simulated_link* const l = links_.back().get();
  c->link = l;
  far_[owner.index()].from.push_back(l);
  far_[pes_[to]->owner().index()].to.push_back(l);
  return c;
}

void simulator::drive_at(std::uint32_t node, std::int64_t time) {
  if (time >= far_[node].due) return;
  far_[node].due = time;
  schedule(time, {nullptr, is_drive | node});
}

void simulator::drive(std::uint32_t node) {
  ++report_.events;
  far_node& f = far_[node];
  f.due = simulated_pe::never;
  if (lost_[node] != 0) return;
  universe_.carriers->drive(node);
  universe_.tell(node);
  for (simulated_link* l : f.to) {
    if (l->in == nullptr) open(*l);
    announce(*l);
  }
  // The other side may have given room back.
  for (const simulated_link* l : f.from)
    if (!l->out->lost && (l->out->waiters != nullptr || !l->out->deferred.empty())) wake(*pes_[l->from]);
}

void simulator::open(simulated_link& l) {
  pe& receiver = *pes_[l.to];
  node& owner = receiver.owner();
  const auto offset = owner.world()->ring_offset(l.to, l.from);
  if (!offset || !owner.reachable(l.from)) return;
  wire::unique_ptr<inbound> in = owner.open_ring(l.from, l.to, *offset);
  if (in == nullptr) return;
  l.in = in.get();
  receiver.links().all_inbound().push_back(std::move(in));
}

// The next record of such a ring, if it is there, arrives at once.
void simulator::announce(simulated_link& l) {
  if (l.in == nullptr || l.in->lost || l.announced || l.in->ring.front() == nullptr) return;
  simulated_pe& to = states_[l.to];
  const std::int64_t time = time_of_carriers();
  l.announced = true;
  to.arrivals.add({time, order_.next(), &l});
  if (time < to.due) {
    to.due = time;
    schedule(time, {&l, l.to});
  }
}

}  // namespace orrery::scheduler
