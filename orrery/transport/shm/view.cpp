// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/board.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/table.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/transport/shm/view.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <system_error>
#include <utility>

namespace orrery::transport {

using internal::fail;

world_view::world_view(peer creator, segment world)
    : creator_(std::move(creator)), world_(std::move(world)), table_(wire::make_unique<world_table>(world_.data())) {}
world_view::world_view(world_view&&) noexcept = default;
world_view& world_view::operator=(world_view&&) noexcept = default;
world_view::~world_view() = default;

result<world_view> world_view::attach(std::string_view name, std::string_view directory) {
  auto door = rendezvous::look(name, directory);
  if (!door) return internal::pass(door);
  auto address = (*door)->read();
  if (!address) return internal::pass(address);
  if (!*address) {
    return fail(transport_errc::not_found, 0, "world '{}' is just being made, or whoever made it has ended", name);
  }
  if ((**address).pid_namespace != pid_namespace()) {
    return fail(transport_errc::refused, 0,
                "world '{}' runs in another container (PID namespace); look at it from there", name);
  }
  auto creator = peer::open((**address).creator);
  if (!creator) return internal::pass(creator);
  const std::string what = fmt::format("the memory of world '{}' (pid {})", name, (**address).creator.pid);
  auto memory = segment::open_peer(*creator, (**address).fd, 0, access::read, what);
  if (!memory) return internal::pass(memory);
  const world_table table{memory->data()};
  if (auto good = table.check(memory->size(), what); !good) return internal::pass(good);
  if (table.head().nonce != (**address).nonce) {
    return fail(transport_errc::damaged, 0, "{} is not the one that {} names", what, (*door)->path());
  }
  return world_view{std::move(*creator), std::move(*memory)};
}

std::string world_view::name() const { return table_->name(); }
std::string world_view::program() const { return table_->program(); }
std::uint64_t world_view::build_id() const noexcept { return table_->head().build_id; }
std::uint64_t world_view::nonce() const noexcept { return table_->head().nonce; }
bool world_view::is_part() const noexcept { return table_->head().closed != 0; }
world_state world_view::state() const noexcept { return table_->state(); }
std::uint32_t world_view::epoch() const noexcept {
  return table_->head().epoch.load(std::memory_order_acquire);  // SYNC: with shm_world::bump_epoch
}
std::uint32_t world_view::node_limit() const noexcept { return table_->numbers().nodes; }
std::uint32_t world_view::pe_limit() const noexcept { return table_->numbers().pes; }
std::uint32_t world_view::node_at(std::uint32_t place) const noexcept { return table_->node_at(place); }
node_info world_view::info(std::uint32_t node) const { return table_->info(node); }
std::uint32_t world_view::pe_node(std::uint32_t pe) const noexcept { return table_->pe_node(pe); }

result<std::vector<std::byte>> world_view::read_board(std::uint32_t node) const {
  const auto here = [&] {
    const node_state now = table_->state_of(node);
    return now == node_state::alive || now == node_state::leaving;
  };
  if (!here()) return {};
  // SYNC: acquire, with shm_world::show_board
  const int fd = table_->entry(node).board_fd.load(std::memory_order_acquire) - 1;
  if (fd < 0) return {};
  auto owner = peer::open(info(node).id);
  auto text = owner ? board::read(*owner, fd, fmt::format("what node {} shows", node))
                    : result<std::vector<std::byte>>{internal::pass(owner)};
  // If it has ended meanwhile, the descriptor may be closed, or something else.
  if (!text && (text.error().code == transport_errc::gone || !here())) return {};
  return text;
}

bool world_view::sleeping(std::uint32_t pe) const noexcept {
  return table_->bells()[place_of(pe)].sleeping.load(std::memory_order_relaxed) != 0;
}

std::uint64_t world_view::counter(std::uint32_t pe, std::uint32_t index) const noexcept {
  assert(index < counters_per_pe);
  return table_->counters()[place_of(pe) * counters_per_pe + index].load(std::memory_order_relaxed);
}

namespace {

world_info look_at(std::string name, std::string path, std::string_view directory) {
  world_info w;
  w.name = std::move(name);
  w.path = std::move(path);
  auto view = world_view::attach(w.name, directory);
  if (!view) {
    const auto code = view.error().code;
    const bool gone = code == transport_errc::gone || code == transport_errc::not_found;
    w.state = gone ? world_info::condition::stale : world_info::condition::unreadable;
    w.problem = std::move(view.error().message);
    return w;
  }
  w.creator = view->creator();
  w.program = view->program();
  w.is_part = view->is_part();
  w.state = view->state() == world_state::running ? world_info::condition::running : world_info::condition::ending;
  for (std::uint32_t n = 0; n < view->node_limit(); ++n) {
    const node_info i = view->info(view->node_at(n));
    if (i.state != node_state::alive && i.state != node_state::leaving) continue;
    ++w.nodes;
    w.pes += i.pe_count;
  }
  return w;
}

}  // namespace

result<std::vector<world_info>> list_worlds(std::string_view directory) {
  namespace fs = std::filesystem;
  const std::string where = rendezvous_directory(directory);
  const std::string prefix = rendezvous_prefix();
  std::vector<world_info> worlds;
  std::error_code error;
  for (fs::directory_iterator it{where, error}; !error && it != fs::directory_iterator{}; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    name.erase(0, prefix.size());
    if (check_world_name(name)) worlds.push_back(look_at(name, it->path().string(), where));
  }
  if (error) return internal::fail_os(error.value(), "the directory {} cannot be read", where);
  std::ranges::sort(worlds, {}, &world_info::name);
  return worlds;
}

result<std::size_t> remove_stale_worlds(std::string_view directory) {
  auto worlds = list_worlds(directory);
  if (!worlds) return internal::pass(worlds);
  return static_cast<std::size_t>(std::ranges::count_if(*worlds, [&](const world_info& w) {
    return w.state == world_info::condition::stale &&
           rendezvous::remove_file(w.name, directory, 0, std::chrono::milliseconds{100});
  }));
}

}  // namespace orrery::transport
