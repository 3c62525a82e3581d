// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/page_lead.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/table.hpp>
#include <orrery/transport/shm/monitor.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <chrono>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::transport {

using internal::retry;

namespace {

constexpr std::chrono::milliseconds ending_patience{2000};

constexpr std::uint32_t word(world_state s) noexcept { return static_cast<std::uint32_t>(s); }

void futex_wake_all(std::atomic<std::uint32_t>& futex) noexcept {
  ::syscall(SYS_futex, &futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

std::pair<std::uint32_t, std::uint32_t> shm_world::pes_of(std::uint32_t node) const {
  const node_info there = info(node);
  return {there.first_pe, there.pe_count};
}

std::uint64_t shm_world::gone_nodes() const noexcept { return table_->gone_nodes(); }
std::uint32_t shm_world::node_at(std::uint32_t place) const noexcept { return table_->node_at(place); }
std::uint32_t shm_world::pe_at(std::uint32_t place) const noexcept { return table_->pe_at(place); }
bool shm_world::knows_node(std::uint32_t node) const noexcept { return state(node) != node_state::empty; }
bool shm_world::knows_pe(std::uint32_t pe) const noexcept {
  const std::uint32_t now = table_->pe_at(place_of(pe));
  return now != no_pe && epoch_of(pe) <= epoch_of(now);
}
bool shm_world::is_past_pe(std::uint32_t pe) const noexcept {
  const std::uint32_t now = table_->pe_at(place_of(pe));
  return now != no_pe && epoch_of(pe) < epoch_of(now);
}
void shm_world::acknowledge(std::uint32_t pe, std::uint64_t gone) noexcept {
  // SYNC: release, with place_giver: what the PE did to entries of those that are gone is done.
  table_->pe(pe).noticed.store(gone, std::memory_order_release);
}
void shm_world::acknowledge_node(std::uint64_t gone) noexcept {
  // SYNC: release, with place_giver
  table_->entry(node_).noticed.store(gone, std::memory_order_release);
}
std::uint32_t shm_world::take_alias(std::uint32_t pe) noexcept {
  if (pe < max_pes) return pe;
  const std::uint64_t turn = table_->head().aliases.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t alias = max_pes + static_cast<std::uint32_t>(turn % (layout::aliases - max_pes));
  const std::uint64_t at = layout::aliases_at + sizeof(std::uint32_t) * alias;
  // else the store below gets it, if there is any
  (void)world_.back(at / layout::page * layout::page, layout::page);
  // SYNC: release, with pe_of_alias
  table_->alias(alias).store(pe, std::memory_order_release);
  return alias;
}
std::uint32_t shm_world::pe_of_alias(std::uint32_t alias) const noexcept { return table_->pe_of_alias(alias); }

result<world::memory_block> shm_world::allocate(std::uint64_t bytes) {
  return shown(arena_->allocate(bytes + lead_of(bytes)), lead_of(bytes));
}

result<world::memory_block> shm_world::allocate_beyond(std::uint64_t bytes) {
  return shown(arena_->allocate_beyond(bytes + lead_of(bytes)), lead_of(bytes));
}

result<world::memory_block> shm_world::allocate_ring(std::uint64_t bytes) {
  return shown(arena_->allocate_beyond(bytes), 0);
}

// The arena's blocks begin with a page.
void shm_world::release(std::uint64_t offset) noexcept {
  (void)arena_->release(offset % page_bytes == page_lead ? offset - page_lead : offset);
}

// Small ones, and those that need all there is, have none.
std::uint64_t shm_world::lead_of(std::uint64_t bytes) const noexcept {
  const std::uint64_t limit = arena_->limit();
  return bytes > page_bytes && bytes < limit && limit - bytes > page_lead ? page_lead : 0;
}

result<world::memory_block> shm_world::shown(const result<arena::block>& block, std::uint64_t lead) {
  if (!block) return std::unexpected(block.error());
  return memory_block{arena_->data() + block->offset + lead, block->offset + lead, block->zeroed};
}

result<wire::unique_ptr<membership_watch>> shm_world::watch(membership_observer& observer) {
  return membership_monitor::start(*this, observer);
}

node_info shm_world::info(std::uint32_t node) const { return table_->info(node); }
std::uint32_t shm_world::launch_of(std::uint32_t node) const noexcept { return table_->launcher_of(node); }
node_state shm_world::state(std::uint32_t node) const noexcept { return table_->state_of(node); }
std::uint32_t shm_world::pe_node(std::uint32_t pe) const noexcept { return table_->pe_node(pe); }
world_state shm_world::state() const noexcept { return table_->state(); }

bool shm_world::wait_epoch(std::uint32_t seen, std::int64_t deadline_ns) const noexcept {
  while (epoch() == seen) {
    if (deadline_ns >= 0 && now_ns() >= deadline_ns) return false;
    futex_wait(table_->head().epoch, seen, deadline_ns, true);
  }
  return true;
}

bool shm_world::mark_started(std::uint32_t node, peer_id id) noexcept {
  if (state(node) != node_state::reserved) return false;
  // Launcher and launched may both come here; they write the same.
  auto& e = table_->entry(node);
  e.pid.store(id.pid, std::memory_order_relaxed);
  e.start_time.store(id.start_time, std::memory_order_relaxed);
  return table_->change_state(node, node_state::reserved, node_state::joining);
}

bool shm_world::mark_dead(std::uint32_t node) noexcept {
  const bool changed = table_->mark_dead(node);
  if (changed) bump_epoch();
  return changed;
}

void shm_world::mark_lost() noexcept {
  std::uint32_t expected = word(world_state::running);
  // SYNC: acq_rel, with world_table::state
  table_->head().state.compare_exchange_strong(expected, word(world_state::lost), std::memory_order_acq_rel);
  bump_epoch();
  if (!name_.empty()) rendezvous::remove_file(name_, directory_, nonce_, ending_patience);
}

void shm_world::begin_leave() noexcept {
  if (left_.load(std::memory_order_relaxed)) return;
  if (is_first() && state() == world_state::running) end_world();
  if (!table_->change_state(node_, node_state::alive, node_state::leaving)) return;
  bump_epoch();
  kick_others();
}

void shm_world::leave() noexcept {
  if (left_.exchange(true, std::memory_order_acq_rel)) return;
  if (is_first() && state() == world_state::running) end_world();
  if (!table_->change_state(node_, node_state::alive, node_state::left))
    table_->change_state(node_, node_state::leaving, node_state::left);
  bump_epoch();
  kick_others();
}

void shm_world::end_world() noexcept {
  const auto declare = [&] {
    std::uint32_t expected = word(world_state::running);
    // SYNC: acq_rel, with world_table::state
    return table_->head().state.compare_exchange_strong(expected, word(world_state::ending), std::memory_order_acq_rel);
  };
  const std::scoped_lock lock{door_mutex_};
  // Under the lock of the file, so that whoever joins has either joined a running world or finds
  // the name free.
  if (door_ && door_->lock(ending_patience)) {
    declare();
    door_->remove();
    door_->unlock();
  } else {
    declare();
    if (!name_.empty()) rendezvous::remove_file(name_, directory_, nonce_, ending_patience);
  }
  bump_epoch();
  // SYNC: Dekker with a PE that goes to sleep: it says so, fences, and looks at state() or epoch().
  fence_heavy();
  for (std::uint32_t pe = 0; pe < pe_limit(); ++pe) ring_doorbell(bells_[pe], true);
  kick_others();
  kick_self();
}

void shm_world::bump_epoch() noexcept {
  auto& epoch = table_->head().epoch;
  epoch.fetch_add(1, std::memory_order_acq_rel);  // SYNC: with epoch()
  futex_wake_all(epoch);
}

// Kicks.

void shm_world::kick_self() noexcept {
  const char byte = 0;
  // Full is as good as written: there is something to read.
  (void)retry([&] { return ::write(kick_write_.get(), &byte, 1); });
}

void shm_world::clear_kicks() noexcept {
  char bytes[256];
  while (retry([&] { return ::read(kick_read_.get(), bytes, sizeof bytes); }) == sizeof bytes) {
  }
}

void shm_world::kick_others() noexcept {
  // SYNC: Dekker with membership_monitor's first look: it publishes its pipe, fences, and reads the
  // table.
  fence_heavy();
  const std::uint32_t limit = node_limit();
  for (std::uint32_t place = 0; place < limit; ++place) {
    const std::uint32_t n = node_at(place);
    const node_state s = state(n);
    const bool there = s == node_state::joining || s == node_state::alive || s == node_state::leaving;
    if (n != node_ && there) kick(n);
  }
}

// The pipe of another node is opened through /proc as its memory is. For reading and writing, so
// that a write can neither wait for a reader nor raise SIGPIPE when there is none any more.
void shm_world::kick(std::uint32_t node) noexcept try {
  // SYNC: acquire, with make_own_memory
  const int fd = table_->entry(node).kick_fd.load(std::memory_order_acquire) - 1;
  if (fd < 0) return;
  auto owner = peer::open(info(node).id);
  if (!owner) return;  // its end is seen by all monitors
  auto pipe = owner->open_file(fd, O_RDWR | O_NONBLOCK);
  if (!pipe) return;
  // Not into any pipe of that node, should the table be damaged.
  const std::uint64_t inode = table_->entry(node).kick_inode.load(std::memory_order_relaxed);
  struct stat s{};
  if (::fstat(pipe->get(), &s) != 0 || !S_ISFIFO(s.st_mode) || s.st_ino != inode) return;
  const char byte = 0;
  (void)retry([&] { return ::write(pipe->get(), &byte, 1); });
} catch (...) {
  // No memory for a path: the other learns of it with the next kick.
}

}  // namespace orrery::transport
