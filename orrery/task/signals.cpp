// SPDX-License-Identifier: Apache-2.0
// Tasks that end with a signal. A signal's action belongs to the whole OS process, and its handler
// may do next to nothing: it writes the signal's number into a pipe, which a thread reads that asks
// the tasks to end.
#include <orrery/process/function.hpp>
#include <orrery/process/submit.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/task/internal/convert.hpp>
#include <orrery/task/internal/signals.hpp>
#include <orrery/task/internal/task_frame.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace orrery::task_detail {

namespace {

std::atomic<int> into_pipe{-1};  // what the handler writes to

// By signal: what it does without us, while the handler is ours.
struct taken_signal {
  std::atomic<bool> taken;
  struct sigaction before;
};
taken_signal signals[_NSIG];

// Once for each time that it was taken. Also in the handler.
void give_back(int number) noexcept {
  taken_signal& s = signals[number];
  if (s.taken.exchange(false)) (void)::sigaction(number, &s.before, nullptr);
}

void on_signal(int number) {
  const int was = errno;
  give_back(number);
  const auto byte = static_cast<unsigned char>(number);
  (void)!::write(into_pipe.load(std::memory_order_relaxed), &byte, 1);
  errno = was;
}

// The tasks that end with each signal.
class signal_desk {
 public:
  void add(int number, const address& task) {
    const std::lock_guard lock(mutex_);
    open();
    struct sigaction action{};
    action.sa_handler = &on_signal;
    action.sa_flags = SA_RESTART;
    ::sigfillset(&action.sa_mask);
    taken_signal& s = signals[number];
    if (!s.taken) {
      struct sigaction before{};
      if (::sigaction(number, nullptr, &before) != 0) fail(number);
      s.before = before;
      s.taken = true;
      if (::sigaction(number, &action, nullptr) != 0) {
        const int why = errno;
        s.taken = false;
        errno = why;
        fail(number);
      }
    }
    tasks_[number].push_back({task, std::make_shared<outside_work>()});
  }
  void clear() noexcept {
    const std::lock_guard lock(mutex_);
    for (int number = 1; number < _NSIG; ++number) give_back(number);
    tasks_.clear();
  }

 private:
  [[noreturn]] static void fail(int number) {
    throw usage_error(errc::bad_argument,
                      fmt::format("orrery_stop_on_signal: signal {}: {}", number, std::strerror(errno)));
  }
  void open() {
    if (into_pipe.load(std::memory_order_relaxed) >= 0) return;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "orrery_stop_on_signal");
    std::thread([this, from = ends[0]] { serve(from); }).detach();
    into_pipe.store(ends[1], std::memory_order_relaxed);
  }
  void serve(int from) noexcept {
    sigset_t all;
    // the program's signals are for the program's threads
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (unsigned char number = 0;;) {
      const auto n = ::read(from, &number, 1);
      if (n == 0 || (n < 0 && errno != EINTR)) return;
      if (n == 1) stop_tasks(number);
    }
  }
  // A world in which all wait is not dead: the signal may come.
  struct ending_task {
    address task;
    std::shared_ptr<outside_work> keeps_world;
  };

  void stop_tasks(int number) noexcept {
    std::vector<ending_task> ending;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = tasks_.find(number); found != tasks_.end()) {
        ending = std::move(found->second);
        tasks_.erase(found);
      }
    }
    for (const ending_task& each : ending) {
      try {
        (void)submit([each] { detail::future_access<void>::disregard(start_destroy(remote<function>(each.task))); });
      } catch (const std::exception&) {  // the world has ended before
      }
    }
  }

  std::mutex mutex_;
  std::map<int, std::vector<ending_task>> tasks_;
};

signal_desk& desk() {
  static signal_desk& d = *new signal_desk;  // its thread may outlive all static objects
  return d;
}

}  // namespace

void forget_signals() noexcept {
  if (into_pipe.load(std::memory_order_relaxed) >= 0) desk().clear();
}

}  // namespace orrery::task_detail

extern "C" orrery_status orrery_stop_on_signal(int signal, orrery_task task) {
  using namespace orrery::task_detail;
  return guarded("orrery_stop_on_signal", [&] {
    auto& self = orrery::detail::here_pe();
    self.require_process();
    require(task, "orrery_stop_on_signal");
    // in simulations, too
    if (signal < 1 || signal > SIGRTMAX || signal == SIGKILL || signal == SIGSTOP)
      throw orrery::usage_error(
          orrery::errc::bad_argument,
          fmt::format("orrery_stop_on_signal: signal {} does not exist, or cannot be caught", signal));
    if (self.simulated() == nullptr) desk().add(signal, address_of(task));
    return ORRERY_OK;
  });
}
