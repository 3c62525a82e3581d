// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/ring.hpp>
#include <orrery/transport/wait.hpp>

namespace orrery::transport {

bool ring_consumer::release_space() noexcept {
  if (released_ == head_) return false;
  released_ = head_;
  header_->head.store(head_, std::memory_order_release);  // SYNC: with ring_producer::refresh
  // SYNC: Dekker with the producer, which sets producer_waits, fences, and looks at head once more.
  fence_light();
  return header_->producer_waits.load(std::memory_order_relaxed) != 0;
}

}  // namespace orrery::transport
