// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::scheduler {

struct fiber;
class pe;
struct slot;

/// The processes of a PE that are functions: each has a fiber of its own, which is the object in
/// its slot. Owned by the PE, used on its thread.
class function_fibers {
 public:
  explicit function_fibers(pe& of) noexcept : of_(of) {}
  function_fibers(const function_fibers&) = delete;
  function_fibers& operator=(const function_fibers&) = delete;

  /// A fiber that runs entry(argument) when its process is scheduled, on a stack of at least so
  /// many bytes. Throws std::bad_alloc.
  [[nodiscard]] fiber* make(void (*entry)(fiber&, void*), void* argument, std::size_t stack_bytes);
  /// The first call of the entry.
  void begin();
  /// Ends the running function fiber and its process.
  [[noreturn]] void end(slot& s) noexcept;
  /// Parks the running function process until a message arrives; `deadline_ns` -1: for ever. False
  /// on timeout. Throws stopped.
  bool await_message(slot& s, std::int64_t deadline_ns);
  /// Those that have not ended.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

 private:
  pe& of_;
  std::uint32_t count_ = 0;
};

}  // namespace orrery::scheduler
