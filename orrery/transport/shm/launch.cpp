// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/exit_status.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/launch.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace orrery::transport {

using internal::fail;
using internal::fail_os;
using internal::retry;

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view join_variable = "ORRERY_INTERNAL_JOIN";

milliseconds until(clock::time_point deadline) {
  return std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(deadline - clock::now()));
}

clock::time_point after(milliseconds limit, clock::time_point begin = clock::now()) {
  // Not past the end of the clock: "for ever" may come as milliseconds::max().
  return begin + std::min(limit, milliseconds{std::chrono::hours{24 * 365}});
}

// As the kernel has them: what main() got may have been changed, and says nothing of an
// interpreter.
result<std::vector<std::string>> own_arguments() {
  const unique_fd file{retry([] { return ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC); })};
  std::string text;
  char buffer[4096];
  ssize_t n = -1;
  while (file && (n = retry([&] { return ::read(file.get(), buffer, sizeof buffer); })) > 0)
    text.append(buffer, static_cast<std::size_t>(n));
  if (n < 0) return fail_os(errno, "/proc/self/cmdline cannot be read");
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < text.size(); at += arguments.back().size() + 1)
    arguments.emplace_back(text.c_str() + at);
  return arguments;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// For ps and top, where a process that was started as /proc/self/exe would be "exe".
void name_process() noexcept {
  std::array<char, 16> name{};  // all that Linux takes
  ::strncpy(name.data(), program_invocation_short_name, name.size() - 1);
  (void)::prctl(PR_SET_NAME, name.data());
}

class spawn_actions {
 public:
  spawn_actions() noexcept { ok_ = ::posix_spawn_file_actions_init(&actions_) == 0; }
  spawn_actions(const spawn_actions&) = delete;
  ~spawn_actions() {
    if (ok_) ::posix_spawn_file_actions_destroy(&actions_);
  }
  // dup2 of a descriptor to itself clears close-on-exec in the child only.
  int keep(int fd) noexcept { return ::posix_spawn_file_actions_adddup2(&actions_, fd, fd); }
  int no_input() noexcept {
    return ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }
  explicit operator bool() const noexcept { return ok_; }

 private:
  posix_spawn_file_actions_t actions_;
  bool ok_ = false;
};

}  // namespace

result<std::optional<inherited_world>> take_inherited_world() {
  const char* set = std::getenv(join_variable.data());
  if (set == nullptr) return std::nullopt;
  const std::string text = set;
  ::unsetenv(join_variable.data());
  inherited_world found;
  const char* const end = text.data() + text.size();
  const auto fd = std::from_chars(text.data(), end, found.fd);
  if (fd.ec == std::errc{} && fd.ptr != end && *fd.ptr == ':' && found.fd > STDERR_FILENO) {
    const auto node = std::from_chars(fd.ptr + 1, end, found.node);
    if (node.ec == std::errc{} && node.ptr == end && found.node != no_node) {
      name_process();
      return found;
    }
  }
  return fail(transport_errc::bad_argument, 0,
              "{}='{}' is not what a node gives to those that it launches; it is set by Orrery "
              "only: unset it",
              join_variable, text);
}

result<wire::unique_ptr<node_launcher>> node_launcher::start(shm_world& world, std::span<const std::string> arguments,
                                                             milliseconds limit) {
  wire::unique_ptr<node_launcher> launcher{new node_launcher{world}};
  if (auto launched = launcher->launch_all(arguments, limit); !launched) {
    // Else those that have started would tell of each other's end.
    if (world.node() == 0) world.end_world();
    return internal::pass(launched);
  }
  return launcher;
}

result<void> node_launcher::launch_all(std::span<const std::string> arguments, milliseconds limit) {
  std::vector<std::string> argv{arguments.begin(), arguments.end()};
  if (argv.empty()) {
    auto own = own_arguments();
    if (!own) return internal::pass(own);
    argv = std::move(*own);
  }
  std::vector<char*> argv_pointers = pointers_to(argv);
  std::vector<char*> environment{nullptr};  // the first is for join_variable
  for (char** e = environ; *e != nullptr; ++e) {
    if (!std::string_view{*e}.starts_with(std::string{join_variable} + '=')) environment.push_back(*e);
  }
  environment.push_back(nullptr);
  const auto deadline = after(limit, begun_);
  const std::uint32_t nodes = world_.reserved_nodes();
  for (std::uint32_t i = 1; i < nodes; ++i) {
    std::string join = fmt::format("{}={}:{}", join_variable, world_.world_fd(), world_.node() + i);
    environment.front() = join.data();
    auto spawned = spawn(world_.node() + i, argv_pointers.data(), environment);
    if (spawned && i + 1 < nodes && clock::now() >= deadline)
      spawned = fail(transport_errc::timed_out, 0,
                     "only {} of {} nodes could be started in {} ms; start fewer, or give them more time "
                     "(--orrery-startup-timeout)",
                     i + 1, nodes, limit.count());
    if (!spawned) {
      for (; i < nodes; ++i) world_.mark_dead(world_.node() + i);
      return spawned;
    }
  }
  return {};
}

result<void> node_launcher::spawn(std::uint32_t node, char* const* arguments, std::span<char* const> environment) {
  spawn_actions actions;
  if (!actions || actions.keep(world_.world_fd()) != 0 || actions.no_input() != 0) {
    return fail(transport_errc::no_space, ENOMEM, "there is no memory to start node {}", node);
  }
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", actions.get(), nullptr, arguments, environment.data());
  if (error != 0) {
    return fail(internal::code_of(error), error,
                "node {} cannot be started ({}); the limit of OS processes (ulimit -u) may be too "
                "low, or /proc/self/exe may not be executed",
                node, internal::os_text(error));
  }
  child& c = children_.emplace_back();
  c.node = node;
  c.pid = pid;
  // It is ours and not reaped, so the pid is its own.
  if (const auto id = find_peer(pid)) {
    world_.mark_started(node, *id);
    if (auto process = peer::open(*id)) c.process = std::move(*process);
  }
  return {};
}

node_launcher::~node_launcher() {
  signal_all(SIGKILL);
  // One that hangs in the kernel does not die at once, and must not keep this one from ending.
  const auto deadline = after(milliseconds{5000});
  while (!reap_all() && clock::now() < deadline) wait_some(milliseconds{1000});
}

void node_launcher::signal_all(int signal) noexcept {
  for (child& c : children_) {
    if (c.reaped) continue;
    // By pidfd where there is one: the program's own wait() may have reaped it.
    if (c.process.fd() >= 0) {
      ::syscall(SYS_pidfd_send_signal, c.process.fd(), signal, nullptr, 0);
    } else {
      ::kill(c.pid, signal);
    }
  }
}

std::size_t node_launcher::running() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(children_, [](const child& c) { return !c.reaped; }));
}

void node_launcher::reap(child& c) {
  if (c.reaped) return;
  siginfo_t info{};
  const int r = retry([&] { return ::waitid(P_PID, static_cast<id_t>(c.pid), &info, WEXITED | WNOHANG); });
  if (r == 0 && info.si_pid == 0) return;
  c.reaped = true;
  c.exit = node_exit{.node = c.node, .pid = c.pid, .killed = false, .value = -1, .how = {}};
  if (r == 0) {
    c.exit->killed = info.si_code != CLD_EXITED;
    c.exit->value = info.si_status;
    c.exit->how = internal::describe_exit(info);
  } else {
    // It ended well if it could say so.
    const bool left = world_.state(c.node) == node_state::left;
    c.exit->value = left ? 0 : -1;
    c.exit->how = left ? "ended" : "ended (how is not known: the program ignores SIGCHLD or has waited for it)";
  }
  // If it did not leave, it is dead now, also where no monitor runs.
  world_.mark_dead(c.node);
}

bool node_launcher::reap_all() {
  for (child& c : children_) reap(c);
  return running() == 0;
}

// Until one of those that run ends, or for `limit`. May return early.
void node_launcher::wait_some(milliseconds limit) {
  std::vector<pollfd> polled;
  bool blind = false;
  for (const child& c : children_) {
    if (c.reaped) continue;
    polled.push_back({.fd = c.process.fd(), .events = POLLIN, .revents = 0});
    blind = blind || c.process.fd() < 0;
  }
  if (blind) limit = std::min(limit, milliseconds{10});
  ::poll(polled.data(), polled.size(), static_cast<int>(std::min<long>(limit.count(), 3'600'000)));
}

result<void> node_launcher::wait_for_nodes(milliseconds limit) {
  constexpr std::chrono::seconds notice{2};
  bool said = false;
  const auto deadline = after(limit, begun_);
  for (;;) {
    const std::uint32_t seen = world_.epoch();
    const child* late = nullptr;
    std::size_t joined = 1;
    for (child& c : children_) {
      const node_state s = world_.state(c.node);
      if (s == node_state::alive || s == node_state::leaving || s == node_state::left) {
        ++joined;
        continue;
      }
      reap(c);
      if (c.reaped) {
        return fail(transport_errc::gone, 0,
                    "node {} (pid {}) {} before it had joined the world; run the program with one "
                    "node to see what is wrong",
                    c.node, c.pid, c.exit ? c.exit->how : "ended");
      }
      late = &c;
    }
    if (late == nullptr) return {};
    const milliseconds left = until(deadline);
    if (!said && clock::now() - begun_ >= notice) {
      said = true;
      std::fputs(fmt::format("orrery: {} of {} nodes have joined the world after {} s, and the program waits for the "
                             "others, at most {} s (--orrery-startup-timeout)\n",
                             joined, children_.size() + 1, notice.count(), limit.count() / 1000)
                     .c_str(),
                 stderr);
    }
    if (left.count() == 0) {
      return fail(transport_errc::timed_out, 0,
                  "{} of {} nodes have joined the world after {} ms, but not node {} (pid {}); the program must start "
                  "the runtime before it does anything that takes long; very many nodes need more time "
                  "(--orrery-startup-timeout)",
                  joined, children_.size() + 1, limit.count(), late->node, late->pid);
    }
    // A node that ends at once changes no epoch, and one thread cannot wait for a futex and a
    // pidfd: it looks.
    const auto slice = std::min(left, milliseconds{20});
    world_.wait_epoch(seen, now_ns() + slice.count() * 1'000'000);
  }
}

std::vector<node_exit> node_launcher::wait_for_exit(milliseconds limit) {
  const auto deadline = after(limit);
  while (!reap_all()) {
    const milliseconds left = until(deadline);
    if (left.count() == 0) break;
    wait_some(left);
  }
  std::vector<node_exit> ended;
  for (child& c : children_)
    if (c.exit) ended.push_back(*std::exchange(c.exit, std::nullopt));
  return ended;
}

}  // namespace orrery::transport
