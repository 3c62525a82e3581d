// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/local_waits.hpp>

#include <orrery/scheduler/pe.hpp>

#include <memory>

namespace orrery::detail {

namespace {
constexpr int most_lines = 20;
}

local_waits::local_waits(pe& of) : self_(of) { of.layers().watchers().add(*this); }

local_waits::~local_waits() {
  self_.layers().watchers().remove(*this);
  while (list_.next != &list_) list_.next->leave();
}

local_waits& local_waits::of(pe& self) {
  auto& state = self.layers().of(scheduler::upper_layer::process);
  if (state == nullptr) [[unlikely]]
    state = std::make_unique<local_waits>(self);
  return static_cast<local_waits&>(*state);
}

void local_waits::cancel_waits(pe& self) noexcept {
  while (list_.next != &list_) {
    local_wait& w = *list_.next;
    w.leave();
    if (w.cancel != nullptr) w.cancel(self, w);
  }
  ends_.drop_all();
}

std::string local_waits::explain_waits() const {
  std::string text;
  int lines = 0;
  for (const local_wait* w = list_.next; w != &list_ && lines < most_lines; w = w->next) {
    const std::string line = w->describe != nullptr ? w->describe(self_, *w) : std::string{};
    text += line;
    lines += line.empty() ? 0 : 1;
  }
  if (lines == most_lines) text += "  and more\n";
  return text;
}

}  // namespace orrery::detail
