// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/later_answer.hpp>

#include <orrery/scheduler/wait_report.hpp>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

std::string name_of(const scheduler::handler* h) {
  return h != nullptr ? fmt::format("{}::{}", h->class_name, h->method) : "a process function";
}

}  // namespace

std::string later_answer::describe_answer(const pe&, const local_wait& w) {
  const auto& a = static_cast<const later_answer&>(w);
  // a promise of its own, which has a line
  if (a.of->target == a.process && a.of->method == a.method) return {};
  const std::string at = a.of->target ? fmt::format(" at {}", to_string(a.of->target)) : std::string{};
  return fmt::format("  the answer of {} at {} waits for {}{}\n", name_of(a.method), to_string(a.process),
                     a.of->method != nullptr ? name_of(a.of->method) : "what follows other calls", at);
}

later_answer::later_answer(pe& self, const scheduler::sink& from, call_to_answer call)
    : method(running_method(self)), process(self.self()), of(&from), to(call) {
  describe = &describe_answer;
  local_waits::of(self).add(*this);
}

}  // namespace orrery::detail
