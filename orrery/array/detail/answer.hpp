// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/send.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

// Answers to the calls of other PEs.
namespace orrery::detail {

/// A caller that waits for an answer: a PE and an entry of its table. `call` 0: nobody.
struct caller {
  std::uint32_t pe = 0;
  std::uint64_t call = 0;
  template <class A>
  void serialize(A& a) {
    a & pe & call;
  }
};
/// Answers with a serialized value.
void answer_value(pe& self, caller to, std::span<const std::byte> value) noexcept;
/// Answers with an exception; one-way messages have theirs reported here.
void answer_error(pe& self, caller to, const scheduler::handler* method, std::exception_ptr why) noexcept;

/// Answers a call that has no result from another PE, after what was sent there before; `error`:
/// with that, of this method.
void answer_from(pe& self, std::uint32_t pe_there, std::uint32_t array, caller to,
                 const scheduler::handler* method = nullptr, const std::exception_ptr& error = {}) noexcept;

}  // namespace orrery::detail
