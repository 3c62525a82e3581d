// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/sim/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cassert>
#include <new>

namespace orrery::transport {

namespace {
constexpr std::align_val_t block_alignment{64};
}

sim_universe::sim_universe(const sim_settings& settings)
    : settings_(settings),
      states_(settings.all_nodes(), node_state::alive),
      observers_(settings.all_nodes(), nullptr),
      bells_(wire::make_unique<doorbell[]>(settings.all_pes())),
      counters_(wire::make_unique<std::atomic<std::uint64_t>[]>(std::size_t{settings.all_pes()} * counters_per_pe)) {}

void sim_universe::lose(std::uint32_t node, std::string_view how) {
  if (states_[node] != node_state::alive) return;
  states_[node] = node_state::dead;
  ++gone_;
  ++epoch_;
  if (node == 0) state_ = world_state::lost;
  for (std::uint32_t n = 0; n < observers_.size(); ++n) {
    if (n == node || observers_[n] == nullptr || states_[n] != node_state::alive) continue;
    observers_[n]->node_lost(node, how);
    if (node == 0) observers_[n]->world_lost(how);
  }
}

void sim_universe::end() noexcept {
  if (state_ != world_state::running) return;
  state_ = world_state::ending;
  ++epoch_;
  on_end();
}

void sim_universe::tell(std::uint32_t node) {
  if (observers_[node] != nullptr) carriers->members(node).tell(*observers_[node]);
}

void sim_universe::tell_end() noexcept {
  for (std::uint32_t n = 0; n < observers_.size(); ++n)
    if (observers_[n] != nullptr && states_[n] == node_state::alive) observers_[n]->world_ending();
}

sim_world::sim_world(sim_universe& universe, std::uint32_t node) : universe_(universe) {
  node_ = node;
  pe_count_ = universe.settings_.pes;
  first_pe_ = node * pe_count_;
}
sim_world::~sim_world() = default;

std::uint32_t sim_world::node_limit() const noexcept { return universe_.settings_.all_nodes(); }
std::uint32_t sim_world::pe_limit() const noexcept { return universe_.settings_.all_pes(); }
node_state sim_world::state(std::uint32_t node) const noexcept {
  if (universe_.carriers && node < node_limit()) return universe_.carriers->members(node_).state(node);
  return node < universe_.states_.size() ? universe_.states_[node] : node_state::empty;
}
std::pair<std::uint32_t, std::uint32_t> sim_world::pes_of(std::uint32_t node) const {
  return {node * universe_.settings_.pes, universe_.settings_.pes};
}
std::uint32_t sim_world::pe_node(std::uint32_t pe) const noexcept {
  return pe < pe_limit() ? universe_.node_of(pe) : no_node;
}
std::uint32_t sim_world::machines() const noexcept { return universe_.settings_.machines; }
std::uint32_t sim_world::machine_of(std::uint32_t node) const noexcept { return node / universe_.settings_.nodes; }

std::uint64_t sim_world::gone_nodes() const noexcept {
  return universe_.carriers ? universe_.carriers->members(node_).gone() : universe_.gone_;
}
world_state sim_world::state() const noexcept {
  return universe_.carriers ? universe_.carriers->members(node_).world() : universe_.state_;
}
std::uint32_t sim_world::epoch() const noexcept {
  return universe_.carriers ? universe_.carriers->members(node_).epoch() : universe_.epoch_;
}

struct sim_universe::watcher final : membership_watch {
  watcher(sim_universe& all, std::uint32_t of, membership_observer& observer) : universe(all), node(of) {
    all.observers_[of] = &observer;
  }
  ~watcher() override { universe.observers_[node] = nullptr; }
  sim_universe& universe;
  std::uint32_t node;
};

result<wire::unique_ptr<membership_watch>> sim_world::watch(membership_observer& observer) {
  return wire::make_unique<sim_universe::watcher>(universe_, node_, observer);
}

void sim_world::aligned_delete::operator()(std::byte* p) const noexcept { ::operator delete[](p, block_alignment); }

result<world::memory_block> sim_world::allocate(std::uint64_t bytes) {
  if (universe_.carriers) return universe_.carriers->memory(node_).allocate(bytes);
  wire::unique_ptr<std::byte, aligned_delete> memory(
      static_cast<std::byte*>(::operator new[](bytes, block_alignment, std::nothrow)));
  if (memory == nullptr)
    return std::unexpected(transport_error{transport_errc::no_space, 0, "the simulator has no memory left"});
  std::byte* const at = memory.get();
  const auto offset = reinterpret_cast<std::uint64_t>(at);
  blocks_.emplace(offset, std::move(memory));
  return memory_block{at, offset, false};
}

void sim_world::release(std::uint64_t offset) noexcept {
  if (!universe_.carriers) {
    blocks_.erase(offset);
    return;
  }
  universe_.carriers->carrier(node_).forget_ring(offset);
  universe_.carriers->memory(node_).release(offset);
}

result<std::span<std::byte>> sim_world::map(std::uint32_t node, std::uint64_t offset, std::uint64_t bytes) {
  if (universe_.carriers) {
    const std::uint32_t where = universe_.carriers->map(node_).is_far(node) ? node_ : node;
    shm_world& memory = universe_.carriers->memory(where);
    return memory.map(memory.node(), offset, bytes);
  }
  return std::span(reinterpret_cast<std::byte*>(offset), bytes);
}

void sim_world::unmap(std::uint32_t node) {
  if (universe_.carriers && universe_.carriers->map(node_).is_far(node))
    universe_.carriers->carrier(node_).release_memory_of(node);
}

void sim_world::publish_ring(std::uint32_t to, std::uint32_t from, std::uint64_t offset) noexcept {
  if (!universe_.carriers) return;
  shm_world& memory = universe_.carriers->memory(node_);
  const auto header = memory.map(memory.node(), offset, sizeof(ring_header));
  if (header)
    universe_.carriers->carrier(node_).add_ring(from, to, offset, *reinterpret_cast<ring_header*>(header->data()));
}

std::optional<std::uint64_t> sim_world::ring_offset(std::uint32_t to, std::uint32_t from) const noexcept {
  if (!universe_.carriers) return std::nullopt;
  return universe_.carriers->carrier(node_).mirror_offset(to, from);
}

doorbell& sim_world::bell(std::uint32_t pe) noexcept { return universe_.bells_[pe]; }

std::span<std::atomic<std::uint64_t>, counters_per_pe> sim_world::counters(std::uint32_t pe) const noexcept {
  return std::span<std::atomic<std::uint64_t>, counters_per_pe>{
      universe_.counters_.get() + std::size_t{pe} * counters_per_pe, counters_per_pe};
}

void sim_world::leave() noexcept {
  if (!is_first()) return;
  if (universe_.carriers) {
    universe_.carriers->say_leaving(node_);
  } else {
    universe_.end();
  }
}

}  // namespace orrery::transport
