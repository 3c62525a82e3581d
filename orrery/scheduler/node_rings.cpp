// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/node.hpp>

#include <orrery/scheduler/simulator.hpp>
#include <orrery/scheduler/transport_failure.hpp>
#include <orrery/transport/carrier.hpp>
#include <orrery/transport/ring_memory.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <bit>
#include <cstring>
#include <span>

#include <fmt/format.h>

namespace orrery::scheduler {

void throw_transport(const transport::transport_error& e) {
  using transport::transport_errc;
  switch (e.code) {
    case transport_errc::gone:
    case transport_errc::ended:
      throw node_lost(e.message);
    case transport_errc::no_space:
    case transport_errc::full:
      throw world_error(errc::world_no_space, verbatim, e.message);
    default:
      throw world_error(errc::world_no_transport, verbatim, e.message);
  }
}

// --- rings ---------------------------------------------------------------------------------------

wire::unique_ptr<outbound> node::connect(pe& from, std::uint32_t to) {
  if (is_local(to) && sim_ == nullptr) return connect_local(from, to);
  if (!knows(to)) throw usage_error(errc::no_such_place, fmt::format("PE {} in a world of {} PEs", to, world_pes()));
  if (!reachable(to)) throw_not_sent(to);
  if (sim_ != nullptr) return sim_->connect(from, to);
  return connect_remote(from, to);
}

wire::unique_ptr<outbound> node::connect_local(pe& from, std::uint32_t to) {
  const std::uint64_t capacity = settings_.pe.ring_bytes;
  const std::size_t bytes = transport::ring_header::bytes_for(capacity);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc{};
  {
    const std::lock_guard lock(mutex_);
    local_rings_.emplace_back(memory, bytes);
  }
  transport::ring_header* header = transport::make_ring(memory, capacity, from.id(), to);
  auto c = wire::make_unique<outbound>();
  c->ring = transport::ring_producer(*header);
  c->bell = &local(to).bell();
  c->shared_bell = shares_memory();
  c->pe = to;
  auto in = wire::make_unique<inbound>();
  in->ring = transport::ring_consumer(*header, capacity);
  in->pe = from.id();
  local(to).links().add_inbound(std::move(in));
  return c;
}

wire::unique_ptr<outbound> node::connect_remote(pe& from, std::uint32_t to) {
  transport::carrier* const carrier = world_->carrier();
  const bool is_far =
      carrier != nullptr && world_->machine_of(world_->pe_node(to)) != world_->machine_of(world_->node());
  const std::uint64_t wanted = settings_.pe.ring_bytes;
  const std::uint64_t capacity = is_far ? carrier->next_ring_bytes(wanted) : wanted;
  const std::uint64_t bytes = transport::ring_header::bytes_for(capacity);
  // Payloads that have taken all memory do not keep answers, errors and flow control from having a
  // ring.
  auto block = world_->allocate_ring(bytes);
  if (!block) throw_transport(block.error());
  if (is_far) {
    transport::prepare_ring_memory(std::span(block->data, bytes), block->zeroed);
  } else if (!block->zeroed) {
    std::memset(block->data, 0, bytes);
  }
  transport::ring_header* header = transport::make_ring(block->data, capacity, from.id(), to);
  auto c = wire::make_unique<outbound>();
  c->ring = transport::ring_producer(*header);
  c->bell = &world_->bell(to);
  c->shared_bell = true;
  c->pe = to;
  c->remote = true;
  c->offset = block->offset;
  world_->publish_ring(to, from.id(), block->offset);
  return c;
}

void node::give_back(outbound& c, std::uint32_t from) noexcept {
  if (!c.remote || c.returned) return;
  if (!has_ended(c.pe)) return;  // it is leaving, or only not trusted: it still reads there
  c.returned = true;
  world_->release(c.offset);
  free_blocks(from, c.pe);
}

void node::adopt_remote(pe& to, std::vector<wire::unique_ptr<inbound>>& rings) {
  if (world_ == nullptr || sim_ != nullptr) return;
  const std::uint32_t limit = world_->pe_limit();
  for (std::uint32_t place = 0; place < limit; ++place) {
    const std::uint32_t from = world_->pe_at(place);
    if (from == transport::no_pe || is_local(from)) continue;
    const auto offset = world_->ring_offset(to.id(), from);
    if (!offset) continue;
    bool known = false;
    for (const auto& in : rings) known = known || (in->remote && in->pe == from);
    if (known || !reachable(from)) continue;
    if (auto in = open_ring(from, to.id(), *offset)) {
      rings.push_back(std::move(in));
      // The sender, which may be about to end, hears so that its records are safe
      // (links::await_receivers).
      if (transport::shm_world* shared = world_->shared(); shared != nullptr) shared->withdraw_ring(to.id(), from);
    }
  }
}

namespace {
// Nothing is read from it; but the PE learns whom it has to tell that its node is not trusted
// (links::lose_gone).
wire::unique_ptr<inbound> refused_ring(std::uint32_t from) {
  auto in = wire::make_unique<inbound>();
  in->pe = from;
  in->remote = true;
  in->lost = true;
  return in;
}
}  // namespace

wire::unique_ptr<inbound> node::open_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset) {
  hold(from);  // before it is mapped: the last user of a node that has ended unmaps it
  auto in = map_ring(from, to, offset);
  if (in == nullptr || in->lost) let_go(from);
  return in;
}

wire::unique_ptr<inbound> node::map_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset) {
  const std::uint32_t n = sender_node(from);
  auto head = world_->map(n, offset, sizeof(transport::ring_header));
  if (!head) {
    if (head.error().code == transport::transport_errc::gone) return nullptr;
    peer_unreadable(from, head.error().message);
    return refused_ring(from);
  }
  auto* header = reinterpret_cast<transport::ring_header*>(head->data());
  const std::uint64_t capacity = header->capacity;  // read once: it is another OS process's memory
  const bool sound = header->magic == transport::ring_header::magic_value && std::has_single_bit(capacity) &&
                     capacity >= 4096 && capacity <= (std::uint64_t{1} << 30) && header->producer_pe == from &&
                     header->consumer_pe == to && offset % 64 == 0;
  if (!sound || !world_->map(n, offset, transport::ring_header::bytes_for(capacity))) {
    peer_corrupt(from, "a ring with an impossible header");
    return refused_ring(from);
  }
  auto in = wire::make_unique<inbound>();
  in->ring = transport::ring_consumer(*header, capacity);
  in->pe = from;
  in->remote = true;
  return in;
}

void node::wake(std::uint32_t pe) noexcept {
  if (sim_ != nullptr) {
    sim_->wake(sim_->at(pe));
  } else if (is_local(pe)) {
    transport::ring_doorbell(local(pe).bell(), shares_memory());
  } else if (world_ != nullptr && world_->knows_pe(pe)) {
    transport::ring_doorbell(world_->bell(pe), true);
  }
}

// --- payload blocks ------------------------------------------------------------------------------

// With no bytes: the block at `offset`, which lies in this node's segment and is no PE's yet, is
// for PE `to` from now on. So memory that was written before its reader was known becomes a payload
// block without a copy.
std::byte* node::allocate_block(std::uint32_t from, std::uint32_t to, std::size_t bytes, std::uint64_t& offset,
                                bool beyond_limit) {
  if (bytes == 0) {
    const std::lock_guard lock(mutex_);
    blocks_[offset] = {from, to};
    return nullptr;
  }
  allocating_.fetch_add(1, std::memory_order_relaxed);
  auto block = beyond_limit ? world_->allocate_beyond(bytes) : world_->allocate(bytes);
  const std::lock_guard lock(mutex_);
  const bool others = allocating_.fetch_sub(1, std::memory_order_relaxed) != 1;
  if (!block) {
    // Those that are on their way come back, and what others have reserved, too.
    if (block.error().code == transport::transport_errc::no_space && (others || !blocks_.empty())) return nullptr;
    throw_transport(block.error());
  }
  offset = block->offset;
  blocks_[offset] = {from, to};
  return block->data;
}

void node::block_released(std::uint32_t by_pe, std::uint64_t offset) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto it = blocks_.find(offset);
    if (it == blocks_.end() || it->second.to != by_pe) return;  // not its to release: ignored
    blocks_.erase(it);
  }
  world_->release(offset);
}

void node::free_blocks(std::uint32_t from, std::uint32_t to) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(blocks_, [&](const auto& b) {
    if (b.second.from != from || b.second.to != to) return false;
    world_->release(b.first);
    return true;
  });
}

std::byte* node::block(std::uint32_t source_pe, const wire::block_ref& ref) noexcept {
  const auto range = world_->map(sender_node(source_pe), ref.offset, ref.bytes);
  return range && ref.offset % 64 == 0 ? range->data() : nullptr;
}

}  // namespace orrery::scheduler
