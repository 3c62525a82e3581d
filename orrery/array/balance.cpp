// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/balance.hpp>

#include <orrery/transport/wait.hpp>

#include <fmt/format.h>

namespace orrery {

std::string balance_report::text() const {
  return fmt::format(
      "{}: {} of {} elements moved in {:.1f} ms; largest load {:.2f} -> {:.2f} x the average, {} -> {} bytes between PEs",
      strategy, moved, elements, seconds * 1e3, before.max_over_average, after.max_over_average,
      before.bytes_between_pes, after.bytes_between_pes);
}

double detail::seconds_now() noexcept { return static_cast<double>(transport::now_ns()) / 1e9; }

}  // namespace orrery
