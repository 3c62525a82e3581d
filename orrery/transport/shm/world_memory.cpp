// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/table.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <utility>

namespace orrery::transport {

using internal::fail;
using internal::fail_os;

// The segment of another node. `memory` is never changed, so that readers need no lock.
struct shm_world::mapping {
  segment memory;
};

shm_world::shm_world() : mappings_(wire::make_unique<mapping_slot[]>(max_nodes)) {}

shm_world::~shm_world() {
  leave();
  for (std::uint32_t n = 0; n < max_nodes; ++n) delete mappings_[n].memory.load(std::memory_order_relaxed);
}

result<std::span<std::byte>> shm_world::map(std::uint32_t node) {
  if (node == node_) return own_.bytes();
  const mapping_slot& slot = mappings_[place_of(node)];
  // SYNC: acquire, with map_peer. A user of that node's memory keeps it where it is.
  if (slot.node.load(std::memory_order_acquire) == node && node != no_node)
    return slot.memory.load(std::memory_order_relaxed)->memory.bytes();
  auto mapped = map_peer(node);
  if (!mapped) return internal::pass(mapped);
  return (*mapped)->memory.bytes();
}

result<std::span<std::byte>> shm_world::map(std::uint32_t node, std::uint64_t offset, std::uint64_t bytes) {
  auto all = map(node);
  if (!all) return all;
  if (offset > all->size() || bytes > all->size() - offset) {
    return fail(transport_errc::damaged, 0, "{} bytes at {} are not in the shared memory of node {}, which has {}",
                bytes, offset, node, all->size());
  }
  return all->subspan(offset, bytes);
}

result<const shm_world::mapping*> shm_world::map_peer(std::uint32_t node) {
  const std::scoped_lock lock{map_mutex_};
  const node_info there = info(node);
  if (there.state == node_state::empty) {
    return fail(transport_errc::bad_argument, 0, "there is no node {} in this world", node);
  }
  if (const mapping* m = find_mapping(node)) return m;
  const auto gone = [&] {
    return fail(transport_errc::gone, 0, "node {} (pid {}) is {}", node, there.id.pid, to_string(state(node)));
  };
  const auto there_still = [&] {
    const node_state now = state(node);
    return now == node_state::alive || now == node_state::leaving;
  };
  if (!there_still()) return gone();
  auto owner = peer::open(there.id);
  if (!owner) return internal::pass(owner);
  const int fd = table_->entry(node).segment_fd.load(std::memory_order_relaxed);
  const std::string what = fmt::format("the shared memory of node {} (pid {})", node, there.id.pid);
  auto memory = segment::open_peer(*owner, fd, there.segment_bytes, access::read_write, what);
  // If it has left meanwhile, the descriptor may be closed or used for something else.
  if (!there_still()) return gone();
  if (!memory) return internal::pass(memory);
  const auto& h = *reinterpret_cast<const layout::node_header*>(memory->data());
  if (memory->size() < layout::page || h.magic != layout::node_magic || h.version != layout::version ||
      h.node != node || h.nonce != nonce_ || h.bytes != memory->size()) {
    return fail(transport_errc::damaged, 0, "{} is not what its entry says", what);
  }
  auto made = wire::make_unique<const mapping>(std::move(*memory));
  mapping_slot& slot = mappings_[place_of(node)];
  if (slot.node.load(std::memory_order_relaxed) != no_node) return (more_mappings_[node] = std::move(made)).get();
  slot.memory.store(made.get(), std::memory_order_relaxed);
  // SYNC: release, with map
  slot.node.store(node, std::memory_order_release);
  return made.release();
}

const shm_world::mapping* shm_world::find_mapping(std::uint32_t node) noexcept {
  const mapping_slot& slot = mappings_[place_of(node)];
  if (slot.node.load(std::memory_order_relaxed) == node) return slot.memory.load(std::memory_order_relaxed);
  const auto it = more_mappings_.find(node);
  return it != more_mappings_.end() ? it->second.get() : nullptr;
}

void shm_world::unmap(std::uint32_t node) {
  if (node == no_node) return;
  const std::scoped_lock lock{map_mutex_};
  mapping_slot& slot = mappings_[place_of(node)];
  if (slot.node.load(std::memory_order_relaxed) != node) {
    more_mappings_.erase(node);
    return;
  }
  slot.node.store(no_node, std::memory_order_relaxed);
  delete slot.memory.exchange(nullptr, std::memory_order_acq_rel);
}

// Rings.

void shm_world::publish_ring(std::uint32_t to, std::uint32_t from, std::uint64_t offset) noexcept {
  // SYNC: release, with ring_offset: the ring's header is complete.
  table_->ring(to, from).store(offset + 1, std::memory_order_release);
  // SYNC: release, with the receiver's acquire of `announce`, after which it looks at its row.
  bell(to).announce.fetch_add(1, std::memory_order_release);
  notify(bell(to), true);
}

void shm_world::withdraw_ring(std::uint32_t to, std::uint32_t from) noexcept {
  table_->ring(to, from).store(0, std::memory_order_release);
}

std::optional<std::uint64_t> shm_world::ring_offset(std::uint32_t to, std::uint32_t from) const noexcept {
  // SYNC: acquire, with publish_ring
  const std::uint64_t entry = table_->ring(to, from).load(std::memory_order_acquire);
  if (entry == 0) return std::nullopt;
  return entry - 1;
}

void shm_world::show_board(int fd) noexcept {
  // SYNC: release, with world_view::read_board: the board is complete.
  table_->entry(node_).board_fd.store(fd + 1, std::memory_order_release);
}

// Changing.

}  // namespace orrery::transport
