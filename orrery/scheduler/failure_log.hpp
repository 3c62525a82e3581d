// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <exception>
#include <string_view>

namespace orrery::scheduler {

struct outbound;
class pe;

/// The failures on a PE that nobody waits for.
///
/// Problem: a one-way message that fails has no caller to tell. It must not vanish silently, and a
/// program that posts in a loop to a lost node must not fill the log. A message that fails because
/// the program ends is no failure. So each failure is counted, and said in a line on stderr; of the
/// messages of one method to one lost node, or to one process that has ended, the first is said at
/// once, and how many followed when the PE ends. Messages that were on their way when a node was
/// lost go to the handlers that want to know (handler::lost); the others are counted, and said in
/// one line for each PE.
///
/// Owned by the PE, used on its thread. No function parks or throws.
class failure_log {
 public:
  explicit failure_log(pe& of);
  ~failure_log();
  failure_log(const failure_log&) = delete;
  failure_log& operator=(const failure_log&) = delete;

  /// A one-way message failed; `method` is null for a process function.
  void report_post(const handler* method, std::exception_ptr why) noexcept;
  /// Something else that nobody waits for failed: where it went wrong, or all there is to say, and
  /// how if that is not null. Counted as posts are.
  void report(std::string_view where, std::exception_ptr why) noexcept;
  /// A one-way message was not sent, as the node of PE `to` is lost.
  void report_unsent(const handler& method, std::uint32_t to, std::exception_ptr why) noexcept;
  /// How many followed those that report_unsent() has said. When the PE ends.
  void report_more_unsent() noexcept;

  /// The outbound ring's node is lost: finds what was on the way there. Their handlers are told
  /// later.
  void note_lost(const outbound& c) noexcept;
  /// Tells handlers of the messages that note_lost() has kept. When all outbound rings to lost
  /// nodes are closed: a handler may send others.
  void tell_of_lost() noexcept;
  /// `count` posts were on the way to PE `to` when its node was lost: one line, not counted.
  void say_lost(std::uint32_t to, std::uint64_t count) const noexcept;

 private:
  struct kept_posts;
  [[nodiscard]] bool is_quiet() const noexcept;
  void count_lost(std::uint32_t to, std::uint64_t count) noexcept;

  pe& of_;
  const wire::unique_ptr<kept_posts> kept_;
};

}  // namespace orrery::scheduler
