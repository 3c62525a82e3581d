// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/hash_part.hpp>

#include <xxhash.h>

namespace orrery::service {

std::uint64_t hash_of(std::span<const std::byte> packed_key) noexcept {
  return XXH3_64bits(packed_key.data(), packed_key.size());
}

}  // namespace orrery::service
