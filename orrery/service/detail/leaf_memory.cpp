// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/service/detail/exposed_memory.hpp>
#include <orrery/service/detail/leaf_memory.hpp>

#include <algorithm>
#include <bit>
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
  std::size_t backed = huge_page;  // up to here there is memory

  [[nodiscard]] bool has_room(std::size_t piece) const noexcept {
    return first_free != nullptr || fresh + piece <= huge_page;
  }
};
static_assert(sizeof(leaf_block) <= leaf_memory::line);

// The lock is not held while the system gives or takes blocks.
struct leaf_depot {
  std::mutex mutex;
  struct of_size {
    std::vector<leaf_block*> with_room;
    std::size_t blocks = 0;
  };
  std::map<std::size_t, of_size> sizes;
};

// Never destroyed: leaves may be given back while the program ends.
leaf_depot& private_depot() {
  static leaf_depot* const all = new leaf_depot;
  return *all;
}
leaf_depot& exposed_depot() {
  static leaf_depot* const all = new leaf_depot;
  return *all;
}
exposed_memory* exposure_of(const void* at) noexcept {
  exposed_memory* const e = exposed_memory::made();
  return e != nullptr && e->has(at) ? e : nullptr;
}

constexpr std::size_t some = std::size_t{64} << 10U;  // memory for a block in small pages

leaf_block* make_block(exposed_memory* e, bool huge) {
  if (e != nullptr) {
    void* const at = e->take(huge_page, huge);
    if (!huge) {
      try {
        e->back(at, some);
      } catch (...) {
        e->give_back(at, huge_page);
        throw;
      }
    }
    auto* const b = new (at) leaf_block;
    if (!huge) b->backed = some;
    return b;
  }
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

// From private memory if `e` is null.
void* take_from(leaf_depot& all, exposed_memory* e, std::size_t piece) {
  std::unique_lock lock(all.mutex);
  leaf_depot::of_size& mine = all.sizes[piece];
  while (mine.with_room.empty()) {
    mine.with_room.reserve(mine.blocks + 1);  // so that give_back() need not allocate
    const bool first = mine.blocks++ == 0;
    lock.unlock();  // the system takes long to make a huge page
    leaf_block* made = nullptr;
    try {
      made = make_block(e, !first);
    } catch (...) {
      lock.lock();
      --mine.blocks;
      throw;
    }
    lock.lock();
    mine.with_room.push_back(made);
  }
  leaf_block& b = *mine.with_room.back();
  void* leaf = b.first_free;
  if (leaf != nullptr) {
    b.first_free = b.first_free->next;
  } else {
    if (b.fresh + piece > b.backed) {
      const std::size_t more = std::min(std::max(piece, some), huge_page - b.backed);
      e->back(reinterpret_cast<std::byte*>(&b) + b.backed, more);
      b.backed += more;
    }
    leaf = reinterpret_cast<std::byte*>(&b) + b.fresh;
    b.fresh += piece;
  }
  ++b.used;
  if (!b.has_room(piece)) mine.with_room.pop_back();
  return leaf;
}

void give_back_to(leaf_depot& all, exposed_memory* e, void* leaf, std::size_t piece) noexcept {
  auto* const b = reinterpret_cast<leaf_block*>(reinterpret_cast<std::uintptr_t>(leaf) & ~(huge_page - 1));
  {
    const std::scoped_lock lock(all.mutex);
    leaf_depot::of_size& mine = all.sizes.find(piece)->second;
    const bool had_room = b->has_room(piece);
    b->first_free = new (leaf) free_leaf{b->first_free};
    --b->used;
    if (!had_room) mine.with_room.push_back(b);
    if (b->used != 0 || mine.with_room.size() == 1) return;
    mine.with_room.erase(std::ranges::find(mine.with_room, b));
    --mine.blocks;
  }
  if (e != nullptr) {
    e->give_back(b, huge_page);
  } else {
    (void)::munmap(b, huge_page);
  }
}

// Arrays grow by doubling: so they share the sizes of their places.
constexpr std::size_t place_of_array(std::size_t size) noexcept {
  return std::bit_ceil(std::max(size, leaf_memory::line));
}

}  // namespace

void* leaf_memory::take(std::size_t size, bool exposed) {
  exposed_memory* const e = exposed && size <= largest_leaf ? exposed_memory::made() : nullptr;
  if (e != nullptr) {
    try {
      return take_from(exposed_depot(), e, bytes_of(size));
    } catch (const std::bad_alloc&) {  // it is used up: others cannot read this one
    }
  }
  if (!from_blocks(size)) return ::operator new(size, std::align_val_t{line});
  return take_from(private_depot(), nullptr, bytes_of(size));
}

void leaf_memory::give_back(void* leaf, std::size_t size) noexcept {
  if (exposed_memory* const e = exposure_of(leaf); e != nullptr) {
    give_back_to(exposed_depot(), e, leaf, bytes_of(size));
  } else if (from_blocks(size)) {
    give_back_to(private_depot(), nullptr, leaf, bytes_of(size));
  } else {
    ::operator delete(leaf, std::align_val_t{line});
  }
}

void* leaf_memory::take_array(std::size_t size) {
  if (exposed_memory* const e = exposed_memory::made(); e != nullptr) {
    try {
      const std::size_t place = place_of_array(size);
      if (place <= largest_leaf) return take_from(exposed_depot(), e, place);
      void* const at = e->take(size, false);
      try {
        e->back(at, size);
      } catch (...) {
        e->give_back(at, size);
        throw;
      }
      return at;
    } catch (const std::bad_alloc&) {  // it is used up
    }
  }
  return ::operator new(size);
}

void leaf_memory::give_back_array(void* at, std::size_t size) noexcept {
  exposed_memory* const e = exposure_of(at);
  if (e == nullptr) {
    ::operator delete(at);
  } else if (const std::size_t place = place_of_array(size); place <= largest_leaf) {
    give_back_to(exposed_depot(), e, at, place);
  } else {
    e->give_back(at, size);
  }
}

}  // namespace orrery::service
