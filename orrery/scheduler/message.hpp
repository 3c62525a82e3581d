// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/envelope.hpp>

#include <bit>
#include <cstdint>
#include <vector>

namespace orrery::scheduler {

class causality;
struct handler;
class pe;

/// Mailboxes count in these units.
inline constexpr std::uint32_t charge_unit = 64;

/// A message that waits in a mailbox: an envelope and its payload, in memory of the receiving PE.
struct message {
  message* next;
  std::uint32_t source_pe;
  std::uint32_t bytes;  ///< of this allocation
  wire::envelope head;

  [[nodiscard]] std::byte* payload() noexcept { return head.payload(); }
  /// Its charge against the mailbox's limit, in units of charge_unit bytes.
  [[nodiscard]] std::uint32_t charge() const noexcept {
    const bool beside = head.form == wire::payload_form::owned || head.form == wire::payload_form::block;
    return charge_of(bytes, beside ? head.padding : 0);
  }
  [[nodiscard]] static constexpr std::uint32_t charge_of(std::uint32_t bytes, std::uint32_t pages_beside) noexcept {
    return bytes / charge_unit + pages_beside * std::uint32_t{wire::page_bytes / charge_unit};
  }
};
static_assert(sizeof(message) == 48);

/// Payloads in mailboxes and rings have this alignment; what needs more is boxed.
inline constexpr std::size_t payload_alignment = 16;

/// Memory of messages of one PE: size classes of 64 to 1,024 bytes, last in, first out; larger ones
/// come from malloc. Used by the PE's thread only. Memory that was once needed is kept until the PE
/// ends: the mailboxes' limits bound it.
class message_pool {
 public:
  message_pool() = default;
  message_pool(const message_pool&) = delete;
  message_pool& operator=(const message_pool&) = delete;
  ~message_pool();

  /// The largest payload for which there is a size class.
  static constexpr std::size_t largest = 1024 - sizeof(message);

  /// A message with room for a payload of `bytes`; `next`, `source_pe` and `head` are the caller's
  /// to set.
  [[nodiscard]] message* allocate(std::size_t payload) {
    const std::size_t total = payload + sizeof(message);
    const auto c = static_cast<unsigned>(std::bit_width((total - 1) >> 6));
    if (c < classes && free_[c] != nullptr) [[likely]] {
      message* m = free_[c];
      free_[c] = m->next;
      return m;
    }
    return allocate_slow(total, c);
  }

  /// From now on `c` is told of each message that is made or given back. Before the first one.
  void watch(causality& c) noexcept { watcher_ = &c; }

  void release(message* m) noexcept {
    const auto c = static_cast<unsigned>(std::bit_width((m->bytes - 1) >> 6));
    if (c < classes) [[likely]] {
      m->next = free_[c];
      free_[c] = m;
    } else {
      release_large(m);
    }
  }

 private:
  static constexpr unsigned classes = 5;  // 64, 128, 256, 512, 1024

  message* allocate_slow(std::size_t total, unsigned c);
  void release_large(message* m) noexcept;

  message* free_[classes] = {};
  std::vector<std::byte*> slabs_;
  std::size_t slab_bytes_ = 4 << 10;  // of the next one
  causality* watcher_ = nullptr;  // then all messages are large ones, so that each passes by here
};

}  // namespace orrery::scheduler
