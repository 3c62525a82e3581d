// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/hash_part.hpp>
#include <orrery/wire/error.hpp>

#include <xxhash.h>

namespace orrery::service {

namespace {
[[noreturn]] void fail_order() {
  throw usage_error(errc::bad_argument,
                    "the keys of a hash map have no order: use an ordered_list for intervals of keys");
}
}  // namespace

std::uint64_t hash_of(std::span<const std::byte> packed_key) noexcept {
  return XXH3_64bits(packed_key.data(), packed_key.size());
}

bytes unordered_part::scan(std::uint32_t, std::span<const std::byte>) { fail_order(); }
bytes unordered_part::snapshot(std::span<const std::byte>) { fail_order(); }
bytes unordered_part::first_item() { fail_order(); }
bytes unordered_part::last_item() { fail_order(); }

}  // namespace orrery::service
