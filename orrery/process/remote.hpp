// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/process/detail/method.hpp>
#include <orrery/wire/address.hpp>

#include <compare>
#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <new>
#include <string>

namespace orrery {
namespace detail {

/// Renames an address in the state of an object after a restart; see references.
[[nodiscard]] address renamed(const references& r, const address& before) noexcept;
/// `a` has just read `x`.
template <class A, class X>
void rename_after_restart(const A& a, X& x) {
  if constexpr (requires { a.references(); })
    if (const references* r = a.references(); r != nullptr) [[unlikely]]
      x = renamed(*r, x);
}

}  // namespace detail

/// A process of class T (or derived from T) anywhere in the world: a small value to be copied,
/// stored and sent. It owns nothing; what it names may be gone, and then calls through it throw
/// process_gone.
///
/// `p->m(args...)` is a sequential call: it returns when the method has finished there, with its
/// result or its exception. `start(p)->m(args...)` returns a future at once, `post(p)->m(args...)`
/// is one way, and `try_post` is a post that returns false where a post would have to wait. A
/// result that the method returns by reference arrives as a value.
///
/// Calls are made inside processes and may park the caller. They throw what the method throws,
/// process_gone, node_lost, deadlock_error, bad_message and stopped. (Givelberg 2014, sections 3.1
/// and 3.2.)
template <class T>
class remote {
 public:
  using element_type = T;
  static constexpr bool known_shape = true;  ///< see wire::type_description

  constexpr remote() noexcept = default;
  constexpr explicit remote(orrery::address a) noexcept : address_(a) {}
  /// A derived class is as good as its base.
  template <class U>
    requires(!std::same_as<U, T> && std::convertible_to<U*, T*>)
  constexpr remote(const remote<U>& p) noexcept : address_(p.address()) {}  // NOLINT(google-explicit-constructor)

  /// Where the process lies. Does not park.
  [[nodiscard]] constexpr const orrery::address& address() const noexcept { return address_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return static_cast<bool>(address_); }
  [[nodiscard]] const auto* operator->() const noexcept {
    static_assert(
        detail::is_described<T>,
        "orrery: this class has no ORRERY_PROCESS(Class, methods...) line before this use; if its own methods use it, put the line "
        "before the class, behind a forward declaration");
    return detail::view_as<detail::call_mode, T>(address_);
  }

  friend constexpr bool operator==(const remote&, const remote&) noexcept = default;
  friend constexpr auto operator<=>(const remote&, const remote&) noexcept = default;
  template <class A>
  void serialize(A& a) {
    a & address_;
    detail::rename_after_restart(a, address_);
  }

 private:
  orrery::address address_;
};

/// As errors write it: "3.17#2", or "null". Throws std::bad_alloc only.
template <class T>
[[nodiscard]] std::string to_string(const remote<T>& p) {
  return to_string(p.address());
}
template <class Traits, class T>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const remote<T>& p) {
  return out << to_string(p);
}

namespace detail {

/// The result of start(p), post(p) and try_post(p): the same methods, called in another mode. Used
/// at once, in the same expression.
template <class Mode, class T>
class bound {
 public:
  explicit bound(orrery::address a) noexcept : address_(a) {}
  [[nodiscard]] const auto* operator->() const noexcept {
    static_assert(
        detail::is_described<T>,
        "orrery: this class has no ORRERY_PROCESS(Class, methods...) line before this use; if its own methods use it, put the line "
        "before the class, behind a forward declaration");
    return view_as<Mode, T>(address_);
  }

 private:
  orrery::address address_;
};

}  // namespace detail

/// `start(p)->m(args...)`: begins the call and returns a future of its result. Parks only while the
/// destination is full.
template <class T>
[[nodiscard]] detail::bound<detail::start_mode, T> start(const remote<T>& p) noexcept {
  return detail::bound<detail::start_mode, T>(p.address());
}

/// `post(p)->m(args...)`: a one-way message. Parks while the destination is full, and for a moment
/// after each ring full of messages to other PEs, to hear whether it is. A failure is reported and
/// counted on the PE where it happens; the loss of the receiver's node is reported here.
template <class T>
[[nodiscard]] detail::bound<detail::post_mode, T> post(const remote<T>& p) noexcept {
  return detail::bound<detail::post_mode, T>(p.address());
}

/// `try_post(p)->m(args...)`: as post, but returns false, having sent nothing, where a post would
/// have to wait.
template <class T>
[[nodiscard]] detail::bound<detail::try_post_mode, T> try_post(const remote<T>& p) noexcept {
  return detail::bound<detail::try_post_mode, T>(p.address());
}

}  // namespace orrery

template <class T>
struct std::hash<orrery::remote<T>> {
  [[nodiscard]] std::size_t operator()(const orrery::remote<T>& p) const noexcept {
    return std::hash<orrery::address>{}(p.address());
  }
};
