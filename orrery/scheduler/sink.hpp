// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>
#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

namespace orrery::scheduler {

class pe;
struct fiber;
struct slot;

/// The way of a call that is not for an address: it finds its process on the way, as that to an
/// element of an array does. Lives as long as the sink.
struct call_route {
  /// By which the answer finds the sink; 0: it went to the sink's target after all.
  std::uint64_t call = 0;
  /// The process, if it is on this PE; else null, and whatever follows the call, if anything does,
  /// is to go on with pe::follow at the process.
  virtual address follow(pe&, std::span<const std::byte> probe) const = 0;
  [[nodiscard]] virtual std::string text() const = 0;
  /// Where the sink stands for several results that are all needed: the i-th that is not there yet;
  /// null: there are no more.
  [[nodiscard]] virtual const struct sink* part(std::size_t) const noexcept { return nullptr; }

 protected:
  ~call_route() = default;
};

/// Where the result of a call goes. It lies on the stack of a caller that waits, or in the state of
/// a future; always on the PE that made the call, and is touched by that PE only, except that a
/// callee on the same node constructs the result in place before it says so.
struct sink {
  enum class status : std::uint8_t { waiting, value, error };

  /// Called on the caller's PE when `state` has left `waiting`, and once more by the loop each time
  /// that it calls run_later.
  void (*on_done)(pe&, sink&) = nullptr;
  /// Reads the result from its wire form. Throws bad_message.
  void (*decode)(sink&, const std::byte* data, std::size_t bytes) = nullptr;
  void* storage = nullptr;  ///< where the callee constructs the result, inside a node
  std::exception_ptr error;
  address target{};
  const handler* method = nullptr;
  fiber* waiter = nullptr;
  slot* caller = nullptr;  ///< the process that made the call
  call_route* route = nullptr;
  std::uint32_t home = 0;  ///< PE
  /// In the table of pending calls; 0: none (the call stays inside the node).
  std::uint32_t entry = 0;
  status state = status::waiting;
  std::uint8_t small = 0;  ///< bytes of a result that record_kind::small_reply carries
};

}  // namespace orrery::scheduler
