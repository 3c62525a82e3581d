// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/transport/shm/segment.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace orrery::transport {

// The board of a node for tools: bytes that it replaces as a whole now and then, and that others
// may read at any time.
//
// Problem: a tool that looks at a world is no member of it and can ask nobody; it may read while
// the node writes, and the node may be killed in the middle of it, or write nonsense.
//
// So a board is a segment of its own with room for two texts. The node writes the one that is not
// shown, and then shows it; a reader takes a copy and looks whether the same one is shown still. A
// copy is checked: its length before it is used, its checksum after. A node that dies while it
// writes leaves the text that was shown before.
//
// Ownership: RAII, moved but not copied; the fd is open as long as the board lives. One thread
// writes. Invariant: the text that `shown` names is complete, unless somebody writes nonsense.
class board {
 public:
  static constexpr std::uint64_t capacity = std::uint64_t{4} << 20;  ///< bytes of a text

  /// Shows nothing yet. Fails as segment::create.
  [[nodiscard]] static result<board> create();

  /// Shows this from now on. Fails, and goes on to show what it did, with `no_space`, or with
  /// `bad_argument` above the capacity.
  [[nodiscard]] result<void> show(std::span<const std::byte> text);
  /// To be put into the node's entry.
  [[nodiscard]] int fd() const noexcept { return memory_.fd(); }

  /// The content of another node's board; empty if nothing yet. Fails with `damaged`, with `gone`
  /// if the node has ended, and with `timed_out` if it is written faster than it can be read.
  [[nodiscard]] static result<std::vector<std::byte>> read(const peer& owner, int fd, std::string_view what);
  /// The same of memory that is mapped already.
  [[nodiscard]] static result<std::vector<std::byte>> read(const segment& memory, std::string_view what);

 private:
  explicit board(segment memory) noexcept : memory_(std::move(memory)) {}

  segment memory_;
  std::uint64_t shown_ = 0;  ///< how many texts were shown
};

}  // namespace orrery::transport
