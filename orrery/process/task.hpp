// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/promise.hpp>

#include <concepts>
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
//     // this process is free meanwhile
//     future<int> Sums::sum() { return start(add_up(left, right)); }
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

class task_turns;
struct task_access;

/// The part of a promise that does not depend on the type of the result.
struct task_frame {
  std::coroutine_handle<> then;      // null: nobody waits
  task_frame* then_frame = nullptr;  // if that is a task
  task_frame* awaits = nullptr;      // the task that it waits for
  const scheduler::sink* waits_for = nullptr;  // the future that it waits for
  task_turns* by = nullptr;          // resumed it; null: a future, or a coroutine that is no task
  bool beginning = false;            // who awaits it has begun it, and has not suspended yet
  bool ended = false;

  task_frame() = default;
  task_frame(const task_frame&) = delete;
  task_frame& operator=(const task_frame&) = delete;
  ~task_frame() {
    if (awaits != nullptr) awaits->then_frame = nullptr;
    leave_waiter();
  }
  /// No task waits for it any more.
  void leave_waiter() noexcept {
    if (then_frame != nullptr) then_frame->awaits = nullptr;
  }
  /// The coroutine that waits is to go on.
  inline void pass_on() noexcept;
};

/// The wait behind the future of a task that was started: for what the task waits for, or the task
/// that it waits for, and so on.
class task_wait_route final : public gathered_parts {
 public:
  task_wait_route(scheduler::sink& result, const task_frame& of) noexcept : result_(result), of_(of) {
    result.route = this;
  }
  task_wait_route(const task_wait_route&) = delete;
  task_wait_route& operator=(const task_wait_route&) = delete;
  ~task_wait_route() { result_.route = nullptr; }
  [[nodiscard]] const scheduler::sink* part(std::size_t i) const noexcept override {
    if (i != 0) return nullptr;
    const task_frame* f = &of_;
    while (f->awaits != nullptr) f = f->awaits;
    return f->waits_for != nullptr && f->waits_for->state == scheduler::sink::status::waiting ? f->waits_for : nullptr;
  }

 private:
  scheduler::sink& result_;
  const task_frame& of_;
};

/// Resumes coroutines one after the other.
///
/// Problem: a task begins in who awaits it, and who awaited it goes on when it ends. If each
/// resumed the next, a loop of tasks that end at once would fill the stack; that a coroutine may
/// name the next one helps only where the compiler makes a jump of it, and GCC does not without
/// -O2. So tasks tell who resumed them what is next, and return to there.
///
/// On the stack of who resumes. Invariant: a task's `by` is null or lives, while the task runs.
class task_turns {
 public:
  void run(std::coroutine_handle<> h, task_frame* f) {
    follow(h, f);
    while (next_) {
      if (frame_ != nullptr) frame_->by = this;
      std::exchange(next_, nullptr).resume();
    }
  }
  void follow(std::coroutine_handle<> h, task_frame* f) noexcept {
    next_ = h;
    frame_ = f;
  }

 private:
  std::coroutine_handle<> next_;
  task_frame* frame_ = nullptr;  // of next_, if it is a task
};

inline void task_frame::pass_on() noexcept {
  ended = true;
  leave_waiter();
  if (beginning || !then) return;  // who has begun it sees that it has ended
  if (by != nullptr) {
    by->follow(then, then_frame);
  } else {
    task_turns turns;
    turns.run(then, then_frame);  // the frame may end in there
  }
}

template <class A>
inline constexpr bool is_future = false;
template <class T>
inline constexpr bool is_future<future<T>> = true;
template <class T>
const scheduler::sink* future_state_of(const future<T>& f) noexcept {
  return future_access<T>::get(f);
}

/// The wait of a task for something that is no task: somebody else will resume it.
template <class A>
struct task_wait {
  A on;
  task_frame& of;

  decltype(auto) await_ready() { return on.await_ready(); }
  template <class P>
  auto await_suspend(std::coroutine_handle<P> h) {
    task_turns* const by = std::exchange(of.by, nullptr);
    if constexpr (is_future<std::remove_cvref_t<A>>) of.waits_for = future_state_of(on);
    if constexpr (std::is_same_v<decltype(on.await_suspend(h)), bool>) {
      const bool suspends = on.await_suspend(h);
      if (!suspends) of.by = by;
      return suspends;
    } else {
      return on.await_suspend(h);
    }
  }
  decltype(auto) await_resume() {
    of.waits_for = nullptr;
    return on.await_resume();
  }
};

template <class A>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

template <class T>
struct task_promise : task_result<T>, task_frame {
  std::exception_ptr error;

  struct at_end {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<task_promise> h) const noexcept { h.promise().pass_on(); }
    void await_resume() const noexcept {}
  };
  task<T> get_return_object() noexcept;
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] at_end final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
  template <class A>
  decltype(auto) await_transform(A&& a) {
    if constexpr (is_task<std::remove_cvref_t<A>>) {
      return std::forward<A>(a);
    } else if constexpr (requires { std::forward<A>(a).operator co_await(); }) {
      return task_wait<decltype(std::forward<A>(a).operator co_await())>{std::forward<A>(a).operator co_await(), *this};
    } else if constexpr (requires { operator co_await(std::forward<A>(a)); }) {
      return task_wait<decltype(operator co_await(std::forward<A>(a)))>{operator co_await(std::forward<A>(a)), *this};
    } else {
      return task_wait<A&&>{std::forward<A>(a), *this};
    }
  }
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
    task taken(std::move(other));
    std::swap(coroutine_, taken.coroutine_);
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
  template <class P>
  [[nodiscard]] bool await_suspend(std::coroutine_handle<P> caller) const {
    detail::task_frame& own = coroutine_.promise();
    own.then = caller;
    if constexpr (std::derived_from<P, detail::task_frame>) {
      own.then_frame = &caller.promise();
      own.then_frame->awaits = &own;
      if (detail::task_turns* const by = own.then_frame->by; by != nullptr) {
        by->follow(coroutine_, &own);
        return true;
      }
    }
    own.beginning = true;
    detail::task_turns turns;
    turns.run(coroutine_, &own);
    own.beginning = false;
    return !own.ended;
  }
  T await_resume() const { return coroutine_.promise().result(); }

 private:
  friend struct detail::task_access;
  std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

struct task_access {
  template <class T>
  static const task_frame& frame(const task<T>& t) {
    (void)t.await_ready();  // throws if it cannot be awaited
    return t.coroutine_.promise();
  }
};

// `result`: the state of the promise's future.
template <class T>
detached keep_with_task(promise<T> p, scheduler::sink& result, task<T> t) {
  try {
    const task_wait_route route(result, task_access::frame(t));
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
  detail::keep_with_task(std::move(p), *detail::future_access<T>::get(f), std::move(t));
  return f;
}

}  // namespace orrery
