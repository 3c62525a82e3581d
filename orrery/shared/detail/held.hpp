// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/finish.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/access_record.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/shared_handle.hpp>
#include <orrery/shared/shared_element.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/wire/archive.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orrery {
class team_member;
}

// Elements that are no plain bytes, such as strings: the PE that owns them holds them as objects,
// and others get copies of them in messages.
//
// Problem: bytes of such an element mean nothing elsewhere, so nothing of what reads and writes
// shared memory can be used. But distributions, parts and scopes are the same. So the shared object
// has one byte for each element, which nobody touches; each owner has a vector of the elements
// beside it; and the functions here, which know the type, take the place of those of access.hpp and
// region.hpp. All may park, and throw as those do.
namespace orrery::detail {

/// The elements of the part that this PE owns, which begin as T{}.
template <class T>
[[nodiscard]] std::vector<T>& held_elements(const shared_object& o) {
  if (o.held == nullptr) {
    const bool owns = o.own_part != o.how().parts();
    o.held = std::make_shared<std::vector<T>>(owns ? o.how().elements_of(o.own_part) : 0);
  }
  return *static_cast<std::vector<T>*>(o.held.get());
}

/// Where an element lies, for one access to it, which the checker and the adviser are told of.
struct held_place {
  std::uint32_t pe;
  std::uint32_t part;
  std::uint64_t local;
  [[nodiscard]] bool is_here() const { return pe == this_pe(); }
};
[[nodiscard]] held_place find_held(const shared_id& id, std::uint64_t row, std::uint64_t column, access_kind k,
                                   std::source_location where);

/// Rows of a part that travel, and how many of their elements have done so, row after row.
struct held_run : part_region {
  std::uint64_t done = 0;

  [[nodiscard]] std::uint64_t count() const noexcept { return rows * columns; }
  /// The number in the part of the n-th element.
  [[nodiscard]] std::uint64_t local(std::uint64_t n, std::uint64_t part_columns) const noexcept {
    return (row + n / columns) * part_columns + column + n % columns;
  }
  template <class A>
  void serialize(A& a) {
    a & part & row & rows & column & columns & done;
  }
};
/// The runs of all parts that a rectangle meets. It is inside.
[[nodiscard]] std::vector<held_run> held_runs(const shared_object& o, const region& r);
/// At an owner: throws bad_message if these are not elements of its part.
void require_held(const shared_object& o, std::uint32_t part, std::uint64_t local);
void require_held(const shared_object& o, const held_run& r);
/// The row and the column of the n-th element of a run.
struct element_place {
  std::uint64_t row;
  std::uint64_t column;
};
[[nodiscard]] element_place place_in(const shared_object& o, const held_run& r, std::uint64_t n);
/// The object, for a region that is inside and whose owners are there, as else this throws.
[[nodiscard]] std::shared_ptr<const shared_object> hold_for(const shared_id& id, const region& r);
/// The checker is told that the region is accessed, from now until the watch ends.
void watch_region(watched_access& watch, const std::shared_ptr<const shared_object>& o, access_kind k, const region& r,
                  const std::source_location& where, const char* what);

/// All members of the team have come.
void meet_team(team_member& team);

constexpr std::size_t held_bytes = 256 << 10;  ///< of a message, unless one element is larger

/// How many of the elements fit into a message; at least one.
template <class T>
[[nodiscard]] std::size_t fitting(std::size_t most, const auto& element) {
  std::size_t total = 0;
  for (std::size_t n = 0; n < most; ++n) {
    sizer s;
    s& static_cast<const T&>(element(n));
    total += s.size();
    if (n != 0 && total > held_bytes) return n;
  }
  return most;
}

/// The two are equal, or are sent as the same bytes: a value with a NaN in it does not equal
/// itself.
template <std::equality_comparable T>
[[nodiscard]] bool is_same_value(const T& a, const T& b) {
  if (a == b) return true;
  const auto bytes_of = [](const T& x) {
    std::vector<std::byte> all(wire_size(x));
    writer w(all);
    orrery::write(w, x);
    return all;
  };
  return bytes_of(a) == bytes_of(b);
}

// --- at the owner --------------------------------------------------------------------------------

template <class T>
T read_held_here(shared_id id, std::uint32_t part, std::uint64_t local) {
  const auto kept = hold_object(id);
  const shared_object& o = *kept;
  require_held(o, part, local);
  return held_elements<T>(o)[local];
}
template <class T>
T exchange_held_here(shared_id id, std::uint32_t part, std::uint64_t local, T value) {
  const auto kept = hold_object(id);
  const shared_object& o = *kept;
  require_held(o, part, local);
  T& element = held_elements<T>(o)[local];
  order_change(&element, true);
  return std::exchange(element, std::move(value));
}
template <class T>
void write_held_here(shared_id id, std::uint32_t part, std::uint64_t local, T value) {
  const auto kept = hold_object(id);
  require_held(*kept, part, local);
  held_elements<T>(*kept)[local] = std::move(value);
}
template <class T>
std::pair<bool, T> compare_exchange_held_here(shared_id id, std::uint32_t part, std::uint64_t local, const T& expected,
                                              T desired) {
  const auto kept = hold_object(id);
  const shared_object& o = *kept;
  require_held(o, part, local);
  T& element = held_elements<T>(o)[local];
  const bool same = is_same_value(element, expected);
  order_change(&element, same);
  if (!same) return {false, element};
  element = std::move(desired);
  return {true, expected};
}
/// As many of the elements that are not done as a message may have.
template <class T>
std::vector<T> read_run_here(shared_id id, held_run r) {
  const auto kept = hold_object(id);
  const shared_object& o = *kept;
  require_held(o, r);
  const std::vector<T>& all = held_elements<T>(o);
  const std::uint64_t columns = o.how().columns_of(r.part);
  const auto element = [&](std::size_t n) -> const T& { return all[r.local(r.done + n, columns)]; };
  const std::size_t n = fitting<T>(r.count() - r.done, element);
  std::vector<T> some;
  some.reserve(n);
  for (std::size_t i = 0; i < n; ++i) some.push_back(element(i));
  return some;
}
template <class T>
void write_run_here(shared_id id, held_run r, std::vector<T> values) {
  const auto kept = hold_object(id);
  const shared_object& o = *kept;
  require_held(o, r);
  if (values.size() > r.count() - r.done)
    throw bad_message(errc::message_corrupt, o.about.label + ": more elements than there is place for");
  std::vector<T>& all = held_elements<T>(o);
  const std::uint64_t columns = o.how().columns_of(r.part);
  for (std::size_t i = 0; i < values.size(); ++i) all[r.local(r.done + i, columns)] = std::move(values[i]);
}
template <class T>
void write_list_here(shared_id id, std::uint32_t part, const std::vector<std::uint64_t>& locals,
                     std::vector<T> values) {
  const auto kept = hold_object(id);
  const shared_object& o = *kept;
  for (const std::uint64_t local : locals) require_held(o, part, local);
  if (values.size() != locals.size())
    throw bad_message(errc::message_corrupt, o.about.label + ": another number of elements than of places");
  std::vector<T>& all = held_elements<T>(o);
  for (std::size_t i = 0; i < values.size(); ++i) all[locals[i]] = std::move(values[i]);
}
template <class T>
void fill_held_here(shared_id id, const T& value) {
  std::ranges::fill(held_elements<T>(*hold_object(id)), value);
}

/// Programs that join may ask for all of that, whatever this program does itself.
template <class T>
void serve_held() noexcept {
  (void)&function_handler<&read_held_here<T>>::instance;
  (void)&function_handler<&exchange_held_here<T>>::instance;
  (void)&function_handler<&write_held_here<T>>::instance;
  (void)&function_handler<&read_run_here<T>>::instance;
  (void)&function_handler<&write_run_here<T>>::instance;
  (void)&function_handler<&write_list_here<T>>::instance;
  (void)&function_handler<&fill_held_here<T>>::instance;
  if constexpr (std::equality_comparable<T>) (void)&function_handler<&compare_exchange_held_here<T>>::instance;
}

// --- anywhere ------------------------------------------------------------------------------------

template <class T>
[[nodiscard]] T read_held(const shared_id& id, std::uint64_t row, std::uint64_t column, std::source_location where) {
  const held_place p = find_held(id, row, column, access_kind::element_read, where);
  if (p.is_here()) return read_held_here<T>(id, p.part, p.local);
  return call<&read_held_here<T>>(orrery::pe(p.pe), id, p.part, p.local);
}
template <class T>
void write_held(const shared_id& id, std::uint64_t row, std::uint64_t column, const T& value,
                std::source_location where) {
  const held_place p = find_held(id, row, column, access_kind::write, where);
  if (p.is_here()) return write_held_here<T>(id, p.part, p.local, value);
  call<&write_held_here<T>>(orrery::pe(p.pe), id, p.part, p.local, value);
}

/// Copies a region to local memory, row after row.
template <class T>
class held_reader {
 public:
  /// Asks. The memory must stay until finish() has returned.
  void begin(std::shared_ptr<const shared_object> from, const region& r, T* to) {
    from_ = std::move(from);
    region_ = r;
    to_ = to;
    for (const held_run& run : held_runs(*from_, r)) {
      const std::uint32_t owner = from_->how().pes[run.part];
      if (owner != this_pe()) asked_.push_back({run, start_call<&read_run_here<T>>(orrery::pe(owner), id(), run)});
    }
    for (held_run run : held_runs(*from_, r))
      while (from_->how().pes[run.part] == this_pe() && run.done != run.count()) put(run, read_run_here<T>(id(), run));
  }
  /// Parks until all is there.
  void finish() {
    for (request& q : asked_)
      for (;;) {
        std::vector<T> some = q.answer.get();
        if (some.empty() || some.size() > q.run.count() - q.run.done)
          throw bad_message(errc::message_corrupt, from_->about.label + ": another number of elements than was asked");
        put(q.run, std::move(some));
        if (q.run.done == q.run.count()) break;
        q.answer = start_call<&read_run_here<T>>(orrery::pe(from_->how().pes[q.run.part]), id(), q.run);
      }
    asked_.clear();
  }

 private:
  struct request {
    held_run run;
    future<std::vector<T>> answer;
  };
  [[nodiscard]] const shared_id& id() const noexcept { return from_->about.id; }
  void put(held_run& r, std::vector<T> some) {
    for (T& value : some) {
      const element_place p = place_in(*from_, r, r.done++);
      to_[(p.row - region_.row) * region_.columns + p.column - region_.column] = std::move(value);
    }
  }

  std::shared_ptr<const shared_object> from_;
  region region_;
  T* to_ = nullptr;
  std::vector<request> asked_;
};

template <class T>
void read_held_region(const shared_id& id, const region& r, T* to, const std::source_location& where) {
  const auto o = hold_for(id, r);
  watched_access watch;
  watch_region(watch, o, access_kind::read, r, where, "copy");
  held_reader<T> reader;
  reader.begin(o, r, to);
  reader.finish();
}

template <class T>
void write_held_region(const T* from, const shared_id& id, const region& to, const std::source_location& where) {
  const auto o = hold_for(id, to);
  watched_access watch;
  watch_region(watch, o, access_kind::write, to, where, "copy");
  std::vector<future<void>> sent;
  finish(sent, [&] {
    for (held_run r : held_runs(*o, to)) {
      const auto element = [&](std::size_t n) -> const T& {
        const element_place p = place_in(*o, r, r.done + n);
        return from[(p.row - to.row) * to.columns + p.column - to.column];
      };
      while (r.done != r.count()) {
        std::vector<T> some(fitting<T>(r.count() - r.done, element));
        for (std::size_t i = 0; i < some.size(); ++i) some[i] = element(i);
        sent.push_back(start_call<&write_run_here<T>>(orrery::pe(o->how().pes[r.part]), id, r, some));
        r.done += some.size();
        if (sent.size() % 16 == 0) sent[sent.size() - 16].wait();
      }
    }
  });
}

template <class T>
void fill_held(const shared_id& id, const T& value, const std::source_location& where) {
  const auto o = hold_object(id);
  watched_access watch;
  watch_region(watch, o, access_kind::write, {0, o->rows, 0, o->columns}, where, "fill");
  std::vector<future<void>> all;
  finish(all, [&] {
    for (const std::uint32_t p : o->how().pes) all.push_back(start_call<&fill_held_here<T>>(orrery::pe(p), id, value));
  });
}

}  // namespace orrery::detail
