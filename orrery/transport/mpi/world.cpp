// SPDX-License-Identifier: Apache-2.0
// A world of several machines, once it runs. How it starts is in start.cpp.
#include <orrery/transport/mpi/world.hpp>

#include <orrery/transport/mpi/debugger.hpp>
#include <orrery/transport/mpi/exit.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

namespace orrery::transport {

namespace {

constexpr std::int64_t shortest_nap_ns = 50'000;
constexpr std::int64_t ending_patience_ns = 10'000'000'000;
constexpr std::int64_t tracing_patience_ns = 3'600'000'000'000;  // who is silent meanwhile is lost

void nap(std::int64_t ns) noexcept {
  const timespec t{.tv_sec = 0, .tv_nsec = ns};
  ::nanosleep(&t, nullptr);
}

}  // namespace

// Hears of OS processes of this machine that have ended.
class mpi_world::local_observer final : public membership_observer {
 public:
  explicit local_observer(mpi_world& of) noexcept : of_(of) {}
  void node_joined(std::uint32_t) noexcept override {}
  void node_left(std::uint32_t) noexcept override {}  // it has said so itself
  void node_lost(std::uint32_t node, std::string_view how) noexcept override {
    of_.carrier_->report_lost(of_.map_->node_at_local(node), how);
    of_.sockets_.wake();
  }
  void world_ending() noexcept override {}
  void world_lost(std::string_view) noexcept override {}  // its first node was said to be lost

 private:
  mpi_world& of_;
};

class mpi_world::watcher final : public membership_watch {
 public:
  watcher(mpi_world& of, membership_observer& observer) : of_(of) {
    const std::scoped_lock lock{of_.observer_mutex_};
    of_.observer_ = &observer;
  }
  ~watcher() override {
    const std::scoped_lock lock{of_.observer_mutex_};
    of_.members_->tell(*of_.observer_);  // the helper may not have told yet what a PE saw first
    of_.observer_ = nullptr;
  }

 private:
  mpi_world& of_;
};

mpi_world::mpi_world() = default;

mpi_world::~mpi_world() {
  leave();
  stop_helping();
  if (!keeps_memory_) return;
  // The program may have started MPI itself, and goes on with it.
  local_->leave();
  (void)carrier_.release();
  (void)late_.release();
  (void)local_.release();
}

result<wire::unique_ptr<membership_watch>> mpi_world::watch(membership_observer& observer) {
  return wire::make_unique<watcher>(*this, observer);
}

result<void> mpi_world::begin(const mpi_config& config) {
  patience_ = config.patience;
  engine* by = library_.get();
  if (config.jitter.count() > 0) {
    late_ = wire::make_unique<late_engine>(*library_, config.jitter.count(), number_ + node_, real_now_ns);
    by = late_.get();
  }
  carrier_ = wire::make_unique<mpi_carrier>(*by, *local_, *map_, *members_, config.patience.count(), end_at_once);
  carrier_->look_for_debugger(is_debugged);
  keeps_memory_ = true;
  if (!carrier_->begin()) return std::unexpected(transport_error{transport_errc::system, 0, library_->error()});
  // A child of fork() must not answer in the name of its parent.
  if (const auto own = local_->map(local_->node())) (void)madvise(own->data(), own->size(), MADV_DONTFORK);
  return {};
}

result<void> mpi_world::watch_machine() {
  local_observer_ = wire::make_unique<local_observer>(*this);
  auto watched = local_->watch(*local_observer_);
  if (!watched) return std::unexpected(std::move(watched.error()));
  local_watch_ = std::move(*watched);
  left_.store(false, std::memory_order_relaxed);
  helps_.store(true, std::memory_order_relaxed);
  helper_ = std::thread([this] { help(); });
  return {};
}

// As long as PEs poll, they drive the carrier themselves, and there is little left to do here.
void mpi_world::help() {
  constexpr std::int64_t parts = 20;  // of the patience: signs of life are sent in time
  constexpr int most_skipped = 8;
  helper_pace pace(patience_.count() / parts);
  helper_pace::look look;
  std::uint64_t drives = 0;
  int skipped = 0;
  while (helps_.load(std::memory_order_acquire)) {  // SYNC: with stop_helping
    const std::uint64_t far = carrier_->frames_from_far();
    const std::uint32_t epoch = members_->epoch();
    // It would only take the core and the library from the PEs that are at it.
    look.driven = drives != carrier_->drives() && !carrier_->all_pes_sleep();
    drives = carrier_->drives();
    skipped = look.driven && skipped < most_skipped ? skipped + 1 : 0;
    look.any = skipped == 0 && carrier_->tick();
    {
      const std::scoped_lock lock{observer_mutex_};
      if (observer_ != nullptr) members_->tell(*observer_);
    }
    look.from_far = carrier_->frames_from_far() != far;
    const bool asleep = carrier_->all_pes_sleep();
    look.calm = asleep && carrier_->is_calm();
    look.moves_blocks = carrier_->moves_blocks();
    const helper_pace::pause p = pace.next(look);
    if (p.wakes) sockets_.look_for_sockets();
    look.after = rest(p, asleep, epoch);
  }
}

socket_watch::cause mpi_world::rest(const helper_pace::pause& p, bool asleep, std::uint32_t told) noexcept {
  if (!p.wakes) {
    if (!asleep) carrier_->let_helper_nap(&sockets_);
    fence_light();  // SYNC: Dekker with mpi_carrier::pe_sleeps
    const bool sleep_now = !asleep && carrier_->all_pes_sleep();
    const auto why = sleep_now ? socket_watch::cause::call : sockets_.nap(p.ns);
    carrier_->let_helper_nap(nullptr);
    return why;
  }
  if (!p.is_deep) return sockets_.sleep(p.ns);
  carrier_->let_helper_sleep(&sockets_);
  fence_heavy();  // SYNC: Dekker with mpi_carrier::pe_woke
  // The observer is to hear what a PE has heard since then.
  const bool still = carrier_->all_pes_sleep() && members_->epoch() == told;
  const auto why = still ? sockets_.sleep(p.ns) : socket_watch::cause::call;
  carrier_->let_helper_sleep(nullptr);
  return why;
}

void mpi_world::stop_helping() noexcept {
  helps_.store(false, std::memory_order_release);  // SYNC: with help
  sockets_.wake();
  if (helper_.joinable()) helper_.join();
}

// --- memory --------------------------------------------------------------------------------------

void mpi_world::release(std::uint64_t offset) noexcept {
  bool was_ring = false;
  {
    const std::scoped_lock lock{rings_mutex_};
    was_ring = far_rings_.erase(offset) != 0;
  }
  if (was_ring) carrier_->forget_ring(offset);
  local_->release(offset);
}

result<std::span<std::byte>> mpi_world::map(std::uint32_t node, std::uint64_t offset, std::uint64_t bytes) {
  if (node >= map_->nodes())
    return std::unexpected(transport_error{transport_errc::bad_argument, 0, "there is no such node in this world"});
  return local_->map(map_->is_far(node) ? local_->node() : map_->at(node).local_node, offset, bytes);
}

void mpi_world::unmap(std::uint32_t node) {
  if (node >= map_->nodes()) return;
  if (map_->is_far(node)) {
    carrier_->release_memory_of(node);
  } else {
    local_->unmap(map_->at(node).local_node);
  }
}

// --- PEs -----------------------------------------------------------------------------------------

doorbell& mpi_world::bell(std::uint32_t pe) noexcept {
  const std::uint32_t node = map_->node_of(pe);
  return map_->is_far(node) ? no_bell_ : local_->bell(map_->local_pe(pe, node));
}

std::span<std::atomic<std::uint64_t>, counters_per_pe> mpi_world::counters(std::uint32_t pe) const noexcept {
  const std::uint32_t node = map_->node_of(pe);
  return map_->is_far(node) ? carrier_->copy_of_counters(pe) : local_->counters(map_->local_pe(pe, node));
}

void mpi_world::publish_ring(std::uint32_t to, std::uint32_t from, std::uint64_t offset) noexcept {
  const std::uint32_t node = map_->node_of(to);
  if (!map_->is_far(node)) {
    local_->publish_ring(map_->local_pe(to, node), map_->local_pe(from, map_->own()), offset);
    return;
  }
  auto memory = local_->map(local_->node(), offset, sizeof(ring_header));
  if (!memory) return;
  {
    const std::scoped_lock lock{rings_mutex_};
    far_rings_.insert(offset);
  }
  carrier_->add_ring(from, to, offset, *reinterpret_cast<ring_header*>(memory->data()));
}

std::optional<std::uint64_t> mpi_world::ring_offset(std::uint32_t to, std::uint32_t from) const noexcept {
  const std::uint32_t node = map_->node_of(from);
  const std::uint32_t reader = map_->node_of(to);
  if (node == no_node || reader == no_node || map_->is_far(reader)) return std::nullopt;
  if (map_->is_far(node)) return carrier_->mirror_offset(to, from);
  return local_->ring_offset(map_->local_pe(to, reader), map_->local_pe(from, node));
}

// --- the end -------------------------------------------------------------------------------------

void mpi_world::begin_leave() noexcept {
  if (left_.load(std::memory_order_relaxed) || leaving_.exchange(true, std::memory_order_acq_rel)) return;
  members_->change(node_, node_state::leaving);
  carrier_->say(node_news::leaving);
}

void mpi_world::leave() noexcept {
  begin_leave();
  if (left_.exchange(true, std::memory_order_acq_rel)) return;
  const std::int64_t patience_ns = traced_ ? tracing_patience_ns : ending_patience_ns;
  const std::int64_t deadline = real_now_ns() + patience_ns;
  const auto drive_until = [&](auto&& done) {
    while (!done() && real_now_ns() < deadline)
      if (!carrier_->tick()) nap(shortest_nap_ns);
    return done();
  };
  const auto flushed = [&] { return carrier_->is_flushed(); };
  (void)drive_until(flushed);
  if (part_) {
    std::vector<std::byte> some(mpi_carrier::largest_part);
    for (std::size_t n = 0; (n = part_(some)) != 0 && drive_until(flushed);)
      carrier_->send_part(std::span(some).first(n));
    part_ = {};
  }
  if (node_ != 0) carrier_->say_counters();
  carrier_->say(node_news::left);
  members_->change(node_, node_state::left);
  const bool all = drive_until([&] {
                     for (std::uint32_t n = 0; n < map_->nodes(); ++n)
                       if (n != node_ && members_->is_there(n)) return false;
                     return true;
                   }) &&
                   drive_until(flushed);
  status_server_.reset();
  stop_helping();
  local_watch_.reset();
  local_->leave();
  if (all && !members_->has_lost_some()) {
    keeps_memory_ = !carrier_->end();
    library_->finish();
    return;
  }
  if (!members_->has_lost_some()) say_who_stays(patience_ns);
  exit_without_clean_up();
}

void mpi_world::say_who_stays(std::int64_t waited_ns) const noexcept {
  std::string who;
  for (std::uint32_t n = 0; n < map_->nodes(); ++n)
    if (n != node_ && members_->is_there(n)) who += fmt::format("{}{}", who.empty() ? "" : ", ", n);
  const std::string why = who.empty() ? "what it has said to others was not taken" : "these had not ended: " + who;
  fmt::print(stderr, "orrery: node {} ends without MPI_Finalize, as {} s after its own end {}\n", node_,
             waited_ns / 1'000'000'000, why);
}

}  // namespace orrery::transport
