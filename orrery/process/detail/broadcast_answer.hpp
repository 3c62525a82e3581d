// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_part.hpp>
#include <orrery/process/detail/later_answer.hpp>
#include <orrery/process/detail/typed_handler.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>

namespace orrery::detail {

/// An answer that has to leave the node. It may have to wait for space on its way, so a process of
/// its own sends it.
struct late_answer {
  const scheduler::handler* method = nullptr;
  std::uint64_t reply = 0;
  std::uint32_t source_pe = 0;

  late_answer() = default;
  late_answer(const late_answer&) = delete;
  late_answer& operator=(const late_answer&) = delete;
  virtual ~late_answer() = default;
  /// May park. Throws what prevents it.
  virtual void send(pe& self) = 0;
};
void answer_later(pe& self, wire::unique_ptr<late_answer> l) noexcept;

}  // namespace orrery::detail
