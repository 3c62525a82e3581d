// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/page.hpp>

#include <orrery/storage/detail/strided_copy.hpp>
#include <orrery/storage/internal/page_arena.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

namespace orrery::storage {
namespace detail {

struct page_memory {
  std::atomic<std::uint32_t> holders{1};
  std::byte* data = nullptr;
  std::size_t capacity = 0;

  page_memory(std::byte* d, std::size_t n) noexcept : data(d), capacity(n) {}
  page_memory(const page_memory&) = delete;
  page_memory& operator=(const page_memory&) = delete;
  ~page_memory();
};

namespace {

using internal::page_arena;

page_arena& the_arena() {
  static auto* a = new page_arena;  // never destroyed, as the pool
  return *a;
}

void free_memory(std::byte* data, std::size_t capacity) noexcept {
  page_arena::serves(capacity) ? the_arena().give_back(data, capacity) : std::free(data);
}

// Memory of pages that were given up, the hottest last. It is part of the allocator, not of a
// world: pages outlive worlds.
class pool {
 public:
  page_memory* take(std::size_t capacity) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = idle_.size(); i-- > 0;) {
      if (idle_[i]->capacity != capacity) continue;
      page_memory* m = idle_[i];
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      bytes_ -= capacity;
      return m;
    }
    return nullptr;
  }
  // False if there is no room for it.
  bool keep(page_memory* m) noexcept {
    const std::lock_guard lock(mutex_);
    if (bytes_ + m->capacity > limit_) return false;
    try {
      idle_.push_back(m);
    } catch (const std::bad_alloc&) {
      return false;
    }
    bytes_ += m->capacity;
    return true;
  }
  // Memory of another size than that of the pages to come would only lie there.
  void set(std::size_t limit, std::size_t piece) noexcept {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    shrink(piece_.exchange(piece, std::memory_order_relaxed) == piece ? limit : 0);
  }
  void clear() noexcept {
    const std::lock_guard lock(mutex_);
    shrink(0);
  }
  // Bytes of memory for a page that needs `capacity`.
  std::size_t memory_for(std::size_t capacity) const noexcept {
    const std::size_t piece = piece_.load(std::memory_order_relaxed);
    return capacity <= piece && piece <= 2 * capacity ? piece : capacity;
  }
  std::size_t bytes() noexcept {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  void shrink(std::size_t limit) noexcept {
    while (bytes_ > limit) {
      page_memory* coldest = idle_.front();
      idle_.erase(idle_.begin());
      bytes_ -= coldest->capacity;
      delete coldest;
    }
  }

  std::mutex mutex_;
  std::vector<page_memory*> idle_;
  std::atomic<std::size_t> piece_ = 0;
  std::size_t bytes_ = 0;
  std::size_t limit_ = 64 << 20;
};

pool& the_pool() {
  static auto* p = new pool;  // never destroyed: static objects may hold pages
  return *p;
}

std::size_t capacity_for(std::size_t bytes) {
  if (bytes > std::size_t{PTRDIFF_MAX} - page_alignment) throw std::bad_alloc();
  return (bytes + page_alignment - 1) / page_alignment * page_alignment;
}

std::byte* fresh_bytes(std::size_t capacity) {
  if (page_arena::serves(capacity)) return the_arena().take(capacity);
  void* data = nullptr;
  if (posix_memalign(&data, page_alignment, capacity) != 0) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}
page_memory* fresh_memory(std::size_t capacity) {
  std::byte* const data = fresh_bytes(capacity);
  try {
    return new page_memory(data, capacity);
  } catch (...) {
    free_memory(data, capacity);
    throw;
  }
}

}  // namespace

page_memory::~page_memory() { free_memory(data, capacity); }

page_memory* allocate_page(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t on_disk = capacity_for(bytes);
  const std::size_t capacity = the_pool().memory_for(on_disk);
  page_memory* m = the_pool().take(capacity);
  if (m != nullptr) {
    m->holders.store(1, std::memory_order_relaxed);
  } else {
    m = fresh_memory(capacity);
  }
  std::memset(m->data + bytes, 0, on_disk - bytes);  // it goes to disk with the page
  return m;
}
void hold_page(page_memory* m) noexcept {
  if (m != nullptr) m->holders.fetch_add(1, std::memory_order_relaxed);
}
void drop_page(page_memory* m) noexcept {
  // SYNC: with is_shared and itself on other threads: who is the last to hold the bytes has seen
  // all that was done to them.
  if (m == nullptr || m->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (!the_pool().keep(m)) delete m;
}
bool is_shared(const page_memory* m) noexcept {
  // SYNC: with drop_page: once the others are gone, they have ended reading what is now going to be
  // changed.
  return m != nullptr && m->holders.load(std::memory_order_acquire) != 1;
}
std::byte* data_of(page_memory* m) noexcept { return m != nullptr ? m->data : nullptr; }
std::size_t capacity_of(const page_memory* m) noexcept { return m != nullptr ? m->capacity : 0; }

}  // namespace detail

page::page(std::size_t bytes) : memory_(detail::allocate_page(bytes)), size_(bytes) {
  if (bytes != 0) std::memset(memory_->data, 0, bytes);
}
page page::uninitialized(std::size_t bytes) {
  page p;
  p.memory_ = detail::allocate_page(bytes);
  p.size_ = bytes;
  return p;
}

std::span<std::byte> page::writable() {
  (void)writable_memory(0);
  return {detail::data_of(memory_), size_};
}
std::span<std::byte> page::writable_memory(std::size_t n) {
  if (shared()) {
    page own = uninitialized(size_);
    std::memcpy(own.memory_->data, memory_->data, std::min(memory_->capacity, own.memory_->capacity));
    std::swap(memory_, own.memory_);
  }
  return {detail::data_of(memory_), n};
}

bool page::resize_in_place(std::size_t n) noexcept {
  const std::size_t on_disk = (n + page_alignment - 1) / page_alignment * page_alignment;
  if (on_disk < n || on_disk > capacity() || shared()) return false;
  size_ = n;
  if (n != on_disk) std::memset(memory_->data + n, 0, on_disk - n);
  return true;
}

bool operator==(const page& a, const page& b) noexcept {
  return a.size_ == b.size_ &&
         (a.memory_ == b.memory_ || std::memcmp(a.bytes().data(), b.bytes().data(), a.size_) == 0);
}

std::size_t array_page::bytes_of(const index3& shape, element_type type) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  for (const std::int64_t n : shape)
    if (n < 0 || __builtin_mul_overflow(bytes, n, &bytes))
      throw std::invalid_argument(
          fmt::format("a page of the shape {} cannot be: a side is negative, or it is too large", to_string(shape)));
  return static_cast<std::size_t>(bytes);
}
array_page::array_page(const index3& shape, element_type type)
    : page(bytes_of(shape, type)), shape_(shape), type_(type) {}
array_page::array_page(page bytes, const index3& shape, element_type type)
    : page(std::move(bytes)), shape_(shape), type_(type) {
  check();
}
array_page array_page::uninitialized(const index3& shape, element_type type) {
  return {page::uninitialized(bytes_of(shape, type)), shape, type};
}
void array_page::check() const {
  const std::size_t needed = bytes_of(shape_, type_);
  if (size() < needed)
    throw std::invalid_argument(fmt::format("a page of {} bytes cannot hold {} elements of type {}, which take {}",
                                            size(), to_string(shape_), to_string(type_), needed));
}
void array_page::require(element_type wanted) const {
  if (wanted != type_)
    throw std::invalid_argument(
        fmt::format("the page holds {} and was asked for {}", to_string(type_), to_string(wanted)));
}
void array_page::transpose(transposition t) {
  if (t == transposition::none) return;
  const index3 shape = transposed(shape_, t);
  page other = page::uninitialized(size());
  copy_box(other.writable().data(), strides_of(shape), bytes().data(), transposed(strides_of(shape_), t), shape,
           size_of(type_));
  static_cast<page&>(*this) = std::move(other);
  shape_ = shape;
}
bool operator==(const array_page& a, const array_page& b) noexcept {
  const std::size_t n = static_cast<std::size_t>(a.count()) * size_of(a.type_);
  return a.shape_ == b.shape_ && a.type_ == b.type_ &&
         (n == 0 || std::memcmp(a.bytes().data(), b.bytes().data(), n) == 0);
}

void set_page_pool_limit(std::size_t bytes, std::size_t piece) noexcept {
  detail::the_pool().set(bytes, piece == 0 ? 0 : detail::capacity_for(piece));
}
std::size_t page_pool_bytes() noexcept { return detail::the_pool().bytes(); }
void trim_page_pool() noexcept { detail::the_pool().clear(); }

}  // namespace orrery::storage
