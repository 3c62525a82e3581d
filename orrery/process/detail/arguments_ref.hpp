// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/codec.hpp>
#include <orrery/wire/envelope.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::detail {

/// The arguments of one message, of whatever types, for code that is compiled once: what sends them
/// to another PE. Refers to three functions of the caller, which must outlive it.
class arguments_ref {
 public:
  /// `size()`: bytes of the wire form. `write(writer&)`: writes that. `move(void* at)`: moves the
  /// arguments into a new payload of the owned form at `at`. `owned_bytes`: its size; `pages`: what
  /// they hold in memory of their own.
  template <class Size, class Write, class Move>
  arguments_ref(const Size& size, const Write& write, const Move& move, std::size_t owned_bytes, std::uint16_t pages,
                wire::record_kind level = wire::record_kind::message) noexcept
      : owned_bytes_(static_cast<std::uint32_t>(owned_bytes)),
        pages_(pages),
        level_(level),
        size_at_(&size),
        write_at_(&write),
        move_at_(&move),
        size_([](const void* f) { return (*static_cast<const Size*>(f))(); }),
        write_([](const void* f, orrery::writer& w) { (*static_cast<const Write*>(f))(w); }),
        move_([](const void* f, void* at) { (*static_cast<const Move*>(f))(at); }) {}

  [[nodiscard]] std::uint32_t owned_bytes() const noexcept { return owned_bytes_; }
  [[nodiscard]] std::uint16_t pages() const noexcept { return pages_; }
  /// The kind of the message: message, urgent or background.
  [[nodiscard]] wire::record_kind level() const noexcept { return level_; }
  [[nodiscard]] std::size_t wire_size() const { return size_(size_at_); }
  void write(std::span<std::byte> to) const {
    orrery::writer w(to);
    write_(write_at_, w);
  }
  /// At most once.
  void move(void* at) const { move_(move_at_, at); }

 private:
  std::uint32_t owned_bytes_;
  std::uint16_t pages_;
  wire::record_kind level_;
  const void* size_at_;
  const void* write_at_;
  const void* move_at_;
  std::size_t (*size_)(const void*);
  void (*write_)(const void*, orrery::writer&);
  void (*move_)(const void*, void*);
};

}  // namespace orrery::detail
