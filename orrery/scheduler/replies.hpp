// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/call_table.hpp>
#include <orrery/scheduler/sink.hpp>
#include <orrery/wire/envelope.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>

namespace orrery::scheduler {

struct handler;
struct inbound;
class pe;

// How a callee answers. Inside a node `reply` is the address of the sink, in whose storage the
// result is constructed; for another node it is the number that replies::expect gave there, and the
// result is sent (outgoing::send_reply in the process layer).

/// The result was constructed in the sink's storage (a caller on this node): tells the caller.
/// Never parks. Throws node_lost, world_error.
void reply_in_place(pe& self, std::uint64_t reply, std::uint32_t source_pe);
/// The same with a result of sink::small bytes for a caller on another PE of this node: it travels
/// in the record, so that no line of the caller's stack has to.
void reply_small(pe& self, std::uint64_t reply, std::uint32_t source_pe, const std::byte (&result)[wire::small_result]);
/// The call ended with an exception: the caller gets what as_received() makes of it. Never parks.
void reply_error(pe& self, std::uint64_t reply, std::uint32_t source_pe, bool remote, const handler* method,
                 std::exception_ptr why) noexcept;

/// The answers that come to a PE, and the calls to other nodes that wait for theirs.
///
/// Problem: a call must end, with its result, an exception or a failure, whatever becomes of the
/// node that was called. So the sink of a call to another node is registered when nothing can park
/// or throw any more, and this table alone ends it: when the answer comes, when the node is lost,
/// or when the runtime shuts down.
///
/// Owned by its PE, used on its thread. Invariant: sink::entry is 0, or the number under which the
/// sink is registered here.
class replies {
 public:
  explicit replies(pe& of) noexcept : of_(of) {}
  replies(const replies&) = delete;
  replies& operator=(const replies&) = delete;

  /// Registers a sink until its answer comes, and gives it a number. Throws stopped, world_error,
  /// std::bad_alloc.
  [[nodiscard]] std::uint32_t expect(sink& s);
  /// An answer has come: a result or a failure.
  void receive(inbound& in, const wire::envelope& e, std::uint32_t bytes);
  /// The call ends with an error that a record from that PE is about. False: no such call waits,
  /// and the PE is reported.
  bool end(std::uint32_t entry, const inbound& in, std::exception_ptr why);
  /// Ends the calls to PEs that are not reachable.
  void fail_unreachable();
  /// The runtime shuts down: ends all calls.
  void cancel();

 private:
  /// The sink of an answer that PE `from` has sent; null if it waits for none of that PE.
  sink* take(std::uint32_t entry, std::uint32_t from) noexcept;
  /// The same; the PE is reported if there is none.
  sink* take_or_report(std::uint32_t entry, const inbound& in) noexcept;
  void fail(sink& s, std::exception_ptr why);

  pe& of_;
  call_table<std::uint32_t, 22> calls_;
};

}  // namespace orrery::scheduler
