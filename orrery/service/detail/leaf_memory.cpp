// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/service/detail/leaf_memory.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace orrery::service {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20U;
constexpr std::size_t largest_leaf = std::size_t{64} << 10U;

struct free_leaf {
  free_leaf* next;
};

/// Lies at the begin of its huge page; leaves follow behind its first line.
struct leaf_block {
  free_leaf* first_free = nullptr;
  std::size_t fresh = leaf_memory::line;  // from here on no leaf has been taken
  std::size_t used = 0;

  [[nodiscard]] bool has_room(std::size_t piece) const noexcept {
    return first_free != nullptr || fresh + piece <= huge_page;
  }
};
static_assert(sizeof(leaf_block) <= leaf_memory::line);

struct leaf_depot {
  std::mutex mutex;
  struct of_size {
    std::vector<leaf_block*> with_room;
    std::size_t blocks = 0;
  };
  std::map<std::size_t, of_size> sizes;
};

// Never destroyed: leaves may be given back while the program ends.
leaf_depot& depot() {
  static leaf_depot* const all = new leaf_depot;
  return *all;
}

leaf_block* make_block(bool huge) {
  // One huge page more than needed, to begin at a multiple of one.
  void* const memory =
      ::mmap(nullptr, 2 * huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(memory);
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
  if (before != 0) (void)::munmap(begin, before);
  (void)::munmap(begin + before + huge_page, huge_page - before);
  if (huge) (void)::madvise(begin + before, huge_page, MADV_HUGEPAGE);  // a wish
  return new (begin + before) leaf_block;
}

constexpr bool from_blocks(std::size_t size) noexcept { return !scheduler::slowed_down && size <= largest_leaf; }

}  // namespace

void* leaf_memory::take(std::size_t size) {
  if (!from_blocks(size)) return ::operator new(size, std::align_val_t{line});
  const std::size_t piece = bytes_of(size);
  leaf_depot& all = depot();
  const std::scoped_lock lock(all.mutex);
  leaf_depot::of_size& mine = all.sizes[piece];
  if (mine.with_room.empty()) {
    mine.with_room.reserve(mine.blocks + 1);  // so that give_back() need not allocate
    mine.with_room.push_back(make_block(mine.blocks != 0));
    ++mine.blocks;
  }
  leaf_block& b = *mine.with_room.back();
  void* leaf = b.first_free;
  if (leaf != nullptr) {
    b.first_free = b.first_free->next;
  } else {
    leaf = reinterpret_cast<std::byte*>(&b) + b.fresh;
    b.fresh += piece;
  }
  ++b.used;
  if (!b.has_room(piece)) mine.with_room.pop_back();
  return leaf;
}

void leaf_memory::give_back(void* leaf, std::size_t size) noexcept {
  if (!from_blocks(size)) {
    ::operator delete(leaf, std::align_val_t{line});
    return;
  }
  const std::size_t piece = bytes_of(size);
  auto* const b = reinterpret_cast<leaf_block*>(reinterpret_cast<std::uintptr_t>(leaf) & ~(huge_page - 1));
  leaf_depot& all = depot();
  const std::scoped_lock lock(all.mutex);
  leaf_depot::of_size& mine = all.sizes.find(piece)->second;
  const bool had_room = b->has_room(piece);
  b->first_free = new (leaf) free_leaf{b->first_free};
  --b->used;
  if (!had_room) mine.with_room.push_back(b);
  if (b->used != 0 || mine.with_room.size() == 1) return;
  mine.with_room.erase(std::ranges::find(mine.with_room, b));
  --mine.blocks;
  (void)::munmap(b, huge_page);
}

}  // namespace orrery::service
