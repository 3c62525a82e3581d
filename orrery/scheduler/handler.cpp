// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/handler.hpp>

#include <orrery/wire/address.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/type_key.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

namespace orrery::scheduler {
namespace {

// The one static table: filled by constructors before main, frozen when the runtime starts.
constinit handler* registered = nullptr;
constinit std::uint32_t last_class = 0;

std::vector<handler*>& own() {
  static std::vector<handler*> t;
  return t;
}
// By number.
std::vector<const handler*>& table() {
  static std::vector<const handler*> t;
  return t;
}

}  // namespace

constinit const class_info* class_table[max_classes] = {};

class_info::class_info(std::string_view n, void (*d)(void*), std::span<const base> b, bool r) noexcept
    : name(n), destroy(d), bases(b), reentrant(r), number(++last_class) {
  if (number >= max_classes) {  // before main: there is nobody to throw to
    fmt::print(stderr, "orrery: this program has more than {} classes of processes\n", max_classes - 1);
    std::abort();
  }
  class_table[number] = this;
}

handler::handler(std::string_view class_name_, std::string_view method_, std::string_view signature_,
                 void (*run_)(pe&, slot&, delivery&), void (*relocate_)(void*, void*), void (*drop_)(void*),
                 std::uint32_t payload, bool views_, void (*describe_)(wire::type_description&),
                 std::string_view object_, void (*through_wire_)(pe&, slot&, delivery&),
                 decltype(&nobody_misses) lost_) noexcept
    : class_name(class_name_),
      method(method_),
      signature(signature_),
      run(run_),
      relocate(relocate_),
      drop(drop_),
      payload_bytes(payload),
      views(views_),
      describe(describe_),
      object(object_),
      lost(lost_),
      through_wire(through_wire_),
      next(registered) {
  registered = this;
}

bool nobody_misses(pe&, const handler&, std::span<const std::byte>, std::uint32_t,
                   const unknown_message* unknown) noexcept {
  return unknown == nullptr;
}

void freeze_handlers() {
  if (!own().empty()) return;
  std::vector<handler*> all;
  for (handler* h = registered; h != nullptr; h = h->next) {
    std::string key;
    if (wire::is_type_key(h->signature)) {
      key = wire::stable_key(h->signature);
    } else {
      key.append(h->class_name).append("::").append(h->method).append(" ").append(h->signature);
    }
    h->hash = XXH3_64bits(key.data(), key.size());
    h->index = static_cast<std::uint32_t>(all.size());
    all.push_back(h);
  }
  std::ranges::sort(all, {}, [](const handler* h) { return std::pair(h->hash, h->index); });
  own().assign(all.begin(), all.end());
  number_handlers({});
}

void number_handlers(std::span<const std::uint32_t> numbers) {
  auto& t = table();
  t.clear();
  const auto& all = own();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint32_t n = numbers.empty() ? static_cast<std::uint32_t>(i) : numbers[i];
    if (n >= t.size()) t.resize(n + 1);
    t[n] = all[i];
    all[i]->index = n;
  }
}

constinit bool through_wire = false;

void send_through_wire(bool on) noexcept {
  if (on == through_wire) return;
  through_wire = on;
  for (handler* h = registered; h != nullptr; h = h->next)
    if (h->through_wire != nullptr) std::swap(h->run, h->through_wire);
}

std::span<const handler* const> own_handlers() noexcept { return own(); }
std::span<const handler* const> handler_table() noexcept { return table(); }

const handler* find_handler(std::uint64_t number) noexcept {
  const auto& t = table();
  return number < t.size() ? t[number] : nullptr;
}

std::exception_ptr gone_error(const handler& method, const address& to) {
  const std::string call = fmt::format("{}::{}", method.class_name, method.method);
  if (!to) return make_error(errc::null_pointer, call);
  return make_error(errc::process_gone, fmt::format("{} at {}", call, to_string(to)));
}

void throw_not_sent(std::uint32_t pe) {
  throw node_lost(
      verbatim,
      fmt::format(
          "PE {}: its node has left the world, or crashed, before this was sent, so that nothing was done there; "
          "spawn the process again on another node",
          pe));
}

where where_is(const handler* method, std::uint32_t pe) {
  if (method == nullptr) return {"?", "?", pe};
  return {std::string(method->class_name), std::string(method->method), pe};
}

void* cast_object(const class_info& from, void* object, const class_info& to) noexcept {
  if (&from == &to) return object;
  for (const class_info::base& b : from.bases)
    if (void* found = cast_object(b.info(), b.cast(object), to)) return found;
  return nullptr;
}

}  // namespace orrery::scheduler
