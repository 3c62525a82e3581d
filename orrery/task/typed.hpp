// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/process/function.hpp>
#include <orrery/process/placement.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/process/time_limit.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// Messages of tasks as values of C++.
//
// Problem: a message of C is a structure with pointers, which C++ would have to fill, to free and
// to trust. So orrery-cc makes a class of C++ for each message, with strings and vectors that own
// what they have, and functions that convert it; a tag knows the class that it carries. A message
// of another type than the tag carries does not compile. A value travels in the same form as a
// structure of C, so that either side can be in either language.
//
//     orrery_task station = task_of(orrery::lookup<orrery::function>("Oslo"));
//     send(station, weather::Station::SUBSCRIBE, {.client = orrery_self()});
//     weather::Reading r = receive().open<weather::Reading>();
namespace orrery::tasks {

/// A class that `orrery-cc --emit-cpp-header` has made of a message.
template <class M>
concept message = requires {
  typename M::orrery_c;
  { M::orrery_type() } -> std::same_as<const orrery_message_type&>;
};

/// A tag of a task, and the message that it carries; void: none.
template <class M>
struct tag {
  std::uint64_t number;
};

/// The process as C names it.
template <class T>
[[nodiscard]] constexpr orrery_task task_of(const remote<T>& p) noexcept {
  return {p.address().pe, p.address().slot, p.address().generation};
}
/// A task of C, or a function of C++, as C++ names it.
[[nodiscard]] constexpr remote<function> remote_of(const orrery_task& t) noexcept {
  return remote<function>(address{t.pe, t.slot, t.generation});
}
[[nodiscard]] constexpr orrery_place place_of(const placement& p) noexcept {
  return {static_cast<std::uint32_t>(p.what), p.index};
}

/// A message that was received. It owns the message's memory, and lives in the process that has
/// received it. Moved, not copied.
class mail {
 public:
  /// Takes over a message that orrery_receive has got.
  explicit mail(const orrery_message& received) noexcept : m_(received) {}
  mail(mail&& o) noexcept : m_(std::exchange(o.m_, orrery_message{})), opened_(o.opened_) {}
  mail& operator=(mail&& o) noexcept {
    mail old(std::move(*this));
    m_ = std::exchange(o.m_, orrery_message{});
    opened_ = o.opened_;
    return *this;
  }
  ~mail() { orrery_release(&m_); }

  /// The tag, as its sender gave it.
  [[nodiscard]] std::uint64_t tag() const noexcept { return m_.tag; }
  /// The task that has sent the message.
  [[nodiscard]] orrery_task sender() const noexcept { return m_.sender; }
  /// The content of a message without a type (orrery_send_bytes).
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(m_.data), m_.size};
  }
  /// True if the message has this tag.
  template <class M>
  [[nodiscard]] bool has(tasks::tag<M> t) const noexcept {
    return m_.tag == t.number;
  }
  /// The message, whose buffers are the caller's then. Throws bad_message if it is of another type
  /// or makes no sense, usage_error if it was opened before.
  template <message M>
  [[nodiscard]] M open() {
    M value;
    M::orrery_read(*static_cast<typename M::orrery_c*>(open_as(M::orrery_type())), value);
    return value;
  }

  /// For a message whose tag carries none. Throws bad_message if it has a type.
  void expect_none() const;

 private:
  void* open_as(const orrery_message_type& type);

  orrery_message m_;
  bool opened_ = false;
};

namespace detail {

/// False: the receiver has no room, and `may_wait` is false.
bool send(const orrery_task& to, std::uint64_t tag, const orrery_message_type* type, const void* value, bool may_wait);

template <message M>
inline constexpr bool has_buffers = requires(M& m) { M::orrery_sent(m); };

template <message M>
bool send_value(const orrery_task& to, std::uint64_t tag, const M& value, bool may_wait) {
  std::byte first[1024];
  std::pmr::monotonic_buffer_resource memory(first, sizeof first);
  typename M::orrery_c c;
  M::orrery_write(value, c, memory);
  return send(to, tag, &M::orrery_type(), &c, may_wait);
}
template <message M>
bool pass_on(const orrery_task& to, std::uint64_t tag, M& value, bool may_wait) {
  if (!send_value(to, tag, value, may_wait)) return false;
  M::orrery_sent(value);
  return true;
}

}  // namespace detail

/// Sends a copy to a task of C, a function or a receiver of C++. Messages of one sender arrive in
/// the order sent. Parks while the receiver has no room. Throws process_gone if it is known to have
/// ended, node_lost, usage_error (a null task; arrays of different lengths with one count),
/// std::bad_alloc, stopped.
template <message M>
  requires(!detail::has_buffers<M>)
void send(const orrery_task& to, tag<M> t, const std::type_identity_t<M>& value) {
  (void)detail::send_value(to, t.number, value, true);
}
/// The same for a message with buffers, which are passed on: the value has none afterwards. If it
/// throws they stay the caller's.
template <message M>
  requires detail::has_buffers<M>
void send(const orrery_task& to, tag<M> t, std::type_identity_t<M>&& value) {
  (void)detail::pass_on(to, t.number, value, true);
}
inline void send(const orrery_task& to, tag<void> t) { (void)detail::send(to, t.number, nullptr, nullptr, true); }

/// As send, but returns false, having sent nothing, where send would have to wait. Yield before you
/// try again: the receiver, or what gives memory back, may need this PE.
template <message M>
  requires(!detail::has_buffers<M>)
[[nodiscard]] bool try_send(const orrery_task& to, tag<M> t, const std::type_identity_t<M>& value) {
  return detail::send_value(to, t.number, value, false);
}
template <message M>
  requires detail::has_buffers<M>
[[nodiscard]] bool try_send(const orrery_task& to, tag<M> t, std::type_identity_t<M>&& value) {
  return detail::pass_on(to, t.number, value, false);
}
[[nodiscard]] inline bool try_send(const orrery_task& to, tag<void> t) {
  return detail::send(to, t.number, nullptr, nullptr, false);
}

/// Waits for the oldest message of a task in the mailbox of the calling function process. Messages
/// of C++ (orrery::send) wait on. Throws stopped when the process is to end: let it pass, so that
/// the stack unwinds; usage_error in a method.
[[nodiscard]] mail receive();
/// As receive, but nothing after `d`.
[[nodiscard]] std::optional<mail> receive_for(time_limit d);
/// Waits for the oldest message with that tag, and opens it.
[[nodiscard]] mail receive_tag(std::uint64_t number);
template <message M>
[[nodiscard]] M receive(tag<M> t) {
  return receive_tag(t.number).template open<M>();
}
inline void receive(tag<void> t) { receive_tag(t.number).expect_none(); }

/// For generated code: the length of an array as the member that counts it has it. Throws
/// usage_error if that is too small, or others have another length.
template <class Count>
void set_count(Count& count, std::size_t length, bool first, std::string_view array);
[[noreturn]] void wrong_count(std::size_t length, std::uint64_t other, std::string_view array);

namespace detail {

// The number that a count of C is; an enumeration of C may have any.
template <class Count>
struct number_of {
  using type = Count;
};
template <class Count>
  requires std::is_enum_v<Count>
struct number_of<Count> {
  using type = std::underlying_type_t<Count>;
};

}  // namespace detail

/// For generated code: the `count_signed` of an orrery_field.
template <class Count>
inline constexpr bool is_signed_count = std::is_signed_v<typename detail::number_of<Count>::type>;

template <class Count>
void set_count(Count& count, std::size_t length, bool first, std::string_view array) {
  typename detail::number_of<Count>::type number{};
  if (first) {
    number = static_cast<decltype(number)>(length);
    std::memcpy(&count, &number, sizeof number);
  }
  std::memcpy(&number, &count, sizeof number);
  if (static_cast<std::size_t>(number) != length) wrong_count(length, static_cast<std::uint64_t>(number), array);
}

/// For generated code: a text as C has it, which ends at its first byte 0. Throws usage_error if
/// there is one within it.
[[nodiscard]] char* text_of(const std::optional<std::string>& text, std::string_view member);
/// For generated code: an array as C has it.
template <class C>
[[nodiscard]] C* array_in(std::pmr::memory_resource& memory, std::size_t length) {
  return length == 0 ? nullptr : static_cast<C*>(memory.allocate(length * sizeof(C), alignof(C)));
}

}  // namespace orrery::tasks
