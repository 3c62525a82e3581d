// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/bound_target.hpp>
#include <orrery/process/detail/kept.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/process/spawn_here.hpp>
#include <orrery/process/time_limit.hpp>

#include <chrono>
#include <tuple>
#include <type_traits>
#include <utility>

// Posts that are sent later, once or again and again.
//
//     auto alarm = post_after(10s, p)->ring();
//     auto beat = post_every(1s, grid[3, 4])->look();
//     alarm.cancel();
namespace orrery {

/// A post that is to come: a small value to be copied, stored and sent.
///
/// Behind it is a function process on the PE that made it, which sleeps meanwhile; so the world is
/// not quiescent until it was sent the last time, or cancelled, and nothing is sent any more when
/// the program ends.
class timed_post {
 public:
  timed_post() = default;
  explicit timed_post(remote<function> f) noexcept : sender_(f) {}
  /// Nothing is sent any more when this returns. True: more would have been. False: it was sent the
  /// last time, or cancelled before, its node is lost, or the program has ended and this is called
  /// in the destructor of a process. From any process; parks. Throws usage_error for one that was
  /// default-constructed, or outside of the runtime, stopped.
  bool cancel() const;
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(sender_); }
  friend bool operator==(const timed_post&, const timed_post&) noexcept = default;
  template <class A>
  void serialize(A& a) {
    a & sender_;
  }

 private:
  remote<function> sender_;
};

namespace detail {

/// Parks the sender of a timed post. Throws stopped if it was cancelled, or the program ends.
void await_turn(std::int64_t deadline_ns);
/// The first turn after this one that is still to come.
[[nodiscard]] std::int64_t next_turn(std::int64_t deadline_ns, time_limit period) noexcept;

template <class Mode>
struct timed_mode {
  struct target {
    typename Mode::target to;
    time_limit delay;
    bool again;
  };

  template <class M, class R, class... P>
  static timed_post invoke(const target& t, P&&... arguments) {
    return timed_post(spawn_here([to = t.to, delay = t.delay, again = t.again,
                                  all = std::tuple<kept_t<P>...>(std::forward<P>(arguments)...)]() mutable {
      std::int64_t next = deadline_after(delay);
      do {
        await_turn(next);
        std::apply([&](auto&... kept) { Mode::template invoke<M, R, P...>(to, given<P>(kept)...); }, all);
        next = next_turn(next, delay);
      } while (again);
    }));
  }

 private:
  // An argument as the method takes it; another time, too.
  template <class P>
  static decltype(auto) given(kept_t<P>& kept) {
    using value = std::remove_cvref_t<P>;
    if constexpr (std::is_lvalue_reference_v<P>) {
      return static_cast<const value&>(kept);
    } else if constexpr (std::is_copy_constructible_v<kept_t<P>> || orrery::is_view<value>) {
      return value(kept);
    } else {
      return std::move(kept);
    }
  }
};

template <class P>
[[nodiscard]] auto timed(const P& p, time_limit d, bool again) {
  auto now = post(p);
  using parts = bound_parts<decltype(now)>;
  using mode = timed_mode<typename parts::mode>;
  return bound_target<mode, typename parts::element>(
      {target_of<typename parts::mode::target>(now.operator->()), d, again});
}
void check_period(time_limit d);

}  // namespace detail

/// `post_after(1s, p)->m(args...)`: as `post(p)->m(args...)`, when that time has passed. p:
/// whatever has a post, a process, element, array, section or group. The arguments are kept until
/// then. Costs a stack meanwhile. Throws stopped, std::bad_alloc.
template <class P>
[[nodiscard]] auto post_after(time_limit delay, const P& p) {
  return detail::timed(p, delay, false);
}
/// The same again and again, each time so much later than the last time was to be; times that pass
/// while the PE is busy are left out. The arguments can be copied. Throws usage_error if the time
/// is not positive.
template <class P>
[[nodiscard]] auto post_every(time_limit period, const P& p) {
  detail::check_period(period);
  return detail::timed(p, period, true);
}

}  // namespace orrery
