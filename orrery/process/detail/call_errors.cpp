// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/call_errors.hpp>

#include <orrery/scheduler/handler.hpp>
#include <orrery/wire/exception.hpp>

#include <fmt/format.h>

namespace orrery::detail {

std::string call_name(const scheduler::handler& h) { return fmt::format("{}::{}", h.class_name, h.method); }

bool is_process_gone(const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const process_gone&) {
    return true;
  } catch (...) {
    return false;
  }
}
void throw_gone(const scheduler::handler& h, address to) { std::rethrow_exception(scheduler::gone_error(h, to)); }

void throw_wrong_class(const scheduler::handler& h, const scheduler::class_info* is) {
  throw bad_message(
      errc::unknown_handler, verbatim,
      fmt::format("{}: the remote pointer is of the wrong class: what it names is {}, not {} or derived from it; "
                  "take a pointer as spawn or lookup gives it, and convert it with remote_cast only",
                  call_name(h), is != nullptr ? fmt::format("of class {}", is->name) : "no object", h.class_name));
}

void rethrow_as_received(const scheduler::handler& h, pe& self) {
  const std::exception_ptr thrown = std::current_exception();
  if (keeps_class(thrown)) throw;
  std::rethrow_exception(as_received(thrown, scheduler::where_is(&h, self.id())));
}

void fail_gone(const scheduler::handler& h, address to, scheduler::sink* sink, pe& self) {
  const auto why = scheduler::gone_error(h, to);
  if (sink != nullptr) {
    scheduler::reply_error(self, reinterpret_cast<std::uint64_t>(sink), self.id(), false, &h, why);
  } else {
    self.failures().report_post(&h, why);
  }
}

}  // namespace orrery::detail
