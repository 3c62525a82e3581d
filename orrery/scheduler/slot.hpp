// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/message.hpp>

#include <cstdint>

namespace orrery::scheduler {

struct activation;
struct fiber;

/// What a process is doing. The order matters: `idle` and `receiving` are the states in which a message makes it runnable.
enum class process_state : std::uint8_t {
  idle,  ///< an object with an empty mailbox
  receiving,  ///< a function that waits for a message
  scheduled,  ///< in the run queue
  running,  ///< inside a method or function; parked or not
  free,  ///< no process
};

/// A PE was told to hold back what goes to a process.
struct stop_sign {
  std::uint32_t pe;
  std::uint32_t number;  ///< tells it from earlier ones
};

/// Rarely needed parts of a process.
struct slot_extra {
  fiber* senders = nullptr;  ///< processes of this PE that wait for room in the mailbox, oldest first
  fiber* last_sender = nullptr;
  std::vector<stop_sign> stopped_pes;  ///< PEs that were told to hold back
};

/// A process as its PE keeps it: one cache line. An idle process costs this and its object.
struct slot {
  void* object;  ///< null: being constructed, or a remote function
  const class_info* cls;
  message* head;  ///< of the mailbox
  message* tail;
  activation* active;  ///< the method that runs or is parked; of several (reentrant) the newest
  slot_extra* extra;
  std::uint32_t generation;  ///< of the process that lives here, or will next
  std::uint32_t charge;  ///< what is in the mailbox, in units of charge_unit bytes
  process_state state;
  bool dying : 1;  ///< it ends: when no method is active, or its destructor runs
  bool named : 1;  ///< it was published: the layer above is told before it ends
  bool suspected : 1;  ///< in the list of those that may be part of a cycle of waits
  std::uint16_t
      depth;  ///< methods that are active; not a bit field, whose bytes would be stored apart and stall the next load
  std::uint32_t link;  ///< next free slot

  [[nodiscard]] message* pop() noexcept {
    message* m = head;
    head = m->next;
    if (head == nullptr) tail = nullptr;
    charge -= m->charge();
    return m;
  }
};
static_assert(sizeof(slot) == 64);

}  // namespace orrery::scheduler
