// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/sanitizers.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace orrery::detail {

/// Memory of the states of promises.
///
/// Problem: a promise that is kept at once lives for 60 ns, of which malloc and free would take a
/// tenth. So each thread keeps some blocks that were given back, in size classes of 64 bytes. Each
/// is from operator new all the same, and may come from one thread and go to another. Under a
/// sanitizer none is kept, so that it sees who uses one too long.
///
/// A PE that ends lets go of those of its thread.
class state_memory {
 public:
  /// Throws std::bad_alloc.
  [[nodiscard]] static void* take(std::size_t size) {
    const std::size_t c = class_of(size);
    if (c >= classes) [[unlikely]]
      return ::operator new(size);
    kept& k = kept_[c];
    if (k.first == nullptr) [[unlikely]]
      return ::operator new((c + 1) * unit);
    --k.count;
    return std::exchange(k.first, k.first->next);
  }
  static void give(void* memory, std::size_t size) noexcept {
    const std::size_t c = class_of(size);
    if (c >= classes || kept_[c].count >= most_kept) [[unlikely]] {
      ::operator delete(memory);
      return;
    }
    ++kept_[c].count;
    kept_[c].first = new (memory) block{kept_[c].first};
  }
  static void forget() noexcept {
    for (kept& k : kept_) {
      while (k.first != nullptr) ::operator delete(std::exchange(k.first, k.first->next));
      k.count = 0;
    }
  }

 private:
  struct block {
    block* next;
  };
  struct kept {
    block* first = nullptr;
    std::uint32_t count = 0;
  };
  static constexpr std::size_t unit = 64;
  static constexpr std::size_t classes = 8;
  static constexpr std::uint32_t most_kept = 64;  // of a class

  static constexpr std::size_t class_of(std::size_t size) noexcept {
    return scheduler::slowed_down ? classes : (size - 1) / unit;
  }

  static constinit thread_local kept kept_[classes];
};

}  // namespace orrery::detail
