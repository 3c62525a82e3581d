// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orrery::scheduler {
class pe;
}

namespace orrery::task_detail {

/// The memory of a buffer, which messages pass on without a copy.
///
/// Problem: inside a node a pointer is enough; for another OS process the bytes must lie in shared
/// memory before anybody knows who will read them. So a buffer is a block of this node's segment,
/// with room in front of its bytes for the message that will carry it: the two travel as one
/// payload block, and rings, mailboxes, machines and losses treat it as any other. A buffer that
/// came from another node is a *guest*: the block there is in use until the guest ends. Where there
/// is no segment, or it is full, the memory is the heap's, and is copied when it leaves the node.
///
/// Owned by a message or by a buffer_table; moved, not copied. Made, moved between and ended on the
/// threads of PEs of one node.
class buffer_memory {
 public:
  /// Room before the bytes of a block.
  static constexpr std::size_t headroom = 4096;

  buffer_memory() = default;
  buffer_memory(buffer_memory&& o) noexcept { swap(o); }
  buffer_memory& operator=(buffer_memory&& o) noexcept {
    buffer_memory old(std::move(*this));
    swap(o);
    return *this;
  }
  ~buffer_memory();

  /// Memory for `size` bytes, which hold anything. Throws std::bad_alloc.
  [[nodiscard]] static buffer_memory make(scheduler::pe& self, std::size_t size);
  /// The same on the heap, for bytes that never leave the node, or were copied into it.
  [[nodiscard]] static buffer_memory on_heap(std::size_t size);
  /// Bytes in a block that PE `source` has sent to PE `self`, which gives it back.
  [[nodiscard]] static buffer_memory guest(scheduler::pe& self, std::uint32_t source, std::uint64_t block,
                                           std::byte* data, std::size_t size) noexcept;
  /// A copy in pages of its own, and the old memory made inaccessible: what uses a buffer that was
  /// sent is caught there. Throws std::bad_alloc.
  [[nodiscard]] buffer_memory in_other_pages() const;
  /// True where use after sending is caught: builds with asserts, and worlds with
  /// --orrery-serialize.
  [[nodiscard]] static bool is_checked() noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// It lies in this node's segment, behind its headroom.
  [[nodiscard]] bool is_block() const noexcept { return kind_ == kind::block; }
  [[nodiscard]] std::byte* block() const noexcept { return data_ - headroom; }
  /// The block belongs to PE `to` of another node from now on, which gives it back. Returns its
  /// offset in the segment.
  std::uint64_t lend(scheduler::pe& self, std::uint32_t to);
  /// Its pages lose their memory, and become inaccessible; nothing if they are not its own. The
  /// range is the caller's, to unmap.
  std::pair<void*, std::size_t> retire() noexcept;

 private:
  enum class kind : std::uint8_t { none, heap, pages, block, guest };
  void swap(buffer_memory& o) noexcept;

  kind kind_ = kind::none;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t offset_ = 0;  // of the block, in the segment of the node that it belongs to
  std::uint32_t source_ = 0;  // guest: the PE that has sent it
  std::uint32_t reader_ = 0;  // guest: the PE that it was sent to
};

/// The buffers that tasks of one PE have.
///
/// Problem: C copies the structure that names a buffer as it likes, so that each copy would be good
/// for ever. So the structure has a number, which is never used again; a buffer that was sent,
/// given back or released with its message is not in this table any more, and all its copies are
/// stale.
///
/// Part of the PE's task_state; used on its thread. Invariant: each entry's owner is alive and on
/// this PE.
class buffer_table {
 public:
  struct entry {
    buffer_memory memory;
    address owner;
    bool in_message = false;  ///< goes with the message that it came in
  };
  buffer_table() = default;
  buffer_table(const buffer_table&) = delete;
  buffer_table& operator=(const buffer_table&) = delete;
  ~buffer_table();

  /// Throws std::bad_alloc.
  orrery_buffer add(scheduler::pe& self, buffer_memory memory, bool in_message);
  /// Throws usage_error, which begins with `call`, if the buffer is stale or another task's.
  [[nodiscard]] entry& at(scheduler::pe& self, const orrery_buffer& b, const char* call);
  [[nodiscard]] buffer_memory take_out(const orrery_buffer& b) noexcept;
  /// It was sent as a copy, in a checked world: what it had is inaccessible now.
  void retire(const orrery_buffer& b) noexcept;
  void drop(std::uint64_t id) noexcept { entries_.erase(id); }
  /// Its message is released.
  void drop_received(std::uint64_t id) noexcept;
  void ended(const address& task) noexcept;

 private:
  std::unordered_map<std::uint64_t, entry> entries_;
  std::uint64_t last_ = 0;
  // ranges without memory, so that nothing new lies there soon
  std::deque<std::pair<void*, std::size_t>> retired_;
};

}  // namespace orrery::task_detail
