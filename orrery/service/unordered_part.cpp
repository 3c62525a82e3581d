// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/unordered_part.hpp>
#include <orrery/wire/error.hpp>

namespace orrery::service {

namespace {
[[noreturn]] void fail_order() {
  throw usage_error(errc::bad_argument,
                    "this service has no keys with an order: use an ordered_list for intervals of keys");
}
}  // namespace

bytes unordered_part::scan(std::uint32_t, std::span<const std::byte>) { fail_order(); }
bytes unordered_part::snapshot(std::span<const std::byte>) { fail_order(); }
bytes unordered_part::pin(remote<presence>, std::span<const std::byte>) { fail_order(); }
bytes unordered_part::read_pin(remote<presence>, std::uint32_t) { fail_order(); }
bytes unordered_part::first_item() { fail_order(); }
bytes unordered_part::last_item() { fail_order(); }

}  // namespace orrery::service
