// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/message.hpp>
#include <orrery/scheduler/sanitizers.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace orrery::scheduler {

struct activation;
struct fiber;

/// The state of a process. The order matters: `idle` and `receiving` are the states in which a
/// message makes it runnable.
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

/// Rarely needed parts of a process; kept by its PE.
struct slot_extra {
  /// Processes of this PE that wait for room in the mailbox, oldest first.
  fiber* senders = nullptr;
  fiber* last_sender = nullptr;
  std::vector<stop_sign> stopped_pes;  ///< PEs that were told to hold back
  std::uint32_t limit = 0;  ///< the mailbox's, where it was raised, in units of charge_unit bytes
  std::uint32_t checked_above = 0;  ///< the charge at which the PE's backlog looks at it again
  /// When the backlog last looked; since then nothing was taken out if it is the same.
  std::uint32_t held_charge = 0;
  bool listed = false;  ///< in the PE's backlog
  std::int64_t held_since_ns = 0;
  [[nodiscard]] bool holds_senders() const noexcept { return senders != nullptr || !stopped_pes.empty(); }
};

/// A process as its PE keeps it: one cache line, with its object in it if that is small. So a
/// message to a process that is not in the cache waits for memory once, and a spawn allocates
/// nothing. An idle process costs this, and its object if that is large.
struct alignas(64) slot {
  static constexpr std::size_t small_object = 32;

  message* last;  ///< of the mailbox: a circle, whose `next` is the first one; null: it is empty
  activation* active;  ///< the method that runs or is parked; of several (reentrant) the newest
  std::uint32_t generation;  ///< of the process that lives here, or will next
  union {
    std::uint32_t charge;  ///< what is in the mailbox, in units of charge_unit bytes
    std::uint32_t link;  ///< of a free slot: the next one
  };
  std::uint32_t class_number;  ///< 0: a remote function, or not known yet
  process_state state;
  bool dying : 1;  ///< it ends: when no method is active, or its destructor runs
  bool named : 1;  ///< it was published: the layer above is told before it ends
  bool suspected : 1;  ///< in the list of those that may be part of a cycle of waits
  bool has_object : 1;  ///< it is constructed. A remote function has none
  bool apart : 1;  ///< the object does not lie here
  bool is_function : 1;  ///< a process function: the object is its fiber
  bool has_extra : 1;
  bool watched : 1;  ///< layers above are told when it has ended
  /// Methods that are active; not a bit field, whose bytes would be stored apart and stall the next
  /// load.
  std::uint16_t depth;
  static constexpr std::uint16_t most_methods = 60'000;  ///< above, a process takes no message
  alignas(small_object) std::byte room[small_object];  ///< the object, or where it lies

  [[nodiscard]] const class_info* cls() const noexcept { return class_table[class_number]; }

  // --- the object ---
  /// Null: being constructed, ending, or a remote function.
  [[nodiscard]] void* object() noexcept { return has_object ? (apart ? where_apart() : room) : nullptr; }
  [[nodiscard]] const void* object() const noexcept { return const_cast<slot*>(this)->object(); }
  [[nodiscard]] void* where_apart() const noexcept { return *std::launder(reinterpret_cast<void* const*>(room)); }
  /// `object` lies in the room, or anywhere else.
  void set_object(void* object) noexcept {
    set_place(object);
    has_object = true;
  }
  /// It is going to be constructed there.
  void set_place(void* object) noexcept {
    apart = object != room;
    if (apart) new (open_room()) void*(object);
  }
  /// The room, for an object to be constructed there.
  [[nodiscard]] void* open_room() noexcept {
#if defined(ORRERY_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(room, sizeof room);
#endif
    return room;
  }
  /// Nothing is there any more: AddressSanitizer reports who looks.
  void close_room() noexcept {
#if defined(ORRERY_ASAN)
    ASAN_POISON_MEMORY_REGION(room, sizeof room);
#endif
  }

  // --- the mailbox ---
  [[nodiscard]] bool has_messages() const noexcept { return last != nullptr; }
  void push_back(message* m) noexcept {
    if (last != nullptr) {
      m->next = last->next;
      last->next = m;
    } else {
      m->next = m;
    }
    last = m;
  }
  void push_front(message* m) noexcept {
    message* const before = last;
    push_back(m);
    if (before != nullptr) last = before;
  }
  /// Takes out the message after `before`; charges nothing.
  message* unlink_after(message* before) noexcept {
    message* m = before->next;
    before->next = m->next;
    if (m == before) {
      last = nullptr;
    } else if (m == last) {
      last = before;
    }
    return m;
  }
  /// The oldest message. There must be one.
  [[nodiscard]] message* pop() noexcept {
    message* m = unlink_after(last);
    charge -= m->charge();
    return m;
  }
  /// All of them as a list that ends with null, oldest first; charges nothing.
  [[nodiscard]] message* take_all() noexcept {
    if (last == nullptr) return nullptr;
    message* first = last->next;
    last->next = nullptr;
    last = nullptr;
    return first;
  }
  /// Calls f(before, m) for the messages m from the oldest on until it returns true, which it must
  /// if it has taken out m. If f lets others add messages, those behind m are looked at, too.
  template <class F>
  bool search(F&& f) {
    if (last == nullptr) return false;
    for (message* before = last;;) {
      message* m = before->next;
      if (f(before, m)) return true;
      if (m == last) return false;
      before = m;
    }
  }
};
static_assert(sizeof(slot) == 64);

}  // namespace orrery::scheduler
