// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/local_waits.hpp>

#include <orrery/process/detail/later_answer.hpp>
#include <orrery/process/detail/spread_map.hpp>
#include <orrery/process/detail/state_memory.hpp>
#include <orrery/process/spread.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/say.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <chrono>

#include <fmt/format.h>

namespace orrery::detail {

namespace {
using namespace std::chrono_literals;

constexpr int most_lines = 20;
constexpr int most_looks = 10'000;  // for the sake of a probe, which may be late
}  // namespace

local_waits::local_waits(pe& of)
    : self_(of),
      spread_values_(wire::make_unique<spread_map>()),
      spreads_(static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / 1ns)) {
  of.layers().watchers().add(*this);
}

local_waits::~local_waits() {
  self_.layers().watchers().remove(*this);
  while (list_.next != &list_) list_.next->leave();
  say_dropped();
  state_memory::forget();
  spread_epoch.fetch_add(1, std::memory_order_relaxed);
}

// Messages without an answer are counted by the scheduler, which does not know of futures.
void local_waits::say_dropped() const noexcept {
  if (dropped_calls_ == 0 || self_.owner().idleness_of(0).found_dead()) return;
  const bool one = dropped_calls_ == 1;
  scheduler::say(fmt::format("orrery: PE {}: {} when the program ended: {}::{}{}\n", self_.id(),
                             one ? "1 call whose future was dropped had no answer"
                                 : fmt::format("{} calls whose futures were dropped had no answer", dropped_calls_),
                             first_dropped_->class_name, first_dropped_->method, one ? "" : " the first of them"));
}

void local_waits::make(pe& self) {
  self.layers().of(scheduler::upper_layer::process) = wire::make_unique<local_waits>(self);
}

void local_waits::cancel_waits(pe& self) noexcept {
  while (list_.next != &list_) {
    local_wait& w = *list_.next;
    w.leave();
    if (w.cancel != nullptr) w.cancel(self, w);
  }
  ends_.drop_all();
}

scheduler::awaited_answer local_waits::find_answer(std::uint32_t caller_pe, std::uint64_t call,
                                                   bool hidden) const noexcept {
  int looks = 0;
  for (const local_wait* w = list_.next; w != &list_ && looks < most_looks; w = w->next, ++looks) {
    if (w->describe != &later_answer::describe_answer) continue;
    const auto& a = static_cast<const later_answer&>(*w);
    if (a.to.pe == caller_pe && a.to.call == call && a.to.hidden == hidden) return {a.of, a.method};
  }
  return {};
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
