// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/page_lead.hpp>
#include <orrery/wire/envelope.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>

namespace orrery::transport {

/// The subject of a part of a frame. `from_pe` and `to_pe` are those of the ring.
enum class section_kind : std::uint32_t {
  open = 1,      ///< a ring of `word` bytes begins
  records = 2,   ///< bytes of a ring from `position` on, which moves on by `word` bytes
  /// A record at `position` whose payload of so many bytes comes as messages with tag `word`.
  block = 3,
  /// The receiver has released the ring up to `position`; `word` is its stops, and `refused` above
  /// them.
  credit = 4,
  /// The state of node `from_pe`: `word` is a node_news, `position` 1 its flag, the payload a
  /// clause that says how.
  state = 5,
  /// The counters of the PEs are asked for, in round `word`; if `position` is 1, names before them.
  ask = 6,
  /// The answer: `counters_per_pe` words of each PE, in the order of their numbers, from `from_pe`
  /// on.
  counters = 7,
  /// Node `from_pe` is lost; `position` counts evictions from 1 on, the payload is a clause that
  /// says how.
  eviction = 8,
  /// To the first node: what follows of the sender's part of a file that the first node makes.
  part = 9,
  /// Some of the names that node `from_pe` has published, from byte `position` of `word` on.
  names = 10,
};

/// Calls `each(at, bytes)` for the parts of `piece` bytes in which a block travels, in their order,
/// as long as it returns true. Sender and receiver cut alike. False if it was stopped.
template <class Each>
bool for_each_piece(std::uint64_t block_bytes, std::uint64_t piece, Each&& each) {
  for (std::uint64_t at = 0; at < block_bytes; at += piece)
    if (!each(at, block_bytes - at < piece ? block_bytes - at : piece)) return false;
  return true;
}

/// The record's payload is a `block_ref`: such a record travels in a `block` section, and its block
/// beside it.
[[nodiscard]] inline bool has_block(const wire::envelope& e) noexcept {
  return e.form == wire::payload_form::block && (wire::is_message(e.kind) || e.kind == wire::record_kind::reply);
}

struct section {
  section_kind kind;
  std::uint32_t bytes;  ///< of the payload that follows; the next section begins at a multiple of 8
  std::uint32_t from_pe;
  std::uint32_t to_pe;
  std::uint64_t position;
  std::uint64_t word;
};
static_assert(sizeof(section) == 32);

struct frame_head {
  static constexpr std::uint64_t magic_value = 0x4d41'5246'5252'4f03;  // version 3, "ORRFRAM"
  std::uint64_t magic;
  std::uint32_t node;  ///< that has sent it
  std::uint32_t bytes;  ///< of the frame
  /// So many evictions its sender has told the receiver, those in the frame included.
  std::uint64_t epoch;
};

/// A message from one node to another: sections of all its rings, so that small records share the
/// cost of a message. A frame has 64 KiB at most.
class frame {
 public:
  static constexpr std::size_t capacity = 64 << 10;

  frame() : all_(static_cast<std::byte*>(::operator new[](page_lead + capacity, alignment))) {}

  void begin(std::uint32_t node) noexcept {
    const frame_head head{frame_head::magic_value, node, 0, 0};
    std::memcpy(data(), &head, sizeof head);
    used_ = sizeof head;
  }
  /// Bytes of a payload that still fit behind a section.
  [[nodiscard]] std::size_t room() const noexcept {
    return capacity - used_ < sizeof(section) ? 0 : (capacity - used_ - sizeof(section)) / 8 * 8;
  }
  [[nodiscard]] bool fits(std::size_t payload) const noexcept {
    return capacity - used_ >= sizeof(section) + payload + 7;
  }
  /// Appends a section; there is room for it. Where its payload of `s.bytes` is to be written.
  std::byte* add(const section& s) noexcept {
    std::byte* const at = data() + used_;
    std::memcpy(at, &s, sizeof s);
    used_ += sizeof s + (s.bytes + 7U) / 8 * 8;
    return at + sizeof s;
  }
  /// Where the next payload will be, so that its size may be found while it is written. See `add`.
  [[nodiscard]] std::byte* next_payload() noexcept { return data() + used_ + sizeof(section); }
  [[nodiscard]] bool is_empty() const noexcept { return used_ == sizeof(frame_head); }
  /// Complete, as it is sent.
  [[nodiscard]] std::span<const std::byte> finish(std::uint64_t epoch = 0) noexcept {
    std::memcpy(data() + offsetof(frame_head, epoch), &epoch, sizeof epoch);
    const auto bytes = static_cast<std::uint32_t>(used_);
    std::memcpy(data() + offsetof(frame_head, bytes), &bytes, sizeof bytes);
    return {data(), used_};
  }
  [[nodiscard]] std::span<std::byte> memory() noexcept { return {data(), capacity}; }

 private:
  static constexpr std::align_val_t alignment{page_bytes};
  struct aligned_delete {
    void operator()(std::byte* p) const noexcept { ::operator delete[](p, alignment); }
  };
  [[nodiscard]] std::byte* data() const noexcept { return all_.get() + page_lead; }

  wire::unique_ptr<std::byte, aligned_delete> all_;
  std::size_t used_ = sizeof(frame_head);
};

/// Takes a frame apart that came from another node. It believes nothing: what does not fit ends it,
/// and damaged() says so.
class frame_reader {
 public:
  struct item {
    section head;
    std::span<const std::byte> payload;
  };

  /// `from`: the node that the library names as the sender.
  frame_reader(std::span<const std::byte> bytes, std::uint32_t from) noexcept : left_(bytes) {
    frame_head head{};
    if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
    damaged_ = head.magic != frame_head::magic_value || head.node != from || head.bytes != bytes.size();
    epoch_ = head.epoch;
    if (!damaged_) left_ = left_.subspan(sizeof head);
  }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }
  [[nodiscard]] std::optional<item> next() noexcept {
    if (damaged_ || left_.empty()) return std::nullopt;
    section s;
    damaged_ = left_.size() < sizeof s;
    if (damaged_) return std::nullopt;
    std::memcpy(&s, left_.data(), sizeof s);
    left_ = left_.subspan(sizeof s);
    const std::size_t taken = (std::size_t{s.bytes} + 7) / 8 * 8;
    damaged_ = taken > left_.size();
    if (damaged_) return std::nullopt;
    const item found{s, left_.first(s.bytes)};
    left_ = left_.subspan(taken);
    return found;
  }

 private:
  std::span<const std::byte> left_;
  std::uint64_t epoch_ = 0;
  bool damaged_ = false;
};

}  // namespace orrery::transport
