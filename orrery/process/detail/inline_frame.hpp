// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/scheduler/fork.hpp>

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
  [[gnu::always_inline]] ~inline_frame() {
    slot& s = *frame_.process;
    self_.pop_activation(frame_);
    s.active = nullptr;
    if (--s.depth == 0 && !s.dying && s.state == scheduler::process_state::running && !s.has_messages()) [[likely]] {
      s.state = scheduler::process_state::idle;
    } else {
      leave(self_, s);
    }
  }

 private:
  // The method has ended, and something is to follow.
  [[gnu::noinline]] static void leave(pe& self, slot& s) noexcept {
    if (scheduler::is_forked_child) scheduler::end_forked_child();
    if (s.dying) {
      if (s.depth == 0) self.destroy(s);
    } else if (s.state == scheduler::process_state::running) {
      if (s.depth == 0 || !self.conditions().grant(s)) self.settle(s);
    }
  }

  pe& self_;
  scheduler::activation frame_;
};

}  // namespace orrery::detail
