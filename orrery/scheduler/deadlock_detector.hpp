// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/slot.hpp>
#include <orrery/wire/address.hpp>
#include <orrery/wire/envelope.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::scheduler {

struct inbound;
class pe;
struct sink;

/// The part of a PE that finds cycles of processes that wait for each other, in calls and for room
/// in full mailboxes.
///
/// Problem: A calls B, B calls C, C calls A; A runs one method at a time, so nobody will ever
/// answer. To carry the chain of callers with every call would cost every call. So nothing is
/// carried: a process that a call reaches while it waits itself is a suspect, and when its PE has
/// had nothing to do for a while, a probe follows the waits from there. deadlock_detector.cpp says
/// how, and why a cycle is found if, and only if, there is one.
///
/// Owned by the PE, used on its thread. Nothing here parks.
class deadlock_detector {
 public:
  explicit deadlock_detector(pe& of) noexcept : of_(of) {}
  deadlock_detector(const deadlock_detector&) = delete;
  deadlock_detector& operator=(const deadlock_detector&) = delete;

  /// Somebody waits for a process that is in the middle of a method: if that one waits too, there
  /// may be a cycle. Not if it is `suspected`.
  void suspect(slot& s);
  /// The same for a call that the layer above has led to `s`, which is to be in its mailbox next.
  void suspect_if_waiting(slot& s) {
    if (s.state == process_state::running && !s.suspected) [[unlikely]]
      suspect(s);
  }
  [[nodiscard]] bool has_suspects() const noexcept { return !suspects_.empty(); }
  /// Sends probes from all suspects. True if something can run now.
  bool chase_suspects();

  /// A remote function or a constructor waits for a call: its callers know the PE only, so it is
  /// looked for among these.
  void begin_nameless_wait(slot& s) { nameless_waits_.push_back(&s); }
  void end_nameless_wait(slot& s) noexcept;

  /// A probe has come from another PE.
  void receive(inbound& in, const wire::envelope& e, std::uint32_t bytes);
  /// Goes on with what has followed a call (call_route::follow) at the process that it went to.
  /// Throws bad_message.
  void follow(std::span<const std::byte> from, slot& at);

 private:
  struct wait_probe;
  void chase(wait_probe& p, bool first);
  [[nodiscard]] slot* find_followed(wait_probe& p);
  [[nodiscard]] bool still_stops(const wait_probe& p, slot& s);
  [[nodiscard]] bool decide(wait_probe& p);
  void add_steps(wait_probe& p, const slot& s, const fiber& f);
  bool follow_wait(wait_probe& p, const sink& w);
  bool follow_call(wait_probe& p, const sink& w);
  void send(std::uint32_t to, const wait_probe& p);
  void fail_victim(const wait_probe& p);
  void raise(const address& full);
  static bool read(wait_probe& p, std::span<const std::byte> from) noexcept;

  pe& of_;
  std::vector<address> suspects_;
  std::vector<slot*> nameless_waits_;
};

}  // namespace orrery::scheduler
