// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/sink.hpp>

#include <concepts>
#include <cstdint>
#include <vector>

namespace orrery::scheduler {

[[noreturn, gnu::cold]] void throw_too_many_calls(std::uint64_t most);

struct no_note {};

/// The calls whose answer is to come from elsewhere, each by the number that its answer brings
/// along.
///
/// Problem: another node must not be given the address of a sink: what it answers may be late,
/// wrong, or said twice. So each call has a number: the place of its sink in a table and, above it,
/// a generation that changes when the place is used again. An answer to a call that has ended finds
/// nothing. A call may carry a note, by which those are found that something has made void.
///
/// Owned by a part of a PE, used on the PE's thread. Invariants: a number in use is not 0; a place
/// is in use or in the free list.
///
///     call_table<std::uint32_t, 22> calls;
///     auto number = calls.pend(sink);
///     if (sink* s = calls.take(number)) complete(*s);
template <std::unsigned_integral Number, unsigned IndexBits, class Note = no_note>
class call_table {
 public:
  static constexpr Number most = (Number{1} << IndexBits) - 1;

  call_table() : entries_(1) {}  // a number that is 0 in its place is none
  call_table(const call_table&) = delete;
  call_table& operator=(const call_table&) = delete;

  /// Registers a sink until take(). Throws world_error when `most` wait, std::bad_alloc.
  [[nodiscard]] Number pend(sink& s, const Note& note = {}) {
    std::uint32_t index = free_;
    if (index != 0) {
      free_ = entries_[index].next;
    } else {
      if (entries_.size() > most) throw_too_many_calls(most);
      index = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    }
    entry& e = entries_[index];
    e.waiting = &s;
    e.note = note;
    return number_of(index);
  }
  /// The sink of a call; null if it waits no more, or was never made.
  [[nodiscard]] sink* find(Number number) const noexcept {
    const auto index = static_cast<std::uint32_t>(number & most);
    if (index == 0 || index >= entries_.size() || number_of(index) != number) return nullptr;
    return entries_[index].waiting;
  }
  /// The same, and it is registered no more.
  [[nodiscard]] sink* take(Number number) noexcept {
    sink* const s = find(number);
    if (s == nullptr) return nullptr;
    const auto index = static_cast<std::uint32_t>(number & most);
    entry& e = entries_[index];
    e.waiting = nullptr;
    e.generation = (e.generation + 1) & generations;
    if (e.generation == 0) e.generation = 1;
    e.next = free_;
    free_ = index;
    return s;
  }
  /// Takes out all for which is_over(sink, note) is true, and calls end(sink, note) for each, which
  /// may register and take others.
  template <class Predicate, class End>
  void take_if(Predicate is_over, End end) {
    for (std::uint32_t i = 1; i < entries_.size(); ++i) {
      if (entries_[i].waiting == nullptr || !is_over(*entries_[i].waiting, entries_[i].note)) continue;
      const Note note = entries_[i].note;
      end(*take(number_of(i)), note);
    }
  }

 private:
  static constexpr Number generations = static_cast<Number>(~Number{0}) >> IndexBits;

  struct entry {
    sink* waiting = nullptr;
    std::uint32_t generation = 1;
    std::uint32_t next = 0;
    [[no_unique_address]] Note note{};
  };
  [[nodiscard]] Number number_of(std::uint32_t index) const noexcept {
    return static_cast<Number>(Number{entries_[index].generation} << IndexBits | index);
  }

  std::vector<entry> entries_;
  std::uint32_t free_ = 0;
};

}  // namespace orrery::scheduler
