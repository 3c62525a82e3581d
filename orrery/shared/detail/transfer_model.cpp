// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/transfer_model.hpp>

#include <algorithm>

namespace orrery::detail {

namespace {
constexpr double header_bytes = 64;  // of a request or an answer
constexpr double execution_ns = 20;  // of a message, beside the network's overhead
}  // namespace

double transfer_model::round_trip(double bytes_there, double bytes_back) const noexcept {
  return 2 * net_.latency + 4 * net_.overhead + 2 * execution_ns +
         (2 * header_bytes + bytes_there + bytes_back) * net_.byte;
}

void transfer_model::exchange(std::uint32_t from, std::uint32_t to, double count, double bytes_there,
                              double bytes_back) {
  if (count == 0) return;
  asked_ = true;
  load& asks = loads_[from];
  asks.processor += count * (2 * net_.overhead + execution_ns);
  asks.interface += count * (net_.gap + header_bytes * net_.byte) + bytes_there * net_.byte;
  load& answers = loads_[to];
  answers.processor += count * (2 * net_.overhead + execution_ns);
  answers.interface += count * (net_.gap + header_bytes * net_.byte) + bytes_back * net_.byte;
}

void transfer_model::exchange_in_turn(std::uint32_t from, std::uint32_t to, double count, double bytes_there,
                                      double bytes_back) {
  if (count == 0) return;
  exchange(from, to, count, bytes_there, bytes_back);
  loads_[from].waiting += count * round_trip(bytes_there / count, bytes_back / count);
}

double transfer_model::time() const noexcept {
  if (!asked_) return 0;
  double busy = 0;
  double waiting = 0;
  for (const auto& [pe, l] : loads_) {
    busy = std::max({busy, l.processor, l.interface});
    waiting = std::max(waiting, l.waiting);
  }
  return std::max(waiting, 2 * net_.latency + 2 * net_.overhead + busy);
}

}  // namespace orrery::detail
