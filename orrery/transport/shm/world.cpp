// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/place_giver.hpp>
#include <orrery/transport/shm/internal/table.hpp>
#include <orrery/transport/shm/monitor.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <climits>
#include <new>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace orrery::transport {

using internal::fail;
using internal::fail_os;
using internal::retry;

namespace {

constexpr std::uint64_t least_memory = std::uint64_t{1} << 20;
constexpr std::chrono::milliseconds ending_patience{2000};

constexpr std::uint32_t word(world_state s) noexcept { return static_cast<std::uint32_t>(s); }

result<std::uint64_t> random_nonce() {
  std::uint64_t nonce = 0;
  while (nonce == 0) {
    if (retry([&] { return ::getrandom(&nonce, sizeof nonce, 0); }) != sizeof nonce)
      return fail_os(errno, "the system gives no random number");
  }
  return nonce;
}

result<void> check(const world_config& config) {
  if (config.nodes == 0 || config.pe_count == 0) {
    return fail(transport_errc::bad_argument, 0,
                "a world of {} nodes with {} PEs each was asked for; both must be at least 1", config.nodes,
                config.pe_count);
  }
  if (config.nodes > max_nodes || config.pe_count > max_pes ||
      std::uint64_t{config.nodes} * config.pe_count > max_pes) {
    return fail(transport_errc::bad_argument, 0,
                "{} nodes with {} PEs each were asked for; a world has at most {} nodes and {} "
                "PEs: ask for fewer",
                config.nodes, config.pe_count, max_nodes, max_pes);
  }
  if (config.memory_limit != 0 && config.memory_limit < least_memory) {
    return fail(transport_errc::bad_argument, 0,
                "a memory limit of {} bytes for the node was asked for; it must be at least {}", config.memory_limit,
                least_memory);
  }
  return {};
}

void futex_wake_all(std::atomic<std::uint32_t>& futex) noexcept {
  ::syscall(SYS_futex, &futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

// The segment of another node. `memory` is never changed, so that readers need no lock.
struct shm_world::mapping {
  segment memory;
};

shm_world::shm_world() : mappings_(std::make_unique<mapping_slot[]>(max_nodes)) {}

shm_world::~shm_world() {
  leave();
  for (std::uint32_t n = 0; n < max_nodes; ++n) delete mappings_[n].memory.load(std::memory_order_relaxed);
}

// Making and joining.

result<std::unique_ptr<shm_world>> shm_world::create(const world_config& config) {
  std::unique_ptr<shm_world> world{new shm_world};
  if (auto made = world->make_world("", config); !made) return internal::pass(made);
  return world;
}

result<std::unique_ptr<shm_world>> shm_world::join_inherited(int fd, std::uint32_t node, const world_config& config) {
  std::unique_ptr<shm_world> world{new shm_world};
  if (auto joined = world->join_reserved(unique_fd{fd}, node, config); !joined) return internal::pass(joined);
  return world;
}

result<std::unique_ptr<shm_world>> shm_world::create_or_join(std::string_view name, const world_config& config) {
  if (auto good = check(config); !good) return internal::pass(good);
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 2'000'000};
  const std::int64_t deadline = now_ns() + std::chrono::nanoseconds(config.patience).count();
  for (;;) {
    auto door = rendezvous::enter(name, config.rendezvous_dir, config.patience);
    if (!door) return internal::pass(door);
    std::unique_ptr<shm_world> world{new shm_world};
    auto in = world->go_in(**door, name, config);
    if (!in && world->may_join_later_ && now_ns() < deadline) {
      (*door)->unlock();
      ::nanosleep(&pause, nullptr);
      continue;
    }
    if (!in) return internal::pass(in);
    if (!*in) continue;
    (*door)->hold();
    (*door)->unlock();
    world->door_ = std::move(*door);
    world->directory_ = config.rendezvous_dir;
    return world;
  }
}

// With the file locked. False if it was the file of a world that has ended, which is removed now.
result<bool> shm_world::go_in(rendezvous& door, std::string_view name, const world_config& config) {
  const auto remove = [&]() -> result<bool> {
    // Not silently: who cannot remove it would come back to it for ever.
    if (door.remove() || errno == ENOENT) return false;
    return fail_os(errno, "{} is left over from a world that has ended and cannot be removed", door.path());
  };
  auto address = door.read();
  if (!address) {
    const bool damaged = address.error().code == transport_errc::damaged;
    if (damaged && !door.held_by_others()) return remove();
    return internal::pass(address);
  }
  if (!*address) {
    auto made = make_named(door, name, config);
    if (made) return true;
    door.remove();
    return internal::pass(made);
  }
  if ((**address).pid_namespace != pid_namespace()) {
    if (!door.held_by_others()) return remove();
    return fail(transport_errc::refused, 0,
                "world '{}' runs in another container (PID namespace), where this node cannot see "
                "its memory; run both in one, or choose another name or ORRERY_SHM_DIR",
                name);
  }
  auto joined = join_named(name, **address, config);
  if (joined) return true;
  const auto code = joined.error().code;
  if (code == transport_errc::gone || code == transport_errc::ended) return remove();
  if (code == transport_errc::damaged && !door.held_by_others()) return remove();
  return internal::pass(joined);
}

result<void> shm_world::make_named(rendezvous& door, std::string_view name, const world_config& config) {
  if (auto made = make_world(name, config); !made) return made;
  return door.write({info(node_).id, world_fd(), nonce_, pid_namespace()});
}

result<void> shm_world::make_world(std::string_view name, const world_config& config) {
  if (auto good = check(config); !good) return good;
  auto self = this_peer();
  if (!self) return internal::pass(self);
  auto nonce = random_nonce();
  if (!nonce) return internal::pass(nonce);
  auto memory = segment::create("orrery-world", layout::world_bytes);
  if (!memory) return internal::pass(memory);
  world_ = std::move(*memory);
  if (auto backed = world_.back(0, layout::page); !backed) return backed;
  world_table{world_.data()}.create(name, config, *self, *nonce);
  bind();
  return reserve(*self, config);
}

result<void> shm_world::join_named(std::string_view name, const world_address& address, const world_config& config) {
  auto self = this_peer();
  if (!self) return internal::pass(self);
  auto creator = peer::open(address.creator);
  if (!creator) return internal::pass(creator);
  auto file = creator->open_file(address.fd, O_RDWR);
  if (!file) return internal::pass(file);
  const std::string what = fmt::format("the memory of world '{}' (pid {})", name, address.creator.pid);
  if (auto opened = open_world(std::move(*file), what, config); !opened) return opened;
  if (nonce_ != address.nonce) {
    return fail(transport_errc::damaged, 0, "{} is not the one that its file names", what);
  }
  if (config.closed)
    return fail(transport_errc::refused, 0, "a world '{}' runs on this host already: choose another name", name);
  if (table_->head().closed != 0)
    return fail(transport_errc::refused, 0,
                "world '{}' was started by an MPI launcher, and nobody else joins it: start this program in the same "
                "launch, or choose another name",
                name);
  return reserve(*self, config);
}

result<void> shm_world::join_reserved(unique_fd world, std::uint32_t node, const world_config& config) {
  auto self = this_peer();
  if (!self) return internal::pass(self);
  if (auto opened = open_world(std::move(world), "the world that this node was launched into", config); !opened)
    return opened;
  const node_info mine = info(node);
  if (mine.state == node_state::empty || mine.launcher == node) {
    return fail(transport_errc::bad_argument, 0,
                "node number {} is not reserved in the world that this node was launched into; "
                "ORRERY_INTERNAL_JOIN is set by Orrery only: unset it",
                node);
  }
  const node_info launcher = info(mine.launcher);
  if (launcher.state == node_state::dead || !peer::open(launcher.id)) {
    return fail(transport_errc::ended, 0, "node {}, which launched this one, has ended", mine.launcher);
  }
  if (config.words != nullptr) {
    vocabulary_place_ = table_->vocabulary_of(node);
    auto numbers = world_registry(world_, layout::registry_at).numbers_at(vocabulary_place_, *config.words);
    if (!numbers) {
      return fail(transport_errc::different_build, 0,
                  "node {} was launched by program '{}', and runs another build of it: the executable was replaced "
                  "meanwhile; start it again",
                  node, launcher.program);
    }
    word_numbers_ = std::move(*numbers);
  }
  mark_started(node, *self);  // fails if the launcher was faster, which wrote the same
  if (state(node) != node_state::joining || info(node).id != *self) {
    return fail(transport_errc::ended, 0,
                "node number {} was given to pid {} and is {}: this OS process (pid {}) cannot have it", node,
                info(node).id.pid, to_string(state(node)), self->pid);
  }
  reserved_nodes_ = 1;
  directory_ = config.rendezvous_dir;
  return enter(node, config);
}

// Maps the world and makes sure that this node may be in it.
result<void> shm_world::open_world(unique_fd world, std::string_view what, const world_config& config) {
  auto memory = segment::adopt(std::move(world), 0, what);
  if (!memory) return internal::pass(memory);
  world_ = std::move(*memory);
  if (auto good = world_table{world_.data()}.check(world_.size(), what); !good) return good;
  bind();
  if (state() != world_state::running) {
    return fail(transport_errc::ended, 0, "the world has ended");
  }
  const std::uint64_t theirs = table_->head().build_id;
  if (config.words == nullptr && theirs != config.build_id) {
    return fail(transport_errc::different_build, 0,
                "the world{}{} runs program '{}' (build {:016x}) and this is '{}' (build "
                "{:016x}), whose processes or messages differ; join with the same build or choose another name",
                name_.empty() ? "" : " ", name_, table_->program(), theirs, config.program, config.build_id);
  }
  return {};
}

void shm_world::bind() {
  table_ = std::make_unique<world_table>(world_.data());
  epoch_ = &table_->head().epoch;
  bells_ = table_->bells();
  counters_ = table_->counters();
  nonce_ = table_->head().nonce;
  name_ = table_->name();
}

// The program of a node that uses the vocabulary at that place.
std::optional<std::string> shm_world::program_with(std::uint32_t vocabulary_place) const {
  for (std::uint32_t place = 0; place < node_limit(); ++place) {
    const std::uint32_t n = node_at(place);
    if (table_->vocabulary_of(n) != vocabulary_place) continue;
    const node_info there = info(n);
    const bool is_there = there.state == node_state::reserved || there.state == node_state::joining ||
                          there.state == node_state::alive || there.state == node_state::leaving;
    // Who was killed just now need not have been missed yet.
    if (is_there && (there.state == node_state::reserved || peer::open(there.id))) return there.program;
  }
  return std::nullopt;
}

result<void> shm_world::enter_words(const world_config& config) {
  if (config.words == nullptr) return {};
  auto entered = world_registry(world_, layout::registry_at).enter(*config.words, [&](std::uint32_t place) {
    return program_with(place);
  });
  if (!entered) {
    const bool differs = entered.error().code == transport_errc::different_build;
    return fail(entered.error().code, entered.error().os_error, "program '{}' cannot join the world{}{}: {}{}",
                config.program, name_.empty() ? "" : " ", name_, entered.error().message,
                differs ? "; build both from one definition, or choose another name for the world" : "");
  }
  vocabulary_place_ = entered->place;
  word_numbers_ = std::move(entered->numbers);
  return {};
}

result<void> shm_world::reserve(peer_id self, const world_config& config) {
  if (auto entered = enter_words(config); !entered) return entered;
  place_giver places(*table_, world_);
  auto given = places.give(config, vocabulary_place_, self);
  if (!given) {
    may_join_later_ = places.may_succeed_later();
    return internal::pass(given);
  }
  reserved_nodes_ = config.nodes;
  return enter(given->node, config);
}

// From joining to alive.
result<void> shm_world::enter(std::uint32_t node, const world_config& config) {
  if (auto made = make_own_memory(node, config); !made) {
    table_->change_state(node, node_state::joining, node_state::dead);
    mark_dead(node);  // and what it was to launch
    return made;
  }
  const node_info mine = info(node);
  node_ = node;
  first_pe_ = mine.first_pe;
  pe_count_ = mine.pe_count;
  // Whatever has ended before it touches nothing of.
  const std::uint64_t gone = gone_nodes();
  acknowledge_node(gone);
  for (std::uint32_t i = 0; i < pe_count_; ++i) acknowledge(first_pe_ + i, gone);
  // I3: everything that others need is in the entry.
  if (!table_->change_state(node, node_state::joining, node_state::alive)) {
    return fail(transport_errc::refused, 0, "node {} was declared dead before it was ready: its launcher has given up",
                node);
  }
  left_.store(false, std::memory_order_relaxed);
  bump_epoch();
  kick_others();
  return {};
}

result<void> shm_world::make_own_memory(std::uint32_t node, const world_config& config) {
  const std::uint64_t limit = config.memory_limit != 0 ? config.memory_limit : arena::default_limit();
  const std::uint64_t bytes = arena::segment_bytes(limit);
  auto memory = segment::create("orrery-node", bytes);
  if (!memory) return internal::pass(memory);
  own_ = std::move(*memory);
  if (auto backed = own_.back(0, layout::page); !backed) return backed;
  new (own_.data()) layout::node_header{layout::node_magic, layout::version, node, nonce_, bytes};
  arena_ = std::make_unique<arena>(own_, limit, layout::page);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return fail_os(errno, "a pipe for news of the membership cannot be made");
  }
  kick_read_ = unique_fd{ends[0]};
  kick_write_ = unique_fd{ends[1]};
  struct stat pipe{};
  if (::fstat(ends[0], &pipe) != 0) return fail_os(errno, "a pipe cannot be examined");
  auto& e = table_->entry(node);
  e.kick_inode.store(pipe.st_ino, std::memory_order_relaxed);
  e.segment_fd.store(own_.fd(), std::memory_order_relaxed);
  e.segment_bytes.store(bytes, std::memory_order_relaxed);
  e.lives.store(e.lives.load(std::memory_order_relaxed) | 1, std::memory_order_release);  // SYNC: with gone_nodes
  // SYNC: release, with kick
  e.kick_fd.store(ends[0] + 1, std::memory_order_release);
  return {};
}

// Looking.

std::uint32_t shm_world::node_limit() const noexcept { return table_->numbers().nodes; }
std::uint32_t shm_world::pe_limit() const noexcept { return table_->numbers().pes; }
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
  (void)world_.back(at / layout::page * layout::page, layout::page);  // else the store below gets it, if there is any
  // SYNC: release, with pe_of_alias
  table_->alias(alias).store(pe, std::memory_order_release);
  return alias;
}
std::uint32_t shm_world::pe_of_alias(std::uint32_t alias) const noexcept { return table_->pe_of_alias(alias); }

result<world::memory_block> shm_world::allocate(std::uint64_t bytes) {
  const auto block = arena_->allocate(bytes);
  if (!block) return std::unexpected(block.error());
  return memory_block{arena_->data() + block->offset, block->offset, block->zeroed};
}

result<world::memory_block> shm_world::allocate_beyond(std::uint64_t bytes) {
  const auto block = arena_->allocate_beyond(bytes);
  if (!block) return std::unexpected(block.error());
  return memory_block{arena_->data() + block->offset, block->offset, block->zeroed};
}

void shm_world::release(std::uint64_t offset) noexcept { (void)arena_->release(offset); }

result<std::unique_ptr<membership_watch>> shm_world::watch(membership_observer& observer) {
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

// Memory.

result<std::span<std::byte>> shm_world::map(std::uint32_t node) {
  if (node == node_) return own_.bytes();
  const mapping_slot& slot = mappings_[place_of(node)];
  // SYNC: acquire, with map_peer. Who uses that node's memory keeps it where it is.
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
  auto made = std::make_unique<const mapping>(std::move(*memory));
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
