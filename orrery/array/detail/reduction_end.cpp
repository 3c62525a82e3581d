// SPDX-License-Identifier: Apache-2.0
// The value of a reduction, and where it goes when the reduction is over.
#include <orrery/array/detail/core.hpp>
#include <orrery/array/detail/guest.hpp>
#include <orrery/array/detail/routed_kind.hpp>
#include <orrery/array/target.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

// The names of types by their marks: written while static objects are made, read for errors.
struct named_marks {
  std::mutex mutex;
  std::unordered_map<std::uint32_t, std::string_view> names;
};
named_marks& all_named_marks() {
  static named_marks& all = *new named_marks;  // static objects of other files come first
  return all;
}

// The message with a value. One to an element begins on this PE: an element that is made for it may
// have to be where its sender is.
bytes message_of(pe& self, const reduction_target& t, std::span<const std::byte> value) {
  bytes b = t.head;
  if (t.what == reduction_target::kind::element) {
    route_head h;
    std::memcpy(&h, b.data(), sizeof h);
    h.origin = self.id();
    std::memcpy(b.data(), &h, sizeof h);
  }
  b.insert(b.end(), value.begin(), value.end());
  return b;
}

// To an element, or all: of an array that is on this PE, or of another program's. Never parks.
void deliver_to_array(pe& self, const reduction_target& t, const array_handler& h, std::span<const std::byte> message) {
  const bool all = t.what == reduction_target::kind::all;
  array_core* const part = array_directory::of(self).find(t.array);
  if (part == nullptr) {
    if (!is_guest_of(self, t.array)) throw_no_array(t.array);
    send_as_guest(self, t.array, all ? guest_request::broadcast : guest_request::message, h, message);
  } else if (all) {
    part->broadcast_now(h, message);
  } else {
    part->begins();
    tell(self, self.id(), h, t.array, self.id(), message);
  }
}

void deliver_result(pe& self, const reduction_target& t, std::span<const std::byte> value) {
  if (t.what == reduction_target::kind::none) return;
  if (t.what == reduction_target::kind::call) {
    answer_value(self, t.call, value);
    return;
  }
  const scheduler::handler* const known = scheduler::find_handler(t.handler);
  if (known == nullptr) throw bad_message(errc::unknown_handler, "the target of a reduction");
  const scheduler::handler& h = *known;
  switch (t.what) {
    case reduction_target::kind::process: {
      array_core* const part = t.array != 0 ? array_directory::of(self).find(t.array) : nullptr;
      if (t.array != 0 && part == nullptr) throw_no_array(t.array);
      if (part != nullptr) part->begins();
      try {
        if (t.process.pe != self.id()) {
          tell_process(self, t.process, h, value);
        } else if (slot* s = self.find(t.process.slot, t.process.generation)) {
          self.push(*s, wire_message(self, h, t.process.slot, t.process.generation, value));
        } else {
          fail_gone(h, t.process, nullptr, self);
          if (part != nullptr) part->over();
        }
      } catch (...) {
        if (part != nullptr) part->over();
        throw;
      }
      break;
    }
    case reduction_target::kind::element: {
      const bytes b = message_of(self, t, value);
      deliver_to_array(self, t, static_cast<const array_handler&>(h), b);
      break;
    }
    case reduction_target::kind::all:
      deliver_to_array(self, t, static_cast<const array_handler&>(h), value);
      break;
    case reduction_target::kind::forward: {
      const bytes b = message_of(self, t, value);
      tell(self, self.id(), h, 0, 0, b);
      break;
    }
    default:
      break;
  }
}

}  // namespace

void mixed(open_reduction& r) {
  r.error = std::make_exception_ptr(usage_error(
      errc::bad_argument, fmt::format("reduction {} of an array: elements contributed values of different types, or "
                                      "with different operations",
                                      r.number.value)));
}

void add_up(open_reduction& r, wire::unique_ptr<accumulator> value, std::exception_ptr error) {
  if (error != nullptr) r.error = std::move(error);
  if (value == nullptr) return;
  if (r.value == nullptr) {
    r.value = std::move(value);
  } else if (r.value->kind() != value->kind()) {
    mixed(r);
  } else {
    try {
      r.value->merge(std::move(*value));
    } catch (...) {
      r.error = std::current_exception();
    }
  }
}

std::uint32_t name_mark(std::uint32_t mark, std::string_view name) {
  named_marks& all = all_named_marks();
  const std::lock_guard lock(all.mutex);
  all.names.emplace(mark, name);
  return mark;
}
std::string_view name_of_mark(std::uint32_t mark) noexcept {
  named_marks& all = all_named_marks();
  const std::lock_guard lock(all.mutex);
  const auto found = all.names.find(mark);
  return found != all.names.end() ? found->second : "another type";
}

void throw_no_target(const char* what) {
  throw usage_error(errc::null_pointer, verbatim, fmt::format("result_to: a null {} cannot take a result", what));
}

void throw_lengths(std::size_t a, std::size_t b) {
  throw usage_error(
      errc::bad_argument,
      fmt::format("elementwise: one element contributes {} values and another one {}; all have to contribute as many",
                  a, b));
}

void fail_unfinished(pe& self, const std::string& what, const reduction_target* target) noexcept {
  if (target == nullptr || target->what != reduction_target::kind::call) return;
  try {
    answer_error(
        self, target->call, nullptr,
        make_error(errc::process_gone, verbatim, what + " was destroyed before a reduction over it had ended"));
  } catch (...) {
    answer_error(self, target->call, nullptr, std::current_exception());
  }
}

void deliver_reduction(pe& self, const accumulator* value, const reduction_target* target,
                       std::exception_ptr error) noexcept {
  try {
    if (error != nullptr) std::rethrow_exception(error);
    if (value == nullptr || target == nullptr) return;
    if (target->type != 0 && target->type != value->mark())
      throw usage_error(
          errc::bad_argument,
          fmt::format("a reduction: its elements contributed {}, and its target takes {}; contribute what it takes, or "
                      "make it for {}",
                      value->type(), name_of_mark(target->type), value->type()));
    bytes b;
    value->append_to(b);
    deliver_result(self, *target, b);
  } catch (...) {
    answer_error(self, target != nullptr && target->what == reduction_target::kind::call ? target->call : caller{},
                 nullptr, std::current_exception());
  }
}

void deliver_value(pe& self, const reduction_target& t, std::uint32_t mark, std::string_view type,
                   std::span<const std::byte> value) {
  if (t.what == reduction_target::kind::none) throw_no_target("target");
  if (t.type != 0 && t.type != mark)
    throw usage_error(
        errc::bad_argument,
        fmt::format("deliver: the value is of type {}, and the target takes {}; convert the value, or make "
                    "the target for {}",
                    type, name_of_mark(t.type), type));
  const bool of_array = t.what == reduction_target::kind::element || t.what == reduction_target::kind::all;
  if (of_array && array_directory::of(self).find(t.array) == nullptr) (void)may_send_as_guest(self, t.array, true);
  deliver_result(self, t, value);
}

}  // namespace orrery::detail
