// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace orrery {

namespace scheduler {
class node;
}

namespace detail {

/// A function on its way from a thread that is no PE to one that is.
struct submission {
  submission() = default;
  submission(const submission&) = delete;
  submission& operator=(const submission&) = delete;
  virtual ~submission() = default;
  /// Runs the function and answers; on a PE, as a process.
  virtual void run() noexcept = 0;
  /// Answers with the exception, unless there is an answer.
  virtual void fail(std::exception_ptr why) noexcept = 0;
};

template <class F, class R>
struct submitted final : submission {
  F f;
  std::promise<R> answer;
  std::atomic<bool> answered{false};
  explicit submitted(F g) : f(std::move(g)) {}
  void run() noexcept override {
    try {
      if constexpr (std::is_void_v<R>) {
        f();
        if (!answered.exchange(true)) answer.set_value();
      } else {
        R result = f();
        if (!answered.exchange(true)) answer.set_value(std::move(result));
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }
  void fail(std::exception_ptr why) noexcept override {
    if (!answered.exchange(true)) answer.set_exception(std::move(why));
  }
};

/// Throws usage_error, stopped.
void submit(std::shared_ptr<submission> what);

/// While it lives, `submit` leads to the node. One at a time.
class open_entrance {
 public:
  explicit open_entrance(scheduler::node& to);
  open_entrance(const open_entrance&) = delete;
  open_entrance& operator=(const open_entrance&) = delete;
  /// Functions that have not been answered are answered with `stopped`.
  ~open_entrance();
};

}  // namespace detail

/// Runs `f()` as a process on a PE of this node and returns at once; the future has what f returns
/// or throws. For threads that are no PEs (those of a user interface, of another library): all else
/// of Orrery is for processes, and throws usage_error elsewhere. A process uses spawn, as
/// std::future::get would hold its whole PE. f and its result stay in this OS process, and need not
/// be sent.
///
/// The world ends when main returns, also while such threads live: from then on submit throws
/// `stopped`, and so does the future of an f that has not ended. Where main only waits for such
/// threads, see outside_work. Throws usage_error if no world runs in this OS process, or a
/// simulated one.
///
///     std::thread window(
///         [&] { std::cout << orrery::submit([=] { return counter->get(); }).get(); });
template <class F>
[[nodiscard]] std::future<std::invoke_result_t<std::decay_t<F>&>> submit(F&& f) {
  using R = std::invoke_result_t<std::decay_t<F>&>;
  auto s = std::make_shared<detail::submitted<std::decay_t<F>, R>>(std::forward<F>(f));
  std::future<R> answer = s->answer.get_future();
  detail::submit(std::move(s));
  return answer;
}

/// Says that threads which are no PEs have work for the world. While one lives, a world in which
/// every process waits is not taken for dead. Made and ended by any thread of the node, within run.
/// Throws usage_error if no world runs here.
///
///     // in main: the next message comes from a thread that submits
///     const orrery::outside_work reader;
///     std::thread t(read_lines, orrery::this_process<orrery::function>());
///     while (orrery::receive<std::string>() != "end") {}
class outside_work {
 public:
  outside_work();
  outside_work(const outside_work&) = delete;
  outside_work& operator=(const outside_work&) = delete;
  ~outside_work();
};

}  // namespace orrery
