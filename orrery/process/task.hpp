// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/promise.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

// Coroutines that wait for calls: what waits is a frame of some hundred bytes, not a stack.
//
//     task<int> add_up(remote<Counter> a, remote<Counter> b) {
//       const int first = co_await start(a)->get();
//       co_return first + co_await start(b)->get();
//     }
//     future<int> Sums::sum() { return start(add_up(left, right)); }      // this process is free
// meanwhile
namespace orrery {

template <class T>
class task;

namespace detail {

/// Where the result of a coroutine is until it is taken, and who goes on then.
template <class T>
struct task_result {
  std::optional<T> value;
  template <class V>
    requires std::constructible_from<T, V&&>
  void return_value(V&& v) {
    value.emplace(std::forward<V>(v));
  }
  T take() { return *std::move(value); }
};
template <>
struct task_result<void> {
  void return_void() noexcept {}
  void take() noexcept {}
};

template <class T>
struct task_promise : task_result<T> {
  std::exception_ptr error;
  std::coroutine_handle<> then;  // null: nobody waits

  struct at_end {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<task_promise> h) const noexcept {
      const std::coroutine_handle<> next = h.promise().then;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  task<T> get_return_object() noexcept;
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] at_end final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
  T result() {
    if (error != nullptr) std::rethrow_exception(error);
    return this->take();
  }
};

/// The coroutine that keeps a promise with what a task ends with. It ends itself.
struct detached {
  struct promise_type {
    detached get_return_object() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

}  // namespace detail

/// A coroutine that gives a T (or nothing). It begins when it is awaited by another coroutine
/// (`co_await add_up(a, b)`), or started (`start(add_up(a, b))`: a future of its result). It may
/// co_await futures and tasks. It runs on one PE, the first steps in who starts it, each further
/// one when what it awaits is there, as a process of its own: an object that it refers to may be in
/// the middle of a method then, or gone. So let it take what it needs as parameters, by value; what
/// a lambda has captured ends with the lambda. A task that ends before it was begun does nothing.
/// Its exception goes to the coroutine that awaits it.
template <class T = void>
class [[nodiscard]] task {
 public:
  using value_type = T;
  using promise_type = detail::task_promise<T>;

  explicit task(std::coroutine_handle<promise_type> h) noexcept : coroutine_(h) {}
  task(task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~task() {
    if (coroutine_) coroutine_.destroy();
  }

  // co_await, once.
  [[nodiscard]] bool await_ready() const {
    if (!coroutine_ || coroutine_.promise().then)
      throw usage_error(errc::bad_argument, "task: it was moved from, started, or is awaited already");
    return false;
  }
  [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept {
    coroutine_.promise().then = caller;
    return coroutine_;
  }
  T await_resume() const { return coroutine_.promise().result(); }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

template <class T>
detached keep_with_task(promise<T> p, task<T> t) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await t;
      p.set_value();
    } else {
      p.set_value(co_await t);
    }
  } catch (...) {
    p.set_exception(std::current_exception());
  }
}

}  // namespace detail

/// Begins a task, in the caller until it waits for the first time, and gives a future of its
/// result. So a method that returns it answers when the task ends. Throws usage_error outside of
/// the runtime, std::bad_alloc.
template <class T>
[[nodiscard]] future<T> start(task<T> t) {
  promise<T> p;
  future<T> f = p.get_future();
  detail::keep_with_task(std::move(p), std::move(t));
  return f;
}

}  // namespace orrery
