// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/directory.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

// Order that migrations do not disturb (docs/reference/arrays.md, "Order"): for the methods for
// which a class asks for it.
//
// Messages of such methods from one sender to one index are a stream, numbered from 1. The sender's
// half of its streams, the outbox, travels with it. The receiver's half, the inbox, belongs to the
// index: it travels with the element, and lies at the home while there is none. There is one place
// at a time where messages leave the network for good: the mailbox of the element, or, at the home,
// the queue of early messages and the error for deleted elements. There each message waits until
// those before it have come. Messages that go back on their way, as their element leaves before it
// has executed them, are counted as not come.
//
// A stream ends with a last message when its sender ends, which the element executes after the
// others; the streams of processes that are no elements belong to their PE, and last as long as the
// array.
//
// Invariants: (1) each number of a stream is sent once, and comes to the place once, or again after
// rewind(); (2) held messages have numbers above `next`.

namespace orrery {

namespace detail {
template <class T>
constexpr bool keeps_order(std::string_view method) {
  if constexpr (requires { bool{T::keep_order(method)}; }) {
    return T::keep_order(method);
  } else {
    return false;
  }
}

/// The streams that one sender has sent, to each index.
class outbox {
 public:
  /// One stream. A pointer to it is good until the next one is asked for.
  struct line {
    std::uint64_t stream = 0;
    std::uint32_t closer = 0;  ///< handler
    std::uint64_t sent = 0;
  };
  outbox() noexcept;
  outbox(outbox&&) noexcept;
  outbox& operator=(outbox&&) noexcept;
  ~outbox();
  /// The stream to an index, by the array and the packed index.
  [[nodiscard]] line& to(pe& self, std::uint32_t array, const bytes& index, const array_handler& closer);
  [[nodiscard]] bool empty() const noexcept;
  /// Forgets an array that has ended.
  void forget(std::uint32_t array);
  /// Sends the last message of each stream.
  void close(pe& self) noexcept;
  template <class A>
  void serialize(A& a) {
    bytes all = A::is_loading::value ? bytes{} : write();
    a & all;
    if constexpr (A::is_loading::value) read(all);
  }

 private:
  struct table;  // not here: each program with an array would compile it
  [[nodiscard]] bytes write() const;
  void read(const bytes& all);

  wire::unique_ptr<table> lines_;  // null: none
};

/// The messages of each stream that have come to one index.
class inbox {
 public:
  inbox();
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;
  ~inbox();

  [[nodiscard]] bool empty() const noexcept;
  /// It is the next of its stream.
  [[nodiscard]] bool in_turn(order_tag t) const noexcept;
  void passed(order_tag t);
  /// It has failed, after messages that may be on their way again: not to be waited for then. After
  /// passed().
  void failed(order_tag t);
  /// Keeps a message until it is in turn.
  void hold(order_tag t, scheduler::message* m);
  /// The held message that is in turn now, or null.
  [[nodiscard]] scheduler::message* take_next(std::uint64_t stream);
  [[nodiscard]] bool has_next(std::uint64_t stream) const noexcept;
  /// Puts all held messages before `rest`, stream by stream in order, and keeps none.
  [[nodiscard]] scheduler::message* take_held(scheduler::message* rest);
  /// A message that had passed is on its way again.
  void rewind(order_tag t);
  /// The messages of a list that are of streams are on their way again.
  void rewind(const scheduler::message* list);
  void end(std::uint64_t number);
  /// The state of a stream that travels.
  struct count {
    std::uint64_t stream = 0;
    std::uint64_t next = 1;
    /// Ranges: from, to behind the last.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> failed;
    template <class A>
    void serialize(A& a) {
      a & stream & next & failed;
    }
  };
  using counts = std::vector<count>;
  [[nodiscard]] counts all() const;
  /// Adopts the counts of the same index from elsewhere. Each of those streams may have gone on.
  void merge(const counts& other);

 private:
  struct stream;
  struct table;
  [[nodiscard]] stream& at(std::uint64_t number);

  wire::unique_ptr<table> streams_;
};

/// Both halves, of one element.
struct order_state {
  outbox out;
  inbox in;
};
/// The form in which they travel.
struct order_luggage {
  outbox out;
  inbox::counts in;
  template <class A>
  void serialize(A& a) {
    a & out & in;
  }
};

}  // namespace detail
}  // namespace orrery
