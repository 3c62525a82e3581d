// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/slot.hpp>
#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::scheduler {

/// The slots of a PE: where each of its processes is, and which are free.
///
/// Problem: a pointer to a slot has to stay good while a method of it is parked, and the table may
/// have to hold tens of millions. So the table's addresses are reserved when it is made, and memory
/// comes with the first use of a slot: a slot never moves. The one that was freed last is used
/// first, as it is in the cache. A slot keeps a generation, so that the address of a process that
/// has ended finds nothing.
///
/// Owned by a PE, used by its thread only. Invariants: (1) a slot below the number ever used is in
/// the free list, or was given out;
/// (2) the generation of a slot is never 0.
///
///     process_table table(pe, process_table::most_slots, true);
///     slot* s = table.take_free();
///     if (s == nullptr) s = &table.take_new();
///     assert(table.find(table.index_of(*s), s->generation) == s);
///     table.give_back(*s);
class process_table {
 public:
  static constexpr std::uint32_t most_slots = 1U << 26;

  /// Room for `most` slots, or fewer if there are not as many addresses. Huge pages are quicker to
  /// look up, and cost 2 MiB at the first use. Throws std::bad_alloc.
  process_table(std::uint32_t pe, std::uint32_t most, bool in_huge_pages);
  process_table(const process_table&) = delete;
  process_table& operator=(const process_table&) = delete;
  ~process_table();

  /// The process, or null if it is gone.
  [[nodiscard]] slot* find(std::uint32_t index, std::uint32_t generation) const noexcept {
    if (index >= used_) [[unlikely]]
      return nullptr;
    slot* s = slots_ + index;
    return s->generation == generation && s->state != process_state::free ? s : nullptr;
  }
  [[nodiscard]] std::uint32_t index_of(const slot& s) const noexcept { return static_cast<std::uint32_t>(&s - slots_); }
  [[nodiscard]] address address_of(const slot& s) const noexcept { return {pe_, index_of(s), s.generation}; }

  /// The slot that was freed last, in state `running`; null: none is free.
  [[nodiscard]] slot* take_free() noexcept {
    if (free_ == wire::no_slot) return nullptr;
    slot& s = slots_[free_];
    free_ = s.link;
    s.charge = 0;
    s.state = process_state::running;
    return &s;
  }
  /// One that was never used, in state `running`. Throws std::bad_alloc when the table is full.
  [[nodiscard]] slot& take_new();
  /// Ends the process for who looks: its address finds nothing any more. The mailbox stays as it
  /// is, until give_back().
  void close(slot& s) noexcept;
  /// The slot may be taken again. It must be closed, and its mailbox empty.
  void give_back(slot& s) noexcept {
    s.link = free_;
    free_ = index_of(s);
  }

  /// All slots that were ever used: those in state `free` hold no process.
  [[nodiscard]] std::span<slot> all() const noexcept { return {slots_, used_}; }
  [[nodiscard]] std::uint32_t used() const noexcept { return used_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint32_t pe() const noexcept { return pe_; }
  /// The first slot, which may not be used yet.
  [[nodiscard]] slot* begin_of_table() const noexcept { return slots_; }

 private:
  slot* slots_ = nullptr;
  std::uint32_t used_ = 0;
  std::uint32_t free_ = wire::no_slot;
  std::uint32_t pe_;
  std::uint32_t capacity_ = 0;
};

}  // namespace orrery::scheduler
