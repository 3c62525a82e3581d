// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/ring_memory.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

#include <sys/mman.h>

namespace orrery::transport {

namespace {

// Whole pages within; false if the system does not take them back, as where they are no shared
// memory.
bool give_back(std::byte* begin, std::byte* end) noexcept {
  return begin >= end || ::madvise(begin, static_cast<std::size_t>(end - begin), MADV_REMOVE) == 0;
}

}  // namespace

void prepare_ring_memory(std::span<std::byte> memory, bool zeroed) noexcept {
  std::byte* const second = memory.data() + std::min<std::uint64_t>(ring_page, memory.size());
  std::byte* const end = memory.data() + (memory.size() + ring_page - 1) / ring_page * ring_page;
  const bool given_back = give_back(second, end);
  if (zeroed) return;
  std::memset(memory.data(), 0, given_back ? static_cast<std::size_t>(second - memory.data()) : memory.size());
}

void reclaim_ring_memory(ring_header& header, std::uint64_t capacity, std::uint64_t position) noexcept {
  auto* const begin = reinterpret_cast<std::byte*>(&header);
  const std::uint64_t last = (ring_header::bytes_for(capacity) + ring_page - 1) / ring_page;
  const std::uint64_t next = (sizeof(ring_header) + (position & (capacity - 1))) / ring_page;
  const auto at = [&](std::uint64_t page) { return begin + page * ring_page; };
  (void)give_back(at(1), at(std::max<std::uint64_t>(next, 1)));
  (void)give_back(at(next + 1), at(last));
}

std::uint64_t resident_bytes(std::span<const std::byte> memory) {
  std::vector<unsigned char> pages((memory.size() + ring_page - 1) / ring_page);
  if (::mincore(const_cast<std::byte*>(memory.data()), memory.size(), pages.data()) != 0) return 0;
  return ring_page *
         static_cast<std::uint64_t>(std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; }));
}

}  // namespace orrery::transport
