// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/answer.hpp>

#include <orrery/array/detail/core.hpp>
#include <orrery/array/detail/directory.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/wire/exception.hpp>

#include <string>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

slot* route_value(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);
slot* route_error(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);

const control_handler value_handler{"value", &route_value};
const control_handler error_handler{"error", &route_error};

std::uint64_t call_of(const wire::envelope& e) noexcept { return std::uint64_t{e.generation} << 32 | e.slot; }

void settle_value(pe& self, scheduler::sink& s, std::span<const std::byte> value) noexcept {
  std::exception_ptr error;
  try {
    if (s.decode != nullptr) s.decode(s, value.data(), value.size());
  } catch (...) {
    error = std::current_exception();
  }
  end_wait(self, s, std::move(error));
}

slot* route_value(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  scheduler::sink* s = array_directory::of(self).waits().take(call_of(e));
  if (s != nullptr) settle_value(self, *s, wire_payload(d, e, size));
  d.release();
  return nullptr;
}

slot* route_error(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  scheduler::sink* s = array_directory::of(self).waits().take(call_of(e));
  std::exception_ptr error;
  try {
    orrery::reader r(wire_payload(d, e, size));
    const auto form = orrery::read<wire_exception>(r);
    const auto at = orrery::read<where>(r);
    error = decode_exception(form, at);
  } catch (...) {
    error = std::current_exception();
  }
  d.release();
  if (s != nullptr) end_wait(self, *s, std::move(error));
  return nullptr;
}

// An answer: to whom, and then an exception or nothing.
void pass_answer(pe& self, std::span<const std::byte> answer) {
  orrery::reader r(answer);
  const auto to = orrery::read<caller>(r);
  if (!orrery::read<bool>(r)) {
    answer_value(self, to, {});
    return;
  }
  orrery::reader error(after_section(answer, r));
  answer_error(self, to, nullptr, decode_exception(orrery::read<wire_exception>(error), {}));
}

slot* route_answer(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) noexcept {
  try {
    const activity_end arrived(array_directory::of(self).find(e.slot));
    const auto payload = wire_payload(d, e, size);
    const bytes answer(payload.begin(), payload.end());
    d.release();
    pass_answer(self, answer);
  } catch (...) {
    d.fail(std::current_exception());
  }
  return nullptr;
}

// Its home was lost while it was under way: who waits has to be answered all the same, and nobody
// is left who could say that the index is in use.
bool answer_without_home(pe& self, const scheduler::handler&, std::span<const std::byte> payload, std::uint32_t,
                         const scheduler::unknown_message*) noexcept {
  try {
    pass_answer(self, payload);
  } catch (...) {
    self.failures().report("the end of an element whose home is lost", std::current_exception());
  }
  return true;
}

struct answer_control : control_handler {
  answer_control() noexcept : control_handler("answer for another PE", &route_answer) { lost = &answer_without_home; }
};
const answer_control answer_handler;

}  // namespace

void answer_value(pe& self, caller to, std::span<const std::byte> value) noexcept {
  if (to.call == 0) return;
  if (to.pe == self.id()) {
    if (scheduler::sink* s = array_directory::of(self).waits().take(to.call)) settle_value(self, *s, value);
    return;
  }
  if (value.size() > wire::largest_payload) [[unlikely]] {
    try {
      throw_too_large(value_handler, value.size());
    } catch (...) {
      answer_error(self, to, nullptr, std::current_exception());
    }
    return;
  }
  tell(self, to.pe, value_handler, static_cast<std::uint32_t>(to.call), static_cast<std::uint32_t>(to.call >> 32),
       value);
}

void answer_error(pe& self, caller to, const scheduler::handler* method, std::exception_ptr why) noexcept {
  if (to.call == 0) {
    self.failures().report_post(method, std::move(why));
    return;
  }
  try {
    const where at = method != nullptr ? where{std::string(method->class_name), std::string(method->method), self.id()}
                                       : where{"(array)", "", self.id()};
    if (to.pe == self.id()) {
      if (scheduler::sink* s = array_directory::of(self).waits().take(to.call))
        end_wait(self, *s, as_received(why, at));
      return;
    }
    const wire_exception form = encode_exception(why);
    bytes b;
    pack_after(b, form, at);
    tell(self, to.pe, error_handler, static_cast<std::uint32_t>(to.call), static_cast<std::uint32_t>(to.call >> 32), b);
  } catch (...) {
    self.failures().report_post(method, std::current_exception());
  }
}

void answer_from(pe& self, std::uint32_t pe_there, std::uint32_t array, caller to, const scheduler::handler* method,
                 const std::exception_ptr& error) noexcept {
  if (to.call == 0) return;
  if (pe_there == self.id() || !self.owner().reachable(pe_there)) {
    error != nullptr ? answer_error(self, to, method, error) : answer_value(self, to, {});
    return;
  }
  bytes b = pack(0, to, error != nullptr);
  if (error != nullptr) pack_after(b, encode_exception(as_received(error, scheduler::where_is(method, self.id()))));
  if (array_core* part = array_directory::of(self).find(array)) part->begins();
  tell(self, pe_there, answer_handler, array, 0, b);
}

}  // namespace orrery::detail
