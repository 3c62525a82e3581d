// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/message.hpp>
#include <orrery/task/internal/buffer.hpp>
#include <orrery/wire/address.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::scheduler {
class pe;
struct slot;
}  // namespace orrery::scheduler

// Messages of tasks on their way.
//
// Problem: a message of C is bytes that mean the same everywhere, and typed handlers would copy
// them into a C++ object first, and box that. So these messages have one handler of their own.
// Their payload is a `mail_head` and then the bytes, written by the sender straight into the
// mailbox (own PE), the ring (other PEs) or a block (other nodes). A large message goes to other
// PEs of the node as a pointer, `large_mail`. The receiver reads the bytes where they lie: what it
// takes is the scheduler's message.
namespace orrery::task_detail {

struct mail_head {
  std::uint64_t tag;
  std::uint64_t type;
  address sender;
  std::uint32_t buffers;  ///< how many it passes on
};
static_assert(sizeof(mail_head) == 32);

/// A buffer in a message: its memory, or, when the message is open, its number in the receiver's
/// buffer_table.
struct mailed_buffer {
  buffer_memory memory;
  std::uint64_t id = 0;
};

/// The owned form: between PEs of one node, and of what has buffers.
struct large_mail {
  mail_head head;
  wire::unique_ptr<std::byte[]> bytes;
  std::size_t size;
  std::vector<mailed_buffer> buffers;
};

/// Writes the bytes of a message to where they travel. Must not park or throw.
class mail_writer {
 public:
  virtual void write(std::byte* to) const noexcept = 0;

 protected:
  ~mail_writer() = default;
};

extern const scheduler::handler mail_handler;

enum class sent : std::uint8_t { yes, full, gone };
/// Sends a message of `bytes` bytes. Parks while there is no room if it `may_wait`, else returns
/// `full` then. Throws node_lost, usage_error (too large), std::bad_alloc, stopped; then nothing
/// was sent.
sent send_mail(scheduler::pe& self, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer,
               bool may_wait);

/// Puts a message that is sent once, and for which nobody can wait, into a mailbox of this PE,
/// whatever room that has. Nothing if the process has ended. Throws std::bad_alloc.
void put_mail(scheduler::pe& self, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer);

/// As send_mail, of a message that passes on buffers of the caller, at least one. They are the
/// receiver's if it returns `yes`, else they stay the caller's. Throws usage_error also for a
/// buffer that the caller does not have (any more).
sent send_mail(scheduler::pe& self, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer,
               bool may_wait, std::span<const orrery_buffer> buffers);
/// A message from another node that has buffers: in the owned form, with the first buffer where it
/// lies if it is the only one. It is made of `m`, which is to be released as memory only. Null: it
/// makes no sense. Throws std::bad_alloc.
[[nodiscard]] scheduler::message* with_buffers_apart(scheduler::pe& self, scheduler::message& m);

/// The parts of a received message.
struct mail_view {
  const mail_head* head = nullptr;
  std::byte* bytes = nullptr;
  std::size_t size = 0;
  std::span<mailed_buffer> buffers;
};
[[nodiscard]] mail_view view_of(scheduler::message& m) noexcept;

/// The oldest message of a task in the mailbox of the calling process, or the oldest with this tag;
/// null: there is none. With `take` it is the caller's, who gives it to release_mail. Throws
/// `stopped` if the process was asked to end.
[[nodiscard]] scheduler::message* find_mail(scheduler::pe& self, scheduler::slot& s, const std::uint64_t* tag,
                                            bool take);
void release_mail(scheduler::pe& self, scheduler::message& m) noexcept;

/// A message that a process is given to run is the caller's from now on, who gives it to
/// release_mail. Throws bad_message, std::bad_alloc.
[[nodiscard]] scheduler::message* take_delivered(scheduler::pe& self, scheduler::delivery& d);
/// How the message runs at a process that is no function: it is given to the object if that is a
/// tasks::receiver, else it fails.
void give_to_object(scheduler::pe& self, scheduler::slot& s, scheduler::delivery& d);

}  // namespace orrery::task_detail
