// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace orrery::storage::internal {

/// The size of a huge page.
inline constexpr std::size_t huge_page = 2 << 20;

/// Memory for pages, cut from blocks of huge pages.
///
/// Problem: a page of 1 MiB in memory of its own lies in 256 pages of the system. Each of them is a
/// fault when it is touched for the first time, and one more entry in the processor's table of
/// addresses, which holds some thousands. So pieces of one size are cut, one behind the other, from
/// blocks that the system is asked to make of huge pages. A piece that is given back while others
/// of its block are in use gives its memory back to the system, and its place to the next piece;
/// the last one of a block ends the block. A piece as large as a huge page has a block of its own,
/// which goes with it: the C library's allocator might keep what is given back, or take twice the
/// room to align it.
///
/// Part of the allocator of pages; any thread. Sizes are multiples of page_alignment.
class page_arena {
 public:
  /// True if pieces of that size are to be had here: smaller ones cost few faults.
  [[nodiscard]] static bool serves(std::size_t bytes) noexcept { return bytes >= huge_page / 32; }
  /// A piece. Throws std::bad_alloc.
  [[nodiscard]] std::byte* take(std::size_t bytes);
  void give_back(std::byte* piece, std::size_t bytes) noexcept;
  /// Bytes of all blocks.
  [[nodiscard]] std::size_t bytes();

 private:
  struct block {
    std::byte* first = nullptr;
    std::size_t bytes = 0;
    std::size_t used = 0;  // pieces
    std::vector<std::byte*> places;  // those that are free, the next one last
    block(std::size_t piece);
    block(const block&) = delete;
    block& operator=(const block&) = delete;
    ~block();
  };

  std::mutex mutex_;
  std::map<std::byte*, wire::unique_ptr<block>> blocks_;  // by their first byte
  std::map<std::size_t, std::vector<block*>> with_room_;  // by the size of their pieces
};

}  // namespace orrery::storage::internal
