// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/here_pe.hpp>

namespace orrery::detail {

/// The frame of a method that runs inline, on its caller's stack.
class inline_frame {
 public:
  inline_frame(pe& self, slot& s, const scheduler::handler& h) noexcept : self_(self), frame_{&s, &h, nullptr} {
    self.push_activation(frame_);
    s.state = scheduler::process_state::running;
    s.active = &frame_;
    ++s.depth;
    ++self.count().inline_calls;
  }
  inline_frame(const inline_frame&) = delete;
  inline_frame& operator=(const inline_frame&) = delete;
  ~inline_frame() {
    slot& s = *frame_.process;
    self_.pop_activation(frame_);
    s.active = nullptr;
    --s.depth;
    if (s.dying) [[unlikely]] {
      if (s.depth == 0) self_.destroy(s);
    } else if (s.state == scheduler::process_state::running) [[likely]] {
      if (s.depth != 0) [[unlikely]]
        if (self_.conditions().grant(s)) return;
      self_.settle(s);
    }
  }

 private:
  pe& self_;
  scheduler::activation frame_;
};

}  // namespace orrery::detail
