// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/message.hpp>

#include <algorithm>
#include <new>

namespace orrery::scheduler {

namespace {
constexpr std::align_val_t cache_line{64};
constexpr std::size_t largest_slab = 64 << 10;
}  // namespace

message_pool::~message_pool() {
  for (std::byte* slab : slabs_) ::operator delete(slab, cache_line);
}

message* message_pool::allocate_slow(std::size_t total, unsigned c) {
  if (watcher_ != nullptr) {
    total = std::max(total, std::size_t{64} << (classes - 1) | 1);
    c = classes;
  }
  if (c >= classes) {
    const std::size_t rounded = (total + 63) / 64 * 64;
    auto* m = new (::operator new(rounded, cache_line)) message{};
    m->bytes = static_cast<std::uint32_t>(rounded);
    if (watcher_ != nullptr) watcher_->created(*m);
    return m;
  }
  slabs_.reserve(slabs_.size() + 1);
  const std::size_t bytes = slab_bytes_;  // small ones first: there may be many thousand PEs
  slab_bytes_ = std::min(2 * bytes, largest_slab);
  auto* slab = static_cast<std::byte*>(::operator new(bytes, cache_line));
  slabs_.push_back(slab);
  const std::size_t size = std::size_t{64} << c;
  for (std::size_t at = bytes; at >= size; at -= size) {
    auto* m = new (slab + at - size) message{};
    m->bytes = static_cast<std::uint32_t>(size);
    m->next = free_[c];
    free_[c] = m;
  }
  message* m = free_[c];
  free_[c] = m->next;
  return m;
}

void message_pool::release_large(message* m) noexcept {
  if (watcher_ != nullptr) watcher_->gone(*m);
  ::operator delete(m, cache_line);
}

}  // namespace orrery::scheduler
