// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/exposed_memory.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/transport/thread_limits.hpp>

#include <bit>
#include <memory>
#include <new>
#include <tuple>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace orrery::service {

namespace {

// Powers of two: runs of few sizes are used again.
constexpr std::size_t blocks_of(std::size_t bytes) noexcept {
  return std::bit_ceil((bytes + exposed_memory::block - 1) / exposed_memory::block);
}

}  // namespace

std::atomic<exposed_memory*> exposed_memory::made_{nullptr};

exposed_memory* exposed_memory::make() noexcept {
  static std::once_flag once;
  try {
    std::call_once(once, [] {
      // Others need as much of theirs to read it.
      if (transport::address_space_limit()) return;
      const auto self = transport::this_peer();
      // Sparse: as much as the machine has, and at least as much again for what lies between.
      auto memory =
          transport::segment::create("orrery lists", blocks_of(2 * transport::arena::machine_memory()) * block);
      if (!self || !memory) return;
      (void)::madvise(memory->data(), memory->size(), MADV_DONTFORK);
      auto* const all = new exposed_memory(std::move(*memory), *self);  // never destroyed
      if (::pthread_atfork(nullptr, nullptr, [] { made_.store(nullptr, std::memory_order_relaxed); }) != 0) return;
      made_.store(all, std::memory_order_release);  // SYNC: with made
    });
  } catch (...) {  // no memory
  }
  return made();
}

void* exposed_memory::take(std::size_t bytes, bool huge) {
  const std::size_t blocks = blocks_of(bytes);
  std::byte* at = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    run& of = runs_[blocks];
    if (!of.free.empty()) {
      at = of.free.back();
      of.free.pop_back();
    } else if (blocks <= memory_.size() / block - fresh_) {
      // so that give_back() need not allocate
      if (of.free.capacity() == of.all) of.free.reserve(2 * of.all + 1);
      ++of.all;
      at = memory_.data() + fresh_ * block;
      fresh_ += blocks;
    } else {
      throw std::bad_alloc();
    }
  }
  if (!huge) return at;
  try {
    // A huge page, whatever the system's setting for shared memory is. Where there is none to be
    // had the pages are small.
    back(at, 1);
    if (::madvise(at, blocks * block, MADV_COLLAPSE) != 0) back(at, blocks * block);
    return at;
  } catch (...) {
    give_back(at, bytes);
    throw;
  }
}

void exposed_memory::back(void* at, std::size_t bytes) const {
  if (!memory_.back(static_cast<std::uint64_t>(static_cast<std::byte*>(at) - memory_.data()), bytes))
    throw std::bad_alloc();
}

void exposed_memory::give_back(void* at, std::size_t bytes) noexcept {
  const std::size_t blocks = blocks_of(bytes);
  (void)memory_.discard(static_cast<std::uint64_t>(static_cast<std::byte*>(at) - memory_.data()), blocks * block);
  const std::scoped_lock lock(mutex_);
  runs_.find(blocks)->second.free.push_back(static_cast<std::byte*>(at));
}

exposed_header* exposed_memory::take_header() {
  const std::scoped_lock lock(headers_mutex_);
  if (headers_.empty()) {
    constexpr std::size_t bytes = std::size_t{64} << 10U;
    constexpr std::size_t more = bytes / sizeof(exposed_header);
    headers_.reserve(all_headers_ + more);  // so that give_back() need not allocate
    auto* const at = static_cast<std::byte*>(take(block, false));
    try {
      back(at, bytes);
    } catch (...) {
      give_back(at, block);
      throw;
    }
    all_headers_ += more;
    for (std::size_t i = more; i-- != 0;) {
      auto* const h = new (at + i * sizeof(exposed_header)) exposed_header{};
      h->version.store(1, std::memory_order_relaxed);
      headers_.push_back(h);
    }
  }
  exposed_header* const h = headers_.back();
  headers_.pop_back();
  h->id = ++last_id_;
  return h;
}

void exposed_memory::give_back(exposed_header* h) noexcept {
  const std::scoped_lock lock(headers_mutex_);
  h->id = 0;
  headers_.push_back(h);
}

exposed_name exposed_memory::name() const noexcept {
  return {self_.pid, memory_.fd(), self_.start_time, memory_.size(), reinterpret_cast<std::uintptr_t>(memory_.data())};
}

std::shared_ptr<const mapped_exposure> mapped_exposure::of(const exposed_name& name) {
  using key = std::tuple<std::int32_t, std::uint64_t, std::int32_t>;
  static std::mutex mutex;
  static auto& all = *new std::map<key, std::weak_ptr<const mapped_exposure>>;
  if (transport::address_space_limit()) return nullptr;
  const std::scoped_lock lock(mutex);
  std::erase_if(all, [](const auto& m) { return m.second.expired(); });
  std::weak_ptr<const mapped_exposure>& known = all[{name.pid, name.started, name.fd}];
  if (auto there = known.lock()) return there;
  auto made = std::make_shared<mapped_exposure>();
  made->begin_ = name.begin;
  made->size_ = name.bytes;
  const exposed_memory* const own = exposed_memory::made();
  if (own != nullptr && own->name().pid == name.pid && own->name().started == name.started) {
    made->data_ = reinterpret_cast<const std::byte*>(own->name().begin);
  } else {
    const auto owner = transport::peer::open({name.pid, name.started});
    if (!owner) return nullptr;
    auto memory =
        transport::segment::open_peer(*owner, name.fd, name.bytes, transport::access::read, "the memory of lists");
    if (!memory) return nullptr;
    const auto mapped = std::make_shared<transport::segment>(std::move(*memory));
    made->data_ = mapped->data();
    made->memory_ = mapped;
  }
  known = made;
  return made;
}

}  // namespace orrery::service
