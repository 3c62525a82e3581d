// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/reach.hpp>

#include <orrery/scheduler/fork.hpp>
#include <orrery/scheduler/io_pool.hpp>
#include <orrery/scheduler/nap.hpp>
#include <orrery/scheduler/say.hpp>
#include <orrery/scheduler/short_turns.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/scheduler/stuck_watch.hpp>
#include <orrery/scheduler/transport_failure.hpp>
#include <orrery/transport/carrier.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/thread_limits.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace orrery::scheduler {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

void pin_to(int cpu) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

namespace {

// Most of more than that have little to do, and to touch their huge pages would take seconds.
constexpr std::uint32_t pes_of_a_core = 16;

[[noreturn]] void throw_no_room(std::uint32_t node, std::size_t made, std::size_t pes) {
  constexpr std::uint64_t table_mib = (std::uint64_t{process_table::most_slots} * sizeof(slot)) >> 20;
  const auto limit = transport::address_space_limit();
  throw world_error(
      errc::world_no_space, verbatim,
      fmt::format(
          "there is memory for {} of the {} PEs of node {}; each takes up to {} MiB of address space, as far as "
          "there is that much{}: ask for fewer PEs (--orrery-pes) or less memory of nodes (--orrery-memory)",
          made, pes, node, table_mib,
          limit ? fmt::format(", and its limit (ulimit -v) is {} KiB, to be raised", *limit / 1024) : ""));
}

// Says once that a start takes long, and how far it is.
class start_notice {
 public:
  start_notice(std::uint32_t node, std::uint32_t pes) noexcept : node_(node), pes_(pes) {}
  /// For the rest of a start that has begun before, with a notice of its own.
  start_notice(std::uint32_t node, std::uint32_t pes, std::int64_t begun) noexcept
      : node_(node), pes_(pes), begun_(begun), said_(transport::real_now_ns() - begun >= patience_ns) {}
  void have_started(std::size_t count) {
    if (said_ || transport::real_now_ns() - begun_ < patience_ns) return;
    said_ = true;
    say(
        fmt::format("orrery: node {}: {} of its {} PEs have started after {} s, and the program waits for the others; "
                    "fewer start sooner (--orrery-pes)\n",
                    node_, count, pes_, patience_ns / 1'000'000'000));
  }

 private:
  static constexpr std::int64_t patience_ns = 2'000'000'000;
  std::uint32_t node_;
  std::uint32_t pes_;
  std::int64_t begun_ = transport::real_now_ns();
  bool said_ = false;
};

}  // namespace

std::uint32_t available_cores() noexcept { return static_cast<std::uint32_t>(allowed_cpus().size()); }

// Hears of nodes that come and go, on the monitor's thread, and passes it on to the PEs.
class node::observer final : public transport::membership_observer {
 public:
  explicit observer(node& n) : node_(n) {
    if (!n.world_->is_open()) return;
    for (std::uint32_t place = 0; place < n.world_->node_limit(); ++place)
      if (const std::uint32_t i = n.world_->node_at(place); n.world_->state(i) == transport::node_state::dead)
        gone_before_.push_back(i);
  }
  void node_joined(std::uint32_t) noexcept override { node_.tell_pes(); }
  void node_leaving(std::uint32_t n) noexcept override {
    node_.tell_pes();
    if (n == node_.settings_.launcher) node_.stop();
  }
  void node_left(std::uint32_t n) noexcept override {
    node_.forget_memory_of(n);
    node_.tell_pes();
    if (n == node_.settings_.launcher) node_.stop();
  }
  void node_lost(std::uint32_t n, std::string_view how) noexcept override {
    if (n == 0) return;  // world_lost follows, and has the last word
    // nobody else would ever end this one, which the user does not know of
    if (n == node_.settings_.launcher) {
      say(fmt::format("orrery: node {}, which started this one, {}: node {} ends too\n", n, how, node_.index()));
      _exit(1);
    }
    node_.forget_memory_of(n);
    const bool known = std::ranges::find(gone_before_, n) == gone_before_.end();
    const bool others_say = node_.stopping_.load(std::memory_order_relaxed) && node_.settings_.ends_are_reported;
    if (known && !others_say && (node_.sim_ == nullptr || node_.index() == 0)) {
      if (node_.announced_ != nullptr)
        node_.announced_[n % node_.world_->node_capacity()].store(n + 1, std::memory_order_relaxed);
      // Once for each program: who has started other nodes says it for them, and knows more of the
      // end of its own ones.
      if (node_.settings_.launcher == transport::no_node)
        say(fmt::format("orrery: node {} {}: calls to it fail with node_lost\n", n, how));
    }
    node_.tell_pes();
  }
  void world_ending() noexcept override { node_.stop(); }
  void world_lost(std::string_view how) noexcept override {
    // Nothing can be trusted to come to an end by itself: methods may compute for hours for a
    // caller that is gone.
    say(fmt::format("orrery: the first node of the world {}: node {} ends too\n", how, node_.index()));
    if (node_.sim_ == nullptr) _exit(1);
    node_.stop();
  }

 private:
  node& node_;
  std::vector<std::uint32_t> gone_before_;  // whose loss is no news to this node
};

node::node(const node_settings& settings, transport::world* world)
    : settings_(settings), world_(world), io_pool_(wire::make_unique<io_pool>()) {
  const std::uint32_t cores = available_cores();
  const std::uint32_t n = world_ != nullptr ? world_->pe_count() : settings_.pes != 0 ? settings_.pes : cores;
  transport::enable_asymmetric_fences();
  if (world_ != nullptr) {
    first_pe_ = world_->first_pe();
    if (settings.pe.fibers == nullptr) {  // simulated nodes are one program
      distrusted_ = wire::make_unique<std::atomic<std::uint32_t>[]>(world_->node_capacity());
      announced_ = wire::make_unique<std::atomic<std::uint32_t>[]>(world_->node_capacity());
    }
  } else {
    own_bells_ = wire::make_unique<transport::doorbell[]>(n);
    own_idleness_ = wire::make_unique<idleness[]>(n);
  }
  const auto [nodes_here, pes_here] = world_ != nullptr ? world_->crowd() : std::pair{1U, n};
  if (n > cores || pes_here > cores) settings_.pe.yield = true;
  settings_.pe.small_pages = pes_here / pes_of_a_core > cores;
  if (settings_.queue_bytes == 0) settings_.queue_bytes = 2 * transport::arena::default_limit() / nodes_here;
  for (std::uint32_t i = 0; i < n; ++i) {
    transport::doorbell& bell = world_ != nullptr ? world_->bell(first_pe_ + i) : own_bells_[i];
    try {
      pes_.push_back(wire::make_unique<pe>(*this, first_pe_ + i, bell, settings_.pe));
    } catch (const std::bad_alloc&) {
      throw_no_room(index(), i, n);
    }
  }
}

node::~node() {
  watch_.reset();
  for (auto [p, n] : local_rings_) munmap(p, n);
}

std::uint32_t node::index() const noexcept { return world_ != nullptr ? world_->node() : 0; }
std::uint32_t node::world_pes() const noexcept {
  return world_ != nullptr ? world_->pe_limit() : static_cast<std::uint32_t>(std::max<std::size_t>(pes_.size(), 1));
}
std::uint32_t node::world_nodes() const noexcept { return world_ != nullptr ? world_->node_limit() : 1; }

std::uint32_t node::pe_at(std::uint32_t place) const noexcept {
  return world_ != nullptr ? world_->pe_at(place) : place;
}
std::uint32_t node::node_at(std::uint32_t place) const noexcept {
  return world_ != nullptr ? world_->node_at(place) : place;
}
bool node::knows(std::uint32_t pe) const noexcept {
  return is_local(pe) || (world_ != nullptr && world_->knows_pe(pe));
}

std::uint32_t node::node_of(std::uint32_t pe) const noexcept {
  return world_ != nullptr ? world_->pe_node(pe) : is_local(pe) ? 0 : transport::no_node;
}

std::pair<std::uint32_t, std::uint32_t> node::pes_of(std::uint32_t node) const {
  if (world_ != nullptr ? !world_->knows_node(node) : node != 0)
    throw usage_error(errc::no_such_place, fmt::format("node({}) in a world of {} nodes", node, world_nodes()));
  if (node == index()) return {first_pe_, pe_count()};
  return world_->pes_of(node);
}

bool reaches(const pe& from, std::uint32_t to) noexcept { return from.owner().reachable(to); }
bool shares_node(const pe& with, std::uint32_t other) noexcept { return with.owner().is_local(other); }

bool node::reachable(std::uint32_t pe) const noexcept {
  if (is_local(pe)) return true;
  if (world_ == nullptr) return false;
  const std::uint32_t n = world_->pe_node(pe);
  return n != transport::no_node && world_->answers(n) && !is_distrusted(n);
}

bool node::has_ended(std::uint32_t pe) const noexcept {
  if (is_local(pe) || world_ == nullptr) return false;
  const std::uint32_t n = world_->pe_node(pe);
  return n != transport::no_node ? world_->has_ended(n) : world_->is_past_pe(pe);
}

bool node::takes_work(std::uint32_t pe) const noexcept {
  if (is_local(pe)) return true;
  return reachable(pe) && world_->alive(world_->pe_node(pe));
}

bool node::world_runs() const noexcept {
  return world_ == nullptr || world_->state() == transport::world_state::running;
}

void node::run(const std::function<void(pe&)>& first) {
  watch_for_fork();
  const std::int64_t begun = transport::real_now_ns();
  begin();
  start_notice notice(index(), pe_count(), begun);
  const auto cpus = allowed_cpus();
  const bool pin = settings_.pin && world_pes() <= cpus.size();
  const std::uint32_t first_place = transport::place_of(first_pe_);
  cpu_set_t before;
  CPU_ZERO(&before);
  pthread_getaffinity_np(pthread_self(), sizeof before, &before);
  stuck_watch watch(*this, settings_.stuck_ns);
  // No PE runs before all have their thread: the loops of some would wait for the others to end.
  enum : int { waiting, running, given_up };
  std::atomic<int> start{waiting};
  std::vector<std::thread> threads;
  const auto let = [&](int what) {
    start.store(what, std::memory_order_release);  // SYNC: with the threads' wait
    start.notify_all();
  };
  try {
    for (std::uint32_t i = 1; i < pe_count(); ++i) {
      notice.have_started(i);
      threads.emplace_back([this, i, pin, first_place, &cpus, &start, &watch] {
        start.wait(waiting, std::memory_order_acquire);  // SYNC: with `let`
        if (start.load(std::memory_order_relaxed) == given_up) return;
        if (pin) pin_to(cpus[first_place + i]);
        const short_turns turns;
        watch.begin(i);
        pes_[i]->run();
      });
    }
  } catch (const std::system_error& e) {
    let(given_up);
    for (auto& t : threads) t.join();
    finish();
    throw world_error(
        errc::world_no_space, verbatim,
        fmt::format(
            "threads for {} of the {} PEs of node {} can be started, and then no more are to be had ({}): ask for "
            "fewer PEs (--orrery-pes), or {}",
            threads.size() + 1, pe_count(), index(), e.code().message(), transport::more_threads_advice()));
  }
  let(running);
  if (pin) pin_to(cpus[first_place]);
  {
    const short_turns turns;
    watch.begin(0);
    first(*pes_[0]);
    pes_[0]->run();
  }
  for (auto& t : threads) t.join();
  if (pin) pthread_setaffinity_np(pthread_self(), sizeof before, &before);
  finish();
}

void node::begin() {
  start_notice notice(index(), pe_count());
  for (std::size_t i = 0; settings_.layer != nullptr && i < pes_.size(); ++i) {
    try {
      settings_.layer->prepare(*pes_[i]);
    } catch (const std::bad_alloc&) {
      throw_no_room(index(), i, pe_count());
    }
    notice.have_started(i + 1);
  }
  if (world_ == nullptr) return;
  // A child of fork() that returns from its method would answer in the name of its parent: it has
  // no such memory.
  if (transport::shm_world* shared = world_->shared(); shared != nullptr)
    if (const auto own = shared->map(shared->node())) (void)madvise(own->data(), own->size(), MADV_DONTFORK);
  observer_ = wire::make_unique<observer>(*this);
  auto watch = world_->watch(*observer_);
  if (!watch) throw_transport(watch.error());
  watch_ = std::move(*watch);
}

void node::finish() noexcept { watch_.reset(); }

idleness& node::idleness_of(std::uint32_t pe) noexcept {
  if (world_ == nullptr) return own_idleness_[pe];
  // The last words of the PE's counters in the world segment.
  return *reinterpret_cast<idleness*>(world_->counters(pe).data() + transport::counters_per_pe - 4);
}

bool node::ends_when_dead() const noexcept { return index() == 0 && (world_ == nullptr || !world_->is_open()); }

void node::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  // The last one comes first: a PE that has noticed, and wakes others, finds that they are to stop,
  // too.
  for (auto p = pes_.rbegin(); p != pes_.rend(); ++p) (*p)->shutdown_.request();
  transport::fence_heavy();
  for (std::uint32_t i = 0; i < std::min(pe_count(), woken_at_once); ++i) wake(first_pe() + i);
}

// --- reports -------------------------------------------------------------------------------------

std::uint64_t node::failed_posts() const noexcept {
  std::uint64_t all = 0;
  for (const auto& p : pes_) all += p->count().failed_posts;
  return all;
}

}  // namespace orrery::scheduler
