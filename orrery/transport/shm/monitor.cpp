// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/exit_status.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/monitor.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/thread_limits.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <pthread.h>

namespace orrery::transport {

using internal::fail;

class membership_monitor::impl {
 public:
  impl(shm_world& world, membership_observer& observer) : world_(world), observer_(observer) {}

  void start() {
    // Signals are for the program's threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread{[this] { run(); }};
    } catch (...) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    (void)::pthread_setname_np(thread_.native_handle(), "orrery-monitor");
  }

  ~impl() {
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_release);  // SYNC: with run
    world_.kick_self();
    thread_.join();
  }

 private:
  enum class told : std::uint8_t { nothing, joined, leaving, gone };
  struct last_word {
    std::uint32_t node = no_node;
    told what = told::nothing;
  };
  struct watched {
    std::uint32_t node;
    peer process;
  };
  static constexpr int look_period_ms = 1000;

  void run();
  void look_at_table();
  [[nodiscard]] told& told_of(std::uint32_t node) noexcept { return told_[place_of(node)].what; }
  void look_at(std::uint32_t node);
  void look_for_ending();
  void look_at_peers(bool all);
  void watch(std::uint32_t node, const node_info& there);
  void end_of(std::uint32_t node, std::string_view how);
  void say_gone(std::uint32_t node, bool lost, std::string_view how);

  shm_world& world_;
  membership_observer& observer_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::vector<last_word> told_;  // by place
  std::vector<watched> watched_;
  std::vector<pollfd> polled_;  // the kick pipe, then one for each of watched_ (-1: has no pidfd)
  bool unwatched_ = false;  // somebody could not be looked at: try again
  bool said_ending_ = false;
  bool over_ = false;
};

void membership_monitor::impl::run() {
  // SYNC: Dekker with shm_world::kick_others: this node's pipe was published before.
  fence_heavy();
  look_at_table();
  while (!over_ && !stop_.load(std::memory_order_acquire)) {  // SYNC: with the destructor
    bool blind = unwatched_;
    polled_.assign(1, {.fd = world_.kick_fd(), .events = POLLIN, .revents = 0});
    for (const watched& w : watched_) {
      polled_.push_back({.fd = w.process.fd(), .events = POLLIN, .revents = 0});
      blind = blind || w.process.fd() < 0;
    }
    const int n = ::poll(polled_.data(), polled_.size(), blind ? look_period_ms : -1);
    if (stop_.load(std::memory_order_acquire)) return;
    if (n < 0) {  // for a while: no memory in the kernel, or a limit was lowered
      const timespec pause{.tv_sec = look_period_ms / 1000, .tv_nsec = 0};
      ::nanosleep(&pause, nullptr);
    }
    // Ends before changes of the table: who died before a newcomer came is told before it.
    look_at_peers(n < 0);
    if (over_) return;
    if (n <= 0 || polled_[0].revents != 0) world_.clear_kicks();
    look_at_table();
  }
}

void membership_monitor::impl::look_at_table() {
  unwatched_ = false;
  std::uint64_t gone = 0;
  // until none goes meanwhile: nobody kicks this thread for a node that it has itself found dead
  do {
    gone = world_.gone_nodes();
    const std::uint32_t limit = world_.node_limit();
    if (told_.size() < limit) told_.resize(limit);
    for (std::uint32_t place = 0; place < limit && !over_; ++place) {
      const std::uint32_t n = world_.node_at(place);
      if (n == no_node || n == world_.node()) continue;
      // the one before was told of as gone: see noticed
      if (told_[place].node != n) told_[place] = {n, told::nothing};
      if (told_[place].what != told::gone) look_at(n);
    }
  } while (!over_ && world_.gone_nodes() != gone);
  if (over_) return;
  look_for_ending();
  world_.acknowledge_node(gone);
}

void membership_monitor::impl::look_for_ending() {
  if (said_ending_ || world_.state() != world_state::ending) return;
  said_ending_ = true;
  observer_.world_ending();
}

void membership_monitor::impl::look_at(std::uint32_t node) {
  const node_info there = world_.info(node);
  switch (there.state) {
    case node_state::empty:
    case node_state::reserved:
      return;
    case node_state::joining:
      watch(node, there);
      return;
    case node_state::alive:
    case node_state::leaving:
      watch(node, there);  // first: then its end is seen whole from here on
      if (told_of(node) == told::nothing) {
        told_of(node) = told::joined;
        observer_.node_joined(node);
      }
      if (there.state == node_state::leaving && told_of(node) == told::joined) {
        told_of(node) = told::leaving;
        observer_.node_leaving(node);
      }
      return;
    case node_state::left:
      say_gone(node, false, {});
      return;
    case node_state::dead: {
      // Somebody else was faster.
      const auto it = std::ranges::find(watched_, node, &watched::node);
      say_gone(node, true,
               it != watched_.end() ? internal::describe_end(it->process)
                                    : internal::describe_end(peer::open_ended(there.id)));
      return;
    }
  }
}

void membership_monitor::impl::watch(std::uint32_t node, const node_info& there) {
  for (const watched& w : watched_)
    if (w.node == node) return;
  auto process = peer::open(there.id);
  if (process) {
    watched_.push_back({node, std::move(*process)});
  } else if (process.error().code != transport_errc::gone) {
    unwatched_ = true;  // no descriptors left: that does not kill the node
  } else {
    end_of(node, internal::describe_end(peer::open_ended(there.id)));
  }
}

// Those whose pidfd is readable or that have none, or all of them.
void membership_monitor::impl::look_at_peers(bool all) {
  std::vector<std::pair<std::uint32_t, std::string>> ended;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const watched& w = watched_[i];
    const bool look = all || polled_[i + 1].revents != 0 || w.process.fd() < 0;
    if (look && !w.process.running()) ended.emplace_back(w.node, internal::describe_end(w.process));
  }
  for (const auto& [node, how] : ended)
    if (!over_) end_of(node, how);
}

void membership_monitor::impl::end_of(std::uint32_t node, std::string_view how) {
  // Its last words may be those of leave(): then it is not lost.
  const bool lost = world_.mark_dead(node) || world_.state(node) == node_state::dead;
  say_gone(node, lost, how);
}

void membership_monitor::impl::say_gone(std::uint32_t node, bool lost, std::string_view how) {
  std::erase_if(watched_, [node](const watched& w) { return w.node == node; });
  const bool was_there = told_of(node) != told::nothing || world_.info(node).segment_bytes != 0;
  told_of(node) = told::gone;
  if (!was_there) return;  // it never was alive: nobody can wait for it
  look_for_ending();  // the reason comes before those who go because of it
  if (lost) {
    observer_.node_lost(node, how);
  } else {
    observer_.node_left(node);
  }
  if (node == 0 && lost) {
    over_ = true;
    world_.mark_lost();
    observer_.world_lost(how);
  }
}

membership_monitor::membership_monitor(wire::unique_ptr<impl> state) noexcept : impl_(std::move(state)) {}
membership_monitor::~membership_monitor() = default;

result<wire::unique_ptr<membership_monitor>> membership_monitor::start(shm_world& world,
                                                                       membership_observer& observer) {
  auto state = wire::make_unique<impl>(world, observer);
  try {
    state->start();
  } catch (const std::system_error& e) {
    return fail(transport_errc::no_space, e.code().value(),
                "the thread that watches the other nodes cannot be started ({}); {}", e.what(), more_threads_advice());
  }
  return wire::unique_ptr<membership_monitor>{new membership_monitor{std::move(state)}};
}

}  // namespace orrery::transport
