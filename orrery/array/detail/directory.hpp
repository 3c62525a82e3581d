// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/answer.hpp>
#include <orrery/array/detail/array_handler.hpp>
#include <orrery/array/detail/array_pes.hpp>
#include <orrery/array/detail/array_waits.hpp>
#include <orrery/array/detail/message_sections.hpp>
#include <orrery/array/detail/tell.hpp>
#include <orrery/process/detail/result_sink.hpp>
#include <orrery/process/detail/send.hpp>
#include <orrery/process/future.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orrery::detail {

class array_core;
class outbox;
struct cell_base;

/// Throws process_gone, or usage_error (a null array, or one of another program): there is no part
/// of that array on this PE.
[[noreturn]] void throw_no_array(std::uint32_t id);

/// The arrays of a PE, and the calls of this PE whose answer is still to come. Owned by the PE,
/// used on its thread.
class array_directory final : public scheduler::layer_state, public scheduler::wait_watcher {
 public:
  explicit array_directory(pe& self);
  ~array_directory() override;

  [[nodiscard]] static array_directory& of(pe& self) {
    auto& state = self.layers().of(scheduler::upper_layer::array);
    if (state == nullptr) [[unlikely]]
      make(self);
    return static_cast<array_directory&>(*state);
  }

  /// The part of an array on this PE, or null if there is no such array.
  [[nodiscard]] array_core* find(std::uint32_t id) noexcept {
    const cached& c = cache_[id % cache_size];
    if (c.id == id) [[likely]]
      return c.part;
    return find_slow(id);
  }
  /// The array of a process that is to become an element; null if it is none. Slow.
  [[nodiscard]] array_core* part_of_process(const slot& s) const noexcept;
  /// The array of a process that is an element, also in its constructor; null if it is none.
  [[nodiscard]] const array_core* part_around(const slot& s) const noexcept;
  /// A number for a new array. Throws world_error when there are too many.
  [[nodiscard]] std::uint32_t new_id();
  /// This PE in ids, which have room for 18 bits.
  [[nodiscard]] std::uint32_t maker();
  void add(std::uint32_t id, wire::unique_ptr<array_core> part);
  void remove(std::uint32_t id) noexcept;

  // --- order (order.hpp) -------------------------------------------------------------------------
  using find_cell = cell_base& (*)(void* object);
  /// The class of elements with this number: how to find their cells.
  void note_elements(std::uint32_t class_number, find_cell f);
  /// The streams of who is sending: the element whose method runs, or this PE.
  [[nodiscard]] outbox& sender();
  /// A name for a stream that begins on this PE; never 0.
  [[nodiscard]] std::uint64_t new_stream() noexcept { return std::uint64_t{maker()} << 40 | ++streams_; }

  /// The name of an array that was destroyed lately; else empty.
  [[nodiscard]] std::string_view name_of_gone(std::uint32_t id) const noexcept;
  /// The calls of this PE that wait for an answer.
  [[nodiscard]] array_waits& waits() noexcept { return waits_; }
  void pes_lost(pe& self) noexcept override;
  void cancel_waits(pe& self) noexcept override;
  void fetch(int step) const noexcept override;
  /// Work of an element counts for its array until it is done (quiescence.cpp).
  std::uint64_t begin_work(const slot& by) noexcept override;
  void end_work(std::uint64_t number) noexcept override;
  [[nodiscard]] std::string name_of(const slot& s) const override;
  [[nodiscard]] std::string explain_waits() const override;

  /// A message from another PE that arrives in pieces.
  struct incomplete_message {
    bytes data;
    std::size_t total = 0;
  };
  [[nodiscard]] incomplete_message& incomplete_from(std::uint32_t pe);

 private:
  static void make(pe& self);
  struct tables;  // not here: each program with an array would compile them
  static constexpr std::size_t cache_size = 16;
  static constexpr int fetched_parts = 2;
  struct cached {
    std::uint32_t id = 0;
    array_core* part = nullptr;
  };
  /// The cell of a process that is an element, also in its constructor; else null.
  [[nodiscard]] cell_base* cell_of(const slot& s) const noexcept;
  void note_gone(std::uint32_t id, const std::string& name) noexcept;
  array_core* find_slow(std::uint32_t id) noexcept;

  cached cache_[cache_size];
  pe& self_;
  const wire::unique_ptr<tables> tables_;
  array_waits waits_;
  std::uint64_t streams_ = 0;
};

}  // namespace orrery::detail
