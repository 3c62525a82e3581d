// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/access_census.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/internal/element_memory.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace orrery::detail {

using element_memory::change;
using element_memory::exchange;
using element_memory::load;
using element_memory::store;

namespace {

using bytes = std::vector<std::byte>;

/// An element of an object: where it lies, or whom to ask.
struct spot {
  const shared_object& o;
  layout::place place;  ///< if it is in another domain
  std::byte* at;  ///< else
  [[nodiscard]] placement owner() const { return orrery::pe(o.how().pes[place.part]); }
};

/// For the checker and the adviser.
[[gnu::noinline]] void watch(const shared_object& o, std::uint64_t row, std::uint64_t column, access_kind k,
                             std::source_location where) {
  const scheduler::pe& self = here_pe();
  if (self.order().recorder() != nullptr) note_element(o, row, column, k, where);
  if (self.settings().advise_for) {
    auto& census = shared_directory::of_this_pe().census;
    if (census == nullptr) census = wire::make_unique<access_census>();
    census->add(o, row, column, k, where);
  }
}

spot find(const shared_id& id, std::uint64_t row, std::uint64_t column, access_kind k) {
  const shared_object& o = find_object(id);
  if (row >= o.rows || column >= o.columns) [[unlikely]]
    throw_outside(o, row, column);
  if (o.whole != nullptr) return {o, {}, o.whole + (row * o.columns + column) * o.bytes};
  if (o.watched && o.in_order != nullptr && k != access_kind::update)
    return {o, {}, o.in_order + (row * o.columns + column) * o.bytes};
  const layout::place p = o.how().find(row, column);
  if (k != access_kind::element_read && here_pe().owner().gone_nodes() != 0) [[unlikely]]
    require_owner(o, p.part);
  std::byte* const base = o.base[p.part];
  return {o, p, base == nullptr ? nullptr : base + p.local * o.element_bytes()};
}

/// The object, if somebody watches. An access that asks the owner is told of when it is complete,
/// and by then the object may have been destroyed.
std::shared_ptr<const shared_object> hold_if_watched(const shared_object& o) {
  return o.watched ? hold_object(o.about.id) : nullptr;
}
/// An access is complete: to be told of. Its knowledge of the order counts for it, too.
void note(const std::shared_ptr<const shared_object>& o, std::uint64_t row, std::uint64_t column, access_kind k,
          std::source_location where) {
  if (o != nullptr) watch(*o, row, column, k, where);
}

/// A reader of its elements has to ask their owners: see memory_head::changed.
bool asks_owners(const shared_object& o) {
  // SYNC: acquire, with change_at_owner: after a read that has seen what was changed this sees the
  // mark.
  return o.watched && here_pe().order().recorder() != nullptr &&
         o.memory->head().changed.load(std::memory_order_acquire) != 0;
}
/// Calls the owner for an access from which nobody learns what this process did before.
template <auto F, class... A>
auto ask_owner(placement owner, const A&... arguments) {
  const scheduler::causality::request_only quiet(here_pe().order().recorder());
  return call<F>(owner, arguments...);
}
/// A change is made by the owner, although the element is memory here.
bool asks_owner_to_change(const shared_object& o) { return o.watched && here_pe().order().recorder() != nullptr; }
/// At the owner, before a change.
void mark_changed(const shared_object& o) {
  if (here_pe().order().recorder() != nullptr) o.memory->head().changed.store(1);
}

/// The usual case, without a call: this PE used the object lately, all its elements are memory here
/// in the order of their indices, and nobody wants to know who accesses it. Else `at` is null: look
/// for it by find().
struct quick_spot {
  const shared_object* o;  ///< null: not known here, or the index is outside
  std::byte* at;
};
/// The next one: the element is memory here in the same way, and the access is counted or checked.
std::byte* watched_at(const shared_object& o, std::uint64_t row, std::uint64_t column) {
  return o.in_order + (row * o.columns + column) * o.bytes;
}
[[gnu::always_inline]] inline quick_spot find_quickly(const shared_id& id, std::uint64_t row, std::uint64_t column) {
  const shared_directory* const d = shared_directory::of_this_pe_if_any();
  if (d == nullptr) [[unlikely]]
    return {};
  const shared_object* const o = d->find_recent(id);
  if (o == nullptr || row >= o->rows || column >= o->columns) [[unlikely]]
    return {};
  if (o->whole == nullptr) [[unlikely]]
    return {o, nullptr};
  return {o, o->whole + (row * o->columns + column) * o->bytes};
}

// --- at the owner --------------------------------------------------------------------------------

/// An element that another PE has named: checked, as it came in a message.
std::byte* asked_for(const shared_object& o, std::uint32_t part, std::uint64_t local, std::size_t value_bytes) {
  if (part >= o.how().parts() || o.base[part] == nullptr || local >= o.how().extent_of(part) ||
      value_bytes != o.element_bytes())
    throw bad_message(errc::message_corrupt, o.about.label + ": a request for an element that is not here");
  return o.base[part] + local * o.element_bytes();
}
bytes read_at_owner(shared_id id, std::uint32_t part, std::uint64_t local) {
  const shared_object& o = find_object(id);
  bytes value(o.element_bytes());
  const std::byte* const at = asked_for(o, part, local, value.size());
  load(o, at, value.data());
  order_change(at, false);
  return value;
}
void write_element_at_owner(shared_id id, std::uint32_t part, std::uint64_t local, std::span<const std::byte> value) {
  const shared_object& o = find_object(id);
  store(o, asked_for(o, part, local, value.size()), value.data());
}
bytes change_at_owner(shared_id id, std::uint32_t part, std::uint64_t local, element_change what, scalar type,
                      std::span<const std::byte> operand) {
  const shared_object& o = find_object(id);
  bytes old(o.element_bytes());
  std::byte* const at = asked_for(o, part, local, operand.size());
  mark_changed(o);
  change(o, at, what, type, operand.data(), old.data());
  order_change(at, true);
  return old;
}
std::pair<bool, bytes> compare_exchange_at_owner(shared_id id, std::uint32_t part, std::uint64_t local,
                                                 std::span<const std::byte> expected,
                                                 std::span<const std::byte> desired) {
  const shared_object& o = find_object(id);
  std::byte* const at = asked_for(o, part, local, expected.size());
  bytes old(expected.begin(), expected.end());
  mark_changed(o);
  const bool done = desired.size() == old.size() && exchange(o, at, old.data(), desired.data());
  order_change(at, done);
  return {done, std::move(old)};
}

std::span<const std::byte> as_bytes(const void* value, const spot& s) {
  return {static_cast<const std::byte*>(value), s.o.element_bytes()};
}
void take(const bytes& from, void* to) { std::memcpy(to, from.data(), from.size()); }

}  // namespace

// Apart from the functions below, so that these need no stack: they jump here or to the memory.
namespace {

[[gnu::noinline]] void read_anywhere(const shared_id& id, std::uint64_t row, std::uint64_t column, void* out,
                                     std::source_location where) {
  const spot s = find(id, row, column, access_kind::element_read);
  if (s.at != nullptr) {
    load(s.o, s.at, out);
    if (!s.o.watched) return;
    if (!asks_owners(s.o)) return watch(s.o, row, column, access_kind::element_read, where);
  }
  const layout::place p = s.o.how().find(row, column);
  const auto watched = hold_if_watched(s.o);
  take(ask_owner<&read_at_owner>(orrery::pe(s.o.how().pes[p.part]), id, p.part, p.local), out);
  note(watched, row, column, access_kind::element_read, where);
}

[[gnu::noinline]] void write_anywhere(const shared_id& id, std::uint64_t row, std::uint64_t column, const void* value,
                                      std::source_location where) {
  const spot s = find(id, row, column, access_kind::write);
  note_access(s.o, row, column, access_kind::write, where);
  if (s.at != nullptr) return store(s.o, s.at, value);
  ask_owner<&write_element_at_owner>(s.owner(), id, s.place.part, s.place.local, as_bytes(value, s));
}

[[gnu::noinline]] void read_checked(const shared_id& id, std::uint64_t row, std::uint64_t column, void* out,
                                    std::source_location where, const shared_object& o) {
  load(o, watched_at(o, row, column), out);
  // after the load: see asks_owners
  if (asks_owners(o)) return read_anywhere(id, row, column, out, where);
  note_element(o, row, column, access_kind::element_read, where);
}

[[gnu::noinline]] void write_checked(const shared_object& o, std::uint64_t row, std::uint64_t column, const void* value,
                                     std::source_location where) {
  note_element(o, row, column, access_kind::write, where);
  store(o, watched_at(o, row, column), value);
}

[[gnu::noinline]] void read_counted(const shared_object& o, std::uint64_t row, std::uint64_t column, void* out,
                                    std::source_location where) {
  count_read(*o.counts, o, row, column, where);
  load(o, watched_at(o, row, column), out);
}

[[gnu::noinline]] void write_counted(const shared_object& o, std::uint64_t row, std::uint64_t column, const void* value,
                                     std::source_location where) {
  count_write(*o.counts, o, row, column, where);
  store(o, watched_at(o, row, column), value);
}

// All that is not the usual case; `o` may be null. With the arguments of read_element in their
// places, so that it jumps here.
[[gnu::noinline]] void read_otherwise(const shared_id& id, std::uint64_t row, std::uint64_t column, void* out,
                                      std::source_location where, const shared_object* o) {
  if (o != nullptr && o->counts != nullptr) return read_counted(*o, row, column, out, where);
  if (o != nullptr && o->only_checked) return read_checked(id, row, column, out, where, *o);
  read_anywhere(id, row, column, out, where);
}

[[gnu::noinline]] void write_otherwise(const shared_id& id, std::uint64_t row, std::uint64_t column, const void* value,
                                       std::source_location where, const shared_object* o) {
  if (o != nullptr && o->counts != nullptr) return write_counted(*o, row, column, value, where);
  if (o != nullptr && o->only_checked) return write_checked(*o, row, column, value, where);
  write_anywhere(id, row, column, value, where);
}

}  // namespace

void read_element(const shared_id& id, std::uint64_t row, std::uint64_t column, void* out, std::source_location where) {
  const quick_spot s = find_quickly(id, row, column);
  if (s.at == nullptr) [[unlikely]]
    return read_otherwise(id, row, column, out, where, s.o);
  element_memory::load_inlined(*s.o, s.at, out);
}

void write_element(const shared_id& id, std::uint64_t row, std::uint64_t column, const void* value,
                   std::source_location where) {
  const quick_spot s = find_quickly(id, row, column);
  if (s.at == nullptr) [[unlikely]]
    return write_otherwise(id, row, column, value, where, s.o);
  element_memory::store_inlined(*s.o, s.at, value);
}

void change_element(const shared_id& id, std::uint64_t row, std::uint64_t column, element_change what, scalar type,
                    const void* operand, void* old, std::source_location where) {
  const spot s = find(id, row, column, access_kind::update);
  if (s.at != nullptr && !asks_owner_to_change(s.o)) [[likely]] {
    change(s.o, s.at, what, type, operand, old);
    return note_access(s.o, row, column, access_kind::update, where);
  }
  const auto watched = hold_if_watched(s.o);
  take(call<&change_at_owner>(s.owner(), id, s.place.part, s.place.local, what, type, as_bytes(operand, s)), old);
  note(watched, row, column, access_kind::update, where);
}

bool compare_exchange_element(const shared_id& id, std::uint64_t row, std::uint64_t column, void* expected,
                              const void* desired, std::source_location where) {
  const spot s = find(id, row, column, access_kind::update);
  if (s.at != nullptr && !asks_owner_to_change(s.o)) [[likely]] {
    const bool done = exchange(s.o, s.at, expected, desired);
    note_access(s.o, row, column, access_kind::update, where);
    return done;
  }
  const auto watched = hold_if_watched(s.o);
  const auto [done, old] = ask_owner<&compare_exchange_at_owner>(s.owner(), id, s.place.part, s.place.local,
                                                                 as_bytes(expected, s), as_bytes(desired, s));
  if (!done) take(old, expected);
  if (scheduler::causality* const order = here_pe().order().recorder(); done && order != nullptr) order->tick();
  note(watched, row, column, access_kind::update, where);
  return done;
}

void order_change(const void* element, bool gives) {
  scheduler::causality* const order = here_pe().order().recorder();
  if (order == nullptr || here_pe().active() == nullptr) return;
  // One clock stands for many elements, so that memory is bounded.
  static const char clocks[4096] = {};
  const char* const of = &clocks[reinterpret_cast<std::uintptr_t>(element) / 8 % sizeof clocks];
  order->take(of);
  if (gives) order->give(of);
}

void load_here(const shared_object& o, const std::byte* at, void* out) { load(o, at, out); }
void store_here(const shared_object& o, std::byte* at, const void* value) { store(o, at, value); }
void change_here(const shared_object& o, std::byte* at, element_change what, scalar type, const void* operand,
                 void* old) {
  change(o, at, what, type, operand, old);
}
bool compare_exchange_here(const shared_object& o, std::byte* at, void* expected, const void* desired) {
  return exchange(o, at, expected, desired);
}

std::uint32_t owner_of_element(const shared_id& id, std::uint64_t row, std::uint64_t column) {
  const shared_object& o = find_object(id);
  if (row >= o.rows || column >= o.columns) throw_outside(o, row, column);
  return o.how().pes[o.how().find(row, column).part];
}

void note_access(const shared_object& o, std::uint64_t row, std::uint64_t column, access_kind k,
                 std::source_location where) {
  if (o.watched) [[unlikely]]
    watch(o, row, column, k, where);
}

}  // namespace orrery::detail
