// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/node.hpp>

#include <orrery/scheduler/say.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <fmt/format.h>

namespace orrery::scheduler {

void node::tell_pes() noexcept {
  for (auto& p : pes_) announce(*p);
}

// SYNC: release, with node::world_if_idle.
void node::begin_outside() noexcept {
  idleness_of(first_pe()).marks.fetch_add(idleness::one_outside, std::memory_order_acq_rel);
}
void node::end_outside() noexcept {
  idleness_of(first_pe()).marks.fetch_sub(idleness::one_outside, std::memory_order_acq_rel);
}

void node::announce(pe& to) noexcept {
  to.bell().announce.fetch_add(1, std::memory_order_release);  // SYNC: with links::take_news
  if (sim_ == nullptr) {
    transport::notify(to.bell(), shares_memory());
  } else {
    sim_->wake(to);
  }
}

void node::announce_elsewhere(std::uint32_t pe) noexcept {
  if (sim_ != nullptr || world_ == nullptr || is_local(pe) || !world_->knows_pe(pe)) return;
  world_->bell(pe).announce.fetch_add(1, std::memory_order_release);  // SYNC: with links::take_news
  transport::notify(world_->bell(pe), true);
}

void node::peer_corrupt(std::uint32_t pe, const char* what) noexcept {
  const std::uint32_t n = sender_node(pe);
  if (is_local(pe) || n == transport::no_node) {
    say(fmt::format("orrery: PE {} sent {}: this is a bug in orrery, or memory was overwritten\n", pe, what));
    return;
  }
  if (distrust(n)) return;
  say(fmt::format("orrery: PE {} of node {} sent {}: the node is treated as lost\n", pe, n, what));
  tell_pes();
}

void node::peer_unreadable(std::uint32_t pe, const std::string& why) noexcept {
  const std::uint32_t n = sender_node(pe);
  if (n == transport::no_node || distrust(n)) return;
  say(fmt::format("orrery: node {} cannot read what node {} sends: {}: they treat each other as lost\n", index(), n,
                  why));
  tell_pes();
}

void node::peer_without_ring(std::uint32_t pe, const std::string& why) noexcept {
  const std::uint32_t n = node_of(pe);
  if (n == transport::no_node || distrust(n)) return;
  say(fmt::format("orrery: node {} cannot send to node {}: {}: they treat each other as lost\n", index(), n, why));
  tell_pes();
}

void node::refused_by(std::uint32_t pe) noexcept {
  const std::uint32_t n = node_of(pe);
  if (is_local(pe) || n == transport::no_node || distrust(n)) return;
  say(fmt::format(
      "orrery: node {} takes nothing more from this one, node {}, and has said why: it is treated as lost here too\n",
      n, index()));
  tell_pes();
}

bool node::is_refused(std::uint32_t pe) const noexcept {
  const std::uint32_t n = node_of(pe);
  return world_ != nullptr && n != transport::no_node && world_->alive(n) && is_distrusted(n);
}

wire::unique_ptr<outbound> node::connect_to_refused(pe& from, std::uint32_t to) {
  return is_refused(to) ? connect_remote(from, to) : nullptr;
}

void node::hold(std::uint32_t source_pe) noexcept {
  const std::uint32_t n = node_of(source_pe);
  const std::lock_guard lock(mutex_);
  sender& from = senders_.try_emplace(source_pe, sender{n, 0}).first->second;
  ++from.uses;
  ++segment_use_[from.node];
}

std::uint32_t node::sender_node(std::uint32_t pe) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = senders_.find(pe); it != senders_.end()) return it->second.node;
  }
  return node_of(pe);
}

void node::let_go(std::uint32_t source_pe) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = senders_.find(source_pe);
  if (it == senders_.end()) return;
  const std::uint32_t n = it->second.node;
  if (--it->second.uses == 0) senders_.erase(it);
  if (const auto used = segment_use_.find(n); --used->second == 0) {
    segment_use_.erase(used);
    if (world_->has_ended(n)) world_->unmap(n);
  }
}

// It has ended. Memory that was let go of before is unmapped now, the rest with its last use.
void node::forget_memory_of(std::uint32_t node) noexcept {
  const std::lock_guard lock(mutex_);
  if (!segment_use_.contains(node)) world_->unmap(node);
}

}  // namespace orrery::scheduler
