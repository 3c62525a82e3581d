// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/page_arena.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <iterator>
#include <new>

#include <sys/mman.h>

namespace orrery::storage::internal {
namespace {

// As many huge pages as leave less than a sixteenth unused, and at most eight.
std::size_t block_bytes(std::size_t piece) {
  if (piece >= huge_page) return piece;
  std::size_t bytes = huge_page;
  while (bytes < 8 * huge_page && bytes % piece > bytes / 16) bytes += huge_page;
  return bytes;
}

}  // namespace

page_arena::block::block(std::size_t piece) : bytes(block_bytes(piece)) {
  places.reserve(bytes / piece);
  // One huge page more than needed, to begin at a multiple of one.
  void* const memory = ::mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(memory);
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
  first = begin + before;
  if (before != 0) (void)::munmap(begin, before);
  if (before != huge_page) (void)::munmap(first + bytes, huge_page - before);
  (void)::madvise(first, bytes, MADV_HUGEPAGE);  // a wish
  for (std::size_t n = bytes / piece; n-- > 0;) places.push_back(first + n * piece);
}
page_arena::block::~block() { (void)::munmap(first, bytes); }

std::byte* page_arena::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::vector<block*>& room = with_room_[bytes];
  if (room.empty()) {
    auto fresh = wire::make_unique<block>(bytes);
    room.reserve(blocks_.size() + 1);  // so that neither this nor give_back need allocate
    room.push_back(blocks_.emplace(fresh->first, std::move(fresh)).first->second.get());
  }
  block& b = *room.back();
  std::byte* const piece = b.places.back();
  b.places.pop_back();
  ++b.used;
  if (b.places.empty()) room.pop_back();
  return piece;
}

void page_arena::give_back(std::byte* piece, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = std::prev(blocks_.upper_bound(piece));
  block& b = *at->second;
  std::vector<block*>& room = with_room_[bytes];
  if (--b.used == 0) {
    std::erase(room, &b);
    blocks_.erase(at);
    return;
  }
  (void)::madvise(piece, bytes, MADV_DONTNEED);
  if (b.places.empty()) room.push_back(&b);
  b.places.push_back(piece);
}

std::size_t page_arena::bytes() {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [first, b] : blocks_) sum += b->bytes;
  return sum;
}

}  // namespace orrery::storage::internal
