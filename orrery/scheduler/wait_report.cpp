// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/wait_report.hpp>

#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/exception.hpp>

#include <fmt/format.h>

#include <utility>

namespace orrery::scheduler {

namespace {
constexpr int most_lines = 20;
}

std::string text_of(std::exception_ptr why) {
  try {
    std::rethrow_exception(why);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    const std::string type = encode_exception(why).type;
    return type.empty() ? "an exception that is not a std::exception"
                        : fmt::format("{} was thrown, which is not a std::exception", type);
  }
}

std::string describe(pe& on, const slot& s) {
  const std::string address = to_string(on.address_of(s));
  const std::string name = on.layers().name_of(s);
  return name.empty() ? address : fmt::format("{} ({})", name, address);
}

std::string describe_waits(pe& on) {
  std::string text;
  int lines = 0;
  for (const slot& s : on.processes().all()) {
    if (lines == most_lines) break;
    if (s.state == process_state::receiving) {
      text += fmt::format("  {} waits in receive\n", describe(on, s));
      ++lines;
      continue;
    }
    if (s.state != process_state::running || s.active == nullptr || s.active->on == nullptr) continue;
    const handler* h = s.active->method;
    const std::string who = h != nullptr ? fmt::format("{}::{}", h->class_name, h->method) : "a process function";
    const sink* w = s.active->on->waiting_on;
    const char* in = s.active->on->waits_in;  // the call that the program has made
    if (in == nullptr && w != nullptr && w->method != nullptr) {
      const std::string at = w->route != nullptr && w->route->call != 0 ? w->route->text()
                             : w->target.generation != 0                ? to_string(w->target)
                                                                        : "";
      text += fmt::format("  {} in {} waits for {}::{}{}{}\n", describe(on, s), who, w->method->class_name,
                          w->method->method, at.empty() ? "" : " at ", at);
    } else if (const room_wait* r = s.active->on->room; r != nullptr) {
      text += fmt::format("  {} in {} waits for room in the mailbox of {}\n", describe(on, s), who, to_string(r->at));
    } else {
      text += fmt::format("  {} in {} waits{}{}\n", describe(on, s), who, in != nullptr ? " in " : "",
                          in != nullptr ? in : "");
    }
    ++lines;
  }
  if (lines == most_lines) text += "  and more\n";
  text += on.conditions().explain();
  on.layers().watchers().for_each([&](const wait_watcher& w) { text += w.explain_waits(); });
  return text;
}

}  // namespace orrery::scheduler
