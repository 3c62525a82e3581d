// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/wrapped.hpp>

#include <algorithm>

namespace orrery::detail {

std::vector<stretch> wrapped(std::int64_t first, std::int64_t count, std::int64_t size) {
  std::vector<stretch> all;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t at = ((first + done) % size + size) % size;
    const std::int64_t n = std::min(count - done, size - at);
    all.push_back({static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(done)});
    done += n;
  }
  return all;
}

void widen(std::int64_t& first, std::int64_t& count, std::uint64_t width, edges beyond, std::uint64_t size) noexcept {
  const auto w = static_cast<std::int64_t>(width);
  const auto n = static_cast<std::int64_t>(size);
  const std::int64_t begin = beyond == edges::open ? std::max<std::int64_t>(0, first - w) : first - w;
  const std::int64_t end = beyond == edges::open ? std::min(n, first + count + w) : first + count + w;
  first = begin;
  count = end - begin;
}

}  // namespace orrery::detail
