// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/shared_waits.hpp>
#include <orrery/process/future.hpp>
#include <orrery/wire/counted_ptr.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace orrery {

namespace detail {

/// The result of a call that several wait for. Owned by the shared futures, and by the call that is
/// on its way.
template <class T>
struct shared_state : wire::counted {
  future<T> from;
  shared_waits waits;
};

}  // namespace detail

/// A future that can be copied: several methods, also at once, wait for one result, and each reads
/// it in place.
///
///     shared_future<Table> table(start(server)->load());
///     const Table& t = table.get();      // in each method that needs it
///
/// Made of a future, which is empty then. Belongs to the PE of that future, and its copies are used
/// there only. An exception is thrown to each that asks. get, wait and wait_for may park the
/// calling process, never its PE.
template <class T>
class [[nodiscard]] shared_future {
 public:
  using value_type = T;

  shared_future() noexcept = default;
  /// Throws usage_error if the future has no call, or a coroutine or another method waits for it,
  /// and leaves it as it was.
  explicit shared_future(future<T>&& from) {
    detail::future_access<T>::check(from);
    wire::counted_ptr state(new detail::shared_state<T>);
    state->from = std::move(from);
    auto* s = detail::future_access<T>::get(state->from);
    s->taken = true;  // what it throws is for those that ask
    if (!state->from.ready()) {
      s->continuation_data = new wire::counted_ptr(state);
      s->continuation = [](detail::pe& at, detail::future_state_base& base) {
        const wire::unique_ptr<wire::counted_ptr<detail::shared_state<T>>> held(
            static_cast<wire::counted_ptr<detail::shared_state<T>>*>(base.continuation_data));
        (*held)->waits.tell_all(at);
      };
    }
    state_ = std::move(state);
  }

  /// False for a future without a call: made by default or moved from.
  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
  [[nodiscard]] explicit operator bool() const noexcept { return valid(); }
  /// True when get will not wait.
  [[nodiscard]] bool ready() const noexcept { return state_ != nullptr && state_->from.ready(); }
  /// Parks until the result is there, or the call has ended otherwise. Throws usage_error.
  void wait() const {
    if (there()) return;
    const auto keep = state_;
    (void)keep->waits.wait(result_of(*keep));
  }
  /// As wait, but at most for `d`; false if there is still no result. Throws stopped, too.
  [[nodiscard]] bool wait_for(time_limit d) const {
    if (there()) return true;
    const auto keep = state_;
    return keep->waits.wait(result_of(*keep), detail::deadline_after(d));
  }
  /// The result: parks until it is there, throws what the call ended with. Good as long as a copy
  /// of this future is.
  decltype(auto) get() const {
    const auto keep = state_;
    wait();
    auto* s = detail::future_access<T>::get(keep->from);
    if (s->scheduler::sink::state == scheduler::sink::status::error) std::rethrow_exception(s->error);
    if constexpr (!std::is_void_v<T>) return static_cast<const T&>(s->value);
  }
  /// Runs f(result), or f() if that is void, when the result is there, as future::then does. For as
  /// many f as one likes.
  template <class F>
  auto then(F f) const {
    auto go = [keep = *this, f = std::move(f)]() mutable -> decltype(auto) {
      if constexpr (std::is_void_v<T>) {
        keep.get();
        return f();
      } else {
        return f(keep.get());
      }
    };
    (void)there();
    return state_->waits.told(result_of(*state_)).then(std::move(go));
  }

 private:
  [[nodiscard]] bool there() const {
    if (state_ == nullptr)
      throw usage_error(errc::null_pointer, verbatim,
                        "shared_future: it has no call: it was default-constructed or moved from");
    detail::require_same_pe(result_of(*state_));
    return state_->from.ready();
  }
  static const scheduler::sink& result_of(const detail::shared_state<T>& s) noexcept {
    return *detail::future_access<T>::get(s.from);
  }

  wire::counted_ptr<detail::shared_state<T>> state_;
};

}  // namespace orrery
