// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/access.hpp>
#include <orrery/shared/access_census.hpp>
#include <orrery/shared/directory.hpp>
#include <orrery/shared/object.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/word_copy.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <sched.h>

namespace orrery::detail {

namespace {

using bytes = std::vector<std::byte>;

/// Held while an element is copied that the machine does not copy whole. Holders never park. A node
/// that is killed meanwhile leaves it locked: who waits for long looks whether the holder's node is
/// there, and takes the lock from a dead one.
class element_lock {
 public:
  element_lock(const shared_object& o, const std::byte* at)
      : word_(o.memory->head().lock[reinterpret_cast<std::uintptr_t>(at) / o.element_bytes() % memory_head::locks]) {
    const std::uint32_t self = here_pe().id() + 1;
    for (std::uint32_t tries = 1;; ++tries) {
      std::uint32_t holder = 0;
      // SYNC: acquire, with the destructor.
      if (word_.compare_exchange_weak(holder, self, std::memory_order_acquire)) return;
      if (holder == 0) continue;
      if (tries % 64 == 0) ::sched_yield();
      if (tries % 4096 == 0 && !here_pe().owner().reachable(holder - 1) &&
          word_.compare_exchange_strong(holder, self, std::memory_order_acquire))
        return;
    }
  }
  element_lock(const element_lock&) = delete;
  element_lock& operator=(const element_lock&) = delete;
  ~element_lock() { word_.store(0, std::memory_order_release); }  // SYNC: with the constructor

 private:
  std::atomic<std::uint32_t>& word_;
};

template <class W>
void load_word(const std::byte* at, void* out) noexcept {
  // SYNC: seq_cst, with store_word and the exchanges: an access is complete before the next one of
  // its process begins.
  const W w = std::atomic_ref<W>(*reinterpret_cast<W*>(const_cast<std::byte*>(at))).load();
  std::memcpy(out, &w, sizeof w);
}
template <class W>
void store_word(std::byte* at, const void* value) noexcept {
  W w;
  std::memcpy(&w, value, sizeof w);
  std::atomic_ref<W>(*reinterpret_cast<W*>(at)).store(w);  // SYNC: see load_word
}
template <class W>
bool exchange_word(std::byte* at, void* expected, const void* desired) noexcept {
  W e;
  W d;
  std::memcpy(&e, expected, sizeof e);
  std::memcpy(&d, desired, sizeof d);
  // SYNC: see load_word
  const bool done = std::atomic_ref<W>(*reinterpret_cast<W*>(at)).compare_exchange_strong(e, d);
  std::memcpy(expected, &e, sizeof e);
  return done;
}

void load(const shared_object& o, const std::byte* at, void* out) {
  switch (o.element_bytes()) {
    case 1:
      return load_word<std::uint8_t>(at, out);
    case 2:
      return load_word<std::uint16_t>(at, out);
    case 4:
      return load_word<std::uint32_t>(at, out);
    case 8:
      return load_word<std::uint64_t>(at, out);
    default: {
      const element_lock lock(o, at);
      copy_out(out, at, o.element_bytes());
    }
  }
}

void store(const shared_object& o, std::byte* at, const void* value) {
  switch (o.element_bytes()) {
    case 1:
      return store_word<std::uint8_t>(at, value);
    case 2:
      return store_word<std::uint16_t>(at, value);
    case 4:
      return store_word<std::uint32_t>(at, value);
    case 8:
      return store_word<std::uint64_t>(at, value);
    default: {
      const element_lock lock(o, at);
      copy_in(at, value, o.element_bytes());
    }
  }
}

bool exchange(const shared_object& o, std::byte* at, void* expected, const void* desired) {
  switch (o.element_bytes()) {
    case 1:
      return exchange_word<std::uint8_t>(at, expected, desired);
    case 2:
      return exchange_word<std::uint16_t>(at, expected, desired);
    case 4:
      return exchange_word<std::uint32_t>(at, expected, desired);
    case 8:
      return exchange_word<std::uint64_t>(at, expected, desired);
    default: {
      bytes before(o.element_bytes());
      const element_lock lock(o, at);
      copy_out(before.data(), at, before.size());
      const bool same = std::memcmp(before.data(), expected, before.size()) == 0;
      std::memcpy(expected, before.data(), before.size());
      if (same) copy_in(at, desired, o.element_bytes());
      return same;
    }
  }
}

/// Integers wrap around, as those of std::atomic do.
template <class T>
T combine(element_change what, T before, T x) {
  using number = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  const auto a = static_cast<number>(before);
  const auto b = static_cast<number>(x);
  switch (what) {
    case element_change::add:
      return static_cast<T>(a + b);
    case element_change::subtract:
      return static_cast<T>(a - b);
    case element_change::multiply:
      return static_cast<T>(a * b);
    case element_change::divide:
      if constexpr (std::is_integral_v<T>) {
        if (x == 0) throw std::domain_error("an integer of shared data was to be divided by 0; it is as it was");
        // the least number has no opposite
        if (x == static_cast<T>(-1)) return static_cast<T>(number{0} - a);
      }
      return static_cast<T>(before / x);
    case element_change::least:
      return std::min(before, x);
    case element_change::greatest:
      return std::max(before, x);
    case element_change::exchange:
      break;
    default:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(what == element_change::bit_and ? a & b : what == element_change::bit_or ? a | b : a ^ b);
      break;  // a message that makes no sense
  }
  return x;
}

template <class T>
void change_scalar(const shared_object& o, std::byte* at, element_change what, const void* operand, void* old) {
  T x;
  std::memcpy(&x, operand, sizeof x);
  T before;
  load(o, at, &before);
  for (;;) {
    const T after = combine(what, before, x);
    if (exchange(o, at, &before, &after)) break;
  }
  std::memcpy(old, &before, sizeof before);
}

void change(const shared_object& o, std::byte* at, element_change what, scalar type, const void* operand, void* old) {
  switch (type) {
    case scalar::i8:
      return change_scalar<std::int8_t>(o, at, what, operand, old);
    case scalar::i16:
      return change_scalar<std::int16_t>(o, at, what, operand, old);
    case scalar::i32:
      return change_scalar<std::int32_t>(o, at, what, operand, old);
    case scalar::i64:
      return change_scalar<std::int64_t>(o, at, what, operand, old);
    case scalar::u8:
      return change_scalar<std::uint8_t>(o, at, what, operand, old);
    case scalar::u16:
      return change_scalar<std::uint16_t>(o, at, what, operand, old);
    case scalar::u32:
      return change_scalar<std::uint32_t>(o, at, what, operand, old);
    case scalar::u64:
      return change_scalar<std::uint64_t>(o, at, what, operand, old);
    case scalar::f32:
      return change_scalar<float>(o, at, what, operand, old);
    case scalar::f64:
      return change_scalar<double>(o, at, what, operand, old);
    case scalar::none:
      break;
  }
  load(o, at, old);  // exchange: the only change of what is no number
  while (!exchange(o, at, old, operand)) {
  }
}

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
  if (self.order() != nullptr) note_element(o, row, column, k, where);
  if (self.settings().advise_for) {
    auto& census = shared_directory::of_this_pe().census;
    if (census == nullptr) census = std::make_unique<access_census>();
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

/// An access is complete: to be told of. Its knowledge of the order counts for it, too.
void note(const shared_id& id, std::uint64_t row, std::uint64_t column, access_kind k, std::source_location where) {
  note_access(find_object(id), row, column, k, where);
}

/// A reader of its elements has to ask their owners: see memory_head::changed.
bool asks_owners(const shared_object& o) {
  // SYNC: acquire, with change_at_owner: after a read that has seen what was changed this sees the
  // mark.
  return o.watched && here_pe().order() != nullptr && o.memory->head().changed.load(std::memory_order_acquire) != 0;
}
/// Calls the owner for an access from which nobody learns what this process did before.
template <auto F, class... A>
auto ask_owner(placement owner, const A&... arguments) {
  const scheduler::causality::request_only quiet(here_pe().order());
  return call<F>(owner, arguments...);
}
/// A change is made by the owner, although the element is memory here.
bool asks_owner_to_change(const shared_object& o) { return o.watched && here_pe().order() != nullptr; }
/// At the owner, before a change.
void mark_changed(const shared_object& o) {
  if (here_pe().order() != nullptr) o.memory->head().changed.store(1);
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
  take(ask_owner<&read_at_owner>(orrery::pe(s.o.how().pes[p.part]), id, p.part, p.local), out);
  note(id, row, column, access_kind::element_read, where);
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

}  // namespace

void read_element(const shared_id& id, std::uint64_t row, std::uint64_t column, void* out, std::source_location where) {
  const quick_spot s = find_quickly(id, row, column);
  if (s.at != nullptr) [[likely]]
    return load(*s.o, s.at, out);
  if (s.o != nullptr && s.o->counts != nullptr) return read_counted(*s.o, row, column, out, where);
  if (s.o != nullptr && s.o->only_checked) return read_checked(id, row, column, out, where, *s.o);
  read_anywhere(id, row, column, out, where);
}

void write_element(const shared_id& id, std::uint64_t row, std::uint64_t column, const void* value,
                   std::source_location where) {
  const quick_spot s = find_quickly(id, row, column);
  if (s.at != nullptr) [[likely]]
    return store(*s.o, s.at, value);
  if (s.o != nullptr && s.o->counts != nullptr) return write_counted(*s.o, row, column, value, where);
  if (s.o != nullptr && s.o->only_checked) return write_checked(*s.o, row, column, value, where);
  write_anywhere(id, row, column, value, where);
}

void change_element(const shared_id& id, std::uint64_t row, std::uint64_t column, element_change what, scalar type,
                    const void* operand, void* old, std::source_location where) {
  const spot s = find(id, row, column, access_kind::update);
  if (s.at != nullptr && !asks_owner_to_change(s.o)) [[likely]] {
    change(s.o, s.at, what, type, operand, old);
    return note_access(s.o, row, column, access_kind::update, where);
  }
  take(call<&change_at_owner>(s.owner(), id, s.place.part, s.place.local, what, type, as_bytes(operand, s)), old);
  note(id, row, column, access_kind::update, where);
}

bool compare_exchange_element(const shared_id& id, std::uint64_t row, std::uint64_t column, void* expected,
                              const void* desired, std::source_location where) {
  const spot s = find(id, row, column, access_kind::update);
  if (s.at != nullptr && !asks_owner_to_change(s.o)) [[likely]] {
    const bool done = exchange(s.o, s.at, expected, desired);
    note_access(s.o, row, column, access_kind::update, where);
    return done;
  }
  const auto [done, old] = ask_owner<&compare_exchange_at_owner>(s.owner(), id, s.place.part, s.place.local,
                                                                 as_bytes(expected, s), as_bytes(desired, s));
  if (!done) take(old, expected);
  if (scheduler::causality* const order = here_pe().order(); done && order != nullptr) order->tick();
  note(id, row, column, access_kind::update, where);
  return done;
}

void order_change(const void* element, bool gives) {
  scheduler::causality* const order = here_pe().order();
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
