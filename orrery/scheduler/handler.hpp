// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

namespace orrery {
struct address;
struct where;
}  // namespace orrery

namespace orrery::scheduler {

class pe;
struct slot;
struct delivery;
}  // namespace orrery::scheduler
namespace orrery::wire {
struct envelope;
class type_description;
}  // namespace orrery::wire
namespace orrery::scheduler {

/// The runtime's knowledge of a class whose objects are processes. One static object for each
/// class; it numbers itself before main.
struct class_info {
  struct base {
    const class_info& (*info)();
    void* (*cast)(void* derived);
  };
  class_info(std::string_view name, void (*destroy)(void*), std::span<const base> bases, bool reentrant) noexcept;
  class_info(const class_info&) = delete;
  class_info& operator=(const class_info&) = delete;

  std::string_view name;
  void (*destroy)(void* object);  ///< runs the destructor and frees the object
  std::span<const base> bases;
  bool reentrant;  ///< takes messages while a method of it is parked
  std::uint32_t number;  ///< in class_table; not the same in all programs
};

/// All classes by their numbers; at 0 is null. A slot has room for a number, not for a pointer.
inline constexpr std::size_t max_classes = 1 << 16;
extern const class_info* class_table[max_classes];

/// The `to` part of an object of class `from`, or null if `to` is neither that class nor a base of
/// it.
[[nodiscard]] void* cast_object(const class_info& from, void* object, const class_info& to) noexcept;

class pe;
struct delivery;
struct message;
struct slot;

/// Finds and fails the caller of a message whose reply address lies in its payload.
struct hidden_caller {
  struct name {
    std::uint32_t pe = 0;
    std::uint64_t call = 0;  ///< 0: nobody waits
  };
  name (*of)(const message&) noexcept;  ///< null: as usual, in the envelope
  /// Ends the message, which was taken out of the mailbox of this process, and tells who waits.
  void (*fail)(pe&, slot&, delivery&, std::exception_ptr) noexcept;
};

/// Takes a message back whose receiver's program has no handler for it.
struct unknown_message {
  std::exception_ptr why;  ///< names the method and both programs
  std::uint32_t slot;  ///< in its envelope
};

struct handler;

/// A `handler::lost` for messages that nobody misses where their process or its node is gone: they
/// are no failed posts. One that the receiver's program does not know is reported.
[[nodiscard]] bool nobody_misses(pe&, const handler&, std::span<const std::byte>, std::uint32_t,
                                 const unknown_message* unknown) noexcept;

/// How a message is executed: one static object for each method and signature, remote function or
/// message type. It registers itself before main; `freeze_handlers` then gives each a number. A
/// node that joins a world takes numbers that hold in all of it instead.
struct handler {
  handler(std::string_view class_name, std::string_view method, std::string_view signature,
          void (*run)(pe&, slot&, delivery&), void (*relocate)(void*, void*), void (*drop)(void*),
          std::uint32_t payload, bool views, void (*describe)(wire::type_description&) = nullptr,
          std::string_view object = {}, void (*through_wire)(pe&, slot&, delivery&) = nullptr,
          decltype(&nobody_misses) lost = nullptr) noexcept;
  handler(const handler&) = delete;
  handler& operator=(const handler&) = delete;

  std::string_view class_name;
  std::string_view method;
  /// Tells the handlers of one program apart: a wire::type_key(). A text that is none does so
  /// together with class and method.
  std::string_view signature;
  /// Executes the message at the process. Calls delivery::release once, before user code runs
  /// unless the arguments are read in place. Lets no exception out.
  void (*run)(pe&, slot&, delivery&);
  /// Moves an owned payload to other memory and ends the old one.
  void (*relocate)(void* to, void* from);
  /// Ends an owned payload that will not be executed.
  void (*drop)(void* payload);
  std::uint32_t payload_bytes;  ///< of the owned form
  bool views;  ///< reads arguments in place: the message must outlive the method
  /// Describes the types of the arguments and of the result; null: there are none that a program
  /// has made.
  void (*describe)(wire::type_description&);
  /// The wire::type_key() of a class that has only one method of this name; empty: there may be
  /// handlers with other arguments.
  std::string_view object;
  /// Not null: the message is not for the slot in its envelope; this finds the process for it, on
  /// the PE that has received it and between methods, so that it must not park or throw. Null is
  /// returned for a message that was dealt with: released, or taken out by delivery::detach.
  slot* (*route)(pe&, delivery&, const wire::envelope&, std::uint32_t bytes) = nullptr;
  /// Not null: told of each message that was on its way to a node when that was lost, or (`unknown`
  /// is not null) that its program does not know. Between methods, so that it must not park. False
  /// if that is to be reported as any one-way message that failed; else nobody misses it, or who
  /// waits for its answer was told.
  bool (*lost)(pe&, const handler&, std::span<const std::byte> payload, std::uint32_t to,
               const unknown_message* unknown) noexcept = nullptr;
  /// Not null: who waits for the answer stands in the payload, not in the envelope (while the
  /// message runs: in its delivery).
  const hidden_caller* caller = nullptr;
  /// As `run`, with which send_through_wire() exchanges it: the arguments of a message from this
  /// node are written and read first, and so is its result. Null: they are so anyhow, or cannot be.
  void (*through_wire)(pe&, slot&, delivery&);
  std::uint32_t index = 0;  ///< names it in messages to other nodes; valid after freeze_handlers
  std::uint64_t hash = 0;  ///< of the signature; the same from all compilers
  handler* next = nullptr;
};

/// Why a message for `to` cannot be delivered: process_gone, or usage_error if it is the null
/// address.
[[nodiscard]] std::exception_ptr gone_error(const handler& method, const address& to);

/// Nothing was sent to that PE, whose node is lost.
[[noreturn, gnu::cold]] void throw_not_sent(std::uint32_t pe);

/// The place that a remote_error names: the method (null: unknown) on that PE.
[[nodiscard]] where where_is(const handler* method, std::uint32_t pe);

/// Sorts and numbers the handlers of this program. Called before any PE runs.
void freeze_handlers();

/// The handlers of this program, sorted by hash. Valid after freeze_handlers.
[[nodiscard]] std::span<const handler* const> own_handlers() noexcept;

/// Gives each of own_handlers() the number that it has in the world; empty: its place there. Called
/// before any PE runs.
void number_handlers(std::span<const std::uint32_t> numbers);

/// True while messages inside this node take the form that they have between nodes, to find
/// mistakes that only nodes would show.
extern constinit bool through_wire;
/// Sets it for this OS process. Called before any PE runs. Off, it costs calls nothing: handlers
/// have another `run` while it is on.
void send_through_wire(bool on) noexcept;

/// The handlers by their numbers; null where a number belongs to other programs of the world. Valid
/// after freeze_handlers.
[[nodiscard]] std::span<const handler* const> handler_table() noexcept;

/// The handler of that number; null: this program does not have it.
[[nodiscard]] const handler* find_handler(std::uint64_t number) noexcept;

}  // namespace orrery::scheduler
