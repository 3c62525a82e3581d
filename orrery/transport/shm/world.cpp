// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/place_giver.hpp>
#include <orrery/transport/shm/internal/table.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

namespace orrery::transport {

using internal::fail;
using internal::fail_os;
using internal::retry;

namespace {

constexpr std::uint64_t least_memory = std::uint64_t{1} << 20;
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

}  // namespace

// Making and joining. Memory of nodes: world_memory.cpp; who is in it, and what is told of that:
// world_members.cpp.

result<wire::unique_ptr<shm_world>> shm_world::create(const world_config& config) {
  wire::unique_ptr<shm_world> world{new shm_world};
  if (auto made = world->make_world("", config); !made) return internal::pass(made);
  return world;
}

result<wire::unique_ptr<shm_world>> shm_world::join_inherited(int fd, std::uint32_t node, const world_config& config) {
  wire::unique_ptr<shm_world> world{new shm_world};
  if (auto joined = world->join_reserved(unique_fd{fd}, node, config); !joined) return internal::pass(joined);
  return world;
}

result<wire::unique_ptr<shm_world>> shm_world::create_or_join(std::string_view name, const world_config& config) {
  if (auto good = check(config); !good) return internal::pass(good);
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 2'000'000};
  const std::int64_t deadline = now_ns() + std::chrono::nanoseconds(config.patience).count();
  for (;;) {
    auto door = rendezvous::enter(name, config.rendezvous_dir, config.patience);
    if (!door) return internal::pass(door);
    wire::unique_ptr<shm_world> world{new shm_world};
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
  table_ = wire::make_unique<world_table>(world_.data());
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
    // A node that was killed just now need not have been missed yet.
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
  // It touches nothing of what has ended before.
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
  arena_ = wire::make_unique<arena>(own_, limit, layout::page);
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
  // SYNC: with gone_nodes
  e.lives.store(e.lives.load(std::memory_order_relaxed) | 1, std::memory_order_release);
  // SYNC: release, with kick
  e.kick_fd.store(ends[0] + 1, std::memory_order_release);
  return {};
}

// Looking.

std::uint32_t shm_world::node_limit() const noexcept { return table_->numbers().nodes; }
std::uint32_t shm_world::pe_limit() const noexcept { return table_->numbers().pes; }
}  // namespace orrery::transport
