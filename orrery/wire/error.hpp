// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/counted_ptr.hpp>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orrery {

/// The kind of an error, as a number that travels between nodes. Each code belongs to one exception
/// class (named in the group's heading) and has one sentence, see `sentence(errc)`. Numbers are
/// part of the wire format: add at the end of a group, never renumber.
enum class errc : std::uint16_t {
  // process_gone, node_lost, deadlock_error, remote_error, stopped, timeout_error, mailbox_full,
  // broken_promise
  process_gone = 1,
  node_lost = 2,
  deadlock = 3,
  remote = 4,
  stopped = 5,
  timeout = 6,
  mailbox_full = 7,
  broken_promise = 8,

  // name_not_found, name_taken
  name_not_found = 16,
  name_taken = 17,

  // bad_message: bytes that came from another node make no sense
  message_truncated = 32,
  message_corrupt = 33,
  message_too_deep = 34,
  message_misaligned = 35,
  unknown_handler = 36,

  // world_error: a world cannot be created or joined
  world_other_build = 48,
  world_other_user = 49,
  world_no_space = 50,
  world_too_large = 51,
  world_exists = 52,
  world_not_found = 53,
  world_no_transport = 54,
  world_bad_setting = 55,

  // bad_remote_cast
  bad_remote_cast = 64,

  // usage_error: the program asked for what cannot be done
  not_in_process = 80,
  not_running = 81,
  already_running = 82,
  null_pointer = 83,
  no_such_place = 84,
  value_too_deep = 85,
  value_changed = 86,
  value_without_state = 87,
  bad_argument = 88,
  method_parked = 89,
};

/// The code's own name, such as "process_gone"; "unknown" for a number that is no code.
[[nodiscard]] std::string_view to_string(errc code) noexcept;

/// One sentence that says what happened and what to do about it, without a full stop.
[[nodiscard]] std::string_view sentence(errc code) noexcept;

/// Marks a constructor that takes the whole text of what(), as it came from another node.
struct verbatim_t {
  explicit verbatim_t() = default;
};
inline constexpr verbatim_t verbatim{};

/// The base of every exception that Orrery itself throws. what() is "<about>: <sentence>", where
/// `about` says which call, process, name or setting it was. Thrown by nearly every public call;
/// catch it to handle all failures of the runtime at once.
class error : public std::runtime_error {
 public:
  /// what() will be "<about>: <sentence(code)>", or the sentence alone when `about` is empty. For
  /// bad_argument, whose sentence says little, `about` alone: it says what is wrong and what to do.
  explicit error(errc code, std::string_view about = {});
  error(errc code, verbatim_t, const std::string& what) : std::runtime_error(what), code_(code) {}
  error(const error&) noexcept = default;
  error& operator=(const error&) noexcept = default;
  ~error() override;  // out of line: one vtable for the whole program

  /// The number of the error, for switches.
  [[nodiscard]] errc code() const noexcept { return code_; }

 private:
  errc code_;
};

/// A call reached a process that was destroyed. Thrown by calls and by future::get().
class process_gone final : public error {
 public:
  explicit process_gone(std::string_view about = {}) : error(errc::process_gone, about) {}
  process_gone(verbatim_t v, const std::string& what) : error(errc::process_gone, v, what) {}
};

/// The node of the callee crashed or left before it answered. Thrown by calls and future::get().
class node_lost final : public error {
 public:
  explicit node_lost(std::string_view about = {}) : error(errc::node_lost, about) {}
  node_lost(verbatim_t v, const std::string& what) : error(errc::node_lost, v, what) {}
};

/// Waiting would never end; `about` prints the cycle. Thrown by calls, future::get() and run().
class deadlock_error final : public error {
 public:
  explicit deadlock_error(std::string_view about = {}) : error(errc::deadlock, about) {}
  deadlock_error(verbatim_t v, const std::string& what) : error(errc::deadlock, v, what) {}
};

/// The runtime is shutting down. Thrown by whatever was waiting or would have to wait.
class stopped final : public error {
 public:
  explicit stopped(std::string_view about = {}) : error(errc::stopped, about) {}
  stopped(verbatim_t v, const std::string& what) : error(errc::stopped, v, what) {}
};

/// A wait with a time limit ran into it. Thrown by await_name(), future::get(timeout) and so on.
class timeout_error final : public error {
 public:
  explicit timeout_error(std::string_view about = {}) : error(errc::timeout, about) {}
  timeout_error(verbatim_t v, const std::string& what) : error(errc::timeout, v, what) {}
};

/// The destination has no room and the caller asked not to wait for it. Thrown by try_ calls.
class mailbox_full final : public error {
 public:
  explicit mailbox_full(std::string_view about = {}) : error(errc::mailbox_full, about) {}
  mailbox_full(verbatim_t v, const std::string& what) : error(errc::mailbox_full, v, what) {}
};

/// A promise ended, mostly with the process that had it, and nobody had kept it. Thrown by calls
/// and future::get().
class broken_promise final : public error {
 public:
  explicit broken_promise(std::string_view about = {}) : error(errc::broken_promise, about) {}
  broken_promise(verbatim_t v, const std::string& what) : error(errc::broken_promise, v, what) {}
};

/// Nothing is published under the name. Thrown by lookup().
class name_not_found final : public error {
 public:
  explicit name_not_found(std::string_view about = {}) : error(errc::name_not_found, about) {}
  name_not_found(verbatim_t v, const std::string& what) : error(errc::name_not_found, v, what) {}
};

/// Another process is published under the name. Thrown by publish().
class name_taken final : public error {
 public:
  explicit name_taken(std::string_view about = {}) : error(errc::name_taken, about) {}
  name_taken(verbatim_t v, const std::string& what) : error(errc::name_taken, v, what) {}
};

/// Bytes that arrived are not the message they claim to be. Thrown by `reader` and everything that
/// reads; nothing outside the message has been touched, what was read so far is to be discarded.
class bad_message final : public error {
 public:
  explicit bad_message(errc code = errc::message_corrupt, std::string_view about = {}) : error(code, about) {}
  bad_message(errc code, verbatim_t v, const std::string& what) : error(code, v, what) {}
};

/// A world cannot be created or joined. Thrown by run() and join() before anything was started.
class world_error final : public error {
 public:
  explicit world_error(errc code, std::string_view about = {}) : error(code, about) {}
  world_error(errc code, verbatim_t v, const std::string& what) : error(code, v, what) {}
};

/// The process is not of the class that was asked for. Thrown by remote_cast().
class bad_remote_cast final : public error {
 public:
  explicit bad_remote_cast(std::string_view about = {}) : error(errc::bad_remote_cast, about) {}
  bad_remote_cast(verbatim_t v, const std::string& what) : error(errc::bad_remote_cast, v, what) {}
};

/// The program asked for what cannot be done, such as a call from outside the runtime.
class usage_error final : public error {
 public:
  explicit usage_error(errc code, std::string_view about = {}) : error(code, about) {}
  usage_error(errc code, verbatim_t v, const std::string& what) : error(code, v, what) {}
};

/// Where a method ran that threw.
struct where {
  std::string class_name;
  std::string method;
  std::uint32_t pe = 0;

  friend bool operator==(const where&, const where&) = default;
};

/// A method threw something that has no standard counterpart here. what() names the method, the PE,
/// the type and its text: "Device::read on PE 3 threw my_error: disk on fire". Thrown by calls and
/// by future::get(). Copies share their text, so copying does not throw.
class remote_error final : public error {
 public:
  /// `type` is the thrown class as it was called there, `text` its what() (may be empty).
  remote_error(where at, std::string type, std::string text);

  /// The class of the method, as C++ writes it.
  [[nodiscard]] const std::string& class_name() const noexcept { return parts_->at.class_name; }
  /// The method that threw.
  [[nodiscard]] const std::string& method() const noexcept { return parts_->at.method; }
  /// The PE on which it ran.
  [[nodiscard]] std::uint32_t pe() const noexcept { return parts_->at.pe; }
  /// Class, method and PE at once.
  [[nodiscard]] const where& at() const noexcept { return parts_->at; }
  /// The class of the exception, as it is called there.
  [[nodiscard]] const std::string& type() const noexcept { return parts_->type; }
  /// The what() of the exception that was thrown there; what() says that and the place.
  [[nodiscard]] const std::string& text() const noexcept { return parts_->text; }

 private:
  struct parts : wire::counted {
    parts(where a, std::string t, std::string x) : at(std::move(a)), type(std::move(t)), text(std::move(x)) {}
    where at;
    std::string type;
    std::string text;
  };

  wire::counted_ptr<const parts> parts_;
};

/// Throws the class that `code` belongs to. For the layers that carry codes in std::expected.
[[noreturn]] void throw_error(errc code, std::string_view about = {});

/// The same as an exception_ptr, without throwing.
[[nodiscard]] std::exception_ptr make_error(errc code, std::string_view about = {});

/// An exception of the class that `code` belongs to, whose what() is `what` as it stands; null if
/// the number is no code or names remote_error, which has no such form.
[[nodiscard]] std::exception_ptr make_error(errc code, verbatim_t, const std::string& what);

}  // namespace orrery
