// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/later_answer.hpp>
#include <orrery/process/detail/local_waits.hpp>
#include <orrery/process/detail/state_memory.hpp>
#include <orrery/process/future.hpp>

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace orrery {

namespace detail {

/// A promise that is not kept yet; part of the state of its future.
struct open_promise : local_wait {
  future_state_base* state = nullptr;
  std::uint32_t home = 0;  ///< PE
  bool open = true;  ///< nobody has kept it, and the runtime runs
  bool asked = false;  ///< its future was given away

  /// It was made here, by what runs now.
  inline void begin(pe& self, future_state_base& s);
};

/// The ends of the wait for a promise, and its line in a report.
void cancel_promise(pe& self, local_wait& w) noexcept;
[[nodiscard]] std::string describe_promise(const pe& self, const local_wait& w);

inline void open_promise::begin(pe& self, future_state_base& s) {
  local_waits& all = local_waits::of(self);
  state = &s;
  home = self.id();
  scheduler::sink& k = *s.k;
  k.home = self.id();
  k.target = self.self();
  k.method = running_method(self);
  s.hold();  // one is the promise's, one that of whatever completes it
  cancel = &cancel_promise;
  describe = &describe_promise;
  if (self.refusing()) [[unlikely]] {
    cancel_promise(self, *this);
  } else {
    all.add(*this);
  }
}

template <class T>
struct promise_state final : future_state<T>, open_promise {
  static void* operator new(std::size_t size) { return state_memory::take(size); }
  static void* operator new(std::size_t size, std::align_val_t a) { return ::operator new(size, a); }
  static void operator delete(void* memory, std::size_t size) noexcept { state_memory::give(memory, size); }
  static void operator delete(void* memory, std::align_val_t a) noexcept { ::operator delete(memory, a); }
  explicit promise_state(pe& self) : future_state<T>(stays_here{}) {
    this->destroy = [](future_state_base* s) noexcept {
      delete static_cast<promise_state*>(static_cast<future_state<T>*>(s));
    };
    begin(self, *this);
  }
};

/// It can be kept here, by this PE; else see must_not_keep. `p` may be null.
[[nodiscard]] inline pe* keeper_of(const open_promise* p) noexcept {
  pe* const self = scheduler::current_pe;
  return p != nullptr && self != nullptr && self->id() == p->home && p->open ? self : nullptr;
}
/// Throws usage_error that says why the promise (null: it was moved from) cannot be kept here and
/// now. Returns if the runtime shuts down, which who waits knows.
void must_not_keep(const open_promise* p);
[[noreturn]] void throw_no_future(const open_promise* p);
[[noreturn]] void throw_no_exception();
/// It is kept: the state is complete, with the result in its place.
void keep(pe& self, open_promise& p) noexcept;
/// The same with an exception.
void keep_with(pe& self, open_promise& p, std::exception_ptr why) noexcept;
/// The name, as in reports, of a promise that a method of the process has made, whose future was
/// given away, and which is not kept yet; empty: there is none. Looks at all promises of this PE.
[[nodiscard]] std::string open_promise_of(pe& self, const address& process);
/// Nobody will keep it any more. Also on other PEs, and after the world has ended.
void abandon(open_promise& p) noexcept;

}  // namespace detail

/// The result of a call, to be given later: a method returns the future and its process is free;
/// whoever has the promise keeps it.
///
///     // the caller waits, this process does not
///     future<int> next() { return waiting_.emplace_back().get_future(); }
///     void put(int x) { waiting_.front().set_value(x), waiting_.pop_front(); }
///     std::deque<promise<int>> waiting_;
///
/// Belongs to the PE where it was made, and is kept there; movable, never sent (an element that
/// migrates leaves it behind). If it ends before it is kept, as it does with the process whose
/// member it is, the caller gets broken_promise; if its node is lost, node_lost. Nothing here
/// parks. No probe looks for cycles through promises: a world that waits for one for ever ends as a
/// dead one, whose report lists it.
template <class T>
class [[nodiscard]] promise {
 public:
  using value_type = T;

  /// Throws usage_error outside of the runtime, std::bad_alloc.
  promise() : state_(new detail::promise_state<T>(detail::here_pe())) {}
  promise(promise&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  promise& operator=(promise&& other) noexcept {
    promise taken(std::move(other));
    std::swap(state_, taken.state_);
    return *this;
  }
  ~promise() {
    if (state_ == nullptr) return;
    // it was kept: there is nobody to tell
    if (const detail::pe* self = scheduler::current_pe;
        self != nullptr && self->id() == state_->open_promise::home && !state_->open) [[likely]] {
      state_->drop();
    } else {
      detail::abandon(*state_);
    }
  }

  /// The future of the result, once. Throws usage_error.
  [[nodiscard]] future<T> get_future() {
    if (state_ == nullptr || state_->asked) [[unlikely]]
      detail::throw_no_future(state_);
    state_->asked = true;
    state_->hold();
    return detail::future_access<T>::wrap(typename detail::future_access<T>::owner(state_));
  }
  /// The result, made from the arguments. Throws usage_error if it was kept before, or on another
  /// PE, and what T's constructor throws: then it is still to be kept.
  template <class... A>
  void set_value(A&&... arguments)
    requires(std::is_void_v<T> ? sizeof...(A) == 0 : std::is_constructible_v<T, A...>)
  {
    detail::pe* const self = detail::keeper_of(state_);
    if (self == nullptr) [[unlikely]]
      return detail::must_not_keep(state_);
    if constexpr (!std::is_void_v<T>) new (state_->storage) T(std::forward<A>(arguments)...);
    state_->scheduler::sink::state = scheduler::sink::status::value;
    detail::keep(*self, *state_);
  }
  /// The call ends with an exception. Throws usage_error as set_value, and if there is none.
  void set_exception(std::exception_ptr why) {
    if (why == nullptr) [[unlikely]]
      detail::throw_no_exception();
    detail::pe* const self = detail::keeper_of(state_);
    if (self == nullptr) return detail::must_not_keep(state_);
    detail::keep_with(*self, *state_, std::move(why));
  }
  /// True while it is to be kept.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr && state_->open; }

 private:
  detail::promise_state<T>* state_;
};

}  // namespace orrery
