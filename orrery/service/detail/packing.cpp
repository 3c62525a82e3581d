// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/packing.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::service {

void fail_too_large(std::size_t size) {
  throw usage_error(
      errc::bad_argument,
      fmt::format("a key or value of a service has {} bytes; one must have less than 4 GiB: divide it", size));
}

void packer::grow(std::size_t n) { room_.resize(std::max({2 * room_.size(), used_ + n, std::size_t{256}})); }

void packer::drop_front(std::size_t n) {
  std::memmove(room_.data(), room_.data() + n, used_ - n);
  used_ -= n;
}

bytes packer::take() {
  room_.resize(used_);
  used_ = 0;
  return std::exchange(room_, {});
}

}  // namespace orrery::service
