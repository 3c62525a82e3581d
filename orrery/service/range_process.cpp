// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/future.hpp>
#include <orrery/service/range_process.hpp>
#include <orrery/wire/error.hpp>

namespace orrery::service {

namespace {
[[noreturn]] void fail_interval() {
  throw usage_error(errc::bad_argument,
                    "this service has no scan, snapshot and stream of an interval of keys: use an ordered_list");
}
}  // namespace

void show_window(std::uint64_t window) noexcept { detail::here_pe().count().service_window = window; }
void show_granularity(std::uint64_t items) noexcept { detail::here_pe().count().service_granularity = items; }
void show_forwards(std::uint64_t requests) noexcept { detail::here_pe().count().service_forwards = requests; }

bytes range_process::scan(std::uint32_t, std::span<const std::byte>) { fail_interval(); }
bytes range_process::snapshot(std::span<const std::byte>) { fail_interval(); }
bytes range_process::pin(remote<presence>, std::span<const std::byte>) { fail_interval(); }
bytes range_process::read_pin(remote<presence>, std::uint32_t) { fail_interval(); }

}  // namespace orrery::service
